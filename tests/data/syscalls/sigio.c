/* Signals that tell of input: O_ASYNC, F_SETOWN, F_SETSIG. */
#include "guest.h"
#include <poll.h>
#include <pthread.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

static volatile int count, code, from_thread;
static volatile long band, descriptor;
static void plain(int number) { count++; }
static void detailed(int number, siginfo_t *info, void *context) {
    count++;
    code = info->si_code;
    band = info->si_band;
    descriptor = info->si_fd;
    from_thread = syscall(SYS_gettid) != getpid();
}
static void tell(const char *what) {
    printf("%s: %d signals\n", what, count);
    count = 0;
}
static void tell_all(const char *what) {
    printf("%s: %d signals, code %d band %lx fd %ld\n", what, count, code, band, descriptor);
    count = code = band = descriptor = 0;
}

static void commands(int fd) {
    struct f_owner_ex owner = {9, 9};
    SHOW(fcntl(fd, F_GETOWN));
    SHOW(fcntl(fd, F_GETOWN_EX, &owner));
    printf("%d %d\n", owner.type, owner.pid);
    SHOW(fcntl(fd, F_SETOWN, 99999));
    SHOW(fcntl(fd, F_SETOWN, -99999));
    SHOW(fcntl(fd, F_SETOWN, (int)0x80000000));
    SHOW(fcntl(fd, F_SETOWN, getpid()));
    TRUE(fcntl(fd, F_GETOWN) == getpid());
    SHOW(fcntl(fd, F_GETOWN_EX, &owner));
    TRUE(owner.type == F_OWNER_PID && owner.pid == getpid());
    SHOW(fcntl(fd, F_SETOWN, -getpgrp()));
    SHOW(fcntl(fd, F_GETOWN_EX, &owner));
    TRUE(owner.type == F_OWNER_PGRP && owner.pid == getpgrp());
    owner.type = F_OWNER_TID;
    owner.pid = getpid();
    SHOW(fcntl(fd, F_SETOWN_EX, &owner));
    TRUE(fcntl(fd, F_GETOWN) == getpid());
    owner.type = 7;
    SHOW(fcntl(fd, F_SETOWN_EX, &owner));
    owner.type = F_OWNER_PID;
    owner.pid = 99999;
    SHOW(fcntl(fd, F_SETOWN_EX, &owner));
    SHOW(fcntl(fd, F_SETOWN_EX, (void *)8));
    SHOW(fcntl(fd, F_SETSIG, 65));
    SHOW(fcntl(fd, F_SETSIG, -1));
    SHOW(fcntl(fd, F_SETSIG, SIGRTMIN));
    SHOW(fcntl(fd, F_GETSIG) == SIGRTMIN);
    SHOW(fcntl(fd, F_SETSIG, 0));
    SHOW(fcntl(fd, F_GETSIG));
    SHOW(fcntl(fd, F_SETOWN, 0));
    SHOW(fcntl(fd, F_GETOWN));
    pid_t pid = fork();
    if (!pid) _exit(0);
    SHOW(fcntl(fd, F_SETOWN, pid));
    waitpid(pid, 0, 0);
    SHOW(fcntl(fd, F_GETOWN));
    SHOW(fcntl(fd, 99));
}

static void pipes(void) {
    int ends[2];
    char text[64];
    pipe(ends);
    write(ends[1], "1", 1);
    tell("not set");
    SHOW(fcntl(ends[0], F_SETFL, O_ASYNC));
    write(ends[1], "2", 1);
    tell("no owner");
    SHOW(fcntl(ends[0], F_SETOWN, getpid()));
    SHOW((fcntl(ends[0], F_GETFL) & O_ASYNC) != 0);
    write(ends[1], "3", 1);
    tell("a write");
    write(ends[1], "4", 1), write(ends[1], "5", 1);
    tell("two writes");
    read(ends[0], text, 2);
    tell("a read");
    int copy = dup(ends[0]);
    write(ends[1], "6", 1);
    tell("duplicated");
    close(ends[0]);
    write(ends[1], "7", 1);
    tell("one closed");
    SHOW(fcntl(copy, F_SETSIG, SIGRTMIN + 1));
    write(ends[1], "8", 1);
    tell_all("with a siginfo");
    SHOW(fcntl(copy, F_SETSIG, SIGIO));
    write(ends[1], "8", 1);
    tell("SIGIO with a siginfo");
    SHOW(fcntl(copy, F_SETFL, 0));
    write(ends[1], "9", 1);
    tell("cleared");
    int on = 1;
    SHOW(ioctl(copy, FIOASYNC, &on));
    write(ends[1], "9", 1);
    tell("set by ioctl");
    SHOW(fcntl(ends[1], F_SETOWN, getpid()));
    SHOW(fcntl(ends[1], F_SETFL, O_ASYNC));
    read(copy, text, 1);
    tell("room to write");
    close(ends[1]);
    tell("hung up");
    close(copy);
    tell("all closed");
}

static void sockets(void) {
    int ends[2];
    char text[64];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    SHOW(fcntl(ends[0], F_SETOWN, getpid()));
    SHOW(fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK));
    write(ends[1], "1", 1);
    tell("a message");
    read(ends[0], text, 1);
    tell("read");
    SHOW(fcntl(ends[0], F_SETSIG, SIGRTMIN + 1));
    write(ends[1], "1", 1);
    tell_all("with a siginfo");
    close(ends[0]), close(ends[1]);
    count = 0;
}

static void others(void) {
    int on = 1, fds[] = {eventfd(0, 0), timerfd_create(CLOCK_MONOTONIC, 0), open("/dev/null", O_RDWR),
                         open("/proc/self/stat", O_RDONLY)};
    for (unsigned n = 0; n < sizeof fds / sizeof *fds; n++) {
        SHOW(ioctl(fds[n], FIOASYNC, &on));
        SHOW(fcntl(fds[n], F_SETOWN, getpid()));
        SHOW(fcntl(fds[n], F_SETFL, O_ASYNC));
        SHOW((fcntl(fds[n], F_GETFL) & O_ASYNC) != 0);
        close(fds[n]);
    }
    tell("others");
}

/* A process that sleeps until its pipe is written to, and a group. */
static void processes(void) {
    int ends[2], ready[2];
    char byte;
    pipe(ends), pipe(ready);
    for (int n = 0; n < 2; n++) {
        pid_t pid = fork();
        if (!pid) {
            sigset_t set, old;
            sigemptyset(&set);
            sigaddset(&set, SIGIO);
            sigprocmask(SIG_BLOCK, &set, &old);
            if (n) setpgid(0, 0);
            fcntl(ends[0], F_SETOWN, n ? -getpid() : getpid());
            fcntl(ends[0], F_SETFL, O_ASYNC);
            write(ready[1], "r", 1);
            while (!count) sigsuspend(&old);
            _exit(40 + count);
        }
        read(ready[0], &byte, 1);
        write(ends[1], "x", 1);
        int status;
        waitpid(pid, &status, 0);
        printf("child %d\n", WEXITSTATUS(status));
    }
    tell("parent");
    close(ends[0]), close(ends[1]), close(ready[0]), close(ready[1]);
}

static int thread_ends[2];
static volatile int tid;
static void *thread(void *unused) {
    tid = syscall(SYS_gettid);
    while (!count) poll(0, 0, 1);
    return 0;
}
static void threads(void) {
    pthread_t made;
    pipe(thread_ends);
    count = 0;
    pthread_create(&made, 0, thread, 0);
    while (!tid) poll(0, 0, 1);
    struct f_owner_ex owner = {F_OWNER_TID, tid};
    SHOW(fcntl(thread_ends[0], F_SETOWN_EX, &owner));
    SHOW(fcntl(thread_ends[0], F_SETSIG, SIGRTMIN + 1));
    SHOW(fcntl(thread_ends[0], F_SETFL, O_ASYNC));
    write(thread_ends[1], "x", 1);
    pthread_join(made, 0);
    TRUE(from_thread);
    count = 0;
    owner.pid = getpid(); /* nobody's thread any more is ESRCH */
    SHOW(fcntl(thread_ends[0], F_SETOWN_EX, &owner));
    owner.pid = tid;
    while (!syscall(SYS_tgkill, getpid(), tid, 0)) poll(0, 0, 1); /* it is joined a little before */
    SHOW(fcntl(thread_ends[0], F_SETOWN_EX, &owner));
}

int main(void) {
    struct sigaction action = {.sa_handler = plain}, more = {.sa_sigaction = detailed};
    int ends[2];
    more.sa_flags = SA_SIGINFO;
    sigaction(SIGIO, &action, 0);
    sigaction(SIGRTMIN + 1, &more, 0);
    pipe(ends);
    commands(ends[0]);
    pipes();
    sockets();
    others();
    processes();
    threads();
    return 0;
}
