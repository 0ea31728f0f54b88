"""All system calls by name: the one list of families to extend.

A family module ends with `SYSCALLS` and is imported at the first call of it: most programs make
those of a few. What is not here returns ENOSYS and is reported once.
"""

from importlib import import_module
from inspect import CO_VARARGS
from typing import Final, NamedTuple

from engine.arch.base import LinuxAbi, OwnCall
from engine.linux.coherence import CONCERNED
from engine.linux.context import Handler, SyscallTable

FAMILIES: Final[dict[str, str]] = {
    "files": (
        "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 open openat "
        "openat2 creat close close_range lseek truncate ftruncate fallocate fsync fdatasync "
        "sync syncfs sync_file_range fadvise64 readahead"
    ),
    "transfer": "sendfile copy_file_range splice tee vmsplice",
    "descriptors": "dup dup2 dup3 fcntl ioctl",
    "filelocks": "flock",
    "dirs": (
        "mkdir mkdirat mknod mknodat unlink unlinkat rmdir rename renameat renameat2 link "
        "linkat symlink symlinkat getcwd chdir fchdir chroot umask getdents getdents64 mount "
        "umount2 pivot_root swapon swapoff"
    ),
    "stat": (
        "stat lstat fstat newfstatat statx access faccessat faccessat2 readlink readlinkat "
        "statfs fstatfs chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime "
        "utimes futimesat utimensat"
    ),
    "xattr": (
        "setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr "
        "flistxattr removexattr lremovexattr fremovexattr"
    ),
    "poll": (
        "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait "
        "epoll_pwait2"
    ),
    "uring": "io_uring_setup io_uring_enter io_uring_register",
    "eventfiles": "eventfd eventfd2 timerfd_create timerfd_settime timerfd_gettime",
    "notify": "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch",
    "pipes": "pipe pipe2 memfd_create",
    "net.calls": (
        "socket socketpair bind listen connect accept accept4 shutdown getsockname getpeername "
        "send sendto sendmsg sendmmsg recv recvfrom recvmsg recvmmsg setsockopt getsockopt"
    ),
    "memory": (
        "brk mmap munmap mprotect pkey_mprotect pkey_alloc pkey_free mremap madvise mincore "
        "msync mlock mlock2 munlock mlockall munlockall remap_file_pages"
    ),
    "signalcalls": (
        "rt_sigaction rt_sigprocmask rt_sigpending rt_sigsuspend rt_sigtimedwait "
        "rt_sigqueueinfo rt_tgsigqueueinfo sigaltstack pause kill tkill tgkill"
    ),
    "signalfiles": "signalfd signalfd4",
    "delivery": "rt_sigreturn",
    "time": (
        "clock_gettime clock_getres clock_settime clock_nanosleep nanosleep gettimeofday "
        "settimeofday adjtimex time times setitimer getitimer alarm"
    ),
    "posixtimers": "timer_create timer_settime timer_gettime timer_getoverrun timer_delete",
    "tasks": "exit exit_group set_tid_address set_robust_list get_robust_list prctl personality",
    "cloning": "clone clone3 fork vfork unshare setns",
    "pidfiles": "pidfd_open pidfd_send_signal pidfd_getfd",
    "reaping": "wait4 waitid",
    "ptrace": "ptrace",
    "seccomp": "seccomp",
    "processvm": "process_vm_readv process_vm_writev",
    "restarts": "restart_syscall",
    "ldt": "modify_ldt",
    "exec": "execve execveat",
    "identity": (
        "getuid geteuid getgid getegid getpid gettid getppid getpgid getpgrp getsid setpgid "
        "setsid setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups "
        "getresuid getresgid getgroups capget capset reboot vhangup fanotify_init "
        "open_by_handle_at userfaultfd kexec_file_load quotactl_fd fsopen fspick open_tree "
        "move_mount mount_setattr sethostname setdomainname init_module finit_module "
        "delete_module kexec_load iopl ioperm perf_event_open bpf syslog acct quotactl"
    ),
    "limits": "prlimit64 getrlimit setrlimit getrusage",
    "system": "uname sysinfo getrandom getcpu membarrier",
    "sched": (
        "sched_yield sched_getaffinity sched_setaffinity sched_getparam sched_setparam "
        "sched_getscheduler sched_setscheduler sched_get_priority_max sched_get_priority_min "
        "sched_getattr sched_setattr sched_rr_get_interval getpriority setpriority ioprio_get "
        "ioprio_set"
    ),
    "futex": "futex",
    "shm": "shmget shmat shmdt shmctl",
    "sem": "semget semop semtimedop semctl",
    "msg": "msgget msgsnd msgrcv msgctl",
    "mempolicy": "set_mempolicy mbind get_mempolicy migrate_pages move_pages",
}
"""The calls of each family, as its module has them."""

SEVERAL: Final = ("cloning", "exec")
"""Families of calls that make another thread or program: see `LinuxAbi.several`."""

EXPECTED_MISSING: Final = frozenset({"rseq", "landlock_create_ruleset"})
"""C libraries and sandboxes try these first and do without: not worth a report."""

_FAMILY: Final = {name: family for family, names in FAMILIES.items() for name in names.split()}


class ServedCall(NamedTuple):
    """A system call as it is carried out.

    Attributes:
        handler: does it.
        arity: the number of arguments that it takes.
        concerned: it may change files that are mapped: see `coherence`.
    """

    handler: Handler
    arity: int
    concerned: bool


class CallTable(dict[str, ServedCall | None]):
    """The system calls of an architecture by name; None for one that is missing."""

    def __init__(self, linux: LinuxAbi) -> None:
        super().__init__()
        self._linux = linux

    def __missing__(self, name: str) -> ServedCall | None:
        found = self[name] = self._find(name)
        return found

    def _find(self, name: str) -> ServedCall | None:
        own = self._linux.own_calls.get(name)
        if own is not None:
            return ServedCall(_own(own), _count(own) - 1, name in CONCERNED)
        family = _FAMILY.get(name)
        if family is None or (family in SEVERAL and not self._linux.several):
            return None
        handler = family_calls(family)[name]
        return ServedCall(handler, _count(handler), name in CONCERNED)


def family_calls(family: str) -> SyscallTable:
    """The calls of a family, imported if need be."""
    calls: SyscallTable = import_module(f"engine.linux.{family}").SYSCALLS
    return calls


def _count(handler: Handler | OwnCall) -> int:
    """The number of arguments a handler takes behind its context; 6 for a variadic one."""
    code, defaults = handler.__code__, handler.__defaults__ or ()
    if code.co_flags & CO_VARARGS:
        return 6
    return int(code.co_argcount) - len(defaults) - 1


def _own(call: OwnCall) -> Handler:
    """A handler for a call that one architecture has."""
    return lambda k, *arguments: call(k.cpu, k.memory, *arguments)
