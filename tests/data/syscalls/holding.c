/* Has the kernel hold memory of one kind without end; says which error stopped it. */
#include "guest.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/xattr.h>

enum { MOST = 400000, MIB = 1 << 20 };
static char buffer[MIB];
static long done;
static const char *path(void) {
    static char name[300];
    snprintf(name, sizeof name, "/tmp/%0200ld", done);
    return name;
}
static int filled(int fd) { /* a full mebibyte */
    long size, at = 0;
    if (fd < 0) return 0;
    while (at < MIB && (size = write(fd, buffer + at, MIB - at)) > 0) at += size;
    return at == MIB;
}
static int child(void (*then)(void)) {
    int pid = fork();
    if (pid == 0) {
        if (then) then();
        for (;;) pause();
    }
    return pid > 0;
}
static void *idle(void *unused) { for (;;) pause(); }
static void events(void) { while (eventfd(0, 0) >= 0); }
static int semaphores;
static void undone(void) {
    struct sembuf up = {0, 1, SEM_UNDO};
    semop(semaphores, &up, 1);
}
static int address(int s, struct sockaddr_in *a) {
    socklen_t size = sizeof *a;
    *a = (struct sockaddr_in){AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
    return s < 0 || bind(s, (void *)a, size) || getsockname(s, (void *)a, &size);
}

static int memfd(void) { return filled(syscall(SYS_memfd_create, "x", 0)); }
static int tmpfs(void) { static int fd; if (!fd) fd = open("/dev/shm/x", O_RDWR | O_CREAT, 0600); return filled(fd); }
static int overlay(void) { static int fd; if (!fd) fd = open("/tmp/x", O_RDWR | O_CREAT, 0600); return filled(fd); }
static int unlinked(void) { int fd = open("/tmp/u", O_RDWR | O_CREAT, 0600); unlink("/tmp/u"); return filled(fd); }
static int reserved(void) { static int fd; if (!fd) fd = open("/tmp/x", O_RDWR | O_CREAT, 0600); return !fallocate(fd, 0, done * MIB, MIB); }
static int shm(void) { int id = shmget(IPC_PRIVATE, MIB, 0600); char *p = id < 0 ? (void *)-1 : shmat(id, 0, 0); if (p == (void *)-1) return 0; memset(p, 1, MIB); return !shmdt(p); }
static int directories(void) { return !mkdir(path(), 0700); }
static int links(void) { if (!done) close(open("/tmp/f", O_CREAT | O_RDWR, 0600)); return !link("/tmp/f", path()); }
static int symlinks(void) { char target[4001]; memset(target, 'x', 4000); target[4000] = 0; return !symlink(target, path()); }
static int fifos(void) { return !mkfifo(path(), 0600); }
static int attributes(void) { int fd = open(path(), O_CREAT | O_RDWR, 0600); int failed = fd < 0 || fsetxattr(fd, "user.a", buffer, 60000, 0); int code = errno; close(fd); errno = code; return !failed; }
static int pipes(void) { int ends[2]; if (pipe2(ends, O_NONBLOCK)) return 0; fcntl(ends[1], F_SETPIPE_SZ, MIB); return filled(ends[1]) || errno == EAGAIN; }
static int udp(void) { struct sockaddr_in a; int s = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0); if (address(s, &a)) return 0; for (int i = 0; i < 5; i++) if (sendto(s, buffer, 60000, 0, (void *)&a, sizeof a) < 0) return errno == EAGAIN; return 1; }
static int pairs(void) { int ends[2]; if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends)) return 0; while (write(ends[1], buffer, 65536) > 0); return errno == EAGAIN; }
static int messages(void) { static struct { long kind; char text[8192]; } m = {1}; int q = msgget(IPC_PRIVATE, 0600); if (q < 0) return 0; while (!msgsnd(q, &m, 8192, IPC_NOWAIT)); return errno == EAGAIN; }
static int empty(void) { struct { long kind; } m = {1}; int q = msgget(IPC_PRIVATE, 0600); if (q < 0) return 0; while (!msgsnd(q, &m, 0, IPC_NOWAIT)); return errno == EAGAIN; }
static int semsets(void) { return semget(IPC_PRIVATE, done < 25 ? 32000 : 1, 0600) >= 0; }
static int undo(void) { if (!done) semaphores = semget(IPC_PRIVATE, 32000, 0600); return child(undone); }
static int processes(void) { return child(0); }
static int descriptors(void) { return child(events); }
static int locks(void) { static int fd; if (done % 20000 == 0) fd = open(path(), O_RDWR | O_CREAT, 0600); struct flock l = {F_WRLCK, SEEK_SET, done % 20000 * 2, 1}; return fd >= 0 && !fcntl(fd, F_SETLK, &l); }
static int mappings(void) { for (int i = 0; i < 2000; i++) if (mmap(0, PAGE, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) return 0; return child(0); }

static const struct { const char *name; int (*more)(void); } kinds[] = {
    {"memfd", memfd}, {"tmpfs", tmpfs}, {"overlay", overlay}, {"unlinked", unlinked}, {"reserved", reserved},
    {"shm", shm}, {"directories", directories}, {"links", links}, {"symlinks", symlinks}, {"fifos", fifos},
    {"attributes", attributes}, {"pipes", pipes}, {"udp", udp}, {"pairs", pairs}, {"messages", messages},
    {"empty", empty}, {"semsets", semsets}, {"undo", undo}, {"processes", processes}, {"descriptors", descriptors},
    {"locks", locks}, {"mappings", mappings},
};

int main(int count, char **words) {
    memset(buffer, 1, sizeof buffer);
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, words[1])) continue;
        for (errno = 0; done < MOST && kinds[i].more(); done++) errno = 0;
        printf("%s: %s\n", words[1], done < MOST ? strerrorname_np(errno) : "no end");
        fflush(stdout);
        kill(0, SIGKILL);
    }
    return 2;
}
