/* What processes have in common, and what is left of it when one of them ends or begins another
   program. */
#include "guest.h"
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

static const char *self;
static char stack[1 << 16] __attribute__((aligned(16)));

static int readable(int fd, int milliseconds) {
    struct pollfd in = {fd, POLLIN, 0};
    return poll(&in, 1, milliseconds) ? in.revents : 0;
}

/* -- what ends with its thread, whatever it was doing --------------------------------------- */

static void *open_fifo(void *unused) { return (void *)(long)open("fifo", O_WRONLY); }

static void ends_of_waits(void) {
    SHOW(mkfifo("fifo", 0600));
    for (int how = 0; how < 3; how++) {
        pid_t pid = fork();
        if (!pid) {
            pthread_t thread;
            if (how == 2) open_fifo(0);
            pthread_create(&thread, 0, open_fifo, 0);
            usleep(20000);
            if (how == 0) _exit(0);
            execl(self, self, "nothing", (char *)0);
        }
        if (how == 2) usleep(20000), kill(pid, SIGKILL);
        waitpid(pid, 0, 0);
        int fd = open("fifo", O_RDONLY | O_NONBLOCK);
        char byte;
        SHOW(read(fd, &byte, 1)); /* nobody has it open for writing */
        close(fd);
        SHOW(open("fifo", O_WRONLY | O_NONBLOCK));
    }
    unlink("fifo");
}

static pthread_mutex_t *mutex;
static void *take(void *unused) {
    pthread_mutex_lock(mutex);
    pause();
    return 0;
}
static void robust(void) {
    pthread_mutexattr_t kind;
    mutex = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(mutex, &kind);
    for (int how = 0; how < 3; how++) {
        if (!fork()) {
            pthread_t thread;
            if (how == 2) pthread_mutex_lock(mutex);
            pthread_create(&thread, 0, take, 0);
            if (how == 2) pthread_create(&thread, 0, take, 0);
            usleep(20000);
            if (how != 1) _exit(0);
            execl(self, self, "nothing", (char *)0);
        }
        wait(0);
        printf("%d: %s\n", how, strerrorname_np(pthread_mutex_trylock(mutex)));
        pthread_mutex_consistent(mutex);
        pthread_mutex_unlock(mutex);
    }
}

static int begin_other(void *unused) {
    execl(self, self, "pause", (char *)0);
    _exit(1);
}
static void shared_tables(void) {
    int ends[2];
    pipe2(ends, O_CLOEXEC);
    int told[2];
    pipe(told);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        pid_t child = clone(begin_other, stack + sizeof stack, CLONE_FILES | SIGCHLD, 0);
        write(told[1], &child, sizeof child);
        usleep(50000);
        _exit(0);
    }
    close(ends[1]);
    pid_t child;
    read(told[0], &child, sizeof child);
    waitpid(pid, 0, 0);
    printf("hung up: %x\n", readable(ends[0], 1000)); /* with the table's last user */
    kill(child, SIGKILL);
    close(ends[0]);
}

int main(int argc, char **argv) {
    self = "/proc/self/exe";
    setvbuf(stdout, 0, _IOLBF, 0);
    if (argc > 1 && !strcmp(argv[1], "nothing")) return 0;
    if (argc > 1 && !strcmp(argv[1], "pause")) return pause();
    alarm(20);
    ends_of_waits();
    robust();
    shared_tables();
    return 0;
}
