"""Values of generated Python: expressions of integers, cut to 64 bits only where that matters."""

from typing import Final

from engine.cpu.ia64.value import CodeValue, Operand

MASK: Final = "0xFFFFFFFFFFFFFFFF"
_M: Final = 0xFFFFFFFFFFFFFFFF
_WIDE: Final = 1000


class PythonValue(CodeValue):
    """An expression.

    Attributes:
        text: in brackets, if it is not a name or a number.
        bits: how many bits its value has at most; more than 64 if it must be cut or may be
            negative.
        known: the value of a constant, which may be negative.
    """

    __slots__ = ("bits", "known")

    def __init__(self, text: str, bits: int = 64, known: int | None = None) -> None:
        self.text, self.bits, self.known = text, bits, known

    @staticmethod
    def number(value: int) -> "PythonValue":
        """A constant."""
        return PythonValue(hex(value & _M), 64, value)

    @property
    def whole(self) -> str:
        """The value between 0 and 2**64, as what is assigned."""
        if self.bits > 64:
            return f"{self.text} & {MASK}"
        return self.text[1:-1] if self.text[0] == "(" else self.text

    @property
    def part(self) -> str:
        """The value between 0 and 2**64, as an operand."""
        return f"({self.text} & {MASK})" if self.bits > 64 else self.text

    def __add__(self, other: Operand) -> "PythonValue":
        if not isinstance(other, int):
            assert isinstance(other, PythonValue)
            if self.known is not None:
                return other + self.known
            if other.known is None:
                return PythonValue(f"({self.text} + {other.text})", _WIDE)
            other = other.known
        if not other:
            return self
        if self.known is not None:
            return PythonValue.number(self.known + other)
        sign, by = ("+", other) if other > 0 else ("-", -other)
        return PythonValue(f"({self.text} {sign} {by})", _WIDE)

    def __sub__(self, other: Operand) -> "PythonValue":
        if isinstance(other, int):
            return self + -other
        assert isinstance(other, PythonValue)
        if other.known is not None:
            return self + -other.known
        left = self.text if self.known is None else str(self.known)
        return PythonValue(f"({left} - {other.text})", _WIDE)

    def __and__(self, other: Operand) -> "PythonValue":
        if not isinstance(other, int):
            assert isinstance(other, PythonValue)
            if self.known is not None:
                return other & self.known
            if other.known is None:
                return PythonValue(f"({self.text} & {other.text})", min(self.bits, other.bits))
            other = other.known
        other &= _M
        if self.known is not None:
            return PythonValue.number(self.known & other)
        if self.bits <= 64 and not ~other & (1 << self.bits) - 1:
            return self
        return PythonValue(f"({self.text} & {other:#x})", other.bit_length())

    def __or__(self, other: Operand) -> "PythonValue":
        return self._joined("|", other)

    def __xor__(self, other: Operand) -> "PythonValue":
        return self._joined("^", other)

    def _joined(self, how: str, other: Operand) -> "PythonValue":
        if isinstance(other, int):
            other = PythonValue.number(other)
        assert isinstance(other, PythonValue)
        left, right = self.known, other.known
        if left is not None and right is not None:
            return PythonValue.number(left | right if how == "|" else left ^ right)
        if not right and right is not None:
            return self
        if not left and left is not None:
            return other
        text = f"({self.text} {how} {other.text})"
        return PythonValue(text, max(self.bits, other.bits))

    def __invert__(self) -> "PythonValue":
        if self.known is not None:
            return PythonValue.number(~self.known)
        return PythonValue(f"~{self.text}", _WIDE)

    def __lshift__(self, count: int) -> "PythonValue":
        if self.known is not None:
            return PythonValue.number(self.known << count)
        return PythonValue(f"({self.text} << {count})", self.bits + count) if count else self

    def cut(self, at: int, length: int, signed: bool = False) -> "PythonValue":
        """The bits from `at` on: signs are made by the opposite of the highest bit."""
        if self.known is not None:
            field = PythonValue.number((self.known & _M) >> at)
        else:
            field = PythonValue(f"({self.part} >> {at})", 64 - at) if at else self
        field = field & (1 << length) - 1
        if not signed or length == 64:
            return field
        top = 1 << (length - 1)
        return PythonValue(f"({(field ^ top).text} - {top:#x})", _WIDE)

    def ones(self) -> "PythonValue":
        """The number of bits that are set."""
        return PythonValue(f"(({self.part}).bit_count())")

    def leading_zeros(self) -> "PythonValue":
        """The number of bits above the highest one that is set."""
        return PythonValue(f"(64 - ({self.part}).bit_length())")


REGISTERS: Final = (
    PythonValue.number(0),
    *(PythonValue(f"g[{register}]") for register in range(1, 128)),
)
"""The general registers."""
