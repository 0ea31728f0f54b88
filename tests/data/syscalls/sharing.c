/* What processes have in common, and what is left of it when one of them ends or begins another
   program. */
#include "guest.h"
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/timerfd.h>
#include <sys/times.h>
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

/* -- files that one process maps and another one writes ------------------------------------- */

static void in_child(void (*action)(int), int fd) {
    if (!fork()) {
        action(fd);
        _exit(0);
    }
    wait(0);
}
static void seen(const char *what, const char *at) {
    char copy[8] = {0};
    guard_signal = 0;
    if (!sigsetjmp(guard_at, 1)) memcpy(copy, at, 4);
    printf("%s: ", what);
    if (guard_signal) printf("signal %d\n", guard_signal);
    else {
        for (int i = 0; i < 4; i++) printf("%02x", (unsigned char)copy[i]);
        printf("\n");
    }
}
static void no_views(void) { /* a child has none of the parent's mappings of the file */
    extern char *views[4];
    for (int i = 0; i < 4; i++) munmap(views[i], 3 * PAGE);
}
char *views[4];
static void by_pwrite(int fd) { no_views(); SHOW(pwrite(fd, "child", 5, PAGE)); }
static void by_vector(int fd) {
    struct { void *at; size_t size; } vector[2] = {{"ve", 2}, {"ctor", 4}};
    no_views();
    lseek(fd, 2 * PAGE - 3, SEEK_SET);
    SHOW(writev(fd, vector, 2));
}
static void by_reading(int fd) {
    char text[8] = {0};
    no_views();
    SHOW(pread(fd, text, 5, PAGE + 16));
    printf("child reads %s\n", text);
}
static void by_cutting(int fd) { no_views(); SHOW(ftruncate(fd, PAGE + 3)); }
static void by_growing(int fd) { no_views(); SHOW(truncate("viewed", 3 * PAGE)); }
static void by_opening(int fd) { no_views(); SHOW(open("viewed", O_WRONLY | O_TRUNC) < 0); }
static void by_storing(int fd) {
    char text[8];
    memcpy(views[0] + PAGE + 16, "store", 5);
    pread(fd, text, 5, PAGE);
}
static void by_copying(int fd) {
    int source = open("source", O_RDWR | O_CREAT | O_TRUNC, 0600);
    no_views();
    write(source, "from the source", 15);
    off_t from = 5, to = 32;
    lseek(source, 0, SEEK_SET);
    lseek(fd, PAGE, SEEK_SET);
    SHOW(sendfile(fd, source, 0, 4));
    SHOW(copy_file_range(source, &from, fd, &to, 3, 0));
    unlink("source");
}
static void by_punching(int fd) { no_views(); SHOW(fallocate(fd, 3, PAGE, 2)); }

static void all_seen(const char *what) {
    static const char *const names[] = {"shared", "read-only", "private", "written"};
    static const int places[] = {0, 32, PAGE, PAGE + 16, 2 * PAGE - 3, 2 * PAGE};
    printf("%s\n", what);
    for (int place = 0; place < 6; place++)
        for (int view = 0; view < 4; view++) {
            printf("  %d ", places[place]);
            seen(names[view], views[view] + places[place]);
        }
}
static void mapped(void) {
    int fd = open("viewed", O_RDWR | O_CREAT | O_TRUNC, 0600);
    ftruncate(fd, 3 * PAGE);
    guard_install();
    for (int i = 0; i < 4; i++)
        views[i] = mmap(0, 3 * PAGE, i == 1 ? PROT_READ : PROT_READ | PROT_WRITE,
                        i < 2 ? MAP_SHARED : MAP_PRIVATE, fd, 0);
    memcpy(views[3] + PAGE, "mine", 4);
    memcpy(views[3] + 2 * PAGE, "mine", 4);
    static void (*const actions[])(int) = {by_pwrite, by_vector, by_storing, by_reading, by_copying,
                                           by_punching, by_cutting, by_growing, by_opening, by_growing};
    for (unsigned i = 0; i < sizeof actions / sizeof *actions; i++) {
        printf("%d\n", i);
        fflush(stdout);
        in_child(actions[i], fd);
        all_seen("after it");
        if (i == 4) SHOW(madvise(views[2], 3 * PAGE, MADV_DONTNEED));
    }
    SHOW(unlink("viewed"));
}

/* -- memory that a child has otherwise ------------------------------------------------------ */

static int entries(char *from, char *to) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[256];
    unsigned long start, end;
    int count = 0;
    while (fgets(line, sizeof line, maps))
        count += sscanf(line, "%lx-%lx", &start, &end) == 2 && start < (unsigned long)to &&
                 (unsigned long)from < end;
    fclose(maps);
    return count;
}
static void pages_of(char *p, int count) {
    for (volatile int i = 0; i < count; i++) {
        guard_signal = 0;
        volatile char found = 0;
        if (!sigsetjmp(guard_at, 1)) found = *(volatile char *)(p + i * PAGE);
        if (guard_signal) putchar('!');
        else putchar(found ? found : '.');
    }
    printf("\n");
}
static void inherited(char *p) {
    fflush(stdout);
    if (!fork()) {
        pages_of(p, 8);
        for (volatile int i = 0; i < 8; i++) {
            guard_signal = 0;
            if (!sigsetjmp(guard_at, 1)) p[i * PAGE] = 'k';
        }
        fflush(stdout);
        if (!fork()) {
            pages_of(p, 8);
            exit(0);
        }
        wait(0);
        exit(0);
    }
    wait(0);
}
static void advised(void) {
    static const int kinds[] = {MAP_PRIVATE | MAP_ANONYMOUS, MAP_SHARED | MAP_ANONYMOUS, MAP_PRIVATE,
                                MAP_SHARED};
    int fd = open("advised", O_RDWR | O_CREAT | O_TRUNC, 0600);
    ftruncate(fd, 8 * PAGE);
    for (int kind = 0; kind < 4; kind++) {
        char *p = mmap(0, 8 * PAGE, PROT_READ | PROT_WRITE, kinds[kind], kind < 2 ? -1 : fd, 0);
        for (int i = 0; i < 8; i++) p[i * PAGE] = 'a' + i;
        SHOW(madvise(p + PAGE, 2 * PAGE, MADV_WIPEONFORK));
        SHOW(madvise(p + 2 * PAGE, 2 * PAGE, MADV_DONTFORK));
        TRUE(entries(p, p + 8 * PAGE) > 2);
        inherited(p);
        SHOW(madvise(p + 2 * PAGE, PAGE, MADV_DOFORK));
        SHOW(mprotect(p, 2 * PAGE, PROT_READ));
        inherited(p);
        SHOW(mprotect(p, 2 * PAGE, PROT_READ | PROT_WRITE));
        SHOW(madvise(p, 8 * PAGE, MADV_KEEPONFORK));
        inherited(p);
        SHOW(madvise(p, 8 * PAGE, MADV_DOFORK));
        inherited(p);
        if (kind < 1) printf("%d\n", entries(p + PAGE, p + 7 * PAGE));
        pages_of(p, 8);
        munmap(p, 8 * PAGE);
    }
    unlink("advised");
    char *p = mmap(0, 32 * PAGE, PROT_NONE, kinds[0], -1, 0);
    mprotect(p, 8 * PAGE, PROT_READ | PROT_WRITE);
    memset(p, 'm', 8 * PAGE);
    SHOW(madvise(p, 4 * PAGE, MADV_WIPEONFORK));
    char *q = mremap(p, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p + 16 * PAGE);
    TRUE(q == p + 16 * PAGE);
    memset(q, 'q', 8 * PAGE);
    inherited(q);
}

/* -- System V objects ---------------------------------------------------------------------- */

static int segment, sems;
static void attached(const char *what) {
    struct shmid_ds told;
    if (shmctl(segment, IPC_STAT, &told)) printf("%s: %s\n", what, strerrorname_np(errno));
    else
        printf("%s: %ld attached, by me %d, mode %o\n", what, (long)told.shm_nattch,
               told.shm_lpid == getpid(), told.shm_perm.mode);
    fflush(stdout);
}
static void segments(void) {
    int go[2];
    char byte;
    segment = shmget(IPC_PRIVATE, 2 * PAGE, 0600);
    char *p = shmat(segment, 0, 0);
    attached("one");
    pipe(go);
    for (int how = 0; how < 3; how++) {
        pid_t pid = fork();
        if (!pid) {
            read(go[0], &byte, 1);
            if (how == 0) _exit(0);
            if (how == 1) raise(SIGKILL);
            execl(self, self, "nothing", (char *)0);
        }
        attached("forked");
        write(go[1], "x", 1);
        waitpid(pid, 0, 0);
        attached("over");
    }
    pid_t pid = vfork();
    if (!pid) _exit(0);
    waitpid(pid, 0, 0);
    attached("vforked");
    pid = fork();
    if (!pid) { /* the parent removes and detaches it: it is there for the child */
        read(go[0], &byte, 1);
        printf("%s %d\n", p, p[PAGE]);
        SHOW(shmdt(p));
        fflush(stdout);
        _exit(0);
    }
    strcpy(p, "text");
    SHOW(shmctl(segment, IPC_RMID, 0));
    SHOW(shmdt(p));
    attached("removed");
    p = shmat(segment, 0, 0);
    TRUE(p != (void *)-1 && !strcmp(p, "text"));
    SHOW(shmdt(p));
    fflush(stdout);
    write(go[1], "x", 1);
    waitpid(pid, 0, 0);
    attached("gone");
}

static int change(int number, int by, int flags) {
    struct sembuf one = {number, by, flags};
    return semop(sems, &one, 1);
}
static void values(const char *what) {
    printf("%s:", what);
    for (int i = 0; i < 3; i++)
        printf(" %d(%d %d)", semctl(sems, i, GETVAL), semctl(sems, i, GETNCNT), semctl(sems, i, GETZCNT));
    printf("\n");
    fflush(stdout);
}
static pid_t waiter(struct sembuf *operations, int count) {
    int before = 0, after = 0;
    for (int i = 0; i < 3; i++) before += semctl(sems, i, GETNCNT) + semctl(sems, i, GETZCNT);
    pid_t pid = fork();
    if (!pid) {
        int result = semop(sems, operations, count);
        _exit(result ? errno : 77);
    }
    do {
        usleep(500);
        for (int i = after = 0; i < 3; i++) after += semctl(sems, i, GETNCNT) + semctl(sems, i, GETZCNT);
    } while (after == before);
    return pid;
}
static void ended(const char *what, pid_t pid) {
    int status;
    waitpid(pid, &status, 0);
    int code = WEXITSTATUS(status);
    printf("%s: %s\n", what, code == 77 ? "fine" : strerrorname_np(code));
}
static void semaphores(void) {
    sems = semget(IPC_PRIVATE, 3, 0600);
    struct sembuf less[] = {{0, -1, 0}}, both[] = {{0, 1, 0}, {1, -2, 0}, {2, -1, 0}}, zero[] = {{2, 0, 0}};
    SHOW(semctl(sems, 2, SETVAL, 5));
    pid_t a = waiter(less, 1), b = waiter(both, 3), c = waiter(zero, 1), d = waiter(less, 1);
    values("four wait");
    kill(d, SIGKILL);
    waitpid(d, 0, 0);
    values("three wait");
    SHOW(change(0, 1, 0));
    ended("less", a);
    SHOW(change(1, 2, 0));
    ended("both", b);
    values("two have got it");
    SHOW(semctl(sems, 2, SETVAL, 0));
    ended("zero", c);
    a = waiter(less, 0 + 1 * (semctl(sems, 0, SETVAL, 0) == 0));
    SHOW(semctl(sems, 0, SETVAL, 1));
    ended("set", a);
    /* what is taken back at the end */
    for (int how = 0; how < 5; how++) {
        semctl(sems, 0, SETVAL, 10), semctl(sems, 1, SETVAL, 3), semctl(sems, 2, SETVAL, 0);
        fflush(stdout);
        a = fork();
        if (!a) {
            SHOW(change(0, -4, SEM_UNDO));
            SHOW(change(0, 1, SEM_UNDO));
            SHOW(change(1, 30000, SEM_UNDO));
            SHOW(change(1, 2764, SEM_UNDO));
            SHOW(change(1, -32767, SEM_UNDO));
            SHOW(change(1, 7, 0));
            SHOW(change(2, 1, SEM_UNDO));
            if (how == 0) _exit(0);
            if (how == 1) raise(SIGKILL);
            if (how == 2) SHOW(semctl(sems, 0, SETVAL, 20));
            if (how == 4 && !fork()) _exit(0); /* not inherited */
            wait(0);
            values("before the end");
            execl(self, self, "nothing", (char *)0); /* kept */
        }
        waitpid(a, 0, 0);
        values("taken back");
    }
    semctl(sems, 0, SETVAL, 0);
    a = waiter(less, 1);
    SHOW(semctl(sems, 0, IPC_RMID));
    ended("removed", a);
}

/* -- what a new program has of the timers --------------------------------------------------- */

static void timers(void) {
    struct itimerval late = {{0, 0}, {1000, 0}};
    struct itimerspec later = {{0, 0}, {1000, 0}}, now = {{0, 1000000}, {0, 1}};
    struct sigevent user = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
    timer_t timer, soon;
    sigset_t set;
    fflush(stdout);
    if (!fork()) {
        int fd = timerfd_create(CLOCK_MONOTONIC, 0);
        timerfd_settime(fd, 0, &now, 0);
        sigemptyset(&set), sigaddset(&set, SIGUSR2), sigaddset(&set, SIGUSR1);
        sigprocmask(SIG_BLOCK, &set, 0);
        setitimer(ITIMER_VIRTUAL, &late, 0);
        setitimer(ITIMER_PROF, &late, 0);
        timer_create(CLOCK_MONOTONIC, &user, &timer);
        timer_settime(timer, 0, &later, 0);
        timer_create(CLOCK_MONOTONIC, &user, &soon);
        timer_settime(soon, 0, &now, 0);
        raise(SIGUSR1);
        do usleep(1000), sigpending(&set);
        while (!sigismember(&set, SIGUSR2));
        char number[8];
        sprintf(number, "%d", fd);
        execl(self, self, "timers", number, (char *)0);
    }
    wait(0);
}
static int timers_after(int fd) {
    struct itimerval rest;
    struct itimerspec left;
    sigset_t set;
    for (int which = ITIMER_VIRTUAL; which <= ITIMER_PROF; which++)
        getitimer(which, &rest), TRUE(rest.it_value.tv_sec > 900);
    SHOW(syscall(SYS_timer_gettime, 0, &left));
    SHOW(syscall(SYS_timer_gettime, 1, &left));
    sigpending(&set);
    printf("pending %d %d\n", sigismember(&set, SIGUSR1), sigismember(&set, SIGUSR2));
    unsigned long count;
    TRUE(read(fd, &count, 8) == 8 && count);
    return 0;
}

/* -- whose processor time it is -------------------------------------------------------------- */

static long clock_of(clockid_t clock) {
    struct timespec now;
    if (syscall(SYS_clock_gettime, clock, &now)) return -errno;
    return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}
static void turn(void) {
    for (volatile int i = 0; i < 10000; i++) {}
}
static void spin(long microseconds) {
    long start = clock_of(CLOCK_THREAD_CPUTIME_ID);
    while (clock_of(CLOCK_THREAD_CPUTIME_ID) < start + microseconds) turn();
}
static long used(int who) {
    struct rusage told;
    getrusage(who, &told);
    return (told.ru_utime.tv_sec + told.ru_stime.tv_sec) * 1000000L + told.ru_utime.tv_usec + told.ru_stime.tv_usec;
}
static long ticks_in(const char *path, int own) {
    FILE *file = fopen(path, "r");
    char line[1024];
    long user, system, children, more;
    fgets(line, sizeof line, file);
    fclose(file);
    sscanf(strrchr(line, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld %ld %ld", &user, &system, &children, &more);
    return own ? user + system : children + more;
}
static volatile long of_thread;
static volatile pid_t thread_id;
static void *spinning(void *unused) {
    thread_id = gettid();
    spin(20000);
    of_thread = clock_of(CLOCK_THREAD_CPUTIME_ID);
    while (thread_id) usleep(1000);
    return 0;
}
static volatile int alarms;
static void count_alarm(int number) { alarms++; }
static int virtual_timers(int which, int number) {
    struct itimerval soon = {{0, 0}, {0, 5000}};
    signal(number, count_alarm);
    alarms = 0;
    setitimer(which, &soon, 0);
    usleep(30000);
    printf("asleep %d", alarms);
    pid_t pid = fork();
    if (!pid) spin(20000), _exit(0);
    int status; /* that the other one works is nothing to it */
    while (waitpid(pid, &status, 0) < 0) {}
    printf(", another one works %d", alarms);
    long start = clock_of(CLOCK_PROCESS_CPUTIME_ID);
    while (!alarms && clock_of(CLOCK_PROCESS_CPUTIME_ID) < start + 1000000) turn();
    printf(", awake %d\n", alarms);
    return 0;
}
static void processor(void) {
    int go[2];
    char path[64];
    struct tms told;
    struct rusage usage;
    siginfo_t info;
    pipe(go);
    TRUE(used(RUSAGE_CHILDREN) < 10000000);
    long before = used(RUSAGE_CHILDREN), mine = used(RUSAGE_SELF);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        spin(30000);
        TRUE(used(RUSAGE_CHILDREN) == 0);
        write(go[1], "x", 1);
        fflush(stdout);
        pause();
    }
    read(go[0], path, 1);
    TRUE(clock_of(~pid << 3 | 2) >= 30000);
    SHOW(clock_of(~99999 << 3 | 2));
    SHOW(clock_of(~pid << 3 | 6));
    SHOW(clock_of(~pid << 3 | 7));
    TRUE(clock_of(~0 << 3 | 2) > 0);
    TRUE(clock_of(~0 << 3 | 6) > 0);
    sprintf(path, "/proc/%d/stat", pid);
    TRUE(ticks_in(path, 1) >= 1);
    TRUE(used(RUSAGE_SELF) - mine < 20000);
    TRUE(used(RUSAGE_CHILDREN) == before);
    kill(pid, SIGKILL);
    waitid(P_PID, pid, &info, WEXITED | WNOWAIT);
    TRUE(clock_of(~pid << 3 | 2) >= 30000);
    TRUE(used(RUSAGE_CHILDREN) == before);
    memset(&usage, 0, sizeof usage);
    SHOW(syscall(SYS_waitid, P_PID, pid, &info, WEXITED | WNOWAIT, &usage));
    TRUE(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec >= 30000);
    memset(&usage, 0, sizeof usage);
    TRUE(wait4(pid, 0, 0, &usage) == pid);
    TRUE(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec >= 30000);
    TRUE(used(RUSAGE_CHILDREN) - before >= 30000);
    times(&told);
    TRUE(told.tms_cutime + told.tms_cstime >= 1);
    TRUE(ticks_in("/proc/self/stat", 0) >= 1);
    SHOW(clock_of(~pid << 3 | 2));
    before = used(RUSAGE_CHILDREN);
    if (!fork()) { /* a grandchild's count when its parent has waited */
        if (!fork()) spin(20000), _exit(0);
        wait(0);
        _exit(0);
    }
    wait(0);
    TRUE(used(RUSAGE_CHILDREN) - before >= 20000);
    before = used(RUSAGE_CHILDREN);
    signal(SIGCHLD, SIG_IGN);
    if (!fork()) spin(20000), _exit(0);
    SHOW(wait(0));
    TRUE(used(RUSAGE_CHILDREN) == before); /* nobody has waited for it */
    signal(SIGCHLD, SIG_DFL);
    pthread_t thread;
    mine = clock_of(CLOCK_THREAD_CPUTIME_ID);
    pthread_create(&thread, 0, spinning, 0);
    while (!of_thread) usleep(1000);
    TRUE(of_thread >= 20000);
    TRUE(clock_of(~thread_id << 3 | 6) >= 20000);
    TRUE(clock_of(CLOCK_THREAD_CPUTIME_ID) - mine < 18000);
    TRUE(used(RUSAGE_THREAD) < used(RUSAGE_SELF) - 19000);
    TRUE(clock_of(CLOCK_PROCESS_CPUTIME_ID) >= clock_of(CLOCK_THREAD_CPUTIME_ID) + 20000);
    thread_id = 0;
    pthread_join(thread, 0);
    TRUE(clock_of(CLOCK_PROCESS_CPUTIME_ID) >= clock_of(CLOCK_THREAD_CPUTIME_ID) + 20000);
    virtual_timers(ITIMER_VIRTUAL, SIGVTALRM);
    virtual_timers(ITIMER_PROF, SIGPROF);
}

/* -- working directories, which others move and remove, and what clone shares ---------------- */

static void here(const char *what) {
    char path[512], link[512] = {0};
    printf("%s: %s", what, getcwd(path, sizeof path) ? strrchr(path, '/') : strerrorname_np(errno));
    readlink("/proc/self/cwd", link, sizeof link - 1);
    printf(", %s\n", strrchr(link, '/') ? strrchr(link, '/') : "?");
    fflush(stdout);
}
#define IN_CHILD(...)                                      \
    do {                                                   \
        fflush(stdout);                                    \
        if (!fork()) { __VA_ARGS__; exit(0); }             \
        wait(0);                                           \
    } while (0)
static int moves(void *unused) {
    SHOW(chdir("inner"));
    umask(077);
    signal(SIGUSR1, count_alarm);
    fflush(stdout);
    _exit(0);
}
static void shares(const char *what, int flags) {
    struct sigaction action;
    struct stat st;
    mode_t mask;
    umask(022);
    signal(SIGUSR1, SIG_IGN);
    fflush(stdout);
    pid_t pid = clone(moves, stack + sizeof stack, flags | SIGCHLD, 0);
    waitpid(pid, 0, 0);
    here(what);
    printf("umask %o\n", mask = umask(022));
    sigaction(SIGUSR1, 0, &action);
    TRUE(action.sa_handler == count_alarm);
    if (!stat("../inner", &st)) chdir("..");
    signal(SIGUSR1, SIG_DFL);
}
static void places(void) {
    struct stat st;
    SHOW(mkdir("outer", 0700));
    SHOW(mkdir("outer/inner", 0700));
    SHOW(chdir("outer/inner"));
    int fd = open(".", O_RDONLY);
    IN_CHILD(SHOW(rename("../../outer", "../../other")));
    here("moved");
    SHOW(close(open("file", O_CREAT | O_RDWR, 0600)));
    SHOW(stat("../../other/inner/file", &st));
    IN_CHILD(SHOW(rename("../inner", "../more")));
    here("renamed");
    SHOW(unlink("file"));
    IN_CHILD({
        SHOW(chdir(".."));
        SHOW(rmdir("more"));
        SHOW(mkdir("more", 0700)); /* another one */
    });
    here("removed");
    SHOW(stat(".", &st));
    printf("%d links\n", (int)st.st_nlink);
    SHOW(stat("file", &st));
    SHOW(open("file", O_CREAT | O_RDWR, 0600));
    SHOW(mkdir("new", 0700));
    SHOW(chdir("."));
    SHOW(chdir("more"));
    SHOW(fchdir(fd));
    here("again");
    SHOW(stat("/proc/self/cwd", &st));
    SHOW(rmdir("../more"));
    SHOW(chdir(".."));
    here("above");
    SHOW(fchdir(fd));
    here("below");
    SHOW(chdir("../.."));
    close(fd);
    SHOW(rmdir("other"));
    /* what a child has of one's own, and shares */
    SHOW(mkdir("inner", 0700));
    shares("nothing", 0);
    shares("place", CLONE_FS);
    shares("memory", CLONE_VM | CLONE_VFORK);
    shares("handlers", CLONE_VM | CLONE_SIGHAND | CLONE_VFORK);
    shares("all", CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_VFORK);
    SHOW(rmdir("inner"));
}

/* -- a process whose first thread has ended, and one that tells its end otherwise ------------ */

static pthread_t first;
static volatile int over;
static void *goes_on(void *unused) {
    struct rlimit limit;
    pid_t pid = getpid();
    pthread_join(first, 0);
    SHOW(prlimit(pid, RLIMIT_NOFILE, 0, &limit));
    SHOW(sched_getscheduler(pid));
    SHOW(getpgid(pid) == getpgid(0));
    SHOW(kill(pid, 0));
    fflush(stdout);
    _exit(3);
}
static void *ends(void *unused) {
    pthread_t thread;
    pthread_create(&thread, 0, goes_on, 0);
    syscall(SYS_exit, 0);
    return 0;
}
static void count_end(int number) { over++; }
static int begins(void *unused) {
    execl(self, self, "nothing", (char *)0);
    return 1;
}
static void odd_ends(void) {
    int status;
    fflush(stdout);
    if (!fork()) {
        first = pthread_self();
        ends(0);
    }
    wait(&status);
    printf("status %x\n", status);
    signal(SIGUSR1, count_end);
    signal(SIGCHLD, SIG_DFL);
    for (int how = 0; how < 2; how++) { /* with another program it is SIGCHLD */
        over = 0;
        fflush(stdout);
        pid_t pid = how ? clone(begins, stack + sizeof stack, SIGUSR1, 0) : syscall(SYS_clone, SIGUSR1, 0, 0, 0, 0);
        if (!pid) _exit(0);
        while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR) {}
        printf("%d signals\n", over);
    }
    signal(SIGUSR1, SIG_DFL);
}

/* -- a file that another thread closes while it is waited for -------------------------------- */

static int waited[2];
static void *reads(void *unused) {
    char byte = 0;
    long count = read(waited[0], &byte, 1);
    return (void *)(count << 8 | byte);
}
static void closed(void) {
    pthread_t thread;
    void *result;
    signal(SIGPIPE, SIG_IGN);
    pipe(waited);
    pthread_create(&thread, 0, reads, 0);
    usleep(20000);
    SHOW(close(waited[0]));
    SHOW(write(waited[1], "x", 1));
    pthread_join(thread, &result);
    printf("read %lx\n", (long)result);
    SHOW(write(waited[1], "x", 1));
    SHOW(close(waited[1]));
    /* a pipe's bytes come to a file that is mapped while they are waited for */
    int fd = open("spliced", O_RDWR | O_CREAT | O_TRUNC, 0600);
    ftruncate(fd, PAGE);
    char *shown = mmap(0, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    char *private = mmap(0, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    pipe(waited);
    fflush(stdout);
    if (!fork()) {
        usleep(20000);
        write(waited[1], "bytes", 5);
        _exit(0);
    }
    SHOW(splice(waited[0], 0, fd, 0, 100, 0));
    printf("%.8s %.8s\n", shown, private);
    wait(0);
    unlink("spliced");
}

int main(int argc, char **argv) {
    self = "/proc/self/exe";
    setvbuf(stdout, 0, _IOLBF, 0);
    if (argc > 1 && !strcmp(argv[1], "nothing")) return 0;
    if (argc > 1 && !strcmp(argv[1], "pause")) return pause();
    if (argc > 1 && !strcmp(argv[1], "timers")) return timers_after(atoi(argv[2]));
    alarm(20);
    ends_of_waits();
    robust();
    shared_tables();
    mapped();
    advised();
    segments();
    semaphores();
    timers();
    processor();
    places();
    odd_ends();
    closed();
    return 0;
}
