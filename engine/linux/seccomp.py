"""Seccomp: filters that a program puts in front of its own system calls (kernel/seccomp.c).

A filter is a program of classic BPF over the number of a call, the architecture, the place and the
arguments. It can only look and answer, so it is carried out here as it stands; the answers of one
that does not look at arguments are remembered by number.

Not there: user notification (SECCOMP_FILTER_FLAG_NEW_LISTENER) and the stop for a tracer.
"""

import errno
import struct
from typing import Final

from msgspec import Struct, field

from engine.linux import delivery, futex
from engine.linux import signals as sig
from engine.linux.context import SyscallTable, s32
from engine.linux.ending import Crash
from engine.linux.errno import LinuxError
from engine.linux.signals import PendingSignal
from engine.linux.thread import Thread

STRICT, FILTER = 1, 2
KILL_PROCESS, KILL_THREAD, TRAP, ERRNO = 0x8000_0000, 0, 0x3_0000, 0x5_0000
USER_NOTIFICATION, TRACE, LOG, ALLOW = 0x7FC0_0000, 0x7FF0_0000, 0x7FFC_0000, 0x7FFF_0000
_SET_STRICT, _SET_FILTER, _ACTION_AVAILABLE = 0, 1, 2
_TSYNC, _NEW_LISTENER, _TSYNC_ESRCH = 1, 8, 16
_FLAGS: Final = _TSYNC | 2 | 4 | _TSYNC_ESRCH
"""Flags that are taken: TSYNC and its ESRCH; LOG and SPEC_ALLOW, which do nothing here."""
_KNOWN_ACTIONS: Final = frozenset({KILL_PROCESS, KILL_THREAD, TRAP, ERRNO, TRACE, LOG, ALLOW})
_ALWAYS_ALLOWED: Final = frozenset({"read", "write", "exit", "rt_sigreturn"})
"""In strict mode."""
_MOST: Final = 4096
"""BPF_MAXINSNS."""
_MOST_OF_ALL: Final = 32768
"""Instructions of all filters of a thread, with four more for each filter."""
_PENALTY: Final = 4
_DATA: Final = struct.Struct("<iIQ6Q")
"""struct seccomp_data."""
_INSN: Final = struct.Struct("<HBBI")
_WORDS: Final = 16
"""Words of a filter's own memory, as words of what it looks at."""
_FIRST_ARGUMENT: Final = 8
"""Offset of what answers are not remembered for: place and arguments."""
_WORD: Final = 0xFFFF_FFFF

_LD_ABS, _LD_LEN, _LDX_LEN, _LD_IMM, _LDX_IMM = 0x20, 0x80, 0x81, 0x00, 0x01
_LD_MEM, _LDX_MEM, _ST, _STX, _TAX, _TXA, _RET_K, _RET_A, _NEG, _JA = (
    *(0x60, 0x61, 0x02, 0x03, 0x07, 0x87, 0x06, 0x16, 0x84),
    0x05,
)
_ADD, _SUB, _MUL, _DIV, _OR, _AND, _LSH, _RSH, _XOR = (
    0x00,
    0x10,
    0x20,
    0x30,
    0x40,
    0x50,
    0x60,
    0x70,
    0xA0,
)
_ALU, _ALU_X, _JMP, _JMP_X = 0x04, 0x0C, 0x05, 0x0D
_OPERATIONS: Final = frozenset({_ADD, _SUB, _MUL, _DIV, _OR, _AND, _LSH, _RSH, _XOR})
_JUMPS: Final = frozenset({0x10, 0x20, 0x30, 0x40})
"""JEQ, JGT, JGE, JSET."""
_CODES: Final = frozenset(
    {
        *(_LD_ABS, _LD_LEN, _LDX_LEN, _LD_IMM, _LDX_IMM, _LD_MEM, _LDX_MEM, _ST, _STX),
        *(_TAX, _TXA, _RET_K, _RET_A, _NEG, _JA),
        *(operation | kind for operation in _OPERATIONS for kind in (_ALU, _ALU_X)),
        *(jump | kind for jump in _JUMPS for kind in (_JMP, _JMP_X)),
    }
)
"""Instructions that filters may contain (seccomp_check_filter)."""


class BpfInsn(Struct, frozen=True):
    """An instruction of classic BPF (struct sock_filter)."""

    code: int
    jt: int
    jf: int
    k: int


class SeccompFilter:
    """A filter that was checked.

    Attributes:
        size: its instructions.
    """

    def __init__(self, insns: tuple[BpfInsn, ...]) -> None:
        """Check a program.

        Raises:
            LinuxError: EINVAL where Linux refuses it.
        """
        _check(insns)
        self.size = len(insns)
        self._insns = insns
        self._looks = any(
            one.code == _LD_ABS and one.k >= _FIRST_ARGUMENT for one in insns
        )  # at more than number and architecture
        self._known: dict[int, int] = {}

    def answer(self, number: int, data: bytes) -> int:
        """The answer about a call."""
        if self._looks:
            return _run(self._insns, data)
        found = self._known.get(number)
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            found = self._known[number] = _run(self._insns, data)
        return found


class Seccomp(Struct, frozen=True):
    """The restriction of a thread; its copies share it.

    Attributes:
        mode: STRICT or FILTER.
        filters: the newest first.
    """

    mode: int
    filters: tuple[SeccompFilter, ...] = field(default_factory=tuple)


def _check(insns: tuple[BpfInsn, ...]) -> None:
    wrong = LinuxError(errno.EINVAL)
    count = len(insns)
    known = [0xFFFF] * count  # words of memory that are set on every way to an instruction
    valid = 0
    for at, insn in enumerate(insns):
        code, k = insn.code, insn.k
        if code not in _CODES or (code == _LD_ABS and (k >= _DATA.size or k & 3)):
            raise wrong
        shift = code in (_ALU | _LSH, _ALU | _RSH)
        if (code == _ALU | _DIV and not k) or (shift and k >= 32):
            raise wrong
        valid &= known[at]
        if code in (_LD_MEM, _LDX_MEM, _ST, _STX):
            if k >= _WORDS:
                raise wrong
            if code in (_ST, _STX):
                valid |= 1 << k
            elif not valid >> k & 1:
                raise wrong
        elif code == _JA:
            if k >= count - at - 1:
                raise wrong
            known[at + 1 + k] &= valid
            valid = 0xFFFF
        elif code & 7 == _JMP:
            if max(insn.jt, insn.jf) + at + 1 >= count:
                raise wrong
            known[at + 1 + insn.jt] &= valid
            known[at + 1 + insn.jf] &= valid
            valid = 0xFFFF
    if insns[-1].code not in (_RET_K, _RET_A):
        raise wrong


def _run(insns: tuple[BpfInsn, ...], data: bytes) -> int:
    """Carry a program out; each of its jumps leads forwards."""
    a = x = at = 0
    memory = [0] * _WORDS
    while True:
        insn = insns[at]
        at += 1
        code, k = insn.code, insn.k
        if code == _LD_ABS:
            a = int.from_bytes(data[k : k + 4], "little")
        elif code == _RET_K:
            return k
        elif code == _RET_A:
            return a
        elif code == _JA:
            at += k
        elif code & 7 == _JMP:
            at += insn.jt if _holds(code & 0xF0, a, x if code & 8 else k) else insn.jf
        elif code == _NEG:
            a = -a & _WORD
        elif code & 7 == _ALU:
            other = x if code & 8 else k
            if code & 0xF0 == _DIV and not other:
                return KILL_THREAD
            a = _combined(code & 0xF0, a, other)
        elif code in (_LD_IMM, _LD_LEN):
            a = k if code == _LD_IMM else _DATA.size
        elif code in (_LDX_IMM, _LDX_LEN):
            x = k if code == _LDX_IMM else _DATA.size
        elif code == _LD_MEM:
            a = memory[k]
        elif code == _LDX_MEM:
            x = memory[k]
        elif code == _ST:
            memory[k] = a
        elif code == _STX:
            memory[k] = x
        elif code == _TAX:
            x = a
        else:  # _TXA
            a = x


def _holds(jump: int, a: int, other: int) -> bool:
    if jump == 0x10:
        return a == other
    if jump == 0x20:
        return a > other
    if jump == 0x30:
        return a >= other
    return bool(a & other)


def _combined(operation: int, a: int, other: int) -> int:
    if operation == _ADD:
        found = a + other
    elif operation == _SUB:
        found = a - other
    elif operation == _MUL:
        found = a * other
    elif operation == _DIV:
        found = a // other
    elif operation == _AND:
        found = a & other
    elif operation == _OR:
        found = a | other
    elif operation == _XOR:
        found = a ^ other
    elif operation == _LSH:
        found = a << (other & 31)
    else:
        found = a >> (other & 31)
    return found & _WORD


# -- a call ----------------------------------------------------------------------------------


def judged(k: Thread, number: int, name: str, arguments: tuple[int, ...]) -> int | bool:
    """Judge a call that a thread makes.

    Returns:
        True where it may be made; its result where it is not; False where it has none, as the
        thread gets a signal or ends.
    """
    restricted = k.seccomp
    assert restricted is not None, "asked before"
    if restricted.mode == STRICT:
        if name in _ALWAYS_ALLOWED:
            return True
        _kill(k, sig.SIGKILL, name, whole=False)
        return False
    arch = 0xC000_0000 | k.arch.elf_machine  # __AUDIT_ARCH_64BIT and _LE
    words = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = _DATA.pack(s32(number), arch, k.pc(), *words)
    answer = min(
        (one.answer(number, data) for one in restricted.filters),
        key=lambda found: s32(found & 0xFFFF_0000),
    )
    action, value = answer & 0xFFFF_0000, answer & 0xFFFF
    if action in (ALLOW, LOG):
        return True
    if action == ERRNO:
        return -min(value, 4095)
    if action == TRAP:
        info = struct.pack("<iiiiQiI", sig.SIGSYS, value, 1, 0, k.pc(), number, arch)
        crash = Crash(sig.SIGSYS, k.pc(), None, f"seccomp: {name or number} is trapped")
        delivery.force_info(k, PendingSignal(sig.SIGSYS, info), crash)
        return False
    if action in (TRACE, USER_NOTIFICATION):
        k.unsupported("a seccomp filter that asks another process")
        return -errno.ENOSYS
    _kill(k, sig.SIGSYS, name or str(number), whole=action != KILL_THREAD)
    return False


def _kill(k: Thread, number: int, name: str, *, whole: bool) -> None:
    """End a thread, and its process with the last one or as a whole."""
    if whole or len(k.process.threads) == 1:
        k.process.die(number, Crash(number, k.pc(), None, f"seccomp: {name} is not allowed"))
        return
    futex.thread_ends(k)
    k.machine.left(k, number)
    k.files.leave()


# -- restricting oneself -----------------------------------------------------------------------


def restrict(k: Thread, operation: int, flags: int, address: int) -> int:
    """The system call: restrict the thread, or ask what could be.

    Raises:
        LinuxError: EINVAL, EFAULT, EACCES, ENOMEM, EOPNOTSUPP, ESRCH as Linux has them.
    """
    operation, flags = operation & _WORD, flags & _WORD
    if operation == _SET_STRICT:
        if flags or address:
            raise LinuxError(errno.EINVAL)
        _may_assign(k, STRICT)
        k.seccomp = Seccomp(STRICT)
        k.refuses_counter = k.arch.linux.refuses_counter
        return 0
    if operation == _SET_FILTER:
        return _add_filter(k, flags, address)
    if operation == _ACTION_AVAILABLE:
        if flags:
            raise LinuxError(errno.EINVAL)
        (action,) = struct.unpack("<I", k.memory.read(address, 4))
        if action not in _KNOWN_ACTIONS:
            raise LinuxError(errno.EOPNOTSUPP)
        return 0
    raise LinuxError(errno.EINVAL)


def set_mode(k: Thread, mode: int, address: int) -> int:
    """The same by prctl(PR_SET_SECCOMP)."""
    if mode == STRICT:
        return restrict(k, _SET_STRICT, 0, 0)
    if mode == FILTER:
        return restrict(k, _SET_FILTER, 0, address)
    raise LinuxError(errno.EINVAL)


def _may_assign(k: Thread, mode: int) -> None:
    if k.seccomp is not None and k.seccomp.mode != mode:
        raise LinuxError(errno.EINVAL)


def _add_filter(k: Thread, flags: int, address: int) -> int:
    if flags & _NEW_LISTENER:
        k.unsupported("seccomp user notification")
    if flags & ~_FLAGS:
        raise LinuxError(errno.EINVAL)
    count, where = struct.unpack("<H6xQ", k.memory.read(address, 16))
    if not 0 < count <= _MOST:
        raise LinuxError(errno.EINVAL)
    if not k.process.knobs["no_new_privs"] and k.uid:
        raise LinuxError(errno.EACCES)
    raw = k.memory.read(where, count * _INSN.size)
    made = SeccompFilter(tuple(BpfInsn(*row) for row in _INSN.iter_unpack(raw)))
    _may_assign(k, FILTER)
    before = k.seccomp.filters if k.seccomp is not None else ()
    if made.size + sum(one.size + _PENALTY for one in before) > _MOST_OF_ALL:
        raise LinuxError(errno.ENOMEM)
    if flags & _TSYNC:
        odd = next((one for one in k.process.threads.values() if not _can_follow(k, one)), None)
        if odd is not None:
            if flags & _TSYNC_ESRCH:
                raise LinuxError(errno.ESRCH)
            return odd.tid
    k.seccomp = restricted = Seccomp(FILTER, (made, *before))
    if flags & _TSYNC:
        for thread in k.process.threads.values():
            thread.seccomp = restricted
    return 0


def _can_follow(k: Thread, other: Thread) -> bool:
    """True if a thread's filters are some of the caller's oldest (seccomp_can_sync_threads)."""
    mine = k.seccomp.filters if k.seccomp is not None else ()
    theirs = other.seccomp
    if theirs is None:
        return True
    own = theirs.filters
    return theirs.mode == FILTER and (not own or mine[len(mine) - len(own) :] == own)


SYSCALLS: SyscallTable = {"seccomp": restrict}
