"""What the filters of all architectures' recorders share: the tests' order, and their limits."""

from abc import ABC, abstractmethod
from typing import Final, Protocol

from engine.arch.program import FetchArg, Match, Operand, PredicateOp, RecordField, Source
from engine.arch.recording import COMM_BYTES, NotCompilableError, Recording

THREAD: Final = (4, 4)
ADDRESS: Final = (16, 8)
"""Offset and size of numbers in the head of a row."""


class Labels(Protocol):
    """Code that labels stand in."""

    def label(self, name: str, /) -> object:
        """What follows has this name."""


class FilterCode(ABC):
    """Emits the filter of one recording.

    Attributes:
        one: the recording.
        name: what its labels begin with.
    """

    def __init__(self, code: Labels, one: Recording, name: str) -> None:
        """The code that the filter is added to."""
        self._labels = code
        self.one = one
        self.name = name

    def emit(self, passed: str, failed: str) -> None:
        """All tests; the labels are where control goes. Rows that pass fall through to theirs.

        Raises:
            NotCompilableError: a test is left to the engine.
        """
        ops = self.one.filter
        ends = {len(ops): passed, len(ops) + 1: failed}
        for index, op in enumerate(ops):
            self._labels.label(f"{self.name}op{index}")
            true, false = index + 1, index + 1
            if op.when:
                true = op.target
            else:
                false = op.target
            labels = [ends.get(to, f"{self.name}op{to}") for to in (true, false)]
            if op.negate:
                labels.reverse()
            self._test(op, *labels, following=ends.get(index + 1, f"{self.name}op{index + 1}"))

    def _test(self, op: PredicateOp, true: str, false: str, *, following: str) -> None:
        if op.operand is Operand.FIXED:
            self.go(true if op.value else false, following)
        elif op.operand in (Operand.NUMBER, Operand.RANGE):
            if op.count != 1:
                raise NotCompilableError("a filter on an array")
            self.number(op, true, false, following)
        elif op.operand is Operand.CPU_SET:
            raise NotCompilableError("a filter on a set of CPUs")
        else:
            self.text(op, true, false, following)

    def go(self, label: str, following: str) -> None:
        """To a label; what follows is fallen into."""
        if label != following:
            self.jump(label)

    @abstractmethod
    def jump(self, label: str) -> None:
        """Go to a label."""

    @abstractmethod
    def number(self, op: PredicateOp, true: str, false: str, following: str) -> None:
        """Compare a number, or see whether it lies in a range; go to one of two labels."""

    @abstractmethod
    def text(self, op: PredicateOp, true: str, false: str, following: str) -> None:
        """Compare a string from its beginning on; go to one of two labels."""

    def field(self, op: PredicateOp) -> RecordField | None:
        """The field of the event that is compared."""
        return next((f for f in self.one.layout.fields if f.word * 8 == op.offset), None)

    @staticmethod
    def scalar(field: RecordField) -> FetchArg:
        """The argument of a field that is compared as a number.

        Raises:
            NotCompilableError: it is none.
        """
        arg = field.arg
        if arg.type.is_string or arg.type.count or arg.base.source is Source.COMM:
            raise NotCompilableError("a filter on a string or an array as a number")
        return arg

    def wanted(self, op: PredicateOp) -> bytes:
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

    def string(self, op: PredicateOp) -> FetchArg | None:
        """The argument of a field that is compared as a string; None is the thread's name.

        Raises:
            NotCompilableError: it is an array or an immediate string.
        """
        field = self.field(op)
        named = field is not None and field.arg.base.source is Source.COMM
        if op.operand is Operand.COMM or (op.operand is Operand.STRING and named):
            return None
        if field is None or op.operand is not Operand.STRING or field.arg.type.count:
            raise NotCompilableError("a filter on an array")
        if not field.arg.type.is_string or field.arg.base.source is Source.TEXT:
            raise NotCompilableError("a filter on an immediate string")
        return field.arg
