"""System calls of i386 that mean to a 64-bit program what its own of the same name do.

Source: arch/x86/entry/syscalls/syscall_32.tbl, the rows whose function is the same for both, or
whose arguments are numbers, strings and bytes. Those that take a struct of other layout, signed
numbers of 64 bits or other halves are left out.
"""

from typing import Final

_TABLE: Final = """
1 exit, 2 fork, 3 read, 4 write, 5 open, 6 close, 8 creat, 9 link, 10 unlink, 12 chdir, 15 chmod
20 getpid, 27 alarm, 29 pause, 33 access, 36 sync, 37 kill, 38 rename, 39 mkdir, 40 rmdir, 41 dup
42 pipe, 45 brk, 57 setpgid, 60 umask, 61 chroot, 63 dup2, 64 getppid, 65 getpgrp, 66 setsid
83 symlink, 85 readlink, 91 munmap, 94 fchmod, 96 getpriority, 97 setpriority, 118 fsync
122 uname, 125 mprotect, 132 getpgid, 133 fchdir, 143 flock, 144 msync, 147 getsid, 148 fdatasync
150 mlock, 151 munlock, 152 mlockall, 153 munlockall, 155 sched_getparam
156 sched_setscheduler, 157 sched_getscheduler, 158 sched_yield, 159 sched_get_priority_max
160 sched_get_priority_min, 163 mremap, 168 poll, 172 prctl, 183 getcwd, 190 vfork, 198 lchown
199 getuid, 200 getgid, 201 geteuid, 202 getegid, 203 setreuid, 204 setregid, 205 getgroups
206 setgroups, 207 fchown, 208 setresuid, 209 getresuid, 210 setresgid, 211 getresgid
212 chown, 213 setuid, 214 setgid, 215 setfsuid, 216 setfsgid, 218 mincore, 219 madvise
220 getdents64, 224 gettid, 238 tkill, 252 exit_group, 254 epoll_create, 255 epoll_ctl
256 epoll_wait, 258 set_tid_address, 270 tgkill, 289 ioprio_set, 290 ioprio_get
291 inotify_init, 292 inotify_add_watch, 293 inotify_rm_watch, 295 openat, 296 mkdirat
297 mknodat, 298 fchownat, 301 unlinkat, 302 renameat, 303 linkat, 304 symlinkat
305 readlinkat, 306 fchmodat, 307 faccessat, 310 unshare, 313 splice, 315 tee, 318 getcpu
323 eventfd, 328 eventfd2, 329 epoll_create1, 330 dup3, 331 pipe2, 332 inotify_init1
353 renameat2, 355 getrandom, 356 memfd_create, 375 membarrier, 383 statx
434 pidfd_open, 436 close_range, 437 openat2, 438 pidfd_getfd, 439 faccessat2
"""

NAMES: Final = {
    int(number): name
    for line in _TABLE.strip().splitlines()
    for number, name in (entry.split() for entry in line.split(","))
}
"""Number to name."""
