#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int hits;
static void on(int number) { hits += number; }
static int mul(int a, int b) { return a * b + hits; }
int main(void)
{
    signal(SIGUSR1, on);
    raise(SIGUSR1);
    hits += mul(2, 3);
    syscall(SYS_getppid);
    pid_t child = fork();
    if (!child) { execl("/bin/true", "true", (char *)0); _exit(9); }
    waitpid(child, 0, 0);
    raise(SIGUSR1);
    int *bad = (int *)8;
    printf("hits %d\n", hits);
    fflush(stdout);
    *bad = 1;
    return 0;
}
