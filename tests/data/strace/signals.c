/* System calls about signals, timers and children, with good and bad arguments. */
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>
#include <time.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sys/time.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/eventfd.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <poll.h>
static void h(int n){} static void hi(int n,siginfo_t*i,void*c){}
int main(void) {
  struct sigaction sa={.sa_handler=h,.sa_flags=SA_RESTART|SA_NODEFER};
  sigemptyset(&sa.sa_mask);
  sigaddset(&sa.sa_mask,SIGUSR2);
  sigaddset(&sa.sa_mask,SIGRTMIN+1);
  sigaction(SIGUSR1,&sa,0);
  struct sigaction s2={.sa_sigaction=hi,.sa_flags=SA_SIGINFO|SA_ONSTACK|SA_RESETHAND};
  struct sigaction old;
  sigaction(SIGUSR2,&s2,&old);
  sigaction(SIGUSR1,0,&old);
  sigaction(SIGKILL,&sa,0);
  signal(SIGALRM,h);
  signal(SIGPIPE,SIG_IGN);
  sigaction(99,&sa,0);
  stack_t st={malloc(65536),0,65536},os;
  sigaltstack(&st,&os);
  sigaltstack(0,&os);
  sigset_t m,o;
  sigfillset(&m);
  sigprocmask(SIG_BLOCK,&m,&o);
  sigemptyset(&m);
  sigaddset(&m,SIGUSR1);
  sigaddset(&m,SIGRTMIN);
  sigprocmask(SIG_SETMASK,&m,&o);
  kill(getpid(),SIGUSR1);
  sigpending(&o);
  sigprocmask(SIG_UNBLOCK,&m,0);
  raise(SIGUSR2);
  kill(getpid(),0);
  kill(99999999,SIGTERM);
  kill(-99999999,SIGTERM);
  syscall(SYS_tkill,syscall(SYS_gettid),SIGUSR1);
  syscall(SYS_tgkill,getpid(),getpid(),SIGUSR1);
  union sigval sv={.sival_int=42};
  sigqueue(getpid(),SIGUSR1,sv);
  sigemptyset(&m);
  sigaddset(&m,SIGUSR1);
  sigprocmask(SIG_BLOCK,&m,0);
  kill(getpid(),SIGUSR1);
  struct timespec t0={0,1000};
  siginfo_t si;
  sigtimedwait(&m,&si,&t0);
  sigtimedwait(&m,&si,&t0);
  int sf=signalfd(-1,&m,SFD_CLOEXEC|SFD_NONBLOCK);
  char b[200];
  read(sf,b,128);
  close(sf);
  int ev=eventfd(3,EFD_NONBLOCK|EFD_SEMAPHORE);
  read(ev,b,8);
  syscall(SYS_eventfd,1);
  int tf=timerfd_create(CLOCK_MONOTONIC,TFD_NONBLOCK|TFD_CLOEXEC);
  struct itimerspec it={{1,2},{3,4}},io;
  timerfd_settime(tf,TFD_TIMER_ABSTIME,&it,&io);
  timerfd_settime(tf,0,&it,NULL);
  /* Again and again: under load a single signal comes before the pause, which then has no end. */
  struct itimerval iv={{0,100000},{0,100000}};
  setitimer(ITIMER_REAL,&iv,0);
  pause();
  getitimer(ITIMER_REAL,&iv);
  alarm(0);
  iv=(struct itimerval){{0,0},{0,2000}};
  setitimer(ITIMER_REAL,&iv,0);
  struct timespec ts={1,0},rem;
  nanosleep(&ts,&rem);
  setitimer(ITIMER_REAL,&iv,0);
  clock_nanosleep(CLOCK_MONOTONIC,0,&ts,&rem);
  setitimer(ITIMER_REAL,&iv,0);
  poll(0,0,1000);
  ts.tv_sec=0;
  ts.tv_nsec=100;
  nanosleep(&ts,0);
  clock_nanosleep(CLOCK_REALTIME,TIMER_ABSTIME,&ts,NULL);
  setitimer(ITIMER_REAL,&iv,0);
  sigset_t e;
  sigemptyset(&e);
  sigsuspend(&e);
  struct timespec c;
  clock_getres(CLOCK_BOOTTIME,&c);
  syscall(SYS_clock_getres,CLOCK_MONOTONIC,&c);
  syscall(SYS_clock_gettime,CLOCK_MONOTONIC_RAW,&c);
  syscall(SYS_clock_gettime,CLOCK_PROCESS_CPUTIME_ID,&c);
  syscall(SYS_clock_gettime,99,&c);
  syscall(SYS_clock_settime,CLOCK_REALTIME,(void*)1);
  struct timeval tv;
  struct timezone tz;
  syscall(SYS_gettimeofday,&tv,&tz);
  syscall(SYS_gettimeofday,0,0);
  syscall(SYS_time,0);
  struct tms tm;
  times(&tm);
  struct timex tx={0};
  adjtimex(&tx);
  timer_t tid;
  struct sigevent se={.sigev_notify=SIGEV_SIGNAL,.sigev_signo=SIGRTMIN+2};
  se.sigev_value.sival_int=7;
  timer_create(CLOCK_MONOTONIC,&se,&tid);
  struct itimerspec ti={{0,0},{100,0}};
  timer_settime(tid,0,&ti,&io);
  timer_gettime(tid,&io);
  timer_getoverrun(tid);
  timer_delete(tid);
  int pid=fork();
  if(!pid) _exit(7);
  int w;
  struct rusage *ru=malloc(500);
  wait4(pid,&w,0,(void*)ru);
  wait4(-1,&w,WNOHANG,0);
  pid=fork();
  if(!pid) {
    kill(getpid(),SIGKILL);
    for(;;);
  }
  siginfo_t wi;
  waitid(P_PID,pid,&wi,WEXITED|WNOWAIT);
  waitpid(pid,&w,WUNTRACED|WCONTINUED);
  pid=vfork();
  if(!pid) {
    execl("/nonexistent","x",NULL);
    _exit(1);
  }
  waitpid(pid,&w,0);
  pid=fork();
  if(!pid) {
    abort();
  }
  waitpid(pid,&w,0);
  pid=fork();
  if(!pid) {
    *(volatile int*)16=1;
  }
  waitpid(pid,&w,0);
  syscall(SYS_restart_syscall);
  *(volatile int*)0=1;
}
