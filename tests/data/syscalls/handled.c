/* Signals that a thread sends itself, in all the ways that put a handler's frame on the stack. */
#define _GNU_SOURCE
#include <fenv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static volatile long seen[65];
static volatile double sum;
static int wild;

static void **pc_of(ucontext_t *context)
{
#if defined(__x86_64__)
    return (void **)&context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (void **)&context->uc_mcontext.pc;
#else
    return (void **)&context->uc_mcontext.__gregs[0];
#endif
}

static void handler(int number, siginfo_t *info, void *context)
{
    seen[number]++;
    sum = sum / 3 + number * 0.1;
    if (number == SIGUSR1 && seen[number] % 3 == 0) raise(SIGUSR2);
    if (wild) *pc_of(context) = 0;
}

int main(int argc, char **argv)
{
    static char stack[65536];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    int ends[2];
    sigset_t mask;
    volatile double kept = 1;
    for (int n = 0; n < 100; n++) getppid();
    sigaction(SIGUSR1, &action, 0);
    action.sa_flags |= SA_ONSTACK;
    sigaction(SIGUSR2, &action, 0);
    sigaltstack(&other, 0);
    action.sa_flags = SA_SIGINFO | SA_RESETHAND | SA_NODEFER;
    wild = argc > 1;
    fesetround(FE_UPWARD);
    for (int n = 0; n < 60; n++) {
        kept = kept / 7 + n;
        kill(getpid(), SIGUSR1);
        if (n % 5 == 0) {
            sigemptyset(&mask);
            sigaddset(&mask, SIGUSR1);
            sigaddset(&mask, SIGUSR2);
            sigprocmask(SIG_BLOCK, &mask, 0);
            raise(SIGUSR2);
            raise(SIGUSR1);
            raise(SIGUSR1);
            sigprocmask(SIG_UNBLOCK, &mask, 0);
        }
        if (n % 7 == 0) {
            sigaction(SIGPIPE, &action, 0);
            pipe(ends);
            close(ends[0]);
            printf("%ld ", (long)write(ends[1], "x", 1));
            close(ends[1]);
        }
    }
    printf("%ld %ld %ld %a %a %d\n", seen[SIGUSR1], seen[SIGUSR2], seen[SIGPIPE], sum, kept,
           fetestexcept(FE_INEXACT) != 0);
    fflush(stdout);
    signal(SIGTERM, SIG_DFL);
    raise(SIGTERM);
    return 0;
}
