"""A report of samples: shares of a run by function, alone and with all that it calls.

The columns are those of `perf report --children`; a thread is a line of a table of its own.
Counts are of ticks: samples times their period.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath
from typing import Any, ClassVar, Final, TypeAlias, cast

from engine.arch.program import EVENT_MOST, THREAD_MOST
from engine.escaping import escaped
from engine.trace.formats.base import ByProgram, Names
from engine.trace.formats.graph import chosen
from engine.trace.formats.values import frames, function_name
from engine.trace.rows import HEAD, EventSource, EventTable, decode, whole
from engine.trace.sample import is_sample

OPTIONS: Final = {"json": False, "threads": False}
"""Options of the report and whether they are on at first."""
_UNKNOWN: Final = "?"
_Function: TypeAlias = tuple[str, str]
"""File that it is in, name."""


class SamplesFormat:
    """The report; everything comes at the end."""

    name: ClassVar[str] = "samples"
    wants_stacks: ClassVar[bool] = True
    is_text: ClassVar[bool] = True
    event_most: ClassVar[int] = EVENT_MOST

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table, of which samples count alone.

        Raises:
            CommandError: there is no such option.
        """
        self._events = events
        self._names = names
        self._on = chosen(OPTIONS, options)
        self._samples = self._ticks = self._lost = self._weight = 0
        self._own: Counter[tuple[int, str, _Function]] = Counter()
        """Ticks by thread (0 for all of a name), name, function."""
        self._total: Counter[tuple[int, str, _Function]] = Counter()
        self._threads: Counter[tuple[int, int, str]] = Counter()
        """Ticks by process, thread, name."""
        self._programs: ByProgram[_Function] = ByProgram()
        self._functions = self._programs.symbols(0)

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """Nothing."""
        return b""

    def rows(self, data: bytes) -> bytes:
        """Nothing yet."""
        position, end = 0, len(data)
        while position < end:
            event_id, words, thread = HEAD.unpack_from(data, position)
            if thread > THREAD_MOST:
                event_id, thread = whole(event_id, thread)
            info = self._events[event_id]
            if is_sample(info):
                self._weight = cast("int", decode(self._events, data, position).values[0])
            elif info.source is EventSource.STACK and self._weight:
                self._count(thread, frames(info, data, position))
                self._weight = 0
            position += words * 8
        return b""

    def _count(self, thread: int, stack: tuple[int, ...]) -> None:
        ticks = self._weight
        found = self._names.comm(thread)
        comm = _UNKNOWN if found is None else escaped(found)
        self._samples += 1
        self._ticks += ticks
        self._threads[self._names.process(thread), thread, comm] += ticks
        one = thread if self._on["threads"] else 0
        functions = [self._function(pc, index > 0) for index, pc in enumerate(stack)]
        for each in functions[:1]:
            self._own[one, comm, each] += ticks
        for each in dict.fromkeys(functions):
            self._total[one, comm, each] += ticks

    def _function(self, pc: int, calls: bool) -> _Function:
        """The function of an address; a return address belongs to the call before it."""
        place = pc - calls
        found = self._functions.get(place)
        if found is None:
            symbol, file = self._names.symbol(place), self._names.file(place)
            name = function_name(symbol) if symbol != f"{place:#x}" else f"{pc:#x}"
            path = "" if file is None else file.name or file.path
            found = escaped(PurePosixPath(path).name or _UNKNOWN), escaped(name)
            self._functions[place] = found
        return found

    def lost(self, count: int) -> bytes:
        """The head will say how many."""
        self._lost += count
        return b""

    def end(self) -> bytes:
        """The report."""
        if self._on["json"]:
            return json.dumps(self._plain(), indent=1).encode() + b"\n"
        return "".join(f"{line}\n" for line in self._lines()).encode()

    def _sorted(self) -> list[tuple[int, str, _Function]]:
        return sorted(self._total, key=lambda key: (-self._own[key], -self._total[key], key))

    def _plain(self) -> dict[str, Any]:
        """The report as plain data."""
        names = ("process", "thread", "name")
        return {
            "kind": "samples",
            "unit": "blocks",
            "samples": self._samples,
            "total": self._ticks,
            "lost": self._lost,
            "functions": [
                {
                    "function": key[2][1],
                    "object": key[2][0],
                    "name": key[1],
                    **({"thread": key[0]} if self._on["threads"] else {}),
                    "self": self._own[key],
                    "total": self._total[key],
                }
                for key in self._sorted()
            ],
            "threads": [
                {**dict(zip(names, key, strict=True)), "self": ticks}
                for key, ticks in sorted(self._threads.items())
            ],
        }

    def _lines(self) -> Iterator[str]:
        processes = len({process for process, _, _ in self._threads})
        yield (
            f"# {_many(self._samples, 'sample')} of {_many(self._ticks, 'block')}, in "
            f"{_many(len({thread for _, thread, _ in self._threads}), 'thread')} of "
            f"{_many(processes, 'process', 'processes')}"
        )
        if self._lost:
            yield f"# {_many(self._lost, 'event')} lost"
        yield "#"
        keys = self._sorted()
        all_ticks = max(self._ticks, 1)
        rows = [("process", "file", "function")]
        rows += [(self._title(key), *key[2]) for key in keys]
        wide, files = (max(len(row[at]) for row in rows) for at in (0, 1))
        heads = f"#  {'self':>6}   {'total':>6}  {'blocks':>10} "
        lines = [heads] + [
            f"  {100 * self._own[key] / all_ticks:6.2f}%  "
            f"{100 * self._total[key] / all_ticks:6.2f}% {self._own[key]:>11} "
            for key in keys
        ]
        for line, (title, file, function) in zip(lines, rows, strict=True):
            yield f"{line} {title:<{wide}}  {file:<{files}}  {function}"
        if len(self._threads) > 1:
            yield "#"
            yield f"#  {'share':>6}  {'blocks':>11}  {'process':>7}  {'thread':>7}  name"
            for (process, thread, name), ticks in sorted(self._threads.items()):
                share = f"  {100 * ticks / all_ticks:6.2f}% {ticks:>11}"
                yield f"{share}  {process:>7}  {thread:>7}  {name}"

    def _title(self, key: tuple[int, str, _Function]) -> str:
        return f"{key[1]}-{key[0]}" if key[0] else key[1]

    def renamed(self, thread_id: int) -> None:
        """The next sample asks for the name anyway."""

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        self._functions = self._programs.symbols(number)

    def state(self) -> object:
        """All counts, as plain data."""
        return [
            [self._samples, self._ticks, self._lost, self._weight],
            [[*key[:2], *key[2], self._own[key], n] for key, n in self._total.items()],
            [[*key, n] for key, n in self._threads.items()],
        ]

    def restore(self, state: object) -> None:
        """Go on counting."""
        numbers, functions, threads = cast("Any", state)
        self._samples, self._ticks, self._lost, self._weight = map(int, numbers)
        self._own, self._total, self._threads = Counter(), Counter(), Counter()
        for thread, comm, file, name, own, total in functions:
            key = int(thread), str(comm), (str(file), str(name))
            self._own[key], self._total[key] = int(own), int(total)
        for process, thread, comm, ticks in threads:
            self._threads[int(process), int(thread), str(comm)] = int(ticks)


def _many(count: int, what: str, many: str = "") -> str:
    return f"{count} {what}" if count == 1 else f"{count} {many or what + 's'}"
