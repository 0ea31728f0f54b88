/* Anonymous mappings: placing, splitting, growing, moving, limits. */
#include "guest.h"
#include <sys/resource.h>

#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
#define RW (PROT_READ | PROT_WRITE)

static void fill(char *p, int pages, char first) {
    for (int i = 0; i < pages; i++) p[i * PAGE] = p[i * PAGE + PAGE - 1] = first + i;
}
static void print(const char *what, char *p, int pages) {
    printf("%s:", what);
    for (int i = 0; i < pages; i++) {
        guard_signal = 0;
        if (!sigsetjmp(guard_at, 1)) printf(" %d/%d", *(volatile char *)(p + i * PAGE), *(volatile char *)(p + i * PAGE + PAGE - 1));
        else printf(" S%d.%d", guard_signal, guard_code);
    }
    printf("\n");
}
static void *at(long n) { return (void *)(0x200000000000UL + n * PAGE); }

int main(void) {
    guard_install();
    char *base = mmap(at(0), 16 * PAGE, RW, ANON, -1, 0);
    TRUE(base == at(0));
    fill(base, 16, 1);
    TRUE(mmap(at(0), PAGE, RW, ANON, -1, 0) != at(0)); /* a taken hint is only a hint */
    TRUE(mmap((char *)at(40) + 123, PAGE, RW, ANON, -1, 0) == at(40)); /* rounded down */
    SHOW(munmap(at(40), PAGE));
    WORKS(mmap(at(2), PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0));
    TRUE(mmap(at(20), PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) == at(20));
    WORKS(mmap((char *)at(20) + 1, PAGE, RW, ANON | MAP_FIXED, -1, 0));
    SHOW(munmap(at(20), PAGE));
    SHOW(munmap(at(3), PAGE));
    SHOW(munmap(at(3), PAGE)); /* a hole is no error */
    TRUE(mmap(at(5), PAGE, RW, ANON | MAP_FIXED, -1, 0) == at(5));
    print("after hole and replace", base, 16);
    SHOW(mprotect(at(7), PAGE, PROT_READ));
    SHOW(mprotect(at(9), 2 * PAGE, PROT_NONE));
    SHOW(mprotect(at(2), 2 * PAGE, PROT_READ)); /* hole: ENOMEM, but page 2 changed */
    GUARD(POKE(at(2), 9));
    GUARD(POKE(at(7), 9));
    GUARD(PEEK(at(7)));
    GUARD(PEEK(at(9)));
    GUARD(POKE(at(10), 1));
    GUARD(PEEK(at(3)));
    SHOW(mprotect(at(9), 2 * PAGE, RW));
    print("back again", base, 16);
    SHOW(mprotect(at(0), 0, PROT_NONE));
    SHOW(mprotect((char *)at(0) + 1, PAGE, PROT_NONE));
    SHOW(mprotect(at(100), PAGE, PROT_READ));
    SHOW(mprotect(at(0), PAGE, 0x40));
    SHOW(mprotect(at(0), -1UL, PROT_READ));
    SHOW(mprotect(at(0), PAGE, PROT_READ | PROT_GROWSDOWN));
    SHOW(mprotect(at(0), PAGE, RW));
    /* madvise */
    SHOW(madvise(at(0), 2 * PAGE, MADV_DONTNEED));
    print("dontneed", base, 3);
    SHOW(madvise(at(3), PAGE, MADV_DONTNEED));
    SHOW(madvise(at(0), 4 * PAGE, MADV_DONTNEED));
    SHOW(madvise((char *)at(0) + 1, PAGE, MADV_DONTNEED));
    SHOW(madvise(at(0), PAGE, 999));
    SHOW(madvise(at(0), 0, MADV_DONTNEED));
    SHOW(madvise(at(300), 0, MADV_NORMAL));
    SHOW(madvise(at(0), PAGE, MADV_WILLNEED));
    SHOW(madvise(at(0), PAGE, MADV_SEQUENTIAL));
    SHOW(madvise(at(0), PAGE, MADV_FREE));
    SHOW(madvise(at(0), -1UL, MADV_NORMAL));
    SHOW(madvise(at(4), PAGE, MADV_POPULATE_WRITE));
    SHOW(madvise(at(3), PAGE, MADV_POPULATE_READ));
    /* mincore */
    unsigned char vec[64];
    memset(vec, 0x55, sizeof vec);
    SHOW(mincore(at(4), PAGE, vec));
    printf("resident %d\n", vec[0] & 1);
    SHOW(mincore(at(2), 2 * PAGE, vec));
    SHOW(mincore((char *)at(4) + 1, PAGE, vec));
    SHOW(mincore(at(4), PAGE, (void *)8));
    SHOW(mincore(at(4), 0, vec));
    SHOW(mincore(at(4), -1UL, vec));
    /* mremap */
    char *m = mmap(at(1000), 4 * PAGE, RW, ANON, -1, 0);
    fill(m, 4, 50);
    TRUE(mremap(m, 4 * PAGE, 2 * PAGE, 0) == m);
    print("shrunk", m, 4);
    TRUE(mremap(m, 2 * PAGE, 6 * PAGE, 0) == m);
    print("grown", m, 6);
    TRUE(mmap(at(1006), PAGE, RW, ANON | MAP_FIXED, -1, 0) == at(1006));
    WORKS(mremap(m, 6 * PAGE, 8 * PAGE, 0));
    char *moved = mremap(m, 6 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
    TRUE(moved != MAP_FAILED && moved != m);
    print("moved", moved, 8);
    print("old place", m, 2);
    TRUE(mremap(moved, 8 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(2000)) == at(2000));
    print("fixed", at(2000), 4);
    print("fixed, old", moved, 4);
    WORKS(mremap(at(2000), 3 * PAGE, 3 * PAGE, MREMAP_FIXED, at(2100)));
    WORKS(mremap(at(2000), 3 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(2001)));
    WORKS(mremap(at(2000), 3 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (char *)at(2100) + 5));
    WORKS(mremap((char *)at(2000) + 1, PAGE, PAGE, MREMAP_MAYMOVE));
    WORKS(mremap(at(2000), PAGE, 0, MREMAP_MAYMOVE));
    WORKS(mremap(at(2000), 0, PAGE, MREMAP_MAYMOVE));
    WORKS(mremap(at(2000), PAGE, PAGE, 0x80));
    WORKS(mremap(at(5000), PAGE, 2 * PAGE, MREMAP_MAYMOVE));
    WORKS(mremap(at(2000), 5 * PAGE, 6 * PAGE, MREMAP_MAYMOVE));
    /* the middle of a mapping moves out */
    char *mid = mmap(at(3000), 8 * PAGE, RW, ANON, -1, 0);
    fill(mid, 8, 1);
    TRUE(mremap(mid + 2 * PAGE, 2 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(3100)) == at(3100));
    print("rest", mid, 8);
    print("middle", at(3100), 5);
    TRUE(mremap(at(3100), 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(3002)) == at(3002));
    print("back", mid, 8);
    char *dont = mremap(at(2000), 3 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
    TRUE(dont != MAP_FAILED && dont != at(2000));
    if (dont != MAP_FAILED) {
        print("dontunmap, new", dont, 3);
        print("dontunmap, old", at(2000), 3);
    }
    /* shared anonymous memory: old_size 0 makes a second view */
    char *sh = mmap(at(4000), 2 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fill(sh, 2, 20);
    char *view = mremap(sh, 0, 2 * PAGE, MREMAP_MAYMOVE);
    TRUE(view != MAP_FAILED && view != sh);
    if (view != MAP_FAILED) {
        view[0] = 99;
        print("view", sh, 2);
    }
    SHOW(madvise(sh, PAGE, MADV_DONTNEED));
    print("shared dontneed", sh, 2);
    /* wrong calls */
    WORKS(mmap(0, 0, RW, ANON, -1, 0));
    WORKS(mmap(0, PAGE, RW, MAP_ANONYMOUS, -1, 0));
    WORKS(mmap(0, PAGE, RW, MAP_PRIVATE, -1, 0));
    WORKS(mmap(0, PAGE, RW, MAP_PRIVATE, 99, 0));
    WORKS(syscall(SYS_mmap, 0, PAGE, RW, ANON, -1, 1));
    WORKS(mmap(0, 1UL << 60, RW, ANON, -1, 0));
    WORKS(mmap(0, -1UL, RW, ANON, -1, 0));
    WORKS(mmap((void *)-PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0));
    if (getuid()) WORKS(mmap((void *)0, PAGE, RW, ANON | MAP_FIXED, -1, 0));
    WORKS(mmap((void *)0x1000, PAGE, RW, ANON, -1, 0));
    WORKS(mmap(0, PAGE, RW, MAP_SHARED_VALIDATE | MAP_ANONYMOUS | 0x8000000, -1, 0));
    WORKS(mmap(0, PAGE, RW | 0x800, ANON, -1, 0));
    SHOW(munmap(at(0), 0));
    SHOW(munmap((char *)at(0) + 1, PAGE));
    SHOW(munmap((void *)-PAGE, PAGE));
    SHOW(munmap(at(0), -1UL));
    SHOW(mlock(at(4), PAGE));
    SHOW(mlock(at(3), PAGE));
    SHOW(munlock(at(4), PAGE));
    SHOW(msync(at(4), PAGE, MS_SYNC));
    SHOW(msync(at(2), 2 * PAGE, MS_SYNC));
    SHOW(msync(at(4), PAGE, MS_SYNC | MS_ASYNC));
    SHOW(msync((char *)at(4) + 1, PAGE, MS_SYNC));
    SHOW(msync(at(4), PAGE, 0x100));
    /* reservations and their parts */
    char *big = mmap(0, 1UL << 40, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
    TRUE(big != MAP_FAILED);
    SHOW(mprotect(big + (1UL << 39), 4 * PAGE, RW));
    fill(big + (1UL << 39), 4, 7);
    print("reserved", big + (1UL << 39), 5);
    SHOW(munmap(big, 1UL << 40));
    char *lazy = mmap(0, 8UL << 30, RW, ANON | MAP_NORESERVE, -1, 0);
    TRUE(lazy != MAP_FAILED);
    lazy[7UL << 30] = 3;
    print("lazy", lazy + (7UL << 30), 1);
    SHOW(munmap(lazy, 8UL << 30));
    /* the heap */
    char *heap = sbrk(0);
    TRUE(sbrk(3 * PAGE) == heap);
    fill(heap, 2, 5);
    TRUE(brk(heap + PAGE) == 0);
    TRUE(brk(heap + 3 * PAGE) == 0);
    print("heap again", heap, 2);
    TRUE((char *)syscall(SYS_brk, 0) == heap + 3 * PAGE);
    TRUE((char *)syscall(SYS_brk, -1L) == heap + 3 * PAGE);
    TRUE((char *)syscall(SYS_brk, heap + 100) == heap + 100);
    char *wall = (char *)(((unsigned long)heap + 64 * PAGE) & -PAGE);
    TRUE(mmap(wall, PAGE, RW, ANON | MAP_FIXED, -1, 0) == wall);
    TRUE((char *)syscall(SYS_brk, wall + PAGE) == heap + 100);
    TRUE((char *)syscall(SYS_brk, heap) == heap);
    SHOW(munmap(wall, PAGE));
    /* limits */
    struct rlimit limit = {0, RLIM_INFINITY};
    SHOW(setrlimit(RLIMIT_DATA, &limit));
    TRUE((char *)syscall(SYS_brk, heap + 64 * PAGE) == heap);
    WORKS(mmap(0, 64 * PAGE, RW, ANON, -1, 0));
    WORKS(mmap(0, 64 * PAGE, PROT_READ, ANON, -1, 0));
    limit.rlim_cur = 40 * PAGE;
    SHOW(setrlimit(RLIMIT_DATA, &limit));
    WORKS(mmap(0, 64 * PAGE, RW, ANON, -1, 0));
    WORKS(mmap(0, 64 * PAGE, PROT_READ, ANON, -1, 0));
    WORKS(mmap(0, 64 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    limit.rlim_cur = RLIM_INFINITY;
    SHOW(setrlimit(RLIMIT_DATA, &limit));
    limit.rlim_cur = 1 << 20;
    SHOW(setrlimit(RLIMIT_AS, &limit));
    WORKS(mmap(0, 4 << 20, RW, ANON, -1, 0));
    TRUE((char *)syscall(SYS_brk, heap + 1024 * PAGE) == heap);
    WORKS(mremap(at(4), PAGE, 2048 * PAGE, MREMAP_MAYMOVE));
    TRUE(malloc(2 << 20) == 0);
    limit.rlim_cur = RLIM_INFINITY;
    SHOW(setrlimit(RLIMIT_AS, &limit));
    limit.rlim_cur = 5;
    limit.rlim_max = 5;
    SHOW(setrlimit(RLIMIT_NOFILE, &limit));
    SHOW(dup2(1, 5));
    SHOW(dup2(1, 4));
    SHOW(dup(1) >= 0);
    SHOW(dup(1));
    limit.rlim_max = 6;
    SHOW(setrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 9;
    limit.rlim_max = 5;
    SHOW(setrlimit(RLIMIT_NOFILE, &limit));
    SHOW(setrlimit(99, &limit));
    SHOW(getrlimit(RLIMIT_STACK, &limit));
    printf("stack %ld\n", (long)limit.rlim_cur);
    return 0;
}
