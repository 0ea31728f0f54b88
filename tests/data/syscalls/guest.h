/* What the guests of the differential tests share: one line a fact, errors by name. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE 4096UL

static void show(const char *what, long result) {
    if (result == -1)
        printf("%s: %s\n", what, strerrorname_np(errno) ? strerrorname_np(errno) : "?");
    else
        printf("%s: %ld\n", what, result);
    fflush(stdout);
}
/* The result itself, an address or id: only whether it worked. */
static void works(const char *what, long result) { show(what, result == -1 ? -1 : 0); }

#define SHOW(e) (errno = 0, show(#e, (long)(e)))
#define WORKS(e) (errno = 0, works(#e, (long)(e)))
#define TRUE(e) printf("%s: %s\n", #e, (e) ? "true" : "FALSE")

/* A guarded access: 0, or the signal and si_code it raised. */
static sigjmp_buf guard_at;
static volatile int guard_signal, guard_code;
static void *volatile guard_address;
static void guard_handler(int number, siginfo_t *info, void *context) {
    if (guard_signal) _exit(99); /* not guarded: do not run in circles */
    guard_signal = number;
    guard_code = info->si_code;
    guard_address = info->si_addr;
    siglongjmp(guard_at, 1);
}
static void guard_install(void) {
    struct sigaction action = {.sa_sigaction = guard_handler, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, 0);
    sigaction(SIGBUS, &action, 0);
    sigaction(SIGILL, &action, 0);
    sigaction(SIGFPE, &action, 0);
    sigaction(SIGTRAP, &action, 0);
}
#define GUARD(e)                                                                   \
    do {                                                                           \
        guard_signal = 0;                                                          \
        if (!sigsetjmp(guard_at, 1)) { e; }                                        \
        if (guard_signal) printf("%s: signal %d code %d\n", #e, guard_signal, guard_code); \
        else printf("%s: fine\n", #e);                                             \
        fflush(stdout);                                                            \
    } while (0)
#define PEEK(p) ((void)*(volatile char *)(p))
#define POKE(p, v) (*(volatile char *)(p) = (v))
