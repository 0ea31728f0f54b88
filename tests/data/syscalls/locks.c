/* Locks of files: fcntl by process and by open file, flock, and who waits for whom. */
#include "guest.h"
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/wait.h>

static struct flock lock_of(int type, int whence, long start, long length) {
    struct flock lock = {.l_type = type, .l_whence = whence, .l_start = start, .l_len = length};
    return lock;
}
static int lock(int fd, int command, int type, long start, long length) {
    struct flock lock = lock_of(type, SEEK_SET, start, length);
    return fcntl(fd, command, &lock);
}

/* What a lock would meet: its kind, range and whose it is. */
static pid_t main_pid, child_pid;
static void meets(int fd, int command, int type, long start, long length) {
    struct flock lock = lock_of(type, SEEK_SET, start, length);
    lock.l_pid = command == F_OFD_GETLK ? 0 : 77;
    int result = fcntl(fd, command, &lock);
    if (result) printf("meets %s\n", strerrorname_np(errno));
    else if (lock.l_type == F_UNLCK)
        printf("meets nothing: %d %ld %ld\n", lock.l_whence, (long)lock.l_start, (long)lock.l_len);
    else
        printf("meets %s %ld+%ld of %s\n", lock.l_type == F_RDLCK ? "read" : "write",
               (long)lock.l_start, (long)lock.l_len,
               lock.l_pid == main_pid ? "main" : lock.l_pid == child_pid ? "child"
               : lock.l_pid == getpid() ? "me" : lock.l_pid == -1 ? "-1" : "?");
    fflush(stdout);
}

/* Run something in a child and wait for it. */
#define IN_CHILD(...)                                        \
    do {                                                     \
        fflush(stdout);                                      \
        pid_t pid = fork();                                  \
        if (!pid) { __VA_ARGS__; fflush(stdout); _exit(0); } \
        waitpid(pid, 0, 0);                                  \
    } while (0)

/* What a child that waits has to say, or that it has nothing to say yet. */
static int said[2];
static void heard(const char *what) {
    struct pollfd in = {said[0], POLLIN, 0};
    char text[64];
    if (poll(&in, 1, 25) == 1) {
        read(said[0], text, 16);
        printf("%s: %s\n", what, text);
    } else printf("%s: nothing\n", what);
    fflush(stdout);
}
static void must_hear(const char *what) {
    char text[64];
    read(said[0], text, 16);
    printf("%s: %s\n", what, text);
    fflush(stdout);
}
static void say(const char *text) {
    char message[16] = {0};
    write(said[1], strcpy(message, text), 16);
}
static void say_result(int result) { say(result ? strerrorname_np(errno) : "got it"); }

static void wrong(int fd) {
    static const int commands[] = {F_GETLK, F_SETLK, F_SETLKW, F_OFD_GETLK, F_OFD_SETLK};
    static const long starts[] = {0, -1, 5, 0x7fffffffffffffff};
    static const long lengths[] = {0, 1, -1, -6, 0x7fffffffffffffff};
    for (int c = 0; c < 5; c++) {
        printf("bad address "), SHOW(fcntl(fd, commands[c], 8));
        for (int type = -1; type < 5; type++)
            for (int whence = -1; whence < 4; whence++)
                for (int s = 0; s < 4; s++)
                    for (int l = 0; l < 5; l++) {
                        struct flock lock = lock_of(type, whence, starts[s], lengths[l]);
                        errno = 0;
                        int result = fcntl(fd, commands[c], &lock);
                        if (s * l % 3 == 0 || result)
                            printf("%d: %d %d %lx %lx: %s\n", commands[c], type, whence, starts[s],
                                   lengths[l], result ? strerrorname_np(errno) : "fine");
                    }
        lock(fd, F_SETLK, F_UNLCK, 0, 0);
        lock(fd, F_OFD_SETLK, F_UNLCK, 0, 0);
    }
    struct flock theirs = lock_of(F_RDLCK, SEEK_SET, 0, 0);
    theirs.l_pid = 5;
    SHOW(fcntl(fd, F_OFD_SETLK, &theirs));
    SHOW(fcntl(fd, F_OFD_GETLK, &theirs));
    int reader = open("locked", O_RDONLY), writer = open("locked", O_WRONLY);
    int path = open("locked", O_PATH);
    SHOW(lock(reader, F_SETLK, F_WRLCK, 0, 1));
    SHOW(lock(reader, F_OFD_SETLK, F_WRLCK, 0, 1));
    SHOW(lock(reader, F_SETLK, F_RDLCK, 0, 1));
    SHOW(lock(writer, F_SETLK, F_RDLCK, 0, 1));
    SHOW(lock(writer, F_SETLK, F_WRLCK, 0, 1));
    SHOW(lock(path, F_SETLK, F_WRLCK, 0, 1));
    SHOW(lock(99, F_SETLK, F_WRLCK, 0, 1));
    for (int operation = -1; operation < 44; operation++) printf("%d ", operation), SHOW(flock(reader, operation));
    SHOW(flock(path, LOCK_SH));
    SHOW(flock(path, LOCK_UN));
    SHOW(flock(99, LOCK_SH));
    SHOW(flock(99, 77));
    SHOW(flock(writer, LOCK_SH));
    int pipes[2];
    pipe(pipes);
    SHOW(lock(pipes[0], F_SETLK, F_RDLCK, 0, 0));
    SHOW(lock(pipes[1], F_SETLK, F_WRLCK, 0, 0));
    SHOW(flock(pipes[0], LOCK_EX));
    int folder = open(".", O_RDONLY);
    SHOW(flock(folder, LOCK_EX));
    SHOW(lock(folder, F_SETLK, F_RDLCK, 0, 0));
    SHOW(lock(folder, F_SETLK, F_WRLCK, 0, 0));
    int all[] = {reader, writer, path, pipes[0], pipes[1], folder};
    for (int i = 0; i < 6; i++) close(all[i]);
}

/* All that is locked, byte by byte, as another process meets it. */
static void map_of(int fd, int last) {
    char text[64];
    for (int i = 0; i <= last; i++) {
        struct flock lock = lock_of(F_WRLCK, SEEK_SET, i, 1);
        fcntl(fd, F_GETLK, &lock);
        text[i] = lock.l_type == F_UNLCK ? '-' : lock.l_type == F_RDLCK ? 'r' : 'w';
    }
    text[last + 1] = 0;
    printf("%s\n", text);
    for (long at = 0; at <= last;) {
        struct flock lock = lock_of(F_WRLCK, SEEK_SET, at, 0);
        fcntl(fd, F_GETLK, &lock);
        if (lock.l_type == F_UNLCK) break;
        printf("  %ld+%ld", (long)lock.l_start, (long)lock.l_len);
        if (!lock.l_len) break;
        at = lock.l_start + lock.l_len;
    }
    printf("\n");
}
static void ranges(int fd) {
    static const struct { int type; long start, length; } steps[] = {
        {F_RDLCK, 10, 10}, {F_RDLCK, 20, 5}, {F_WRLCK, 12, 3}, {F_UNLCK, 13, 1}, {F_RDLCK, 13, 1},
        {F_WRLCK, 0, 5}, {F_WRLCK, 6, 2}, {F_WRLCK, 5, 1}, {F_RDLCK, 0, 40}, {F_UNLCK, 3, 30},
        {F_WRLCK, 30, 0}, {F_UNLCK, 35, 2}, {F_RDLCK, 0, 0}, {F_UNLCK, 20, 0}, {F_WRLCK, 19, 1},
        {F_UNLCK, 0, 1}, {F_RDLCK, 0, 20}, {F_UNLCK, 0, 0}};
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        SHOW(lock(fd, F_SETLK, steps[i].type, steps[i].start, steps[i].length));
        IN_CHILD(map_of(fd, 45));
    }
    lseek(fd, 20, SEEK_SET);
    struct flock here = lock_of(F_WRLCK, SEEK_CUR, -5, 2), end = lock_of(F_RDLCK, SEEK_END, 0, -10);
    SHOW(fcntl(fd, F_SETLK, &here));
    SHOW(fcntl(fd, F_SETLK, &end));
    IN_CHILD(map_of(fd, 45));
    srand(7);
    unsigned state = 12345;
    for (int i = 0; i < 60; i++) {
        state = state * 1103515245 + 12345;
        lock(fd, F_SETLK, (state >> 16) % 3, (state >> 20) % 40, 1 + (state >> 26) % 12);
        if (i % 10 == 9) IN_CHILD(map_of(fd, 60));
    }
    lock(fd, F_SETLK, F_UNLCK, 0, 0);
}

static void others(int fd) {
    SHOW(lock(fd, F_SETLK, F_RDLCK, 0, 10));
    SHOW(lock(fd, F_SETLK, F_WRLCK, 20, 10));
    meets(fd, F_GETLK, F_WRLCK, 0, 100);
    IN_CHILD({
        meets(fd, F_GETLK, F_WRLCK, 0, 100);
        meets(fd, F_GETLK, F_RDLCK, 0, 100);
        meets(fd, F_GETLK, F_RDLCK, 0, 10);
        meets(fd, F_GETLK, F_UNLCK, 0, 10);
        meets(fd, F_GETLK, F_WRLCK, 15, 0);
        meets(fd, F_GETLK, F_WRLCK, 30, 0);
        meets(fd, F_OFD_GETLK, F_WRLCK, 0, 0);
        SHOW(lock(fd, F_SETLK, F_RDLCK, 5, 10));
        SHOW(lock(fd, F_SETLK, F_WRLCK, 5, 10));
        SHOW(lock(fd, F_SETLK, F_RDLCK, 25, 1));
        SHOW(lock(fd, F_SETLK, F_UNLCK, 20, 10)); /* somebody else's */
        meets(fd, F_GETLK, F_RDLCK, 0, 100);
    });
    IN_CHILD({ /* exec keeps them, and so do other processes' closed descriptors */
        SHOW(close(fd));
    });
    IN_CHILD(meets(fd, F_GETLK, F_RDLCK, 0, 100));
    int second = open("locked", O_RDONLY);
    close(second); /* any descriptor of the file */
    IN_CHILD(meets(fd, F_GETLK, F_RDLCK, 0, 100));
    SHOW(lock(fd, F_SETLK, F_WRLCK, 0, 0));
    int copy = dup(fd);
    IN_CHILD(meets(fd, F_GETLK, F_RDLCK, 0, 100));
    dup2(said[0], copy);
    IN_CHILD(meets(fd, F_GETLK, F_RDLCK, 0, 100));
    close(copy);
    lock(fd, F_SETLK, F_UNLCK, 0, 0);
    SHOW(link("locked", "linked"));
    int linked = open("linked", O_RDWR);
    SHOW(lock(linked, F_SETLK, F_WRLCK, 0, 0));
    IN_CHILD(meets(fd, F_GETLK, F_RDLCK, 0, 100));
    SHOW(unlink("linked"));
    IN_CHILD(meets(fd, F_GETLK, F_RDLCK, 0, 100));
    close(linked);
}

static void open_files(int fd) {
    int second = open("locked", O_RDWR), copy = dup(fd);
    SHOW(lock(fd, F_OFD_SETLK, F_WRLCK, 0, 10));
    SHOW(lock(copy, F_OFD_SETLK, F_WRLCK, 0, 10));
    SHOW(lock(second, F_OFD_SETLK, F_RDLCK, 5, 10));
    SHOW(lock(second, F_OFD_SETLK, F_WRLCK, 10, 10));
    SHOW(lock(second, F_SETLK, F_WRLCK, 10, 10));
    SHOW(lock(second, F_SETLK, F_WRLCK, 0, 1));
    meets(second, F_OFD_GETLK, F_WRLCK, 0, 0);
    meets(fd, F_OFD_GETLK, F_WRLCK, 0, 0);
    meets(fd, F_GETLK, F_WRLCK, 0, 0);
    meets(fd, F_OFD_GETLK, F_UNLCK, 3, 50);
    meets(second, F_OFD_GETLK, F_UNLCK, 0, 50);
    meets(second, F_OFD_GETLK, F_UNLCK, 0, 5);
    IN_CHILD({
        meets(fd, F_OFD_GETLK, F_WRLCK, 0, 0);
        SHOW(lock(fd, F_OFD_SETLK, F_UNLCK, 8, 2)); /* inherited: they share it */
        close(fd);
    });
    meets(second, F_OFD_GETLK, F_WRLCK, 0, 0);
    close(copy);
    meets(second, F_OFD_GETLK, F_WRLCK, 0, 0);
    close(second);
    SHOW(lock(fd, F_OFD_SETLK, F_UNLCK, 0, 0));
    second = open("locked", O_RDWR);
    SHOW(lock(second, F_OFD_SETLK, F_WRLCK, 0, 10));
    meets(fd, F_OFD_GETLK, F_WRLCK, 0, 0);
    close(second);
    meets(fd, F_OFD_GETLK, F_WRLCK, 0, 0);
}

static void flocks(int fd) {
    int second = open("locked", O_RDONLY), third = open("locked", O_WRONLY), copy = dup(fd);
    SHOW(flock(fd, LOCK_SH));
    SHOW(flock(second, LOCK_SH | LOCK_NB));
    SHOW(flock(third, LOCK_EX | LOCK_NB));
    SHOW(flock(fd, LOCK_EX | LOCK_NB)); /* lost, as it cannot be had */
    SHOW(flock(third, LOCK_EX | LOCK_NB));
    SHOW(flock(second, LOCK_UN));
    SHOW(flock(third, LOCK_EX | LOCK_NB));
    SHOW(flock(copy, LOCK_SH | LOCK_NB));
    SHOW(lock(fd, F_SETLK, F_WRLCK, 0, 0)); /* the two kinds don't meet */
    SHOW(lock(fd, F_SETLK, F_UNLCK, 0, 0));
    SHOW(flock(third, LOCK_UN));
    SHOW(flock(copy, LOCK_EX | LOCK_NB));
    SHOW(flock(fd, LOCK_EX | LOCK_NB));
    close(copy);
    SHOW(flock(second, LOCK_SH | LOCK_NB));
    IN_CHILD({
        SHOW(flock(fd, LOCK_SH)); /* the parent's too: it is one open file */
        SHOW(flock(second, LOCK_SH | LOCK_NB));
        SHOW(flock(second, LOCK_UN));
        close(fd);
    });
    SHOW(flock(second, LOCK_EX | LOCK_NB));
    SHOW(flock(fd, LOCK_UN));
    SHOW(flock(second, LOCK_EX | LOCK_NB));
    close(second);
    SHOW(flock(fd, LOCK_EX | LOCK_NB));
    flock(fd, LOCK_UN);
    close(third);
}

static void nothing(int number) {}
static void waiting(int fd) {
    pipe(said);
    for (int kind = 0; kind < 3; kind++) {
        int mine = open("locked", O_RDWR);
#define TAKE(f, t) (kind == 2 ? flock(f, t == F_WRLCK ? LOCK_EX : t == F_RDLCK ? LOCK_SH : LOCK_UN) \
                    : lock(f, kind ? F_OFD_SETLKW : F_SETLKW, t, 0, 10))
        printf("kind %d\n", kind);
        SHOW(TAKE(mine, F_WRLCK));
        fflush(stdout);
        pid_t pid = child_pid = fork();
        if (!pid) {
            int own = open("locked", O_RDWR);
            say_result(TAKE(own, F_WRLCK));
            pause();
        }
        heard("while it is locked");
        SHOW(TAKE(mine, F_UNLCK));
        must_hear("when it is free");
        if (kind == 0) meets(mine, F_GETLK, F_WRLCK, 0, 0);
        if (!fork()) {
            int own = open("locked", O_RDWR);
            say_result(TAKE(own, F_RDLCK));
            _exit(0);
        }
        heard("while the child has it");
        kill(pid, SIGKILL);
        must_hear("when it is dead");
        wait(0), wait(0);
        /* several readers at once, when a writer becomes a reader */
        SHOW(TAKE(mine, F_WRLCK));
        for (int i = 0; i < 3; i++)
            if (!fork()) {
                int own = open("locked", O_RDWR);
                if (!TAKE(own, F_RDLCK)) say("r");
                pause();
            }
        heard("three readers");
        SHOW(TAKE(mine, F_RDLCK));
        for (int i = 0; i < 3; i++) must_hear("reader");
        signal(SIGTERM, SIG_IGN);
        kill(0, SIGTERM); /* not ignored by those: they were forked before */
        for (int i = 0; i < 3; i++) wait(0);
        signal(SIGTERM, SIG_DFL);
        /* a signal: with SA_RESTART it goes on, without it ends */
        SHOW(TAKE(mine, F_WRLCK));
        for (int restart = 0; restart < 2; restart++) {
            fflush(stdout);
            pid = fork();
            if (!pid) {
                struct sigaction action = {.sa_handler = nothing,
                                           .sa_flags = restart ? SA_RESTART : 0};
                sigaction(SIGUSR1, &action, 0);
                int own = open("locked", O_RDWR);
                say("ready");
                say_result(TAKE(own, F_RDLCK));
                _exit(0);
            }
            must_hear("child");
            heard("before the signal");
            kill(pid, SIGUSR1);
            heard("after the signal");
            if (restart) {
                TAKE(mine, F_UNLCK);
                must_hear("free");
            }
            wait(0);
        }
        TAKE(mine, F_UNLCK);
        close(mine);
    }
}

/* One waits for two and two would wait for one: the second is told. */
static void deadlock(int fd) {
    SHOW(lock(fd, F_SETLK, F_WRLCK, 0, 1));
    pid_t pid = fork();
    if (!pid) {
        lock(fd, F_SETLK, F_WRLCK, 1, 1);
        say("ready");
        say_result(lock(fd, F_SETLKW, F_WRLCK, 0, 1));
        _exit(0);
    }
    must_hear("child");
    heard("the child waits");
    SHOW(lock(fd, F_SETLK, F_WRLCK, 1, 1));
    SHOW(lock(fd, F_SETLKW, F_WRLCK, 1, 1));
    SHOW(lock(fd, F_SETLKW, F_RDLCK, 0, 3));
    SHOW(lock(fd, F_SETLKW, F_RDLCK, 5, 3));
    SHOW(lock(fd, F_SETLK, F_UNLCK, 0, 0));
    must_hear("the child");
    wait(0);
    /* three of them in a ring */
    pid_t ring[2];
    SHOW(lock(fd, F_SETLK, F_WRLCK, 0, 1));
    for (int i = 0; i < 2; i++) {
        if (!(ring[i] = fork())) {
            lock(fd, F_SETLK, F_WRLCK, i + 1, 1);
            say("ready");
            say_result(lock(fd, F_SETLKW, F_WRLCK, i, 1));
            _exit(0);
        }
        must_hear("ring");
        heard("ring");
    }
    SHOW(lock(fd, F_SETLKW, F_WRLCK, 2, 1));
    SHOW(lock(fd, F_SETLK, F_UNLCK, 0, 0));
    must_hear("first");
    must_hear("second");
    wait(0), wait(0);
}

static int share_files(void *unused) {
    int *fds = unused;
    SHOW(lock(fds[0], F_SETLK, F_WRLCK, 2, 2)); /* one table: the same owner */
    close(fds[1]);
    _exit(0);
}
static void tables(int fd) {
    static char stack[1 << 16];
    int fds[2] = {fd, open("locked", O_RDWR)};
    SHOW(lock(fd, F_SETLK, F_WRLCK, 0, 10));
    fflush(stdout);
    clone(share_files, stack + sizeof stack, CLONE_FILES | CLONE_VM | CLONE_VFORK | SIGCHLD, fds);
    wait(0);
    IN_CHILD(meets(fd, F_GETLK, F_WRLCK, 0, 0)); /* the other closed its descriptor for all */
    SHOW(close(fds[1]));
}

/* /proc/locks, without numbers, process and device, in an order of its own. */
static void told(int fd) {
    struct stat st;
    char line[256], kept[8][128], device[64];
    int count = 0;
    fstat(fd, &st);
    FILE *file = fopen("/proc/locks", "r");
    while (file && fgets(line, sizeof line, file) && count < 8) {
        char *at = strchr(line, ':') + 1, kind[16], how[16], mode[16], first[32], last[32];
        long pid, inode;
        if (sscanf(at, "%15s %15s %15s %ld %63s %31s %31s", kind, how, mode, &pid, device, first, last) != 7)
            continue;
        sscanf(strrchr(device, ':') + 1, "%ld", &inode);
        if (inode == st.st_ino)
            sprintf(kept[count++], "%s %s %s %s %s %s", kind, how, mode,
                    pid == main_pid ? "main" : pid == -1 ? "-1" : "?", first, last);
    }
    qsort(kept, count, sizeof *kept, (int (*)(const void *, const void *))strcmp);
    for (int i = 0; i < count; i++) printf("%s\n", kept[i]);
}

int main(int argc, char **argv) {
    main_pid = getpid();
    if (argc > 1 && !strcmp(argv[1], "again")) {
        int fd = atoi(argv[2]);
        IN_CHILD(meets(fd, F_GETLK, F_WRLCK, 0, 0));
        meets(fd, F_OFD_GETLK, F_WRLCK, 0, 0);
        int second = open("locked", O_RDWR);
        SHOW(flock(second, LOCK_SH | LOCK_NB));
        unlink("locked");
        return 0;
    }
    int fd = open("locked", O_RDWR | O_CREAT | O_TRUNC, 0600);
    ftruncate(fd, 30);
    alarm(20);
    setpgid(0, 0);
    wrong(fd);
    ranges(fd);
    pipe(said);
    others(fd);
    open_files(fd);
    flocks(fd);
    waiting(fd);
    deadlock(fd);
    tables(fd);
    SHOW(lock(fd, F_SETLK, F_RDLCK, 3, 4));
    SHOW(lock(fd, F_OFD_SETLK, F_RDLCK, 5, 4));
    SHOW(flock(fd, LOCK_EX));
    told(fd);
    char number[8];
    sprintf(number, "%d", fd);
    fflush(stdout);
    execl("/proc/self/exe", argv[0], "again", number, (char *)0);
}
