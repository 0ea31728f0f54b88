#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN 12
#define SQUARE(x) ((x) * (x))

typedef enum { IDLE, READY = 5, RUNNING, DONE = 0x20 } state_t;

typedef struct packet {
    uint8_t version : 4;
    uint8_t header : 4;
    uint16_t length;
    int flags : 3;
    unsigned urgent : 1;
} packet_t;

union word {
    uint32_t whole;
    uint8_t bytes[4];
    float real;
    struct {
        uint16_t low;
        uint16_t high;
    } half;
};

struct task;
typedef int (*work_fn)(struct task *, int);

struct task {
    char name[NAME_MAX_LEN];
    state_t state;
    work_fn work;
    union word word;
    packet_t packet;
    struct task *next;
};

struct queue {
    struct task *head;
    struct task **tail;
    size_t count;
    volatile sig_atomic_t ticks;
};

static struct queue jobs = {NULL, &jobs.head, 0, 0};
static jmp_buf escape;
int history[8];
const char *levels[] = {"low", "mid", "high", NULL};
long double precise = 1.25L;
_Bool verbose = 1;
static unsigned char pattern[16] = {0xde, 0xad, 0xbe, 0xef, 'o', 'k', 0, 1};

static void on_signal(int number)
{
    jobs.ticks++;
    if (number == SIGUSR2)
        longjmp(escape, number);
}

static int factorial(int n)
{
    if (n <= 1)
        return 1;
    int below = factorial(n - 1);
    return n * below;
}

static int count_bits(struct task *task, int salt)
{
    unsigned value = task->word.whole ^ salt;
    int bits = 0;
    while (value) {
        bits += value & 1;
        value >>= 1;
    }
    return bits;
}

static int grow(struct task *task, int by)
{
    static int calls;
    calls++;
    task->packet.length += by;
    return task->packet.length;
}

static struct task *push(struct queue *queue, const char *name, work_fn work, uint32_t whole)
{
    struct task *task = calloc(1, sizeof *task);
    strncpy(task->name, name, sizeof task->name - 1);
    task->state = READY;
    task->work = work;
    task->word.whole = whole;
    task->packet.version = 4;
    task->packet.header = 5;
    task->packet.flags = -2;
    *queue->tail = task;
    queue->tail = &task->next;
    queue->count++;
    return task;
}

static int run_all(struct queue *queue)
{
    int total = 0;
    int i = 0;
    for (struct task *task = queue->head; task; task = task->next) {
        task->state = RUNNING;
        int result = task->work(task, i);
        history[i++] = result;
        total += result;
        task->state = DONE;
    }
    return total;
}

static struct task *reverse(struct task *list)
{
    struct task *done = NULL;
    while (list) {
        struct task *next = list->next;
        list->next = done;
        done = list;
        list = next;
    }
    return done;
}

int main(int argc, char **argv)
{
    char line[32];
    struct task *first = push(&jobs, "checksum", count_bits, 0x40490fdb);
    push(&jobs, "resize", grow, 7);
    push(&jobs, "a very long name", count_bits, 0xffff);
    int total = run_all(&jobs);
    int fact = factorial(5);
    signal(SIGUSR1, on_signal);
    signal(SIGUSR2, on_signal);
    raise(SIGUSR1);
    int jumped = setjmp(escape);
    if (jumped == 0)
        raise(SIGUSR2);
    jobs.head = reverse(jobs.head);
    snprintf(line, sizeof line, "%d %d %d %s", total, fact, jumped, levels[1]);
    puts(line);
    first = jobs.head->next->next->next;
    if (argc > 5)
        first->state = IDLE;
    printf("%d\n", first ? first->state : SQUARE(argc));
    return (int)(total + pattern[0] * 0 + verbose * 0 + (precise > 2)) & 0x7f;
}
