/* Arguments of System V calls that are seldom given, drawn by a generator; ids are not printed. */
#include "guest.h"
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#ifndef MSG_COPY
#define MSG_COPY 040000
#endif
union semun { int val; void *buf; };
struct text { long kind; char text[96]; };

static uint64_t state;
static unsigned draw(unsigned below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}
static const long numbers[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 40, 64, 96, -1, -2, -3, -8, 32767,
    32768, 65535, 65536, 8192, 8193, 2147483647L, -2147483647L - 1, 4294967295L, 4294967296L,
    9223372036854775807L, -9223372036854775807L - 1};
static long edge(void) { return numbers[draw(sizeof numbers / sizeof *numbers)]; }
static long small(void) { return draw(4) ? numbers[draw(14)] : edge(); }

static void said(const char *what, long result) {
    printf(" %s=%ld %s", what, result == -1 ? -1 : result,
           result == -1 ? strerrorname_np(errno) : "");
}

static void messages(int queue) {
    static struct text one;
    static const int bits[] = {MSG_COPY, MSG_EXCEPT, MSG_NOERROR};
    void *where = draw(24) ? &one : (void *)(draw(2) ? 8 : -4096);
    long size = small(), kind = draw(3) ? (long)draw(5) : edge();
    if (draw(2)) {
        memset(&one, 'a' + (int)draw(26), sizeof one);
        one.kind = kind;
        /* No more than stands in the text: what lies behind it is not the same everywhere. */
        if (size > 96 && size < 8193) size = 96;
        long done = syscall(SYS_msgsnd, queue, where, size, IPC_NOWAIT);
        printf("send %ld %ld", kind, size);
        said("", done);
    } else {
        int flags = IPC_NOWAIT;
        for (int i = 0; i < 3; i++) if (!draw(3)) flags |= bits[i];
        if (!draw(30)) flags &= ~IPC_NOWAIT, flags |= MSG_COPY;
        memset(&one, 0, sizeof one);
        if (size > 96) size = 96;
        long done = syscall(SYS_msgrcv, queue, where, size, kind, flags);
        unsigned sum = 0;
        for (int i = 0; i < 96; i++) sum = sum * 31 + (unsigned char)one.text[i];
        printf("receive %ld %ld %o: %ld %u", kind, size, flags, one.kind, sum);
        said("", done);
    }
    struct msqid_ds ds;
    if (!msgctl(queue, IPC_STAT, &ds)) printf(" %lu %lu", (long)ds.msg_qnum, (long)ds.__msg_cbytes);
    puts("");
}

static void semaphores(int set) {
    struct sembuf list[4];
    unsigned short all[8] = {0};
    unsigned count = 1 + draw(4);
    switch (draw(4)) {
    case 0: case 1: {
        printf("operate");
        for (unsigned i = 0; i < 4; i++) {  /* a count may be larger */
            list[i].sem_num = draw(8) ? draw(3) : (unsigned short)edge();
            list[i].sem_op = draw(8) ? (short)((int)draw(5) - 2) : (short)edge();
            list[i].sem_flg = IPC_NOWAIT | (draw(4) ? 0 : SEM_UNDO) | (draw(9) ? 0 : MSG_COPY);
            if (i < count) printf(" %d,%d,%o", list[i].sem_num, list[i].sem_op, list[i].sem_flg);
        }
        struct timespec limit = {draw(6) ? 0 : edge(), draw(6) ? 0 : edge()};
        long n = draw(12) ? (long)count : edge();
        void *where = draw(24) ? list : (void *)(draw(2) ? 8 : -4096);
        if (n > 4 && (unsigned)n <= 500) n = 4;
        said("", syscall(SYS_semtimedop, set, where, n, draw(3) ? 0 : &limit));
        break;
    }
    case 2: {
        static const int commands[] = {GETVAL, GETPID, GETNCNT, GETZCNT, SETVAL, 99, -1, IPC_RMID + 100};
        int command = commands[draw(8)];
        long which = draw(4) ? (long)draw(3) : edge(), value = draw(3) ? (long)draw(9) : edge();
        long done = syscall(SYS_semctl, set, which, command, value);
        printf("control %ld %d %ld", which, command, value);
        said("", command == GETPID && done > 0 ? 1 : done);
        break;
    }
    default: {
        union semun given = {.buf = all};
        for (int i = 0; i < 8; i++) all[i] = draw(10) ? draw(9) : (unsigned short)edge();
        if (draw(2)) printf("all"), said("", semctl(set, 0, SETALL, given));
        else printf("make"), said("", syscall(SYS_semget, IPC_PRIVATE, (draw(2) ? 0 : -1) * edge() * 0, 0600));
    }
    }
    memset(all, 0, sizeof all);
    union semun given = {.buf = all};
    semctl(set, 0, GETALL, given);
    printf(" %d %d %d\n", all[0], all[1], all[2]);
}

static void segments(int segment) {
    long at = draw(3) ? 0 : edge(), size = edge();
    static const int bits[] = {SHM_RDONLY, SHM_RND, SHM_REMAP, SHM_EXEC};
    int flags = 0;
    switch (draw(3)) {
    case 0:
        for (int i = 0; i < 4; i++) if (!draw(3)) flags |= bits[i];
        if (at > 0 && at < 1 << 20) at = 0;  /* what the host allows there is the administrator's */
        if (!at && flags & SHM_REMAP) flags &= ~SHM_REMAP;
        void *where = (void *)syscall(SYS_shmat, segment, at, flags);
        printf("attach %ld %o %d", at, flags, where != (void *)-1);
        if (where == (void *)-1) printf(" %s", strerrorname_np(errno));
        else said("detach", shmdt(where));
        break;
    case 1: printf("detach %ld", at); said("", syscall(SYS_shmdt, at)); break;
    default: {
        static const int commands[] = {IPC_STAT, SHM_LOCK, SHM_UNLOCK, 99, -1};
        int command = commands[draw(5)];
        struct shmid_ds ds;
        printf("control %d", command);
        said("", syscall(SYS_shmctl, draw(6) ? segment : -1 - (int)draw(9), command, draw(6) ? &ds : (void *)8));
    }
    }
    (void)size;
    puts("");
}

int main(int argc, char **argv) {
    state = argc > 1 ? strtoull(argv[1], 0, 0) : 1;
    int rounds = argc > 2 ? atoi(argv[2]) : 300;
    int queue = msgget(IPC_PRIVATE, 0600), set = semget(IPC_PRIVATE, 3, 0600);
    int segment = shmget(IPC_PRIVATE, 10000, 0700);
    for (int i = 0; i < rounds; i++) messages(draw(40) ? queue : -1 - (int)draw(3));
    for (int i = 0; i < rounds; i++) semaphores(draw(40) ? set : -1 - (int)draw(3));
    for (int i = 0; i < rounds; i++) segments(segment);
    msgctl(queue, IPC_RMID, 0), semctl(set, 0, IPC_RMID), shmctl(segment, IPC_RMID, 0);
    return 0;
}
