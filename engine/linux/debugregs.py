"""Debug registers of a thread, as x86 has them: bytes that are watched, and where it stops.

Sources: arch/x86/kernel/hw_breakpoint.c, arch/x86/kernel/ptrace.c; Intel SDM volume 3, 18.2.
"""

import errno
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from engine.guest.watched import WatchedRange, WatchHit
from engine.linux import signals as sig
from engine.linux.signals import PendingSignal

if TYPE_CHECKING:
    from engine.linux.space import AddressSpace
    from engine.linux.thread import Thread

_COUNT: Final = 4
_RESERVED_6: Final = 0xFFFF0FF0
_RESERVED_7: Final = 0xFFFF_FFFF_0000_FC00
_STEP: Final = 1 << 14
"""In DR6: a single step."""
_EXECUTE, _WRITE, _IO, _ACCESS = range(4)
_SIZES: Final = (1, 2, 8, 4)
"""Bytes by the length field of DR7."""
_TRAP_HWBKPT: Final = 4


class DebugRegisters:
    """DR0 to DR7 of a thread.

    Attributes:
        stops: addresses in front of which it stops, with their registers. There is no trap for
            them: a thread that has any goes one instruction at a time.
    """

    def __init__(self, thread: "Thread") -> None:
        self._thread = thread
        self._addresses = [0] * _COUNT
        self._known = [False] * _COUNT  # an address or a control has been given
        self._status = self._control = 0
        self._ranges: dict[int, int] = {}  # identity of a watched range to its register
        self._armed: list[WatchedRange] = []
        self._space: AddressSpace | None = None
        self.stops: dict[int, int] = {}
        self._passed = -1

    def get(self, number: int) -> int:
        """The value of a register."""
        if number < _COUNT:
            return self._addresses[number]
        if number == 6:
            return self._status ^ _RESERVED_6
        return self._control if number == 7 else 0

    def put(self, number: int, value: int) -> int:
        """Set a register; 0 or an errno."""
        if number < _COUNT:
            return self._put_address(number, value)
        if number == 6:
            self._status = value ^ _RESERVED_6
            return 0
        return self._put_control(value & ~_RESERVED_7) if number == 7 else errno.EIO

    def _put_address(self, number: int, value: int) -> int:
        before = self._addresses[number]
        self._addresses[number] = value
        fields = _fields(self._control, number) if self._known[number] else (_WRITE, 1)
        error = self._check(number, fields)
        if error:
            self._addresses[number] = before
            return error
        self._known[number] = True
        self._arm()
        return 0

    def _put_control(self, value: int) -> int:
        for number in range(_COUNT):
            if not value >> 2 * number & 3 and not self._known[number]:
                continue
            error = self._check(number, _fields(value, number))
            if error:
                return error
        for number in range(_COUNT):
            self._known[number] |= bool(value >> 2 * number & 3)
        self._control = value
        self._arm()
        return 0

    def _check(self, number: int, fields: tuple[int, int]) -> int:
        kind, size = fields
        address = self._addresses[number]
        if kind == _IO or (kind == _EXECUTE and size != 1):
            return errno.EINVAL
        if address & (size - 1) or address + size > self._thread.arch.plan.task_size:
            return errno.EINVAL
        return 0

    # -- what they do ----------------------------------------------------------------------

    def clear(self) -> None:
        """A new program begins, or the thread has ended."""
        self._control = 0
        self._addresses, self._known = [0] * _COUNT, [False] * _COUNT
        self._arm()

    def _arm(self) -> None:
        """Watch what they say, and nothing else."""
        if self._space is not None and self._armed:
            self._space.watched_memory(self._thread).remove(self._armed)
        self._ranges.clear()
        self.stops.clear()
        self._armed, self._space = [], self._thread.space
        for number in range(_COUNT):
            if not self._control >> 2 * number & 3:
                continue
            (kind, size), address = _fields(self._control, number), self._addresses[number]
            if kind == _EXECUTE:
                self.stops[address] = number
                continue
            one = WatchedRange(address, size, reads=kind == _ACCESS)
            self._ranges[id(one)] = number
            self._armed.append(one)
        if self._armed:
            watched = self._space.watched_memory(self._thread)
            if self._told not in watched.listeners:
                watched.listeners.append(self._told)
            watched.add(self._armed)

    def _told(self, hits: list[WatchHit]) -> None:
        """Watched bytes have been accessed."""
        machine = self._thread.machine
        if machine.current is not self._thread or machine.serving or machine.delivering:
            return
        self.hit(self._ranges[id(hit.range)] for hit in hits if id(hit.range) in self._ranges)

    def hit(self, numbers: Iterable[int]) -> None:
        """The thread has met what these registers say: it gets a SIGTRAP (exc_debug)."""
        found = sum(1 << number for number in set(numbers))
        if found:
            self._status = found
            info = sig.info_fault(sig.SIGTRAP, _TRAP_HWBKPT, self._thread.pc())
            self._thread.signals.force(PendingSignal(sig.SIGTRAP, info))

    def meets(self) -> bool:
        """True if the thread stands where it stops; it goes on from there the next time."""
        pc = self._thread.pc()
        if pc not in self.stops or pc == self._passed:
            self._passed = -1
            return False
        self._passed = pc  # RF
        self.hit([self.stops[pc]])
        return True

    def stepped(self) -> None:
        """Take note that the thread has been let go one instruction."""
        self._status = _STEP


def _fields(control: int, number: int) -> tuple[int, int]:
    """(what is watched for, bytes) of an address, from DR7."""
    bits = control >> 16 + 4 * number
    return bits & 3, _SIZES[bits >> 2 & 3]
