"""The emulator's own registers, seen in place.

Reading three registers through Unicorn's interface costs about a microsecond, as much as all
the rest of a probe hit. Its register file is plain memory: where it is, is learnt once by
giving every register a value of its own and looking for those values behind the pointers of
the engine's structure. What was found is then tried in both directions; where anything is not
as expected (another host, another build) there is no view and the interface is used.

All engines of a library have the structure of their target alike: where the first one of a process
has its registers, those after it have theirs, as far behind their CPU. That is tried again with
the first register alone.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from typing import Final, NamedTuple

from engine.cpu import unicorn_linkage as linkage

_ENGINE_BYTES: Final = 4096
"""Of Unicorn's own structure, searched for pointers."""
_STATE_BYTES: Final = 1 << 18
"""Behind each pointer, searched for the registers."""
_BANK_BYTES: Final = 1 << 16
"""Behind the general registers, searched for others."""
_BESIDE: Final = 32
"""Words from the first register on, in which another one is looked for."""
_MAGIC: Final = 0x6B70726F62650000  # "kprobe": canonical, so that any register takes it
_FOUND: Final[dict[tuple[str, ...], dict[str, int]]] = {}
"""By the names that were looked for: bytes of each register behind the CPU of an engine."""
_FOUND_BANKS: Final[dict[tuple[int, tuple[str, ...]], tuple[int, int]]] = {}
"""By words of each and names: bytes from the first general register on, and words of a step."""


class LivePlace(NamedTuple):
    """The place of a register.

    Attributes:
        words: the memory that it is in, with others.
        at: its first word there.
        wide: words of it.
    """

    words: "memoryview[int]"
    at: int
    wide: int


class LiveRegisters:
    """64-bit registers of one engine as words of host memory.

    Reading gives what the engine holds now; writing takes effect when it goes on, also from
    inside its callbacks. Registers that the engine computes lazily (flags) are not here.
    """

    def __init__(self, base: int, places: dict[str, int]) -> None:
        """`places`: byte offset of each register from the address `base`."""
        self._low = min(places.values())
        words = (max(places.values()) - self._low) // 8 + 1
        self._base = base + self._low
        array = (ctypes.c_uint64 * words).from_address(self._base)
        self.words = memoryview(array).cast("B").cast("Q")
        self.index = {name: (place - self._low) // 8 for name, place in places.items()}
        self._readers: dict[tuple[str, ...], Callable[[], tuple[int, ...]]] = {}

    @property
    def start(self) -> int:
        """Host address of the first one."""
        return self._base

    def beside(self, write: Callable[[int], None], value: int, mask: int) -> LivePlace | None:
        """The place of a register close behind these that shows as itself in part only.

        Args:
            write: sets the register through the interface.
            value: of it.
            mask: bits that are there as they are set; they are tried.

        Returns:
            None where no single word changes with these bits.
        """
        words = memoryview((ctypes.c_uint64 * _BESIDE).from_address(self._base)).cast("B")
        seen = words.cast("Q")
        before = seen.tolist()
        write(value ^ mask)
        found = [at for at, word in enumerate(before) if word ^ seen[at] == mask]
        write(value)
        return LivePlace(seen, found[0], 1) if len(found) == 1 else None

    def address(self, name: str) -> int:
        """Host address of a register."""
        return self._base + 8 * self.index[name]

    def reader(self, names: Sequence[str]) -> Callable[[], tuple[int, ...]] | None:
        """A reader of these registers at once; None if one of them is not here."""
        key = tuple(names)
        if key not in self._readers and all(name in self.index for name in key):
            self._readers[key] = self._reader(key)
        return self._readers.get(key)

    def _reader(self, names: Sequence[str]) -> Callable[[], tuple[int, ...]]:
        words = self.words
        places = [self.index[name] for name in names]
        if not places:
            return tuple
        if len(places) == 1:
            place = places[0]
            return lambda: (words[place],)
        return partial(itemgetter(*places), words)


class LiveBank:
    """Registers of one or two words at equal distances, as words of host memory.

    Attributes:
        words: the memory, from the first one on.
        step: words from one to the next.
        index: by register, the place of its first word.
        wide: words of each.
    """

    def __init__(self, address: int, names: Sequence[str], step: int, wide: int) -> None:
        """`names` are those from an address on."""
        array = (ctypes.c_uint64 * (step * (len(names) - 1) + wide)).from_address(address)
        self.words = memoryview(array).cast("B").cast("Q")
        self.step, self.wide = step, wide
        self.index = {name: step * at for at, name in enumerate(names)}


def find(
    engine: int,
    names: Sequence[str],
    read: Callable[[str], int],
    write: Callable[[str, int], None],
) -> LiveRegisters | None:
    """Look for the registers of an engine that stands still; they keep their values.

    Args:
        engine: address of Unicorn's structure.
        names: registers to look for, all of 64 bits.
        read: reads one through the interface.
        write: writes one through the interface.
    """
    key, cpu = tuple(names), linkage.cpu_of(engine)
    known = _FOUND.get(key) if cpu else None
    if known is not None:
        view = LiveRegisters(cpu, known)
        with _kept(names[:1], read, write):
            if _agrees(view, names[:1], read, write):
                return view
    with _kept(names, read, write):
        marks = {name: _MAGIC + 0x1010 * (at + 1) for at, name in enumerate(names)}
        for name, mark in marks.items():
            write(name, mark)
        base, places = _search(engine, marks)
        if base is None or len(places) != len(names):
            return None
        view = LiveRegisters(base, places)
        if not _agrees(view, names, read, write):
            return None
        if base == cpu:
            _FOUND[key] = places
        return view


@contextmanager
def _kept(
    names: Sequence[str], read: Callable[[str], int], write: Callable[[str, int], None]
) -> Iterator[None]:
    """Registers have their values again afterwards."""
    before = [read(name) for name in names]
    try:
        yield
    finally:
        for name, value in zip(names, before, strict=True):
            write(name, value)


def _search(engine: int, marks: dict[str, int]) -> tuple[int | None, dict[str, int]]:
    first = struct.pack("=Q", next(iter(marks.values())))
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)
    except OSError:
        return None, {}
    try:
        pointers = struct.unpack(f"={_ENGINE_BYTES // 8}Q", _peek(memory, engine, _ENGINE_BYTES))
        for pointer in dict.fromkeys((linkage.cpu_of(engine), *pointers)):  # the likely one first
            if not 0x10000 <= pointer < 1 << 47:
                continue
            state = _peek(memory, pointer, _STATE_BYTES)
            at = state.find(first)
            while at >= 0:
                places = {
                    name: state.find(struct.pack("=Q", mark), max(at - 1024, 0), at + 1024)
                    for name, mark in marks.items()
                }
                if all(place >= 0 and not place % 8 for place in places.values()):
                    return pointer, places
                at = state.find(first, at + 8)
    except (OSError, struct.error):
        pass
    finally:
        os.close(memory)
    return None, {}


def _peek(memory: int, address: int, size: int) -> bytes:
    """Bytes of this process, fewer where its mapping ends."""
    try:
        return os.pread(memory, size, address)
    except OSError:
        return b""


def _agrees(
    view: LiveRegisters,
    names: Sequence[str],
    read: Callable[[str], int],
    write: Callable[[str, int], None],
) -> bool:
    """True if the view and the interface show the same, written from either side."""
    for turn in (0x111, 0x222):
        for at, name in enumerate(names):
            write(name, _MAGIC + turn * (at + 3))
        if any(view.words[view.index[name]] != read(name) for name in names):
            return False
        for at, name in enumerate(names):
            view.words[view.index[name]] = _MAGIC + turn * (at + 40)
        if any(view.words[view.index[name]] != read(name) for name in names):
            return False
    return True


def find_bank(
    general: LiveRegisters,
    names: Sequence[str],
    wide: int,
    read: Callable[[str], int],
    write: Callable[[str, int], None],
) -> LiveBank | None:
    """Look for registers behind the general ones; they keep their values.

    Args:
        general: where those are.
        names: registers to look for, of one or two words.
        wide: which.
        read: reads one through the interface.
        write: writes one through the interface.
    """
    key = wide, tuple(names)
    known = _FOUND_BANKS.get(key)
    if known is not None:
        bank = LiveBank(general.start + known[0], names, known[1], wide)
        with _kept(names[:1], read, write):
            (mark,) = marks = _marks(1, wide, 0x111)
            write(names[0], mark)
            if bank.words[:wide].tobytes() == _as_words(mark, wide) and _raises(
                bank, names[:1], marks, 0x111, read
            ):
                return bank
    with _kept(names, read, write):
        for turn in (0x111, 0x222):
            marks = _marks(len(names), wide, turn)
            for name, mark in zip(names, marks, strict=True):
                write(name, mark)
            found = _bank(general.start, wide, marks)
            if found is None:
                return None
            bank = LiveBank(general.start + found[0], names, found[1], wide)
            if not _raises(bank, names, marks, turn, read):
                return None
            _FOUND_BANKS[key] = found
        return bank


def _marks(count: int, wide: int, turn: int) -> list[int]:
    """Values of so many registers, each with words of its own."""
    return [
        sum(_MAGIC + turn * (wide * at + word + 3) << 64 * word for word in range(wide))
        for at in range(count)
    ]


def _raises(
    bank: LiveBank,
    names: Sequence[str],
    marks: Sequence[int],
    turn: int,
    read: Callable[[str], int],
) -> bool:
    """True if the interface shows what is written to a bank of registers with these values."""
    raised = sum(turn << 8 + 64 * word for word in range(bank.wide))
    for name, mark in zip(names, marks, strict=True):
        for word in range(bank.wide):
            bank.words[bank.index[name] + word] += turn << 8
        if read(name) != mark + raised:
            return False
    return True


def _as_words(value: int, wide: int) -> bytes:
    return value.to_bytes(8 * wide, sys.byteorder)


def _bank(start: int, wide: int, marks: Sequence[int]) -> tuple[int, int] | None:
    """Find registers with these values: bytes behind an address, and words of a step."""
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)
    except OSError:
        return None
    try:
        state = _peek(memory, start, _BANK_BYTES)
    finally:
        os.close(memory)
    places = [state.find(_as_words(mark, wide)) for mark in marks]
    step = places[1] - places[0]
    if places[0] < 0 or places[0] % 8 or step < 8 * wide or step % 8:
        return None
    if places != list(range(places[0], places[0] + step * len(places), step)):
        return None
    return places[0], step // 8
