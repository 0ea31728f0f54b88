/* Signals and processes as files: signalfd, pidfd, CLONE_PIDFD, waitid(P_PIDFD). */
#include "guest.h"
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

static pid_t child(void (*body)(void)) {
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        body();
        _exit(0);
    }
    return pid;
}
static void leave_3(void) { _exit(3); }
static void sleep_on(void) { pause(); }

static int ready(int fd) {
    struct pollfd entry = {fd, POLLIN | POLLOUT | POLLPRI};
    return poll(&entry, 1, 0) < 0 ? -1 : entry.revents;
}

#define BIT(n) (1ULL << ((n) - 1))

static void records(const char *what, int fd) {
    struct signalfd_siginfo list[4];
    memset(list, 7, sizeof list);
    errno = 0;
    long got = read(fd, list, sizeof list);
    show(what, got);
    for (int n = 0; n < got / 128; n++) {
        struct signalfd_siginfo *r = list + n;
        printf("  signo %d errno %d code %d pid %d uid %d fd %d tid %d band %d overrun %d\n",
               r->ssi_signo, r->ssi_errno, r->ssi_code,
               r->ssi_pid == getpid() ? 1 : r->ssi_pid == 0 ? 0 : 2,
               r->ssi_uid == getuid() ? 1 : r->ssi_uid == 0 ? 0 : 2, r->ssi_fd, r->ssi_tid,
               r->ssi_band, r->ssi_overrun);
        printf("  trapno %d status %d int %d ptr %llx addr %llx lsb %d\n", r->ssi_trapno,
               r->ssi_status, r->ssi_int, (long long)r->ssi_ptr, (long long)r->ssi_addr,
               r->ssi_addr_lsb);
    }
    fflush(stdout);
}

static int make(int fd, uint64_t mask, int size, int flags) {
    return syscall(SYS_signalfd4, fd, &mask, size, flags);
}

static int shared;
static void read_own(void) {
    records("child", shared);
    raise(SIGUSR1);
    records("child after raise", shared);
}
static void read_later(void) {
    struct signalfd_siginfo record;
    while (read(shared, &record, 128) != 128) {}
    _exit(record.ssi_signo);
}

static void signals(void) {
    SHOW(make(-1, BIT(SIGUSR1), 4, 0));
    SHOW(make(-1, BIT(SIGUSR1), 16, 0));
    SHOW(syscall(SYS_signalfd4, -1, 8, 8, 0));
    SHOW(make(-1, BIT(SIGUSR1), 8, 1));
    SHOW(make(99, BIT(SIGUSR1), 8, 0));
    SHOW(make(0, BIT(SIGUSR1), 8, 0));
    SHOW(make(-2, BIT(SIGUSR1), 8, 0));
    uint64_t wanted = BIT(SIGUSR1) | BIT(SIGUSR2) | BIT(SIGRTMIN) | BIT(SIGCHLD) | BIT(SIGALRM);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, 0);
    int fd = make(-1, wanted | BIT(SIGKILL) | BIT(SIGSTOP), 8, SFD_CLOEXEC | SFD_NONBLOCK);
    SHOW(fd);
    SHOW(fcntl(fd, F_GETFD));
    SHOW(fcntl(fd, F_GETFL) & 07777);
    char path[64], text[400], *line;
    sprintf(path, "/proc/self/fdinfo/%d", fd);
    int info = open(path, O_RDONLY);
    text[read(info, text, sizeof text - 1)] = 0;
    close(info);
    line = strstr(text, "sigmask");
    printf("%s", line ? line : "none\n");
    sprintf(path, "/proc/self/fd/%d", fd);
    text[readlink(path, text, 99)] = 0;
    puts(text);
    SHOW(ready(fd));
    records("nothing", fd);
    char small[127];
    SHOW(read(fd, small, 127));
    SHOW(write(fd, small, 127));
    SHOW(lseek(fd, 0, 0));
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR1);
    union sigval value = {.sival_int = 42};
    sigqueue(getpid(), SIGRTMIN, value);
    value.sival_int = -43;
    sigqueue(getpid(), SIGRTMIN, value);
    kill(getpid(), SIGTERM);
    SHOW(ready(fd));
    records("four", fd);
    SHOW(ready(fd));
    raise(SIGUSR2);
    kill(getpid(), SIGUSR1);
    records("own ones first", fd);
    int epoll = epoll_create1(0);
    struct epoll_event event = {EPOLLIN, {.u32 = 5}}, got = {0};
    SHOW(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
    SHOW(epoll_wait(epoll, &got, 1, 0));
    raise(SIGUSR2);
    SHOW(epoll_wait(epoll, &got, 1, 0));
    printf("events %x data %d\n", got.events, got.data.u32);
    records("epoll", fd);
    SHOW(epoll_wait(epoll, &got, 1, 0));
    pid_t pid = child(leave_3);
    struct pollfd entry = {fd, POLLIN};
    SHOW(poll(&entry, 1, 5000));
    records("child", fd);
    TRUE(waitpid(pid, 0, 0) == pid);
    SHOW(make(fd, BIT(SIGTERM), 8, 0) == fd);
    SHOW(ready(fd));
    records("other mask", fd);
    SHOW(make(fd, wanted, 8, SFD_CLOEXEC) == fd);
    struct itimerval soon = {{0, 0}, {0, 1000}};
    fcntl(fd, F_SETFL, 0);
    setitimer(ITIMER_REAL, &soon, 0);
    records("alarm", fd);
    timer_t timer;
    struct sigevent notice = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
    notice.sigev_value.sival_int = 77;
    SHOW(timer_create(CLOCK_MONOTONIC, &notice, &timer));
    struct itimerspec once = {{0, 0}, {0, 1000}};
    timer_settime(timer, 0, &once, 0);
    records("timer", fd);
    timer_delete(timer);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    kill(getpid(), SIGUSR2);
    shared = fd;
    pid = child(read_own);
    TRUE(waitpid(pid, 0, 0) == pid);
    records("parent", fd);
    fcntl(fd, F_SETFL, 0);
    int status;
    pid = child(read_later);
    kill(pid, SIGUSR1);
    TRUE(waitpid(pid, &status, 0) == pid);
    printf("status %x\n", status);
    int again = dup(fd);
    close(fd);
    records("dup", again);
    close(again);
    close(epoll);
    SHOW(sigpending(&all));
    for (int n = 1; n < 65; n++)
        if (sigismember(&all, n)) printf("pending %d\n", n);
    sigemptyset(&all);
    sigprocmask(SIG_SETMASK, &all, 0);
}

static int opened(pid_t pid, int flags) { return syscall(SYS_pidfd_open, pid, flags); }
static int sent(int fd, int number, siginfo_t *info, int flags) {
    return syscall(SYS_pidfd_send_signal, fd, number, info, flags);
}
static int taken(int fd, int other, int flags) {
    return syscall(SYS_pidfd_getfd, fd, other, flags);
}

static void pid_line(const char *what, int fd, pid_t pid) {
    char path[64], text[400], *line;
    sprintf(path, "/proc/self/fdinfo/%d", fd);
    int info = open(path, O_RDONLY);
    text[read(info, text, sizeof text - 1)] = 0;
    close(info);
    line = strstr(text, "Pid:");
    printf("%s: %s\n", what, !line ? "none" : atoi(line + 4) == pid ? "right" : line);
}

static int ends[2], tid_of_thread;
static void *wait_for_byte(void *argument) {
    char byte;
    tid_of_thread = gettid();
    read(ends[0], &byte, 1);
    return 0;
}
static volatile int heard, code_heard, value_heard, tid_heard;
static void hear(int number, siginfo_t *info, void *context) {
    heard++;
    code_heard = info->si_code;
    value_heard = info->si_code == SI_QUEUE ? info->si_value.sival_int : 0;
    tid_heard = gettid();
}

static void pidfds(void) {
    SHOW(opened(0, 0));
    SHOW(opened(-1, 0));
    SHOW(opened(999999, 0));
    SHOW(opened(getpid(), 1));
    int self = opened(getpid(), 0);
    SHOW(self);
    SHOW(fcntl(self, F_GETFD));
    SHOW(fcntl(self, F_GETFL) & 07777);
    pid_line("self", self, getpid());
    char buffer[8];
    SHOW(read(self, buffer, 8));
    SHOW(write(self, buffer, 8));
    SHOW(ready(self));
    SHOW(sent(self, 0, 0, 0));
    SHOW(sent(self, 65, 0, 0));
    SHOW(sent(self, -1, 0, 0));
    SHOW(sent(self, 0, 0, 3));
    SHOW(sent(self, 0, 0, 8));
    SHOW(sent(0, 0, 0, 0));
    SHOW(sent(99, 0, 0, 0));
    SHOW(sent(-1, 0, 0, 0));
    SHOW(sent(self, 0, (void *)8, 0));
    struct sigaction action = {.sa_sigaction = hear, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, 0);
    SHOW(sent(self, SIGUSR1, 0, 0));
    printf("heard %d code %d\n", heard, code_heard);
    siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
    info.si_value.sival_int = 11;
    SHOW(sent(self, SIGUSR1, &info, 0));
    printf("heard %d code %d value %d\n", heard, code_heard, value_heard);
    SHOW(sent(self, SIGUSR2, &info, 0));
    info.si_code = SI_USER;
    SHOW(sent(self, SIGUSR1, &info, 0));
    printf("heard %d code %d\n", heard, code_heard);
    SHOW(taken(self, ends[0], 0) > 0);
    SHOW(taken(self, 0, 1));
    SHOW(taken(self, 900, 0));
    SHOW(taken(0, 0, 0));
    SHOW(taken(900, 0, 0));

    pipe(ends);
    pthread_t thread;
    pthread_create(&thread, 0, wait_for_byte, 0);
    while (!*(volatile int *)&tid_of_thread) usleep(100);
    SHOW(opened(tid_of_thread, 0));
    int of_thread = opened(tid_of_thread, O_EXCL);
    TRUE(of_thread > 0);
    pid_line("thread", of_thread, tid_of_thread);
    SHOW(ready(of_thread));
    SHOW(sent(of_thread, 0, 0, 0));
    SHOW(sent(of_thread, SIGUSR1, 0, 0));
    while (heard < 4) usleep(100);
    printf("code %d\n", code_heard);
    TRUE(tid_heard == tid_of_thread);
    write(ends[1], "x", 1);
    write(ends[1], "x", 1);
    pthread_join(thread, 0);
    struct pollfd over = {of_thread, POLLIN};
    SHOW(poll(&over, 1, 5000));
    while (sent(of_thread, 0, 0, 0) == 0) usleep(100);
    SHOW(sent(of_thread, 0, 0, 0));
    close(of_thread);

    pid_t pid = child(sleep_on);
    int fd = opened(pid, O_NONBLOCK);
    SHOW(fcntl(fd, F_GETFL) & 07777);
    SHOW(ready(fd));
    siginfo_t what;
    memset(&what, 0, sizeof what);
    SHOW(waitid(P_PIDFD, fd, &what, WEXITED));
    SHOW(waitid(P_PIDFD, fd, &what, WEXITED | WNOHANG));
    printf("pid %d\n", what.si_pid);
    SHOW(waitid(P_PIDFD, 0, &what, WEXITED));
    SHOW(waitid(P_PIDFD, -1, &what, WEXITED));
    SHOW(waitid(P_PIDFD, 900, &what, WEXITED));
    SHOW(waitid(P_PIDFD, self, &what, WEXITED));
    SHOW(taken(fd, 1, 0) > 0);
    SHOW(taken(fd, 900, 0));
    info.si_code = SI_USER;
    SHOW(sent(fd, SIGUSR1, &info, 0));
    info.si_code = SI_TKILL;
    SHOW(sent(fd, SIGUSR1, &info, 0));
    SHOW(sent(fd, SIGTERM, 0, 0));
    struct pollfd entry = {fd, POLLIN};
    SHOW(poll(&entry, 1, 5000));
    printf("revents %x\n", entry.revents);
    SHOW(sent(fd, SIGTERM, 0, 0));
    SHOW(sent(fd, 0, 0, 0));
    SHOW(taken(fd, 1, 0));
    pid_line("zombie", fd, pid);
    SHOW(opened(pid, 0) > 0);
    SHOW(waitid(P_PIDFD, fd, &what, WEXITED | WNOWAIT));
    TRUE(what.si_pid == pid);
    printf("code %d status %d\n", what.si_code, what.si_status);
    SHOW(waitid(P_PIDFD, fd, &what, WEXITED));
    SHOW(waitid(P_PIDFD, fd, &what, WEXITED));
    SHOW(poll(&entry, 1, 0));
    printf("revents %x\n", entry.revents & ~POLLHUP);
    SHOW(sent(fd, 0, 0, 0));
    SHOW(taken(fd, 1, 0));
    SHOW(opened(pid, 0));
    pid_line("reaped", fd, -1);
    close(fd);

    int epoll = epoll_create1(0);
    pid = child(sleep_on);
    fd = opened(pid, 0);
    struct epoll_event event = {EPOLLIN, {.u32 = 9}}, got = {0};
    SHOW(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
    SHOW(epoll_wait(epoll, &got, 1, 0));
    SHOW(kill(pid, SIGKILL));
    SHOW(epoll_wait(epoll, &got, 1, 5000));
    printf("events %x data %d\n", got.events, got.data.u32);
    SHOW(waitid(P_PIDFD, fd, &what, WEXITED));
    close(fd);
    close(epoll);
    setpgid(0, 0);
    pid = child(sleep_on);
    setpgid(pid, pid);
    fd = opened(pid, 0);
    SHOW(sent(self, 0, 0, 4));
    SHOW(sent(fd, 0, 0, 4));
    SHOW(sent(fd, SIGKILL, 0, 4));
    SHOW(waitid(P_PIDFD, fd, &what, WEXITED));
    printf("status %d\n", what.si_status);
    close(fd);
    close(self);
}

static long raw_clone(long flags, int *parent) {
#ifdef __x86_64__
    return syscall(SYS_clone, flags, 0, parent, 0, 0);
#else
    return syscall(SYS_clone, flags, 0, parent, 0, 0);
#endif
}

static void clones(void) {
    int fd = -1, status;
    fflush(stdout);
    SHOW(raw_clone(CLONE_PIDFD | CLONE_PARENT_SETTID | SIGCHLD, &fd));
    SHOW(raw_clone(CLONE_PIDFD | CLONE_DETACHED | SIGCHLD, &fd));
    SHOW(raw_clone(CLONE_PIDFD | SIGCHLD, (int *)8));
    fflush(stdout);
    pid_t pid = raw_clone(CLONE_PIDFD | SIGCHLD, &fd);
    if (!pid) _exit(5);
    TRUE(pid > 0 && fd > 2);
    pid_line("clone", fd, pid);
    SHOW(fcntl(fd, F_GETFD));
    SHOW(fcntl(fd, F_GETFL) & 07777);
    siginfo_t what;
    SHOW(waitid(P_PIDFD, fd, &what, WEXITED));
    printf("status %d\n", what.si_status);
    close(fd);
    int told = 0;
    struct clone_args arguments = {
        .flags = CLONE_PIDFD | CLONE_PARENT_SETTID,
        .pidfd = (uintptr_t)&fd,
        .parent_tid = (uintptr_t)&told,
        .exit_signal = SIGCHLD,
    };
    fd = -1;
    fflush(stdout);
    pid = syscall(SYS_clone3, &arguments, sizeof arguments);
    if (!pid) _exit(6);
    TRUE(pid > 0 && fd > 2 && told == pid);
    pid_line("clone3", fd, pid);
    SHOW(waitid(P_PIDFD, fd, &what, WEXITED));
    printf("status %d\n", what.si_status);
    SHOW(wait(&status));
    close(fd);
    arguments.pidfd = 8;
    SHOW(syscall(SYS_clone3, &arguments, sizeof arguments));
    SHOW(wait(&status));
}

/* A timer that another thread sets, and ends, while somebody waits for it. */
static int timer;
static void *arm(void *unused) {
    struct itimerspec soon = {.it_value = {0, 20000000}};
    usleep(20000);
    timerfd_settime(timer, 0, &soon, 0);
    return 0;
}
static void timers(void) {
    uint64_t count = 0;
    timer = timerfd_create(CLOCK_MONOTONIC, 0);
    int watching = epoll_create1(0);
    struct epoll_event event = {EPOLLIN}, found;
    struct pollfd entry = {timer, POLLIN};
    epoll_ctl(watching, EPOLL_CTL_ADD, timer, &event);
    for (int n = 0; n < 3; n++) {
        pthread_t thread;
        pthread_create(&thread, 0, arm, 0);
        if (n == 1) SHOW(poll(&entry, 1, -1));
        if (n == 2) SHOW(epoll_wait(watching, &found, 1, -1));
        SHOW(read(timer, &count, 8));
        pthread_join(thread, 0);
    }
}

/* EPOLLEXCLUSIVE: with which events, and of what. */
static void exclusive(void) {
    int ends[2], set = epoll_create1(0), other = epoll_create1(0);
    pipe(ends);
    for (int bit = 0; bit < 32; bit++) {
        struct epoll_event event = {.events = EPOLLEXCLUSIVE | 1u << bit};
        printf("bit %d ", bit);
        SHOW(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event));
        SHOW(epoll_ctl(set, EPOLL_CTL_MOD, ends[0], &event));
        event.events = EPOLLIN;
        SHOW(epoll_ctl(set, EPOLL_CTL_MOD, ends[0], &event));
        epoll_ctl(set, EPOLL_CTL_DEL, ends[0], 0);
    }
    struct epoll_event event = {.events = EPOLLEXCLUSIVE | EPOLLIN};
    SHOW(epoll_ctl(set, EPOLL_CTL_ADD, other, &event));
    SHOW(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event));
    SHOW(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event));
    close(ends[0]), close(ends[1]), close(set), close(other);
}

int main(void) {
    exclusive();
    timers();
    signals();
    pidfds();
    clones();
    return 0;
}
