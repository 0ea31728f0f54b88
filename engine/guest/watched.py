"""Watched bytes of one address space: accesses to them are caught, one instruction at a time.

Pages with watched bytes refuse the accesses that are of interest; nothing else of the program is
any slower for it. An instruction that is refused is executed alone, with the pages open, and
what it accesses is compared with the ranges. The program's own view of its permissions stays.

System calls, signal frames, and instructions that the engine carries out itself copy bytes
without the processor: those copies are seen where they are made.
"""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from engine.cpu.base import Access, Cpu, Stop, StopKind
from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE
from engine.errors import GuestFaultError
from engine.guest.memory import Memory


class WatchedRange(Struct, eq=False):
    """Bytes of which accesses are watched.

    Attributes:
        start: address of the first.
        size: how many.
        reads: loads are of interest.
        writes: stores are.
    """

    start: int
    size: int
    reads: bool = False
    writes: bool = True

    @property
    def end(self) -> int:
        """The address behind the last."""
        return self.start + self.size

    def touched(self, start: int, end: int) -> bool:
        """True if some bytes are among them."""
        return start < self.end and self.start < end


class WatchHit(Struct, frozen=True):
    """An instruction or a call that has accessed watched bytes.

    Attributes:
        range: which.
        read: it has loaded some of them.
        written: (address, size) of what it has stored there, pieces side by side as one; None
            for nothing.
        old: the range's bytes before.
        new: its bytes now.
        pc: address of the instruction; where a call copies, of the one behind the call.
    """

    range: WatchedRange
    read: bool
    written: tuple[int, int] | None
    old: bytes
    new: bytes
    pc: int

    @property
    def changed(self) -> bool:
        """True if the bytes are others than before."""
        return self.old != self.new


_LINE: Final = 64
"""Bytes that ranges are looked up by."""

OnHits = Callable[[list[WatchHit]], None]
"""Told what one instruction or one copy has accessed, behind it."""


class WatchedMemory:
    """The watched ranges of an address space.

    Attributes:
        listeners: told of hits, each of all.
        memory: the address space.
        serving: tells whether a system call is being carried out.
    """

    def __init__(self, memory: Memory, cpu: Cpu, pc: str) -> None:
        """Watch nothing yet.

        Args:
            memory: the address space.
            cpu: the processor.
            pc: name of its program counter.
        """
        self.memory = memory
        self.listeners: list[OnHits] = []
        self.serving: Callable[[], bool] = lambda: False
        self._cpu = cpu
        self._pc = pc
        self._ranges: dict[int, WatchedRange] = {}  # by identity
        self._lines: dict[int, list[WatchedRange]] = {}
        self._places: dict[int, int] = {}
        self._layout: object = None
        self._before: list[tuple[WatchedRange, bytes]] = []

    # -- the ranges -----------------------------------------------------------------------

    @property
    def ranges(self) -> list[WatchedRange]:
        """All of them."""
        return list(self._ranges.values())

    def add(self, ranges: Iterable[WatchedRange]) -> None:
        """Watch these, too; they may be anywhere, mapped or not."""
        for one in ranges:
            self._ranges[id(one)] = one
            for line in _pieces(one.start, one.size, _LINE):
                self._lines.setdefault(line, []).append(one)
        self._close()

    def remove(self, ranges: Iterable[WatchedRange]) -> None:
        """Watch these no longer; those that are not watched are passed over."""
        for one in ranges:
            if self._ranges.pop(id(one), None) is None:
                continue
            for line in _pieces(one.start, one.size, _LINE):
                self._lines[line].remove(one)
                if not self._lines[line]:
                    del self._lines[line]
        self._close()

    def _close(self) -> None:
        """Let the pages refuse what is of interest there."""
        kept: dict[int, int] = {}
        for one in self._ranges.values():
            for page in _pieces(one.start, one.size, PAGE):
                if one.reads:
                    kept[page] = EXECUTE  # no page that can be written cannot be read
                else:
                    kept.setdefault(page, READ | EXECUTE)
        reads = [(one.start, one.end) for one in self._ranges.values() if one.reads]
        writes = [(one.start, one.end) for one in self._ranges.values() if one.writes]
        self.memory.watch_pages(kept, reads, writes)
        self.memory.bytes.watcher = self if kept else None
        self._layout = None

    def _at(self, start: int, end: int) -> list[WatchedRange]:
        """The ranges that share bytes with a stretch, each once, by address."""
        found: dict[int, WatchedRange] = {}
        for line in _pieces(start, end - start, _LINE):
            for one in self._lines.get(line, ()):
                if one.touched(start, end):
                    found[id(one)] = one
        return sorted(found.values(), key=lambda one: one.start)

    # -- instructions ---------------------------------------------------------------------

    def refused(self, stop: Stop, call: Callable[[], Stop | None] | None = None) -> Stop | None:
        """An access was refused: carry its instruction out alone if it is for what is watched.

        Args:
            stop: the refusal.
            call: executes the instruction, where that is not by a plain step.

        Returns:
            What is left of the stop for others; None where the program may go on.
        """
        kept = self.memory.watched.get(stop.address & -PAGE)
        if kept is None or stop.kind is not StopKind.FAULT or stop.access == "execute":
            return stop
        if kept & (WRITE if stop.access == "write" else READ):
            return stop
        self.memory.sync()
        return self._alone(call)

    def carry_out(self, call: Callable[[], Stop | None]) -> Stop | None:
        """Execute an instruction as somebody else does it, and see what it accesses."""
        return self._alone(call)

    def _alone(self, call: Callable[[], Stop | None] | None) -> Stop | None:
        pc = self._cpu.read_register(self._pc)
        stop, accesses = self._cpu.observe(self._where(), call)
        if stop is None and accesses:
            self._compare(pc, accesses)
        return stop

    def _where(self) -> dict[int, int]:
        """Arena offset of each page to its address."""
        if self._layout is not self.memory.table.layout:
            self._places = {}
            for page in self.memory.watched:
                mapping = self.memory.find(page)
                if mapping is not None and mapping.physical is not None:
                    self._places[mapping.physical + page - mapping.start] = page
            self._layout = self.memory.table.layout
        return self._places

    def _compare(self, pc: int, accesses: list[Access]) -> None:
        """See which ranges an instruction has accessed."""
        found: dict[int, WatchedRange] = {}
        for access in accesses:
            for one in self._at(access.address, access.address + access.size):
                if one.writes if access.write else one.reads:
                    found[id(one)] = one
        hits = []
        for one in found.values():
            mine = [each for each in accesses if one.touched(each[1], each[1] + each[2])]
            new = self._peek(one)
            old = bytearray(new)
            for access in reversed(mine):
                if access.write:
                    _put_back(old, one.start, access)
            writes = _joined([each for each in accesses if each.write], one)
            read = any(not access.write for access in mine)
            hits.append(WatchHit(one, read, writes, bytes(old), new, pc))
        if hits:
            self._report(hits)

    def _report(self, hits: list[WatchHit]) -> None:
        for listener in self.listeners:
            listener(hits)

    def _peek(self, one: WatchedRange) -> bytes:
        try:
            return self.memory.peek(one.start, one.size)
        except GuestFaultError:
            return b""

    # -- copies ---------------------------------------------------------------------------

    def read(self, address: int, size: int) -> None:
        """Bytes are copied out; of interest only while a system call does it."""
        if self.serving():
            self.loaded(address, size)

    def loaded(self, address: int, size: int) -> None:
        """The program has read bytes by somebody else's hand."""
        hits = []
        for one in self._at(address, address + size):
            if one.reads:
                now = self._peek(one)
                hits.append(WatchHit(one, True, None, now, now, self._cpu.read_register(self._pc)))
        if hits:
            self._report(hits)

    def write(self, address: int, size: int) -> None:
        """Bytes are about to be overwritten in the program's name."""
        self._before = [
            (one, self._peek(one)) for one in self._at(address, address + size) if one.writes
        ]

    def written(self, address: int, size: int) -> None:
        """Take note that bytes have been written."""
        before, self._before = self._before, []
        pc = self._cpu.read_register(self._pc) if before else 0
        hits = [
            WatchHit(one, False, (address, size), old, self._peek(one), pc) for one, old in before
        ]
        if hits:
            self._report(hits)


def _pieces(address: int, size: int, unit: int) -> range:
    """The aligned pieces of a size that some bytes lie in."""
    return range(address & -unit, address + max(size, 1), unit)


def _put_back(now: bytearray, start: int, access: Access) -> None:
    """Undo a store in the bytes of a range."""
    for index, byte in enumerate(access.old):
        place = access.address + index - start
        if 0 <= place < len(now):
            now[place] = byte


def _joined(writes: list[Access], one: WatchedRange) -> tuple[int, int] | None:
    """The stretch of stores side by side that meets a range first; None where none does."""
    pieces: list[list[int]] = []
    for access in sorted(writes, key=lambda each: each.address):
        end = access.address + access.size
        if pieces and access.address <= pieces[-1][1]:
            pieces[-1][1] = max(pieces[-1][1], end)
        else:
            pieces.append([access.address, end])
    for start, end in pieces:
        if one.touched(start, end):
            return start, end - start
    return None
