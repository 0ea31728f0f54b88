"""Filters as x86-64 code, in front of the row: what does not pass must leave nothing behind."""

from typing import Final

from engine.arch.program import Compare, Operand, PredicateOp
from engine.arch.recording import NotCompilableError, Recording
from engine.arch.rowfilter import ADDRESS, THREAD, FilterCode
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


class RowFilter(FilterCode):
    """Emits the filter of one recording; flags change."""

    def __init__(self, fetches: Fetches, one: Recording, name: str) -> None:
        """`name` begins the labels."""
        super().__init__(fetches.code, one, name)
        self._fetches = fetches
        self._code = fetches.code

    @property
    def light(self) -> bool:
        """Whether it only compares registers that are in place with constants that fit."""
        return all(self._is_light(op) for op in self.one.filter)

    def _is_light(self, op: PredicateOp) -> bool:
        if op.operand is Operand.FIXED:
            return True
        field = self.field(op)
        if op.operand is not Operand.NUMBER or op.count != 1 or field is None:
            return False
        fits = op.size < 8 or -(1 << 31) <= _signed(op.value, op.size) < 1 << 31
        plain = not field.arg.type.is_string and not field.arg.type.count
        return plain and fits and self._fetches.direct(field.arg) is not None

    def jump(self, label: str) -> None:
        """Go to a label."""
        self._code.jump(label)

    def _branch(self, condition: int, true: str, false: str, following: str) -> None:
        """To one of two labels; conditions come in pairs of opposites."""
        if true == following:
            self._code.jump(false, condition ^ 1)
        else:
            self._code.jump(true, condition)
            self.go(false, following)

    # -- numbers --------------------------------------------------------------------------

    def number(self, op: PredicateOp, true: str, false: str, following: str) -> None:
        """Compare a number, or see whether it lies in a range; go to one of two labels."""
        register = self._operand(op)
        signed = op.signed and (op.compare in _SIGNED or op.operand is Operand.RANGE)
        if op.operand is Operand.NUMBER:
            self._compare(register, op.value, op.size, bits=op.compare is Compare.AND)
            condition = (_SIGNED if signed else _UNSIGNED)[op.compare]
            self._branch(condition, true, false, following)
            return
        sign = 1 << 8 * op.size - 1
        low, high = (-sign, sign) if signed else (0, 2 * sign)
        below = JL if signed else JB
        if op.value >= high or op.end <= low or op.end <= op.value:
            self.go(false, following)
            return
        if op.value > low:
            self._compare(register, op.value, op.size)
            self._code.jump(false, below)
        if op.end >= high:
            self.go(true, following)
            return
        self._compare(register, op.end, op.size)
        self._branch(below, true, false, following)

    def _operand(self, op: PredicateOp) -> int:
        """The register that holds a number."""
        code, fetches = self._code, self._fetches
        field = self.field(op)
        if field is None:
            where = op.offset, op.size
            if where == THREAD:
                code.absolute(fetches.places.thread + 4, wide=False)
            elif where == ADDRESS:
                code.constant(RAX, self.one.address)
            else:
                raise NotCompilableError("a filter on what is no field of the event")
            return RAX
        arg = self.scalar(field)
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

    def text(self, op: PredicateOp, true: str, false: str, following: str) -> None:
        """Compare a string from its beginning on; go to one of two labels."""
        wanted, arg = self.wanted(op), self.string(op)
        if arg is None:
            self._code.constant(RAX, self._fetches.places.comm)
        offset = 0 if arg is None else self._fetches.address(arg, self.one)
        at = 0
        while at < len(wanted):
            size = next(size for size in (4, 2, 1) if size <= len(wanted) - at)
            value = int.from_bytes(wanted[at : at + size], "little")
            self._code.compare_memory(RAX, offset + at, size, value)
            at += size
            if at < len(wanted):
                self._code.jump(false, JNE)
        self._branch(JE, true, false, following)


def _signed(value: int, size: int) -> int:
    value &= (1 << 8 * size) - 1
    return value - (1 << 8 * size) if value >> 8 * size - 1 else value
