"""Parallel floating point: two singles in one significand."""

from collections.abc import Callable
from typing import Final

from engine.arch.ia64.floatformats import (
    INTEGER_BIT,
    INTEGER_EXPONENT,
    NAN_EXPONENT,
    Float,
    from_single,
    to_single,
)
from engine.cpu.ia64.floatops import (
    BIT_OPERATIONS,
    FloatOperations,
    approximate,
    approximate_root,
    convert,
    divide_special,
    normal,
    pick,
    related,
    root_special,
)
from engine.cpu.ia64.floats import (
    PARALLEL,
    FloatControl,
    is_nan,
    round_to,
)
from engine.cpu.ia64.state import NATVAL

_RELATIONS: Final = ("eq", "lt", "le", "unord", "neq", "nlt", "nle", "ord")
_OPPOSITES: Final = {"neq": "eq", "nlt": "lt", "nle": "le", "ord": "unord"}


def split(x: Float) -> tuple[Float, Float]:
    """High and low half."""
    return from_single(x[2] >> 32), from_single(x[2] & 0xFFFFFFFF)


def merge(high: int, low: int) -> Float:
    """Two words of 32 bits."""
    return (0, INTEGER_EXPONENT, high << 32 | low)


class FloatPairs(FloatOperations):
    """Parallel operations."""

    def parallel_fma(
        self, x: Float, y: Float, z: Float, sf: int, signs: int, product: bool
    ) -> Float:
        """fpma, fpms, fpnma."""
        if x == NATVAL or y == NATVAL or z == NATVAL:
            return NATVAL
        halves = []
        for a, b, c in zip(split(x), split(y), split(z), strict=True):
            halves.append(to_single(self.fma(a, b, c, sf, PARALLEL, signs, product)))
        return merge(halves[0], halves[1])

    def parallel_frcpa(self, x: Float, y: Float, sf: int) -> tuple[Float, int]:
        """`fprcpa`."""
        if x == NATVAL or y == NATVAL:
            return NATVAL, 0
        control, halves, usable = self.controls[sf], [], 1
        for a, b in zip(split(x), split(y), strict=True):
            found = divide_special(a, b, control)
            if found is None:
                found, good = self._reciprocal(a, b, control)
                usable &= good
            else:
                usable = 0
            halves.append(to_single(found))
        return merge(halves[0], halves[1]), usable

    def _reciprocal(self, x: Float, y: Float, control: FloatControl) -> tuple[Float, int]:
        value = approximate(normal(y))
        bits = control.bits
        limits = (24, -126, 127)
        result, _ = round_to(value[0], value[2], value[1] - 0xFFFF - 63, limits, bits, control)
        exponent = normal(x)[1] - normal(y)[1]
        good = -126 <= exponent <= 125 and -126 <= normal(y)[1] - 0xFFFF <= 125
        return result, int(good and normal(x)[1] - 0xFFFF > -126 + 24)

    def parallel_frsqrta(self, x: Float, sf: int) -> tuple[Float, int]:
        """`fprsqrta`."""
        if x == NATVAL:
            return NATVAL, 0
        control, halves, usable = self.controls[sf], [], 1
        for a in split(x):
            found = root_special(a, control)
            if found is None:
                found = approximate_root(normal(a))
                usable &= normal(a)[1] - 0xFFFF > -126 + 24
            else:
                usable = 0
                if not is_nan(found):  # unlike frsqrta's, this is the reciprocal's limit
                    exponent, top = (0, 0) if found[2] else (NAN_EXPONENT, INTEGER_BIT)
                    found = (found[0], exponent, top)
            halves.append(to_single(found))
        return merge(halves[0], halves[1]), int(usable)

    def parallel_to_integer(self, x: Float, sf: int, unsigned: bool, truncate: bool) -> Float:
        """`fpcvt`."""
        if x == NATVAL:
            return NATVAL
        control, halves = self.controls[sf], []
        flags = 0
        for a in split(x):
            value, more = convert(a, control, 32, unsigned, truncate)
            halves.append(value)
            flags |= more
        self.record(flags, control)
        return merge(halves[0], halves[1])

    def parallel_extreme(self, which: str) -> Callable[[Float, Float, int], Float]:
        """fpmin, fpmax, fpamin, fpamax."""
        most, absolute = which.endswith("max"), which.startswith("fpa")

        def run(x: Float, y: Float, sf: int) -> Float:
            if x == NATVAL or y == NATVAL:
                return NATVAL
            control = self.controls[sf]
            pairs = zip(split(x), split(y), strict=True)
            high, low = (to_single(pick(a, b, most, absolute, control)) for a, b in pairs)
            return merge(high, low)

        return run

    def parallel_compare(self, relation: str) -> Callable[[Float, Float, int], Float]:
        """`fpcmp`."""
        base = _OPPOSITES.get(relation, relation)

        def run(x: Float, y: Float, sf: int) -> Float:
            if x == NATVAL or y == NATVAL:
                return NATVAL
            control = self.controls[sf]
            pairs = zip(split(x), split(y), strict=True)
            found = [related(a, b, base, control) != (base != relation) for a, b in pairs]
            return merge(0xFFFFFFFF * found[0], 0xFFFFFFFF * found[1])

        return run

    def with_status(self) -> dict[str, Callable[[Float, Float, int], Float]]:
        """Two-operand forms by mnemonic without the status field."""
        return {
            **{name: self.extreme(name) for name in ("fmin", "fmax", "famin", "famax")},
            **{
                name: self.parallel_extreme(name)
                for name in ("fpmin", "fpmax", "fpamin", "fpamax")
            },
            **{f"fpcmp.{relation}": self.parallel_compare(relation) for relation in _RELATIONS},
        }


def _pack(x: Float, y: Float) -> Float:
    if x == NATVAL or y == NATVAL:
        return NATVAL
    return merge(to_single(x), to_single(y))


MERGE: Final = {**BIT_OPERATIONS, (0, 0x28): _pack}
"""Two-operand forms that only move bits, by major opcode and x6."""
