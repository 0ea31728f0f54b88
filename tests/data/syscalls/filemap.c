/* Mapped files: ends, sharing, coherence with read and write. */
#include "guest.h"

#define RW (PROT_READ | PROT_WRITE)

static void text(const char *what, char *p, int n) {
    char copy[16] = {0};
    guard_signal = 0;
    if (!sigsetjmp(guard_at, 1)) memcpy(copy, p, n);
    if (guard_signal) printf("%s: signal %d\n", what, guard_signal);
    else printf("%s: %.*s\n", what, n, copy);
    fflush(stdout);
}

int main(void) {
    guard_install();
    int fd = open("map.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
    char line[PAGE];
    memset(line, 'a', sizeof line);
    write(fd, line, PAGE);
    write(fd, "tail", 4);
    char *p = mmap(0, 4 * PAGE, RW, MAP_PRIVATE, fd, 0);
    char *s = mmap(0, 4 * PAGE, RW, MAP_SHARED, fd, 0);
    char *r = mmap(0, 4 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    TRUE(p != MAP_FAILED && s != MAP_FAILED && r != MAP_FAILED);
    text("private", p + PAGE - 2, 6);
    TRUE(p[PAGE + 4] == 0 && p[2 * PAGE - 1] == 0);
    GUARD(PEEK(p + 2 * PAGE));
    GUARD(POKE(p + 2 * PAGE, 1));
    GUARD(PEEK(s + 3 * PAGE));
    TRUE(guard_address == s + 3 * PAGE);
    GUARD(POKE(r, 1));
    s[0] = 'S';
    text("shared store in the other view", r, 2);
    p[0] = 'Q';
    p[1] = 'P';
    text("private store", p, 3);
    text("shared view", s, 3);
    char buffer[8] = {0};
    SHOW(pread(fd, buffer, 3, 0));
    text("read sees the store", buffer, 3);
    SHOW(pwrite(fd, "W", 1, 2));
    text("store sees the write", s, 4);
    text("so does the other", r, 4);
    text("private page was copied", p, 2);
    SHOW(msync(s, PAGE, MS_SYNC));
    SHOW(pwrite(fd, "abcd", 4, 2 * PAGE)); /* the file grows */
    text("grown", s + 2 * PAGE, 4);
    s[2 * PAGE + 1] = 'X';
    SHOW(pread(fd, buffer, 4, 2 * PAGE));
    text("read grown", buffer, 4);
    SHOW(ftruncate(fd, PAGE));
    GUARD(PEEK(s + PAGE));
    GUARD(PEEK(p + PAGE));
    GUARD(PEEK(s));
    SHOW(ftruncate(fd, 2 * PAGE));
    GUARD(PEEK(s + PAGE));
    TRUE(s[PAGE] == 0);
    SHOW(madvise(p, PAGE, MADV_DONTNEED));
    text("private again", p, 4);
    SHOW(madvise(s, PAGE, MADV_DONTNEED));
    text("shared still", s, 4);
    SHOW(munmap(s, 4 * PAGE));
    SHOW(munmap(r, 4 * PAGE));
    s = mmap(0, PAGE, RW, MAP_SHARED, fd, PAGE);
    s[5] = 'Z';
    SHOW(close(fd)); /* a mapping outlives its descriptor */
    s[6] = 'Y';
    SHOW(munmap(s, PAGE));
    fd = open("map.dat", O_RDONLY);
    SHOW(pread(fd, buffer, 8, PAGE + 4));
    printf("%d %c%c\n", buffer[0], buffer[1], buffer[2]);
    WORKS(mmap(0, PAGE, RW, MAP_SHARED, fd, 0));
    WORKS(mmap(0, PAGE, RW, MAP_PRIVATE, fd, 0));
    s = mmap(0, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    SHOW(mprotect(s, PAGE, RW));
    SHOW(mprotect(s, PAGE, PROT_READ | PROT_EXEC));
    close(fd);
    fd = open("map.dat", O_WRONLY);
    WORKS(mmap(0, PAGE, PROT_READ, MAP_PRIVATE, fd, 0));
    WORKS(mmap(0, PAGE, PROT_READ, MAP_SHARED, fd, 0));
    close(fd);
    fd = open(".", O_RDONLY);
    WORKS(mmap(0, PAGE, PROT_READ, MAP_PRIVATE, fd, 0));
    close(fd);
    int ends[2];
    pipe(ends);
    WORKS(mmap(0, PAGE, PROT_READ, MAP_PRIVATE, ends[0], 0));
    fd = open("/dev/zero", O_RDWR);
    s = mmap(0, PAGE, RW, MAP_PRIVATE, fd, 0);
    TRUE(s != MAP_FAILED && s[5] == 0);
    fd = open("map.dat", O_RDWR);
    WORKS(syscall(SYS_mmap, 0, PAGE, RW, MAP_SHARED, fd, 100));
    /* remap with the file's offset */
    for (int i = 0; i < 4; i++) memset(line, '0' + i, PAGE), pwrite(fd, line, PAGE, i * PAGE);
    s = mmap(0, 2 * PAGE, RW, MAP_SHARED, fd, PAGE);
    s = mremap(s, 2 * PAGE, 3 * PAGE, MREMAP_MAYMOVE);
    printf("remapped %c%c%c\n", s[0], s[PAGE], s[2 * PAGE]);
    s[2 * PAGE] = 'M';
    char *half = mremap(s + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)0x210000000000);
    printf("half %c, first %c, last %c\n", half[0], s[0], s[2 * PAGE]);
    half[1] = 'H';
    pread(fd, buffer, 2, 2 * PAGE);
    text("half reaches the file", buffer, 2);
    pread(fd, buffer, 2, 3 * PAGE);
    text("last reached the file", buffer, 2);
    /* memfd, two views */
    int mem = memfd_create("m", 0);
    SHOW(ftruncate(mem, 2 * PAGE));
    char *a = mmap(0, 2 * PAGE, RW, MAP_SHARED, mem, 0), *b = mmap(0, 2 * PAGE, PROT_READ, MAP_SHARED, mem, 0);
    memcpy(a, "hello", 6);
    text("memfd", b, 5);
    SHOW(pwrite(mem, "J", 1, 0));
    text("memfd", b, 5);
    SHOW(pread(mem, buffer, 5, 0));
    text("memfd read", buffer, 5);
    SHOW(mprotect(b, PAGE, RW));
    b[1] = 'u';
    text("memfd", a, 5);
    SHOW(munmap(a, 2 * PAGE));
    SHOW(pread(mem, buffer, 5, 0));
    text("memfd read", buffer, 5);
    /* writev from and read into mapped pages; PROT_NONE in the middle */
    SHOW(mprotect(b + PAGE, PAGE, PROT_NONE));
    SHOW(pwrite(fd, b, 2 * PAGE, 0));
    SHOW(pread(fd, b, 2 * PAGE, 0));
    SHOW(write(fd, b + PAGE, 1));
    unlink("map.dat");
    return 0;
}
