/* Many system calls with arguments of which some are bad: which error comes first. Each call is
   made with so many picks from what its arguments may be; words: seed, calls of each kind.

   What no two machines agree on is left out, argument by argument: how long a file may be and where a
   directory's positions are (lseek has a file in memory, mmap and writes no offset between 16 TiB and all bits),
   who owns the working directory (fchmodat), which processes there are (ioprio_get), huge pages
   (memfd_create), paths that may be null since 6.11 (newfstatat, statx), flags of preadv2 that came
   later or that a timer takes since 6.10, and what may be executed (mmap). */
#include "guest.h"
#include <linux/openat2.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

static unsigned long state;
static unsigned pick(unsigned count) {
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return (state >> 33) % count;
}
static char buffer[1 << 16] __attribute__((aligned(4096))), *page;
static int memory, file, reader, folder, path, ends[2], event, epoll, timer, sock;
static struct timespec zero, odd = {0, -1}, past = {-1, 0}, large = {0, 1000000000};
static struct itimerspec never;

static long argument(char kind) {
    static const char *const paths[] = {"", "f", "missing", "b", "f/x", "missing/x", "./", (char *)8, 0, (char *)-4096L};
    switch (kind) {
    case 'f': { long fds[] = {file, reader, folder, path, ends[0], ends[1], event, epoll, timer, sock, 99, -1}; return fds[pick(12)]; }
    case 'F': { long fds[] = {memory, memory, ends[0], ends[1], event, epoll, timer, sock, path, 99, -1}; return fds[pick(11)]; }
    case 'd': { long fds[] = {AT_FDCWD, folder, file, path, ends[0], 99, -1}; return fds[pick(7)]; }
    case 's': return (long)paths[pick(10)];
    case 'S': { unsigned at = pick(9); return (long)paths[at + (at > 5)]; } /* without "./" */
    case 'N': return (long)paths[(9 + pick(9)) % 10]; /* without a null pointer */
    case 'p': { long at[] = {(long)buffer, (long)buffer, (long)(buffer + 1), 8, 0, -4096}; return at[pick(6)]; }
    case 'a': { long at[] = {(long)page, (long)page + 1, 8, 0, -4096, (long)page + 4096, 1L << 50}; return at[pick(7)]; }
    case 'n': { long n[] = {0, 1, 2, 3, 8, 99, -1, 1L << 31}; return n[pick(8)]; }
    case 'c': { long n[] = {0, 1, 2, 3, 4, 7, 99, -1, 1L << 31}; return n[pick(9)]; } /* no alarm clocks: few machines have them */
    case 'l': { long n[] = {0, 1, 8, 16, 4096, 4097, -1, 1L << 62}; return n[pick(8)]; }
    case 'k': { long n[] = {0, 1, 8, 4096, -1}; return n[pick(5)]; }
    case 'o': { long n[] = {0, 1, -1, 4096, 1L << 62, -4096, (long)(~0UL >> 1)}; return n[pick(7)]; }
    case 'i': { long n[] = {0, 0, 1, 2, 4, 0x100, 0x1000, -1, 1L << 31}; return n[pick(9)]; }
    case 'r': { long n[] = {0, 0, 1, 0x1000, -1, 1L << 31}; return n[pick(6)]; }
    case 'h': { long n[] = {0, 0, 1, 2, 0x100, 0x1000, -1, 1L << 31}; return n[pick(8)]; }
    case 'v': { long n[] = {0, 1, 2, 4, 0x100, 0x1000, 1L << 31}; return n[pick(7)]; }
    case 'q': { long n[] = {0, 1, 2, 3, 8, 1L << 31}; return n[pick(6)]; }
    case 'O': { long n[] = {0, 0, 4096, 1, -4096}; return n[pick(5)]; }
    case 'T': { long n[] = {0, 1, -1, 4096, -4096, (long)(~0UL >> 1)}; return n[pick(6)]; }
    case 'P': { long n[] = {0, 999999, -1}; return n[pick(3)]; }
    case 't': { long at[] = {(long)&zero, (long)&odd, (long)&past, (long)&large, 8}; return at[pick(5)]; }
    case 'I': { long at[] = {(long)&never, 8, 0, -4096}; return at[pick(4)]; }
    case 'm': { long n[] = {8, 8, 0, 4, 16, -1}; return n[pick(6)]; }
    case '0': return 0;
    case '1': return 1;
    case '7': return 0777;
    }
    abort();
}
#define CALL(name, kinds) {#name, SYS_##name, kinds}
static const struct { const char *name; long number; const char *kinds; } calls[] = {
    CALL(read, "fpk"), CALL(write, "fp1"), CALL(pread64, "fplo"), CALL(pwrite64, "fp1T"), CALL(readv, "fpn"), CALL(preadv, "fpno"), CALL(preadv2, "fpno0r"), CALL(pwritev2, "fp1T0r"), CALL(writev, "fp1"), CALL(lseek, "Fon"),
    CALL(fstat, "fp"), CALL(newfstatat, "dNpv"), CALL(statx, "dNiip"), CALL(faccessat, "dsn"), CALL(faccessat2, "dsni"), CALL(readlinkat, "dspk"), CALL(utimensat, "dstn"),
    CALL(fchmodat, "dS7"), CALL(fchownat, "ds00i"), CALL(mkdirat, "d00"), CALL(unlinkat, "d0n"), CALL(symlinkat, "0d0"), CALL(linkat, "dsd0i"), CALL(renameat2, "dsd0i"), CALL(openat, "ds00"),
    CALL(ftruncate, "f1"), CALL(truncate, "so"), CALL(fallocate, "fi1k"), CALL(fsync, "f"), CALL(fdatasync, "f"), CALL(flock, "fn"), CALL(getdents64, "fpl"), CALL(fchdir, "f"), CALL(statfs, "sp"), CALL(fstatfs, "fp"),
    CALL(readahead, "fol"), CALL(sync_file_range, "fooi"), CALL(fadvise64, "foln"), CALL(copy_file_range, "fpfpki"), CALL(sendfile, "ffpk"), CALL(splice, "fpfp1i"), CALL(tee, "ff1i"),
    CALL(dup, "f"), CALL(dup3, "ffi"), CALL(pipe2, "pi"), CALL(eventfd2, "ni"), CALL(memfd_create, "sh"), CALL(getcwd, "pl"), CALL(inotify_init1, "i"), CALL(inotify_rm_watch, "fn"),
    CALL(ppoll, "pkttm"), CALL(pselect6, "0000tp"), CALL(epoll_pwait, "fpn0pm"), CALL(epoll_pwait2, "fpntpm"), CALL(epoll_ctl, "fnfp"), CALL(epoll_create1, "i"), CALL(signalfd4, "fpmi"),
    CALL(timerfd_create, "ci"), CALL(timerfd_settime, "fiIp"), CALL(timerfd_gettime, "fp"), CALL(timer_create, "cpp"), CALL(timer_settime, "niIp"), CALL(timer_gettime, "np"), CALL(timer_delete, "n"), CALL(timer_getoverrun, "n"),
    CALL(setitimer, "nIp"), CALL(getitimer, "np"), CALL(clock_gettime, "cp"), CALL(clock_getres, "cp"), CALL(clock_nanosleep, "citp"), CALL(nanosleep, "tp"), CALL(gettimeofday, "pp"),
    CALL(rt_sigprocmask, "npp0"), CALL(rt_sigprocmask, "n0pm"), CALL(rt_sigaction, "n0pm"), CALL(rt_sigpending, "pm"), CALL(rt_sigtimedwait, "pptm"), CALL(sigaltstack, "0p"),
    CALL(prlimit64, "0n0p"), CALL(getrusage, "np"), CALL(sysinfo, "p"), CALL(uname, "p"), CALL(times, "p"), CALL(getresuid, "ppp"), CALL(getcpu, "pp0"), CALL(getrandom, "p1i"),
    CALL(sched_getaffinity, "0lp"), CALL(sched_getparam, "0p"), CALL(sched_get_priority_max, "n"), CALL(sched_rr_get_interval, "0p"), CALL(getpriority, "n0"), CALL(ioprio_get, "nP"),
    CALL(mprotect, "akn"), CALL(mmap, "0kqifO"), CALL(mremap, "akki0"), CALL(madvise, "akn"), CALL(msync, "akn"), CALL(mincore, "akp"), CALL(mlock, "ak"), CALL(munlock, "ak"), CALL(mlockall, "n"),
    CALL(waitid, "nnpip"), CALL(wait4, "npi0"), CALL(kill, "9n"),
    CALL(socket, "nnn"), CALL(socketpair, "1nnp"), CALL(bind, "fpn"), CALL(connect, "fpn"), CALL(getsockname, "fpp"), CALL(getpeername, "fpp"), CALL(getsockopt, "f1npp"), CALL(setsockopt, "fnnp0"), CALL(shutdown, "fn"),
    CALL(sendto, "fpk0pn"), CALL(recvfrom, "fpk0pp"), CALL(sendmsg, "fp0"), CALL(recvmsg, "fp0"), CALL(recvmmsg, "fpn0t"), CALL(sendmmsg, "fpn0"), CALL(accept4, "fppi"), CALL(listen, "fn"),
    CALL(futex, "pi0tpn"), CALL(membarrier, "ii0"), CALL(process_vm_readv, "0pnpni"),
};
static void prepare(void) {
    unlink("f"); rmdir("b"); mkdir("b", 0700); /* modes may have changed */
    file = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600); write(file, "text", 4);
    reader = open("f", O_RDONLY); folder = open("b", O_RDONLY | O_DIRECTORY); path = open("f", O_PATH);
    pipe2(ends, O_NONBLOCK); event = eventfd(0, EFD_NONBLOCK); epoll = epoll_create1(0); timer = timerfd_create(1, TFD_NONBLOCK);
    memory = memfd_create("memory", 0); write(memory, "text", 4);
    sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
}
int main(int argc, char **argv) {
    state = argc > 1 ? strtoul(argv[1], 0, 0) : 1;
    int many = argc > 2 ? atoi(argv[2]) : 40;
    setvbuf(stdout, 0, _IOFBF, 1 << 16);
    signal(SIGPIPE, SIG_IGN);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){1024, 1024});
    mkdir("b", 0700);
    static char home[4096];
    getcwd(home, sizeof home);
    for (unsigned at = 0; at < sizeof calls / sizeof *calls; at++)
        for (int turn = 0; turn < many; turn++) {
            page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memset(buffer, 0, 8192);
            prepare();
            long args[6] = {0};
            printf("%s(", calls[at].name);
            for (int n = 0; calls[at].kinds[n]; n++) {
                char kind = calls[at].kinds[n];
                long value = args[n] = kind == '9' ? 999999 : argument(kind);
                const char *name = value == (long)buffer ? "buffer" : value == (long)(buffer + 1) ? "buffer+1" : value == (long)page ? "page" : value == (long)page + 1 ? "page+1" : value == (long)page + 4096 ? "page 2" : value == (long)&zero ? "zero" : value == (long)&odd ? "odd" : value == (long)&past ? "past" : value == (long)&large ? "large" : value == (long)&never ? "never" : 0;
                if ((kind == 's' || kind == 'S' || kind == 'N') && value > 8) printf("%s\"%s\"", n ? ", " : "", (char *)value);
                else if (name) printf("%s%s", n ? ", " : "", name);
                else if ((kind == 'f' || kind == 'F' || kind == 'd') && value > 2 && value < 90) printf("%s%s", n ? ", " : "", value == file ? "file" : value == reader ? "reader" : value == folder ? "folder" : value == path ? "path" : value == ends[0] ? "pipe" : value == ends[1] ? "pipe's end" : value == event ? "event" : value == epoll ? "epoll" : value == timer ? "timer" : value == memory ? "memory" : "socket");
                else printf("%s%ld", n ? ", " : "", value);
            }
            fflush(stdout);
            errno = 0;
            long result = syscall(calls[at].number, args[0], args[1], args[2], args[3], args[4], args[5]);
            int error = errno;
            if (result == -1 && error) printf("): %s\n", strerrorname_np(error));
            else printf("): fine\n");
            chdir(home);
            close_range(3, ~0U, 0);
            munmap(page, 8192);
            munlockall();
        }
    unlink("f"); rmdir("b");
    return 0;
}
