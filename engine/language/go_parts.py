"""Parts of Go's values in memory: strings, slices, maps, interfaces, functions, channels.

go/src/runtime: slice.go, string.go, map.go (up to Go 1.23), runtime2.go (interfaces), chan.go; and
go/src/internal/runtime/maps for the maps of Go 1.24 and later. Members are found by the DWARF of
the program, so that a runtime that moves one of them is read right.
"""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.image.dietypes import DieType
from engine.image.gotypes import GoKind, go_elem, go_key
from engine.language import value_types as ct
from engine.language.go_types import BUILTIN, element_of, is_direct, kind_of
from engine.language.reach import Reach
from engine.language.surroundings import Surroundings
from engine.language.value_types import CType
from engine.language.values import TypedValue

_EMPTY_ONE, _FIRST_HASH = 1, 5
"""Marks of a bucket's slots: up to the first for empty ones, from the second on for entries."""
_SLOTS: Final = 8
_MOST_BUCKETS: Final = 1 << 16
"""Buckets, groups and tables of a map that are looked through."""
_NOT_FULL: Final = 0x80


class GoParts:
    """Takes Go's values apart in one place of a program."""

    def __init__(self, around: Surroundings) -> None:
        """Take apart what is there."""
        self._around = around
        self.reach = Reach(around)

    def _word(self, raw: bytes, number: int) -> int:
        size = self._around.pointer
        part = raw[number * size : (number + 1) * size]
        return int.from_bytes(part, self._around.order)

    def word_at(self, address: int) -> int:
        """A word in memory.

        Raises:
            GuestFaultError: it cannot be read.
        """
        return self._word(self._around.read(address, self._around.pointer), 0)

    def header(self, value: TypedValue) -> tuple[int, int, int]:
        """Address, length and capacity of a slice; a string's capacity is 0, a lost one -1.

        Raises:
            CommandError: the address or the length is lost.
            GuestFaultError: it cannot be read.
        """
        bits = 8 * self._around.pointer
        length = self._piece(value, 1)
        length -= length >> bits - 1 << bits
        try:
            room = self._piece(value, 2)
        except CommandError:
            room = -1
        return self._piece(value, 0), length, room

    def has_elements(self, value: TypedValue) -> bool:
        """True for a string or slice whose address and length are there, if nothing else is."""
        if not value.missing:
            return True
        try:
            self.header(value)
        except CommandError:
            return False
        return True

    def _piece(self, value: TypedValue, number: int) -> int:
        """A word of a value, even if the others are lost.

        Raises:
            CommandError: it is lost, too.
            GuestFaultError: it cannot be read.
        """
        if not value.pieces:
            return self._word(value.raw, number)
        return value.part(BUILTIN["uintptr"], number * self._around.pointer).number

    def text(self, value: TypedValue, most: int) -> bytes:
        """The first bytes of a string, at most so many.

        Raises:
            CommandError: its length is none.
            GuestFaultError: it cannot be read.
        """
        if isinstance(value.type, ct.MadeType):
            return value.raw[:most]  # a text of the user's
        base, length, _ = self.header(value)
        if length < 0:
            raise CommandError(f"invalid length: {length}")
        return self._around.read(base, min(length, most)) if length and most else b""

    def length(self, value: TypedValue) -> int:
        """The number of things in a value, as `len` tells it.

        Raises:
            CommandError: a value of its type has none.
            GuestFaultError: it cannot be read.
        """
        match kind_of(value.type):
            case GoKind.STRING if isinstance(value.type, ct.MadeType):
                return len(value.raw)
            case GoKind.STRING | GoKind.SLICE:
                return self._piece(value, 1) if value.pieces else self.header(value)[1]
            case GoKind.ARRAY:
                return value.type.resolved.count or 0
            case GoKind.MAP:
                return self._counted(value, "count", "used")
            case GoKind.CHAN:
                return self._counted(value, "qcount")
            case GoKind.POINTER if kind_of(value.type.resolved.target) == GoKind.ARRAY:
                return value.type.resolved.target.resolved.count or 0
        raise CommandError(f"invalid argument for len: a value of type {value.type.text}")

    def capacity(self, value: TypedValue) -> int:
        """The number of things that there is room for, as `cap` tells it.

        Raises:
            CommandError: a value of its type has none.
            GuestFaultError: it cannot be read.
        """
        match kind_of(value.type):
            case GoKind.SLICE:
                return self._piece(value, 2)
            case GoKind.ARRAY:
                return value.type.resolved.count or 0
            case GoKind.CHAN:
                return self._counted(value, "dataqsiz")
        raise CommandError(f"invalid argument for cap: a value of type {value.type.text}")

    def _counted(self, value: TypedValue, *names: str) -> int:
        """A number in what a map or a channel points at; 0 for nil."""
        if not int.from_bytes(value.raw, self._around.order):
            return 0
        inside = self._inside(value)
        name = next(name for name in names if inside.type.resolved.member(name) is not None)
        return self.reach.member(inside, name).number

    def _inside(self, value: TypedValue) -> TypedValue:
        """The structure that a map or a channel points at."""
        return self.reach.at(value.type.resolved.target, self._word(value.raw, 0))

    def element(self, value: TypedValue, index: int) -> TypedValue:
        """An element of a slice or array; the caller has looked at its length.

        Raises:
            CommandError: the type of the elements is not known.
            GuestFaultError: the slice cannot be read.
        """
        if kind_of(value.type) == GoKind.ARRAY:
            return self.reach.element(self.as_array(value), index)
        kind = element_of(value.type)
        if kind is None:
            raise CommandError("the type of the elements is not known")
        size = kind.size or 0
        if self.is_detached(value):
            raw = self.content(value, size)[index * size : (index + 1) * size]
            return TypedValue(kind, lambda: raw, order=self._around.order)
        return self.reach.at(kind, self.header(value)[0] + index * size)

    def is_detached(self, value: TypedValue) -> bool:
        """True for a slice that an expression has made: its elements stand behind its header."""
        return not value.missing and len(value.raw) > 3 * self._around.pointer

    def content(self, value: TypedValue, size: int) -> bytes:
        """The bytes of a slice's elements.

        Args:
            value: the slice.
            size: of an element.

        Raises:
            GuestFaultError: it cannot be read.
        """
        base, length, _ = self.header(value)
        if self.is_detached(value):
            return value.raw[3 * self._around.pointer :]
        return self._around.read(base, length * size)

    @staticmethod
    def as_array(value: TypedValue) -> TypedValue:
        """An array by the type that describes it, the name in front taken away."""
        return TypedValue(
            value.type.resolved,
            lambda: value.raw,
            value.place,
            order=value.order,
        )

    # -- interfaces and functions -----------------------------------------------------------

    def concrete(self, value: TypedValue) -> TypedValue | None:
        """The value in an interface, in its own type; None for nil.

        Raises:
            CommandError: its type is not known.
            GuestFaultError: it cannot be read.
        """
        described = table = self._piece(value, 0)
        if not table:
            return None
        if value.type.resolved.member("tab") is not None:
            described = self.word_at(table + self._around.pointer)  # behind the interface's type
        go = self._around.go
        kind = go.dynamic(described) if go is not None else None
        if kind is None or kind_of(kind) == GoKind.INTERFACE:
            raise CommandError(f"the type that is described at {described:#x} is not known")
        size = self._around.pointer
        if value.pieces:
            held = value.part(BUILTIN["uintptr"], size)
            if held.missing:
                return replace(held, type=kind, pieces=())
            data = held.raw
        else:
            data = value.raw[size : 2 * size]
        if not is_direct(kind):
            return self.reach.at(kind, self._word(data, 0))
        return TypedValue(kind, lambda: data, order=self._around.order)

    def code(self, value: TypedValue) -> int:
        """The address of a function's first instruction; 0 for nil.

        Raises:
            GuestFaultError: it cannot be read.
        """
        if kind_of(value.type) != GoKind.FUNC:
            return value.address or 0
        closure = self._word(value.raw, 0)
        return self.word_at(closure) if closure else 0

    def channel(self, value: TypedValue) -> Iterator[tuple[str, TypedValue]]:
        """The members of what a channel points at; its buffer is an array of its elements.

        Raises:
            GuestFaultError: it cannot be read.
        """
        inside = self._inside(value)
        element = element_of(value.type)
        for member in inside.type.resolved.members:
            part = self.reach.part(inside, member)
            if member.name == "buf" and element is not None:
                room = ct.array_of(element, self.capacity(value))
                part = self.reach.made(ct.pointer_to(room, self._around.pointer), part.number)
            yield member.name or "", part

    # -- maps -------------------------------------------------------------------------------

    def entries(self, value: TypedValue) -> Iterator[tuple[TypedValue, TypedValue]]:
        """The keys and values of a map in the order of its memory.

        Raises:
            CommandError: its layout is not known.
            GuestFaultError: it cannot be read.
        """
        if not self._word(value.raw, 0) or not isinstance(value.type, DieType):
            return
        inside = self._inside(value)
        layout = inside.type.resolved
        kinds = go_key(value.type), go_elem(value.type)
        if layout.member("buckets") is not None:
            found = self._in_buckets(inside)
        elif layout.member("dirPtr") is not None:
            found = self._in_groups(inside)
        else:
            raise CommandError("the layout of the map is not known")
        for key, held in found:
            yield self._direct(key, kinds[0]), self._direct(held, kinds[1])

    def _direct(self, value: TypedValue, kind: CType | None) -> TypedValue:
        """A key or value; a large one is kept elsewhere, and the slot has its address."""
        if kind is None or (value.type.size or 0) == (kind.size or 0):
            return value
        return self.reach.at(kind, self._word(value.raw, 0))

    def _in_buckets(self, inside: TypedValue) -> Iterator[tuple[TypedValue, TypedValue]]:
        """The entries of a map of Go 1.23 and before; half of it may be in its old buckets."""
        reach = self.reach
        count = 1 << min(reach.member(inside, "B").number, 62)
        buckets, old = (reach.member(inside, name) for name in ("buckets", "oldbuckets"))
        kind = buckets.type.resolved.target
        size, left = kind.size or 0, _MOST_BUCKETS
        fewer = count // (1 if reach.member(inside, "flags").number & 8 else 2)
        for number in range(min(count, _MOST_BUCKETS)):
            place = buckets.number + number * size
            if old.number:
                source = old.number + number % fewer * size
                if not self._is_evacuated(source):
                    if number >= fewer:
                        continue  # its entries were shown with the first half
                    place = source
            while place and left:
                left -= 1
                bucket = reach.at(kind, place)
                yield from self._slots(bucket)
                place = reach.member(bucket, "overflow").number

    def _is_evacuated(self, bucket: int) -> bool:
        return _EMPTY_ONE < self._around.read(bucket, 1)[0] < _FIRST_HASH

    def _slots(self, bucket: TypedValue) -> Iterator[tuple[TypedValue, TypedValue]]:
        keys, values = (self.reach.member(bucket, name) for name in ("keys", "values"))
        for slot, mark in enumerate(self.reach.member(bucket, "tophash").raw):
            if mark >= _FIRST_HASH:
                key, held = (self.as_array(one) for one in (keys, values))
                yield self.reach.element(key, slot), self.reach.element(held, slot)

    def _in_groups(self, inside: TypedValue) -> Iterator[tuple[TypedValue, TypedValue]]:
        """The entries of a map of Go 1.24 and later: a group, or a directory of tables."""
        reach = self.reach
        directory, count = (reach.member(inside, name) for name in ("dirPtr", "dirLen"))
        pointers = directory.type.resolved.target.resolved
        table_pointer = pointers.element if pointers.kind is TypeKind.ARRAY else pointers
        if count.number <= 0:  # a small map has a group alone, whose type a table's groups tell
            group_type = table_pointer.resolved.target
            for name in ("groups", "data"):
                member = group_type.resolved.member(name)
                if member is None:
                    raise CommandError("the layout of the map is not known")
                group_type = member.type
            if directory.number:
                at = reach.at(group_type.resolved.target, directory.number)
                yield from self._in_group(at)
            return
        seen = set[int]()
        for number in range(min(count.number, _MOST_BUCKETS)):
            at = reach.at(table_pointer, directory.number + number * self._around.pointer)
            if at.number in seen:
                continue
            seen.add(at.number)
            groups = reach.member(reach.pointed(at), "groups")
            data = reach.member(groups, "data")
            last = reach.member(groups, "lengthMask").number
            for group in range(min(last + 1, _MOST_BUCKETS)):
                yield from self._in_group(reach.pointed(reach.moved(data, group)))

    def _in_group(self, group: TypedValue) -> Iterator[tuple[TypedValue, TypedValue]]:
        reach, kind = self.reach, group.type.resolved
        marks = reach.member(group, "ctrls" if kind.member("ctrl") is None else "ctrl").raw
        if kind.member("slots") is None:  # keys and values apart (Go 1.27)
            keys, held = (self.as_array(reach.member(group, name)) for name in ("keys", "elems"))
            for slot in range(min(_SLOTS, keys.type.count or 0)):
                if not marks[slot] & _NOT_FULL:
                    yield reach.element(keys, slot), reach.element(held, slot)
            return
        slots = self.as_array(reach.member(group, "slots"))
        for slot in range(min(_SLOTS, slots.type.count or 0)):
            if not marks[slot] & _NOT_FULL:
                pair = reach.element(slots, slot)
                yield reach.member(pair, "key"), reach.member(pair, "elem")
