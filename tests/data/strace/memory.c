/* System calls about memory and System V objects, with good and bad arguments. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/sem.h>
#include <sys/msg.h>
#include <unistd.h>
#include <string.h>
#include <linux/mempolicy.h>
int main(void) {
  char vec[10];
  char *a=mmap(0,0x4000,PROT_READ|PROT_WRITE,MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE|MAP_POPULATE,-1,0);
  a[0]=1;
  mmap(0,0,PROT_NONE,MAP_PRIVATE,-1,0);
  mmap(0,4096,PROT_EXEC,MAP_SHARED|MAP_ANONYMOUS,-1,0x1000);
  mmap(0,4096,PROT_READ,MAP_SHARED_VALIDATE|MAP_ANONYMOUS,-1,0);
  mmap((void*)0x10000000,4096,PROT_READ,MAP_PRIVATE|MAP_FIXED_NOREPLACE|MAP_ANONYMOUS,-1,0);
  mmap(0,4096,PROT_READ|PROT_GROWSDOWN,MAP_PRIVATE|MAP_ANONYMOUS|MAP_STACK|MAP_32BIT,-1,0);
  mmap(0,4096,99,0x700,55,0);
  mprotect(a,4096,PROT_READ);
  mprotect(a,0x4000,PROT_READ|PROT_WRITE|PROT_EXEC);
  mprotect((void*)1,1,PROT_NONE);
  char *b=mremap(a,0x4000,0x8000,MREMAP_MAYMOVE);
  mremap(b,0x8000,0x4000,0);
  mremap((void*)0x5000,4096,4096,MREMAP_MAYMOVE|MREMAP_FIXED,(void*)0x7000);
  madvise(b,0x4000,MADV_DONTNEED);
  madvise(b,4096,MADV_WILLNEED);
  madvise(b,4096,MADV_HUGEPAGE);
  madvise(b,4096,12345);
  b[0]=1;
  mincore(b,0x4000,vec);
  msync(b,0x1000,MS_SYNC|MS_INVALIDATE);
  mlock(b,4096);
  munlock(b,4096);
  syscall(SYS_mlock2,b,4096,MLOCK_ONFAULT);
  mlockall(MCL_FUTURE|MCL_ONFAULT);
  munlockall();
  munmap(b,0x2000);
  munmap((void*)1,0);
  brk(0);
  sbrk(4096);
  syscall(SYS_pkey_alloc,0,0);
  syscall(SYS_pkey_free,1);
  syscall(SYS_pkey_mprotect,b,4096,PROT_READ,-1);
  int s=shmget(IPC_PRIVATE,8192,IPC_CREAT|0600);
  void*sp=shmat(s,0,SHM_RDONLY);
  struct shmid_ds ds;
  shmctl(s,IPC_STAT,&ds);
  shmctl(s,IPC_SET,&ds);
  shmdt(sp);
  shmctl(s,IPC_RMID,0);
  shmget(0x1234,1,0666);
  struct shminfo si;
  shmctl(0,IPC_INFO,(void*)&si);
  shmctl(0,SHM_INFO,(void*)&si);
  int m=semget(IPC_PRIVATE,3,IPC_CREAT|IPC_EXCL|0640);
  struct sembuf sb[2]={{0,1,IPC_NOWAIT},{1,2,SEM_UNDO}};
  semop(m,sb,2);
  struct timespec ts={0,1000};
  semtimedop(m,sb,1,&ts);
  semctl(m,0,SETVAL,5);
  semctl(m,0,GETVAL,0);
  struct semid_ds sd;
  semctl(m,0,IPC_STAT,&sd);
  unsigned short arr[3];
  semctl(m,0,GETALL,arr);
  struct seminfo sin;
  semctl(0,0,IPC_INFO,&sin);
  semctl(m,0,IPC_RMID,0);
  semget(0x77,1,0);
  int q=msgget(IPC_PRIVATE,IPC_CREAT|0600);
  struct {long t; char d[20];} mb={3,"message text"};
  msgsnd(q,&mb,12,IPC_NOWAIT);
  msgrcv(q,&mb,20,3,MSG_NOERROR|IPC_NOWAIT);
  msgrcv(q,&mb,20,-3,IPC_NOWAIT);
  struct msqid_ds qd;
  msgctl(q,IPC_STAT,&qd);
  msgctl(q,IPC_SET,&qd);
  msgctl(q,IPC_RMID,0);
  unsigned long mask[1]={1};
  syscall(SYS_set_mempolicy,MPOL_BIND,mask,64);
  syscall(SYS_mbind,b+0x2000,4096,MPOL_PREFERRED,mask,64,MPOL_MF_STRICT);
  int pol;
  syscall(SYS_get_mempolicy,&pol,mask,64,0,0);
  syscall(SYS_set_mempolicy,MPOL_DEFAULT,0,0);
  syscall(SYS_migrate_pages,0,0,0,0);
  return 0;
}
