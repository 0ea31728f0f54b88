/* Wrong calls: bad pointers, descriptors, flags and lengths. */
#include "guest.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#define BAD ((void *)8)
#define CALL(name, ...) SHOW(syscall(SYS_##name, ##__VA_ARGS__))
int main(void) {
    int fd = open("e.dat", O_RDWR | O_CREAT | O_TRUNC, 0600), ends[2]; char b[64] = "x"; struct iovec v[2] = {{b, 4}, {BAD, 4}}; struct stat st; pipe(ends);
    CALL(read, 99, b, 1); CALL(read, fd, b, 0); CALL(read, -1, b, 1); CALL(read, ends[1], b, 1);
    CALL(write, 99, b, 1); CALL(write, fd, BAD, 1); CALL(write, ends[0], b, 1); CALL(write, fd, BAD, 0); CALL(write, fd, b, 4);
    CALL(pread64, fd, b, 1, -1L); CALL(pread64, ends[0], b, 1, 0L); CALL(pwrite64, fd, b, 1, -1L); CALL(pread64, fd, BAD, 1, 0L); CALL(pread64, fd, b, 10, 100L);
    CALL(readv, fd, v, 0); CALL(readv, fd, BAD, 1); CALL(readv, fd, v, -1); CALL(readv, fd, v, 1025); CALL(writev, fd, v + 1, 1); CALL(writev, fd, v, 1); CALL(writev, 99, v, 1);
    CALL(lseek, fd, -1L, SEEK_SET); CALL(lseek, fd, 0L, 99); CALL(lseek, ends[0], 0L, SEEK_SET); CALL(lseek, 99, 0L, 0); CALL(lseek, fd, 3L, SEEK_END); CALL(lseek, fd, -100L, SEEK_CUR);
    CALL(openat, AT_FDCWD, "missing", O_RDONLY, 0); CALL(openat, AT_FDCWD, BAD, O_RDONLY, 0); CALL(openat, AT_FDCWD, "", O_RDONLY, 0); CALL(openat, 99, "x", O_RDONLY, 0); CALL(openat, fd, "x", O_RDONLY, 0); CALL(openat, AT_FDCWD, "e.dat/x", O_RDONLY, 0); CALL(openat, AT_FDCWD, "e.dat", O_DIRECTORY, 0); CALL(openat, AT_FDCWD, ".", O_WRONLY, 0); CALL(openat, AT_FDCWD, "e.dat", O_CREAT | O_EXCL, 0);
    CALL(close, 99); CALL(close, -1); CALL(dup, 99); CALL(dup3, fd, fd, 0); CALL(dup3, fd, 20, 99); CALL(dup3, 99, 20, 0); CALL(dup3, fd, -1, 0); CALL(fcntl, 99, F_GETFD); CALL(fcntl, fd, 9999); CALL(fcntl, fd, F_DUPFD, -1L); CALL(fcntl, fd, F_SETFL, O_APPEND); CALL(fcntl, fd, F_GETLK, BAD);
    CALL(fstat, 99, &st); CALL(fstat, fd, BAD); CALL(newfstatat, AT_FDCWD, "missing", &st, 0); CALL(newfstatat, AT_FDCWD, "", &st, 0); CALL(newfstatat, fd, "", &st, AT_EMPTY_PATH); CALL(newfstatat, AT_FDCWD, ".", &st, 0x8000000); CALL(newfstatat, AT_FDCWD, BAD, &st, 0); CALL(newfstatat, AT_FDCWD, ".", BAD, 0);
    CALL(faccessat, AT_FDCWD, "missing", 0); CALL(faccessat, AT_FDCWD, "e.dat", 99); CALL(faccessat, AT_FDCWD, BAD, 0); CALL(mkdirat, AT_FDCWD, "e.dat", 0); CALL(mkdirat, AT_FDCWD, "missing/x", 0); CALL(unlinkat, AT_FDCWD, "missing", 0); CALL(unlinkat, AT_FDCWD, ".", 0); CALL(unlinkat, AT_FDCWD, "e.dat", AT_REMOVEDIR); CALL(unlinkat, AT_FDCWD, "e.dat", 1); CALL(renameat2, AT_FDCWD, "missing", AT_FDCWD, "y", 0); CALL(renameat2, AT_FDCWD, "e.dat", AT_FDCWD, "y", 99); CALL(linkat, AT_FDCWD, "missing", AT_FDCWD, "y", 0); CALL(symlinkat, "", AT_FDCWD, "y"); CALL(symlinkat, "a", AT_FDCWD, "e.dat"); CALL(readlinkat, AT_FDCWD, "e.dat", b, 10); CALL(readlinkat, AT_FDCWD, "e.dat", b, 0);
    CALL(fchmodat, AT_FDCWD, "missing", 0); CALL(fchmod, 99, 0); CALL(fchown, 99, 0, 0); CALL(ftruncate, 99, 0L); CALL(ftruncate, fd, -1L); CALL(ftruncate, ends[0], 0L); CALL(truncate, "missing", 0L); CALL(truncate, ".", 0L); CALL(chdir, "missing"); CALL(chdir, "e.dat"); CALL(chdir, BAD); CALL(fchdir, fd); CALL(getcwd, b, 1); CALL(getcwd, BAD, 4096); CALL(getdents64, fd, b, 64); CALL(getdents64, 99, b, 64); CALL(fsync, 99); CALL(fsync, ends[0]); CALL(fallocate, fd, 0, 0L, 0L); CALL(fallocate, fd, 0, -1L, 5L); CALL(statfs, "missing", b); CALL(fstatfs, 99, b); CALL(utimensat, AT_FDCWD, "missing", 0, 0); CALL(sendfile, 99, fd, 0, 1); CALL(sendfile, ends[1], 99, 0, 1);
    CALL(pipe2, BAD, 0); CALL(pipe2, ends, 99); CALL(ioctl, 99, TIOCGWINSZ, b); CALL(ioctl, fd, TIOCGWINSZ, b); CALL(ioctl, ends[0], FIONREAD, BAD); CALL(eventfd2, 0, 99); CALL(epoll_create1, 99); CALL(epoll_ctl, 99, 1, fd, b); CALL(timerfd_create, 99, 0); CALL(timerfd_create, 1, 99); CALL(timerfd_settime, fd, 0, b, 0);
    int ep = epoll_create1(0); struct epoll_event ev = {EPOLLIN}; CALL(epoll_ctl, ep, EPOLL_CTL_ADD, ep, &ev); CALL(epoll_ctl, ep, EPOLL_CTL_ADD, fd, &ev); CALL(epoll_ctl, ep, EPOLL_CTL_DEL, ends[0], &ev); CALL(epoll_ctl, ep, 99, ends[0], &ev); CALL(epoll_ctl, ep, EPOLL_CTL_ADD, ends[0], BAD); CALL(epoll_pwait, ep, b, 0, 0, 0, 8); CALL(epoll_pwait, fd, &ev, 1, 0, 0, 8);
    struct timespec ts = {0, -1}; CALL(ppoll, BAD, 1, 0, 0, 8); CALL(ppoll, 0, 0, &ts, 0, 8); CALL(ppoll, 0, 0, BAD, 0, 8); CALL(ppoll, 0, 1 << 30, 0, 0, 8); CALL(pselect6, -1, 0, 0, 0, 0, 0); CALL(pselect6, 0, 0, 0, 0, &ts, 0); CALL(pselect6, 10, BAD, 0, 0, 0, 0);
    CALL(socket, 99, SOCK_STREAM, 0); CALL(socket, AF_UNIX, 99, 0); CALL(socketpair, AF_UNIX, SOCK_STREAM, 0, BAD); CALL(socketpair, AF_UNIX, SOCK_STREAM, 99, ends); CALL(bind, fd, b, 4); CALL(listen, 99, 1); CALL(accept4, fd, 0, 0, 0); CALL(connect, 99, b, 4); CALL(getsockname, fd, b, b); CALL(shutdown, fd, 2); CALL(sendto, fd, b, 1, 0, 0, 0); CALL(recvfrom, 99, b, 1, 0, 0, 0); CALL(setsockopt, fd, 1, 2, b, 4); CALL(getsockopt, 99, 1, 2, b, b);
    unlink("e.dat"); return 0;
}
