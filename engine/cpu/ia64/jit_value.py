"""Values of LLVM text, and the lines of a function that computes them."""

from typing import Final

from engine.cpu.ia64.value import CodeValue, Operand

_SIGNED: Final = 1 << 63
_EXTENDED: Final = (8, 16, 32)


class Unsupported(Exception):  # noqa: N818 - an answer, no error
    """Machine code does not do this; Python does."""


def number(value: int) -> str:
    """A constant of 64 bits."""
    value &= 0xFFFFFFFFFFFFFFFF
    return str(value - (1 << 64) if value & _SIGNED else value)


class JitLines:
    """Collects lines.

    Attributes:
        helpers: declarations that the text needs.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._count = 0
        self.helpers: set[str] = set()

    def emit(self, text: str) -> None:
        """Add a line."""
        self._lines.append("  " + text)

    def name(self, prefix: str = "t") -> str:
        """A fresh name, without its sign."""
        self._count += 1
        return f"{prefix}{self._count}"

    def op(self, text: str) -> str:
        """Add an instruction that has a value; its name."""
        fresh = "%" + self.name()
        self._lines.append(f"  {fresh} = {text}")
        return fresh

    def binary(self, what: str, left: str, right: str) -> str:
        """An operation of two values of 64 bits."""
        return self.op(f"{what} i64 {left}, {right}")

    def masked(self, value: str, mask: int) -> str:
        """`value` & mask."""
        return self.op(f"and i64 {value}, {number(mask)}")

    def test(self, what: str, left: str, right: str) -> str:
        """A relation of two values of 64 bits."""
        return self.op(f"icmp {what} i64 {left}, {right}")

    def choose(self, condition: str, left: str, right: str) -> str:
        """One of two values."""
        return self.op(f"select i1 {condition}, i64 {left}, i64 {right}")

    def intrinsic(self, name: str, result: str, *arguments: tuple[str, str]) -> str:
        """A call of a function of LLVM's; arguments are types and values."""
        self.helpers.add(f"declare {result} @{name}({', '.join(kind for kind, _ in arguments)})")
        given = ", ".join(f"{kind} {value}" for kind, value in arguments)
        return self.op(f"call {result} @{name}({given})")


class JitValue(CodeValue):
    """A name or a constant in some lines."""

    __slots__ = ("lines",)

    def __init__(self, lines: JitLines, text: str) -> None:
        self.lines, self.text = lines, text

    def _with(self, what: str, other: Operand) -> "JitValue":
        text = number(other) if isinstance(other, int) else other.text
        return JitValue(self.lines, self.lines.binary(what, self.text, text))

    def __add__(self, other: Operand) -> "JitValue":
        return self if other == 0 else self._with("add", other)

    def __sub__(self, other: Operand) -> "JitValue":
        return self if other == 0 else self._with("sub", other)

    def __and__(self, other: Operand) -> "JitValue":
        return self._with("and", other)

    def __or__(self, other: Operand) -> "JitValue":
        return self._with("or", other)

    def __xor__(self, other: Operand) -> "JitValue":
        return self._with("xor", other)

    def __invert__(self) -> "JitValue":
        return self._with("xor", -1)

    def __lshift__(self, count: int) -> "JitValue":
        return self._with("shl", count) if count else self

    def cut(self, at: int, length: int, signed: bool = False) -> "JitValue":
        """The bits from `at` on, by two shifts or by a conversion."""
        if not at and length in _EXTENDED:
            narrow = self.lines.op(f"trunc i64 {self.text} to i{length}")
            how = "sext" if signed else "zext"
            return JitValue(self.lines, self.lines.op(f"{how} i{length} {narrow} to i64"))
        high = self << 64 - at - length
        return high._with("ashr" if signed else "lshr", 64 - length) if length < 64 else high

    def ones(self) -> "JitValue":
        """The number of bits that are set."""
        made = self.lines.intrinsic("llvm.ctpop.i64", "i64", ("i64", self.text))
        return JitValue(self.lines, made)

    def leading_zeros(self) -> "JitValue":
        """The number of bits above the highest one that is set; 64 for 0."""
        given = ("i64", self.text), ("i1", "false")
        return JitValue(self.lines, self.lines.intrinsic("llvm.ctlz.i64", "i64", *given))
