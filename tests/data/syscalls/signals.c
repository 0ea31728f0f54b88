/* Sending, masking, nesting, waiting, alternate stacks. */
#include "guest.h"
#include <poll.h>
#include <linux/futex.h>
#include <sys/select.h>
#ifndef sigmask
#define sigmask(n) (1 << ((n)-1))
#endif
static char log_[4096];
static void note(const char *text) { strcat(log_, text); }
static void flush(const char *what) { printf("%s:%s\n", what, log_); log_[0] = 0; fflush(stdout); }

static void plain(int number) { char t[16]; sprintf(t, " %d", number); note(t); }
static void rich(int number, siginfo_t *info, void *context) {
    char t[80];
    sprintf(t, " [%d code %d pid %s uid %s value %d]", number, info->si_code, info->si_pid == getpid() ? "own" : info->si_pid ? "other" : "0",
            info->si_uid == getuid() ? "own" : "other", info->si_value.sival_int);
    note(t);
}
static void nested(int number) {
    plain(number);
    static int depth;
    if (number == SIGUSR1) {
        raise(SIGUSR2);
        if (++depth % 2) raise(SIGUSR1);
        note(" end1");
    }
    else note(" end2");
}
static void mask_in(int number) {
    sigset_t now;
    sigprocmask(SIG_BLOCK, 0, &now);
    char t[80];
    sprintf(t, " [%d%d%d]", sigismember(&now, SIGUSR1), sigismember(&now, SIGUSR2), sigismember(&now, SIGTERM));
    note(t);
}
static void on(int number, void *f, int flags, int mask) {
    struct sigaction action = {.sa_handler = f, .sa_flags = flags};
    for (int i = 1; i < 32; i++) if (mask & sigmask(i)) sigaddset(&action.sa_mask, i);
    if (sigaction(number, &action, 0)) note(" sigaction failed");
}
static void block(int number, int how) { sigset_t s; sigemptyset(&s); sigaddset(&s, number); sigprocmask(how, &s, 0); }
static char stack[65536];
static void on_stack(int number) {
    char here;
    stack_t now, want = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(0, &now);
    note(&here >= stack && &here < stack + sizeof stack ? " alternate" : " normal");
    note(now.ss_flags == SS_ONSTACK ? " onstack" : now.ss_flags == SS_DISABLE ? " disable" : now.ss_flags ? " other" : " 0");
    errno = 0;
    if (sigaltstack(&want, 0)) note(errno == EPERM ? " EPERM" : " fails");
    if (number == SIGUSR1) raise(SIGUSR2);
}
static long recursion(int n) { volatile char big[4096]; big[0] = n; return n > 100000 ? 0 : recursion(n + 1) + big[0]; }
static void overflow(int number, siginfo_t *info, void *context) { siglongjmp(guard_at, 1); }
static void arm(long us) { struct itimerval t = {.it_value = {us / 1000000, us % 1000000}}; setitimer(ITIMER_REAL, &t, 0); }

int main(void) {
    sigset_t set, old;
    on(SIGUSR1, plain, 0, 0);
    on(SIGUSR2, plain, 0, 0);
    raise(SIGUSR1); flush("raise");
    kill(getpid(), SIGUSR2); flush("kill");
    kill(0, SIGUSR2); flush("kill group");
    on(SIGUSR1, rich, SA_SIGINFO, 0);
    kill(getpid(), SIGUSR1); raise(SIGUSR1);
    union sigval value = {.sival_int = 77};
    sigqueue(getpid(), SIGUSR1, value); flush("info");
    block(SIGUSR1, SIG_BLOCK);
    kill(getpid(), SIGUSR1); kill(getpid(), SIGUSR1); note(" blocked");
    sigpending(&set); note(sigismember(&set, SIGUSR1) ? " pending" : " not");
    block(SIGUSR1, SIG_UNBLOCK); flush("once");
    for (int i = 0; i < 3; i++) on(SIGRTMIN + i, rich, SA_SIGINFO, 0), block(SIGRTMIN + i, SIG_BLOCK);
    for (int i = 2; i >= 0; i--) for (int j = 0; j < 2; j++) { value.sival_int = 10 * i + j; sigqueue(getpid(), SIGRTMIN + i, value); }
    kill(getpid(), SIGUSR2);
    sigemptyset(&set); sigprocmask(SIG_SETMASK, &set, 0); flush("real-time order");
    on(SIGUSR1, nested, 0, 0); on(SIGUSR2, nested, 0, 0); raise(SIGUSR1); flush("nested");
    on(SIGUSR1, nested, 0, sigmask(SIGUSR2)); raise(SIGUSR1); flush("nested, masked");
    on(SIGUSR1, mask_in, 0, sigmask(SIGTERM)); raise(SIGUSR1); flush("mask in handler");
    on(SIGUSR1, mask_in, SA_NODEFER, 0); raise(SIGUSR1); flush("nodefer");
    on(SIGUSR1, mask_in, SA_NODEFER, sigmask(SIGUSR1)); raise(SIGUSR1); flush("nodefer but masked");
    on(SIGUSR1, plain, SA_RESETHAND, 0); raise(SIGUSR1);
    struct sigaction now; sigaction(SIGUSR1, 0, &now); TRUE(now.sa_handler == SIG_DFL); flush("resethand");
    on(SIGUSR1, plain, SA_SIGINFO | SA_RESTART, sigmask(SIGTERM)); sigaction(SIGUSR1, 0, &now);
    printf("flags %x\n", now.sa_flags & ~0x04000000);
    signal(SIGUSR1, SIG_IGN); raise(SIGUSR1); flush("ignored");
    block(SIGUSR1, SIG_BLOCK); raise(SIGUSR1); sigpending(&set); TRUE(sigismember(&set, SIGUSR1));
    on(SIGUSR1, plain, 0, 0); block(SIGUSR1, SIG_UNBLOCK); flush("ignored while blocked");
    block(SIGUSR1, SIG_BLOCK); raise(SIGUSR1); signal(SIGUSR1, SIG_IGN); on(SIGUSR1, plain, 0, 0);
    block(SIGUSR1, SIG_UNBLOCK); flush("ignoring takes pending ones");
    /* waiting */
    block(SIGUSR1, SIG_BLOCK); raise(SIGUSR1);
    sigemptyset(&set); SHOW(sigsuspend(&set)); flush("sigsuspend");
    sigprocmask(SIG_BLOCK, 0, &old); TRUE(sigismember(&old, SIGUSR1) == 1);
    raise(SIGUSR1);
    struct timespec soon = {0, 20000000}, zero = {0, 0};
    SHOW(ppoll(0, 0, &soon, &set)); flush("ppoll");
    SHOW(ppoll(0, 0, &soon, &set)); flush("ppoll again");
    raise(SIGUSR1); SHOW(pselect(0, 0, 0, 0, &soon, &set)); flush("pselect");
    sigemptyset(&set); sigaddset(&set, SIGUSR1); sigaddset(&set, SIGRTMIN);
    siginfo_t info;
    SHOW(sigtimedwait(&set, &info, &zero));
    raise(SIGUSR1); SHOW(sigtimedwait(&set, &info, &zero)); printf("code %d\n", info.si_code); flush("sigtimedwait");
    block(SIGRTMIN, SIG_BLOCK); value.sival_int = 5; sigqueue(getpid(), SIGRTMIN, value);
    SHOW(sigwaitinfo(&set, &info)); printf("value %d code %d\n", info.si_value.sival_int, info.si_code);
    on(SIGALRM, plain, 0, 0); arm(5000);
    soon.tv_nsec = 500000000; SHOW(sigtimedwait(&set, &info, &soon)); flush("sigtimedwait, other signal");
    struct timespec bad = {0, 2000000000}; SHOW(sigtimedwait(&set, &info, &bad));
    block(SIGUSR1, SIG_UNBLOCK);
    /* interrupted calls */
    int ends[2]; pipe(ends); char c;
    arm(50000); SHOW(read(ends[0], &c, 1)); flush("read");
    arm(50000); struct pollfd p = {ends[0], POLLIN}; SHOW(poll(&p, 1, -1)); flush("poll");
    struct timespec rest = {9, 9}, second = {2, 0};
    arm(5000); SHOW(nanosleep(&second, &rest)); TRUE(rest.tv_sec == 1); flush("nanosleep");
    arm(5000); SHOW(clock_nanosleep(CLOCK_MONOTONIC, 0, &second, &rest)); flush("clock_nanosleep");
    int word = 1; struct timespec limit = {5, 0};
    arm(5000); SHOW(syscall(SYS_futex, &word, FUTEX_WAIT, 1, &limit, 0, 0)); flush("futex");
    arm(50000); SHOW(syscall(SYS_futex, &word, FUTEX_WAIT, 1, 0, 0, 0)); flush("futex without end");
    limit.tv_sec = 0; limit.tv_nsec = 1000000;
    SHOW(syscall(SYS_futex, &word, FUTEX_WAIT, 1, &limit, 0, 0));
    SHOW(syscall(SYS_futex, &word, FUTEX_WAIT, 2, &limit, 0, 0));
    SHOW(syscall(SYS_futex, &word, FUTEX_WAKE, 2, 0, 0, 0));
    SHOW(syscall(SYS_futex, (char *)&word + 1, FUTEX_WAKE, 2, 0, 0, 0));
    SHOW(syscall(SYS_futex, 8, FUTEX_WAIT, 2, 0, 0, 0));
    SHOW(syscall(SYS_futex, &word, 77, 2, 0, 0, 0));
    SHOW(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 1, &limit, 0, 0));
    arm(50000); SHOW(pause()); flush("pause");
    on(SIGALRM, plain, SA_RESTART, 0);
    arm(5000); SHOW(poll(&p, 1, 30)); flush("poll never restarts");
    arm(5000); SHOW(nanosleep(&(struct timespec){0, 30000000}, &rest)); flush("nor nanosleep");
    /* alternate stack */
    stack_t ss = {.ss_sp = stack, .ss_size = sizeof stack}, before;
    SHOW(sigaltstack(&ss, &before)); printf("before %d\n", before.ss_flags);
    on(SIGUSR1, on_stack, SA_ONSTACK, 0); on(SIGUSR2, on_stack, SA_ONSTACK, 0); raise(SIGUSR1); flush("stack");
    on(SIGUSR1, on_stack, 0, 0); raise(SIGUSR1); flush("other stack");
    ss.ss_size = 100; SHOW(sigaltstack(&ss, 0)); ss.ss_size = sizeof stack;
    ss.ss_flags = 77; SHOW(sigaltstack(&ss, 0));
    SHOW(sigaltstack((void *)8, 0)); SHOW(sigaltstack(0, (void *)8));
    ss.ss_flags = 0; sigaltstack(&ss, 0);
    on(SIGSEGV, overflow, SA_SIGINFO | SA_ONSTACK, 0);
    if (!sigsetjmp(guard_at, 1)) { recursion(0); printf("no overflow\n"); } else printf("overflow caught\n");
    if (!sigsetjmp(guard_at, 1)) { recursion(0); printf("no overflow\n"); } else printf("overflow caught again\n");
    ss.ss_flags = SS_DISABLE; SHOW(sigaltstack(&ss, 0)); sigaltstack(0, &before); printf("%d\n", before.ss_flags);
    ss.ss_flags = 1u << 31; SHOW(sigaltstack(&ss, 0)); on(SIGUSR1, on_stack, SA_ONSTACK, 0); on(SIGUSR2, plain, 0, 0); raise(SIGUSR1); flush("autodisarm");
    sigaltstack(0, &before); TRUE(before.ss_flags == (int)(1u << 31));
    /* wrong calls */
    SHOW(kill(getpid(), 65)); SHOW(kill(getpid(), -1)); SHOW(kill(99999999, 0)); SHOW(kill(getpid(), 0));
    SHOW(syscall(SYS_tgkill, getpid(), getpid(), 65)); SHOW(syscall(SYS_tgkill, getpid(), 99999999, 0)); SHOW(syscall(SYS_tgkill, 0, 1, 0));
    SHOW(syscall(SYS_rt_sigaction, SIGKILL, &now, 0, 8)); SHOW(syscall(SYS_rt_sigaction, SIGKILL, 0, 0, 8)); SHOW(syscall(SYS_rt_sigaction, 0, 0, 0, 8));
    SHOW(syscall(SYS_rt_sigaction, 65, 0, 0, 8)); SHOW(syscall(SYS_rt_sigaction, 1, 0, 0, 4)); SHOW(syscall(SYS_rt_sigaction, 1, 8, 0, 8)); SHOW(syscall(SYS_rt_sigaction, 1, 0, 8, 8));
    SHOW(syscall(SYS_rt_sigprocmask, 9, &set, 0, 8)); SHOW(syscall(SYS_rt_sigprocmask, 9, 0, 0, 8)); SHOW(syscall(SYS_rt_sigprocmask, 0, &set, 0, 16));
    SHOW(syscall(SYS_rt_sigprocmask, 0, 8, 0, 8)); SHOW(syscall(SYS_rt_sigprocmask, 0, 0, 8, 8));
    SHOW(syscall(SYS_rt_sigpending, &set, 9)); SHOW(syscall(SYS_rt_sigpending, 8, 8)); SHOW(syscall(SYS_rt_sigsuspend, &set, 4)); SHOW(syscall(SYS_rt_sigsuspend, 8, 8));
    sigfillset(&set); sigprocmask(SIG_BLOCK, &set, 0); sigprocmask(SIG_BLOCK, 0, &old); printf("%d %d\n", sigismember(&old, SIGKILL), sigismember(&old, SIGSTOP));
    sigemptyset(&set); sigprocmask(SIG_SETMASK, &set, 0);
    raise(SIGCHLD); raise(SIGURG); raise(SIGWINCH); raise(SIGCONT); printf("still here\n"); fflush(stdout);
    raise(SIGTERM);
    return 0;
}
