"""Go's values read as far as they are shown: trees of what stands in memory, with limits.

The limits are delve's (delve/pkg/proc/variables.go): pointers are followed without going deeper,
structures, slices and maps inside each other one level far.
"""

import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import islice
from typing import Final

from msgspec import Struct, field

from engine.errors import CommandError, GuestFaultError
from engine.image.datatypes import TypeKind
from engine.image.gotypes import GoConstant, GoKind
from engine.language.format_letters import formatted
from engine.language.go_parts import GoParts
from engine.language.go_types import go_text, kind_of
from engine.language.surroundings import Surroundings
from engine.language.values import MOST, Order, TypedValue

NOWHERE: Final = -1
"""The address of what is not in memory."""
_DEEPEST: Final = 64
_DAY: Final = 86400
_DAYS_1885: Final = 688117
"""Days from the beginning of the year 1 to that of the year 1885."""
_SPECIAL: Final = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}


class GoLimits(Struct, frozen=True):
    """Limits of what is read of a value.

    Attributes:
        follow: pointers are followed.
        depth: structures, slices and maps inside each other.
        text: bytes of a string.
        elements: of an array, slice or map.
        fields: of a structure; None for all.
    """

    follow: bool = True
    depth: int = 1
    text: int = 64
    elements: int = 64
    fields: int | None = None


LONG: Final = GoLimits()
SHORT: Final = GoLimits(follow=False, depth=0, elements=0, fields=3)


class GoValue(Struct):
    """A value as it was read.

    Attributes:
        kind: one of `GoKind`, 0 for none.
        type: its type's text.
        address: in memory; 0 for what a nil pointer leads to, NOWHERE for a register.
        text: of a scalar; of a function its name.
        raw: a string's bytes.
        length: elements, members or bytes that there are.
        capacity: of a slice; -1 for a lost one.
        base: of a slice: address of its elements.
        name: of a member.
        children: parts; of a map keys and values in turn.
        bare: nothing but its address was read.
        trouble: why it could not be read.
    """

    kind: int
    type: str
    address: int = NOWHERE
    text: str = ""
    raw: bytes = b""
    length: int = 0
    capacity: int = 0
    base: int = NOWHERE
    name: str = ""
    children: "list[GoValue]" = field(default_factory=list)
    bare: bool = False
    trouble: str = ""


class GoReader:
    """Reads values of one place in a program."""

    def __init__(
        self,
        around: Surroundings,
        symbol: Callable[[int], str],
        limits: GoLimits,
        letter: str = "",
    ) -> None:
        """Read what is there.

        Args:
            around: the place.
            symbol: an address as "main.f".
            limits: how much is read.
            letter: the format of integers, "" for decimal ones.
        """
        self._around, self._symbol = around, symbol
        self._limits, self._letter = limits, letter
        self._parts = GoParts(around)

    def read(self, value: TypedValue, level: int = 0) -> GoValue:
        """A value and its parts, as far as the limits go."""
        kind = kind_of(value.type)
        address = NOWHERE if value.address is None else value.address
        found = GoValue(kind, go_text(value.type), address)
        try:
            if level > _DEEPEST:
                raise CommandError("it is nested too deeply")
            self._fill(found, value, level)
        except GuestFaultError as error:
            found.trouble = f"memory at {error.address:#x} cannot be read"
        except CommandError as error:
            found.trouble = str(error)
        return found

    def _fill(self, found: GoValue, value: TypedValue, level: int) -> None:
        limits, parts = self._limits, self._parts
        fits = level <= limits.depth
        match found.kind:
            case GoKind.POINTER:
                found.children = [self._pointed(value, level)]
            case GoKind.UNSAFE_POINTER:
                found.base = value.number
            case GoKind.STRING:
                found.length = parts.length(value)
                found.raw = parts.text(value, min(limits.text, MOST))
            case GoKind.SLICE | GoKind.ARRAY:
                found.length = parts.length(value)
                if found.kind == GoKind.SLICE:
                    found.base, found.length, found.capacity = parts.header(value)
                if found.length < 0:
                    raise CommandError(f"invalid length: {found.length}")
                shown = min(found.length, limits.elements)
                elements = (parts.element(value, index) for index in range(shown))
                found.children = [self.read(one, level + 1) for one in elements]
            case GoKind.MAP:
                found.base = int.from_bytes(value.raw, value.order)
                found.length = parts.length(value)
                for pair in islice(parts.entries(value), limits.elements) if fits else ():
                    found.children += [self.read(one, level + 1) for one in pair]
            case GoKind.CHAN:
                found.base = int.from_bytes(value.raw, value.order)
                if found.base:
                    self._members(
                        found, parts.channel(value), GoReader(self._around, self._symbol, LONG), 1
                    )
            case GoKind.STRUCT:
                self._structure(found, value, level)
            case GoKind.INTERFACE:
                found.children = [self._held(value, level)]
            case GoKind.FUNC:
                code = parts.code(value)
                found.text = self._symbol(code) or f"{code:#x}" if code else ""
            case _:
                found.text = self._scalar(value, found.kind)

    def _structure(self, found: GoValue, value: TypedValue, level: int) -> None:
        members = value.type.resolved.members
        found.length = len(members)
        if found.type == "time.Time":
            found.text = self._time(value)
        if level > self._limits.depth:
            return
        value = value.loaded() if value.type.size else value
        reach = self._parts.reach
        named = ((member.name or "", reach.part(value, member)) for member in members)
        self._members(found, islice(named, self._limits.fields), self, level + 1)

    def _time(self, value: TypedValue) -> str:
        """The moment that a time.Time is; "" for one that is told otherwise than Go 1.9 does."""
        reach, kind = self._parts.reach, value.type.resolved
        if kind.member("wall") is None or kind.member("ext") is None:
            return ""
        wall, ext = (reach.member(value, name) for name in ("wall", "ext"))
        return go_time(wall.number, ext.number)

    @staticmethod
    def _members(
        found: GoValue, members: Iterator[tuple[str, TypedValue]], reader: "GoReader", level: int
    ) -> None:
        for name, part in members:
            child = reader.read(part, level)
            child.name = name
            found.children.append(child)
        found.length = max(found.length, len(found.children))

    def _pointed(self, value: TypedValue, level: int) -> GoValue:
        """The value that a pointer leads to."""
        target, number = value.type.resolved.target, value.number
        kind = kind_of(target)
        there = GoValue(kind, go_text(target), number, bare=True)
        if not number or not self._limits.follow:
            return there
        many = kind == GoKind.POINTER
        if many and level > self._limits.depth:
            return there
        if not kind:
            return there
        deeper = level + (many or kind == GoKind.INTERFACE)
        return self.read(self._parts.reach.at(target, number), deeper)

    def _held(self, value: TypedValue, level: int) -> GoValue:
        """The value in an interface."""
        inside = self._parts.concrete(value)
        if inside is None:
            return GoValue(0, "void", 0)
        if level <= self._limits.depth:
            return self.read(inside, level)
        address = NOWHERE if inside.address is None else inside.address
        found = GoValue(kind_of(inside.type), go_text(inside.type), address, bare=True)
        if found.kind == GoKind.POINTER:
            found.children = [GoValue(0, "", inside.number, bare=True)]
        return found

    # -- scalars ----------------------------------------------------------------------------

    def _scalar(self, value: TypedValue, kind: int) -> str:
        if GoKind.INT <= kind <= GoKind.UINTPTR:
            if self._letter:
                return formatted(value.raw, self._letter, value.order, kind=value.type.resolved)
            return self._number(value)
        if kind == GoKind.BOOL:
            return "true" if any(value.raw) else "false"
        if kind in (GoKind.FLOAT32, GoKind.FLOAT64):
            return go_real(value.raw, value.order)
        if kind in (GoKind.COMPLEX64, GoKind.COMPLEX128):
            half = len(value.raw) // 2
            parts = (go_real(raw, value.order) for raw in (value.raw[:half], value.raw[half:]))
            return "({} + {}i)".format(*parts)
        if value.type.resolved.kind is TypeKind.FUNCTION:
            return self._symbol(value.address or 0) or f"{value.address or 0:#x}"
        return "nil" if value.type.kind is TypeKind.VOID else ""

    def _number(self, value: TypedValue) -> str:
        number, go = value.number, self._around.go
        named = constant_name(number, go.constants(value.type)) if go is not None else ""
        return f"{named} ({number})" if named else str(number)


def constant_name(number: int, constants: tuple[GoConstant, ...]) -> str:
    """A number by the constants of its type: one, or bits that have names; "" for none."""
    names = [(one.value, one.name.rpartition(".")[2]) for one in constants]
    exact = next((name for value, name in names if value == number), "")
    if exact:
        return exact
    found: list[str] = []
    for value, name in names:
        if value > 0 and not value & value - 1 and number & value:
            found.append(name)
            number &= ~value
    return "|".join(found) if not number else ""


def go_time(wall: int, ext: int) -> str:
    """A moment in UTC as RFC 3339 has it, with the process's own clock where that is known.

    Args:
        wall: with bit 63, seconds since 1885 above 30 bits of nanoseconds; else these alone.
        ext: nanoseconds of the process's own clock, or seconds since the year 1.
    """
    has_clock = bool(wall >> 63)
    seconds = (wall >> 30 & (1 << 33) - 1) + _DAYS_1885 * _DAY if has_clock else ext
    days, second = divmod(seconds, _DAY)
    era, day = divmod(days + 306, 146097)  # eras of 400 years begin with the March of year 0
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    year += era * 400 + (month >= 10)
    month = month + 3 if month < 10 else month - 9
    sign = "-" if year < 0 else ""
    text = f"{sign}{abs(year):04}-{month:02}-{day + 1:02}"
    text += f"T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
    return f"{text}, {ext:+}" if has_clock else text


def go_real(raw: bytes, order: Order) -> str:
    """A floating-point number by as few digits as tell it from others, without an exponent."""
    form = ("<" if order == "little" else ">") + ("f" if len(raw) == 4 else "d")
    (number,) = struct.unpack(form, raw)
    text = repr(number)
    if text in _SPECIAL:
        return _SPECIAL[text]
    if len(raw) == 4:
        texts = (f"{number:.{digits}g}" for digits in range(1, 10))
        text = next(one for one in texts if struct.pack(form, float(one)) == raw)
    return format(Decimal(text), "f").removesuffix(".0")


def go_quoted(raw: bytes) -> str:
    """A string in quotes with Go's escapes (go/src/strconv/quote.go)."""
    escapes = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"}
    parts: list[str] = []
    for letter in raw.decode(errors="surrogateescape"):
        code = ord(letter)
        if letter in '"\\':
            parts.append(f"\\{letter}")
        elif letter.isprintable():
            parts.append(letter)
        elif code in escapes:
            parts.append(escapes[code])
        elif 0xDC80 <= code <= 0xDCFF:  # a byte that is no part of UTF-8
            parts.append(f"\\x{code - 0xDC00:02x}")
        elif code < 0x80:
            parts.append(f"\\x{code:02x}")
        else:
            parts.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return '"' + "".join(parts) + '"'
