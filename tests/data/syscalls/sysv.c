/* System V objects, capabilities, memory policies and scheduling attributes.
   Objects are private or of keys of this process; ids are not printed. */
#define _GNU_SOURCE
#include "guest.h"
#include <linux/capability.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <time.h>

union semun { int val; struct semid_ds *buf; unsigned short *array; struct seminfo *info; };
struct text { long kind; char text[64]; };

static void shared_memory(int key)
{
    int id = shmget(key, 10000, IPC_CREAT | IPC_EXCL | 0640);
    printf("made %d\n", id >= 0);
    SHOW(shmget(key, 10000, IPC_CREAT | IPC_EXCL | 0640) == id);
    printf("again %d\n", shmget(key, 5000, 0) == id);
    SHOW(shmget(key, 20000, 0)); SHOW(shmget(key + 1, 100, 0)); SHOW(shmget(IPC_PRIVATE, 0, 0600));
    SHOW(shmget(key, 0, 0007) == id);
    char *a = shmat(id, 0, 0), *b = shmat(id, 0, SHM_RDONLY);
    printf("%d %d\n", a != (void *)-1, a != b);
    strcpy(a + 9000, "seen twice");
    printf("%s %d %d\n", b + 9000, a[0], a[12287]);
    struct shmid_ds ds;
    SHOW(shmctl(id, IPC_STAT, &ds));
    printf("%ld %d %o %d %d %d %d\n", (long)ds.shm_segsz, (int)ds.shm_nattch, ds.shm_perm.mode,
           ds.shm_cpid == getpid(), ds.shm_perm.uid == getuid(), ds.shm_perm.__key == key,
           ds.shm_ctime > 0 && ds.shm_atime >= ds.shm_ctime && !ds.shm_dtime);
    SHOW((long)shmat(id, a + 1, 0) == -1); SHOW((long)shmat(id, a, 0) == -1);
    SHOW((long)shmat(id, (char *)0 + 5, SHM_RND | SHM_REMAP) == -1);
    SHOW((long)shmat(id, a, SHM_REMAP) == (long)a); printf("%s\n", a + 9000);
    SHOW(shmdt(a + 4096)); SHOW(shmdt(a + 1));
    SHOW(munmap(a, 4096)); SHOW(shmctl(id, IPC_STAT, &ds)); printf("%d\n", (int)ds.shm_nattch);
    SHOW(shmdt(a)); SHOW(shmctl(id, IPC_STAT, &ds)); printf("%d\n", (int)ds.shm_nattch);
    ds.shm_perm.mode = 0400;
    SHOW(shmctl(id, IPC_SET, &ds)); SHOW((long)shmat(id, 0, 0) == -1);
    SHOW(shmctl(id, IPC_RMID, 0)); SHOW(shmget(key, 0, 0));
    SHOW(shmctl(id, IPC_STAT, &ds)); printf("%o %d\n", ds.shm_perm.mode, ds.shm_perm.__key);
    printf("%s\n", b + 9000);
    SHOW(shmdt(b)); SHOW(shmctl(id, IPC_STAT, &ds)); SHOW((long)shmat(id, 0, 0) == -1);
    SHOW(shmctl(id, 99, &ds)); SHOW(shmctl(-1, IPC_STAT, &ds));
}

static void semaphores(int key)
{
    int id = semget(key, 3, IPC_CREAT | IPC_EXCL | 0600);
    unsigned short all[3] = {5, 0, 7};
    struct semid_ds ds;
    union semun arg = {.array = all};
    printf("made %d\n", id >= 0);
    SHOW(semget(key, 4, 0)); SHOW(semget(key, -1, 0)); SHOW(semget(key + 1, 0, 0)); SHOW(semget(IPC_PRIVATE, 0, 0600));
    SHOW(semctl(id, 0, GETVAL)); SHOW(semctl(id, 0, SETALL, arg));
    for (int i = 0; i < 3; i++) { SHOW(semctl(id, i, GETVAL)); SHOW(semctl(id, i, GETPID) == getpid()); }
    struct sembuf ops[3] = {{0, -2, 0}, {1, 3, 0}, {2, -7, IPC_NOWAIT}};
    SHOW(semop(id, ops, 3)); SHOW(semop(id, ops, 3));
    arg.array = all; SHOW(semctl(id, 0, GETALL, arg)); printf("%d %d %d\n", all[0], all[1], all[2]);
    struct sembuf zero = {2, 0, IPC_NOWAIT}, more = {0, 1, 0}, far = {3, 1, 0}, big = {0, 32767, 0};
    SHOW(semop(id, &zero, 1)); zero.sem_num = 0; SHOW(semop(id, &zero, 1)); SHOW(semop(id, &far, 1));
    SHOW(semop(id, &big, 1)); SHOW(semop(id, &more, 0)); SHOW(semop(id, ops, 501)); SHOW(semop(id, &more, 1));
    struct timespec soon = {0, 2000000}, bad = {0, -1};
    struct sembuf down = {2, -1, 0};
    SHOW(semtimedop(id, &down, 1, &soon)); SHOW(semtimedop(id, &down, 1, &bad));
    arg.val = 9; SHOW(semctl(id, 1, SETVAL, arg)); SHOW(semctl(id, 1, GETVAL)); SHOW(semctl(id, 1, GETNCNT));
    arg.val = 40000; SHOW(semctl(id, 1, SETVAL, arg)); SHOW(semctl(id, 9, GETVAL)); SHOW(semctl(id, 0, 77));
    arg.buf = &ds; SHOW(semctl(id, 0, IPC_STAT, arg));
    printf("%d %o %d\n", (int)ds.sem_nsems, ds.sem_perm.mode, ds.sem_otime > 0 && ds.sem_ctime > 0);
    ds.sem_perm.mode = 0; SHOW(semctl(id, 0, IPC_SET, arg)); SHOW(semctl(id, 0, GETVAL)); SHOW(semop(id, &more, 1));
    SHOW(semctl(id, 0, IPC_RMID)); SHOW(semop(id, &more, 1)); SHOW(semctl(id, 0, GETVAL));
}

static void queues(int key)
{
    int id = msgget(key, IPC_CREAT | IPC_EXCL | 0600);
    struct text m = {2, "two"};
    struct msqid_ds ds;
    printf("made %d\n", id >= 0);
    SHOW(msgget(key, IPC_CREAT | IPC_EXCL)); SHOW(msgget(key + 1, 0));
    SHOW(msgsnd(id, &m, 4, 0)); m.kind = 5; strcpy(m.text, "five"); SHOW(msgsnd(id, &m, 5, 0));
    m.kind = 1; strcpy(m.text, "one"); SHOW(msgsnd(id, &m, 4, IPC_NOWAIT)); m.kind = 0; SHOW(msgsnd(id, &m, 4, 0));
    SHOW(msgsnd(id, &m, 9000, 0));
    SHOW(msgctl(id, IPC_STAT, &ds));
    printf("%d %d %d %d %o\n", (int)ds.msg_qnum, (int)ds.__msg_cbytes, (int)ds.msg_qbytes, ds.msg_lspid == getpid(), ds.msg_perm.mode);
    SHOW(msgrcv(id, &m, 2, 5, 0)); SHOW(msgrcv(id, &m, 64, 9, IPC_NOWAIT));
    SHOW(msgrcv(id, &m, 64, -3, 0)); printf("%ld %s\n", m.kind, m.text);
    SHOW(msgrcv(id, &m, 64, 2, MSG_EXCEPT)); printf("%ld %s\n", m.kind, m.text);
    SHOW(msgrcv(id, &m, 2, 0, MSG_NOERROR)); printf("%ld %.2s\n", m.kind, m.text);
    SHOW(msgrcv(id, &m, 64, 0, IPC_NOWAIT));
    m.kind = 3; ds.msg_qbytes = 10; SHOW(msgctl(id, IPC_SET, &ds)); SHOW(msgsnd(id, &m, 8, IPC_NOWAIT));
    SHOW(msgsnd(id, &m, 8, IPC_NOWAIT)); ds.msg_qbytes = 1 << 20; SHOW(msgctl(id, IPC_SET, &ds));
    SHOW(msgctl(id, IPC_RMID, 0)); SHOW(msgrcv(id, &m, 64, 0, IPC_NOWAIT)); SHOW(msgctl(id, 50, 0));
}

static void capabilities(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    SHOW(syscall(SYS_capset, &head, data)); data[0].effective = 1; SHOW(syscall(SYS_capset, &head, data));
    data[0].effective = 0; data[0].permitted = 2; SHOW(syscall(SYS_capset, &head, data));
    head.pid = 1; SHOW(syscall(SYS_capset, &head, data)); head.pid = 0; head.version = 7; SHOW(syscall(SYS_capset, &head, data));
    printf("%x\n", head.version);
    SHOW(syscall(SYS_capset, 0, data));
}

static void scheduling(void)
{
    struct { unsigned size, policy; unsigned long long flags; int nice; unsigned priority; unsigned long long more[3]; unsigned low, high, room[20]; } a;
    memset(&a, 0, sizeof a);
    SHOW(syscall(SYS_sched_getattr, 0, &a, 56, 0)); printf("%u %u\n", a.size, a.policy);
    SHOW(syscall(SYS_sched_getattr, 0, &a, 48, 0)); printf("%u\n", a.size);
    SHOW(syscall(SYS_sched_getattr, 0, &a, 40, 0)); SHOW(syscall(SYS_sched_getattr, 0, &a, 56, 1)); SHOW(syscall(SYS_sched_getattr, -1, &a, 56, 0));
    a.size = 48; a.policy = 3; SHOW(syscall(SYS_sched_setattr, 0, &a, 0)); SHOW(syscall(SYS_sched_getscheduler, 0));
    a.policy = 1; a.priority = 5; SHOW(syscall(SYS_sched_setattr, 0, &a, 0)); a.policy = 77; SHOW(syscall(SYS_sched_setattr, 0, &a, 0));
    a.policy = 0; a.priority = 0; SHOW(syscall(SYS_sched_setattr, 0, &a, 9)); SHOW(syscall(SYS_sched_setattr, 0, &a, 0)); a.size = 20; SHOW(syscall(SYS_sched_setattr, 0, &a, 0));
    struct timespec t;
    SHOW(sched_rr_get_interval(0, &t)); SHOW(sched_rr_get_interval(-1, &t)); SHOW(sched_rr_get_interval(0, (void *)8));
    SHOW(syscall(SYS_pkey_free, 5)); SHOW(syscall(SYS_pkey_alloc, 1, 0));
}

static void policies(void)
{
    int mode = 77;
    unsigned long mask[16] = {1}, none[16] = {0}, other[16] = {1ul << 40};
    void *p = mmap(0, 8192, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SHOW(syscall(SYS_get_mempolicy, &mode, none, 1024, 0, 0)); printf("%d %lx\n", mode, none[0]);
    SHOW(syscall(SYS_get_mempolicy, 0, none, 1024, 0, 4)); printf("%lx\n", none[0]); none[0] = 0;
    SHOW(syscall(SYS_get_mempolicy, &mode, 0, 0, p, 3)); printf("%d\n", mode); SHOW(syscall(SYS_get_mempolicy, &mode, 0, 0, 8, 2));
    SHOW(syscall(SYS_get_mempolicy, &mode, 0, 0, p, 0)); SHOW(syscall(SYS_get_mempolicy, &mode, 0, 0, 0, 16)); SHOW(syscall(SYS_get_mempolicy, 0, none, 1024, 0, 6));
    SHOW(syscall(SYS_set_mempolicy, 0, 0, 0)); SHOW(syscall(SYS_set_mempolicy, 2, mask, 1024)); SHOW(syscall(SYS_set_mempolicy, 2, none, 1024));
    SHOW(syscall(SYS_set_mempolicy, 2, other, 1024)); SHOW(syscall(SYS_set_mempolicy, 1, 0, 0)); SHOW(syscall(SYS_set_mempolicy, 99, 0, 0)); SHOW(syscall(SYS_set_mempolicy, 0, mask, 1024)); SHOW(syscall(SYS_set_mempolicy, 0, 0, 0));
    SHOW(syscall(SYS_mbind, p, 8192, 2, mask, 1024, 0)); SHOW(syscall(SYS_mbind, (char *)p + 1, 8192, 2, mask, 1024, 0)); SHOW(syscall(SYS_mbind, p, 8192, 2, none, 1024, 0));
    SHOW(syscall(SYS_mbind, p, 8192, 2, mask, 1024, 64)); SHOW(munmap((char *)p + 4096, 4096)); SHOW(syscall(SYS_mbind, p, 8192, 2, mask, 1024, 0));
}

int main(void)
{
    int key = 0x5a000000 | getpid();
    shared_memory(key);
    semaphores(key);
    queues(key);
    capabilities();
    scheduling();
    policies();
    return 0;
}
