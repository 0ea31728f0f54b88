/* RLIMIT_CPU: a signal at the soft limit and each second behind it, the end at the hard one. */
#include "guest.h"
#include <sys/resource.h>
#include <sys/wait.h>
static volatile int got;
static void count(int number) { got++; }
static void spin(int until) { while (got < until) ; }
static void ended(const char *what, pid_t pid) {
    int status;
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status)) printf("%s: signal %d\n", what, WTERMSIG(status));
    else printf("%s: exit %d\n", what, WEXITSTATUS(status));
    fflush(stdout);
}
int main(void) {
    struct rlimit core = {0, 0}, limit;
    setrlimit(RLIMIT_CORE, &core);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        signal(SIGXCPU, count);
        limit = (struct rlimit){1, 3};
        SHOW(setrlimit(RLIMIT_CPU, &limit));
        spin(1);
        getrlimit(RLIMIT_CPU, &limit);
        printf("%ld %ld\n", (long)limit.rlim_cur, (long)limit.rlim_max);
        fflush(stdout);
        if (!fork()) { /* its own time begins anew, with the limit as it is now */
            spin(2);
            _exit(7);
        }
        int status;
        wait(&status);
        printf("child: %d\n", WEXITSTATUS(status));
        fflush(stdout);
        spin(99);
    }
    ended("hard", pid);
    pid = fork();
    if (!pid) {
        limit = (struct rlimit){1, RLIM_INFINITY};
        setrlimit(RLIMIT_CPU, &limit);
        spin(1);
    }
    ended("soft", pid);
    pid = fork();
    if (!pid) {
        limit = (struct rlimit){1, 1};
        setrlimit(RLIMIT_CPU, &limit);
        usleep(1200000); /* sleeping takes none */
        puts("slept");
        fflush(stdout);
        limit.rlim_cur = 0;
        setrlimit(RLIMIT_CPU, &limit);
        spin(1);
    }
    ended("both", pid);
    return 0;
}
