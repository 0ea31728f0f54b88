"""One filter for the rows of all events, in the language of `filter`: for logs and searches.

Beside an event's own fields there are `name` and `group` (strings), `time`, `pid` of the process,
`tid` of the thread, and `address`.
A term with a field that an event does not have is false for it.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from engine.arch.program import Operand, PredicateOp
from engine.fetch.predicate import (
    PredicateContext,
    RowTest,
    compile_predicate,
    matches,
    own_process,
)
from engine.trace.fields import Field, FieldKind
from engine.trace.filter import parse_filter
from engine.trace.filterterms import FilterMachine
from engine.trace.rows import EventInfo

_NAME, _GROUP = -2, -3
"""Places of fields that no row has: they are the event's."""

_MORE: Final = {
    "name": Field("name", "char *", 0, 0, False, FieldKind.STRING, row=_NAME),
    "group": Field("group", "char *", 0, 0, False, FieldKind.STRING, row=_GROUP),
    "time": Field("time", "u64", 0, 8, False, row=8),
    "pid": Field("pid", "int", 0, 4, True, FieldKind.PROCESS, row=4),
    "tid": Field("tid", "int", 0, 4, True, row=4),
    "address": Field("address", "u64", 0, 8, False, row=16),
}
ANY: Final = EventInfo(1, "g", "e", ())
"""An event without arguments: what is wrong with a filter for it is wrong for all."""


def _nobody(thread_id: int) -> bytes | None:
    return None


class CompiledFilter(Struct):
    """A filter compiled for each event once.

    Attributes:
        text: as it was typed.
    """

    text: str
    _context: PredicateContext
    _tests: dict[EventInfo, bool | RowTest] = field(default_factory=dict)

    def tester(self, info: EventInfo) -> bool | RowTest:
        """True if rows of an event match: all, none, or what tells for the row at a position."""
        found = self._tests.get(info)
        if found is None:
            found = self._tests[info] = self._compiled(info)
        return found

    def _compiled(self, info: EventInfo) -> bool | RowTest:
        ops = tuple(_known(op, info) for op in _parse(self.text, info))
        if all(op.operand is Operand.FIXED for op in ops):
            return compile_predicate(ops)(b"", 0)
        return compile_predicate(ops, self._context)


def compile_filter(
    text: str,
    comm: Callable[[int], bytes | None] = _nobody,
    process: Callable[[int], int] = own_process,
) -> CompiledFilter:
    """The filter that a text means for events of any kind.

    Args:
        text: the filter, in the kernel's language.
        comm: a thread's name by its id.
        process: the process of a thread, by their ids.

    Raises:
        FilterSyntaxError: it means nothing, whatever the event; `column` is where.
    """
    _parse(text, ANY)
    return CompiledFilter(text.strip(), PredicateContext(comm, process=process))


def _parse(text: str, info: EventInfo) -> tuple[PredicateOp, ...]:
    machine = FilterMachine(unknown_fields=True, more_fields=_MORE)
    return parse_filter(text, info, machine).ops


def _known(op: PredicateOp, info: EventInfo) -> PredicateOp:
    """A term about the event's names, decided."""
    if op.operand is not Operand.STRING or op.offset not in (_NAME, _GROUP):
        return op
    name = info.name if op.offset == _NAME else info.group
    value = name.encode(errors="surrogateescape") + b"\0"
    outcome = matches(op, value)
    return PredicateOp(Operand.FIXED, value=int(outcome), when=op.when, target=op.target)
