/* A sparse file that is mapped shared where the file system has less room than it is long. */
#include "guest.h"

#define SIZE (256UL << 20)

static char page[PAGE];

static size_t kept(int fd, const char *mapped, size_t end) {
    for (size_t at = 0; at < end; at += PAGE) {
        if (mapped ? mapped[at] != (char)(at / PAGE) : pread(fd, page, PAGE, at) != PAGE || page[0] != (char)(at / PAGE))
            return at;
    }
    return end;
}

/* There is no memory for it later. */
__attribute__((noinline)) static void touch_stack(void) {
    volatile char stack[16 * PAGE];
    for (size_t at = 0; at < sizeof stack; at += PAGE) stack[at] = 1;
}

int main(int count, char **words) {
    touch_stack();
    memset(page, 7, PAGE);
    int fd = count > 1 ? open(words[1], O_RDWR | O_CREAT, 0600) : (int)syscall(SYS_memfd_create, "full", 0);
    guard_install();
    SHOW(ftruncate(fd, SIZE));
    char *p = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    TRUE(p != MAP_FAILED);
    volatile size_t end = 0;
    GUARD(for (; end < SIZE; end += PAGE) p[end] = end / PAGE);
    TRUE(end > (4UL << 20) && end < SIZE && guard_address >= (void *)(p + end) && guard_address < (void *)(p + end + PAGE));
    TRUE(kept(fd, p, end) == end);
    TRUE(kept(fd, 0, end) == end);
    memset(page, 7, PAGE);
    SHOW(pwrite(fd, page, PAGE, SIZE - PAGE));
    SHOW(pread(fd, p + SIZE - 2 * PAGE, PAGE, 0));
    SHOW(fallocate(fd, 0, 0, SIZE));
    SHOW(munmap(p, SIZE));
    TRUE(kept(fd, 0, end) == end);
    p = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    TRUE(kept(fd, p, end) == end);
    SHOW(ftruncate(fd, 2 * PAGE));
    TRUE(p[PAGE] == 1);
    GUARD((void)*(volatile char *)(p + 2 * PAGE));
    SHOW(ftruncate(fd, SIZE));
    TRUE(p[2 * PAGE] == 0);
    memset(page, 7, PAGE);
    SHOW(pwrite(fd, page, PAGE, 3 * PAGE));
    TRUE(p[3 * PAGE] == 7 && p[2 * PAGE] == 0);
    char *q = mmap(0, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    TRUE(q != MAP_FAILED && q[PAGE] == 1 && q[3 * PAGE] == 7);
    p[PAGE] = 9;
    SHOW(pread(fd, page, 1, PAGE));
    TRUE(page[0] == 9);
    p = mmap(0, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    TRUE(p != MAP_FAILED && p[PAGE] == 9);
    return 0;
}
