"""ptrace: a process looks at and steers threads of others.

Sources: kernel/ptrace.c, arch/*/kernel/ptrace.c.

`tracee` has what it does to a thread and when that stops; this is the system call.
"""

import errno
import struct
from typing import Final, Protocol

from engine.arch.machine import RegisterFile
from engine.arch.ptrace import NT_PRFPREG, NT_PRSTATUS, PtraceAbi, RegisterSet
from engine.cpu.base import OpensSaved
from engine.errors import GuestFaultError
from engine.linux import signals as sig
from engine.linux import tracedmemory
from engine.linux.context import SyscallTable, s32, s64
from engine.linux.debugregs import DebugRegisters
from engine.linux.errno import LinuxError
from engine.linux.init import INIT
from engine.linux.signals import PendingSignal
from engine.linux.thread import Thread
from engine.linux.tracee import (
    EVENT_SECCOMP,
    EVENT_STOP,
    EXITKILL,
    MESSAGE_ENTRY,
    MESSAGE_EXIT,
    Tracee,
)
from engine.linux.wait import Wait

_OPTIONS: Final = 0xFF | EXITKILL | 1 << 21
_SUSPEND_SECCOMP: Final = 1 << 21
_SHARED: Final = 1
"""PTRACE_PEEKSIGINFO_SHARED."""
_64_LITTLE: Final = 0xC0000000
"""__AUDIT_ARCH_64BIT and __AUDIT_ARCH_LE."""

_TRACEME, _KILL, _ATTACH, _SEIZE, _INTERRUPT = 0, 8, 16, 0x4206, 0x4207
_GENERIC: Final = {
    1: "PEEKTEXT",
    2: "PEEKDATA",
    4: "POKETEXT",
    5: "POKEDATA",
    7: "CONT",
    8: "KILL",
    9: "SINGLESTEP",
    17: "DETACH",
    24: "SYSCALL",
    0x4200: "SETOPTIONS",
    0x4201: "GETEVENTMSG",
    0x4202: "GETSIGINFO",
    0x4203: "SETSIGINFO",
    0x4204: "GETREGSET",
    0x4205: "SETREGSET",
    0x4207: "INTERRUPT",
    0x4208: "LISTEN",
    0x4209: "PEEKSIGINFO",
    0x420A: "GETSIGMASK",
    0x420B: "SETSIGMASK",
    0x420C: "SECCOMP_GET_FILTER",
    0x420D: "SECCOMP_GET_METADATA",
    0x420E: "GET_SYSCALL_INFO",
}


class UserRegisters:
    """Registers of a thread that is stopped, by the program's own addresses.

    Satisfies `engine.arch.ptrace.TracedRegisters`.
    """

    def __init__(self, thread: Thread) -> None:
        self._thread = thread
        self._pc = thread.arch.roles.pc
        cpu = thread.cpu
        if thread is thread.machine.current:
            self._registers: RegisterFile = cpu
        else:
            processor = thread.machine.cpu  # what stands before it passes more on than it shows
            if not isinstance(processor, OpensSaved):
                raise LinuxError(errno.EIO)
            self._registers = processor.open_saved(thread.registers)

    @property
    def original(self) -> int:
        """Number of the system call that it is in."""
        return self._thread.original

    @original.setter
    def original(self, value: int) -> None:
        self._thread.original = s64(value)

    def read_register(self, name: str) -> int:
        """Value of a register."""
        value = self._registers.read_register(name)
        return self._thread.hooks.original_pc(value) if name == self._pc else value

    def write_register(self, name: str, value: int) -> None:
        """Set a register."""
        if name != self._pc or value != self.read_register(name):
            self._registers.write_register(name, value)
            if self._thread.machine.recorder is not None:
                self._thread.rewritten[name] = value


class _Request(Protocol):
    """Serves a request: (caller, traced thread, addr, data) to its result."""

    def __call__(self, k: Thread, tracee: Tracee, address: int, data: int) -> int: ...


def _abi(k: Thread) -> PtraceAbi:
    abi = k.arch.linux.ptrace
    if abi is None:
        raise LinuxError(errno.EIO)
    return abi()


def ptrace(k: Thread, request: int, pid: int, address: int, data: int) -> int | Wait:
    """Trace another thread."""
    request = s64(request)
    if k.arch.linux.ptrace is None:
        raise LinuxError(errno.EPERM)
    if request == _TRACEME:
        return _traceme(k)
    thread = k.machine.threads.get(s32(pid))
    if request in (_ATTACH, _SEIZE):
        return _attach(k, s32(pid), thread, address, data, seize=request == _SEIZE)
    process = k.machine.processes.get(s32(pid))
    tracee = k.process.tracees.get(s32(pid))
    if tracee is None or tracee.tracer is not k or (thread is None and process is None):
        raise LinuxError(errno.ESRCH)
    ignores_state = request in (_KILL, _INTERRUPT)
    waits = tracee.stopped and not tracee.listening
    if not ignores_state and (not waits or (tracee.thread.doomed() and not tracee.ending)):
        raise LinuxError(errno.ESRCH)
    name = _GENERIC.get(request) or _abi(k).requests.get(request, "")
    if name not in REQUESTS:
        raise LinuxError(errno.EIO)
    if tracee.status is not None:  # a zombie
        if name == "KILL":
            return 0
        raise LinuxError(errno.EIO if name == "INTERRUPT" else errno.ESRCH)
    return REQUESTS[name](k, tracee, address, data)


# -- who traces whom -------------------------------------------------------------------------


def _traceme(k: Thread) -> int:
    if k.tracee is not None or k.traced_outside:
        raise LinuxError(errno.EPERM)
    parent = k.process.parent
    if parent is None:
        k.traced_outside = True
        return 0
    if parent.exit is None and parent.threads:
        maker = k.process.maker
        tracer = maker if maker is not None and maker.tid in parent.threads else parent.leader
        Tracee(k, tracer, seized=False, options=0)
        k.original = k.call.number
    return 0


def _checked(options: int) -> int:
    if options & ~_OPTIONS:
        raise LinuxError(errno.EINVAL)
    if options & _SUSPEND_SECCOMP:
        raise LinuxError(errno.EPERM)
    return options


def _attach(
    k: Thread, pid: int, thread: Thread | None, address: int, data: int, *, seize: bool
) -> int | Wait:
    if pid == INIT:
        raise LinuxError(errno.EPERM if not seize or not address else errno.EIO)
    if thread is None and pid not in k.machine.processes:
        raise LinuxError(errno.ESRCH)
    if seize:
        if address or data & ~_OPTIONS:
            raise LinuxError(errno.EIO)
        _checked(data)
    if thread is None or thread.process is k.process or not thread.visible_to(k):
        raise LinuxError(errno.EPERM)
    if thread.tracee is not None or thread.traced_outside:
        raise LinuxError(errno.EPERM)
    tracee = Tracee(thread, k, seized=seize, options=data if seize else 0)
    if thread.wait is not None:
        thread.original = thread.call.number
        thread.first = next(iter(thread.call.arguments), 0)
    else:
        thread.original = -1
    stopped = thread.stopped
    if not seize:
        thread.post(PendingSignal(sig.SIGSTOP, sig.info_kill(sig.SIGSTOP, sig.SI_KERNEL, 0, 0)))
    if not stopped:
        return 0
    tracee.trap = True
    thread.stopped = False
    thread.machine.released(thread)
    return Wait(
        lambda: 0 if tracee.stopped or thread.ended or thread.tracee is not tracee else None,
        woken_by_calls=True,
        again=True,
    )


def _detach(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    _valid(data)
    tracee.steps = False
    tracee.answer(data)
    tracee.detach()
    return 0


def _setoptions(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    tracee.options = _checked(data)
    return 0


# -- going on --------------------------------------------------------------------------------


def _valid(number: int) -> None:
    if number > sig.HIGHEST:
        raise LinuxError(errno.EIO)


def _resume(name: str) -> _Request:
    """PTRACE_CONT and the like (ptrace_resume)."""

    def request(k: Thread, tracee: Tracee, address: int, data: int) -> int:
        _valid(data)
        tracee.syscalls = name == "SYSCALL"
        tracee.emulates = name in ("SYSEMU", "SYSEMU_SINGLESTEP")
        tracee.steps = name in ("SINGLESTEP", "SYSEMU_SINGLESTEP", "SINGLEBLOCK")
        tracee.let_on(data)
        return 0

    return request


def _kill(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    info = sig.info_kill(sig.SIGKILL, sig.SI_USER, k.pid, k.uid)
    tracee.thread.process.post(PendingSignal(sig.SIGKILL, info))
    return 0


def _interrupt(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    if not tracee.seized:
        raise LinuxError(errno.EIO)
    if not tracee.thread.doomed():
        tracee.trap = True
        tracee.rouse()
    return 0


def _listen(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    info = tracee.info
    if not tracee.seized or info is None or _code(info) >> 8 != EVENT_STOP:
        raise LinuxError(errno.EIO)
    tracee.listening = True
    if tracee.notify:
        tracee.rouse()
    return 0


# -- memory ----------------------------------------------------------------------------------


def _peek(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    try:
        word = tracedmemory.read(tracee.thread.space, address, 8)
    except GuestFaultError:
        raise LinuxError(errno.EIO) from None
    k.memory.write(data, word)
    return 0


def _poke(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    try:
        tracedmemory.write(tracee.thread.space, address, struct.pack("<Q", data))
    except GuestFaultError:
        raise LinuxError(errno.EIO) from None
    return 0


# -- registers -------------------------------------------------------------------------------


def _peekusr(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    abi = _abi(k)
    if address & 7 or address >= abi.user_size:
        raise LinuxError(errno.EIO)
    value = 0
    if address < 8 * len(abi.general):
        registers = abi.sets[NT_PRSTATUS].read(UserRegisters(tracee.thread))
        value = int.from_bytes(registers[address : address + 8], "little")
    elif abi.user_debug <= address < abi.user_debug + 64:
        value = _debug(tracee.thread).get((address - abi.user_debug) >> 3)
    k.memory.write(data, struct.pack("<Q", value))
    return 0


def _pokeusr(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    abi = _abi(k)
    if address & 7 or address >= abi.user_size:
        raise LinuxError(errno.EIO)
    if address < 8 * len(abi.general):
        return -abi.put(UserRegisters(tracee.thread), abi.general[address >> 3], data)
    if not abi.user_debug <= address < abi.user_debug + 64:
        raise LinuxError(errno.EIO)
    return -_debug(tracee.thread).put((address - abi.user_debug) >> 3, data)


def _debug(thread: Thread) -> DebugRegisters:
    """A thread's debug registers."""
    if thread.debug is None:
        thread.debug = DebugRegisters(thread)
    return thread.debug


def _getset(note: int) -> _Request:
    def request(k: Thread, tracee: Tracee, address: int, data: int) -> int:
        k.memory.write(data, _abi(k).sets[note].read(UserRegisters(tracee.thread)))
        return 0

    return request


def _setset(note: int) -> _Request:
    def request(k: Thread, tracee: Tracee, address: int, data: int) -> int:
        wanted = _abi(k).sets[note]
        return -wanted.write(UserRegisters(tracee.thread), k.memory.read(data, wanted.size))

    return request


def _register_set(k: Thread, note: int, vector: int) -> tuple[RegisterSet, int, int]:
    """The set of a number, and the buffer that is given for it."""
    base, size = struct.unpack("<QQ", k.memory.read(vector, 16))
    found = _abi(k).sets.get(note & 0xFFFF_FFFF)
    if found is None or size % found.unit:
        raise LinuxError(errno.EINVAL)
    return found, base, min(size, found.size)


def _getregset(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    found, base, size = _register_set(k, address, data)
    k.memory.write(base, found.read(UserRegisters(tracee.thread))[:size])
    k.memory.write(data + 8, struct.pack("<Q", size))
    return 0


def _setregset(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    found, base, size = _register_set(k, address, data)
    if found.whole and size != found.size:
        raise LinuxError(found.whole)
    error = found.write(UserRegisters(tracee.thread), k.memory.read(base, size))
    if error:
        raise LinuxError(error)
    k.memory.write(data + 8, struct.pack("<Q", size))
    return 0


def _arch_prctl(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    """arch_prctl of the other thread; what it stores, it stores for the caller."""
    call = k.arch.linux.own_calls["arch_prctl"]
    return call(UserRegisters(tracee.thread), k.memory, data & 0xFFFF_FFFF, address)


# -- signals ---------------------------------------------------------------------------------


def _code(info: bytes) -> int:
    """si_code."""
    return int(struct.unpack_from("<i", info, 8)[0])


def _getsiginfo(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    if tracee.info is None:
        raise LinuxError(errno.EINVAL)
    k.memory.write(data, tracee.info.ljust(128, b"\0"))
    return 0


def _setsiginfo(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    info = k.memory.read(data, 128)
    then = tracee.thread.suspended
    if tracee.info is None:
        raise LinuxError(errno.EINVAL)
    tracee.info = info
    if then is not None and then.item is not None:
        (number,) = struct.unpack_from("<i", info)
        then.item = PendingSignal(number, info, then.item.timer)
    return 0


def _peeksiginfo(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    offset, flags, count = struct.unpack("<QIi", k.memory.read(address, 16))
    if flags & ~_SHARED or count < 0:
        raise LinuxError(errno.EINVAL)
    state = tracee.thread.signals
    queue = (state.hand.pending if flags & _SHARED else state.pending).listed()
    wanted = queue[offset : offset + count]
    for index, item in enumerate(wanted):
        k.memory.write(data + 128 * index, item.info.ljust(128, b"\0"))
    return len(wanted)


def _getsigmask(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    if address != 8:
        raise LinuxError(errno.EINVAL)
    state = tracee.thread.signals
    k.memory.write(data, struct.pack("<Q", state.blocked if state.saved is None else state.saved))
    return 0


def _setsigmask(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    if address != 8:
        raise LinuxError(errno.EINVAL)
    (mask,) = struct.unpack("<Q", k.memory.read(data, 8))
    state = tracee.thread.signals
    state.blocked, state.saved = mask & ~sig.UNBLOCKABLE, None
    return 0


# -- events ----------------------------------------------------------------------------------


def _geteventmsg(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    k.memory.write(data, struct.pack("<Q", tracee.message))
    return 0


def _syscall_info(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    thread, linux = tracee.thread, k.arch.linux
    registers = UserRegisters(thread)
    read = registers.read_register
    code = 0 if tracee.info is None else _code(tracee.info)
    kind, body = 0, b""
    if code & ~0x80 == sig.SIGTRAP and code in (sig.SIGTRAP, sig.SIGTRAP | 0x80):
        kind = {MESSAGE_ENTRY: 1, MESSAGE_EXIT: 2}.get(tracee.message, 0)
        if code == sig.SIGTRAP:
            kind = 0  # only with PTRACE_O_TRACESYSGOOD can they be told from others
    elif code == sig.SIGTRAP | EVENT_SECCOMP << 8:
        kind = 3
    if kind in (1, 3):
        arguments = [thread.first if name == linux.result else read(name)
                     for name in linux.arguments]  # fmt: skip
        body = struct.pack("<Q6Q", registers.original & (1 << 64) - 1, *arguments)
        if kind == 3:
            body += struct.pack("<I", tracee.message & 0xFFFF_FFFF)
    elif kind == 2:
        result = s64(read(linux.result))
        body = struct.pack("<q?", result, -4096 < result < 0)
    roles = k.arch.roles
    audit = k.arch.elf_machine | _64_LITTLE
    info = struct.pack("<BxxxIQQ", kind, audit, read(roles.pc), read(roles.sp)) + body
    k.memory.write(data, info[:address])
    return len(info)


def _denied(k: Thread, tracee: Tracee, address: int, data: int) -> int:
    raise LinuxError(errno.EACCES)


REQUESTS: Final[dict[str, _Request]] = {
    **{name: _resume(name) for name in ("CONT", "SYSCALL", "SINGLESTEP", "SYSEMU")},
    **{name: _resume(name) for name in ("SYSEMU_SINGLESTEP", "SINGLEBLOCK")},
    "PEEKTEXT": _peek,
    "PEEKDATA": _peek,
    "POKETEXT": _poke,
    "POKEDATA": _poke,
    "PEEKUSR": _peekusr,
    "POKEUSR": _pokeusr,
    "GETREGS": _getset(NT_PRSTATUS),
    "SETREGS": _setset(NT_PRSTATUS),
    "GETFPREGS": _getset(NT_PRFPREG),
    "SETFPREGS": _setset(NT_PRFPREG),
    "GETREGSET": _getregset,
    "SETREGSET": _setregset,
    "ARCH_PRCTL": _arch_prctl,
    "KILL": _kill,
    "DETACH": _detach,
    "INTERRUPT": _interrupt,
    "LISTEN": _listen,
    "SETOPTIONS": _setoptions,
    "GETEVENTMSG": _geteventmsg,
    "GETSIGINFO": _getsiginfo,
    "SETSIGINFO": _setsiginfo,
    "PEEKSIGINFO": _peeksiginfo,
    "GETSIGMASK": _getsigmask,
    "SETSIGMASK": _setsigmask,
    "GET_SYSCALL_INFO": _syscall_info,
    "SECCOMP_GET_FILTER": _denied,
    "SECCOMP_GET_METADATA": _denied,
}
"""Requests about a thread that is traced already, by name without PTRACE_."""

SYSCALLS: SyscallTable = {"ptrace": ptrace}
