/* Descriptors and working directories: in common, and each thread's own. */
#include "guest.h"
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/wait.h>

static const char *here(void) {
    static char text[256];
    return getcwd(text, sizeof text) ? text : "?";
}

static void flags(void) {
    static const unsigned long values[] = {
        0, CLONE_FILES, CLONE_FS, CLONE_SYSVSEM, CLONE_FILES | CLONE_FS | CLONE_SYSVSEM,
        CLONE_THREAD, CLONE_SIGHAND, CLONE_VM, CLONE_VFORK, CLONE_PARENT, CLONE_SETTLS, 0x80000000,
        1, SIGCHLD, CLONE_NEWUTS, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWPID,
        CLONE_NEWUTS | CLONE_PARENT, 1UL << 32, CLONE_NEWUTS | CLONE_FILES};
    for (unsigned n = 0; n < sizeof values / sizeof *values; n++) {
        printf("%lx ", values[n]);
        SHOW(syscall(SYS_unshare, values[n]));
    }
}

/* A thread that unshares, made with everything in common. */
static void *own_files(void *unused) {
    SHOW(unshare(CLONE_THREAD));
    SHOW(unshare(CLONE_SIGHAND));
    SHOW(unshare(CLONE_VM));
    SHOW(dup2(1, 50));
    SHOW(unshare(CLONE_FILES));
    SHOW(dup2(1, 51));
    SHOW(close(50));
    SHOW(fcntl(51, F_GETFD));
    SHOW(chdir("/"));
    SHOW(unshare(CLONE_FS));
    SHOW(chdir("/proc"));
    printf("thread in %s, umask %o\n", here(), umask(0111));
    return 0;
}

static void threads(void) {
    pthread_t thread;
    umask(022);
    pthread_create(&thread, 0, own_files, 0);
    pthread_join(thread, 0);
    SHOW(fcntl(50, F_GETFD));
    SHOW(fcntl(51, F_GETFD));
    printf("first in %s, umask %o\n", here(), umask(022));
    SHOW(close(50));
}

/* A pipe's end is closed with the table of the thread that has it alone. */
static int ends[2];
static void *keeps(void *unused) {
    unshare(CLONE_FILES);
    return 0;
}
static void closing(void) {
    pthread_t thread;
    char byte;
    pipe(ends);
    pthread_create(&thread, 0, keeps, 0);
    pthread_join(thread, 0);
    SHOW(close(ends[1]));
    SHOW(read(ends[0], &byte, 1));
    SHOW(close(ends[0]));
}

/* The first thread unshares: what exec and fork hand on is its own. */
static void *waits(void *arg) {
    char byte;
    read(*(int *)arg, &byte, 1);
    SHOW(fcntl(60, F_GETFD));
    return 0;
}
static void first(void) {
    pthread_t thread;
    int hold[2];
    pipe(hold);
    pthread_create(&thread, 0, waits, hold);
    SHOW(unshare(CLONE_FILES));
    SHOW(dup2(1, 60));
    pid_t pid = fork();
    if (!pid) _exit(fcntl(60, F_GETFD) == 0 ? 3 : 4);
    int status;
    waitpid(pid, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
    write(hold[1], "x", 1);
    pthread_join(thread, 0);
    SHOW(close(60));
    SHOW(close(hold[0]));
    SHOW(close(hold[1]));
}

/* Threads that are made with files and a directory of their own. */
static char stack[2][65536];
static volatile int done;
static int lone(void *arg) {
    long flags = (long)arg;
    syscall(SYS_dup3, 1, 70, 0);
    syscall(SYS_chdir, flags & CLONE_FS ? "/" : "/proc");
    done = 1;
    syscall(SYS_futex, &done, 1, 1, 0, 0, 0);
    return 0;
}
static void cloned(void) {
    static const long kinds[] = {0, CLONE_FILES, CLONE_FS, CLONE_FILES | CLONE_FS};
    chdir("/dev");
    for (unsigned n = 0; n < 4; n++) {
        long flags = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | kinds[n];
        done = 0;
        WORKS(clone(lone, stack[n & 1] + 65536, flags, (void *)flags));
        while (!done) syscall(SYS_futex, &done, 0, 0, 0, 0, 0);
        SHOW(fcntl(70, F_GETFD));
        printf("%s\n", here());
        close(70);
        usleep(1000);
    }
}

/* Another process with the same descriptors. */
static int borrows(void *arg) {
    SHOW(dup2(1, 80));
    SHOW(unshare(CLONE_FILES));
    SHOW(close(80));
    SHOW(chdir("/tmp"));
    SHOW(unshare(CLONE_FS));
    SHOW(chdir("/"));
    SHOW(unshare(CLONE_SIGHAND));
    SHOW(unshare(CLONE_VM));
    _exit(0);
}
static void processes(void) {
    int status;
    int borrower = clone(borrows, stack[0] + 65536, CLONE_FILES | CLONE_FS | SIGCHLD, 0);
    wait(&status); // both of them write
    WORKS(borrower);
    printf("ended %x\n", status);
    SHOW(fcntl(80, F_GETFD));
    printf("%s\n", here());
    close(80);
    WORKS(clone(borrows, stack[0] + 65536, CLONE_VM | CLONE_VFORK | CLONE_SIGHAND | SIGCHLD, 0));
    wait(&status);
    printf("ended %x\n", status);
}

/* SEM_UNDO is done when its list is given up. */
static void semaphores(void) {
    int id = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf up = {0, 3, SEM_UNDO};
    SHOW(semop(id, &up, 1));
    SHOW(semctl(id, 0, GETVAL));
    SHOW(unshare(CLONE_SYSVSEM));
    SHOW(semctl(id, 0, GETVAL));
    SHOW(semctl(id, 0, IPC_RMID));
}

/* Many descriptors. */
static void many(void) {
    struct rlimit limit = {1024, 1024};
    getrlimit(RLIMIT_NOFILE, &limit);
    TRUE(limit.rlim_max >= 4096);
    limit.rlim_cur = 4096;
    SHOW(setrlimit(RLIMIT_NOFILE, &limit));
    SHOW(dup2(1, 4095));
    SHOW(dup2(1, 4096));
    SHOW(fcntl(1, F_DUPFD, 4000));
    SHOW(fcntl(1, F_DUPFD, 4000));
    SHOW(fcntl(1, F_DUPFD, 4094));
    SHOW(fcntl(1, F_DUPFD, 4094));
    SHOW(fcntl(1, F_DUPFD, 4096));
    SHOW(close(4000));
    SHOW(fcntl(1, F_DUPFD, 3999));
    SHOW(fcntl(1, F_DUPFD, 3999));
    int count = 0, fd, last = -1;
    while ((fd = dup(1)) >= 0) count++, last = fd;
    SHOW(fd);
    printf("%d descriptors up to %d\n", count, last);
    SHOW(close(100));
    SHOW(close(90));
    SHOW(dup(1));
    SHOW(dup(1));
    SHOW(dup(1));
    pid_t pid = fork();
    if (!pid) {
        SHOW(close(3000));
        SHOW(dup(1));
        SHOW(dup(1));
        _exit(0);
    }
    wait(0);
    SHOW(dup(1));
    limit.rlim_cur = 50;
    SHOW(setrlimit(RLIMIT_NOFILE, &limit));
    SHOW(close(40));
    SHOW(close(60));
    SHOW(dup(1));
    SHOW(dup(1));
    SHOW(dup2(1, 60));
    SHOW(fcntl(1, F_DUPFD, 45));
    SHOW(fcntl(1, F_DUPFD, 50));
}

int main(void) {
    flags();
    threads();
    closing();
    first();
    cloned();
    processes();
    semaphores();
    many();
    return 0;
}
