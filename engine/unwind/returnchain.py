"""The addresses of a stack's frames alone, quickly, as recorded events want them.

Nearly all frames of compiled code are found by a register and an offset, and have saved registers
at offsets from their CFA. Such a row is turned into numbers once for each place where a call
returns; a walk is a loop over them then. Calls of one function mostly come from the same callers:
the whole stack, and what is below the caller, are remembered with the registers and words that
they were read from, and are the same as long as these are. Nothing is said of a stack with a frame
of any other kind (a signal's, code without tables, a return that a probe catches, damage): the
unwinder walks.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from engine.arch.base import Arch
from engine.errors import GuestFaultError
from engine.unwind.expression import ReadMemory
from engine.unwind.rows import AtCfa, CfaRegister, CfiRow, SameValue, Undefined

_WINDOW: Final = 4096
"""Bytes of the stack that are read at once."""
_FIRST: Final = 128
"""The first time."""
_KEPT: Final = 1 << 16
"""Places whose rows are kept."""
_TAILS: Final = 1 << 12
"""Frames of which those below are kept, and how many tails of each."""
_EACH: Final = 4
_DEEPEST: Final = 1 << 16
"""Bytes of the stack that a tail may have been read from."""


class ChainGuest(Protocol):
    """The parts of a guest that a chain is read from; `unwinder.UnwindGuest` has them."""

    @property
    def arch(self) -> Arch:
        """The architecture."""

    @property
    def read(self) -> ReadMemory:
        """Reads the guest's memory."""

    @property
    def executable(self) -> Callable[[int], bool]:
        """Tells whether code may run at an address."""

    @property
    def resolve_return(self) -> Callable[[int, int, int], int | None]:
        """See `unwinder.ResolveReturn`."""

    @property
    def original_pc(self) -> Callable[[int], int]:
        """The program's own address for a place in a slot or detour."""

    @property
    def outermost(self) -> int | None:
        """See `unwinder.UnwindGuest`."""

    @property
    def ends_at(self) -> Callable[[int], bool] | None:
        """See `unwinder.UnwindGuest`."""

    @property
    def layout(self) -> Callable[[], object]:
        """Generation of the memory map; another object whenever memory is mapped otherwise."""


class PlainRow(Struct, frozen=True):
    """The rules at a place, in numbers.

    Attributes:
        base: register that the CFA is found by.
        offset: of the CFA from it.
        returns: offset of the return address from the CFA; None where a register holds it.
        saved: register and offset of its value from the CFA.
        lost: registers of which nothing is known in the caller.
        outermost: nobody has called.
    """

    base: str
    offset: int
    returns: int | None
    saved: tuple[tuple[str, int], ...]
    lost: tuple[str, ...]
    outermost: bool


class _KnownTail(Struct, frozen=True):
    """The frames from a place on, and all that they were found by.

    Attributes:
        bases: registers there that frames were found by, and their values.
        extent: bytes of the stack above its stack pointer that hold the words.
        layout: of the words in them.
        at: their addresses.
        words: their values.
        places: addresses of the frames.
    """

    bases: tuple[tuple[str, int], ...]
    extent: int
    layout: struct.Struct
    at: tuple[int, ...]
    words: tuple[int, ...]
    places: tuple[int, ...]


_Key: TypeAlias = tuple[int, int, bool]
"""A frame's pc and stack pointer, and whether the pc is exact."""


class _TailNotes:
    """Notes of a walk from a frame on, to make a tail of.

    Attributes:
        key: the frame.
        first: how many stand in front of it.
    """

    def __init__(self, key: _Key, known: Mapping[str, int], first: int) -> None:
        self.key = key
        self.first = first
        self._known = dict(known)
        self._bases: dict[str, int | None] = {}
        self._words: dict[int, int] = {}
        self._saved: dict[str, tuple[int, int] | None] = {}

    def used(self, name: str) -> None:
        """A register has led to a frame: its value, or that of the word it has come from."""
        if name not in self._saved:
            self._bases[name] = self._known.get(name)
            return
        word = self._saved[name]
        if word is not None:
            self._words[word[0]] = word[1]

    def follows(self, name: str) -> None:
        """The value of a register follows from what has been noted so far."""
        self._saved[name] = None

    def read(self, address: int, value: int) -> None:
        """A word has led to a frame."""
        self._words[address] = value

    def restored(self, name: str, address: int, value: int) -> None:
        """A register holds what a word does."""
        self._saved[name] = address, value

    def go_on(self, tail: _KnownTail) -> None:
        """The frames from here on are known."""
        for name, _ in tail.bases:
            self.used(name)
        self._words.update(zip(tail.at, tail.words, strict=True))

    def tail(self, places: tuple[int, ...], word: str) -> _KnownTail | None:
        """The tail; None where the words are too far apart, or not on the stack.

        Args:
            places: addresses of all frames of the walk.
            word: format of a word, with its byte order.
        """
        start, size = self.key[1], struct.calcsize(word)
        code, end = word[0], start
        at = tuple(sorted(self._words))
        for address in at:
            if address < end:
                return None
            code += f"{address - end}x{word[1]}"
            end = address + size
        bases = tuple((name, value) for name, value in self._bases.items() if value is not None)
        if end - start > _DEEPEST or len(bases) < len(self._bases):
            return None
        words = tuple(self._words[address] for address in at)
        layout = struct.Struct(code)
        return _KnownTail(bases, end - start, layout, at, words, places[self.first :])


class ReturnChain:
    """Follows plain frames of one guest."""

    def __init__(
        self,
        guest: ChainGuest,
        row: Callable[[int, bool], CfiRow | None],
        certain: Callable[[int], CfiRow | None],
    ) -> None:
        """Nothing is read yet.

        Args:
            guest: whose stacks are walked.
            row: the rules of the tables at a place; the flag: it is no return address.
            certain: the rules by the instructions, where these leave no doubt.
        """
        assert guest.arch.unwind is not None, "checked by the unwinder"
        self._guest = guest
        self._row = row
        self._certain = certain
        self._unwind = guest.arch.unwind
        self._roles = guest.arch.roles
        self._mask = (1 << guest.arch.bits) - 1
        self._size = guest.arch.bits // 8
        self._big = guest.arch.byteorder != "little"
        self._pushed = 0 if self._roles.link else self._size
        link = (self._roles.link,) if self._roles.link else ()
        self._names = (*self._unwind.preserved, self._roles.sp, *link)
        self._index = {name: at for at, name in enumerate(self._names)}
        self._rows: dict[tuple[int, bool], PlainRow | None] = {}
        self._tails: dict[_Key, list[_KnownTail]] = {}
        self._word = (">" if self._big else "<") + ("Q" if self._size == 8 else "I")
        self._layout: object = None

    @property
    def names(self) -> tuple[str, ...]:
        """Registers that frames may be found by."""
        return self._names

    def remembered(
        self, pc: int, values: Sequence[int], *, limit: int, exact: bool
    ) -> tuple[int, ...] | None:
        """Addresses of the frames of a stack that is as it was before; None for any other.

        Args:
            pc: the program's own address.
            values: of the registers `names`.
            limit: of frames.
            exact: the pc is not a return address.
        """
        if self._guest.layout() is not self._layout:
            return None
        index = self._index
        tail = self._tail((pc, values[index[self._roles.sp]], exact), lambda at: values[index[at]])
        if tail is None:
            return None
        places = tail.places
        return places if len(places) <= limit else places[:limit]

    def places(
        self, registers: Mapping[str, int], *, limit: int, exact: bool
    ) -> tuple[int, ...] | None:
        """Addresses of the frames, innermost first; None for a stack that is not all plain.

        Args:
            registers: by name, with pc and sp.
            limit: of frames.
            exact: the pc is not a return address.
        """
        guest, roles, unwind, mask = self._guest, self._roles, self._unwind, self._mask
        if self._unwind.popped is not None:
            return None
        layout = guest.layout()
        if layout is not self._layout or len(self._rows) > _KEPT:
            self._rows.clear()
            self._tails.clear()
            self._layout = layout
        rows, resolve, strip = self._rows, guest.resolve_return, unwind.strip
        outermost, ends_at = guest.outermost, guest.ends_at
        pc = guest.original_pc(registers[roles.pc])
        known = {name: registers[name] for name in self._names if name in registers}
        stack = _StackWindow(guest.read, self._size, big=self._big)
        found: list[int] = []
        noted: list[_TailNotes] = []
        called = False  # a caller has been looked up
        try:
            sp = known[roles.sp]
            while len(found) < limit:
                if not called:
                    asked = pc, sp, exact
                    tail = self._tail(asked, known.get)
                    if tail is not None:
                        return self._joined(noted, found, tail)[:limit]
                    noted.append(_TailNotes(asked, known, len(found)))
                    called = not exact
                key = pc, exact
                row = rows[key] if key in rows else self._compile(pc, exact)
                if row is None:
                    return None
                found.append(pc)
                cfa = known[row.base] + row.offset & mask
                if row.base != roles.sp:
                    for notes in noted:
                        notes.used(row.base)
                if row.outermost or (ends_at is not None and ends_at(cfa)):
                    break
                if cfa % unwind.alignment or cfa < sp + self._pushed:
                    return None
                if row.returns is None:
                    to = known[roles.link or ""]
                    for notes in noted:
                        notes.used(roles.link or "")
                else:
                    to = stack[cfa + row.returns]
                    for notes in noted:
                        notes.read(cfa + row.returns, to)
                to = strip(to)
                if to == outermost:
                    break
                # Only a trampoline's address stands for another one.
                if resolve(to, cfa - self._pushed, 0) not in (None, to) or (to, cfa) == (pc, sp):
                    return None
                for name, offset in row.saved:
                    value = known[name] = stack[cfa + offset]
                    for notes in noted:
                        notes.restored(name, cfa + offset, value)
                for name in row.lost:
                    known.pop(name, None)
                known[roles.sp] = sp = cfa
                if roles.link:
                    known[roles.link] = to
                    for notes in noted:
                        notes.follows(roles.link)
                pc, exact = to, False
        except (KeyError, GuestFaultError):
            return None
        places = tuple(found)
        if len(found) < limit:
            for notes in noted:
                self._remember(notes, places)
        return places

    def _joined(
        self, noted: Sequence[_TailNotes], found: list[int], tail: _KnownTail
    ) -> tuple[int, ...]:
        """Addresses of some frames and of a tail; the whole stack is remembered if there is room.

        What has been found to be whole before is not driven out by it.
        """
        if not found:
            return tail.places
        places = (*found, *tail.places)
        for notes in noted:
            if len(self._tails.get(notes.key, ())) < _EACH:
                notes.go_on(tail)
                self._remember(notes, places)
        return places

    def _tail(self, key: _Key, value_of: Callable[[str], int | None]) -> _KnownTail | None:
        """The frames from one on, if all that they were found by is as it was."""
        data = b""
        for tail in self._tails.get(key, ()):
            for name, value in tail.bases:
                if value_of(name) != value:
                    break
            else:
                if len(data) < tail.extent:
                    try:
                        data = self._guest.read(key[1], tail.extent)
                    except GuestFaultError:
                        continue
                if len(data) >= tail.extent and tail.layout.unpack_from(data) == tail.words:
                    return tail
        return None

    def _remember(self, notes: _TailNotes, places: tuple[int, ...]) -> None:
        tail = notes.tail(places, self._word)
        if tail is None:
            return
        if len(self._tails) >= _TAILS:
            self._tails.clear()
        known = self._tails.setdefault(notes.key, [])
        known.insert(0, tail)
        del known[_EACH:]

    def _compile(self, pc: int, exact: bool) -> PlainRow | None:
        row = self._row(pc, exact)
        plain = None if row is None else self._plain(row)
        if plain is not None and exact:
            better = self._certain(pc)
            other = plain if better is None else self._plain(better)
            # The instructions have the last word where they say otherwise.
            if other is None or (other.base, other.offset, other.returns) != (
                *(plain.base, plain.offset, plain.returns),
            ):
                plain = None
        if not exact and not self._guest.executable(pc - 1):
            plain = None
        self._rows[pc, exact] = plain
        return plain

    def _plain(self, row: CfiRow) -> PlainRow | None:
        """A row in numbers; None for one that takes more."""
        roles, cfa = self._roles, row.cfa
        if row.signal_frame or not isinstance(cfa, CfaRegister) or roles.sp in row.rules:
            return None
        if cfa.register not in (*self._unwind.preserved, roles.sp):
            return None
        column = row.return_register or roles.link or roles.pc
        saved: list[tuple[str, int]] = []
        lost: list[str] = []
        returns: int | None = None
        outermost = False
        for name, rule in row.rules.items():
            if isinstance(rule, AtCfa) and not rule.size:
                if name == column:
                    returns = rule.offset
                else:
                    saved.append((name, rule.offset))
            elif isinstance(rule, Undefined):
                outermost = outermost or name == column
                lost.append(name)
            elif not isinstance(rule, SameValue) or name not in self._names:
                return None
        if not outermost and returns is None and column != roles.link:
            return None
        return PlainRow(cfa.register, cfa.offset, returns, tuple(saved), tuple(lost), outermost)


class _StackWindow:
    """Words of a stack, read many at a time."""

    def __init__(self, read: ReadMemory, size: int, *, big: bool) -> None:
        self._read = read
        self._size = size
        self._order: Final = "big" if big else "little"
        self._start = self._end = 0
        self._data = b""
        self._next = _FIRST

    def __getitem__(self, address: int) -> int:
        at = address - self._start
        if not 0 <= at <= self._end - self._start - self._size:
            self._move(address)
            at = 0
        return int.from_bytes(self._data[at : at + self._size], self._order)

    def _move(self, address: int) -> None:
        """Read from an address on: a stretch, or as much as its page has.

        A short one first: what is behind the newest frames is known, for the most part.
        """
        wanted, self._next = self._next, _WINDOW
        for size in (wanted, _WINDOW - address % _WINDOW, self._size):
            try:
                self._data = self._read(address, size)
            except GuestFaultError:
                if size == self._size:
                    raise
                continue
            if size >= self._size:
                break
        self._start, self._end = address, address + len(self._data)
