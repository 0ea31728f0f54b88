"""The addresses of a stack's frames alone, quickly, as recorded events want them.

Nearly all frames of compiled code are found by a register and an offset, and have saved registers
at offsets from their CFA. Such a row is turned into numbers once for each place where a call
returns; a walk is a loop over them then. Calls of one function mostly come from the same callers:
what is below the caller is remembered with the words that it was read from, and is the same as
long as these are. Nothing is said of a stack with a frame of any other
kind (a signal's, code without tables, a return that a probe catches, damage): the unwinder walks.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Final, Protocol

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
"""Callers of which the frames below are kept, and how many tails of each."""
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
        """Its memory."""

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
        """Another object each time when memory is mapped otherwise."""


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
    """The frames from a caller on, and all that they were found by.

    Attributes:
        bases: registers of the caller's that frames were found by, and their values.
        extent: bytes of the stack above its stack pointer that hold the words.
        layout: of the words in them.
        words: their values.
        places: addresses of the frames.
    """

    bases: tuple[tuple[str, int], ...]
    extent: int
    layout: struct.Struct
    words: tuple[int, ...]
    places: tuple[int, ...]


class _TailNotes:
    """Notes of a walk from a caller on, to make a tail of."""

    def __init__(self, caller: tuple[int, int], known: dict[str, int], first: int) -> None:
        self.caller = caller
        self.known = dict(known)
        self.first = first
        self.bases: dict[str, None] = {}
        self.returns: dict[int, int] = {}
        self.saved: list[tuple[str, int, int]] = []

    def tail(self, places: tuple[int, ...], sp: str, word: str) -> _KnownTail | None:
        """The tail; None where the words are too far apart, or not on the stack."""
        self.bases.pop(sp, None)
        words = dict(self.returns)
        words.update((at, value) for name, at, value in self.saved if name in self.bases)
        start, size = self.caller[1], struct.calcsize(word)
        code, at = word[0], start
        for address in sorted(words):
            if address < at:
                return None
            code += f"{address - at}x{word[1]}"
            at = address + size
        if at - start > _DEEPEST or any(name not in self.known for name in self.bases):
            return None
        bases = tuple((name, self.known[name]) for name in self.bases)
        values = tuple(words[address] for address in sorted(words))
        return _KnownTail(bases, at - start, struct.Struct(code), values, places[self.first :])


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
        self._rows: dict[tuple[int, bool], PlainRow | None] = {}
        self._tails: dict[tuple[int, int], list[_KnownTail]] = {}
        self._word = (">" if self._big else "<") + ("Q" if self._size == 8 else "I")
        self._layout: object = None

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
        notes: _TailNotes | None = None
        try:
            sp = known[roles.sp]
            while len(found) < limit:
                key = pc, exact
                row = rows[key] if key in rows else self._compile(pc, exact)
                if row is None:
                    return None
                if not exact:
                    if notes is None:
                        tail = self._tail((pc, sp), known)
                        if tail is not None:
                            return (*found, *tail.places)[:limit]
                        notes = _TailNotes((pc, sp), known, len(found))
                    notes.bases[row.base] = None
                found.append(pc)
                cfa = known[row.base] + row.offset & mask
                if row.outermost or (ends_at is not None and ends_at(cfa)):
                    break
                if cfa % unwind.alignment or cfa < sp + self._pushed:
                    return None
                if row.returns is None:
                    to = known[roles.link or ""]
                    if notes is not None:
                        notes.bases[roles.link or ""] = None
                else:
                    to = stack[cfa + row.returns]
                    if notes is not None:
                        notes.returns[cfa + row.returns] = to
                to = strip(to)
                if to == outermost:
                    break
                # Only a trampoline's address stands for another one.
                if resolve(to, cfa - self._pushed, 0) not in (None, to) or (to, cfa) == (pc, sp):
                    return None
                for name, offset in row.saved:
                    value = known[name] = stack[cfa + offset]
                    if notes is not None:
                        notes.saved.append((name, cfa + offset, value))
                for name in row.lost:
                    known.pop(name, None)
                known[roles.sp] = sp = cfa
                if roles.link:
                    known[roles.link] = to
                pc, exact = to, False
        except (KeyError, GuestFaultError):
            return None
        if notes is not None and len(found) < limit:
            self._remember(notes, tuple(found))
        return tuple(found)

    def _tail(self, caller: tuple[int, int], known: Mapping[str, int]) -> _KnownTail | None:
        """The frames from a caller on, if all that they were found by is as it was."""
        for tail in self._tails.get(caller, ()):
            if all(known.get(name) == value for name, value in tail.bases):
                try:
                    data = self._guest.read(caller[1], tail.extent)
                except GuestFaultError:
                    continue
                if len(data) == tail.extent and tail.layout.unpack(data) == tail.words:
                    return tail
        return None

    def _remember(self, notes: _TailNotes, places: tuple[int, ...]) -> None:
        tail = notes.tail(places, self._roles.sp, self._word)
        if tail is None:
            return
        if len(self._tails) >= _TAILS:
            self._tails.clear()
        known = self._tails.setdefault(notes.caller, [])
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
