r"""Format strings of `printf()`, `errorf()`, `cat()`: read, checked against types, filled in.

They are bpftrace's (src/format_string.cpp), not C's: `%-5d` and the like go through C++ streams,
so that zeros are put before a sign and behind what is to the left, and a precision of numbers and
strings has no effect. A number is cut to an `int` unless `l`, `ll`, `j`, `z` or `t` say otherwise.
`%r`, `%rx` and `%rh` show buffers, `%gr` flags of the kernel's allocator, `%s` anything.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from engine.trace.bpftrace import types as kinds
from engine.trace.bpftrace.arithmetic import wrap
from engine.trace.bpftrace.showing import Shower, hexed, shower
from engine.trace.bpftrace.type_rules import type_name
from engine.trace.bpftrace.value_names import ValueNames

MOST_WIDTH: Final = 4096
"""The greatest width of a field; more is refused."""

_SPECIFICATION: Final = re.compile(
    rb"%(?P<left>-?)(?P<plus>\+?) ?(?P<base>#?)(?P<zeros>0?)(?P<width>\*|[0-9]+)?"
    rb"(?:\.(?P<precision>\*|[0-9]+))?(?P<length>[hlLjzt]*)"
    rb"(?P<letter>[diouxXeEfFGaAcspn%]|gr|g|rh|rx|r)"
)
_NUMBERS: Final = ("d", "i", "u", "o", "x", "X", "c", "p", "gr")
_BUFFERS: Final = ("r", "rx", "rh")
_SUPPORTED: Final = (*_NUMBERS, *_BUFFERS, "s")
_LENGTHS: Final = {"hh": 8, "h": 16, "l": 64, "ll": 64, "j": 64, "z": 64, "t": 64}
_HEX: Final = [b"\\x%02x" % byte for byte in range(256)]


class Specification(Struct, frozen=True):
    """One `%...` of a format.

    Attributes:
        letter: what is shown: "d", "s", "rx".
        length: how wide a number is: "hh", "l"; "" for an int.
        width: bytes that are filled at least.
        left: the value is to the left of them.
        zeros: zeros fill them.
        plus: positive numbers have a sign.
        base: 0x or 0 is in front of numbers that are not decimal.
        variable: width or precision is `*`.
    """

    letter: str
    length: str = ""
    width: int = 0
    left: bool = False
    zeros: bool = False
    plus: bool = False
    base: bool = False
    variable: bool = False

    def fill(self, text: bytes, first: int) -> bytes:
        """Fill the field.

        Args:
            text: the value.
            first: how many bytes of it the width is for: of a tuple only the parenthesis, as C++
                streams have it.
        """
        missing = self.width - first
        if missing <= 0:
            return text
        filling = (b"0" if self.zeros else b" ") * missing
        return text[:first] + filling + text[first:] if self.left else filling + text


class PrintFormat(Struct, frozen=True):
    """A format string.

    Attributes:
        fragments: the text before each specification, and that behind the last one.
        specifications: in order.
    """

    fragments: tuple[bytes, ...]
    specifications: tuple[Specification, ...]

    @classmethod
    def of(cls, text: bytes) -> "PrintFormat":
        """Read a format string; what is no specification is text, `%%` is `%`."""
        fragments, specifications = [], []
        fragment, end = b"", 0
        for match in _SPECIFICATION.finditer(text):
            fragment += text[end : match.start()]
            end = match.end()
            if match["letter"] == b"%":
                fragment += b"%"
                continue
            fragments.append(fragment)
            specifications.append(_specification(match))
            fragment = b""
        fragments.append(fragment + text[end:])
        return cls(tuple(fragments), tuple(specifications))

    def error(self, types: Sequence[kinds.Type]) -> str | None:
        """The fault of arguments of these types, in bpftrace's words; None if there is none."""
        given, wanted = len(types), len(self.specifications)
        if given != wanted:
            many = "not enough" if given < wanted else "too many"
            return f"{many} arguments for format string ({given} supplied, {wanted} expected)"
        for one, kind in zip(self.specifications, types, strict=True):
            error = _error(one, kind)
            if error is not None:
                return error
        return None

    def renderer(
        self, types: Sequence[kinds.Type], names: ValueNames
    ) -> Callable[[Sequence[Any]], bytes]:
        """A function that fills in values of these types, for which `error` has none."""
        showers = [
            _shower(one, kind, names) for one, kind in zip(self.specifications, types, strict=True)
        ]
        form = b"%b".join(one.replace(b"%", b"%%") for one in self.fragments)
        if not showers:
            text = self.fragments[0]
            return lambda values: text
        if len(showers) == 1:
            (only,) = showers
            return lambda values: form % only(values[0])
        return lambda values: (
            form % tuple([show(value) for show, value in zip(showers, values, strict=True)])
        )


def check_format(text: bytes, types: Sequence[kinds.Type]) -> str | None:
    """The fault of a format string for arguments of these types; None if there is none."""
    return PrintFormat.of(text).error(types)


def _specification(match: re.Match[bytes]) -> Specification:
    width = match["width"] or b""
    return Specification(
        letter=match["letter"].decode(),
        length=match["length"].decode(),
        width=int(width[:10]) if width.isdigit() else 0,
        left=bool(match["left"]),
        zeros=bool(match["zeros"]),
        plus=bool(match["plus"]),
        base=bool(match["base"]),
        variable=b"*" in (width, match["precision"]),
    )


def _error(one: Specification, kind: kinds.Type) -> str | None:
    if isinstance(kind, kinds.Void):
        return f"unable to print none type for specifier: {one.letter}"
    if one.letter not in _SUPPORTED:
        return f"unsupported format specifier: {one.letter}"
    if one.variable:
        return f"unsupported format specifier: *{one.letter} (write the width as a number)"
    if one.width > MOST_WIDTH:
        return f"field width {one.width} of %{one.letter} is too large ({MOST_WIDTH} at most)"
    wanted: tuple[type, ...] | None = None
    if one.letter in _NUMBERS:
        wanted = (kinds.Integer, kinds.Boolean, kinds.Pointer, kinds.Enumeration)
    elif one.letter in _BUFFERS:
        wanted = (kinds.BufferType,)
    if wanted is None or isinstance(kind, wanted):
        return None
    return f"unsupported format specifier for type '{type_name(kind)}': {one.letter}"


def _shower(one: Specification, kind: kinds.Type, names: ValueNames) -> Shower:
    match one.letter:
        case "s":
            return _any(one, kind, names)
        case "r":
            show: Shower = hexed
        case "rx":
            show = _all_hexed
        case "rh":
            show = _spaced_hex
        case "gr":
            from engine.trace.bpftrace.gfp_flags import gfp_text  # few formats have it

            show = gfp_text
        case "c":
            show = _character
        case "p":
            show = _pointer
        case _:
            show = _number(one)
    if not one.width:
        return show
    return lambda value: _filled(one, show(value))


def _filled(one: Specification, text: bytes) -> bytes:
    return one.fill(text, len(text))


def _any(one: Specification, kind: kinds.Type, names: ValueNames) -> Shower:
    show = shower(kind, names, plus=one.plus)
    if not one.width:
        return show
    match kind:
        case kinds.Tuple() | kinds.Array():
            first = 1
        case kinds.Record() | kinds.Structure() | kinds.Aggregate(kind="stats"):
            first = 2
        case _:
            return lambda value: _filled(one, show(value))
    return lambda value: one.fill(show(value), first)


def _number(one: Specification) -> Shower:
    bits = _LENGTHS.get(one.length, 32)
    mask = (1 << bits) - 1
    if one.letter in "di":
        kind = kinds.Integer(bits, signed=True)
        form = b"%+d" if one.plus else b"%d"
        return lambda value: form % wrap(int(value), kind)
    if one.letter == "u":
        return lambda value: b"%d" % (value & mask)
    if one.letter == "o":
        return _octal(mask, base=one.base)
    hexadecimal = f"%{one.letter}".encode()
    if one.base:
        prefix = f"0{one.letter}".encode()
        # Zero has no prefix in C++.
        return lambda value: prefix + hexadecimal % (value & mask) if value & mask else b"0"
    return lambda value: hexadecimal % (value & mask)


def _octal(mask: int, *, base: bool) -> Shower:
    prefix = b"0" if base else b""
    return lambda value: prefix + b"%o" % (value & mask) if value & mask else b"0"


def _character(value: int) -> bytes:
    return bytes([value & 0xFF])


def _pointer(value: int) -> bytes:
    address = value & (1 << 64) - 1
    return b"%#x" % address if address else b"0"


def _all_hexed(data: bytes) -> bytes:
    return b"".join([_HEX[byte] for byte in data])


def _spaced_hex(data: bytes) -> bytes:
    return data.hex(" ").encode()
