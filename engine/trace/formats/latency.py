"""Latencies of functions, entry to return: percentiles and a histogram for each.

The histograms are those of bcc's funclatency (print_log2_hist of src/python/bcc/table.py); times
are ticks of the guest's clock, which counts blocks. They are the durations that function_graph
shows. A call that is left without a return, or still open at the end, has none and is counted.
"""

import json
import struct
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath
from typing import Any, ClassVar, Final, TypeAlias, cast

from msgspec import Struct, field

from engine.arch.program import EVENT_MOST, THREAD_MOST
from engine.escaping import escaped
from engine.trace.formats.base import ByProgram, Names
from engine.trace.formats.graph import chosen
from engine.trace.formats.values import function_name
from engine.trace.graph import is_entry, is_exit
from engine.trace.rows import HEAD, EventTable, whole

OPTIONS: Final = {"json": False, "threads": False}
"""Options of the report and whether they are on at first."""
PERCENTILES: Final = (("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999))
"""Their names, and how many of a thousand calls take no longer."""
DISTINCT: Final = 1 << 16
"""Durations of a function that are told apart; of more, each is known to a thousandth."""
_DIGITS: Final = 10
"""Bits behind the first one that are kept of a duration then."""
_CALL: Final = struct.Struct("<16xQ").unpack_from
_RETURN: Final = struct.Struct("<8xQQ16xQQ").unpack_from
"""Time, function, time of the call, left."""
_NONE, _ENTRY, _EXIT = range(3)
_STARS: Final = ((32, 10, 40), (64, 20, 20))
"""Of histograms up to so many rows: columns of a number and stars (bcc's)."""
_Function: TypeAlias = tuple[str, str]
"""File that it is in, name."""


class Latencies(Struct):
    """The calls of a function.

    Attributes:
        calls: that began.
        left: of those, calls that were left by a jump or an exception.
        total: ticks from entry to return of those that returned.
        shortest: of them.
        longest: likewise.
        durations: how many took how long.
        rounded: there were more durations than are told apart.
    """

    calls: int = 0
    left: int = 0
    total: int = 0
    shortest: int = 0
    longest: int = 0
    durations: Counter[int] = field(default_factory=Counter)
    rounded: bool = False

    @property
    def returned(self) -> int:
        """Calls that returned."""
        return self.durations.total()

    @property
    def mean(self) -> float:
        """Ticks of a call that returned."""
        return self.total / max(self.returned, 1)

    def add(self, ticks: int) -> None:
        """A call has returned."""
        if not self.durations or ticks < self.shortest:
            self.shortest = ticks
        self.longest = max(self.longest, ticks)
        self.total += ticks
        self.durations[_rounded(ticks) if self.rounded else ticks] += 1
        if len(self.durations) > DISTINCT and not self.rounded:
            self.rounded, exact = True, self.durations
            self.durations = Counter()
            for each, count in exact.items():
                self.durations[_rounded(each)] += count

    def percentiles(self) -> dict[str, int]:
        """The least number of ticks that so many of the calls do not exceed (nearest rank)."""
        found: dict[str, int] = {}
        count, passed = self.returned, 0
        waiting = list(PERCENTILES)
        for ticks in sorted(self.durations):
            passed += self.durations[ticks]
            while waiting and passed * 1000 >= count * waiting[0][1]:
                found[waiting.pop(0)[0]] = min(ticks, self.longest)
        return found

    def histogram(self) -> list[tuple[int, int, int]]:
        """(lowest, highest, count) of each power of two up to the last that has a call."""
        slots: Counter[int] = Counter()
        for ticks, count in self.durations.items():
            slots[max(ticks.bit_length(), 1)] += count
        return [
            (1 << slot - 1 if slot > 1 else 0, (1 << slot) - 1, slots[slot])
            for slot in range(1, max(slots, default=0) + 1)
        ]


class LatencyFormat:
    """The report; everything comes at the end."""

    name: ClassVar[str] = "latency"
    wants_stacks: ClassVar[bool] = False
    is_text: ClassVar[bool] = True
    event_most: ClassVar[int] = EVENT_MOST

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table.

        Raises:
            CommandError: there is no such option.
        """
        self._events = events
        self._names = names
        self._on = chosen(OPTIONS, options)
        self._lost = 0
        self._kinds: dict[int, int] = {}
        self._found: dict[tuple[int, str, _Function], Latencies] = {}
        """By thread (0 for all), its name, function."""
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
            kind = self._kinds.get(event_id)
            if kind is None:
                info = self._events[event_id]
                kind = _ENTRY if is_entry(info) else _EXIT if is_exit(info) else _NONE
                self._kinds[event_id] = kind
            if kind == _ENTRY:
                self._of(thread, _CALL(data, position)[0]).calls += 1
            elif kind == _EXIT:
                time, function, began, left = _RETURN(data, position)
                one = self._of(thread, function)
                if left & 0xFF:
                    one.left += 1
                else:
                    one.add(time - began)
            position += words * 8
        return b""

    def _of(self, thread: int, address: int) -> Latencies:
        function = self._functions.get(address)
        if function is None:
            symbol, file = self._names.symbol(address), self._names.file(address)
            path = "" if file is None else file.name or file.path
            name = escaped(function_name(symbol))
            function = self._functions[address] = escaped(PurePosixPath(path).name), name
        key = (0, "", function)
        if self._on["threads"]:
            comm = self._names.comm(thread)
            key = thread, "?" if comm is None else escaped(comm), function
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = Latencies()
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

    def _sorted(self) -> list[tuple[tuple[int, str, _Function], Latencies]]:
        return sorted(self._found.items(), key=lambda item: (-item[1].total, item[0]))

    def _plain(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "kind": "latency",
            "unit": "blocks",
            "lost": self._lost,
            "functions": [
                {
                    "function": function,
                    "object": file,
                    **({"thread": thread, "name": comm} if self._on["threads"] else {}),
                    "calls": one.calls,
                    "count": one.returned,
                    "left": one.left,
                    "open": _open(one),
                    "total": one.total,
                    "mean": one.mean,
                    "min": one.shortest,
                    **(one.percentiles() or dict.fromkeys(name for name, _ in PERCENTILES)),
                    "max": one.longest,
                    "rounded": one.rounded,
                    "histogram": [
                        {"low": low, "high": high, "count": count}
                        for low, high, count in one.histogram()
                    ],
                }
                for (thread, comm, (file, function)), one in self._sorted()
            ],
        }

    def _lines(self) -> Iterator[str]:
        yield "# entry to return, in blocks of the guest's clock"
        if self._lost:
            yield f"# {self._lost} events lost"
        yield "#"
        titles = ("total", "mean", *(name for name, _ in PERCENTILES), "max")
        yield f"#{'count':>8} {' '.join(f'{title:>8}' for title in titles)}  function"
        items = self._sorted()
        for key, one in items:
            figures = [str(one.total), f"{one.mean:.1f}"]
            found = one.percentiles()
            figures += [str(found[name]) if found else "-" for name, _ in PERCENTILES]
            figures.append(str(one.longest))
            row = " ".join(f"{figure:>8}" for figure in figures)
            yield f" {one.returned:>8} {row}  {_title(key)}"
        for key, one in items:
            yield ""
            yield f"Function = {_title(key)}"
            yield from _drawn(one)
            yield from _told(one)

    def renamed(self, thread_id: int) -> None:
        """The next call asks for the name anyway."""

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        self._functions = self._programs.symbols(number)

    def state(self) -> object:
        """All counts, as plain data."""
        return [
            self._lost,
            [
                [
                    *key[:2],
                    *key[2],
                    [one.calls, one.left, one.total, one.shortest, one.longest],
                    one.rounded,
                    list(one.durations.items()),
                ]
                for key, one in self._found.items()
            ],
        ]

    def restore(self, state: object) -> None:
        """Go on counting."""
        lost, found = cast("Any", state)
        self._lost, self._found = int(lost), {}
        for thread, comm, file, function, numbers, rounded, durations in found:
            made = Counter({int(ticks): int(count) for ticks, count in durations})
            key = int(thread), str(comm), (str(file), str(function))
            calls, left, total, shortest, longest = map(int, numbers)
            self._found[key] = Latencies(
                calls, left, total, shortest, longest, made, bool(rounded)
            )


def _rounded(ticks: int) -> int:
    """A duration with its first bits alone, the others set: no less than it was."""
    rest = max(ticks.bit_length() - 1 - _DIGITS, 0)
    return ticks | (1 << rest) - 1


def _open(one: Latencies) -> int:
    """Calls that go on at the end, as far as is known: their begin may be lost."""
    return max(one.calls - one.left - one.returned, 0)


def _title(key: tuple[int, str, _Function]) -> str:
    thread, comm, (_, function) = key
    return f"{function} [{comm}-{thread}]" if thread else function


def _drawn(one: Latencies) -> Iterator[str]:
    """The histogram."""
    rows = one.histogram()
    if not rows:
        return
    width, stars = next(shape for most, *shape in _STARS if len(rows) <= most)
    most = max(count for _, _, count in rows)
    pad = " " * (width // 2)
    yield f"{pad}{'blocks':<{width * 2 - 1}} : count     distribution"
    for low, high, count in rows:
        line = "*" * (count * stars // most)
        yield f"{low:>{width}} -> {high:<{width}} : {count:<8} |{line:<{stars}}|"


def _told(one: Latencies) -> Iterator[str]:
    """The figures behind it."""
    if one.returned:
        yield f"avg = {one.mean:.1f} blocks, total: {one.total} blocks, count: {one.returned}"
        figures = ", ".join(f"{name} {ticks}" for name, ticks in one.percentiles().items())
        sign = ", percentiles to a thousandth" if one.rounded else ""
        yield f"min {one.shortest}, {figures}, max {one.longest}{sign}"
    parts = [f"{one.left} left by a jump or an exception"] if one.left else []
    parts += [f"{_open(one)} open at the end"] if _open(one) else []
    if parts:
        yield f"without a return: {', '.join(parts)}"
