/* A file that has lost its name, or whose name is another's, is still that file. */
#include "guest.h"
#include <sys/stat.h>

static void looks(int fd) {
    struct stat now;
    SHOW(fstat(fd, &now));
    printf("links %d, size %d, mode %o, time %d\n", (int)now.st_nlink, (int)now.st_size, now.st_mode & 07777, (int)now.st_mtime);
}

static void used(int fd) {
    char path[64], *p, byte = 0;
    struct timespec times[2] = {{5, 0}, {6, 0}};
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    p = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    TRUE(p != MAP_FAILED && p[1] == 'e');
    p = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    TRUE(p != MAP_FAILED && p[1] == 'e');
    p[1] = 'E';
    SHOW(munmap(p, PAGE));
    SHOW(pread(fd, &byte, 1, 1));
    TRUE(byte == 'E');
    SHOW(fchmod(fd, 0640));
    SHOW(futimens(fd, times));
    SHOW(fchown(fd, -1, -1));
    looks(fd);
    SHOW(ftruncate(fd, 100));
    SHOW(lseek(fd, 0, SEEK_END));
    SHOW(posix_fallocate(fd, 0, 300));
    int again = open(path, O_RDWR);
    TRUE(again >= 0);
    SHOW(write(again, "h", 1));
    SHOW(close(again));
    SHOW(truncate(path, 30));
    SHOW(chmod(path, 0600));
    SHOW(fcntl(fd, F_SETFL, O_APPEND));
    SHOW(write(fd, "x", 1));
    SHOW(lseek(fd, 0, SEEK_CUR));
}

int main(void) {
    int fd = open("lost", O_RDWR | O_CREAT | O_TRUNC, 0600);
    write(fd, "hello", 5);
    unlink("lost");
    used(fd);
    fd = open("given", O_RDWR | O_CREAT | O_TRUNC, 0600);
    write(fd, "hello", 5);
    unlink("given");
    int other = open("given", O_RDWR | O_CREAT | O_EXCL, 0600);
    write(other, "other", 5);
    used(fd);
    struct stat now;
    SHOW(stat("given", &now));
    printf("the other: %d bytes\n", (int)now.st_size);
    SHOW(rename("given", "moved"));
    SHOW(unlink("moved"));
    return 0;
}
