"""Filters as code, in front of the row: what does not pass must leave nothing behind."""

from collections.abc import Callable
from functools import partial
from typing import Final

from engine.arch.program import Compare, FetchArg, Match, Operand, PredicateOp, RecordField, Source
from engine.arch.recorder.encoder import NumberTest
from engine.arch.recorder.fetches import Fetches
from engine.arch.recording import COMM_BYTES, NotCompilableError, Recording

THREAD: Final = (4, 4)
ADDRESS: Final = (16, 8)
"""Offset and size of numbers in the head of a row."""

_EQUALITY: Final = (Compare.EQ, Compare.NE, Compare.AND)
"""Comparisons that do not ask for the sign."""


class RowFilter:
    """Emits the filter of one recording.

    Attributes:
        one: the recording.
    """

    def __init__(self, fetches: Fetches, one: Recording, name: str) -> None:
        """For one recording; its labels begin with `name`."""
        self.one = one
        self._fetches = fetches
        self._encoder = fetches.encoder
        self._name = name

    @property
    def light(self) -> bool:
        """True if it only compares registers that are in place with constants that fit."""
        return all(map(self._is_light, self.one.filter))

    def emit(self, passed: str, failed: str) -> None:
        """All tests; the labels are where control goes. Rows that pass fall through to theirs.

        Raises:
            NotCompilableError: a test is left to the engine.
        """
        ops = self.one.filter
        ends = {len(ops): passed, len(ops) + 1: failed}
        for index, op in enumerate(ops):
            self._encoder.label(f"{self._name}op{index}")
            true, false = index + 1, index + 1
            if op.when:
                true = op.target
            else:
                false = op.target
            labels = [ends.get(to, f"{self._name}op{to}") for to in (true, false)]
            if op.negate:
                labels.reverse()
            following = ends.get(index + 1, f"{self._name}op{index + 1}")
            self._test(op, *labels, following=following)

    def _is_light(self, op: PredicateOp) -> bool:
        if op.operand is Operand.FIXED:
            return True
        field = self._field(op)
        if op.operand not in (Operand.NUMBER, Operand.RANGE) or op.count != 1 or field is None:
            return False
        if field.arg.type.is_string or field.arg.type.count:
            return False
        values = (op.value,) if op.operand is Operand.NUMBER else (op.value, op.end)
        fit = all(self._encoder.fits(value, op.size) for value in values)
        return fit and self._fetches.direct(field.arg) is not None

    def _test(self, op: PredicateOp, true: str, false: str, *, following: str) -> None:
        if op.operand is Operand.FIXED:
            self._go(true if op.value else false, following)
        elif op.operand in (Operand.NUMBER, Operand.RANGE):
            if op.count != 1:
                raise NotCompilableError("a filter on an array")
            self._number(op, true, false, following)
        elif op.operand is Operand.CPU_SET:
            raise NotCompilableError("a filter on a set of CPUs")
        else:
            self._text(op, true, false, following)

    def _go(self, label: str, following: str) -> None:
        """To a label; what follows is fallen into."""
        if label != following:
            self._encoder.jump(label)

    def _branch(
        self, jump: Callable[[str, bool], None], true: str, false: str, following: str
    ) -> None:
        """To one of two labels; `jump` goes to a label if a test has an outcome."""
        if true == following:
            jump(false, False)
        else:
            jump(true, True)
            self._go(false, following)

    # -- numbers --------------------------------------------------------------------------

    def _number(self, op: PredicateOp, true: str, false: str, following: str) -> None:
        """Compare a number, or see whether it lies in a range; go to one of two labels."""
        register, end = self._operand(op), 1 << 8 * op.size
        signed = op.signed and op.compare not in _EQUALITY
        if op.operand is Operand.NUMBER:
            value = op.value & end - 1
            if signed and value >= end >> 1:
                value -= end
            jump = self._comparison(op.compare, register, value, op.size, signed)
            self._branch(jump, true, false, following)
            return
        low, high = (-end >> 1, end >> 1) if op.signed else (0, end)
        if op.value >= high or op.end <= max(low, op.value):
            self._go(false, following)
            return
        below = partial(self._comparison, Compare.LT, register, size=op.size, signed=op.signed)
        if op.value > low:
            below(op.value)(false, True)
        if op.end >= high:
            self._go(true, following)
            return
        self._branch(below(op.end), true, false, following)

    def _comparison(
        self, compare: Compare, register: int, value: int, size: int, signed: bool
    ) -> Callable[[str, bool], None]:
        what = NumberTest(compare, register, value, size, signed)

        def jump(label: str, outcome: bool) -> None:
            encoder = self._encoder
            encoder.jump_if(what, label, outcome=outcome, spare=encoder.registers.row)

        return jump

    def _operand(self, op: PredicateOp) -> int:
        """The register that holds a number."""
        encoder, fetches = self._encoder, self._fetches
        field, value = self._field(op), encoder.registers.value
        if field is not None:
            arg = _scalar(field)
            register = fetches.direct(arg)
            if register is not None:
                return register
            fetches.value(arg, self.one)
        elif (op.offset, op.size) == THREAD:
            encoder.read(value, fetches.places.thread + 4, 4)
        elif (op.offset, op.size) == ADDRESS:
            encoder.constant(value, self.one.address)
        else:
            raise NotCompilableError("a filter on what is no field of the event")
        return value

    def _field(self, op: PredicateOp) -> RecordField | None:
        """The field of the event that is compared."""
        return next((f for f in self.one.layout.fields if f.word * 8 == op.offset), None)

    # -- strings --------------------------------------------------------------------------

    def _text(self, op: PredicateOp, true: str, false: str, following: str) -> None:
        """Compare a string from its beginning on; go to one of two labels."""
        encoder, wanted, arg = self._encoder, _wanted(op), self._string(op)
        value, row, offset = encoder.registers.value, encoder.registers.row, 0
        if arg is None:
            encoder.constant(value, self._fetches.places.comm)
        else:
            offset = encoder.reach(value, self._fetches.address(arg, self.one))
        at = 0

        def jump(label: str, equal: bool) -> None:
            encoder.jump_if_bytes(value, offset + at, piece, label, equal=equal, spare=row)

        while True:
            left = len(wanted) - at
            size = next(size for size in encoder.pieces if size <= left)
            piece = wanted[at : at + size]
            if size == left:
                break
            jump(false, False)
            at += size
        self._branch(jump, true, false, following)

    def _string(self, op: PredicateOp) -> FetchArg | None:
        """The argument of a field that is compared as a string; None is the thread's name.

        Raises:
            NotCompilableError: it is an array or an immediate string.
        """
        field = self._field(op)
        named = field is not None and field.arg.base.source is Source.COMM
        if op.operand is Operand.COMM or (op.operand is Operand.STRING and named):
            return None
        if field is None or op.operand is not Operand.STRING or field.arg.type.count:
            raise NotCompilableError("a filter on an array")
        if not field.arg.type.is_string or field.arg.base.source is Source.TEXT:
            raise NotCompilableError("a filter on an immediate string")
        return field.arg


def _scalar(field: RecordField) -> FetchArg:
    """The argument of a field that is compared as a number.

    Raises:
        NotCompilableError: it is none.
    """
    arg = field.arg
    if arg.type.is_string or arg.type.count or arg.base.source is Source.COMM:
        raise NotCompilableError("a filter on a string or an array as a number")
    return arg


def _wanted(op: PredicateOp) -> bytes:
    """The bytes that a string begins with, its end included where all of it is compared.

    Only such comparisons stand in the row's code: a string may fault behind its end.

    Raises:
        NotCompilableError: it is searched in, or compared with more than a name has.
    """
    if op.match not in (Match.FULL, Match.FRONT) or not op.pattern:
        raise NotCompilableError("a filter that searches in a string")
    wanted = op.pattern + (b"\0" if op.match is Match.FULL else b"")
    if op.operand is Operand.COMM and len(wanted) > COMM_BYTES:
        raise NotCompilableError("a filter on a longer name than there is")
    return wanted
