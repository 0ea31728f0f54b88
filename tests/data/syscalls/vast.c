/* Mappings of terabytes of which little is touched, as sanitizers and language runtimes have them. */
#include "guest.h"
#include <sys/uio.h>
#include <sys/wait.h>

#define TERA (1UL << 40)
#define PRIVATE (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

static void *vast(unsigned long size, int prot) { return mmap(0, size, prot, PRIVATE, -1, 0); }

/* The areas of /proc/self/maps in a range, as one line each. */
static void areas(char *from, unsigned long size) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], perms[8];
    unsigned long start, end, low = (unsigned long)from;
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &start, &end, perms) == 3 && start < low + size && low < end)
            printf("area of %#lx %s\n", (end < low + size ? end : low + size) - (start > low ? start : low), perms);
    fclose(maps);
}

static long resident(void) {
    long size, pages;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (fscanf(statm, "%ld %ld", &size, &pages) != 2) pages = -1;
    fclose(statm);
    return pages;
}

int main(void) {
    guard_install();
    for (int bits = 30; bits < 47; bits++) {
        char *at = vast(1UL << bits, PROT_READ | PROT_WRITE);
        if (at == MAP_FAILED) { show("vast", -1); continue; }
        at[12345] = 1;
        at[(1UL << bits) - 1] = 2;
        printf("2^%d: %d %d %d\n", bits, at[12345], at[54321], at[(1UL << bits) - 1]);
        WORKS(munmap(at, 1UL << bits));
    }
    char *at = vast(4 * TERA, PROT_READ | PROT_WRITE);
    long before = resident();
    /* A word across two parts, and calls that read and write what nobody has touched. */
    *(long *)(at + TERA - 4) = 0x0807060504030201;
    printf("across: %#lx %d\n", *(long *)(at + TERA - 4), at[TERA]);
    int pipes[2];
    if (pipe(pipes)) return 1;
    SHOW(write(pipes[1], at + 2 * TERA, 100));
    SHOW(read(pipes[0], at + 3 * TERA - 50, 100));
    SHOW(write(pipes[1], "hello", 5));
    SHOW(read(pipes[0], at + 3 * TERA - 2, 5));
    printf("read: %.5s\n", at + 3 * TERA - 2);
    struct iovec own = {at + TERA + 12345, 8}, other = {at + TERA - 4, 8};
    SHOW(process_vm_readv(getpid(), &own, 1, &other, 1, 0));
    printf("copied: %#lx\n", *(long *)(at + TERA + 12345));
    /* As a tracer does, to what nobody has touched. */
    other.iov_base = at + TERA + (300UL << 30);
    SHOW(process_vm_writev(getpid(), &own, 1, &other, 1, 0));
    int memory = open("/proc/self/mem", O_RDWR);
    SHOW(pwrite(memory, "there", 5, (off_t)(at + TERA + (400UL << 30))));
    char text[8] = "";
    SHOW(pread(memory, text, 5, (off_t)(at + TERA + (500UL << 30))));
    printf("written: %#lx %.5s %d\n", *(long *)other.iov_base, at + TERA + (400UL << 30), text[0]);
    close(memory);
    areas(at, 4 * TERA);
    TRUE(resident() - before < 64);
    /* Another protection, and back. */
    SHOW(mprotect(at + TERA, TERA, PROT_READ));
    GUARD(at[TERA + 5 * 4096] = 1);
    GUARD((void)*(volatile char *)(at + TERA + 9 * 4096));
    GUARD(at[TERA - 5 * 4096] = 1);
    areas(at, 4 * TERA);
    SHOW(mprotect(at, 4 * TERA, PROT_NONE));
    GUARD((void)*(volatile char *)(at + 9 * 4096));
    SHOW(mprotect(at, 4 * TERA, PROT_READ | PROT_WRITE));
    areas(at, 4 * TERA);
    printf("kept: %#lx %.5s\n", *(long *)(at + TERA - 4), at + 3 * TERA - 2);
    /* A copy of the address space. */
    pid_t child = fork();
    if (!child) {
        printf("child: %#lx %d\n", *(long *)(at + TERA - 4), at[3 * TERA + 777777]);
        at[TERA] = 77;
        at[TERA / 2] = 78;
        printf("child: %d %d\n", at[TERA], at[TERA / 2]);
        fflush(stdout);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    printf("parent: %d %d %d\n", status, at[TERA], at[TERA / 2]);
    /* Thrown away, in part. */
    SHOW(madvise(at, TERA, MADV_DONTNEED));
    printf("kept: %#lx\n", *(long *)(at + TERA - 4));
    SHOW(madvise(at + 8192, 3 * TERA, MADV_DONTNEED));
    printf("gone: %d, kept: %.5s\n", at[TERA], at + 3 * TERA - 2);
    /* Moved, grown, cut. */
    memcpy(at + TERA, "moved", 5);
    memcpy(at + 2 * TERA, "far", 3);
    char *there = mremap(at, 4 * TERA, 8 * TERA, MREMAP_MAYMOVE);
    WORKS((long)there);
    printf("%.5s %.3s %d\n", there + TERA, there + 2 * TERA, there[7 * TERA + 3]);
    areas(there, 8 * TERA);
    memcpy(there + 7 * TERA, "end", 3);
    printf("%.3s\n", there + 7 * TERA);
    TRUE(mremap(there, 8 * TERA, 3 * TERA, 0) == there);
    GUARD((void)*(volatile char *)(there + 7 * TERA));
    char *place = vast(8 * TERA, PROT_NONE);
    char *fixed = mremap(there, 3 * TERA, 3 * TERA, MREMAP_MAYMOVE | MREMAP_FIXED, place + TERA);
    TRUE(fixed == place + TERA);
    printf("%.5s %.3s\n", fixed + TERA, fixed + 2 * TERA);
    areas(place, 8 * TERA);
    /* Holes and what is put into them. */
    SHOW(munmap(fixed + TERA / 2, TERA));
    GUARD(fixed[TERA] = 1);
    TRUE(mmap(fixed + TERA, PAGE, PROT_READ | PROT_WRITE, PRIVATE | MAP_FIXED, -1, 0) == fixed + TERA);
    printf("%d\n", fixed[TERA]);
    /* Reserved first, committed later, as arenas of language runtimes are. */
    for (int i = 0; i < 8; i++) {
        SHOW(mprotect(place + 5 * TERA + i * (64UL << 20), 64UL << 20, PROT_READ | PROT_WRITE));
        place[5 * TERA + i * (64UL << 20) + 4095] = i;
    }
    int sum = 0;
    for (int i = 0; i < 8; i++) sum += place[5 * TERA + i * (64UL << 20) + 4095];
    printf("sum %d\n", sum);
    GUARD(place[5 * TERA - 1] = 1);
    SHOW(mprotect(place + 6 * TERA, TERA, PROT_READ | PROT_WRITE));
    place[6 * TERA + TERA / 3] = 5;
    printf("%d %d\n", place[6 * TERA + TERA / 3], place[6 * TERA + TERA / 4]);
    SHOW(munmap(place, 8 * TERA));
    return 0;
}
