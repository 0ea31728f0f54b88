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
from engine.arch.jump import COMM, COMM_BYTES, NotCompilableError, Recording
from engine.arch.program import Compare, Match, Operand, PredicateOp, RecordField, Source

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
_THREAD: Final = (4, 4)
_ADDRESS: Final = (16, 8)
"""Offset and size of numbers in the head of a row."""


class RowFilter:
    """Emits the filter of one recording."""

    def __init__(self, fetches: Fetches, one: Recording, name: str) -> None:
        """`name` begins the labels."""
        self._fetches = fetches
        self._code = fetches.code
        self._one = one
        self._name = name

    @property
    def light(self) -> bool:
        """Whether it looks at nothing but registers: then x16 and x17 will do."""
        return all(self._is_light(op) for op in self._one.filter)

    def _is_light(self, op: PredicateOp) -> bool:
        field = self._field(op)
        if op.operand is Operand.FIXED:
            return True
        return (
            op.operand in (Operand.NUMBER, Operand.RANGE)
            and field is not None
            and not field.arg.type.is_string
            and not field.arg.type.count
            and self._fetches.direct(field.arg) is not None
        )

    def _field(self, op: PredicateOp) -> RecordField | None:
        return next((f for f in self._one.layout.fields if f.word * 8 == op.offset), None)

    def emit(self, passed: str, failed: str) -> None:
        """All tests; the labels are where control goes. Rows that pass fall through to theirs."""
        ops = self._one.filter
        ends = {len(ops): passed, len(ops) + 1: failed}
        for index, op in enumerate(ops):
            self._code.label(f"{self._name}op{index}")
            true, false = index + 1, index + 1
            if op.when:
                true = op.target
            else:
                false = op.target
            labels = [ends.get(to, f"{self._name}op{to}") for to in (true, false)]
            if op.negate:
                labels.reverse()
            self._test(op, *labels, following=ends.get(index + 1, f"{self._name}op{index + 1}"))

    def _test(self, op: PredicateOp, true: str, false: str, *, following: str) -> None:
        if op.operand is Operand.FIXED:
            self._goto(true if op.value else false, following)
        elif op.operand is Operand.NUMBER:
            self._number(op, true, false, following)
        elif op.operand is Operand.RANGE:
            self._range(op, true, false, following)
        elif op.operand is Operand.CPU_SET:
            raise NotCompilableError("a filter on a set of CPUs")
        else:
            self._text(op, true, false, following)

    def _goto(self, label: str, following: str) -> None:
        if label != following:
            self._code.branch(B, label)

    def _branch(self, taken: int, opposite: int, true: str, false: str, following: str) -> None:
        if true == following:
            self._code.branch(opposite, false)
        else:
            self._code.branch(taken, true)
            self._goto(false, following)

    # -- numbers --------------------------------------------------------------------------

    def _number(self, op: PredicateOp, true: str, false: str, following: str) -> None:
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
        inside = f"{self._name}in{len(self._code.words)}"
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
            self._goto(true if value >= high else false, following)
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
        if op.count != 1:
            raise NotCompilableError("a filter on an array")
        field = self._field(op)
        if field is None:
            where = op.offset, op.size
            if where == _THREAD:
                code.constant(VALUE, fetches.places.thread + 4)
                code.load(VALUE, VALUE, 0, 4)
            elif where == _ADDRESS:
                code.constant(VALUE, self._one.address)
            else:
                raise NotCompilableError("a filter on what is no field of the event")
            return
        arg = field.arg
        if arg.type.is_string or arg.type.count or arg.base.source is Source.COMM:
            raise NotCompilableError("a filter on a string or an array as a number")
        fetches.value(arg, self._one)

    # -- strings --------------------------------------------------------------------------

    def _text(self, op: PredicateOp, true: str, false: str, following: str) -> None:
        """Only what is compared from its beginning on: a chunk may fault where it ends before."""
        if op.match not in (Match.FULL, Match.FRONT) or not op.pattern:
            raise NotCompilableError("a filter that searches in a string")
        code = self._code
        wanted = op.pattern + (b"\0" if op.match is Match.FULL else b"")
        if op.operand is Operand.COMM and len(wanted) > COMM_BYTES:
            raise NotCompilableError("a filter on a longer name than there is")
        self._place(op)
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

    def _place(self, op: PredicateOp) -> None:
        """Where a string stands, in x17."""
        fetches, field = self._fetches, self._field(op)
        named = field is not None and field.arg.base.source is Source.COMM
        if op.operand is Operand.COMM or (op.operand is Operand.STRING and named):
            self._code.constant(VALUE, fetches.places.save + COMM)
            return
        if field is None or op.operand is not Operand.STRING or field.arg.type.count:
            raise NotCompilableError("a filter on an array")
        if not field.arg.type.is_string or field.arg.base.source is Source.TEXT:
            raise NotCompilableError("a filter on an immediate string")
        fetches.at_address(field.arg, self._one)
