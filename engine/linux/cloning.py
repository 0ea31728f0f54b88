"""clone, fork and vfork: new threads and new processes (kernel/fork.c)."""

import errno
import struct
from typing import Final, NoReturn

from msgspec import Struct

from engine.errors import GuestFaultError
from engine.guest.memory import MappingError
from engine.linux import pidfiles, sem, shm
from engine.linux.context import SyscallTable
from engine.linux.errno import LinuxError
from engine.linux.fs.namespaces import NamespaceFile
from engine.linux.fs.table import FileTable
from engine.linux.process import Process, WorkingPlace
from engine.linux.signals import SIGCHLD, SIGRTMIN, SS_DISABLE
from engine.linux.space import AddressSpace
from engine.linux.thread import Thread
from engine.linux.wait import Wait

VM, FS, FILES, SIGHAND, PIDFD = 0x100, 0x200, 0x400, 0x800, 0x1000
PTRACE, UNTRACED = 0x2000, 0x800000
VFORK, PARENT, THREAD, NEWNS = 0x4000, 0x8000, 0x10000, 0x20000
SETTLS, PARENT_SETTID, CHILD_CLEARTID = 0x80000, 0x100000, 0x200000
DETACHED, CHILD_SETTID, SYSVSEM = 0x400000, 0x1000000, 0x40000
CLEAR_SIGHAND, INTO_CGROUP = 1 << 32, 1 << 33
_NAMESPACES: Final = NEWNS | 0x7E000000
"""CLONE_NEW*: they take privileges."""
_NEWUSER: Final = 0x10000000
_NEWTIME: Final = 0x80
_UNSHAREABLE: Final = THREAD | FS | SIGHAND | VM | FILES | SYSVSEM | _NAMESPACES | _NEWTIME
_SIGNAL: Final = 0xFF
_ARGS_SIZES: Final = (64, 80, 88)
"""Sizes of struct clone_args in its versions."""
_KNOWN: Final = (1 << 34) - 1


class CloneRequest(Struct, frozen=True):
    """Arguments of clone, whatever call they came by (struct kernel_clone_args).

    Attributes:
        flags: CLONE_*, without the signal.
        exit_signal: what the parent is sent at the child's end.
        stack: the child's stack pointer; 0 = the parent's.
        parent_tid: where the child's id is stored for the parent.
        child_tid: where it is stored for the child, or cleared at its end.
        tls: the child's thread pointer.
        pidfd: where a descriptor of the child is stored for the parent.
    """

    flags: int
    exit_signal: int = 0
    stack: int = 0
    parent_tid: int = 0
    child_tid: int = 0
    tls: int = 0
    pidfd: int = 0


def clone(k: Thread, flags: int, stack: int, parent: int, fourth: int, fifth: int) -> int | Wait:
    """A new thread or process; the fourth and fifth argument depend on the architecture."""
    child, tls = (fifth, fourth) if k.arch.linux.clone_backwards else (fourth, fifth)
    flags &= 0xFFFFFFFF
    if flags & PIDFD and flags & PARENT_SETTID:
        raise LinuxError(errno.EINVAL)  # both would be stored at one address
    request = CloneRequest(flags & ~_SIGNAL, flags & _SIGNAL, stack, parent, child, tls, parent)
    return _clone(k, request)


def fork(k: Thread) -> int | Wait:
    """A new process with a copy of the memory."""
    return _clone(k, CloneRequest(0, SIGCHLD))


def vfork(k: Thread) -> int | Wait:
    """A new process that borrows the memory until it ends or begins a program."""
    return _clone(k, CloneRequest(VM | VFORK, SIGCHLD))


def clone3(k: Thread, address: int, size: int) -> int | Wait:
    """The same with its arguments in memory."""
    if size > 4096:
        raise LinuxError(errno.E2BIG)
    if size < _ARGS_SIZES[0]:
        raise LinuxError(errno.EINVAL)
    data = k.memory.read(address, size)
    if any(data[_ARGS_SIZES[-1] :]):
        raise LinuxError(errno.E2BIG)
    words = struct.unpack("<11Q", data[:88].ljust(88, b"\0"))
    flags, pidfd, child, parent, exit_signal, stack, stack_size, tls, set_tid, set_size, _ = words
    wrong = (
        flags & ~_KNOWN
        or flags & (DETACHED | _SIGNAL & ~0x80)
        or exit_signal & ~_SIGNAL
        or exit_signal >= SIGRTMIN + 33
        or (flags & (THREAD | PARENT) and exit_signal)
        or bool(stack) != bool(stack_size)
        or (set_size and not set_tid)
        or (set_tid and not set_size)
    )
    if wrong:
        raise LinuxError(errno.EINVAL)
    if set_tid:
        raise LinuxError(errno.EPERM)
    request = CloneRequest(flags, exit_signal, stack + stack_size, parent, child, tls, pidfd)
    return _clone(k, request)


def _check(k: Thread, request: CloneRequest) -> None:
    flags = request.flags
    wrong = (
        (flags & THREAD and not flags & SIGHAND)
        or (flags & SIGHAND and not flags & VM)
        or (flags & FS and flags & (NEWNS | _NEWUSER))
        or (flags & CLEAR_SIGHAND and flags & SIGHAND)
        or (flags & PIDFD and flags & DETACHED)
    )
    if wrong:
        raise LinuxError(errno.EINVAL)
    if flags & _NAMESPACES:
        raise LinuxError(errno.EPERM)
    if flags & INTO_CGROUP:
        raise LinuxError(errno.EBADF)
    if len(k.machine.threads) >= k.limit("nproc"):
        k.unsupported(f"more than {k.limit('nproc')} threads and processes (RLIMIT_NPROC)")
        raise LinuxError(errno.EAGAIN)
    k.machine.require_task(process=not flags & THREAD)


def _clone(k: Thread, request: CloneRequest) -> int | Wait:
    _check(k, request)
    flags, machine = request.flags, k.machine
    if flags & PARENT_SETTID:
        k.memory.write(request.parent_tid, bytes(4))
    if flags & PIDFD:
        k.memory.write(request.pidfd, bytes(4))
    if flags & THREAD:
        files = _files(k, request)
        child = Thread(k.process, machine.new_id(), k.comm, files=files, place=_place(k, request))
    else:
        child = _new_process(k, request)
    child.policy, child.nice, child.affinity = k.policy, k.nice, k.affinity
    child.signals.blocked = k.signals.blocked if k.signals.saved is None else k.signals.saved
    if not flags & VM or flags & VFORK:
        child.signals.altstack = k.signals.altstack
    else:
        child.signals.altstack = (0, SS_DISABLE, 0)
    tid = struct.pack("<i", child.tid)
    if flags & PARENT_SETTID:
        k.memory.write(request.parent_tid, tid)
    if flags & PIDFD:
        thread = pidfiles.THREAD if flags & THREAD else 0
        file = pidfiles.PidFile(machine, child.process, child.tid, thread)
        fd = k.files.add(file, cloexec=True)
        k.memory.write(request.pidfd, struct.pack("<i", fd))
    child.seccomp, child.refuses_counter = k.seccomp, k.refuses_counter
    if flags & CHILD_SETTID:
        child.memory.write(request.child_tid, tid)
    if flags & CHILD_CLEARTID:
        child.clear_child_tid = request.child_tid
    tracee, event = k.tracee, 0
    if tracee is not None:
        if not flags & UNTRACED:
            event = tracee.clones(request.exit_signal, vfork=bool(flags & VFORK))
        if event or flags & PTRACE:
            tracee.adopt(child)
    _give_registers(k, child, request)
    machine.started(child)
    machine.hooks.renamed(child.tid)
    result: int | Wait = child.tid
    if flags & VFORK:
        process = child.process
        process.borrows = True
        result = Wait(
            lambda: None if process.borrows else child.tid,
            woken_by_calls=True,
            uninterruptible=True,
        )
    if tracee is not None:
        tracee.cloned(event, child.tid, result)
    return result


def _new_process(k: Thread, request: CloneRequest) -> Thread:
    flags, machine, mine = request.flags, k.machine, k.process
    files = _files(k, request)
    try:
        space = k.space if flags & VM else _copied_space(k)
    except LinuxError:
        if files is not k.files:
            files.close_all()
        raise
    process = Process(machine, machine.new_id(), space, (mine.uid, mine.gid))
    parent = mine.parent if flags & PARENT else mine
    process.parent, process.exit_signal = parent, request.exit_signal
    process.maker = k if parent is mine else mine.maker
    if parent is not None:
        parent.children[process.pid] = process
    process.group, process.session = mine.group, mine.session
    process.terminal = mine.terminal
    process.place, process.files = _place(k, request), files
    files.nofile = files.nofile if flags & FILES else lambda: process.limit("nofile")
    process.limits, process.knobs = dict(mine.limits), dict(mine.knobs, pdeathsig=0, subreaper=0)
    process.timers.set_limit(*process.limits["cpu"])
    if flags & SIGHAND:
        process.hand.actions = mine.hand.actions
    elif not flags & CLEAR_SIGHAND:
        process.hand.actions.update(mine.hand.actions)
    else:
        process.hand.actions.update(mine.hand.handled())
    if flags & VM:
        if machine.recorder is not None:
            machine.recorder.lent(space, k.tid, process.pid)
        machine.spaces.lent(space, k.tid, process.pid)
    return Thread(process, process.pid, k.comm)


def _copied_space(k: Thread) -> AddressSpace:
    """The caller's address space once more."""
    machine = k.machine
    try:
        space = k.space.copy()
    except MappingError as error:
        raise LinuxError(error.code) from error
    if machine.recorder is not None:
        machine.recorder.copied(k.space, space)
    try:
        machine.spaces.copied(k.space, space)
    except (MappingError, GuestFaultError) as error:  # no room for what watches it
        if machine.recorder is not None:
            machine.recorder.ended(space)
        machine.spaces.ended(space)
        space.memory.close()
        raise LinuxError(errno.ENOMEM) from error
    shm.forked(k)
    return space


def _files(k: Thread, request: CloneRequest) -> FileTable:
    """The new thread's descriptors: the caller's, or a copy."""
    return k.files if request.flags & FILES else k.files.copy(k.files.nofile)


def _place(k: Thread, request: CloneRequest) -> WorkingPlace:
    """The child's working directory and mode mask, likewise."""
    return k.place if request.flags & FS else WorkingPlace(k.directory, k.umask)


def unshare(k: Thread, flags: int) -> int:
    """Have for oneself what one has had in common with others."""
    if flags & _NEWUSER:
        flags |= THREAD | FS
    if flags & VM:
        flags |= SIGHAND
    if flags & SIGHAND:
        flags |= THREAD
    if flags & NEWNS:
        flags |= FS
    process = k.process
    others = len(process.threads) > 1
    wrong = (
        flags & ~_UNSHAREABLE
        or (flags & THREAD and others)
        or (flags & SIGHAND and _shares_actions(process))
        or (flags & VM and process.space.users > 1)
    )
    if wrong:
        raise LinuxError(errno.EINVAL)
    if flags & (_NAMESPACES | _NEWTIME):
        raise LinuxError(errno.EPERM)
    if flags & FILES:
        k.own_files()
    if flags & FS:
        k.own_place()
    if flags & SYSVSEM and not others:
        sem.process_ends(process)
    return 0


def setns(k: Thread, fd: int, kind: int) -> NoReturn:
    """Refuse to enter a namespace; EINVAL for what is none."""
    file = k.files.get(fd)
    kind &= 0xFFFFFFFF
    if isinstance(file, pidfiles.PidFile):
        wrong = not kind or kind & ~(_NAMESPACES | _NEWTIME)
    elif isinstance(file, NamespaceFile):
        # Into one's own user namespace nobody may go at all.
        wrong = kind not in (0, file.flag) or file.flag == _NEWUSER
    else:
        wrong = True
    raise LinuxError(errno.EINVAL if wrong else errno.EPERM)


def _shares_actions(process: Process) -> bool:
    """True if another process does with signals what it does (CLONE_SIGHAND)."""
    return any(
        each is not process and each.exit is None and each.hand.actions is process.hand.actions
        for each in process.machine.processes.values()
    )


def _give_registers(k: Thread, child: Thread, request: CloneRequest) -> None:
    """The child goes on where the call returns, with a result of 0."""
    cpu, linux, roles = k.cpu, k.arch.linux, k.arch.roles
    before = cpu.save()
    cpu.write_register(roles.pc, k.pc())
    cpu.write_register(linux.result, 0)
    if linux.error:
        cpu.write_register(linux.error, 0)
    if request.stack:
        cpu.write_register(roles.sp, request.stack)
    if request.flags & SETTLS:
        cpu.write_register(roles.tls, request.tls)
    child.registers = cpu.save()
    cpu.restore(before)


SYSCALLS: SyscallTable = {
    "clone": clone,
    "clone3": clone3,
    "fork": fork,
    "vfork": vfork,
    "unshare": unshare,
    "setns": setns,
}
