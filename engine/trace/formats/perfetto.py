"""Perfetto's trace file: protobuf packets of track events, written by ourselves.

Field numbers are those of protos/perfetto/trace/ (trace_packet.proto, track_event.proto,
track_descriptor.proto, debug_annotation.proto). The events of a thread are one track. A function
with an entry and a return event, or a system call with both, is a slice, and slices nest as the
calls do; every other event is an instant. A tick of the guest's clock is shown as a nanosecond.
"""

import struct
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain, repeat
from operator import add, getitem
from typing import Any, ClassVar, Final, TypeAlias, TypeVar, cast

from msgspec import Struct

from engine.arch.program import EVENT_MOST, THREAD_MOST, FieldType, ValueKind
from engine.trace.formats.base import ByProgram, Names
from engine.trace.formats.lines import same_place, words_layout
from engine.trace.formats.protobuf import (
    PIECE,
    PIECE_BITS,
    fixed64,
    number,
    pieces,
    tag,
    varint,
    varints,
)
from engine.trace.formats.protobuf import data as blob
from engine.trace.formats.values import Plain, frames, function_name, plain, text
from engine.trace.rows import (
    HEAD,
    Column,
    EventInfo,
    EventSource,
    EventTable,
    Scalar,
    string_at,
    whole,
)
from engine.trace.syscalls import ENTER, EXIT, GROUP

_PACKET: Final = 1
_TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _FLAGS, _DESCRIPTOR = 8, 10, 11, 13, 60
_STATE_CLEARED: Final = 1
_UUID, _PROCESS, _THREAD, _PARENT = 1, 3, 4, 5
_PROCESS_PID, _PROCESS_NAME = 1, 6
_THREAD_PID, _THREAD_TID, _THREAD_NAME = 1, 2, 5
_ANNOTATION, _TYPE, _TRACK, _CATEGORY, _EVENT_NAME = 4, 9, 11, 22, 23
_BEGIN, _END, _INSTANT = 1, 2, 3
_A_UINT, _A_INT, _A_DOUBLE, _A_STRING, _A_NAME, _A_ARRAY = 3, 4, 5, 6, 10, 12
_NO_INTEGERS: Final = (ValueKind.CHAR, ValueKind.SYMBOL, ValueKind.FLOAT)
_SEQUENCE_ID: Final = number(_SEQUENCE, 1)
_BEGIN_PACKET, _AT, _EVENT = tag(_PACKET, 2), tag(_TIMESTAMP, 0), tag(_TRACK_EVENT, 2)
_AROUND: Final = len(_AT) + len(_SEQUENCE_ID)
_KINDS: Final = {kind: number(_TYPE, kind) for kind in (_BEGIN, _END, _INSTANT)}
_MEMORY: Final = 1 << 24
"""About how many bytes of annotations and fronts are remembered."""
_ENTRY: Final = 150
"""Bytes of one beside its own."""
_CALLS: Final = (EventSource.SYSCALL_ENTER, EventSource.SYSCALL_EXIT)
_STACK_HEAD: Final = struct.Struct("<8xQ")
_LOW: Final = PIECE - 1
_PLACE: Final = 16
"""Offset of a row's addresses: its head and its time are in front of them."""
_PROCESS_BIT: Final = 1 << 32
_IDLE: Final = 1 << 33
"""The track of the idle thread: 0 would be that of all events without one."""

Words: TypeAlias = Sequence[int]
"""The words of a row's columns."""
Maker: TypeAlias = Callable[[Words, bytes, int], bytes]
"""Makes an annotation of the words of the row at a position."""
Unpack: TypeAlias = Callable[[bytes, int], tuple[Any, ...]]
_Key = TypeVar("_Key")


class _RememberedBytes:
    """Counts what is remembered."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.bytes = 0

    def table(self, make: Callable[[_Key], bytes]) -> "_RememberedPieces[_Key]":
        """Bytes that a function makes of a key, remembered."""
        return _RememberedPieces(self, make)


class _RememberedPieces(dict[_Key, bytes]):
    """Bytes that are made of a key when they are asked for the first time."""

    def __init__(self, memory: _RememberedBytes, make: Callable[[_Key], bytes]) -> None:
        super().__init__()
        self._memory = memory
        self._make = make

    def __missing__(self, key: _Key) -> bytes:
        found = self[key] = self._make(key)
        self._memory.bytes += len(found) + _ENTRY
        return found


class _NumberAnnotation:
    """Turns numbers into annotations of a name: all but their varints is known beforehand."""

    def __init__(self, name: str) -> None:
        named = blob(_A_NAME, _utf8(name)) if name else b""
        self._plain, self._negative = (
            tuple(
                blob(_ANNOTATION, named + tag(field, 0) + bytes(size))[: -size or None]
                for size in range(11)
            )
            for field in (_A_UINT, _A_INT)
        )
        """The bytes in front of a varint of so many."""

    def one(self, value: int) -> bytes:
        """The annotation of a number."""
        shown = varint(value)
        return (self._negative if value < 0 else self._plain)[len(shown)] + shown

    def many(self, values: Sequence[int]) -> list[bytes]:
        """The annotations of some numbers, quicker where several are the same."""
        distinct = set(values)
        if len(distinct) == 1:
            return [self.one(values[0])] * len(values)
        if len(distinct) * 4 < len(values):
            found = {value: self.one(value) for value in distinct}
            return [found[value] for value in values]
        if min(distinct) < 0:
            return list(map(self.one, values))
        plain = self._plain
        return [plain[len(shown)] + shown for shown in varints(values)]


class _Arguments(Struct, frozen=True):
    """The annotations of an event.

    Attributes:
        info: the event.
        layout: of the time of a row, and the words of its columns.
        title: the event's category and name.
        numbers: of each column; None where some are no plain numbers.
        tables: annotations by a word, for each of `numbers`.
        makers: of each annotation, where there are no numbers.
        pairs: it is one end of a system call whose other end is recorded too.
    """

    info: EventInfo
    layout: struct.Struct
    title: bytes
    numbers: tuple[_NumberAnnotation, ...] | None
    tables: tuple[_RememberedPieces[int], ...] = ()
    makers: tuple[Maker, ...] = ()
    pairs: bool = False


_Spot: TypeAlias = tuple[int, int | None, dict[int, _RememberedPieces[int]], bytes]
"""An event in a thread at a place: its part in a slice, or an instant that has none; the slice it
belongs to, None where that is a system call's, which the row tells; by part, the fronts of packets
by the bytes of annotations behind them; an annotation behind those of the arguments."""

_Kind: TypeAlias = tuple[dict[bytes, _Spot], _Arguments, Unpack, int, int, int]
"""Spots by the bytes of their addresses; arguments and how they are read, thread, size, end of the
addresses."""


class PerfettoFormat:
    """A file that ui.perfetto.dev and trace_processor open."""

    name: ClassVar[str] = "perfetto"
    wants_stacks: ClassVar[bool] = False
    is_text: ClassVar[bool] = False
    event_most: ClassVar[int] = EVENT_MOST

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table; options mean nothing here."""
        self._events = events
        self._names = names
        self._programs: ByProgram[str] = ByProgram()
        self._symbols = self._programs.symbols(0)
        self._open: dict[int, list[tuple[int, int]]] = {}
        """Function and time of the slices that have begun, by thread."""
        self._last = 0
        self._tracks: dict[int, bytes] = {}
        self._arguments: dict[int, _Arguments] = {}
        self._memory = _RememberedBytes()
        self._places: dict[int, dict[bytes, _Kind]] = {}
        """By program, and by the head of a row: event, size, thread."""
        self._kinds = self._places.setdefault(0, {})
        self._program = 0
        self._heads = self._memory.table(_packet_head)

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """The packet that begins the sequence."""
        self._open.clear()
        return _packet(number(_FLAGS, _STATE_CLEARED))

    def rows(self, data: bytes) -> bytes:
        """The packets of each row."""
        if self._memory.bytes > _MEMORY:
            self._forget()
        same = self._same(data)
        if same is not None:
            return same
        out: list[bytes] = []
        kinds, opened, heads = self._kinds, self._open, self._heads
        last, more = pieces()
        position, end, now = 0, len(data), self._last
        high, rest = 0, b""
        while position < end:
            kind = kinds.get(data[position : position + HEAD.size]) or self._kind(data, position)
            spots, arguments, take, thread, size, until = kind
            spot = spots.get(data[position + _PLACE : position + until])
            part, key, fronts, behind = spot or self._spot(kind, data, position)
            stack = opened.get(thread)
            if stack is None:
                stack = self._begin(out, thread)
            now, *words = take(data, position)
            if arguments.numbers is not None:
                shown = b"".join(map(getitem, arguments.tables, words)) + behind
            else:
                made = [make(words, data, position) for make in arguments.makers]
                shown = b"".join(made) + behind
            if now >> PIECE_BITS != high:
                high = now >> PIECE_BITS
                rest = varint(high)
            time = more[now & _LOW] + rest if high else last[now]
            if part != _INSTANT:
                if key is None:
                    key = -1 - words[0]
                if part == _BEGIN:
                    if stack and stack[-1] == (key, now):
                        part = _INSTANT  # another event of the same hit
                    else:
                        stack.append((key, now))
                else:
                    depth = len(stack) - 1
                    while depth >= 0 and stack[depth][0] != key:
                        depth -= 1
                    if depth < 0:
                        part = _INSTANT
                    else:
                        # What was begun inside and never returned, as by longjmp, ends too.
                        front = fronts[_END][0]
                        head = heads[len(front) + len(time)]
                        out += (head, time, front, _SEQUENCE_ID) * (len(stack) - depth - 1)
                        del stack[depth:]
            front = fronts[part][len(shown)]
            head = heads[len(front) + len(time) + len(shown)]
            out += (head, time, front, shown, _SEQUENCE_ID)
            position += size
        self._last = now
        return b"".join(out)

    def _same(self, data: bytes) -> bytes | None:
        """The same where all rows are instants of one event, in one thread, at one place."""
        if len(data) < _PLACE:
            return None
        kind = self._kinds.get(data[: HEAD.size]) or self._kind(data, 0)
        spots, arguments, _, thread, size, until = kind
        numbers, layout = arguments.numbers, arguments.layout
        if numbers is None or layout.size != size or not same_place(data, size, until):
            return None
        part, _, fronts, behind = spots.get(data[_PLACE:until]) or self._spot(kind, data, 0)
        if part != _INSTANT:
            return None
        out: list[bytes] = []
        if thread not in self._open:
            self._begin(out, thread)
        times, *columns = zip(*layout.iter_unpack(data), strict=True)
        rows = len(times)
        shown = [one.many(column) for one, column in zip(numbers, columns, strict=True)]
        sizes: Iterable[int] = repeat(len(behind), rows)
        for one in shown:
            sizes = map(add, sizes, map(len, one))
        sizes = list(sizes)
        clock = varints(times)
        begins = list(map(fronts[_INSTANT].__getitem__, sizes))
        whole = map(add, map(add, sizes, map(len, clock)), map(len, begins))
        heads = map(self._heads.__getitem__, whole)
        after = repeat(behind + _SEQUENCE_ID, rows)
        self._last = times[-1]
        out += chain.from_iterable(zip(heads, clock, begins, *shown, after, strict=True))
        return b"".join(out)

    def _begin(self, out: list[bytes], thread: int) -> list[tuple[int, int]]:
        """Describe a thread's track; no slice of it has begun."""
        out.append(self._track(thread))
        stack = self._open[thread] = []
        return stack

    def lost(self, count: int) -> bytes:
        """An instant that says how many."""
        title = _title("kprobe-tui", f"{count} events lost")
        shown = blob(_ANNOTATION, _annotation("lost", count))
        thread = next(iter(self._open), 0)
        front = _event_front(self._base(thread, _INSTANT, title + _place(0)), len(shown))
        time = varint(self._last)
        head = _packet_head(len(front) + len(time) + len(shown))
        return b"".join((head, time, front, shown, _SEQUENCE_ID))

    def end(self) -> bytes:
        """Nothing: slices that have not ended are shown as such."""
        return b""

    def renamed(self, thread_id: int) -> None:
        """The track is described again at the thread's next event."""
        self._open.pop(thread_id, None)

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        self._program = number
        self._symbols = self._programs.symbols(number)
        self._kinds = self._places.setdefault(number, {})

    def state(self) -> object:
        """The tracks that are described, their open slices, and the last time."""
        return [list(self._open.items()), self._last]

    def restore(self, state: object) -> None:
        """Go on with the same tracks and slices."""
        opened, last = cast("tuple[Any, Any]", state)
        self._open = {
            int(thread): [(int(key), int(time)) for key, time in slices]
            for thread, slices in opened
        }
        self._last = int(last)

    def _track(self, thread: int) -> bytes:
        """Describe the tracks of a thread and of its process, which is named by its first one."""
        pid = self._names.process(thread)
        process = number(_UUID, pid | _PROCESS_BIT)
        process += blob(_PROCESS, number(_PROCESS_PID, pid) + blob(_PROCESS_NAME, self._comm(pid)))
        task = number(_THREAD_PID, pid) + number(_THREAD_TID, thread)
        task += blob(_THREAD_NAME, self._comm(thread))
        track = number(_UUID, thread or _IDLE) + number(_PARENT, pid | _PROCESS_BIT)
        track += blob(_THREAD, task)
        return _packet(blob(_DESCRIPTOR, process)) + _packet(blob(_DESCRIPTOR, track))

    def _comm(self, thread: int) -> bytes:
        comm = self._names.comm(thread)
        return b"?" if comm is None else comm

    def _forget(self) -> None:
        """Drop all that is remembered only to be quick."""
        self._memory = _RememberedBytes()
        self._heads = self._memory.table(_packet_head)
        self._arguments.clear()
        self._places.clear()
        self._kinds = self._places.setdefault(self._program, {})

    def _kind(self, data: bytes, position: int) -> _Kind:
        """Begin to remember places of the event and thread of the row at a position."""
        event_id, words, thread = HEAD.unpack_from(data, position)
        if thread > THREAD_MOST:
            event_id, thread = whole(event_id, thread)
        arguments = self._arguments.get(event_id)
        if arguments is None:
            arguments = self._arguments[event_id] = self._compile(self._events[event_id])
        until = _PLACE + (16 if arguments.info.returns else 8)
        take = arguments.layout.unpack_from
        kind: _Kind = {}, arguments, take, thread, words * 8, until
        self._kinds[data[position : position + HEAD.size]] = kind
        self._memory.bytes += _ENTRY
        return kind

    def _spot(self, kind: _Kind, data: bytes, position: int) -> _Spot:
        """The place of the row at a position."""
        spots, arguments, _, thread, _, until = kind
        place = data[position + _PLACE : position + until]
        address, *returned = struct.unpack(f"<{len(place) // 8}Q", place)
        part, title, key = self._role(arguments, address)
        named = title + _place(address)

        def fronts(part: int, named: bytes) -> _RememberedPieces[int]:
            base = self._base(thread, part, named)
            return self._memory.table(lambda size: _event_front(base, size))

        behind = b""
        if returned:
            behind = blob(_ANNOTATION, _annotation("returned_to", self._symbol(returned[0])))
        parts = {
            _INSTANT: fronts(_INSTANT, named),
            _BEGIN: fronts(_BEGIN, named),
            _END: fronts(_END, b""),
        }
        spot = spots[place] = part, key, parts, behind
        self._memory.bytes += len(named) * 2 + len(behind) + _ENTRY * 8
        return spot

    def _role(self, arguments: _Arguments, address: int) -> tuple[int, bytes, int | None]:
        """The part of an event in a slice, its name, and which slice that is."""
        info, title = arguments.info, arguments.title
        if info.source is EventSource.STACK:
            return _INSTANT, title, 0
        if info.source in _CALLS:
            part = _BEGIN if info.source is EventSource.SYSCALL_ENTER else _END
            return part if arguments.pairs else _INSTANT, title, None
        if info.returns:
            return _END, title, address
        if self._names.returning(address):
            return _BEGIN, _title(info.group, function_name(self._symbol(address))), address
        return _INSTANT, title, address

    def _base(self, thread: int, part: int, named: bytes) -> bytes:
        """The fields of an event that stand in front of its annotations."""
        track = self._tracks.get(thread)
        if track is None:
            track = self._tracks[thread] = number(_TRACK, thread or _IDLE)
        return _KINDS[part] + track + named

    def _compile(self, info: EventInfo) -> _Arguments:
        """The annotations of an event."""
        if info.source is EventSource.STACK:
            title = _title(info.group, "stack")
            return _Arguments(info, _STACK_HEAD, title, None, makers=(self._frames(info),))
        name, pairs = info.name, self._pairs(info)
        if pairs:
            name = name.removeprefix(ENTER).removeprefix(EXIT)
        title = _title(info.group, name)
        layout = words_layout(info)
        if all(_is_number(column.type) for column in info.columns):
            numbers = tuple(_NumberAnnotation(column.name) for column in info.columns)
            tables = tuple(self._memory.table(number.one) for number in numbers)
            return _Arguments(info, layout, title, numbers, tables, pairs=pairs)
        at, makers = 0, list[Maker]()
        for column in info.columns:
            makers.append(self._maker(column, at))
            at += column.words
        return _Arguments(info, layout, title, None, makers=tuple(makers), pairs=pairs)

    def _frames(self, info: EventInfo) -> Maker:
        def make(words: Words, data: bytes, position: int) -> bytes:
            found: Plain = [self._symbol(pc) for pc in frames(info, data, position)]
            return blob(_ANNOTATION, _annotation("frames", found))

        return make

    def _maker(self, column: Column, at: int) -> Maker:
        """Turns an argument's words, from one on, into its annotation; many are the same few."""
        name, kind, names = column.name, column.type, self._names

        def annotated(value: Scalar) -> bytes:
            return blob(_ANNOTATION, _annotation(name, plain(value, kind, names)))

        make: Callable[[Any], bytes] = annotated
        if _is_number(kind):
            make = _NumberAnnotation(name).one
        known = self._memory.table(make)

        def figure(words: Words, data: bytes, position: int) -> bytes:
            return known[words[at]]

        def symbol(words: Words, data: bytes, position: int) -> bytes:
            return annotated(words[at])  # which is another one in another program

        def string(words: Words, data: bytes, position: int) -> bytes:
            return known[string_at(data, position, words[at])]

        def several(words: Words, data: bytes, position: int) -> bytes:
            found: list[Scalar] = list(words[at : at + column.words])
            if kind.is_string:
                found = [string_at(data, position, word) for word in words[at : at + column.words]]
            return blob(_ANNOTATION, _annotation(name, plain(tuple(found), kind, names)))

        if kind.count:
            return several
        if kind.is_string:
            return string
        return symbol if kind.kind is ValueKind.SYMBOL else figure

    def _pairs(self, info: EventInfo) -> bool:
        """True for an event of a system call whose other end is recorded too."""
        if info.source is EventSource.SYSCALL_ENTER:
            other = EXIT + info.name.removeprefix(ENTER)
        elif info.source is EventSource.SYSCALL_EXIT:
            other = ENTER + info.name.removeprefix(EXIT)
        else:
            return False
        return any(one.group == GROUP and one.name == other for one in self._events.values())

    def _symbol(self, address: int) -> str:
        found = self._symbols.get(address)
        if found is None:
            found = self._symbols[address] = self._names.symbol(address)
        return found


def _title(group: str, name: str) -> bytes:
    """Category and name of an event."""
    return blob(_CATEGORY, _utf8(group)) + blob(_EVENT_NAME, _utf8(name))


def _packet(content: bytes) -> bytes:
    return blob(_PACKET, content + _SEQUENCE_ID)


def _place(address: int) -> bytes:
    """The annotation that says where a probe is."""
    return blob(_ANNOTATION, _annotation("address", f"{address:#x}"))


def _packet_head(size: int) -> bytes:
    """The begin of an event's packet with so many bytes of time, event and its front."""
    return _BEGIN_PACKET + varint(size + _AROUND) + _AT


def _event_front(base: bytes, size: int) -> bytes:
    """The begin of an event with so many bytes of annotations behind its other fields."""
    return _EVENT + varint(len(base) + size) + base


def _is_number(kind: FieldType) -> bool:
    return not (kind.count or kind.is_string or kind.kind in _NO_INTEGERS)


def _annotation(name: str, value: Plain) -> bytes:
    named = blob(_A_NAME, _utf8(name)) if name else b""
    if isinstance(value, list):
        return named + b"".join(blob(_A_ARRAY, _annotation("", item)) for item in value)
    if value is None:
        return named + blob(_A_STRING, b"(fault)")
    if isinstance(value, str):
        return named + blob(_A_STRING, _utf8(value))
    if isinstance(value, float):
        return named + fixed64(_A_DOUBLE, value)
    return named + number(_A_INT if value < 0 else _A_UINT, value)


def _utf8(name: str) -> bytes:
    """Strings of a message must be UTF-8."""
    return text(name.encode(errors="surrogateescape")).encode()
