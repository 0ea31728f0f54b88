/* Requeueing to priority-inheriting locks. */
#include "guest.h"
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>

static uint32_t word, lock, other;
static long futex(void *address, int op, uint32_t value, void *timeout, void *second, uint32_t extra) {
    return syscall(SYS_futex, address, op, value, timeout, second, extra);
}
#define WAIT FUTEX_WAIT_REQUEUE_PI
#define MOVE FUTEX_CMP_REQUEUE_PI

static void calls(void) {
    static const int flags[] = {0, FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME,
                                FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME};
    struct timespec zero = {0, 0}, negative = {-1, 0}, large = {0, 1000000000};
    void *addresses[] = {&word, (char *)&word + 1, (void *)8, 0, &lock};
    for (int f = 0; f < 4; f++)
        for (int a = 0; a < 5; a++) {
            printf("flags %x address %d\n", flags[f], a);
            word = lock = 0;
            SHOW(futex(addresses[a], WAIT | flags[f], 1, &zero, &lock, 0));
            SHOW(futex(addresses[a], WAIT | flags[f], 0, &zero, &lock, 0));
            SHOW(futex(&lock, WAIT | flags[f], 1, &zero, addresses[a], 0));
            SHOW(futex(&other, WAIT | flags[f], 0, &zero, addresses[a], 0));
            SHOW(futex(&other, WAIT | flags[f], 0, &negative, addresses[a], 0));
            SHOW(futex(&other, WAIT | flags[f], 0, &large, addresses[a], 0));
            SHOW(futex(&other, WAIT | flags[f], 0, (void *)8, addresses[a], 0));
            for (long wake = -1; wake < 3; wake++)
                for (long move = -1; move < 2; move++) {
                    SHOW(futex(addresses[a], MOVE | flags[f], wake, (void *)move, &other, 0));
                    SHOW(futex(&other, MOVE | flags[f], wake, (void *)move, addresses[a], 0));
                    SHOW(futex(addresses[a], MOVE | flags[f], wake, (void *)move, &other, 7));
                }
        }
    printf("%x %x %x\n", word, lock, other);
}

static volatile int waiting, ended, taken, results[4], tids[4], owned[4], others[4], order[4], unlocked[4];
static struct timespec *limit;
static int operation;
static void *waiter(void *argument) {
    long number = (long)argument;
    tids[number] = syscall(SYS_gettid);
    __sync_fetch_and_add(&waiting, 1);
    int result = futex(&word, operation, 0, limit, &lock, 0) < 0 ? errno : 0;
    results[number] = result;
    if (!result && operation == WAIT) {
        owned[number] = (lock & FUTEX_TID_MASK) == tids[number];
        others[number] = (lock & FUTEX_WAITERS) != 0;
        order[number] = taken++;
        unlocked[number] = futex(&lock, FUTEX_UNLOCK_PI, 0, 0, 0, 0);
    }
    __sync_fetch_and_add(&ended, 1);
    return 0;
}
static pthread_t threads[4];
static void begin(int count, int how) {
    waiting = ended = taken = 0;
    operation = how;
    for (long n = 0; n < count; n++) {
        pthread_create(&threads[n], 0, waiter, (void *)n);
        while (waiting <= n) poll(0, 0, 1);
        poll(0, 0, 20); /* it has gone to sleep */
    }
}
static void finish(int count) {
    for (int n = 0; n < count; n++) pthread_join(threads[n], 0);
    for (int n = 0; n < count; n++) {
        printf("%s ", results[n] ? strerrorname_np(results[n]) : "0");
        if (!results[n] && operation == WAIT)
            printf("%d %d %d %d ", owned[n], others[n], order[n], unlocked[n]);
    }
    printf("lock %s\n", lock ? "taken" : "free");
}

static void moves(void) {
    struct timespec soon, now;
    printf("a free lock\n");
    lock = 0;
    begin(3, WAIT);
    SHOW(futex(&word, FUTEX_WAKE, 1, 0, 0, 0));
    SHOW(futex(&word, FUTEX_REQUEUE, 1, (void *)1, &other, 0));
    SHOW(futex(&word, MOVE, 1, (void *)5, &other, 0));
    SHOW(futex(&word, MOVE, 1, (void *)5, &lock, 0));
    finish(3);
    printf("a lock of one's own\n");
    SHOW(futex(&lock, FUTEX_LOCK_PI, 0, 0, 0, 0));
    begin(3, WAIT);
    SHOW(futex(&word, MOVE, 1, (void *)0, &lock, 0));
    SHOW(futex(&word, MOVE, 1, (void *)1, &lock, 0));
    SHOW(futex(&word, MOVE, 1, (void *)1, &lock, 0));
    SHOW(futex(&lock, FUTEX_WAKE, 1, 0, 0, 0));
    SHOW(futex(&lock, FUTEX_REQUEUE, 1, (void *)1, &other, 0));
    TRUE(lock == (syscall(SYS_gettid) | FUTEX_WAITERS));
    SHOW(futex(&lock, FUTEX_UNLOCK_PI, 0, 0, 0, 0));
    finish(3);
    printf("one at a time\n");
    begin(2, WAIT);
    SHOW(futex(&word, MOVE, 1, (void *)0, &lock, 0));
    while (ended < 1) poll(0, 0, 1);
    SHOW(futex(&word, MOVE, 1, (void *)0, &lock, 0));
    finish(2);
    printf("who waits for no lock\n");
    begin(1, FUTEX_WAIT);
    SHOW(futex(&word, MOVE, 1, (void *)1, &lock, 0));
    SHOW(futex(&word, FUTEX_WAKE, 1, 0, 0, 0));
    finish(1);
    printf("time\n");
    clock_gettime(CLOCK_MONOTONIC, &soon);
    soon.tv_nsec += 500000000; /* a busy machine starts two threads in that, too */
    if (soon.tv_nsec >= 1000000000) soon.tv_nsec -= 1000000000, soon.tv_sec++;
    limit = &soon;
    SHOW(futex(&lock, FUTEX_LOCK_PI, 0, 0, 0, 0));
    begin(2, WAIT);
    SHOW(futex(&word, MOVE, 1, (void *)0, &lock, 0));
    finish(2);
    SHOW(futex(&lock, FUTEX_UNLOCK_PI, 0, 0, 0, 0));
    limit = 0;
    printf("the owner among those who wait\n");
    begin(1, WAIT);
    lock = tids[0];
    SHOW(futex(&word, MOVE, 1, (void *)0, &lock, 0));
    lock = 4000000;
    SHOW(futex(&word, MOVE, 1, (void *)0, &lock, 0));
    lock = 0;
    SHOW(futex(&word, MOVE, 1, (void *)0, &lock, 0));
    finish(1);
}

static volatile int handled;
static void handler(int number) { handled++; }
static void interrupted(void) {
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, 0);
    printf("a signal before\n");
    begin(1, WAIT);
    pthread_kill(threads[0], SIGUSR1);
    while (!handled) poll(0, 0, 1);
    poll(0, 0, 20);
    printf("ended %d\n", ended);
    SHOW(futex(&word, MOVE, 1, (void *)0, &lock, 0));
    finish(1);
    printf("a signal when the word has changed\n");
    begin(1, WAIT);
    word = 1;
    pthread_kill(threads[0], SIGUSR1);
    finish(1);
    word = 0;
    printf("a signal after\n");
    SHOW(futex(&lock, FUTEX_LOCK_PI, 0, 0, 0, 0));
    begin(1, WAIT);
    SHOW(futex(&word, MOVE, 1, (void *)0, &lock, 0));
    pthread_kill(threads[0], SIGUSR1);
    finish(1);
    SHOW(futex(&lock, FUTEX_UNLOCK_PI, 0, 0, 0, 0));
    printf("handled %d\n", handled);
}

int main(void) {
    calls();
    moves();
    interrupted();
    return 0;
}
