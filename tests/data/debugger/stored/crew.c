#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CREW 3
#define JOBS 9

enum job_kind { PAINT, WELD = 4, INSPECT };

struct job {
    int number;
    enum job_kind kind;
    double hours;
    char label[16];
    struct job *next;
};

struct worker {
    pthread_t thread;
    int id;
    unsigned done : 7;
    unsigned busy : 1;
    double hours;
    const char *name;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t turn_changed;
    struct job *head;
    int turn;
    int left;
} board = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0, 0};

static struct worker crew[CREW] = {
    {.id = 0, .name = "ann"}, {.id = 1, .name = "ben"}, {.id = 2, .name = "cid"}};
static pthread_barrier_t gate;
static double total_hours;
static __thread int finished;
static __thread const struct job *current;

static struct job *add_job(int number, enum job_kind kind, double hours)
{
    struct job *job = calloc(1, sizeof *job);
    job->number = number;
    job->kind = kind;
    job->hours = hours;
    snprintf(job->label, sizeof job->label, "job-%d", number);
    job->next = board.head;
    board.head = job;
    board.left++;
    return job;
}

static struct job *take(struct worker *self)
{
    pthread_mutex_lock(&board.lock);
    while (board.turn != self->id)
        pthread_cond_wait(&board.turn_changed, &board.lock);
    struct job *job = board.head;
    if (job != NULL) {
        board.head = job->next;
        board.left--;
    }
    return job;
}

static void pass(struct worker *self)
{
    board.turn = (self->id + 1) % CREW;
    pthread_cond_broadcast(&board.turn_changed);
    pthread_mutex_unlock(&board.lock);
}

static double perform(struct worker *self, struct job *job)
{
    double spent = job->hours * (job->kind == WELD ? 1.5 : 1.0);
    current = job;
    self->hours += spent;
    self->done++;
    finished++;
    total_hours += spent;
    return spent;
}

static void *work(void *argument)
{
    struct worker *self = argument;
    struct job *job;
    pthread_setname_np(pthread_self(), self->name);
    pthread_barrier_wait(&gate);
    do {
        job = take(self);
        if (job != NULL) {
            self->busy = 1;
            perform(self, job);
            self->busy = 0;
            free(job);
        }
        pass(self);
    } while (job != NULL);
    return (void *)(long)self->done;
}

static int report(const char *title, double hours)
{
    errno = 0;
    int length = printf("%s: %.1f hours\n", title, hours);
    errno = ENOENT;
    return length;
}

int main(void)
{
    pthread_barrier_init(&gate, NULL, CREW + 1);
    for (int i = JOBS; i > 0; i--)
        add_job(i, i % 3 == 0 ? WELD : PAINT, i * 0.5);
    for (int i = 0; i < CREW; i++)
        pthread_create(&crew[i].thread, NULL, work, &crew[i]);
    pthread_barrier_wait(&gate);
    long sum = 0;
    for (int i = 0; i < CREW; i++) {
        void *done;
        pthread_join(crew[i].thread, &done);
        sum += (long)done;
    }
    report("crew", total_hours);
    return sum == JOBS ? 0 : 1;
}
