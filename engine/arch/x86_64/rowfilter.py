"""Filters as x86-64 code, in front of the row: what does not pass must leave nothing behind."""

from typing import Final

from engine.arch.jump import COMM_BYTES, NotCompilableError, Recording
from engine.arch.program import Compare, Match, Operand, PredicateOp, RecordField, Source
from engine.arch.x86_64.emit import (
    JA,
    JAE,
    JB,
    JBE,
    JE,
    JG,
    JGE,
    JL,
    JLE,
    JNE,
    RAX,
    RCX,
)
from engine.arch.x86_64.fetches import Fetches

_UNSIGNED: Final = {
    Compare.EQ: JE,
    Compare.NE: JNE,
    Compare.LT: JB,
    Compare.LE: JBE,
    Compare.GT: JA,
    Compare.GE: JAE,
    Compare.AND: JNE,
}
_SIGNED: Final = {Compare.LT: JL, Compare.LE: JLE, Compare.GT: JG, Compare.GE: JGE}
_THREAD: Final = (4, 4)
_ADDRESS: Final = (16, 8)
"""Offset and size of numbers in the head of a row."""


class RowFilter:
    """Emits the filter of one recording; flags change.

    Attributes:
        one: the recording.
    """

    def __init__(self, fetches: Fetches, one: Recording, name: str) -> None:
        """`name` begins the labels."""
        self._fetches = fetches
        self._code = fetches.code
        self.one = one
        self._name = name

    @property
    def light(self) -> bool:
        """Whether it only compares registers that are in place with constants that fit."""
        return all(self._is_light(op) for op in self.one.filter)

    def _is_light(self, op: PredicateOp) -> bool:
        if op.operand is Operand.FIXED:
            return True
        field = self._field(op)
        if op.operand is not Operand.NUMBER or op.count != 1 or field is None:
            return False
        fits = op.size < 8 or -(1 << 31) <= _signed(op.value, op.size) < 1 << 31
        plain = not field.arg.type.is_string and not field.arg.type.count
        return plain and fits and self._fetches.direct(field.arg) is not None

    def _field(self, op: PredicateOp) -> RecordField | None:
        return next((f for f in self.one.layout.fields if f.word * 8 == op.offset), None)

    def emit(self, passed: str, failed: str) -> None:
        """All tests; the labels are where control goes. Rows that pass fall through to theirs."""
        ops = self.one.filter
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
        elif op.operand in (Operand.NUMBER, Operand.RANGE):
            self._number(op, true, false, following)
        elif op.operand is Operand.CPU_SET:
            raise NotCompilableError("a filter on a set of CPUs")
        else:
            self._text(op, true, false, following)

    def _goto(self, label: str, following: str) -> None:
        if label != following:
            self._code.jump(label)

    def _branch(self, condition: int, true: str, false: str, following: str) -> None:
        """To one of two labels; conditions come in pairs of opposites."""
        if true == following:
            self._code.jump(false, condition ^ 1)
        else:
            self._code.jump(true, condition)
            self._goto(false, following)

    # -- numbers --------------------------------------------------------------------------

    def _number(self, op: PredicateOp, true: str, false: str, following: str) -> None:
        if op.count != 1:
            raise NotCompilableError("a filter on an array")
        register = self._operand(op)
        signed = op.signed and (op.compare in _SIGNED or op.operand is Operand.RANGE)
        if op.operand is Operand.NUMBER:
            self._compare(register, op.value, op.size, bits=op.compare is Compare.AND)
            condition = (_SIGNED if signed else _UNSIGNED)[op.compare]
            self._branch(condition, true, false, following)
            return
        low, high = (
            (-(1 << 8 * op.size - 1), 1 << 8 * op.size - 1)
            if signed
            else (
                0,
                1 << 8 * op.size,
            )
        )
        below = JL if signed else JB
        if op.value >= high or op.end <= low or op.end <= op.value:
            self._goto(false, following)
            return
        if op.value > low:
            self._compare(register, op.value, op.size)
            self._code.jump(false, below)
        if op.end >= high:
            self._goto(true, following)
            return
        self._compare(register, op.end, op.size)
        self._branch(below, true, false, following)

    def _operand(self, op: PredicateOp) -> int:
        """The register that holds a number."""
        code, fetches = self._code, self._fetches
        field = self._field(op)
        if field is None:
            where = op.offset, op.size
            if where == _THREAD:
                code.absolute(fetches.places.thread + 4, wide=False)
            elif where == _ADDRESS:
                code.constant(RAX, self.one.address)
            else:
                raise NotCompilableError("a filter on what is no field of the event")
            return RAX
        arg = field.arg
        if arg.type.is_string or arg.type.count or arg.base.source is Source.COMM:
            raise NotCompilableError("a filter on a string or an array as a number")
        register = fetches.direct(arg)
        if register is None:
            fetches.value(arg, self.one)
            return RAX
        return register

    def _compare(self, register: int, value: int, size: int, *, bits: bool = False) -> None:
        code = self._code
        if not code.compare(register, value, size, bits=bits):
            code.constant(RCX, value)
            code.two(0x85 if bits else 0x39, RCX, register, size)

    # -- strings --------------------------------------------------------------------------

    def _text(self, op: PredicateOp, true: str, false: str, following: str) -> None:
        """Only what is compared from its beginning on: a chunk may fault where it ends before."""
        if op.match not in (Match.FULL, Match.FRONT) or not op.pattern:
            raise NotCompilableError("a filter that searches in a string")
        offset = self._place(op)
        wanted = op.pattern + (b"\0" if op.match is Match.FULL else b"")
        if op.operand is Operand.COMM and len(wanted) > COMM_BYTES:
            raise NotCompilableError("a filter on a longer name than there is")
        at = 0
        while at < len(wanted):
            size = next(size for size in (4, 2, 1) if size <= len(wanted) - at)
            value = int.from_bytes(wanted[at : at + size], "little")
            self._code.compare_memory(RAX, offset + at, size, value)
            at += size
            if at < len(wanted):
                self._code.jump(false, JNE)
        self._branch(JE, true, false, following)

    def _place(self, op: PredicateOp) -> int:
        """Where a string stands is rax plus what this returns."""
        code, fetches = self._code, self._fetches
        field = self._field(op)
        named = field is not None and field.arg.base.source is Source.COMM
        if op.operand is Operand.COMM or (op.operand is Operand.STRING and named):
            code.constant(RAX, fetches.places.comm)
            return 0
        if field is None or op.operand is not Operand.STRING or field.arg.type.count:
            raise NotCompilableError("a filter on an array")
        if not field.arg.type.is_string or field.arg.base.source is Source.TEXT:
            raise NotCompilableError("a filter on an immediate string")
        return fetches.address(field.arg, self.one)


def _signed(value: int, size: int) -> int:
    value &= (1 << 8 * size) - 1
    return value - (1 << 8 * size) if value >> 8 * size - 1 else value
