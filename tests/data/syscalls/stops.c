/* Stopped and continued processes, and who hears of it. */
#include "guest.h"
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/socket.h>
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

static void status_of(const char *what, int status) {
    if (WIFEXITED(status)) printf("%s: exited %d\n", what, WEXITSTATUS(status));
    else if (WIFSIGNALED(status)) printf("%s: killed by %d\n", what, WTERMSIG(status));
    else if (WIFSTOPPED(status)) printf("%s: stopped by %d\n", what, WSTOPSIG(status));
    else if (WIFCONTINUED(status)) printf("%s: continued\n", what);
    else printf("%s: %x\n", what, status);
    fflush(stdout);
}

static volatile int heard, last_code, last_status;
static void on_child(int number, siginfo_t *info, void *context) {
    heard++;
    last_code = info->si_code;
    last_status = info->si_status;
}
static void listen_for(int flags) {
    struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART | flags};
    sigaction(SIGCHLD, &action, 0);
}

static int ends[2], other[2], gate[2];
/* A child that has gone on is there until its parent has seen that. */
static void leave(int code) {
    char byte;
    while (read(gate[0], &byte, 1) != 1) {}
    _exit(code);
}
static void sleep_on(void) { for (;;) pause(); }
static void spin(void) { for (;;) getpid(); }
static void stop_self(void) {
    raise(SIGSTOP);
    leave(4);
}
static void stop_in_group(void) {
    setpgid(0, 0);
    raise(SIGTSTP);
    raise(SIGTTIN);
    raise(SIGTTOU);
    _exit(5);
}
static void copy_byte(void) {
    char byte;
    long got = read(ends[0], &byte, 1);
    leave(got == 1 ? byte : 99);
}
static void doze(void) {
    struct timespec time = {0, 50000000}, left = {7, 7};
    int result = nanosleep(&time, &left);
    leave(result ? 1 : 0);
}
static void poll_it(void) {
    struct pollfd entry = {ends[0], POLLIN};
    int result = poll(&entry, 1, 5000);
    leave(result < 0 ? errno : 100 + result);
}
static volatile int was_continued;
static void on_continue(int number) { was_continued++; }
static void handles_continue(void) {
    signal(SIGCONT, on_continue);
    raise(SIGSTOP);
    leave(was_continued);
}
static void blocks_continue(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCONT);
    sigprocmask(SIG_BLOCK, &set, 0);
    raise(SIGSTOP);
    sigpending(&set);
    leave(sigismember(&set, SIGCONT) ? 8 : 9);
}
static void wait_interrupted(void) {
    struct sigaction action = {.sa_handler = on_continue};
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGCONT);
    sigaction(SIGCONT, &action, 0);
    sigprocmask(SIG_BLOCK, &set, &before);
    write(other[1], "r", 1);
    struct pollfd entry = {ends[0], POLLIN};
    int result = ppoll(&entry, 1, 0, &before);
    leave(result < 0 ? errno : 100);
}
static void handles_tstp(void) {
    signal(SIGTSTP, on_continue);
    raise(SIGTSTP);
    _exit(was_continued + 10);
}
static void ignores_tstp(void) {
    signal(SIGTSTP, SIG_IGN);
    raise(SIGTSTP);
    _exit(21);
}
static void undone(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    sigaddset(&set, SIGCONT);
    sigaddset(&set, SIGTTOU);
    sigprocmask(SIG_BLOCK, &set, 0);
    raise(SIGTSTP);
    raise(SIGTTOU);
    raise(SIGCONT);
    sigpending(&set);
    int found = sigismember(&set, SIGTSTP) + 2 * sigismember(&set, SIGCONT) + 4 * sigismember(&set, SIGTTOU);
    raise(SIGTSTP);
    sigpending(&set);
    found += 8 * (sigismember(&set, SIGTSTP) + 2 * sigismember(&set, SIGCONT));
    _exit(found);
}

static void *turn(void *argument) { for (;;) ++*(volatile long *)argument; }
static volatile long *counts;
static void threaded(void) {
    pthread_t one;
    pthread_create(&one, 0, turn, (void *)&counts[0]);
    turn((void *)&counts[1]);
}

static void stop_and_wait(const char *what, pid_t pid, int number) {
    int status = 0;
    printf("-- %s\n", what);
    TRUE(kill(pid, number) == 0);
    TRUE(waitpid(pid, &status, WUNTRACED) == pid);
    status_of(what, status);
    SHOW(waitpid(pid, &status, WUNTRACED | WNOHANG));
}
static void go_on(pid_t pid) {
    int status = 0;
    TRUE(kill(pid, SIGCONT) == 0);
    TRUE(waitpid(pid, &status, WCONTINUED) == pid);
    status_of("go on", status);
    SHOW(waitpid(pid, &status, WCONTINUED | WNOHANG));
}
static void gone_on(pid_t pid) {
    go_on(pid);
    write(gate[1], "x", 1);
}
static void end(const char *what, pid_t pid) {
    int status = 0;
    TRUE(waitpid(pid, &status, 0) == pid);
    status_of(what, status);
}

static void ids(const siginfo_t *info, pid_t pid) {
    printf("signo %d code %d status %d\n", info->si_signo, info->si_code, info->si_status);
    TRUE(info->si_pid == pid && info->si_uid == getuid());
}

static void waits(void) {
    int status;
    siginfo_t info;
    pid_t pid = child(spin);
    stop_and_wait("spin", pid, SIGSTOP);
    SHOW(waitpid(pid, &status, WNOHANG));
    SHOW(waitpid(pid, &status, WNOHANG | WCONTINUED));
    go_on(pid);
    TRUE(kill(pid, SIGSTOP) == 0);
    memset(&info, 0, sizeof info);
    SHOW(waitid(P_PID, pid, &info, WSTOPPED | WNOWAIT));
    ids(&info, pid);
    SHOW(waitid(P_PID, pid, &info, WSTOPPED));
    memset(&info, 0, sizeof info);
    SHOW(waitid(P_PID, pid, &info, WSTOPPED | WNOHANG));
    printf("pid %d\n", info.si_pid);
    SHOW(waitid(P_PID, pid, &info, WEXITED | WNOHANG));
    TRUE(kill(pid, SIGCONT) == 0);
    SHOW(waitid(P_PID, pid, &info, WCONTINUED | WNOWAIT));
    ids(&info, pid);
    SHOW(waitid(P_ALL, 0, &info, WCONTINUED | WSTOPPED | WEXITED));
    ids(&info, pid);
    stop_and_wait("again", pid, SIGSTOP);
    TRUE(kill(pid, SIGCONT) == 0);
    TRUE(kill(pid, SIGSTOP) == 0);
    TRUE(waitpid(pid, &status, WUNTRACED) == pid);
    status_of("stopped anew", status);
    TRUE(kill(pid, SIGTERM) == 0);
    SHOW(waitpid(pid, &status, WUNTRACED | WNOHANG));
    TRUE(kill(pid, SIGCONT) == 0);
    end("terminated when continued", pid);
    pid = child(sleep_on);
    stop_and_wait("pause", pid, SIGSTOP);
    TRUE(kill(pid, SIGKILL) == 0);
    end("killed while stopped", pid);
    pid = child(stop_self);
    TRUE(waitpid(-1, &status, WUNTRACED) == pid);
    status_of("self", status);
    gone_on(pid);
    end("self", pid);
    pid = child(stop_in_group);
    for (int n = 0; n < 3; n++) {
        TRUE(waitpid(pid, &status, WUNTRACED) == pid);
        status_of("group", status);
        TRUE(kill(-pid, SIGCONT) == 0);
    }
    end("group", pid);
}

static void calls(void) {
    pipe(ends);
    pid_t pid = child(copy_byte);
    stop_and_wait("read", pid, SIGSTOP);
    write(ends[1], "\x2a", 1);
    struct pollfd entry = {ends[0], POLLIN};
    SHOW(poll(&entry, 1, 0));
    gone_on(pid);
    end("read", pid);
    pid = child(doze);
    stop_and_wait("nanosleep", pid, SIGSTOP);
    gone_on(pid);
    end("nanosleep", pid);
    pid = child(poll_it);
    stop_and_wait("poll", pid, SIGSTOP);
    gone_on(pid);
    write(ends[1], "\x2a", 1);
    end("poll", pid);
    char byte;
    read(ends[0], &byte, 1);
    pid = child(handles_continue);
    int status;
    TRUE(waitpid(pid, &status, WUNTRACED) == pid);
    gone_on(pid);
    end("handles SIGCONT", pid);
    pid = child(blocks_continue);
    TRUE(waitpid(pid, &status, WUNTRACED) == pid);
    gone_on(pid);
    end("blocks SIGCONT", pid);
    pid = child(wait_interrupted);
    read(other[0], &byte, 1);
    stop_and_wait("wait with a handler", pid, SIGSTOP);
    gone_on(pid);
    end("wait with a handler", pid);
    pid = child(handles_tstp);
    end("handles SIGTSTP", pid);
    pid = child(ignores_tstp);
    end("ignores SIGTSTP", pid);
    pid = child(undone);
    end("undone", pid);
    close(ends[0]);
    close(ends[1]);
}

static void notices(void) {
    static const int flags[] = {0, SA_NOCLDSTOP};
    int status;
    for (int n = 0; n < 2; n++) {
        listen_for(flags[n]);
        heard = last_code = last_status = 0;
        pid_t pid = child(spin);
        TRUE(kill(pid, SIGSTOP) == 0);
        TRUE(waitpid(pid, &status, WUNTRACED) == pid);
        printf("heard %d code %d status %d\n", heard, last_code, last_status);
        TRUE(kill(pid, SIGCONT) == 0);
        TRUE(waitpid(pid, &status, WCONTINUED) == pid);
        while (!n && last_code != CLD_CONTINUED) usleep(1000); /* the child itself tells it */
        printf("heard %d code %d status %d\n", heard, last_code, last_status);
        TRUE(kill(pid, SIGKILL) == 0);
        TRUE(waitpid(pid, &status, 0) == pid);
        printf("heard %d code %d status %d\n", heard, last_code, last_status);
    }
    signal(SIGCHLD, SIG_DFL);
}

static void threads(void) {
    counts = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = child(threaded);
    while (!counts[0] || !counts[1]) usleep(1000);
    stop_and_wait("threads", pid, SIGSTOP);
    long one = counts[0], two = counts[1];
    usleep(20000);
    TRUE(counts[0] == one && counts[1] == two);
    char path[64], text[200];
    sprintf(path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY);
    text[read(fd, text, sizeof text - 1)] = 0;
    close(fd);
    printf("state %c\n", strrchr(text, ')')[2]);
    go_on(pid);
    while (counts[0] == one || counts[1] == two) usleep(1000);
    TRUE(kill(pid, SIGKILL) == 0);
    end("threads", pid);
}

/* An orphaned group that is stopped hangs up; in one, only SIGSTOP stops. */
static volatile sig_atomic_t hung, continued;
static void on_hang(int number) { hung++; }
static void on_cont(int number) { continued++; }
static void grandchild(void) {
    signal(SIGHUP, on_hang);
    signal(SIGCONT, on_cont);
    setpgid(0, 0);
    char byte = 'r';
    write(ends[1], &byte, 1);
    raise(SIGTSTP);
    sigset_t none;
    sigemptyset(&none);
    int given = other[1];
    while (!hung || !continued) usleep(1000);
    raise(SIGTSTP); /* it does not stop any more */
    raise(SIGTTIN);
    byte = hung == 1 && continued == 1 ? 'y' : 'n';
    write(given, &byte, 1);
    _exit(0);
}
static void middle(void) {
    pid_t pid = child(grandchild);
    int status;
    waitpid(pid, &status, WUNTRACED);
    _exit(WIFSTOPPED(status) ? WSTOPSIG(status) : 1);
}
static void orphans(void) {
    pipe(ends);
    pid_t pid = child(middle);
    char byte;
    SHOW(read(ends[0], &byte, 1));
    end("middle", pid);
    SHOW(read(other[0], &byte, 1));
    printf("%c\n", byte);
}

/* Calls that wait when their process is stopped and continued: some end, most go on. */
static int fds[2], sems, queue;
static const struct timespec long_time = {100, 0};
static long by_read(void) { char byte; return read(fds[0], &byte, 1); }
static long by_poll(void) { struct pollfd in = {fds[0], POLLIN, 0}; return poll(&in, 1, -1); }
static long by_timed_poll(void) { struct pollfd in = {fds[0], POLLIN, 0}; return poll(&in, 1, 100000); }
static long by_select(void) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fds[0], &set);
    return select(fds[0] + 1, &set, 0, 0, 0);
}
static long by_epoll(int timeout, sigset_t *mask) {
    int fd = epoll_create1(0);
    struct epoll_event event = {EPOLLIN};
    epoll_ctl(fd, EPOLL_CTL_ADD, fds[0], &event);
    return epoll_pwait(fd, &event, 1, timeout, mask);
}
static long by_epoll_wait(void) { return by_epoll(-1, 0); }
static long by_timed_epoll(void) { return by_epoll(100000, 0); }
static long by_masked_epoll(void) {
    sigset_t set;
    sigfillset(&set);
    return by_epoll(-1, &set);
}
static long by_semop(void) { struct sembuf less = {0, -1, 0}; return semop(sems, &less, 1); }
static long by_semtimedop(void) {
    struct sembuf less = {0, -1, 0};
    return semtimedop(sems, &less, 1, &long_time);
}
static long by_sigwaitinfo(void) {
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, 0);
    return sigwaitinfo(&set, 0);
}
static long by_sigtimedwait(void) {
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, 0);
    return sigtimedwait(&set, 0, &long_time);
}
static long by_sigsuspend(void) { sigset_t set; sigemptyset(&set); return sigsuspend(&set); }
static long by_pause(void) { return pause(); }
static long by_msgrcv(void) { long message[4]; return msgrcv(queue, message, 8, 1, 0); }
static long by_nanosleep(void) { return nanosleep(&long_time, 0); }
static long by_futex(void) {
    static int word;
    return syscall(SYS_futex, &word, 0, 0, 0, 0, 0);
}
static long by_timed_futex(void) {
    static int word;
    return syscall(SYS_futex, &word, 0, 0, &long_time, 0, 0);
}
static long by_wait(void) {
    if (!fork()) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
    }
    return wait(0);
}
static long by_lock(void) {
    struct flock all = {.l_type = F_WRLCK};
    return fcntl(open("stopped", O_RDWR), F_SETLKW, &all);
}
static long by_flock(void) { return flock(open("stopped", O_RDWR), LOCK_EX); }
static long by_fifo(void) { return open("fifo", O_RDONLY); }
static long by_eventfd(void) { long value; return read(eventfd(0, 0), &value, 8); }
static long by_timerfd(void) { long value; return read(timerfd_create(CLOCK_MONOTONIC, 0), &value, 8); }
static long by_socket(void) {
    int pair[2];
    char byte;
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    return recv(pair[0], &byte, 1, 0);
}

static void every_call(void) {
    static const struct { const char *name; long (*call)(void); } all[] = {
        {"read", by_read}, {"poll", by_poll}, {"poll in time", by_timed_poll},
        {"select", by_select}, {"epoll_wait", by_epoll_wait}, {"epoll_wait in time", by_timed_epoll},
        {"epoll_pwait", by_masked_epoll}, {"semop", by_semop}, {"semtimedop", by_semtimedop},
        {"sigwaitinfo", by_sigwaitinfo}, {"sigtimedwait", by_sigtimedwait}, {"sigsuspend", by_sigsuspend},
        {"pause", by_pause}, {"msgrcv", by_msgrcv}, {"nanosleep", by_nanosleep}, {"futex", by_futex},
        {"futex in time", by_timed_futex}, {"wait", by_wait}, {"fcntl", by_lock}, {"flock", by_flock},
        {"fifo", by_fifo}, {"eventfd", by_eventfd}, {"timerfd", by_timerfd},
        {"recv", by_socket}};
    enum { COUNT = sizeof all / sizeof *all };
    pid_t pids[COUNT];
    int told[2], status;
    struct flock whole = {.l_type = F_WRLCK};
    struct { int which, code; } result;
    int answers[COUNT];
    pipe(fds), pipe(told);
    sems = semget(IPC_PRIVATE, 1, 0600);
    queue = msgget(IPC_PRIVATE, 0600);
    mkfifo("fifo", 0600);
    int fd = open("stopped", O_RDWR | O_CREAT, 0600);
    fcntl(fd, F_SETLK, &whole), flock(fd, LOCK_EX);
    fflush(stdout);
    for (int i = 0; i < COUNT; i++) {
        answers[i] = -1;
        if (!(pids[i] = fork())) {
            setpgid(0, 0);
            signal(SIGCHLD, SIG_DFL);
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            long done = all[i].call();
            result.which = i, result.code = done < 0 ? errno : 0;
            write(told[1], &result, sizeof result);
            _exit(0);
        }
    }
    usleep(60000);
    for (int i = 0; i < COUNT; i++)
        kill(pids[i], SIGSTOP), waitpid(pids[i], &status, WUNTRACED);
    for (int i = 0; i < COUNT; i++) kill(pids[i], SIGCONT);
    struct pollfd in = {told[0], POLLIN, 0};
    while (poll(&in, 1, 60) > 0 && read(told[0], &result, sizeof result) == sizeof result)
        answers[result.which] = result.code;
    for (int i = 0; i < COUNT; i++) {
        printf("%s: %s\n", all[i].name, answers[i] < 0 ? "goes on" : strerrorname_np(answers[i]));
        kill(pids[i], SIGKILL), waitpid(pids[i], 0, 0);
    }
    semctl(sems, 0, IPC_RMID), msgctl(queue, IPC_RMID, 0);
    unlink("fifo"), unlink("stopped");
}

int main(void) {
    setsid(); /* whoever inherits its children is outside */
    pipe(gate);
    pipe(other);
    waits();
    calls();
    notices();
    threads();
    orphans();
    every_call();
    return 0;
}
