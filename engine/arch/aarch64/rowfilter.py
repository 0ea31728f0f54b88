"""Filters as AArch64 code, in front of the row: what does not pass must leave nothing behind.

Flags are left alone: what is to be known of a difference is its sign, or whether it is zero.
"""

from typing import Final

from engine.arch.aarch64.emit import (
    AND,
    BASE,
    BIC,
    CBNZ,
    CBZ,
    EOR,
    ORN,
    SUB,
    TBNZ63,
    TBZ63,
    VALUE,
    B,
)
from engine.arch.aarch64.fetches import ROW, Fetches
from engine.arch.program import Compare, Operand, PredicateOp
from engine.arch.recording import COMM, NotCompilableError, Recording
from engine.arch.rowfilter import ADDRESS, THREAD, FilterCode

_SIGNS: Final = {1: 0x93401C00, 2: 0x93403C00, 4: 0x93407C00}
_ZEROS: Final = {1: 0xD3401C00, 2: 0xD3403C00, 4: 0xD3407C00}
_FLIP: Final = 0xD2410000
"""`eor` with the highest bit."""
_ORDER: Final = {
    Compare.LT: (0, True),
    Compare.LE: (1, True),
    Compare.GT: (1, False),
    Compare.GE: (0, False),
}
"""What is added to the constant, and whether the number has to be below it then."""


class RowFilter(FilterCode):
    """Emits the filter of one recording."""

    def __init__(self, fetches: Fetches, one: Recording, name: str) -> None:
        """`name` begins the labels."""
        super().__init__(fetches.code, one, name)
        self._fetches = fetches
        self._code = fetches.code

    @property
    def light(self) -> bool:
        """Whether it looks at nothing but registers: then x16 and x17 will do."""
        return all(self._is_light(op) for op in self.one.filter)

    def _is_light(self, op: PredicateOp) -> bool:
        field = self.field(op)
        if op.operand is Operand.FIXED:
            return True
        return (
            op.operand in (Operand.NUMBER, Operand.RANGE)
            and field is not None
            and not field.arg.type.is_string
            and not field.arg.type.count
            and self._fetches.direct(field.arg) is not None
        )

    def jump(self, label: str) -> None:
        """Go to a label."""
        self._code.branch(B, label)

    def _branch(self, taken: int, opposite: int, true: str, false: str, following: str) -> None:
        if true == following:
            self._code.branch(opposite, false)
        else:
            self._code.branch(taken, true)
            self.go(false, following)

    # -- numbers --------------------------------------------------------------------------

    def number(self, op: PredicateOp, true: str, false: str, following: str) -> None:
        """Compare a number, or see whether it lies in a range; go to one of two labels."""
        if op.operand is Operand.RANGE:
            self._range(op, true, false, following)
            return
        code = self._code
        if op.compare in _ORDER:
            more, below = _ORDER[op.compare]
            if not below:
                true, false = false, true
            self._below(op, op.value, more, true, false, following)
            return
        self._operand(op)
        code.constant(BASE, op.value & (1 << 8 * op.size) - 1)
        if op.compare is Compare.AND:
            code.three(AND, VALUE, VALUE, BASE)
        else:
            if op.size < 8:
                code.add(_ZEROS[op.size] | VALUE << 5 | VALUE)
            code.three(SUB, VALUE, VALUE, BASE)
        if op.compare is Compare.EQ:
            true, false = false, true
        self._branch(CBNZ | VALUE, CBZ | VALUE, true, false, following)

    def _range(self, op: PredicateOp, true: str, false: str, following: str) -> None:
        inside = f"{self.name}in{len(self._code.words)}"
        self._below(op, op.value, 0, false, inside, inside)
        self._code.label(inside)
        self._below(op, op.end, 0, true, false, following)

    def _below(
        self, op: PredicateOp, value: int, more: int, true: str, false: str, following: str
    ) -> None:
        """Whether the number is less than a constant (plus `more`)."""
        code, bits = self._code, 8 * op.size
        sign = 1 << bits - 1
        if op.operand is Operand.NUMBER:  # as many bits as the number has
            value &= (1 << bits) - 1
            value -= (1 << bits) if op.signed and value & sign else 0
        value += more
        low, high = (-sign, sign) if op.signed else (0, 1 << bits)
        if value <= low or value >= high:
            self.go(true if value >= high else false, following)
            return
        self._operand(op)
        if op.size < 8:
            code.add((_SIGNS if op.signed else _ZEROS)[op.size] | VALUE << 5 | VALUE)
            code.constant(BASE, value)
            code.three(SUB, BASE, VALUE, BASE)
        else:
            # The borrow of an unsigned subtraction, from the highest bits of all three.
            if op.signed:
                code.add(_FLIP | VALUE << 5 | VALUE)
                value += sign
            code.constant(BASE, value)
            code.three(SUB, BASE, VALUE, BASE)
            code.three(ORN if value & sign else BIC, BASE, BASE, VALUE)
        self._branch(TBNZ63 | BASE, TBZ63 | BASE, true, false, following)

    def _operand(self, op: PredicateOp) -> None:
        """A number in x17."""
        code, fetches = self._code, self._fetches
        field = self.field(op)
        if field is None:
            where = op.offset, op.size
            if where == THREAD:
                code.constant(VALUE, fetches.places.thread + 4)
                code.load(VALUE, VALUE, 0, 4)
            elif where == ADDRESS:
                code.constant(VALUE, self.one.address)
            else:
                raise NotCompilableError("a filter on what is no field of the event")
            return
        fetches.value(self.scalar(field), self.one)

    # -- strings --------------------------------------------------------------------------

    def text(self, op: PredicateOp, true: str, false: str, following: str) -> None:
        """Compare a string from its beginning on; go to one of two labels."""
        code, wanted, arg = self._code, self.wanted(op), self.string(op)
        if arg is None:
            code.constant(VALUE, self._fetches.places.save + COMM)
        else:
            self._fetches.at_address(arg, self.one)
        at = 0
        while at < len(wanted):
            size = next(size for size in (8, 4, 2, 1) if size <= len(wanted) - at)
            code.load(BASE, VALUE, at, size)
            code.constant(ROW, int.from_bytes(wanted[at : at + size], "little"))
            code.three(EOR, BASE, BASE, ROW)
            at += size
            if at < len(wanted):
                code.branch(CBNZ | BASE, false)
        self._branch(CBZ | BASE, CBNZ | BASE, true, false, following)
