"""Memory that all detours share: the trace's rows, a save area, counters, records of calls.

Detours write rows into the memory of the trace's own `Staging`, which is shown to the guest in an
engine window, behind which nothing is mapped: a row that does not fit faults there, and the engine
empties the ring and lets the detour begin the row anew. Nothing of the program's is used meanwhile
but registers, which are kept in another page of the window. The program can write to these pages
if it looks for them: rows and records of calls are checked before they are believed, and what is
told of its own calls is all that it can spoil.
"""

import ctypes
from collections.abc import Iterable
from mmap import PAGESIZE, mmap
from typing import Final

from msgspec import Struct

from engine.arch.recording import COMM, COMM_BYTES, CURSOR, SCRATCH, SITES, CallWord, DetourPlaces
from engine.cpu.ram import PAGE, READ, WRITE
from engine.guest.mapping import MappingError
from engine.guest.memory import Memory
from engine.probes.detourroom import DetourRoom, RowMemory
from engine.probes.detours import DetourSpace
from engine.probes.guestcalls import RECORDS, CallMemory
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe
from engine.probes.pending_calls import ReturnSite

THREAD: Final = CURSOR + 24
"""Offset of the thread's word in the page of the save area."""
_COUNTERS: Final = 3 * PAGE
_RING: Final = 1 << 20
_PAIR: Final = 2
"""Words that each probe has for itself."""
_MOST: Final = (_RING - _COUNTERS) // (8 * _PAIR)
_CALLS: Final = SITES * 8 + RECORDS * CallWord.SIZE * 8
_SETS: Final = 64
"""Entries of the smallest TLB that the emulator has, in which a page has one place only."""
_CALLS_AT: Final = 16
"""The place of the calls' first page there, behind those of the save area and the counters: two
pages that each hit uses must not drive each other out."""
_NEVER: Final = (1 << 64) - 1
"""No instruction ends there."""


class SharedMemory(Struct, frozen=True):
    """Memory that detours share, once it is mapped.

    Attributes:
        places: guest addresses of it.
        guard: address behind the rows, where nothing is mapped.
        counters: words of the host's memory that count hits.
        save: the words of the save area.
        calls: what is known of calls.
        space: room for detours.
    """

    places: DetourPlaces
    calls: CallMemory
    guard: int
    counters: "memoryview[int]"
    save: "memoryview[int]"
    space: DetourSpace


class DetourMemory:
    """The memory of the detours of one guest.

    Attributes:
        sink: where rows go; None while nothing is traced.
        shared: what is mapped; None before the first detour.
        broken: why there can be no detours, "" while nothing speaks against it.
    """

    def __init__(self, memory: Memory, room: DetourRoom, time_page: int) -> None:
        """Map nothing yet.

        Args:
            memory: the guest's.
            room: where it may be.
            time_page: see `engine.cpu.base.SharesTime`.
        """
        self._memory = memory
        self._window = room.window
        self._beside = room.beside
        self._time_page = time_page
        self.sink: RowMemory | None = None
        self.shared: SharedMemory | None = None
        self.broken = ""
        self._comm: bytes | None = None
        self._counters: dict[Kprobe, int] = {}
        self._free: list[int] = []

    def open(self, thread: int) -> SharedMemory | None:
        """Map what detours share; None where the host or the guest has no room for it.

        Args:
            thread: id of the running thread.
        """
        if self.shared is not None or self.broken:
            return self.shared
        sink, memory = self.sink, self._memory
        assert sink is not None, "asked for while something is traced"
        if sink.closed:
            self.broken = "the run is over"
            return None
        start, size = self._window
        room = -(-sink.capacity // PAGE) * PAGE
        guard = start + _RING + room
        calls = guard + PAGE
        calls += (_CALLS_AT - (calls - start) // PAGE) % _SETS * PAGE
        end = calls + _CALLS + PAGE
        if PAGESIZE != PAGE or end + PAGE > start + size:
            self.broken = "the host's pages or the ring are too large"
            return None
        both = READ | WRITE
        try:
            memory.attach(start, PAGE, both, host=_address(sink.control))
            memory.attach(start + PAGE, PAGE, READ, host=self._time_page)
            memory.attach(start + 2 * PAGE, PAGE, both, host=self._time_page - PAGE)
            memory.attach(start + _COUNTERS, _RING - _COUNTERS, both)
            memory.attach(start + _RING, room, both, host=_address(sink.buffer) + sink.start)
            memory.attach(calls, _CALLS, both)
        except MappingError as error:
            self.broken = f"no memory for detours: {error}"
            return None
        sink.shown = True
        save = memoryview(sink.control).cast("Q")
        save[THREAD // 8] = thread << 32
        words = self._words(calls)
        self.shared = SharedMemory(
            places=DetourPlaces(
                save=start,
                time=start + 2 * PAGE - 16,
                thread=start + THREAD,
                ring=start + _RING,
                left=start + 2 * PAGE,
                sites=calls,
            ),
            calls=CallMemory(save, words[SITES:], calls + SITES * 8, words[:SITES]),
            guard=guard,
            counters=self._words(start + _COUNTERS),
            save=save,
            space=DetourSpace(memory, [*self._beside, (end, start + size - end)]),
        )
        return self.shared

    @property
    def scratch(self) -> int:
        """Host address of the words at `engine.arch.recording.SCRATCH`."""
        assert self.sink is not None, "there are detours"
        return _address(self.sink.control) + SCRATCH

    def _words(self, address: int) -> "memoryview[int]":
        mapping = self._memory.find(address)
        assert mapping is not None, "just mapped"
        words = self._memory.words(mapping)
        assert words is not None, "the engine's own"
        return words

    def show_thread(self, thread: int, comm: bytes) -> None:
        """The running thread and its name: detours read them, each time it runs again."""
        if self.shared is not None:
            self.shared.save[THREAD // 8] = thread << 32
        if self.shared is None or comm is self._comm:
            return
        self._comm, at = comm, COMM // 8
        comm = comm[: COMM_BYTES - 1]
        padded = comm.ljust(COMM_BYTES, b"\0")
        for number in range(COMM_BYTES // 8):
            word = padded[8 * number : 8 * number + 8]
            self.shared.save[at + number] = int.from_bytes(word, "little")
        self.shared.save[at + COMM_BYTES // 8] = len(comm) + 1

    def enter(self) -> None:
        """The processor is in this address space again: another's thread has been shown."""
        self._comm = None

    @property
    def space(self) -> DetourSpace:
        """Room for detours, as it is or would be."""
        if self.shared is not None:
            return self.shared.space
        return DetourSpace(self._memory, [self._window, *self._beside])

    def holds(self, address: int) -> bool:
        """True if an address lies where detours are."""
        return self.shared is not None and self.shared.space.holds(address)

    # -- counters -------------------------------------------------------------------------

    def counter(self, probe: Kprobe) -> int | None:
        """Guest address of a word that counts a probe's hits; None if all are taken.

        For a place that calls return to there are two words: `ReturnSite.known`.
        """
        assert self.shared is not None, "opened first"
        if self._free:
            number = self._free.pop()
        elif len(self._counters) < _MOST:
            number = len(self._counters)
        else:
            return None
        self._counters[probe] = number
        if isinstance(probe, ReturnSite):
            probe.known = self.shared.counters[_PAIR * number : _PAIR * (number + 1)]
            probe.known[0] = probe.known[1] = _NEVER
        return self.shared.places.save + _COUNTERS + 8 * _PAIR * number

    def give_back(self, probes: Iterable[Kprobe]) -> None:
        """Probes need their counters no more; their counts are brought up to date."""
        assert self.shared is not None or not self._counters, "counters are given out after it is"
        for probe in probes:
            if self.shared is not None and probe in self._counters:
                self._collect(probe)
                number = self._counters.pop(probe)
                self._free.append(number)
                self.shared.counters[_PAIR * number] = 0
                if isinstance(probe, ReturnSite):
                    probe.known = None

    def collect(self) -> None:
        """Bring the probes' counts of hits up to date."""
        for probe in self._counters:
            self._collect(probe)

    def _collect(self, probe: Kprobe) -> None:
        assert self.shared is not None, "counters are given out after it is"
        if isinstance(probe, ReturnSite):
            return
        at, counters = _PAIR * self._counters[probe], self.shared.counters
        hits, counters[at] = counters[at], 0
        probe.hits += hits
        if isinstance(probe, Kretprobe) and probe.tracker is not None:
            probe.tracker.counted(hits)


def _address(memory: mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))
