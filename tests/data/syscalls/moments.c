// Timers with short periods: prints a number made of when and where each of their signals came.
// Arguments: kind of timer (r, v, p; a for all), nanoseconds of its period.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)
#define REGISTER(i) (unsigned long)((ucontext_t *)context)->uc_mcontext.gregs[i]
#define PLACE (REGISTER(REG_RIP) * 31 + REGISTER(REG_RCX) * 7 + REGISTER(REG_RDI))
#elif defined(__aarch64__)
#define PLACE ((ucontext_t *)context)->uc_mcontext.pc
#else
#define PLACE ((ucontext_t *)context)->uc_mcontext.__gregs[0]
#endif

static volatile unsigned long pass, signals;
static unsigned long hash = 1469598103934665603UL;
static char from[400], to[400];

static void caught(int number, siginfo_t *info, void *context) {
    unsigned long what = pass * 64 + number + ((unsigned long)info->si_overrun << 40);
    hash = (hash ^ what ^ PLACE) * 1099511628211UL;
    signals++;
}

__attribute__((noinline)) unsigned long inner(unsigned long x) { return x * 3 + (x >> 7); }

__attribute__((noinline)) unsigned long outer(unsigned long x) {
    for (int i = 0; i < (int)(x & 3); i++)
        x = inner(x) + i;
    return x ^ 5;
}

__attribute__((noinline)) void copies(unsigned long count) {
#ifdef __x86_64__
    char *d = to, *s = from;
    __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(count)::"memory");
#else
    memmove(to, from, count);
#endif
}

int main(int argc, char **argv) {
    char kind = argc > 1 ? *argv[1] : 'a';
    long ns = argc > 2 ? atol(argv[2]) : 3000;
    struct sigaction action = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO};
    sigaction(SIGALRM, &action, 0);
    sigaction(SIGVTALRM, &action, 0);
    sigaction(SIGUSR1, &action, 0);
    struct itimerval it = {{0, ns / 1000}, {0, ns / 1000}};
    if (kind == 'r' || kind == 'a')
        setitimer(ITIMER_REAL, &it, 0);
    if (kind == 'v' || kind == 'a')
        setitimer(ITIMER_VIRTUAL, &it, 0);
    if (kind == 'p' || kind == 'a') {
        timer_t timer;
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
        struct itimerspec spec = {{0, ns}, {0, ns + 137}};
        if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &spec, 0))
            return 3;
    }
    unsigned long x = 7;
    while (signals < 40) {
        pass++;
        x = outer(x);
        if (pass % 5 == 0)
            copies(20 + pass % 300);
        if (pass % 97 == 0)
            getppid();
    }
    printf("%lu %lu %lu %lu\n", signals, hash, pass, x);
    return 0;
}
