/* Identity, limits, the machine. */
#include "guest.h"
#include <sched.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
int main(void) {
    struct utsname u; SHOW(uname(&u)); printf("%s\n", u.sysname); int major; TRUE(sscanf(u.release, "%d.", &major) == 1 && major >= 4); SHOW(uname((void *)8));
    struct sysinfo s; SHOW(sysinfo(&s)); TRUE(s.mem_unit > 0 && s.totalram >= s.freeram && s.totalram > 0 && s.procs > 0 && s.uptime > 0); SHOW(sysinfo((void *)8));
    char b[300] = {0}; SHOW(getrandom(b, 256, 0)); int any = 0; for (int i = 0; i < 256; i++) any |= b[i]; TRUE(any); SHOW(getrandom(b, 10, GRND_NONBLOCK)); SHOW(getrandom(b, 10, 0x100)); SHOW(getrandom((void *)8, 10, 0)); SHOW(getrandom(b, 0, 0)); SHOW(getrandom(b, 5, GRND_RANDOM | GRND_INSECURE));
    SHOW(prctl(PR_SET_NAME, "a-name-longer-than-15")); memset(b, 0, 20); SHOW(prctl(PR_GET_NAME, b)); puts(b); int fd = open("/proc/self/comm", O_RDONLY); b[read(fd, b, 30)] = 0; printf("%s", b); SHOW(prctl(PR_SET_NAME, 8)); SHOW(prctl(PR_GET_NAME, 8));
    SHOW(prctl(PR_GET_DUMPABLE)); SHOW(prctl(PR_SET_DUMPABLE, 0)); SHOW(prctl(PR_GET_DUMPABLE)); SHOW(prctl(PR_SET_DUMPABLE, 1)); SHOW(prctl(PR_SET_DUMPABLE, 7)); SHOW(prctl(PR_SET_PDEATHSIG, 9)); int sig = 0; SHOW(prctl(PR_GET_PDEATHSIG, &sig)); printf("%d\n", sig); SHOW(prctl(PR_SET_PDEATHSIG, 99));
    SHOW(prctl(PR_GET_TIMERSLACK)); SHOW(prctl(PR_SET_TIMERSLACK, 1000)); SHOW(prctl(PR_GET_TIMERSLACK)); SHOW(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)); SHOW(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); SHOW(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)); SHOW(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0)); SHOW(prctl(PR_CAPBSET_READ, 999)); SHOW(prctl(9999)); SHOW(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)); SHOW(prctl(PR_GET_CHILD_SUBREAPER, &sig, 0, 0, 0)); printf("%d\n", sig);
    SHOW(personality(0xffffffff) & 0xff); cpu_set_t c; SHOW(sched_getaffinity(0, sizeof c, &c)); TRUE(CPU_COUNT(&c) >= 1); SHOW(syscall(SYS_sched_getaffinity, 0, 1, &c)); SHOW(syscall(SYS_sched_getaffinity, 0, 1024, 8)); SHOW(syscall(SYS_sched_getaffinity, 99999999, 1024, &c)); SHOW(sched_setaffinity(0, sizeof c, &c)); CPU_ZERO(&c); SHOW(sched_setaffinity(0, sizeof c, &c)); SHOW(sched_yield());
    SHOW(sched_getscheduler(0)); SHOW(sched_getscheduler(-1)); struct sched_param p = {9}; SHOW(sched_getparam(0, &p)); printf("%d\n", p.sched_priority); p.sched_priority = 1; SHOW(sched_setscheduler(0, SCHED_FIFO, &p)); SHOW(sched_setscheduler(0, SCHED_OTHER, &p)); p.sched_priority = 0; SHOW(sched_setscheduler(0, SCHED_OTHER, &p)); SHOW(sched_setscheduler(0, SCHED_BATCH, &p)); SHOW(sched_getscheduler(0)); SHOW(sched_setscheduler(0, SCHED_OTHER, &p)); SHOW(sched_setscheduler(0, 77, &p));
    SHOW(sched_get_priority_max(SCHED_OTHER)); SHOW(sched_get_priority_max(SCHED_FIFO)); SHOW(sched_get_priority_min(SCHED_FIFO)); SHOW(sched_get_priority_max(99)); SHOW(getpriority(PRIO_PROCESS, 0)); SHOW(setpriority(PRIO_PROCESS, 0, 5)); SHOW(getpriority(PRIO_PROCESS, 0)); SHOW(setpriority(PRIO_PROCESS, 0, 0)); SHOW(getpriority(9, 0)); SHOW(nice(1));
    SHOW(getpid() == gettid()); SHOW(getpgid(99999999)); SHOW(getsid(99999999)); SHOW(setuid(getuid())); SHOW(setuid(0)); SHOW(setgid(0)); SHOW(setreuid(-1, -1)); SHOW(setresuid(-1, 0, -1)); SHOW(setgroups(0, 0)); uid_t r, e, v; SHOW(getresuid(&r, &e, &v)); TRUE(r == getuid() && e == r && v == r); SHOW(syscall(SYS_getresuid, 8, &e, &v)); SHOW(getgroups(-1, 0)); SHOW(syscall(SYS_getgroups, 0, 8) >= 0);
    SHOW(chroot("/")); SHOW(sethostname("x", 1)); SHOW(syscall(SYS_reboot, 1, 2, 3, 0)); SHOW(syscall(SYS_acct, "x")); SHOW(umask(022) >= 0);
    struct rlimit l; SHOW(getrlimit(RLIMIT_CORE, &l)); SHOW(getrlimit(77, &l)); SHOW(getrlimit(RLIMIT_CPU, (void *)8)); SHOW(prlimit(99999999, RLIMIT_CPU, 0, &l)); l.rlim_cur = 100; l.rlim_max = 50; SHOW(setrlimit(RLIMIT_CORE, &l)); l.rlim_cur = 0; l.rlim_max = 0; SHOW(setrlimit(RLIMIT_CORE, &l)); l.rlim_max = 1; SHOW(setrlimit(RLIMIT_CORE, &l));
    unsigned cpu = 99, node = 99; SHOW(syscall(SYS_getcpu, &cpu, &node, 0)); TRUE(cpu < 1024 && node < 64); SHOW(syscall(SYS_getcpu, 8, 0, 0)); SHOW(syscall(SYS_set_robust_list, b, 5)); SHOW(syscall(SYS_membarrier, 0, 0) > 0); SHOW(syscall(SYS_membarrier, 0, 77)); SHOW(syscall(SYS_membarrier, 1 << 20, 0));
    struct { unsigned v; int pid; } h = {0x20080522, 0}; unsigned d[6]; SHOW(syscall(SYS_capget, &h, d)); printf("%u %u\n", d[0], d[1]); h.v = 1; SHOW(syscall(SYS_capget, &h, d)); printf("%x\n", h.v); h.pid = -1; SHOW(syscall(SYS_capget, &h, d)); SHOW(syscall(SYS_capget, 8, d)); SHOW(syscall(SYS_ptrace, 77, 0, 0, 0) < 0); SHOW(syscall(SYS_wait4, -1, 0, 0, 0)); SHOW(syscall(SYS_wait4, -1, 0, 0xff00, 0)); SHOW(syscall(9999));
    return 0;
}
