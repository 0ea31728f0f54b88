/* Interval timers, POSIX timers, clocks, sleeping. */
#include "guest.h"
#include <sys/resource.h>
#include <sys/times.h>
static volatile int count, last_code, last_value, last_overrun;
static void tick(int n, siginfo_t *i, void *c) { count++; last_code = i->si_code; last_value = i->si_value.sival_int; last_overrun = i->si_overrun; }
static long long now(int clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static volatile unsigned long spins;
static void spin(int n) { while (count < n) spins++; }
#define ABOUT(what, ns, want) do { long long d_ = (ns), w_ = (want); printf("%s: %s\n", what, d_ >= w_ && d_ < w_ + 200000000 ? "about right" : "WRONG"); } while (0)
int main(void) {
    struct sigaction a = {.sa_sigaction = tick, .sa_flags = SA_SIGINFO | SA_RESTART};
    for (int s = 1; s <= 64; s++) if (s == SIGALRM || s == SIGVTALRM || s == SIGPROF || s == SIGUSR1 || s == SIGRTMIN) sigaction(s, &a, 0);
    int signals[] = {SIGALRM, SIGVTALRM, SIGPROF};
    for (int w = 0; w < 3; w++) {
        struct itimerval t = {{0, 2000}, {0, 3000}}, old;
        count = 0; SHOW(setitimer(w, &t, 0)); spin(3); printf("code %d\n", last_code);
        SHOW(getitimer(w, &old)); printf("interval %ld.%06ld, rest %s\n", (long)old.it_interval.tv_sec, (long)old.it_interval.tv_usec, old.it_value.tv_usec > 0 && old.it_value.tv_usec <= 8000 ? "ok" : "WRONG");
        memset(&t, 0, sizeof t); SHOW(setitimer(w, &t, &old)); SHOW(getitimer(w, &old)); printf("off %ld %ld\n", (long)old.it_value.tv_usec, (long)old.it_interval.tv_usec);
    }
    struct itimerval bad = {{0, 0}, {0, 1000000}};
    SHOW(setitimer(0, &bad, 0)); SHOW(setitimer(3, &bad, 0)); SHOW(getitimer(3, &bad)); SHOW(setitimer(0, (void *)8, 0)); SHOW(getitimer(0, (void *)8)); 
    SHOW(alarm(10)); SHOW(alarm(0)); SHOW(alarm(0));
    count = 0; struct itimerval one = {{0, 0}, {0, 5000}}; setitimer(0, &one, 0); pause(); printf("one shot %d\n", count); getitimer(0, &one); printf("%ld\n", (long)one.it_value.tv_usec);
    /* POSIX timers */
    timer_t id; struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 42};
    int clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID};
    for (int i = 0; i < 5; i++) {
        printf("clock %d\n", clocks[i]);
        SHOW(timer_create(clocks[i], &e, &id));
        struct itimerspec t = {{0, 3000000}, {0, 2000000}}, g;
        count = 0; SHOW(timer_settime(id, 0, &t, 0)); spin(3); printf("code %d value %d\n", last_code, last_value);
        SHOW(timer_gettime(id, &g)); printf("interval %ld rest %d\n", (long)g.it_interval.tv_nsec, g.it_value.tv_nsec > 0 && g.it_value.tv_nsec <= 8000000);
        memset(&t, 0, sizeof t); SHOW(timer_settime(id, 0, &t, &g)); SHOW(timer_gettime(id, &g)); printf("off %ld %ld\n", (long)g.it_value.tv_nsec, (long)g.it_interval.tv_nsec);
        SHOW(timer_delete(id));
    }
    SHOW(timer_create(CLOCK_MONOTONIC, 0, &id)); struct itimerspec t = {{0, 0}, {0, 2000000}}; count = 0; SHOW(timer_settime(id, 0, &t, 0)); pause(); printf("default %d code %d\n", count, last_code); SHOW(timer_delete(id));
    e.sigev_notify = SIGEV_NONE; SHOW(timer_create(CLOCK_MONOTONIC, &e, &id)); SHOW(timer_settime(id, 0, &t, 0)); struct itimerspec g; SHOW(timer_gettime(id, &g)); TRUE(g.it_value.tv_nsec > 0);
    struct timespec nap = {0, 5000000}; nanosleep(&nap, 0); SHOW(timer_gettime(id, &g)); printf("none %ld\n", (long)g.it_value.tv_nsec); SHOW(timer_getoverrun(id)); SHOW(timer_delete(id));
    e.sigev_notify = SIGEV_SIGNAL; e.sigev_signo = SIGUSR1;
    SHOW(timer_create(CLOCK_MONOTONIC, &e, &id));
    struct timespec m; clock_gettime(CLOCK_MONOTONIC, &m); m.tv_sec -= 5; t.it_value = m; count = 0; SHOW(timer_settime(id, TIMER_ABSTIME, &t, 0)); spin(1); printf("past %d\n", count);
    clock_gettime(CLOCK_MONOTONIC, &m); m.tv_sec += 1; t.it_value = m; SHOW(timer_settime(id, TIMER_ABSTIME, &t, 0)); timer_gettime(id, &g); TRUE(g.it_value.tv_sec <= 1 && (g.it_value.tv_sec || g.it_value.tv_nsec));
    sigset_t s; sigemptyset(&s); sigaddset(&s, SIGUSR1); sigprocmask(SIG_BLOCK, &s, 0); t = (struct itimerspec){{0, 1000000}, {0, 1000000}}; SHOW(timer_settime(id, 0, &t, 0)); nap.tv_nsec = 20500000; nanosleep(&nap, 0);
    count = 0; sigprocmask(SIG_UNBLOCK, &s, 0); TRUE(last_overrun >= 15 && timer_getoverrun(id) >= 15); SHOW(timer_delete(id));
    SHOW(syscall(SYS_timer_create, 99, &e, &id)); SHOW(syscall(SYS_timer_create, 1, 8, &id)); SHOW(syscall(SYS_timer_create, 1, &e, 8)); e.sigev_signo = 99; SHOW(syscall(SYS_timer_create, 1, &e, &id)); e.sigev_notify = 77; SHOW(syscall(SYS_timer_create, 1, &e, &id));
    SHOW(syscall(SYS_timer_settime, 99, 0, &t, 0)); SHOW(syscall(SYS_timer_gettime, 99, &t)); SHOW(syscall(SYS_timer_delete, 99)); SHOW(syscall(SYS_timer_getoverrun, 99));
    /* clocks */
    int all[] = {0, 1, 2, 3, 4, 5, 6, 7, 11}; int down = 0;
    for (int i = 0; i < 9; i++) { long long before = now(all[i]); for (int j = 0; j < 100; j++) { long long t = now(all[i]); down += t < before; before = t; } }
    printf("steps back %d\n", down);
    struct timeval tv; gettimeofday(&tv, 0); long long d = now(0) - (tv.tv_sec * 1000000000LL + tv.tv_usec * 1000LL); TRUE(d >= 0 && d < 1000000000); TRUE(time(0) - tv.tv_sec <= 1);
    long long start = now(CLOCK_MONOTONIC); nap = (struct timespec){0, 30000000}; SHOW(nanosleep(&nap, 0)); ABOUT("nanosleep", now(CLOCK_MONOTONIC) - start, 30000000);
    start = now(CLOCK_REALTIME); usleep(20000); ABOUT("usleep", now(CLOCK_REALTIME) - start, 20000000);
    clock_gettime(CLOCK_MONOTONIC, &m); start = now(CLOCK_MONOTONIC); m.tv_nsec += 40000000; if (m.tv_nsec >= 1000000000) m.tv_nsec -= 1000000000, m.tv_sec++; SHOW(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &m, 0)); ABOUT("abstime", now(CLOCK_MONOTONIC) - start, 39000000);
    SHOW(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &m, 0)); clock_gettime(CLOCK_REALTIME, &m); m.tv_nsec = 0; m.tv_sec += 1; SHOW(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &m, 0)); TRUE(now(CLOCK_REALTIME) >= m.tv_sec * 1000000000LL);
    struct timespec wrong = {0, -1}; SHOW(nanosleep(&wrong, 0)); SHOW(nanosleep((void *)8, 0)); SHOW(clock_nanosleep(99, 0, &nap, 0)); SHOW(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &nap, 0)); SHOW(clock_gettime(99, &m)); SHOW(syscall(SYS_clock_gettime, 1, 8)); SHOW(clock_getres(1, &m)); printf("%ld\n", (long)m.tv_nsec); SHOW(clock_getres(CLOCK_MONOTONIC_COARSE, 0)); SHOW(clock_getres(99, 0)); SHOW(clock_settime(CLOCK_REALTIME, &m)); SHOW(clock_settime(CLOCK_MONOTONIC, &m));
    struct tms tms; TRUE(times(&tms) != -1); struct rusage u; SHOW(getrusage(RUSAGE_SELF, &u)); SHOW(getrusage(RUSAGE_CHILDREN, &u)); printf("%ld\n", (long)u.ru_utime.tv_sec); SHOW(getrusage(99, &u)); SHOW(getrusage(RUSAGE_THREAD, &u)); TRUE(u.ru_maxrss > 0);
    return 0;
}
