"""Values with their types and, where they have one, their places."""

import struct
from collections.abc import Callable, Mapping
from fractions import Fraction
from math import copysign, inf, isfinite, nan
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.language.value_types import INTEGERS, CType

Order = Literal["little", "big"]
MOST: Final = 1 << 16
"""Bytes of a value at the most (gdb's max-value-size)."""
_FLOATS: Final = {2: "e", 4: "f", 8: "d"}
_BIAS, _NO_NUMBER = 16383, 0x7FFF
"""Of exponents of long numbers: what zero is stored as, and the one of infinities."""
_NUMBERS: Final = INTEGERS | {TypeKind.ENUM, TypeKind.POINTER}


class MemoryPlace(Struct, frozen=True):
    """A value's place in memory.

    Attributes:
        address: its first byte.
        bit: of a bitfield: its lowest bit behind the address.
        bits: of a bitfield: how many, 0 for none.
    """

    address: int
    bit: int = 0
    bits: int = 0


class RegisterPlace(Struct, frozen=True):
    """A value's place in a register.

    Attributes:
        name: of the register.
        offset: bytes into it.
    """

    name: str
    offset: int = 0


Place = MemoryPlace | RegisterPlace | None


class TypedValue(Struct, eq=False):
    """A value.

    Attributes:
        type: its type.
        place: where it can be changed; None for nowhere.
        load: reads its bytes; it raises what reading raises.
        missing: why there is none: "<optimized out>".
        order: of bytes.
        label: what a register's value reads as in place of a number, "" for the number.
        kept: it is of the history: it stays as it was printed, and nothing is assigned to it.
        pages: memory that is other than the program's, by the address of each page: what a
            function that was called for the value has left there.
        copier: addresses of the code that makes a copy of an object for a function, and that ends
            the copy, 0 for none; empty where its bytes are copied, or it is passed itself.
        pieces: of one that is missing: what there is of it all the same, by the first byte of
            each piece.
    """

    type: CType
    load: Callable[[], bytes]
    place: Place = None
    missing: str = ""
    order: Order = "little"
    label: str = ""
    kept: bool = False
    pages: Mapping[int, bytes] = {}
    copier: tuple[int, ...] = ()
    pieces: tuple[tuple[int, bytes], ...] = ()
    _raw: bytes | None = None

    @property
    def raw(self) -> bytes:
        """The value's bytes; of a bitfield those of a number of its type.

        Raises:
            CommandError: there is no value.
            GuestFaultError: it cannot be read.
        """
        if self.missing:
            raise CommandError(
                self.missing.strip("<>")
                if "opt" not in self.missing
                else "value has been optimized out"
            )
        if self._raw is None:
            self._raw = self.load()
        return self._raw

    def loaded(self) -> "TypedValue":
        """The same with its bytes read now; it raises what `raw` does."""
        return replace(self, _raw=self.raw)

    @property
    def is_loaded(self) -> bool:
        """True if its bytes are here: its parts are cut from them, as in gdb."""
        return self._raw is not None

    def part(self, kind: CType, start: int, place: Place = None) -> "TypedValue":
        """A part of a value that is loaded, by its first byte."""
        size = kind.size or 0
        if self.pieces:
            return self._piece(kind, start, size)
        return replace(
            self,
            type=kind,
            load=lambda: self.raw[start : start + size],
            place=place,
            label="",
            _raw=None,
        )

    def _piece(self, kind: CType, start: int, size: int) -> "TypedValue":
        """A part of a value of which not all is there."""
        cut = tuple(
            (max(at, start) - start, raw[max(start - at, 0) : max(start + size - at, 0)])
            for at, raw in self.pieces
        )
        found = tuple((at, raw) for at, raw in cut if raw)
        whole = b"".join(raw for _, raw in sorted(found))
        is_whole = size > 0 and len(whole) == size
        return replace(
            self,
            type=kind,
            load=lambda: whole,
            place=None,
            missing="" if is_whole else self.missing,
            label="",
            pieces=() if is_whole else found,
            _raw=None,
        )

    def remembered(self) -> "TypedValue":
        """The value as it is now, for the history.

        Raises:
            CommandError: it is too large.
            GuestFaultError: it cannot be read.
        """
        if self.missing or not self.type.size:
            return replace(self, kept=True)
        raw = self.raw
        return replace(self, kept=True, load=lambda: raw, _raw=raw)

    @property
    def address(self) -> int | None:
        """The value's first byte in memory; None where it is not there."""
        return self.place.address if isinstance(self.place, MemoryPlace) else None

    @property
    def is_place(self) -> bool:
        """True for an array or a function: used as a number it is its address."""
        return self.type.kind in (TypeKind.ARRAY, TypeKind.FUNCTION)

    @property
    def as_address(self) -> int:
        """The address that it means: an array's or function's own, or the number that it is.

        Raises:
            CommandError: it is none.
        """
        place = self.address if self.is_place else None
        return (self.number if place is None else place) % (1 << 64)

    @property
    def number(self) -> int:
        """An integer's, pointer's or enumeration's value.

        Raises:
            CommandError: it is none.
        """
        kind = self.type
        if kind.kind not in _NUMBERS:
            raise CommandError("Value can't be converted to integer.")
        return int.from_bytes(self.raw, self.order, signed=kind.is_signed)

    @property
    def real(self) -> float:
        """A floating-point number's value, the nearest double for a long one.

        Raises:
            CommandError: it is no number.
        """
        if self.type.kind is not TypeKind.FLOAT:
            return float(self.number)
        return as_float(self.raw, self.order, is_quad=self.type.is_quad)

    @property
    def exact(self) -> Fraction | float:
        """A number's value with all its digits; a float for an infinity, for none, and for zero.

        Raises:
            CommandError: it is no number.
        """
        if self.type.kind is not TypeKind.FLOAT:
            return Fraction(self.number)
        if len(self.raw) not in _FLOATS:
            return quad(self.raw, self.order) if self.type.is_quad else extended(self.raw)
        number = self.real
        return Fraction(number) if number and isfinite(number) else number

    @property
    def truth(self) -> bool:
        """True if it is not zero.

        Raises:
            CommandError: it is no scalar.
        """
        if self.type.kind is TypeKind.FLOAT:
            return self.real != 0
        if self.type.kind is TypeKind.ARRAY or self.type.kind is TypeKind.FUNCTION:
            return bool(self.address)
        return self.number != 0


def as_float(raw: bytes, order: Order, *, is_quad: bool = False) -> float:
    """A binary floating-point number of 2, 4, 8, 10 or 16 bytes.

    Args:
        raw: its bytes.
        order: of them.
        is_quad: 16 bytes are IEEE's format; else they are the x87's of 80 bits, as 10 are.
    """
    if len(raw) in _FLOATS:
        (number,) = struct.unpack(("<" if order == "little" else ">") + _FLOATS[len(raw)], raw)
        return float(number)
    return _nearest(quad(raw, order) if is_quad else extended(raw))


def _nearest(number: Fraction | float) -> float:
    """The double that is nearest to a number."""
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf


def extended(raw: bytes) -> Fraction | float:
    """The exact value of an x87 number; a float for an infinity or for none."""
    mantissa, top = int.from_bytes(raw[:8], "little"), int.from_bytes(raw[8:10], "little")
    sign, exponent = -1 if top >> 15 else 1, top & 0x7FFF
    if exponent == 0x7FFF:
        return nan if mantissa << 1 & (1 << 64) - 1 else sign * inf
    return sign * Fraction(mantissa) * Fraction(2) ** (max(exponent, 1) - 16383 - 63)


def quad(raw: bytes, order: Order) -> Fraction | float:
    """The exact value of an IEEE number of 128 bits; a float for an infinity or for none."""
    bits = int.from_bytes(raw, order)
    sign, exponent = -1 if bits >> 127 else 1, bits >> 112 & 0x7FFF
    fraction = bits & (1 << 112) - 1
    if exponent == 0x7FFF:
        return nan if fraction else sign * inf
    mantissa = fraction | (1 << 112 if exponent else 0)
    return sign * Fraction(mantissa) * Fraction(2) ** (max(exponent, 1) - 16383 - 112)


def float_bytes(number: float, size: int, order: Order) -> bytes:
    """A number as a binary floating-point one of 2, 4 or 8 bytes."""
    try:
        return struct.pack(("<" if order == "little" else ">") + _FLOATS[size], number)
    except OverflowError:
        return struct.pack(
            ("<" if order == "little" else ">") + _FLOATS[size], inf if number > 0 else -inf
        )


def long_float_bytes(number: Fraction | float, size: int, order: Order, *, is_quad: bool) -> bytes:
    """A number as one of IEEE's of 128 bits, or as one of the x87's: the nearest even one."""
    digits = 113 if is_quad else 64
    sign = int(number < 0 or (number == 0 and copysign(1, float(number)) < 0))
    mantissa, exponent = 0, 0
    if isinstance(number, float) and not isfinite(number):
        exponent, mantissa = _NO_NUMBER, (number != number) << digits - 2
    elif number:
        magnitude = abs(Fraction(number))
        power = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        power -= magnitude < Fraction(2) ** power
        power = max(power, 1 - _BIAS)
        mantissa = round(magnitude / Fraction(2) ** (power - digits + 1))
        if mantissa >> digits:
            mantissa, power = mantissa >> 1, power + 1
        exponent = power + _BIAS if mantissa >> digits - 1 else 0
        if exponent >= _NO_NUMBER:
            exponent, mantissa = _NO_NUMBER, 0
    if is_quad:
        whole = sign << 127 | exponent << 112 | mantissa & (1 << 112) - 1
        return whole.to_bytes(16, order)
    if exponent == _NO_NUMBER:
        mantissa |= 1 << 63
    return (sign << 79 | exponent << 64 | mantissa).to_bytes(10, "little").ljust(size, b"\0")


def made(kind: CType, number: Fraction | float, order: Order) -> TypedValue:
    """A computed value of a scalar type; an integer is cut to its size."""
    size = kind.size or 1
    if kind.kind is TypeKind.FLOAT and size not in _FLOATS:
        raw = long_float_bytes(number, size, order, is_quad=kind.resolved.is_quad)
    elif kind.kind is TypeKind.FLOAT:
        raw = float_bytes(_nearest(number), size, order)
    else:
        whole = int(number)
        if kind.kind is TypeKind.BOOL:
            whole = int(whole != 0)
        raw = (whole & (1 << 8 * size) - 1).to_bytes(size, order)
    return TypedValue(kind, lambda: raw, order=order)
