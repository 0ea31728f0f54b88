/* Threads that compute and share: a lock, and a word that is not locked. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static long locked, unlocked;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

static void *work(void *turns) {
    long sum = 0;
    for (long turn = 0; turn < (long)turns; turn++) {
        sum += fib(8);
        pthread_mutex_lock(&mutex);
        locked++;
        pthread_mutex_unlock(&mutex);
        long seen = unlocked;
        fib(4);
        unlocked = seen + 1;
    }
    return (void *)sum;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 4;
    long turns = argc > 2 ? atol(argv[2]) : 200, sum = 0;
    pthread_t threads[64];
    for (int t = 0; t < count; t++) pthread_create(&threads[t], 0, work, (void *)turns);
    for (int t = 0; t < count; t++) {
        void *result;
        pthread_join(threads[t], &result);
        sum += (long)result;
    }
    printf("%ld %ld\n", locked, sum);
    return unlocked != count * turns;
}
