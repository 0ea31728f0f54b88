"""The filter of the event log: a condition typed by the user, compiled.

What these short forms do not cover is read as one of the kernel's event filters, with
parentheses, `!`, `&` and the rest:

`n<4`, `name==malloc`, `mall*`, `path~"*.so" && fd!=-1`, `n<4 || ret==0`. A word alone is a
pattern for the event's name. Fields are an event's arguments and `name`, `group`, `time`,
`pid` of the process, `tid` (`common_pid`) and `comm` of the thread, `cpu`, `address`. An event
without the field does not match.
"""

import operator
import re
import shlex
import struct
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct, field

from engine.errors import CommandError, ProbeSyntaxError
from engine.session.protocol.rows import (
    Event,
    EventInfo,
    EventTable,
    Names,
    Value,
    compile_row_filter,
    decode,
)


class FilterError(CommandError):
    """A filter is not understood.

    Attributes:
        column: where in the text, from 0.
    """

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.column = column


Tester: TypeAlias = Callable[[bytes, int], bool]
"""True if the row at a position matches."""


class EventFilter(Protocol):
    """A filter as the event log needs it."""

    text: str

    def tester(self, info: EventInfo) -> "bool | Tester":
        """True if all rows of an event match, False if none does, else a test of one row."""


_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "~": lambda value, pattern: fnmatchcase(str(value), pattern),
}
_TERM: Final = re.compile(r"\s*([\w$%.*?\[\]-]+?)\s*(?:(==|!=|<=|>=|<|>|~|=)\s*(.*?))?\s*")
_OF_EVENT: Final = ("name", "group")
_OF_ROW: Final[dict[str, Callable[[Event, Names], Value]]] = {
    "time": lambda event, names: event.time,
    "address": lambda event, names: event.address,
    **dict.fromkeys(("tid", "common_pid"), lambda event, names: event.thread_id),
    "pid": lambda event, names: names.process(event.thread_id),
    **dict.fromkeys(("comm", "COMM"), lambda event, names: names.comm(event.thread_id)),
    **dict.fromkeys(("cpu", "CPU"), lambda event, names: 0),
}


class _Term(Struct, frozen=True):
    """One comparison; `number` is None where the value is text only."""

    name: str
    compare: Callable[[Any, Any], bool]
    text: str
    number: int | None

    def holds(self, value: Value) -> bool:
        if isinstance(value, tuple):
            return any(self.holds(each) for each in value)
        if value is None:
            return False
        if isinstance(value, bytes):
            return self.compare(value.decode(errors="backslashreplace"), self.text)
        if self.number is None or self.compare is _OPERATORS["~"]:
            return self.compare(str(value), self.text)
        return self.compare(value, self.number)

    def column(self, info: EventInfo) -> int | None:
        names = [column.name for column in info.columns]
        return names.index(self.name) if self.name in names else None


class _Filter(Struct):
    """Alternatives, each a list of terms that must all hold."""

    text: str
    alternatives: list[list[_Term]]
    events: EventTable
    names: Names
    _columns: dict[tuple[int, str], int | None] = field(default_factory=dict)

    def applies(self, info: EventInfo) -> bool | None:
        some = [self._applies(terms, info) for terms in self.alternatives]
        return True if True in some else None if None in some else False

    def tester(self, info: EventInfo) -> bool | Tester:
        """All rows of an event, none, or one by one; as few bytes as can be are looked at."""
        verdict = self.applies(info)
        if verdict is not None:
            return verdict
        alive = [terms for terms in self.alternatives if self._applies(terms, info) is None]
        if len(alive) == 1:
            tests = [_raw(term, info) for term in alive[0] if term.name not in _OF_EVENT]
            if len(tests) == 1 and tests[0] is not None:
                return tests[0]
            known = [test for test in tests if test is not None]
            if len(known) == len(tests):
                return lambda data, position: all(test(data, position) for test in known)
        return lambda data, position: self(decode(self.events, data, position))

    def _applies(self, terms: list[_Term], info: EventInfo) -> bool | None:
        sure = True
        for term in terms:
            if term.column(info) is not None or term.name in _OF_ROW:
                sure = False
            elif term.name not in _OF_EVENT or not term.holds(getattr(info, term.name).encode()):
                return False
        return True if sure else None

    def __call__(self, event: Event) -> bool:
        return any(all(self._holds(term, event) for term in terms) for terms in self.alternatives)

    def _holds(self, term: _Term, event: Event) -> bool:
        key = (event.id, term.name)
        if key not in self._columns:
            self._columns[key] = term.column(self.events[event.id])
        column = self._columns[key]
        if column is not None:
            return term.holds(event.values[column])
        if term.name in _OF_EVENT:
            return term.holds(getattr(event, term.name).encode())
        if term.name in _OF_ROW:
            return term.holds(_OF_ROW[term.name](event, self.names))
        return False


def _raw(term: _Term, info: EventInfo) -> Tester | None:
    """The test of a term on the bytes of a row, None if there is no such short cut."""
    index = term.column(info)
    if index is None or term.number is None or term.compare is _OPERATORS["~"]:
        return None
    column = info.columns[index]
    if column.type.is_string or column.type.count:
        return None
    unpack = struct.Struct("<" + column.code).unpack_from
    compare, number, offset = term.compare, term.number, column.word * 8
    return lambda data, position: compare(unpack(data, position + offset)[0], number)


def compile_filter(text: str, events: EventTable, names: Names | None = None) -> EventFilter:
    """The filter that a text means, for the events of a table, which may still grow.

    Args:
        text: the filter as the user wrote it.
        events: the table.
        names: know threads.

    Raises:
        FilterError: it means nothing.
    """
    known = names or Names()
    try:
        return _short(text, events, known)
    except FilterError as error:
        try:
            return compile_row_filter(text, known.comm, known.process)
        except ProbeSyntaxError as refused:
            if any(sign in text for sign in "()!&") and "&&" not in text:
                raise FilterError(refused.text, refused.column) from refused
            raise error from refused


def _short(text: str, events: EventTable, names: Names) -> EventFilter:
    """The filter of a short form."""
    alternatives: list[list[_Term]] = []
    start = 0
    for alternative in text.split("||"):
        terms: list[_Term] = []
        for part in alternative.split("&&"):
            terms.append(_term(part, start))
            start += len(part) + 2
        alternatives.append(terms)
    return _Filter(text.strip(), alternatives, events, names)


def _term(part: str, start: int) -> _Term:
    found = _TERM.fullmatch(part)
    if found is None:
        where = start + len(part) - len(part.lstrip())
        raise FilterError("expected FIELD OP VALUE or the name of an event", where)
    name, sign, value = found.groups()
    if sign is None:
        return _Term("name", _OPERATORS["~"], name, None)
    if not value:
        raise FilterError("a value is missing", start + len(part.rstrip()))
    try:
        words = shlex.split(value)
    except ValueError as error:
        raise FilterError("a quote is not closed", start + found.start(3)) from error
    if len(words) != 1:
        raise FilterError("one value is enough", start + found.start(3))
    compare = _OPERATORS["==" if sign == "=" else sign]
    number = _number(words[0])
    if sign in ("<", ">", "<=", ">=") and number is None:
        raise FilterError("expected a number", start + found.start(3))
    return _Term(name, compare, words[0], number)


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None
