#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define WORKERS 3
#define ROUNDS 4

typedef struct {
    int id;
    long done;
    int history[ROUNDS];
} worker_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t gate;
static worker_t workers[WORKERS];
static long total;
static int stop_at = 2;
static __thread int mine;

static void note(worker_t *self, int round)
{
    pthread_mutex_lock(&lock);
    self->history[round] = self->id * 10 + round;
    self->done++;
    total += self->history[round];
    pthread_mutex_unlock(&lock);
}

static void *work(void *argument)
{
    worker_t *self = argument;
    mine = self->id;
    pthread_barrier_wait(&gate);
    for (int round = 0; round < ROUNDS; round++) {
        note(self, round);
        mine++;
    }
    pthread_barrier_wait(&gate);
    return (void *)self->done;
}

static long collect(pthread_t *threads)
{
    long sum = 0;
    for (int i = 0; i < WORKERS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (long)result;
    }
    return sum;
}

int main(void)
{
    pthread_t threads[WORKERS];
    pthread_barrier_init(&gate, NULL, WORKERS + 1);
    for (int i = 0; i < WORKERS; i++) {
        workers[i].id = i + 1;
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    mine = -1;
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
    long sum = collect(threads);
    printf("%ld rounds, total %ld\n", sum, total);
    return 0;
}
