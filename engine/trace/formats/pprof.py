"""pprof's profile: events counted by their call stacks, for `go tool pprof` and its kin.

A compressed message of github.com/google/pprof/proto/profile.proto, written at the end. A sample
is a call stack with the number of events that had it; its labels say which event, and in which
program. Functions have their source file and lines as far as debug information is there. Calls of
`graph` are samples with their number and the time that was spent in the innermost function itself;
the time is what is shown first, with `--weigh calls` the number.
"""

import zlib
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any, ClassVar, Final, cast

from engine.arch.program import EVENT_MOST, THREAD_MOST
from engine.escaping import escaped
from engine.trace.formats import WEIGH_CALLS
from engine.trace.formats.base import ByProgram, Names
from engine.trace.formats.callstacks import CallStacks
from engine.trace.formats.protobuf import data as blob
from engine.trace.formats.protobuf import number, varint
from engine.trace.formats.values import frames, function_name
from engine.trace.rows import HEAD, EventSource, EventTable, whole
from engine.trace.sample import is_sample, period

_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = 1, 2, 3, 4, 5, 6
_PERIOD_TYPE, _PERIOD, _COMMENT, _DEFAULT = 11, 12, 13, 14
_GZIP: Final = 16 + zlib.MAX_WBITS

_Stack = tuple[int, ...]
"""Strings that name event and program, then the locations, innermost first."""


class PprofFormat:
    """A profile; everything comes at the end."""

    name: ClassVar[str] = "pprof"
    wants_stacks: ClassVar[bool] = True
    is_text: ClassVar[bool] = False
    event_most: ClassVar[int] = EVENT_MOST

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table; of the options only `WEIGH_CALLS` means something."""
        self._events = events
        self._by_calls = WEIGH_CALLS in options
        self._names = names
        self._strings: dict[str, int] = {"": 0}
        self._counts: Counter[_Stack] = Counter()
        self._mappings: list[tuple[int, int, int, str, str]] = []
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[tuple[int, int, int, int], int] = {}
        """Mapping, address, function, line; all are numbered from 1."""
        self._programs: ByProgram[int] = ByProgram()
        self._places = self._programs.symbols(0)
        self._before = ""
        self._missing = self._period = 0
        self._sampled = False
        self._times: Counter[_Stack] = Counter()
        self._calls: CallStacks[_Stack] = CallStacks(events, self._grown, self._weigh)

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
            if info.source is EventSource.STACK:
                comm = self._names.comm(thread)
                program = self._string("?" if comm is None else escaped(comm))
                places = [
                    self._place(address, index > 0)
                    for index, address in enumerate(frames(info, data, position))
                ]
                key = self._string(self._before), program, *places
                self._counts[key] += 1
                self._times[key] += self._period
                self._sampled = self._sampled or self._period > 0
            elif not self._calls.take(event_id, thread, data, position):
                self._before = f"{info.group}:{info.name}"
                self._period = period(data, position) if is_sample(info) else 0
            position += words * 8
        return b""

    def lost(self, count: int) -> bytes:
        """A comment will say how many."""
        self._missing += count
        return b""

    def end(self) -> bytes:
        """The profile."""
        kind = number(1, self._string("events")) + number(2, self._string("count"))
        out = [blob(_SAMPLE_TYPE, kind)]
        timed = self._calls.is_timed or self._sampled
        if timed:
            time_kind = number(1, self._string("time")) + number(2, self._string("ticks"))
            out.append(blob(_SAMPLE_TYPE, time_kind))
        event, program = self._string("event"), self._string("comm")
        for stack, count in self._counts.items():
            name, comm, *places = stack
            values = (count, self._times[stack]) if timed else (count,)
            labels = blob(3, number(1, event) + number(2, name))
            labels += blob(3, number(1, program) + number(2, comm))
            out.append(blob(_SAMPLE, _packed(1, places) + _packed(2, values) + labels))
        for at, (start, limit, offset, path, build_id) in enumerate(self._mappings, 1):
            mapping = number(1, at) + number(2, start) + number(3, limit) + number(4, offset)
            mapping += number(5, self._string(path)) + number(6, self._string(build_id))
            out.append(blob(_MAPPING, mapping + number(7, 1) + number(8, 1) + number(9, 1)))
        for (mapping_at, address, function, line), at in self._locations.items():
            place = blob(4, number(1, function) + number(2, line))
            head = number(1, at) + number(2, mapping_at) + number(3, address)
            out.append(blob(_LOCATION, head + place))
        for (title, file), at in self._functions.items():
            function_text = number(1, at) + number(2, self._string(title))
            function_text += number(3, self._string(title)) + number(4, self._string(file))
            out.append(blob(_FUNCTION, function_text))
        out.append(blob(_PERIOD_TYPE, kind) + number(_PERIOD, 1))
        if timed:
            first = "events" if self._by_calls else "time"
            out.append(number(_DEFAULT, self._string(first)))
        if self._missing:
            out.append(number(_COMMENT, self._string(f"{self._missing} events lost")))
        out += [blob(_STRING, text.encode(errors="backslashreplace")) for text in self._strings]
        self._counts.clear()
        self._times.clear()
        self._missing = 0
        packer = zlib.compressobj(wbits=_GZIP)
        return packer.compress(b"".join(out)) + packer.flush()

    def renamed(self, thread_id: int) -> None:
        """The next stack asks for the name anyway."""

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        self._places = self._programs.symbols(number)

    def state(self) -> object:
        """All that was counted."""
        return [
            list(self._strings),
            [[*stack, count] for stack, count in self._counts.items()],
            self._mappings,
            list(self._functions),
            list(self._locations),
            self._before,
            self._missing,
            [[*stack, time] for stack, time in self._times.items()],
            self._calls.state(),
            self._period,
            self._sampled,
        ]

    def restore(self, state: object) -> None:
        """Go on counting."""
        (
            strings,
            counts,
            mappings,
            functions,
            locations,
            before,
            missing,
            times,
            calls,
            *sampled,
        ) = cast("Any", state)
        self._strings = {str(text): at for at, text in enumerate(strings)}
        self._counts = Counter({tuple(map(int, stack)): int(n) for *stack, n in counts})
        self._times = Counter({tuple(map(int, stack)): int(n) for *stack, n in times})
        self._calls.restore(calls, lambda stack: tuple(map(int, cast("Any", stack))))
        self._mappings = [
            (int(start), int(limit), int(offset), str(path), str(ident))
            for start, limit, offset, path, ident in mappings
        ]
        self._functions = {
            (str(title), str(file)): at for at, (title, file) in enumerate(functions, 1)
        }
        self._locations = {
            (int(mapping), int(address), int(function), int(line)): at
            for at, (mapping, address, function, line) in enumerate(locations, 1)
        }
        self._before, self._missing = str(before), int(missing)
        self._period, self._sampled = int(sampled[0]), bool(sampled[1])

    def _grown(self, caller: _Stack | None, thread: int, function: int) -> _Stack:
        if caller is None:
            comm = self._names.comm(thread)
            name = self._string("?" if comm is None else escaped(comm))
            caller = (self._string("call"), name)
        event, comm_at, *places = caller
        return event, comm_at, self._place(function, False), *places

    def _weigh(self, stack: _Stack, calls: int, time: int) -> None:
        self._counts[stack] += calls
        self._times[stack] += time

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _place(self, address: int, calls: bool) -> int:
        """The location of an address; a return address belongs to the call before it."""
        place = address - calls
        found = self._places.get(place)
        if found is None:
            symbol = self._names.symbol(place)
            known = symbol != f"{place:#x}"
            file, line = self._names.line(place) or ("", 0)
            title = escaped(function_name(symbol)) if known else f"{address:#x}"
            function = self._functions.setdefault((title, file), len(self._functions) + 1)
            made = self._mapping(place), place, function, line
            found = self._locations.setdefault(made, len(self._locations) + 1)
            self._places[place] = found
        return found

    def _mapping(self, address: int) -> int:
        """The file that an address lies in, 0 for none."""
        file = self._names.file(address)
        if file is None:
            return 0
        made = file.start, file.end, file.offset, file.path, file.build_id
        if made not in self._mappings:
            self._mappings.append(made)
        return self._mappings.index(made) + 1


def _packed(field: int, values: Iterable[int]) -> bytes:
    """A list of numbers in one field."""
    return blob(field, b"".join(map(varint, values)))
