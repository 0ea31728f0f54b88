/* Tracing other threads: who may, where they stop, what is told, how they go on. */
#include "guest.h"
#include <elf.h>
#include <linux/ptrace.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define P(request, pid, address, data) \
    syscall(SYS_ptrace, (long)(request), (long)(pid), (long)(address), (long)(data))
#define OPTION(name) PTRACE_O_##name

static pid_t child(void (*body)(void)) {
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        body();
        _exit(0);
    }
    return pid;
}

static void say_status(const char *what, int status) {
    if (WIFEXITED(status)) printf("%s: exited %d\n", what, WEXITSTATUS(status));
    else if (WIFSIGNALED(status)) printf("%s: killed by %d\n", what, WTERMSIG(status));
    else if (WIFSTOPPED(status))
        printf("%s: stopped by %d event %d\n", what, WSTOPSIG(status), status >> 16);
    else if (WIFCONTINUED(status)) printf("%s: continued\n", what);
    else printf("%s: %x\n", what, status);
    fflush(stdout);
}

/* Waits for one, and tells everything that there is to know of its stop. */
static int look(const char *what, pid_t pid) {
    int status = 0;
    pid_t got;
    do got = waitpid(pid, &status, __WALL);
    while (got < 0 && errno == EINTR);
    if (got != pid) {
        printf("%s: %s\n", what, got < 0 ? strerrorname_np(errno) : "another");
        fflush(stdout);
        return -1;
    }
    say_status(what, status);
    if (WIFSTOPPED(status)) {
        siginfo_t info;
        unsigned long message = 77;
        memset(&info, 0, sizeof info);
        if (P(PTRACE_GETSIGINFO, pid, 0, &info)) printf("  no siginfo: %s\n", strerrorname_np(errno));
        else {
            printf("  signo %d code %#x", info.si_signo, info.si_code);
            if (info.si_code <= 0 || info.si_code >> 8) printf(" own %d", info.si_pid == pid);
            printf("\n");
        }
        if (!P(PTRACE_GETEVENTMSG, pid, 0, &message))
            printf("  message %s\n", message > 2 ? "some" : message ? "1 or 2" : "0");
    }
    fflush(stdout);
    return status;
}

static char state_of(pid_t pid) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY);
    if (fd < 0) return '-';
    long size = read(fd, line, sizeof line - 1);
    close(fd);
    if (size <= 0) return '-';
    line[size] = 0;
    char *end = strrchr(line, ')');
    return end ? end[2] : '?';
}

static int tracer_of(pid_t pid) {
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    int fd = open(path, O_RDONLY);
    long size = read(fd, text, sizeof text - 1);
    close(fd);
    text[size > 0 ? size : 0] = 0;
    char *at = strstr(text, "TracerPid:");
    return at ? atoi(at + 10) : -1;
}

static void until(pid_t pid, char state) {
    while (state_of(pid) != state) sched_yield();
}

/* What wait tells of a child without waiting. */
static void now(const char *what, pid_t pid, int options) {
    int status = 0;
    pid_t got = waitpid(pid, &status, WNOHANG | options);
    if (got == pid) say_status(what, status);
    else printf("%s: %s\n", what, got ? strerrorname_np(errno) : "nothing");
    fflush(stdout);
}

static long words[8] = {0x1111, 0x2222, 0x3333, 0x4444};
static volatile int heard;
static void hears(int number) { heard = number; }

/* -- who may, and with what ---------------------------------------------------------------- */

static void traced_and_stops(void) {
    P(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    _exit(7);
}
static void twice(void) {
    long first = P(PTRACE_TRACEME, 0, 0, 0), second = P(PTRACE_TRACEME, 0, 0, 0);
    _exit(first == 0 && second == -1 && errno == EPERM ? 3 : 4);
}
static void waits(void) { for (;;) pause(); }

static void wrong_uses(void) {
    printf("wrong uses\n");
    siginfo_t info;
    SHOW(P(PTRACE_ATTACH, 0, 0, 0));
    SHOW(P(PTRACE_ATTACH, -1, 0, 0));
    SHOW(P(PTRACE_ATTACH, 99999999, 0, 0));
    SHOW(P(PTRACE_ATTACH, getpid(), 0, 0));
    SHOW(P(PTRACE_SEIZE, getpid(), 0, 0));
    SHOW(P(PTRACE_SEIZE, getpid(), 1, 0));
    SHOW(P(PTRACE_SEIZE, getpid(), 0, 1L << 30));
    SHOW(P(PTRACE_SEIZE, 99999999, 1, 0));
    SHOW(P(PTRACE_CONT, getpid(), 0, 0));
    SHOW(P(PTRACE_CONT, 99999999, 0, 0));
    SHOW(P(12345, getpid(), 0, 0));
    SHOW(P(-1, getpid(), 0, 0));
    pid_t pid = child(twice);
    look("twice", pid);
    pid = child(waits);
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    SHOW(P(PTRACE_DETACH, pid, 0, 0));
    SHOW(P(PTRACE_KILL, pid, 0, 0));
    SHOW(P(PTRACE_PEEKDATA, pid, words, &words[7]));
    SHOW(P(PTRACE_INTERRUPT, pid, 0, 0));
    SHOW(P(PTRACE_SEIZE, pid, 4, 0));
    SHOW(P(PTRACE_SEIZE, pid, 0, 1L << 30));
    SHOW(P(PTRACE_SEIZE, pid, 0, 1L << 21));
    SHOW(P(PTRACE_SEIZE, pid, 0, OPTION(TRACESYSGOOD)));
    SHOW(P(PTRACE_SEIZE, pid, 0, 0));
    SHOW(P(PTRACE_ATTACH, pid, 0, 0));
    TRUE(tracer_of(pid) == getpid());
    /* It runs: only two requests have an answer. */
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    SHOW(P(PTRACE_GETSIGINFO, pid, 0, &info));
    SHOW(P(PTRACE_LISTEN, pid, 0, 0));
    SHOW(P(PTRACE_SETOPTIONS, pid, 0, 0));
    SHOW(P(PTRACE_DETACH, pid, 0, 0));
    now("runs", pid, 0);
    SHOW(P(PTRACE_INTERRUPT, pid, 0, 0));
    look("interrupted", pid);
    SHOW(P(12345, pid, 0, 0));
    TRUE(tracer_of(getpid()) != getpid());
    kill(pid, SIGKILL);
    look("killed", pid);
    SHOW(P(PTRACE_CONT, pid, 0, 0));
}

/* -- the usual way ------------------------------------------------------------------------- */

static void requests(void) {
    printf("requests\n");
    pid_t pid = child(traced_and_stops);
    siginfo_t info;
    unsigned long word, mask;
    char buffer[64];
    struct iovec vector = {buffer, sizeof buffer};
    look("stopped", pid);
    TRUE(state_of(pid) == 't');
    TRUE(tracer_of(pid) == getpid());
    now("again", pid, 0);
    now("again", pid, WUNTRACED);
    SHOW(P(PTRACE_PEEKDATA, pid, words, &word));
    printf("%lx\n", word);
    SHOW(P(PTRACE_PEEKTEXT, pid, (char *)words + 1, &word));
    printf("%lx\n", word);
    SHOW(P(PTRACE_PEEKDATA, pid, 8, &word));
    SHOW(P(PTRACE_PEEKDATA, pid, -8, &word));
    SHOW(P(PTRACE_PEEKDATA, pid, words, 8));
    SHOW(P(PTRACE_POKEDATA, pid, &words[1], 0x5555));
    SHOW(P(PTRACE_PEEKDATA, pid, &words[1], &word));
    printf("%lx %lx\n", word, words[1]);
    SHOW(P(PTRACE_POKEDATA, pid, 8, 1));
    SHOW(P(PTRACE_PEEKTEXT, pid, waits, &word));
    SHOW(P(PTRACE_POKETEXT, pid, waits, word ^ 0xFF));
    TRUE(!memcmp(waits, &word, 8));
    SHOW(P(PTRACE_POKETEXT, pid, waits, word));
    SHOW(P(PTRACE_GETSIGINFO, pid, 0, 8));
    SHOW(P(PTRACE_GETSIGINFO, pid, 0, &info));
    SHOW(P(PTRACE_SETSIGINFO, pid, 0, 8));
    SHOW(P(PTRACE_GETEVENTMSG, pid, 0, 8));
    SHOW(P(PTRACE_GETEVENTMSG, pid, 0, &word));
    SHOW(P(PTRACE_SETOPTIONS, pid, 0, 1L << 30));
    SHOW(P(PTRACE_SETOPTIONS, pid, 0, 1L << 21));
    SHOW(P(PTRACE_SETOPTIONS, pid, 0, 0xFF));
    SHOW(P(PTRACE_SETOPTIONS, pid, 0, OPTION(EXITKILL)));
    SHOW(P(PTRACE_SETOPTIONS, pid, 0, 0));
    SHOW(P(PTRACE_GETSIGMASK, pid, 4, &mask));
    SHOW(P(PTRACE_GETSIGMASK, pid, 8, 8));
    SHOW(P(PTRACE_GETSIGMASK, pid, 8, &mask));
    printf("mask %lx\n", mask);
    mask = -1;
    SHOW(P(PTRACE_SETSIGMASK, pid, 8, &mask));
    SHOW(P(PTRACE_SETSIGMASK, pid, 9, &mask));
    SHOW(P(PTRACE_SETSIGMASK, pid, 8, 8));
    SHOW(P(PTRACE_GETSIGMASK, pid, 8, &mask));
    printf("mask %lx\n", mask);
    SHOW(P(PTRACE_GETREGSET, pid, NT_PRSTATUS, 8));
    SHOW(P(PTRACE_GETREGSET, pid, 0x9999, &vector));
    vector.iov_len = 7;
    SHOW(P(PTRACE_GETREGSET, pid, NT_PRSTATUS, &vector));
    vector.iov_len = 16;
    SHOW(P(PTRACE_GETREGSET, pid, NT_PRSTATUS, &vector));
    printf("%zu\n", vector.iov_len);
    vector.iov_base = (void *)8;
    SHOW(P(PTRACE_GETREGSET, pid, NT_PRSTATUS, &vector));
    SHOW(P(PTRACE_SETREGSET, pid, NT_PRSTATUS, &vector));
    vector.iov_base = malloc(65536), vector.iov_len = 65536;
    SHOW(P(PTRACE_GETREGSET, pid, NT_PRSTATUS, &vector));
    TRUE(vector.iov_len < 1000 && vector.iov_len > 200);
    SHOW(P(PTRACE_SETREGSET, pid, NT_PRSTATUS, &vector));
    struct ptrace_peeksiginfo_args args = {0, 0, 10};
    SHOW(P(PTRACE_PEEKSIGINFO, pid, &args, &info));
    args.nr = -1;
    SHOW(P(PTRACE_PEEKSIGINFO, pid, &args, &info));
    args.nr = 1, args.flags = 2;
    SHOW(P(PTRACE_PEEKSIGINFO, pid, &args, &info));
    SHOW(P(PTRACE_PEEKSIGINFO, pid, 8, &info));
    SHOW(P(PTRACE_CONT, pid, 0, 65));
    SHOW(P(PTRACE_CONT, pid, 0, -1));
    SHOW(P(PTRACE_DETACH, pid, 0, 65));
    SHOW(P(PTRACE_SYSCALL, pid, 0, 1000));
    SHOW(P(PTRACE_INTERRUPT, pid, 0, 0));
    SHOW(P(PTRACE_LISTEN, pid, 0, 0));
    SHOW(P(PTRACE_SEIZE, pid, 0, 0));
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("end", pid);
    SHOW(P(PTRACE_CONT, pid, 0, 0));
}

/* -- signals ------------------------------------------------------------------------------- */

static void signals_itself(void) {
    signal(SIGUSR1, hears);
    signal(SIGUSR2, SIG_IGN);
    P(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGUSR1);
    int first = heard;
    heard = 0;
    raise(SIGUSR2);
    raise(SIGCHLD);
    raise(SIGUSR1);
    int second = heard;
    raise(SIGWINCH);
    raise(SIGTERM);
    _exit(10 * (first != 0) + (second == SIGUSR1));
}

static void injection(void) {
    printf("signals\n");
    pid_t pid = child(signals_itself);
    siginfo_t info;
    look("first", pid);
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("ignored", pid);
    SHOW(P(PTRACE_CONT, pid, 0, SIGUSR2));
    look("ignored", pid);
    SHOW(P(PTRACE_CONT, pid, 0, SIGCHLD));
    look("second", pid);
    SHOW(P(PTRACE_CONT, pid, 0, SIGUSR1));
    look("no effect", pid);
    SHOW(P(PTRACE_CONT, pid, 0, SIGUSR1)); /* another one */
    look("fatal", pid);
    SHOW(P(PTRACE_GETSIGINFO, pid, 0, &info));
    info.si_code = SI_QUEUE;
    SHOW(P(PTRACE_SETSIGINFO, pid, 0, &info));
    SHOW(P(PTRACE_GETSIGINFO, pid, 0, &info));
    printf("code %d\n", info.si_code);
    SHOW(P(PTRACE_CONT, pid, 0, SIGINT));
    look("end", pid);

    pid = child(signals_itself);
    look("first", pid);
    SHOW(P(PTRACE_CONT, pid, 0, SIGKILL));
    look("end", pid);
    pid = child(signals_itself);
    look("first", pid);
    SHOW(P(PTRACE_KILL, pid, 0, 0));
    look("end", pid);
    pid = child(signals_itself);
    look("first", pid);
    SHOW(kill(pid, SIGKILL));
    look("end", pid);
    pid = child(signals_itself);
    look("first", pid);
    SHOW(P(PTRACE_DETACH, pid, 0, SIGUSR1));
    TRUE(tracer_of(pid) == 0);
    look("end", pid);
}

static sigjmp_buf back;
static void leaps(int number, siginfo_t *info, void *context) { siglongjmp(back, info->si_code); }
static void faults(void) {
    struct sigaction action = {.sa_sigaction = leaps, .sa_flags = SA_SIGINFO};
    P(PTRACE_TRACEME, 0, 0, 0);
    sigaction(SIGSEGV, &action, 0);
    int code = sigsetjmp(back, 1);
    if (!code) *(volatile int *)8 = 1;
    signal(SIGSEGV, SIG_IGN);
    *(volatile int *)16 = 1;
    _exit(code);
}

static void forced(void) {
    printf("faults\n");
    pid_t pid = child(faults);
    siginfo_t info;
    look("fault", pid);
    SHOW(P(PTRACE_GETSIGINFO, pid, 0, &info));
    printf("%p\n", info.si_addr);
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("the same", pid);
    SHOW(P(PTRACE_CONT, pid, 0, SIGSEGV));
    look("ignored", pid);
    SHOW(P(PTRACE_GETSIGINFO, pid, 0, &info));
    printf("%p\n", info.si_addr);
    SHOW(P(PTRACE_CONT, pid, 0, SIGSEGV));
    look("end", pid);
}

static int ends[2];
static void reads(void) {
    char byte = 0;
    signal(SIGUSR1, hears);
    P(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    long got = read(ends[0], &byte, 1);
    _exit(got == 1 ? byte : 100 + errno);
}
static void sleeps(void) {
    struct timespec time = {0, 60000000}, left = {7, 7};
    signal(SIGUSR1, hears);
    P(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    int result = nanosleep(&time, &left);
    _exit(result ? 100 + errno : 0);
}
static void polls(void) {
    struct pollfd entry = {ends[0], POLLIN};
    signal(SIGUSR1, hears);
    P(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    int result = poll(&entry, 1, -1);
    _exit(result < 0 ? 100 + errno : result);
}
static void pauses(void) {
    signal(SIGUSR1, hears);
    P(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    int result = pause();
    _exit(100 + errno);
}

/* A signal interrupts a call; where it is not delivered the call begins again. */
static void interrupted(void) {
    printf("interrupted calls\n");
    static void (*const bodies[])(void) = {reads, sleeps, polls, pauses};
    for (int n = 0; n < 8; n++) {
        printf("call %d, %s\n", n >> 1, n & 1 ? "delivered" : "dropped");
        pipe(ends);
        pid_t pid = child(bodies[n >> 1]);
        look("stopped", pid);
        SHOW(P(PTRACE_CONT, pid, 0, 0));
        until(pid, 'S');
        kill(pid, SIGUSR1);
        look("signal", pid);
        SHOW(P(PTRACE_CONT, pid, 0, n & 1 ? SIGUSR1 : 0));
        if (n == 6) {
            until(pid, 'S');
            kill(pid, SIGUSR1);
            look("signal", pid);
            SHOW(P(PTRACE_CONT, pid, 0, SIGUSR1));
        }
        write(ends[1], "*", 1);
        look("end", pid);
        close(ends[0]);
        close(ends[1]);
    }
}

/* -- system calls -------------------------------------------------------------------------- */

static void calls(void) {
    P(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    long one = syscall(SYS_getppid), two = syscall(SYS_close, -1), wrong = errno;
    _exit(one > 0 && two == -1 && wrong == EBADF ? 5 : 6);
}

static void say_call(pid_t pid) {
    struct ptrace_syscall_info info;
    memset(&info, 0x77, sizeof info);
    long size = P(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info);
    printf("  op %d", info.op);
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY || info.op == PTRACE_SYSCALL_INFO_SECCOMP) {
        int nr = info.entry.nr;
        printf(" nr %s", nr == SYS_getppid ? "getppid" : nr == SYS_close ? "close"
               : nr == SYS_exit_group ? "exit_group" : nr == -1 ? "none" : "?");
        if (nr == SYS_close || nr == SYS_exit_group) printf(" (%d)", (int)info.entry.args[0]);
    } else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
        printf(" result %s error %d", info.exit.rval > 1 ? "an id" : info.exit.rval < 0
               ? strerrorname_np(-info.exit.rval) ? strerrorname_np(-info.exit.rval) : "?" : "0",
               info.exit.is_error);
    printf(" size %s\n", size > 0 ? "told" : strerrorname_np(errno));
}

static void syscalls(void) {
    for (int good = 0; good < 2; good++) {
        printf("system calls%s\n", good ? ", good" : "");
        pid_t pid = child(calls);
        look("stopped", pid);
        say_call(pid);
        SHOW(P(PTRACE_SETOPTIONS, pid, 0, good ? OPTION(TRACESYSGOOD) : 0));
        for (int n = 0; n < 12; n++) {
            if (P(PTRACE_SYSCALL, pid, 0, 0)) break;
            int status = look("call", pid);
            if (!WIFSTOPPED(status)) break;
            say_call(pid);
        }
    }
}

static void sysemu(void) {
    printf("emulated calls\n");
    pid_t pid = child(calls);
    look("stopped", pid);
    SHOW(P(PTRACE_SETOPTIONS, pid, 0, OPTION(TRACESYSGOOD)));
    SHOW(P(PTRACE_SYSEMU, pid, 0, 0));
    look("call", pid);
    say_call(pid);
    SHOW(P(PTRACE_SYSEMU, pid, 0, 0));
    look("call", pid);
    say_call(pid);
    SHOW(P(PTRACE_SYSCALL, pid, 0, 0));
    look("call", pid); /* what its result is, nobody has said */
    SHOW(P(PTRACE_KILL, pid, 0, 0));
    look("end", pid);
}

static void signals_between(void) {
    printf("a signal with a call\n");
    pid_t pid = child(calls);
    look("stopped", pid);
    SHOW(P(PTRACE_SETOPTIONS, pid, 0, OPTION(TRACESYSGOOD)));
    SHOW(P(PTRACE_SYSCALL, pid, 0, 0));
    look("entry", pid);
    SHOW(P(PTRACE_SYSCALL, pid, 0, SIGUSR1));
    look("exit", pid);
    SHOW(P(PTRACE_SYSCALL, pid, 0, SIGUSR2));
    look("signal", pid);
    SHOW(P(PTRACE_SYSCALL, pid, 0, 0));
    look("signal", pid);
    SHOW(P(PTRACE_SYSCALL, pid, 0, SIGUSR2));
    look("end", pid);
}

/* -- events -------------------------------------------------------------------------------- */

static void forks(void) {
    P(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    pid_t pid = fork();
    if (!pid) _exit(3);
    int status = 0;
    waitpid(pid, &status, 0);
    pid = vfork();
    if (!pid) _exit(4);
    int second = 0;
    waitpid(pid, &second, 0);
    _exit(WEXITSTATUS(status) * 10 + WEXITSTATUS(second));
}

static void events_of(const char *name, long options) {
    printf("%s\n", name);
    pid_t pid = child(forks);
    look("stopped", pid);
    SHOW(P(PTRACE_SETOPTIONS, pid, 0, options));
    P(PTRACE_CONT, pid, 0, 0);
    pid_t other = 0;
    for (int n = 0; n < 40; n++) {
        int status = look("parent", pid);
        if (!WIFSTOPPED(status)) break;
        int event = status >> 16;
        if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE) {
            unsigned long message;
            P(PTRACE_GETEVENTMSG, pid, 0, &message);
            other = message;
            look("child", other);
            TRUE(tracer_of(other) == getpid());
            P(PTRACE_CONT, other, 0, 0);
            status = look("child", other);
            if (WIFSTOPPED(status)) {
                P(PTRACE_CONT, other, 0, 0);
                look("child", other);
            }
        }
        int number = WSTOPSIG(status = status), give = 0;
        if (event == 0 && number == SIGCHLD) give = SIGCHLD;
        P(PTRACE_CONT, pid, 0, give);
    }
}

static void *thread_body(void *argument) { return argument; }
static void makes_thread(void) {
    pthread_t thread;
    void *result;
    P(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    pthread_create(&thread, 0, thread_body, (void *)5);
    pthread_join(thread, &result);
    _exit((long)result);
}

static void threads(void) {
    printf("threads\n");
    pid_t pid = child(makes_thread);
    look("stopped", pid);
    SHOW(P(PTRACE_SETOPTIONS, pid, 0, OPTION(TRACECLONE) | OPTION(TRACEEXIT)));
    P(PTRACE_CONT, pid, 0, 0);
    look("clone", pid);
    unsigned long message;
    P(PTRACE_GETEVENTMSG, pid, 0, &message);
    pid_t thread = message;
    look("thread", thread);
    P(PTRACE_CONT, thread, 0, 0);
    look("thread", thread);
    P(PTRACE_CONT, thread, 0, 0);
    look("thread", thread);
    P(PTRACE_CONT, pid, 0, 0);
    look("end", pid);
    P(PTRACE_CONT, pid, 0, 0);
    look("end", pid);
}

static char *self;
static void executes(void) {
    char *words[] = {self, "child", 0};
    P(PTRACE_TRACEME, 0, 0, 0);
    execv("/nowhere", words);
    execv("/proc/self/exe", words);
    _exit(99);
}

static void exec_events(void) {
    for (int wanted = 0; wanted < 2; wanted++) {
        printf("exec%s\n", wanted ? " as an event" : "");
        pid_t pid;
        if (!wanted) {
            pid = child(executes);
            look("exec", pid);
            P(PTRACE_CONT, pid, 0, 0);
        } else {
            int gate[2];
            pipe(gate);
            fflush(stdout);
            pid = fork();
            if (!pid) {
                char byte;
                read(gate[0], &byte, 1);
                char *words[] = {self, "child", 0};
                execv("/proc/self/exe", words);
                _exit(99);
            }
            SHOW(P(PTRACE_SEIZE, pid, 0, OPTION(TRACEEXEC) | OPTION(TRACEEXIT)));
            write(gate[1], "", 1);
            look("exec", pid);
            P(PTRACE_CONT, pid, 0, 0);
            int status = look("exit", pid);
            unsigned long message;
            P(PTRACE_GETEVENTMSG, pid, 0, &message);
            printf("%lx\n", message);
            P(PTRACE_CONT, pid, 0, 0);
        }
        look("end", pid);
    }
}

/* -- stops of a process -------------------------------------------------------------------- */

static void stops_itself(void) {
    raise(SIGSTOP);
    raise(SIGTSTP);
    _exit(8);
}
static void traced_group(void) {
    printf("stops, attached\n");
    pid_t pid = child(waits);
    setpgid(pid, pid);
    until(pid, 'S');
    SHOW(P(PTRACE_ATTACH, pid, 0, 0));
    look("attached", pid);
    SHOW(P(PTRACE_CONT, pid, 0, SIGSTOP));
    look("stopped", pid);
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    until(pid, 'S');
    kill(pid, SIGCONT);
    look("continue", pid);
    SHOW(P(PTRACE_CONT, pid, 0, SIGCONT));
    until(pid, 'S');
    kill(pid, SIGSTOP);
    look("signal", pid);
    SHOW(P(PTRACE_DETACH, pid, 0, 0));
    until(pid, 'S');
    kill(pid, SIGSTOP);
    until(pid, 'T');
    now("untraced", pid, WUNTRACED);
    SHOW(P(PTRACE_ATTACH, pid, 0, 0));
    TRUE(state_of(pid) == 't');
    look("stopped before", pid);
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("the signal", pid);
    SHOW(P(PTRACE_DETACH, pid, 0, 0));
    until(pid, 'T');
    kill(pid, SIGKILL);
    look("end", pid);
}

static void seized_group(void) {
    printf("stops, seized\n");
    pid_t pid = child(waits);
    setpgid(pid, pid);
    until(pid, 'S');
    SHOW(P(PTRACE_SEIZE, pid, 0, 0));
    TRUE(state_of(pid) == 'S');
    SHOW(P(PTRACE_INTERRUPT, pid, 0, 0));
    look("interrupt", pid);
    SHOW(P(PTRACE_INTERRUPT, pid, 0, 0));
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("interrupt", pid);
    SHOW(P(PTRACE_LISTEN, pid, 0, 0));
    SHOW(P(PTRACE_GETSIGINFO, pid, 0, &heard));
    SHOW(P(PTRACE_INTERRUPT, pid, 0, 0));
    look("listening", pid);
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    until(pid, 'S');
    kill(pid, SIGSTOP);
    look("signal", pid);
    SHOW(P(PTRACE_LISTEN, pid, 0, 0));
    SHOW(P(PTRACE_CONT, pid, 0, SIGSTOP));
    look("group", pid);
    SHOW(P(PTRACE_LISTEN, pid, 0, 0));
    now("listening", pid, 0);
    TRUE(state_of(pid) == 't');
    kill(pid, SIGCONT);
    look("continued", pid);
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    look("its signal", pid);
    SHOW(P(PTRACE_CONT, pid, 0, SIGCONT));
    until(pid, 'S');
    kill(pid, SIGTSTP);
    look("signal", pid);
    SHOW(P(PTRACE_CONT, pid, 0, SIGTSTP));
    look("group", pid);
    SHOW(P(PTRACE_CONT, pid, 0, 0));
    until(pid, 'S');
    SHOW(P(PTRACE_INTERRUPT, pid, 0, 0));
    look("still stopped", pid);
    SHOW(P(PTRACE_DETACH, pid, 0, 0));
    until(pid, 'T');
    kill(pid, SIGCONT);
    until(pid, 'S');
    kill(pid, SIGKILL);
    look("end", pid);
}

/* -- who hears of it ----------------------------------------------------------------------- */

static volatile int told, told_code, told_status;
static void on_child(int number, siginfo_t *info, void *context) {
    told++;
    told_code = info->si_code;
    told_status = info->si_status;
}
static void say_told(const char *what) {
    printf("%s: %d code %d status %d\n", what, told, told_code, told_status);
    fflush(stdout);
    told = 0;
}

static void notices(void) {
    printf("notices\n");
    struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART}, old;
    sigaction(SIGCHLD, &action, &old);
    siginfo_t info;
    pid_t pid = child(traced_and_stops);
    memset(&info, 0, sizeof info);
    SHOW(waitid(P_PID, pid, &info, WEXITED));
    printf("code %d status %d\n", info.si_code, info.si_status);
    say_told("end");
    pid = child(traced_and_stops);
    look("stopped", pid);
    say_told("stop");
    P(PTRACE_SYSCALL, pid, 0, 0);
    memset(&info, 0, sizeof info);
    SHOW(waitid(P_PID, pid, &info, WSTOPPED | WNOWAIT));
    printf("code %d status %d\n", info.si_code, info.si_status);
    memset(&info, 0, sizeof info);
    SHOW(waitid(P_PID, pid, &info, WSTOPPED));
    printf("code %d status %d\n", info.si_code, info.si_status);
    memset(&info, 0, sizeof info);
    SHOW(waitid(P_PID, pid, &info, WSTOPPED | WNOHANG));
    printf("code %d status %d\n", info.si_code, info.si_status);
    say_told("call");
    P(PTRACE_CONT, pid, 0, 0);
    memset(&info, 0, sizeof info);
    SHOW(waitid(P_PID, pid, &info, WEXITED));
    printf("code %d status %d\n", info.si_code, info.si_status);
    say_told("end");
    action.sa_flags |= SA_NOCLDSTOP;
    sigaction(SIGCHLD, &action, 0);
    pid = child(traced_and_stops);
    look("stopped", pid);
    say_told("quiet");
    P(PTRACE_CONT, pid, 0, 0);
    look("end", pid);
    say_told("end");
    sigaction(SIGCHLD, &old, 0);
}

/* Another one's child: its tracer is told first. */
static int gate[2], answer[2];
static void traces_sibling(void) {
    pid_t pid;
    read(gate[0], &pid, sizeof pid);
    long result = P(PTRACE_SEIZE, pid, 0, 0);
    write(answer[1], "s", 1);
    int status = 0;
    pid_t got = waitpid(pid, &status, __WALL);
    usleep(20000);
    _exit(result == 0 && got == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 99);
}
static void exits_later(void) {
    char byte;
    read(ends[0], &byte, 1);
    _exit(21);
}
static void cascade(void) {
    printf("a tracer that is no parent\n");
    pipe(gate), pipe(answer), pipe(ends);
    pid_t pid = child(exits_later), tracer = child(traces_sibling);
    char byte;
    write(gate[1], &pid, sizeof pid);
    read(answer[0], &byte, 1);
    TRUE(tracer_of(pid) == tracer);
    now("traced", pid, WUNTRACED);
    SHOW(P(PTRACE_ATTACH, pid, 0, 0));
    write(ends[1], "", 1);
    look("end", pid);
    look("tracer", tracer);
}

static void traces_and_ends(void) {
    pid_t pid;
    int option;
    read(gate[0], &pid, sizeof pid);
    read(gate[0], &option, sizeof option);
    P(PTRACE_SEIZE, pid, 0, option);
    P(PTRACE_INTERRUPT, pid, 0, 0);
    waitpid(pid, 0, __WALL);
    _exit(0);
}
static void tracer_ends(void) {
    for (int kill_it = 0; kill_it < 2; kill_it++) {
        printf("a tracer that ends%s\n", kill_it ? " and takes it along" : "");
        int option = kill_it ? OPTION(EXITKILL) : 0;
        pipe(gate), pipe(ends);
        pid_t pid = child(exits_later), tracer = child(traces_and_ends);
        write(gate[1], &pid, sizeof pid);
        write(gate[1], &option, sizeof option);
        look("tracer", tracer);
        if (!kill_it) {
            until(pid, 'S');
            TRUE(tracer_of(pid) == 0);
            write(ends[1], "", 1);
        }
        look("end", pid);
    }
}

static void undumpable(void) {
    prctl(PR_SET_DUMPABLE, 0);
    write(answer[1], "d", 1);
    for (;;) pause();
}
static void protection(void) {
    printf("protected\n");
    char byte;
    pipe(answer);
    pid_t pid = child(undumpable);
    read(answer[0], &byte, 1);
    SHOW(P(PTRACE_ATTACH, pid, 0, 0));
    SHOW(P(PTRACE_SEIZE, pid, 0, 0));
    struct iovec here = {&byte, 1}, there = {words, 1};
    SHOW(process_vm_readv(pid, &here, 1, &there, 1, 0));
    kill(pid, SIGKILL);
    look("end", pid);
}

/* -- memory of others ---------------------------------------------------------------------- */

static void memory(void) {
    printf("memory of others\n");
    pid_t pid = child(waits);
    char buffer[4096] = {0}, path[64];
    char *page = mmap(0, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    strcpy(page, "own");
    pid_t other = child(waits);
    struct iovec here[2] = {{buffer, 16}, {buffer + 100, 16}}, there[2] = {{words, 16}, {page, 16}};
    SHOW(process_vm_readv(other, here, 2, there, 2, 0));
    printf("%lx %s\n", *(long *)buffer, buffer + 100);
    strcpy(buffer, "new");
    here[0].iov_len = 4;
    SHOW(process_vm_writev(other, here, 1, &there[1], 1, 0));
    here[0].iov_len = 16;
    memset(buffer, 0, sizeof buffer);
    SHOW(process_vm_readv(other, here, 1, &there[1], 1, 0));
    printf("%s %s\n", buffer, page);
    SHOW(process_vm_readv(other, here, 1, there, 1, 1));
    SHOW(process_vm_readv(99999999, here, 1, there, 1, 0));
    SHOW(process_vm_readv(other, here, 1025, there, 1, 0));
    SHOW(process_vm_readv(other, here, 0, there, 1, 0));
    SHOW(process_vm_readv(other, here, 1, there, 0, 0));
    there[0].iov_base = (void *)8;
    SHOW(process_vm_readv(other, here, 1, there, 1, 0));
    there[0] = (struct iovec){page + 3 * PAGE - 8, 16};
    munmap(page + 2 * PAGE, PAGE);
    SHOW(process_vm_readv(other, here, 1, there, 1, 0) > 0);
    SHOW(process_vm_readv(getpid(), here, 1, &there[1], 1, 0));
    SHOW(process_vm_writev(other, here, 1, &(struct iovec){waits, 16}, 1, 0));

    snprintf(path, sizeof path, "/proc/%d/mem", other);
    int fd = open(path, O_RDWR);
    TRUE(fd >= 0);
    SHOW(pread(fd, buffer, 8, (long)words));
    printf("%lx\n", *(long *)buffer);
    SHOW(pread(fd, buffer, 8, 8));
    SHOW(pwrite(fd, "file", 5, (long)page));
    SHOW(pread(fd, buffer, 8, (long)page));
    printf("%s\n", buffer);
    SHOW(pread(fd, buffer, 8, (long)waits));
    TRUE(!memcmp(buffer, waits, 8));
    SHOW(pwrite(fd, buffer, 8, (long)waits));
    SHOW(pwrite(fd, buffer, 8, 8));
    SHOW(lseek(fd, 16, SEEK_SET));
    SHOW(read(fd, buffer, 1));
    kill(pid, SIGKILL);
    kill(other, SIGKILL);
    look("end", pid);
    look("end", other);
    SHOW(pread(fd, buffer, 8, (long)words));
    close(fd);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "child")) return 44;
    signal(SIGINT, SIG_DFL);  // whoever runs this in the background has it ignored
    self = argv[0];
    setvbuf(stdout, 0, _IOFBF, 1 << 16);
    static void (*const parts[])(void) = {
        wrong_uses, requests, injection, forced, interrupted, syscalls, sysemu, signals_between,
        threads, exec_events, traced_group, seized_group, notices, cascade, tracer_ends, protection,
        memory,
    };
    int only = argc > 1 && argv[1][0] >= '0' && argv[1][0] <= '9' ? atoi(argv[1]) : -1;
    for (unsigned n = 0; n < sizeof parts / sizeof *parts; n++)
        if (only < 0 || only == n) parts[n]();
    if (only < 0 || only == 50) {
        events_of("no events", 0);
        events_of("all events", OPTION(TRACEFORK) | OPTION(TRACEVFORK) | OPTION(TRACEVFORKDONE) | OPTION(TRACEEXIT));
        events_of("vfork", OPTION(TRACEVFORK));
        events_of("vfork done", OPTION(TRACEVFORKDONE));
    }
    fflush(stdout);
    return 0;
}
