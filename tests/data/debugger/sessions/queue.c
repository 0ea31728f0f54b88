/* A queue of jobs with macros, a callback, recursion and a function that ends in a jump. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CAPACITY 6
#define NAME_SIZE 16
#define GREETING "queue"
#define SQUARE(x) ((x) * (x))
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define LIMIT (CAPACITY * 2 + 1)
#define IS_FULL(q) ((q)->count == CAPACITY)
#define MASK 0xf0u
#define LETTER 'q'

typedef enum { IDLE, WAITING = 3, DONE } state_t;

typedef struct job {
    int id;
    char name[NAME_SIZE];
    state_t state;
    double cost;
    struct job *next;
} job_t;

struct queue {
    job_t *head, *tail;
    int count;
    uint8_t log[8];
};

typedef void (*visit_t)(job_t *job, void *data);

static struct queue pending;
int primes[10] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29};
int grid[2][3] = {{1, 2, 3}, {4, 5, 6}};
char *colours[4] = {"red", "green", "blue", NULL};
const char banner[] = "All jobs";
float factors[3] = {1.5f, -0.25f, 1e-3f};
unsigned long long big = 0xfedcba9876543210ULL;
short small = -2;
volatile sig_atomic_t interrupts;
volatile int sink;

__attribute__((noinline)) static int last_link(int n)
{
    sink = n;
    return n * 3 + sink;
}

__attribute__((noinline)) int middle_link(int n)
{
    sink += 2;
    return last_link(n + 1);
}

__attribute__((noinline)) int first_link(int n)
{
    int result = middle_link(n * 2);
    return result + 1;
}

__attribute__((noinline)) job_t *push(struct queue *q, const char *name, double cost)
{
    job_t *job;

    if (IS_FULL(q))
        return NULL;
    job = malloc(sizeof *job);
    memset(job, 0, sizeof *job);
    job->id = q->count + 1;
    strncpy(job->name, name, sizeof job->name - 1);
    job->state = WAITING;
    job->cost = cost;
    if (q->tail)
        q->tail->next = job;
    else
        q->head = job;
    q->tail = job;
    q->log[q->count++] = (uint8_t)job->id;
    return job;
}

static void add_cost(job_t *job, void *data)
{
    double *total = data;
    *total += job->cost;
    job->state = DONE;
}

__attribute__((noinline)) void each(struct queue *q, visit_t visit, void *data)
{
    for (job_t *job = q->head; job != NULL; job = job->next)
        visit(job, data);
}

__attribute__((noinline)) unsigned long factorial(unsigned n)
{
    if (n <= 1)
        return 1;
    return n * factorial(n - 1);
}

static void on_signal(int number)
{
    interrupts++;
}

int main(int argc, char *argv[])
{
    double total = 0.0;
    unsigned long product;
    int i, sum = 0;
    char *where = getenv("QUEUE_MODE");

    signal(SIGUSR1, on_signal);
    for (i = 0; i < 3; i++)
        push(&pending, colours[i], 1.5 * (i + 1));
    each(&pending, add_cost, &total);
    product = factorial(5);
    for (i = 0; i < 10; i++)
        sum += primes[i];
    raise(SIGUSR1);
    sum += first_link(4);
    printf("%s: %d jobs, %.2f, %lu, %d\n", GREETING, pending.count, total, product, sum);
    fflush(stdout);
    if (where && !strcmp(where, "crash"))
        *(volatile int *)0 = LARGER(sum, 3);
    return sum & MASK ? 0 : 2;
}
