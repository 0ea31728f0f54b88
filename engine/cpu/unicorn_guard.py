"""A guest's instruction must not end the engine's own process.

Unicorn 2.1.4 calls abort() on some unallocated encodings while it translates them, and would on
any other that reaches an assertion. Its own call of abort (not the process's) is led to a few
host instructions that leave its execution loop the way an exception leaves it, as a refused
instruction fetch does in the middle of a translation; the engine then looks for the instruction
that cannot be translated. Nothing is scanned and nothing is paid while nothing happens.

Unicorn's printf and fprintf are led to nothing: a failing assertion writes to standard output,
which is the guest's.

Without executable host memory, on another host, or if the library is laid out differently, the
calls stay as they are: `Guard.active` says so.
"""

import ctypes
import struct
import threading
from functools import cache
from typing import Any, Final

from msgspec import Struct

from engine.cpu import native
from engine.cpu import unicorn_api as api
from engine.cpu import unicorn_linkage as linkage
from engine.cpu.native_code import ABORT, ABORT_RECORD, SILENCE

ABORTED: Final = -1
"""Returned by `Guard.start` when Unicorn has given up; no uc_err is negative."""

_THREAD, _COUNT, _STOP, _ENGINE, _LEAVE, _CPU, _REAL, _WORDS = range(8)


class _Shared(Struct, frozen=True):
    """The parts that a process has once: the record that the host code reads, and its code.

    Words of the record: the host thread that is inside Unicorn, how often it was left, the
    function that stops it and its argument, the one that leaves it and its argument, abort.
    """

    words: "memoryview[int]"
    owner: list[object]
    keep: tuple[object, ...]


class Guard:
    """Enters one engine so that it comes back.

    Attributes:
        active: whether Unicorn's failing assertions are caught here.
    """

    def __init__(self, handle: Any, engine: int, target: str, leave: int = 0) -> None:
        """Lead the library's failing assertions back here, if that can be done.

        Args:
            handle: Unicorn's handle of the engine.
            engine: address at which Unicorn keeps it.
            target: how Unicorn's functions of its architecture end.
            leave: address of a function that leaves its execution loop, given the CPUState; 0 for
                the one that an exception takes.
        """
        self._handle = handle
        self._engine = engine
        self._leave = leave or linkage.address_of(f"cpu_loop_exit_{target}")
        self._cpu = linkage.cpu_of(engine)
        shared = _install() if self._leave and self._cpu and native.possible() else None
        self.active = shared is not None
        self._shared = shared

    def start(self, pc: int, end: int, count: int) -> int:
        """Run as uc_emu_start does; its error, or ABORTED.

        After ABORTED pc is where the block begins that could not be translated.
        """
        shared = self._shared
        if shared is None:
            return int(api.emu_start(self._handle, pc, end, 0, count))
        words = shared.words
        if shared.owner[0] is not self:
            words[_ENGINE], words[_CPU], words[_LEAVE] = self._engine, self._cpu, self._leave
            shared.owner[0] = self
        words[_THREAD] = threading.get_ident()
        try:
            error: int = api.emu_start(self._handle, pc, end, 0, count)
        finally:
            words[_THREAD] = 0
        if words[_COUNT]:
            words[_COUNT] = 0
            return ABORTED
        return error


@cache
def _install() -> _Shared | None:
    """Lead the library's imports to the host code; None where that cannot be done."""
    slots = linkage.slots_of((b"abort", b"printf", b"fprintf"))
    record = linkage.record(_WORDS)
    words = record.words
    words[_STOP] = linkage.address_in(api.emu_stop)
    words[_REAL] = linkage.address_in(ctypes.CDLL(None).abort)
    code = native.place(
        (ABORT.replace(ABORT_RECORD, struct.pack("=Q", record.at)), SILENCE, SILENCE)
    )
    if slots is None or code is None:
        return None
    places, memory = code
    if not linkage.redirect(slots, places):
        return None
    return _Shared(words, [None], (record, memory))
