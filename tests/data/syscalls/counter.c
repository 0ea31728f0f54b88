/* Whether a thread may read the time stamp counter: prctl(PR_SET_TSC), and seccomp's strict mode. */
#include "guest.h"
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <x86intrin.h>

static void counters(const char *when) {
    unsigned processor;
    struct timespec now;
    int mode = -1;
    SHOW(prctl(PR_GET_TSC, &mode));
    printf("%s: %d\n", when, mode);
    GUARD(__rdtsc());
    GUARD(__rdtscp(&processor));
    GUARD(clock_gettime(CLOCK_MONOTONIC, &now)); /* the vDSO reads it */
    fflush(stdout);
}

static void *thread(void *unused) {
    counters("thread");
    SHOW(prctl(PR_SET_TSC, PR_TSC_ENABLE));
    counters("of the thread");
    return 0;
}

int main(void) {
    pthread_t other;
    int status, mode = -1;
    guard_install();
    for (int n = 0; n < 100; n++) __rdtsc();
    counters("first");
    SHOW(prctl(PR_GET_TSC, 1));
    SHOW(prctl(PR_SET_TSC, 0));
    SHOW(prctl(PR_SET_TSC, 3));
    SHOW(prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
    counters("refused");
    pthread_create(&other, 0, thread, 0);
    pthread_join(other, 0);
    SHOW(prctl(PR_GET_TSC, &mode));
    printf("%d\n", mode);
    fflush(stdout);
    if (!fork()) {
        counters("child");
        _exit(0);
    }
    wait(&status);
    SHOW(prctl(PR_SET_TSC, PR_TSC_ENABLE));
    counters("again");
    signal(SIGSEGV, SIG_DFL);
    if (!fork()) {
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
        __rdtsc();
        syscall(SYS_exit, 0);
    }
    wait(&status);
    printf("strict %x\n", status & 0x7F);
    return 0;
}
