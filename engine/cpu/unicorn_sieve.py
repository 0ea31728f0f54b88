"""Accesses to watched bytes are told from those beside them without leaving the emulator.

Unicorn's emulator has watchpoints of its own: pages with some are marked in the TLB, and accesses
to those ask a function. In this build both functions are empty. They are led to a few host
instructions that look into a sorted table of ranges. An access to one ends the run in front of its
instruction, as a refused access does, with exact registers; all others go on.

Without executable host memory, on another host, or if the library is laid out differently, watched
pages refuse all accesses instead: slower, with the same results.
"""

import ctypes
import struct
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from msgspec import Struct

from engine.cpu import native
from engine.cpu import unicorn_api as api
from engine.cpu import unicorn_linkage as linkage
from engine.cpu.native_code import ABORT_RECORD, SIEVE, SIEVE_CHECK

_CPU, _ENGINE, _STOP, _LEAVE = range(4)
_WRITES, _READS = 4, 6
"""Words with the address of a table; behind it, how many entries it has."""
_ADDRESS, _FLAGS, _WORDS = 8, 9, 10
_WRITE: Final = 2  # BP_MEM_WRITE of Unicorn's emulator
_BEHIND: Final = (1 << 64) - 1

Span = tuple[int, int]
"""First address and the one behind the last."""


class _Installed(Struct, frozen=True):
    """The parts that all engines of an architecture share: the record, and what must be kept."""

    words: "memoryview[int]"
    keep: tuple[object, ...]


class AccessSieve:
    """The watched bytes of one engine.

    Attributes:
        watching: some are.
    """

    def __init__(self, handle: Any, engine: int, target: str) -> None:
        """Watch nothing; nothing is installed before somebody does.

        Args:
            handle: Unicorn's handle of the engine.
            engine: address at which Unicorn keeps it.
            target: how Unicorn's functions of its architecture end.
        """
        self._handle = handle
        self._engine = engine
        self._target = target
        self._cpu = 0
        self._installed: _Installed | None = None
        self._tables: tuple[ctypes.Array[Any], ctypes.Array[Any]] | None = None
        self.watching = False

    def possible(self) -> bool:
        """True if ranges can be watched so; installs what it takes."""
        if not native.possible():
            return False
        if self._installed is None:
            self._installed = installed(self._target)
            self._cpu = linkage.cpu_of(self._engine)
        return self._installed is not None and self._cpu != 0

    def choose(self, reads: Sequence[Span], writes: Sequence[Span]) -> None:
        """Watch these loads and stores from now on; the caller flushes the TLB."""
        self.watching = bool(reads or writes) and self.possible()
        self._tables = (_table(writes), _table(reads)) if self.watching else None

    def enter(self, *, on: bool) -> None:
        """Before a run: are accesses looked at in it?"""
        installed = self._installed
        if installed is None:
            return
        words = installed.words
        words[_CPU] = words[_ADDRESS] = words[_FLAGS] = 0
        if on and self._tables is not None:
            words[_ENGINE], words[_CPU] = self._engine, self._cpu
            for at, table in ((_WRITES, self._tables[0]), (_READS, self._tables[1])):
                words[at], words[at + 1] = ctypes.addressof(table), len(table) // 2 - 1

    def leave(self) -> None:
        """After a run: nobody looks at the tables."""
        if self._installed is not None:
            self._installed.words[_CPU] = 0

    def met(self) -> tuple[int, str] | None:
        """The address and kind of the access that has ended the run; None for none."""
        installed = self._installed
        if installed is None or not installed.words[_FLAGS]:
            return None
        words = installed.words
        return words[_ADDRESS], "write" if words[_FLAGS] & _WRITE else "read"


def _table(spans: Sequence[Span]) -> "ctypes.Array[Any]":
    """Spans as the host code searches them: sorted, apart, with one behind all addresses."""
    joined: list[list[int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([start, end])
    flat = [word for span in (*joined, [_BEHIND, _BEHIND]) for word in span]
    return (ctypes.c_uint64 * len(flat))(*flat)


@cache
def installed(target: str) -> _Installed | None:
    """Lead the functions of an architecture to the host code; None where that cannot be done."""
    names = (f"cpu_watchpoint_address_matches_{target}", f"cpu_check_watchpoint_{target}")
    slots = linkage.slots_of(tuple(name.encode() for name in names))
    leave = linkage.address_of(f"cpu_loop_exit_restore_{target}")
    if slots is None or not leave:
        return None
    record = linkage.record(_WORDS)
    words = record.words
    words[_STOP], words[_LEAVE] = linkage.address_in(api.emu_stop), leave
    placed = native.place((SIEVE.replace(ABORT_RECORD, struct.pack("=Q", record.at)),))
    if placed is None:
        return None
    (place,), memory = placed
    from engine.cpu.unicorn_watches import (  # few processes watch anything
        WATCH_LINKS,
        WATCHED_FUNCTIONS,
    )

    # The links of machines stay in front of the functions, and go on to the sieve.
    code = {"matches": place, "check": place + SIEVE_CHECK}
    below = slots == linkage.slots_of(WATCHED_FUNCTIONS) and WATCH_LINKS.put_below(code)
    if not below and not linkage.redirect(slots, list(code.values())):
        return None
    return _Installed(words, (record, memory))
