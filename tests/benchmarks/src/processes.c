/* What threads and processes cost: processes WHAT COUNT [THREADS], or fork COUNT [MEGABYTES]. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static long count;

__attribute__((noinline)) long work(long n)
{
    __asm__ volatile("nop\n nop\n nop\n nop\n nop" : "+r"(n));
    return n;
}

static void *yields(void *unused)
{
    for (long turn = 0; turn < count; turn++) sched_yield();
    return unused;
}

static void *calls(void *n)
{
    for (long turn = 0; turn < count; turn++) work((long)n);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argv[1];
    int threads = argc > 3 ? atoi(argv[3]) : 1;
    pthread_t others[64];
    count = atol(argv[2]);
    if (!strcmp(what, "fork")) {
        long size = argc > 3 ? atol(argv[3]) << 20 : 2 << 20;
        char *memory = malloc(size);
        memset(memory, 1, size);
        for (long turn = 0; turn < count; turn++) {
            int pid = fork();
            if (!pid) _exit(memory[turn] - 1);
            waitpid(pid, 0, 0);
        }
        return 0;
    }
    void *(*run)(void *) = strcmp(what, "yield") ? calls : yields;
    for (long n = 0; n < threads; n++) pthread_create(&others[n], 0, run, (void *)n);
    for (int n = 0; n < threads; n++) pthread_join(others[n], 0);
    return 0;
}
