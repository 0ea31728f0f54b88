/* System calls about processes, limits, scheduling, prctl and the like, with good and bad arguments. */
#define _GNU_SOURCE
#include <unistd.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/sysinfo.h>
#include <sys/syscall.h>
#include <sys/personality.h>
#include <sys/random.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <sys/uio.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <linux/membarrier.h>
#include <linux/ioprio.h>
#include <linux/reboot.h>
#include <asm/prctl.h>
#include <linux/sched.h>
struct sched_attr{unsigned size,sched_policy;unsigned long sched_flags;int sched_nice;unsigned sched_priority;unsigned long a,b,c;};
#include <grp.h>
#include <string.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <linux/io_uring.h>
int main(int argc,char**argv) {
  char b[100];
  if(argc>1) {
    return 5;
  }
  getuid();
  geteuid();
  getgid();
  getegid();
  getpid();
  getppid();
  syscall(SYS_gettid);
  getpgrp();
  getpgid(0);
  getsid(0);
  setpgid(0,0);
  setsid();
  uid_t r,e,s;
  getresuid(&r,&e,&s);
  getresgid(&r,&e,&s);
  gid_t g[4]={1,2};
  getgroups(0,0);
  syscall(SYS_setuid,getuid());
  syscall(SYS_setreuid,-1,-1);
  syscall(SYS_setresuid,-1,0,-1);
  syscall(SYS_setregid,-1,-1);
  syscall(SYS_setresgid,-1,-1,-1);
  syscall(SYS_setgid,0);
  syscall(SYS_setfsuid,0);
  syscall(SYS_setfsgid,-1);
  syscall(SYS_getpgid,99999999);
  struct rlimit rl;
  getrlimit(RLIMIT_NOFILE,&rl);
  syscall(SYS_getrlimit,RLIMIT_CORE,&rl);
  syscall(SYS_getrlimit,RLIMIT_STACK,&rl);
  rl.rlim_cur=1000;
  syscall(SYS_setrlimit,RLIMIT_CORE,&(struct rlimit){0,0});
  struct rlimit64 nl={100,200};
  prlimit(0,RLIMIT_NPROC,0,(void*)&nl);
  prlimit(0,99,0,(void*)&nl);
  struct rusage ru;
  getrusage(RUSAGE_SELF,&ru);
  getrusage(RUSAGE_CHILDREN,&ru);
  getrusage(99,&ru);
  struct utsname un;
  uname(&un);
  struct sysinfo si;
  sysinfo(&si);
  prctl(PR_SET_NAME,"a long thread name");
  prctl(PR_GET_NAME,b);
  prctl(PR_SET_PDEATHSIG,SIGTERM);
  int v;
  prctl(PR_GET_PDEATHSIG,&v);
  prctl(PR_GET_DUMPABLE);
  prctl(PR_SET_DUMPABLE,1);
  prctl(PR_SET_NO_NEW_PRIVS,1,0,0,0);
  prctl(PR_GET_NO_NEW_PRIVS,0,0,0,0);
  prctl(PR_CAPBSET_READ,CAP_SYS_ADMIN);
  prctl(PR_GET_KEEPCAPS);
  prctl(PR_SET_KEEPCAPS,0);
  prctl(PR_SET_TIMERSLACK,50000);
  prctl(PR_GET_TIMERSLACK);
  prctl(PR_SET_CHILD_SUBREAPER,0);
  prctl(PR_GET_CHILD_SUBREAPER,&v);
  prctl(PR_GET_SECCOMP);
  prctl(PR_GET_SECUREBITS);
  prctl(9999,1,2,3,4);
  prctl(PR_SET_VMA,0,0x1000,4096,"name");
  prctl(PR_GET_TID_ADDRESS,b);
  prctl(PR_SET_THP_DISABLE,0,0,0,0);
  prctl(PR_GET_THP_DISABLE,0,0,0,0);
  prctl(PR_SET_PTRACER,-1);
  prctl(PR_CAP_AMBIENT,PR_CAP_AMBIENT_IS_SET,CAP_CHOWN,0,0);
  prctl(PR_GET_TSC,&v);
  prctl(PR_MCE_KILL_GET,0,0,0,0);
  personality(0xffffffff);
  personality(PER_LINUX);
  syscall(SYS_arch_prctl,ARCH_GET_FS,b);
  syscall(SYS_arch_prctl,ARCH_GET_GS,b);
  syscall(SYS_arch_prctl,0x77,b);
  sched_yield();
  struct sched_param sp={0};
  sched_getparam(0,&sp);
  sched_setparam(0,&sp);
  sched_getscheduler(0);
  sched_setscheduler(0,SCHED_OTHER,&sp);
  sched_setscheduler(0,SCHED_BATCH|SCHED_RESET_ON_FORK,&sp);
  sched_get_priority_max(SCHED_FIFO);
  sched_get_priority_min(SCHED_RR);
  sched_rr_get_interval(0,(void*)b);
  cpu_set_t cs;
  CPU_ZERO(&cs);
  CPU_SET(0,&cs);
  sched_setaffinity(0,8,&cs);
  sched_getaffinity(0,8,&cs);
  sched_getaffinity(0,1,&cs);
  char sa[64];
  syscall(SYS_sched_getattr,0,sa,sizeof sa,0);
  struct sched_attr at={.size=48,.sched_policy=0,.sched_nice=1};
  syscall(SYS_sched_setattr,0,&at,0);
  getpriority(PRIO_PROCESS,0);
  setpriority(PRIO_PROCESS,0,2);
  syscall(SYS_ioprio_get,1,0);
  syscall(SYS_ioprio_set,1,0,IOPRIO_PRIO_VALUE(2,4));
  unsigned cpu,node;
  syscall(SYS_getcpu,&cpu,&node,0);
  getrandom(b,5,GRND_NONBLOCK);
  getrandom(b,0,GRND_RANDOM);
  syscall(SYS_membarrier,MEMBARRIER_CMD_QUERY,0,0);
  syscall(SYS_membarrier,MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,0,0);
  struct __user_cap_header_struct h={_LINUX_CAPABILITY_VERSION_3,0};
  struct __user_cap_data_struct cd[2];
  syscall(SYS_capget,&h,cd);
  h.version=1;
  syscall(SYS_capget,&h,cd);
  int f=1;
  syscall(SYS_futex,&f,FUTEX_WAKE,1,0,0,0);
  syscall(SYS_futex,&f,FUTEX_WAIT_PRIVATE,2,0,0,0);
  struct timespec ts={0,1000};
  syscall(SYS_futex,&f,FUTEX_WAIT,1,&ts,0,0);
  syscall(SYS_futex,&f,FUTEX_WAIT_BITSET|FUTEX_PRIVATE_FLAG|FUTEX_CLOCK_REALTIME,1,&ts,0,FUTEX_BITSET_MATCH_ANY);
  syscall(SYS_futex,&f,FUTEX_REQUEUE,1,2,&f,0);
  syscall(SYS_futex,&f,FUTEX_CMP_REQUEUE_PRIVATE,1,2,b,1);
  syscall(SYS_futex,&f,FUTEX_WAKE_OP_PRIVATE,1,1,b,FUTEX_OP(FUTEX_OP_ADD,3,FUTEX_OP_CMP_GT,4));
  syscall(SYS_futex,&f,FUTEX_WAKE_BITSET,1,0,0,7);
  syscall(SYS_futex,&f,99,1,2,3,4);
  syscall(SYS_set_robust_list,b,24);
  void*head;
  size_t hl;
  syscall(SYS_get_robust_list,0,&head,&hl);
  syscall(SYS_set_tid_address,b);
  unshare(0);
  unshare(CLONE_FS|CLONE_FILES);
  unshare(CLONE_NEWUSER|CLONE_NEWNS|CLONE_NEWNET|0x77);
  setns(99,CLONE_NEWNET);
  int pf=syscall(SYS_pidfd_open,getpid(),0);
  syscall(SYS_pidfd_send_signal,pf,0,0,0);
  syscall(SYS_pidfd_getfd,pf,1,0);
  syscall(SYS_pidfd_open,99999999,0);
  struct clone_args ca={.flags=CLONE_PARENT_SETTID|CLONE_PIDFD,.exit_signal=SIGCHLD};
  int pt,pd;
  ca.parent_tid=(long)&pt;
  ca.pidfd=(long)&pd;
  int p=syscall(SYS_clone3,&ca,sizeof ca);
  if(!p)_exit(0);
  waitpid(p,0,0);
  p=syscall(SYS_clone,SIGCHLD,0,0,0,0);
  if(!p)_exit(2);
  waitpid(p,&v,0);
  syscall(SYS_clone3,&ca,7);
  struct iovec l={b,5},m={argv,5};
  process_vm_readv(getpid(),&l,1,&m,1,0);
  process_vm_writev(getpid(),&l,1,&m,1,0);
  p=fork();
  if(!p) {
    ptrace(PTRACE_TRACEME,0,0,0);
    char*av[]={argv[0],"x\ty",NULL};
    char*ev[]={"A=1","B=2",NULL};
    execve("/proc/self/exe",av,ev);
    _exit(1);
  }
  waitpid(p,&v,0);
  ptrace(PTRACE_PEEKDATA,p,argv,0);
  ptrace(PTRACE_CONT,p,0,0);
  waitpid(p,&v,0);
  execve("/nonexistent/file",argv,0);
  execveat(-100,"nofile",argv,0,0x100);
  syscall(SYS_reboot,1,2,3,0);
  acct("/nonexist");
  sethostname("abc",99999);
  syscall(SYS_syslog,10,0,0);
  syscall(SYS_init_module,0,0,"a");
  syscall(SYS_delete_module,"nomod",0x800);
  iopl(0);
  ioperm(0,1,0);
  0;
  syscall(SYS_bpf,0,0,0);
  syscall(SYS_perf_event_open,0,0,-1,-1,8);
  syscall(SYS_userfaultfd,0x800);
  syscall(SYS_fanotify_init,0,0);
  syscall(SYS_kcmp,1,2,0,0,0);
  struct io_uring_params up;
  memset(&up,0,sizeof up);
  up.flags=IORING_SETUP_CQSIZE;
  up.cq_entries=16;
  int ur=syscall(SYS_io_uring_setup,8,&up);
  syscall(SYS_io_uring_enter,ur,0,0,IORING_ENTER_GETEVENTS,0,8);
  syscall(SYS_seccomp,SECCOMP_GET_ACTION_AVAIL,0,&(unsigned){SECCOMP_RET_ALLOW});
  memset(b,0,sizeof b);
  syscall(SYS_modify_ldt,0,b,16);
  syscall(500,1,2,3,4,5,6);
  syscall(SYS_exit,9);
}
