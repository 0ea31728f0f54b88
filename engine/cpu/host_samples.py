"""Samples of where this process spends its own CPU time.

A timer of the host counts the CPU time of the process and sends SIGPROF; a handler of a few
instructions of machine code writes down the address that was interrupted. A handler of Python's
would not do: it is called only where Python runs, which is what is to be told apart.
"""

import ctypes
import mmap
import signal
import struct
from typing import Final

from engine.cpu import native

INTERVAL: Final = 0.001
"""Seconds of CPU time between two samples. Kernels that count such timers by their ticks send
fewer: what a sample stands for is found by the CPU time over their number."""

_ROOM: Final = 1 << 16
"""Samples that are kept, the last ones."""
_HEAD: Final = 64
# void handler(signal, info, context): mov rax, HEAD; mov ecx, 1; lock xadd [rax], rcx;
# and ecx, ROOM - 1; mov rdx, [rdx + 168]; mov [rax + 8 * rcx + 64], rdx; ret.
# The context is a ucontext_t, the program counter of which is 168 bytes in (sys/ucontext.h).
_HANDLER: Final = (
    b"\x48\xb8%b\xb9\x01\x00\x00\x00\xf0\x48\x0f\xc1\x08\x81\xe1%b"
    b"\x48\x8b\x92\xa8\x00\x00\x00\x48\x89\x54\xc8\x40\xc3"
)
_IGNORE: Final = 1
_SA_SIGINFO, _SA_RESTART, _SA_ONSTACK = 4, 0x1000_0000, 0x0800_0000


class _SignalAction(ctypes.Structure):
    """struct sigaction of the C library on x86-64."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_uint64 * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


class HostSamples:
    """Samples from `start` to `stop`; one at a time in a process."""

    def __init__(self) -> None:
        """Sample nothing before `start`."""
        self._memory: mmap.mmap | None = None
        self._before = _SignalAction()
        self._code: object = None

    def start(self) -> bool:
        """Begin; False where the host cannot, or nobody wants its machine code."""
        if not native.possible():
            return False
        memory = mmap.mmap(-1, _HEAD + 8 * _ROOM)
        head = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        code = _HANDLER % (struct.pack("=Q", head), struct.pack("=I", _ROOM - 1))
        placed = native.place((code,))
        if placed is None:
            return False
        (handler,), self._code = placed
        self._memory = memory
        action = _SignalAction(handler=handler, flags=_SA_SIGINFO | _SA_RESTART | _SA_ONSTACK)
        if not _exchange(action, self._before):
            return False
        signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
        return True

    def stop(self) -> list[int]:
        """End; the addresses that were interrupted."""
        memory = self._memory
        if memory is None:
            return []
        signal.setitimer(signal.ITIMER_PROF, 0)
        _exchange(
            _SignalAction(handler=_IGNORE), _SignalAction()
        )  # what is on its way is dropped by that
        _exchange(self._before, _SignalAction())
        (count,) = struct.unpack_from("=Q", memory)
        kept = min(count, _ROOM)
        return list(struct.unpack_from(f"={kept}Q", memory, _HEAD))


def _exchange(action: _SignalAction, before: _SignalAction) -> bool:
    """Set what SIGPROF does, and learn what it did."""
    change = ctypes.CDLL(None).sigaction
    change.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    given, old = ctypes.addressof(action), ctypes.addressof(before)
    return not change(signal.SIGPROF, given, old)
