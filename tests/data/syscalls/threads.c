/* Threads: futex, robust and priority-inheriting locks, signals to threads, their ends. */
#include "guest.h"
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/wait.h>

static uint32_t word, other;
static long futex(void *address, int op, uint32_t value, void *timeout, void *second, uint32_t extra) {
    return syscall(SYS_futex, address, op, value, timeout, second, extra);
}

/* Every operation with right and wrong arguments; none may block for long. */
static void calls(void) {
    static const int operations[] = {FUTEX_WAIT, FUTEX_WAKE, FUTEX_FD, FUTEX_REQUEUE, FUTEX_CMP_REQUEUE,
                                     FUTEX_WAKE_OP, FUTEX_LOCK_PI, FUTEX_UNLOCK_PI, FUTEX_TRYLOCK_PI,
                                     FUTEX_WAIT_BITSET, FUTEX_WAKE_BITSET, 14, 99};
    static const int flags[] = {0, FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME,
                                FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME};
    struct timespec zero = {0, 0}, negative = {-1, 0}, large = {0, 1000000000};
    void *addresses[] = {&word, (char *)&word + 1, (void *)8, 0};
    for (unsigned o = 0; o < sizeof operations / sizeof *operations; o++)
        for (unsigned f = 0; f < 4; f++)
            for (unsigned a = 0; a < 4; a++) {
                int op = operations[o] | flags[f];
                int waits = operations[o] == FUTEX_WAIT || operations[o] == FUTEX_WAIT_BITSET ||
                            operations[o] == FUTEX_LOCK_PI;
                printf("op %d address %u: ", op, a);
                word = 0;
                SHOW(futex(addresses[a], op, 1, waits ? &zero : 0, &other, 1));
                if (!waits) continue;
                word = 0;
                printf("the value: ");
                SHOW(futex(addresses[a], op, 0, &zero, &other, 0xffffffff));
                word = 0;
                SHOW(futex(addresses[a], op, 0, &negative, &other, 1));
                SHOW(futex(addresses[a], op, 0, &large, &other, 1));
                SHOW(futex(addresses[a], op, 0, (void *)8, &other, 1));
            }
    word = 0;
    for (int counts = 0; counts < 9; counts++) {
        int wake = counts % 3 - 1, move = counts / 3 - 1;
        SHOW(futex(&word, FUTEX_REQUEUE, wake, (void *)(long)move, &other, 0));
        SHOW(futex(&word, FUTEX_CMP_REQUEUE, wake, (void *)(long)move, &other, 0));
        SHOW(futex(&word, FUTEX_CMP_REQUEUE, wake, (void *)(long)move, &other, 5));
    }
    SHOW(futex(&word, FUTEX_REQUEUE, 1, (void *)1, (void *)8, 0));
    SHOW(futex(&word, FUTEX_REQUEUE, 1, (void *)1, (char *)&other + 2, 0));
    SHOW(futex(&word, FUTEX_WAKE_BITSET, 1, 0, 0, 0));
    SHOW(futex(&word, FUTEX_WAIT_BITSET, 0, &zero, 0, 0));
    for (int op = 0; op < 8; op++)
        for (int compare = 0; compare < 8; compare++)
            for (int shift = 0; shift < 2; shift++) {
                uint32_t code = (uint32_t)(shift << 3 | op) << 28 | compare << 24 | 5 << 12 | 0xfff;
                other = 0xf0f0;
                printf("wake_op %x ", code);
                SHOW(futex(&word, FUTEX_WAKE_OP, 1, (void *)1, &other, code));
                printf("%x\n", other);
            }
    word = syscall(SYS_gettid);
    SHOW(futex(&word, FUTEX_LOCK_PI, 0, 0, 0, 0));
    SHOW(futex(&word, FUTEX_TRYLOCK_PI, 0, 0, 0, 0));
    SHOW(futex(&word, FUTEX_UNLOCK_PI, 0, 0, 0, 0));
    printf("%u\n", word);
    word = 4000000;
    SHOW(futex(&word, FUTEX_LOCK_PI, 0, 0, 0, 0));
    SHOW(futex(&word, FUTEX_UNLOCK_PI, 0, 0, 0, 0));
    word = 0;
    SHOW(futex(&word, FUTEX_LOCK_PI, 0, 0, 0, 0));
    TRUE(word == syscall(SYS_gettid));
    SHOW(futex(&word, FUTEX_UNLOCK_PI, 0, 0, 0, 0));
    struct { void *next; long offset; void *pending; } head, *found;
    size_t size;
    SHOW(syscall(SYS_set_robust_list, &head, 8));
    SHOW(syscall(SYS_get_robust_list, 99999, &found, &size));
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static int ready, total;
static sem_t semaphore;

static void *consumer(void *argument) {
    pthread_mutex_lock(&mutex);
    while (!ready) pthread_cond_wait(&condition, &mutex);
    total++;
    pthread_mutex_unlock(&mutex);
    pthread_barrier_wait(&barrier);
    sem_post(&semaphore);
    return (char *)argument + 1;
}

static void together(void) {
    pthread_t threads[5];
    pthread_barrier_init(&barrier, 0, 5);
    sem_init(&semaphore, 0, 0);
    for (long t = 0; t < 5; t++) pthread_create(&threads[t], 0, consumer, (void *)t);
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    long sum = 0;
    for (int t = 0; t < 5; t++) {
        void *result;
        sem_wait(&semaphore);
        printf("%d", pthread_join(threads[t], &result));
        sum += (long)result;
    }
    printf(" %ld %d\n", sum, total);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 1000000;
    if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
    pthread_mutex_lock(&mutex);
    printf("timed wait: %d\n", pthread_cond_timedwait(&condition, &mutex, &until));
    printf("timed lock: %d\n", pthread_mutex_timedlock(&mutex, &until));
    pthread_mutex_unlock(&mutex);
    printf("semaphore: %d\n", sem_timedwait(&semaphore, &until) ? errno : 0);
}

static void *lock_and_leave(void *lock) {
    pthread_mutex_lock(lock);
    return 0;
}

static void robust(void) {
    for (int kind = 0; kind < 4; kind++) {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
        if (kind & 1) pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
        if (kind & 2) pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_mutex_t *lock = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        printf("robust %d: %d ", kind, pthread_mutex_init(lock, &attributes));
        pthread_t thread;
        pthread_create(&thread, 0, lock_and_leave, lock);
        pthread_join(thread, 0);
        printf("%d ", pthread_mutex_lock(lock));
        printf("%d ", pthread_mutex_consistent(lock));
        printf("%d ", pthread_mutex_unlock(lock));
        if (kind & 2) {
            fflush(stdout);
            if (!fork()) {
                pthread_mutex_lock(lock);
                _exit(0);
            }
            wait(0);
            printf("%d ", pthread_mutex_lock(lock));
            printf("%d ", pthread_mutex_unlock(lock));
            printf("%d", pthread_mutex_lock(lock));
        }
        printf("\n");
        munmap(lock, PAGE);
    }
}

static pthread_mutex_t inheriting;
static long counted;
static void *counter(void *unused) {
    for (int turn = 0; turn < 2000; turn++) {
        pthread_mutex_lock(&inheriting);
        counted++;
        pthread_mutex_unlock(&inheriting);
    }
    return 0;
}

static void inheritance(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&inheriting, &attributes);
    pthread_t threads[3];
    for (int t = 0; t < 3; t++) pthread_create(&threads[t], 0, counter, 0);
    for (int t = 0; t < 3; t++) pthread_join(threads[t], 0);
    printf("inheriting: %ld\n", counted);
}

static struct shared {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int turn;
} *table;

static void between_processes(void) {
    pthread_mutexattr_t of_lock;
    pthread_condattr_t of_condition;
    table = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_init(&of_lock);
    pthread_mutexattr_setpshared(&of_lock, PTHREAD_PROCESS_SHARED);
    pthread_condattr_init(&of_condition);
    pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&table->lock, &of_lock);
    pthread_cond_init(&table->changed, &of_condition);
    fflush(stdout);
    int mine = fork() ? 0 : 1;
    for (int round = 0; round < 20; round++) {
        pthread_mutex_lock(&table->lock);
        while (table->turn % 2 != mine) pthread_cond_wait(&table->changed, &table->lock);
        table->turn++;
        pthread_cond_signal(&table->changed);
        pthread_mutex_unlock(&table->lock);
    }
    if (mine) _exit(0);
    wait(0);
    printf("turns: %d\n", table->turn);
}

static volatile sig_atomic_t seen;
static pthread_t handled_by;
static void on_signal(int number) {
    seen = number;
    handled_by = pthread_self();
}

static void *sleeper(void *unused) {
    sigset_t none;
    sigemptyset(&none);
    pthread_barrier_wait(&barrier);
    return (void *)(long)(sigsuspend(&none) ? errno : 0);
}
static void *waiter(void *unused) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    int number = 0;
    pthread_barrier_wait(&barrier);
    sigwait(&set, &number);
    return (void *)(long)number;
}

static void signals_to_threads(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    signal(SIGUSR1, on_signal);
    pthread_t one, two;
    void *result;
    pthread_barrier_init(&barrier, 0, 3);
    pthread_create(&one, 0, sleeper, 0);
    pthread_create(&two, 0, waiter, 0);
    pthread_barrier_wait(&barrier);
    pthread_kill(one, SIGUSR1);
    pthread_join(one, &result);
    printf("suspended: %ld, signal %d\n", (long)result, seen);
    TRUE(pthread_equal(handled_by, one));
    kill(getpid(), SIGUSR2);
    pthread_join(two, &result);
    printf("waited for: %ld\n", (long)result);
    raise(SIGUSR1);
    sigset_t pending;
    sigpending(&pending);
    TRUE(sigismember(&pending, SIGUSR1));
    pthread_sigmask(SIG_UNBLOCK, &set, 0);
    TRUE(pthread_equal(handled_by, pthread_self()));
    signal(SIGUSR1, SIG_DFL);
}

static void *endless(void *unused) {
    for (;;) pause();
}
static void *spinning(void *unused) {
    for (volatile long turns = 0;; turns++) pthread_testcancel();
}
static void cleanup(void *text) { printf("cleaned up: %s\n", (char *)text); }
static void *cleaned(void *unused) {
    pthread_cleanup_push(cleanup, "at the end");
    pthread_exit((void *)5);
    pthread_cleanup_pop(1);
    return 0;
}

static void *late(void *unused) {
    struct timespec moment = {0, 20000000};
    nanosleep(&moment, 0);
    return 0;
}

static void ends(void) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, 0, endless, 0);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    TRUE(result == PTHREAD_CANCELED);
    pthread_create(&thread, 0, spinning, 0);
    sched_yield();
    pthread_cancel(thread);
    pthread_join(thread, &result);
    TRUE(result == PTHREAD_CANCELED);
    pthread_create(&thread, 0, cleaned, 0);
    pthread_join(thread, &result);
    printf("%ld\n", (long)result);
    static void (*const bodies[])(void) = {0};
    for (int way = 0; way < 5; way++) {
        int status;
        fflush(stdout);
        pid_t pid = fork();
        if (!pid) {
            pthread_create(&thread, 0, way == 1 ? endless : cleaned, 0);
            if (way == 0) pthread_exit(0);
            if (way == 1) _exit(9);
            if (way == 2) abort();
            if (way == 3) {
                pthread_join(thread, 0);
                pthread_create(&thread, 0, late, 0);
                syscall(SYS_exit, 21);
            }
            execl("/proc/self/exe", "exec", (char *)0);
        }
        waitpid(pid, &status, 0);
        printf("way %d: %s %d\n", way, WIFEXITED(status) ? "exited" : "killed",
               WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    }
}

static void *from_thread(void *unused) {
    pid_t pid = fork();
    if (!pid) {
        TRUE(syscall(SYS_gettid) == getpid());
        fflush(stdout);
        _exit(3);
    }
    int status;
    waitpid(pid, &status, 0);
    return (void *)(long)WEXITSTATUS(status);
}
static void *exec_from_thread(void *unused) {
    execl("/proc/self/exe", "exec", (char *)0);
    return 0;
}

static void forks(void) {
    pthread_t thread;
    void *result;
    int status;
    fflush(stdout);
    pthread_create(&thread, 0, from_thread, 0);
    pthread_join(thread, &result);
    printf("forked in a thread: %ld\n", (long)result);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        pthread_create(&thread, 0, exec_from_thread, 0);
        pthread_join(thread, 0);
        _exit(1);
    }
    TRUE(waitpid(pid, &status, 0) == pid);
    printf("exec in a thread: %d\n", WEXITSTATUS(status));
}

static __thread int local = 4;
static void *thread_local_word(void *unused) {
    local += 3;
    return (void *)(long)local;
}

static void scheduling(void) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, 0, thread_local_word, 0);
    pthread_join(thread, &result);
    printf("thread local: %ld %d\n", (long)result, local);
    SHOW(sched_yield());
    SHOW(syscall(SYS_sched_getscheduler, 99999));
    SHOW(syscall(SYS_sched_getscheduler, -1));
    TRUE(syscall(SYS_gettid) == getpid());
}

int main(int argc, char **argv) {
    if (argc == 1 && !strcmp(argv[0], "exec")) return 17;
    calls();
    together();
    robust();
    inheritance();
    between_processes();
    signals_to_threads();
    ends();
    forks();
    scheduling();
    return 0;
}
