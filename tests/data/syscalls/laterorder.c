/* Errors whose order came with kernels that a machine of tests may not have; the answers beside are
   Linux 6.18's. Sending looks at the peer after the bytes (6.14), attributes of anonymous files
   cannot be changed (6.17), a null path may stand for a descriptor (6.11). */
#include "guest.h"
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>

static char bytes[8], *bad = (char *)8, *beyond = (char *)-4096L;
static struct timespec times[2] = {{1, 2}, {3, 4}};
static struct stat st;

#define FCHMODAT2 452

static void attributes(const char *name, int fd) {
    printf("-- %s\n", name);
    WORKS(fchown(fd, 0, 0));
    WORKS(fchown(fd, -1, -1));
    WORKS(fchown(fd, getuid(), -1));
    WORKS(fchmod(fd, 0600));
    WORKS(fchownat(fd, "", 0, 0, AT_EMPTY_PATH));
    WORKS(fchownat(fd, "", -1, -1, AT_EMPTY_PATH));
    WORKS(syscall(FCHMODAT2, fd, "", 0600, AT_EMPTY_PATH));
    WORKS(syscall(SYS_utimensat, fd, "", times, AT_EMPTY_PATH));
    WORKS(syscall(SYS_utimensat, fd, 0, times, 0));
    WORKS(syscall(SYS_utimensat, fd, 0, times, AT_EMPTY_PATH));
    WORKS(futimens(fd, 0));
    WORKS(syscall(SYS_faccessat2, fd, "", W_OK, AT_EMPTY_PATH));
    WORKS(syscall(SYS_newfstatat, fd, 0, &st, AT_EMPTY_PATH));
    WORKS(syscall(SYS_newfstatat, fd, "", &st, -1));
    TRUE(st.st_uid == getuid());
}

static void sending(void) {
    struct sockaddr_un name = {AF_UNIX, "nowhere"};
    struct sockaddr_in port = {AF_INET, 0};
    int pair[2], dgram = socket(AF_UNIX, SOCK_DGRAM, 0), stream = socket(AF_UNIX, SOCK_STREAM, 0);
    int udp = socket(AF_INET, SOCK_DGRAM, 0), tcp = socket(AF_INET, SOCK_STREAM, 0);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    WORKS(sendto(dgram, bad, 10, 0, 0, 0));
    WORKS(sendto(dgram, bytes, 8, 0, 0, 0));
    WORKS(sendto(dgram, bad, 1 << 20, 0, 0, 0));
    WORKS(sendto(dgram, bytes, 1 << 20, 0, (void *)&name, sizeof name));
    WORKS(sendto(dgram, bytes, -1, 0, (void *)&name, 1));
    WORKS(sendto(dgram, bad, 8, 0, (void *)&name, sizeof name));
    WORKS(sendto(dgram, bad, 8, 0, (void *)&name, 1));
    WORKS(sendto(dgram, beyond, 8, 0, (void *)&name, 1));
    WORKS(sendto(dgram, bad, 8, MSG_OOB, (void *)&name, sizeof name));
    WORKS(sendto(pair[0], bad, 8, 0, (void *)&name, sizeof name));
    WORKS(sendto(pair[0], bad, 8, 0, 0, 0));
    WORKS(sendto(pair[0], bad, 0, 0, 0, 0));
    WORKS(sendto(stream, bad, 8, 0, 0, 0));
    WORKS(sendto(stream, bad, 8, 0, (void *)&name, sizeof name));
    WORKS(sendto(udp, bad, 8, 0, 0, 0));
    WORKS(sendto(udp, bad, 8, 0, (void *)&name, sizeof name));
    WORKS(sendto(udp, bad, 8, 0, (void *)&name, 1));
    WORKS(sendto(udp, bad, 8, 0, (void *)&port, sizeof port));
    WORKS(sendto(udp, bad, 1 << 20, 0, (void *)&name, 1));
    WORKS(sendto(tcp, bad, 8, MSG_NOSIGNAL, 0, 0));
}

static void mapping(void) {
    int event = eventfd(0, 0);
    WORKS(mmap((void *)1, PAGE, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    WORKS(mmap((void *)-1L, PAGE, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    WORKS(mmap((void *)-4096L, PAGE, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    WORKS(mmap(0, PAGE, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 5 << 26, -1, 0));
    WORKS(mmap(0, PAGE, 3, MAP_PRIVATE | MAP_HUGETLB, event, 0));
    WORKS(mmap(0, 0, 3, MAP_PRIVATE, 99, 0));
    WORKS(mmap(0, -1, 3, 4, event, 0));
    WORKS(mmap(0, PAGE, 3, 4, event, -PAGE));
    WORKS(mmap(0, PAGE, 3, MAP_PRIVATE, event, 0));
    WORKS(mremap((void *)-PAGE, PAGE, -1, 0));
}

static void vectors(void) {
    int ends[2], event = eventfd(0, 0), memory = memfd_create("m", 0), epoll = epoll_create1(0);
    int folder = open(".", O_RDONLY | O_DIRECTORY);
    pipe(ends);
    struct iovec none[2] = {{bytes, 0}, {bad, 0}}, far = {beyond, 0}, large[2] = {{bytes, 1L << 62}, {bytes, 1}};
    struct iovec some = {bytes, 8}, negative[2] = {{beyond, 8}, {bytes, -1}};
    WORKS(readv(event, none, 2));
    WORKS(writev(event, none, 2));
    WORKS(writev(ends[1], none, 2));
    WORKS(readv(epoll, bad, 1));
    WORKS(readv(folder, none, 2));
    WORKS(readv(folder, &some, 1));
    WORKS(preadv2(folder, &some, 1, 0, 2));
    WORKS(readv(memory, &far, 1));
    WORKS(readv(memory, large, 2));
    WORKS(readv(memory, negative, 2));
    WORKS(preadv2(memory, &some, 1, ~0UL >> 1, -1));
    WORKS(preadv2(memory, &some, 1, 0, -1));
    WORKS(preadv2(memory, none, 1, 0, -1));
    WORKS(preadv2(99, bad, 1, -5, -1));
    WORKS(pwrite(memory, bad, 1, ~0UL >> 1));
    write(memory, "text", 4);
    WORKS(lseek(memory, ~0UL >> 1, SEEK_CUR));
    WORKS(lseek(memory, ~0UL >> 1, SEEK_END));
    WORKS(sendfile(ends[1], folder, 0, 0));
    WORKS(sendfile(event, folder, 0, 0));
    WORKS(sendfile(event, ends[0], 0, 0));
    WORKS(splice(event, 0, ends[1], 0, 1, 1));
    WORKS(splice(ends[0], 0, event, 0, 1, 2));
    WORKS(splice(folder, 0, ends[1], 0, 1, 0));
    WORKS(splice(ends[0], (void *)bad, memory, 0, 1, 0));
    WORKS(splice(memory, (void *)bad, event, 0, 1, 0));
    WORKS(syscall(SYS_getdents64, folder, bad, -1));
    WORKS(syscall(SYS_timer_create, -1, 0, beyond));
    WORKS(syscall(SYS_timer_create, -5, 0, beyond));
    WORKS(memfd_create(bad, MFD_HUGETLB));
}

int main(void) {
    int ends[2];
    struct rlimit few = {12, 1024};
    struct pollfd none[16];
    pipe(ends);
    attributes("pipe", ends[0]);
    attributes("socket", socket(AF_UNIX, SOCK_STREAM, 0));
    attributes("event", eventfd(0, 0));
    attributes("epoll", epoll_create1(0));
    attributes("timer", timerfd_create(CLOCK_MONOTONIC, 0));
    close_range(3, ~0U, 0);
    sending();
    close_range(3, ~0U, 0);
    mapping();
    vectors();
    close_range(3, ~0U, 0);
    setrlimit(RLIMIT_NOFILE, &few);
    for (int i = 0; i < 16; i++)
        none[i].fd = -1;
    WORKS(poll(none, 16, 0));
    WORKS(poll(none, 12, 0));
    WORKS(poll((void *)beyond, 0, 0));
    return 0;
}
