"""The report of a function graph: functions with their times and calls, as `uftrace report`.

Everything comes at the end. Options are words that `GraphRequest.report` has: `sort=KEYS`,
`fields=FIELDS`, `average=total|self`, `policy=WORDS`, `column=N`, `unit=UNIT`, `demangle=STYLE`,
`tasks`, `json`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, cast

import msgspec
from msgspec import Struct

from engine.arch.program import EVENT_MOST, THREAD_MOST
from engine.errors import CommandError
from engine.escaping import escaped
from engine.image.mangling import spellings
from engine.image.symtab import demangle
from engine.trace.finishedcalls import EndedCall, FinishedCalls, ThreadCalls
from engine.trace.formats.base import ByProgram, Names
from engine.trace.formats.values import function_name
from engine.trace.functiontimes import (
    FIELDS,
    DiffPolicy,
    FunctionTimes,
    ReportField,
    compared_order,
    fields_of,
    keys_of,
    ordered,
    plain_times,
    stored,
    times_of,
)
from engine.trace.rows import HEAD, EventTable, whole

_WIDTH: Final = 10
_NAME_LINE: Final = "=" * 20
_TASK_KEYS: Final = ("total", "self", "func", "tid", "name")
UNITS: Final = {
    "ticks": "ticks, blocks of the guest's own code",
    "ns": "nanoseconds since power-on",
}


class Baseline(Struct, frozen=True):
    """The report that another one is compared with.

    Attributes:
        path: of the file that it is from.
        functions: of it.
    """

    path: str
    functions: Mapping[str, FunctionTimes]


class _TaskTimes(Struct):
    """Times of a thread: those of its outermost calls, its own ones summed up, number of calls."""

    total: int = 0
    own: int = 0
    calls: int = 0


class ReportFormat:
    """Sums up calls by function, or by thread; everything comes at the end."""

    name: ClassVar[str] = "report"
    wants_stacks: ClassVar[bool] = False
    is_text: ClassVar[bool] = False
    event_most: ClassVar[int] = EVENT_MOST

    def __init__(
        self,
        events: EventTable,
        names: Names,
        options: Collection[str] = (),
        baseline: Baseline | None = None,
    ) -> None:
        """For the events of a table.

        Args:
            events: the event table.
            names: the namer.
            options: words; see the module.
            baseline: what the report is compared with, None for nothing.

        Raises:
            CommandError: there is no such field or sort key.
        """
        words = ReportWords.of(options)
        self._words = words
        self._baseline = baseline
        self._fields = fields_of(words.fields, words.average)
        self._task_keys: tuple[str, ...] = ()
        if words.tasks:
            self._task_keys = words.sort or ("total",)
            for key in self._task_keys:
                if key not in _TASK_KEYS:
                    known = ", ".join(_TASK_KEYS)
                    raise CommandError(f"--sort {key}: no such key of tasks; there is {known}")
            self._keys: tuple[str, ...] = ()
        else:
            self._keys = keys_of(words.sort, words.average)
        self._named = FunctionNames(names, words.demangle)
        self._names = names
        self._functions: dict[str, FunctionTimes] = {}
        self._tasks: dict[int, _TaskTimes] = {}
        self._comms: dict[int, str] = {}
        self._lost = 0
        self._calls = FinishedCalls(events, self._named.name, self._ended)
        self._events = events

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """Nothing."""
        return b""

    def rows(self, data: bytes) -> bytes:
        """Nothing yet."""
        take_rows(self._calls, data)
        return b""

    def lost(self, count: int) -> bytes:
        """A line at the end will say how many."""
        self._lost += count
        return b""

    def end(self) -> bytes:
        """The report."""
        self._calls.finish()
        for name, one in self._functions.items():
            one.size = self._named.sizes.get(name, 0)
        unit = self._words.unit
        if self._words.json:
            if self._words.tasks:
                out = _as_json({"unit": unit, "tasks": list(self._plain_tasks())})
            elif self._baseline is not None:
                out = _as_json(self._plain_comparison(self._baseline))
            else:
                order = ordered(self._functions, self._keys)
                out = stored(self._functions, order, unit)
        else:
            out = ("\n".join(self._lines()) + "\n").encode(errors="backslashreplace")
        self._functions.clear()
        self._tasks.clear()
        self._lost = 0
        return out

    def renamed(self, thread_id: int) -> None:
        """A thread goes by its newest name, which is asked for at its calls."""
        self._comms.pop(thread_id, None)

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        self._named.program(number)

    def state(self) -> object:
        """All that was counted, and calls that are open."""
        return [
            plain_times(self._functions),
            [[tid, one.total, one.own, one.calls] for tid, one in self._tasks.items()],
            list(self._comms.items()),
            dict(self._named.sizes),
            self._lost,
            self._calls.state(),
        ]

    def restore(self, state: object) -> None:
        """Go on counting."""
        functions, tasks, comms, sizes, lost, calls = cast("Any", state)
        self._functions = times_of(functions)
        self._tasks = {int(tid): _TaskTimes(*map(int, numbers)) for tid, *numbers in tasks}
        self._comms = {int(tid): str(comm) for tid, comm in comms}
        self._named.sizes = {str(name): int(size) for name, size in sizes.items()}
        self._lost = int(lost)
        self._calls.restore(calls)

    def _ended(self, thread: int, ended: EndedCall, around: ThreadCalls) -> None:
        name = ended.call.name
        found = self._functions.get(name)
        if found is None:
            found = self._functions[name] = FunctionTimes()
        found.add(ended)
        task = self._tasks.get(thread)
        if task is None:
            task = self._tasks[thread] = _TaskTimes()
        if thread not in self._comms:
            comm = self._names.comm(thread)
            self._comms[thread] = "?" if comm is None else escaped(comm)
        task.calls += 1
        task.own += ended.own
        if not around.calls:
            task.total += ended.total

    # -- text -----------------------------------------------------------------------------

    def _lines(self) -> Iterator[str]:
        if self._lost:
            yield f"# {self._lost} events lost: times and calls are those of the others"
        yield f"# times in {UNITS.get(self._words.unit, self._words.unit)}"
        if self._words.tasks:
            yield from self._task_lines()
        elif self._baseline is not None:
            yield from self._compared_lines(self._baseline)
        else:
            yield from self._function_lines()

    def _function_lines(self) -> Iterator[str]:
        columns = [FIELDS[name] for name in self._fields]
        order = ordered(self._functions, self._keys)
        cells = [
            [_cell(name, column.value(self._functions[one])) for name, column in self._columns()]
            for one in order
        ]
        yield from _table([column.title for column in columns], "Function", cells, order)

    def _columns(self) -> list[tuple[str, ReportField]]:
        return [(name, FIELDS[name]) for name in self._fields]

    def _task_lines(self) -> Iterator[str]:
        order = self._task_order()
        found = [self._tasks[tid] for tid in order]
        cells = [
            [str(one.total), str(one.own), str(tid), str(one.calls)]
            for tid, one in zip(order, found, strict=True)
        ]
        comms = [self._comms[tid] for tid in order]
        titles = ["Total time", "Self time", "TID", "Num funcs"]
        yield from _table(titles, "Task name", cells, comms)

    def _task_order(self) -> list[int]:
        order = sorted(self._tasks)
        for key in reversed(self._task_keys):
            if key == "name":
                order.sort(key=lambda tid: self._comms[tid])
            elif key == "tid":
                order.sort()
            elif key == "func":
                order.sort(key=lambda tid: -self._tasks[tid].calls)
            elif key == "self":
                order.sort(key=lambda tid: -self._tasks[tid].own)
            else:
                order.sort(key=lambda tid: -self._tasks[tid].total)
        return order

    def _plain_tasks(self) -> Iterator[dict[str, object]]:
        for tid in self._task_order():
            one = self._tasks[tid]
            yield {
                "tid": tid,
                "name": self._comms[tid],
                "calls": one.calls,
                "total": one.total,
                "self": one.own,
            }

    def _plain_comparison(self, baseline: Baseline) -> dict[str, object]:
        policy = DiffPolicy.of(self._words.policy, self._words.column)
        before, after, none = self._functions, baseline.functions, FunctionTimes()
        found = []
        for one in compared_order(before, after, self._keys, policy):
            values: dict[str, object] = {"name": one}
            for name, column in self._columns():
                pair = (column.value(each.get(one, none)) for each in (before, after))
                values[name.replace("-", "_")] = list(pair)
            found.append(values)
        return {"unit": self._words.unit, "diff": baseline.path, "functions": found}

    def _compared_lines(self, baseline: Baseline) -> Iterator[str]:
        policy = DiffPolicy.of(self._words.policy, self._words.column)
        yield "# difference: [1] - [0]" + (", in percent of [0]" if policy.percent else "")
        yield "#  [0] base: this run"
        yield f"#  [1] diff: {escaped(baseline.path)}"
        before, after, none = self._functions, baseline.functions, FunctionTimes()
        order = compared_order(before, after, self._keys, policy)
        cells = []
        for one in order:
            line = []
            for name, column in self._columns():
                old = column.value(before.get(one, none))
                new = column.value(after.get(one, none))
                if policy.full:
                    line += [_cell(name, old), _cell(name, new)]
                percent = policy.percent and column.is_time
                line.append(_percent(old, new) if percent else _signed(name, new - old))
            cells.append(line)
        sign = " (diff)" if policy.full else ""
        titles = [column.title + sign for _, column in self._columns()]
        yield from _table(titles, "Function", cells, order, each=3 if policy.full else 1)


class ReportWords(Struct, frozen=True):
    """The options of a report, by the words that stand for them."""

    sort: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    average: str = ""
    policy: tuple[str, ...] = ()
    column: int = 2
    unit: str = "ticks"
    tasks: bool = False
    json: bool = False
    demangle: str = "simple"
    callers: tuple[str, ...] = ()
    callees: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: Collection[str]) -> "ReportWords":
        """The options that words stand for; patterns may come several times.

        Raises:
            CommandError: there is no such word.
        """
        found: dict[str, Any] = {}
        for option in options:
            key, equals, value = option.partition("=")
            if key in ("tasks", "json"):
                found[key] = True
            elif key in ("callers", "callees"):
                found[key] = (*found.get(key, ()), value)
            elif key in ("sort", "fields", "policy") and equals:
                found[key] = tuple(filter(None, value.split(",")))
            elif key in ("average", "unit", "demangle"):
                found[key] = value
            elif key == "column" and value in ("0", "1", "2"):
                found[key] = int(value)
            else:
                raise CommandError(f"no option {option} of a report")
        return cls(**found)


class FunctionNames:
    """The names of functions in a report, by address and program.

    Attributes:
        sizes: bytes of functions by their names, as far as they are known.
    """

    def __init__(self, names: Names, style: str) -> None:
        """None yet.

        Args:
            names: the namer.
            style: "simple" for demangled names without types, "full" for whole ones, "no" for
                symbols as they are (uftrace's `--demangle`).
        """
        self._style = style
        self.sizes: dict[str, int] = {}
        self._names = names
        self._programs: ByProgram[str] = ByProgram()
        self._known = self._programs.symbols(0)

    def program(self, number: int) -> None:
        """The addresses from here on are of another program."""
        self._known = self._programs.symbols(number)

    def name(self, address: int) -> str:
        """The name of the function at an address."""
        found = self._known.get(address)
        if found is None:
            symbol = self._names.symbol(address)
            found = self._known[address] = escaped(self._styled(function_name(symbol)))
            _, slash, size = symbol.rpartition("/0x")
            if slash:
                self.sizes[found] = int(size, 16)
        return found

    def _styled(self, symbol: str) -> str:
        plain = symbol if self._style == "no" else demangle(symbol)
        if plain == symbol or self._style == "full":
            return plain
        return min(spellings(plain), key=lambda name: (len(name), name))


def take_rows(calls: FinishedCalls, data: bytes) -> None:
    """Have rows followed; those that are no calls are passed over."""
    position, end = 0, len(data)
    while position < end:
        event_id, words, thread = HEAD.unpack_from(data, position)
        if thread > THREAD_MOST:
            event_id, thread = whole(event_id, thread)
        calls.take(event_id, thread, data, position)
        position += words * 8


def _as_json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value)) + b"\n"


def _cell(field: str, value: float) -> str:
    """A value: averages with two digits behind the point, all else whole."""
    if field.endswith("-stdv"):
        return f"{value:.2f}%"
    return f"{value:.2f}" if field.endswith("-avg") else str(round(value))


def _signed(field: str, change: float) -> str:
    """A difference with its sign."""
    if field.endswith("-stdv"):
        return f"{change:+.2f}%pt"
    return f"{change:+.2f}" if field.endswith("-avg") else f"{round(change):+d}"


def _percent(old: float, new: float) -> str:
    """A difference in percent; "N/A" where one of both has nothing, as print_diff_percent does."""
    if not old or not new:
        return "N/A" if old or new else "+0.00%"
    return f"{100 * (new - old) / old:+.2f}%"


def _table(
    titles: Sequence[str],
    last: str,
    cells: Sequence[Sequence[str]],
    names: Sequence[str],
    each: int = 1,
) -> Iterator[str]:
    """A table with its headings, numbers to the right and names at the end, as uftrace's.

    Args:
        titles: of the columns.
        last: the heading of names.
        cells: the numbers of each line.
        names: of the lines.
        each: numbers that stand below one title.
    """
    widths = [_WIDTH] * (len(titles) * each)
    for line in cells:
        widths = [max(width, len(cell)) for width, cell in zip(widths, line, strict=True)]
    if each == 1:
        widths = [max(width, len(title)) for width, title in zip(widths, titles, strict=True)]
    spans = [sum(widths[at : at + each]) + 2 * (each - 1) for at in range(0, len(widths), each)]

    def joined(parts: Sequence[str], sizes: Sequence[int], name: str) -> str:
        found = (part.rjust(size) for part, size in zip(parts, sizes, strict=True))
        return "".join(f"  {part}" for part in found) + f"  {name}"

    yield joined(titles, spans, last)
    yield joined(["=" * span for span in spans], spans, _NAME_LINE)
    for line, name in zip(cells, names, strict=True):
        yield joined(line, widths, name)
