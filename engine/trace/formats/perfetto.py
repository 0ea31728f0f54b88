"""Perfetto's trace file: protobuf packets of track events, written by ourselves.

Field numbers are those of protos/perfetto/trace/ (trace_packet.proto, track_event.proto,
track_descriptor.proto, debug_annotation.proto). The events of a thread are one track. A function
with an entry and a return event, or a system call with both, is a slice, and slices nest as the
calls do; every other event is an instant. A tick of the guest's clock is shown as a nanosecond.
"""

import struct
from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar, Final, TypeAlias, cast

from msgspec import Struct

from engine.arch.program import EVENT_MOST, THREAD_MOST, ValueKind
from engine.trace.formats.base import ByProgram, Names
from engine.trace.formats.protobuf import data as blob
from engine.trace.formats.protobuf import number, tag, varint
from engine.trace.formats.values import Plain, frames, function_name, plain, text
from engine.trace.rows import (
    HEAD,
    Column,
    EventInfo,
    EventSource,
    EventTable,
    string_at,
    unpacker,
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
_A_UINT, _A_INT, _A_STRING, _A_NAME, _A_ARRAY = 3, 4, 6, 10, 12
_SEQUENCE_ID: Final = number(_SEQUENCE, 1)
_BEGIN_PACKET, _AT, _EVENT = tag(_PACKET, 2), tag(_TIMESTAMP, 0), tag(_TRACK_EVENT, 2)
_KINDS: Final = {kind: number(_TYPE, kind) for kind in (_BEGIN, _END, _INSTANT)}
_VALUES: Final = 1 << 12
"""Annotations of an argument's values to remember."""
_CALLS: Final = (EventSource.SYSCALL_ENTER, EventSource.SYSCALL_EXIT)
_ID_BITS: Final = 32
"""More than numbers of events have."""
_STACK_HEAD: Final = struct.Struct("<8xQQ").unpack_from
_PROCESS_BIT: Final = 1 << 32
_IDLE: Final = 1 << 33
"""The track of the idle thread: 0 would be that of all events without one."""

Words: TypeAlias = Sequence[int]
Maker: TypeAlias = Callable[[Words, bytes, int], bytes]
"""Makes an annotation of the words of the row at a position."""


class _CompiledRows(Struct, frozen=True):
    """The compiled form of an event's rows.

    Attributes:
        info: the event.
        unpack: its words.
        makers: each makes an annotation of them.
        title: its category and name.
        enters: an event of a place, and of no return.
        pairs: it is one end of a system call whose other end is recorded too.
    """

    info: EventInfo
    unpack: Callable[[bytes, int], Words]
    makers: tuple[Maker, ...]
    title: bytes
    enters: bool = False
    pairs: bool = False


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
        self._kinds: dict[int, _CompiledRows] = {}
        self._tracks: dict[int, bytes] = {}
        self._roles: ByProgram[tuple[bytes, int]] = ByProgram()
        self._entries = self._roles.symbols(0)
        """Title and part of events that are no returns, by event and address."""
        self._places: dict[int, bytes] = {}
        """Annotations that say where a probe is."""

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """The packet that begins the sequence."""
        self._open.clear()
        return _packet(number(_FLAGS, _STATE_CLEARED))

    def rows(self, data: bytes) -> bytes:
        """The packets of each row."""
        out: list[bytes] = []
        kinds, opened = self._kinds, self._open
        head, position, end = HEAD.unpack_from, 0, len(data)
        while position < end:
            event_id, size, thread = head(data, position)
            if thread > THREAD_MOST:
                event_id, thread = whole(event_id, thread)
            kind = kinds.get(event_id) or self._kind(event_id)
            if thread not in opened:
                opened[thread] = []
                out.append(self._track(thread))
            words = kind.unpack(data, position)
            shown = [make(words, data, position) for make in kind.makers]
            known = self._entries.get(words[1] << _ID_BITS | event_id) if kind.enters else None
            if known is not None and known[1] == _INSTANT:
                out.append(self._event(thread, words, _INSTANT, known[0], shown))
            elif kind.info.source is EventSource.STACK:
                out.append(self._event(thread, words, _INSTANT, kind.title, shown))
            else:
                self._add(out, kind, thread, words, shown)
            self._last = words[0]
            position += size * 8
        return b"".join(out)

    def lost(self, count: int) -> bytes:
        """An instant that says how many."""
        title = _title("kprobe-tui", f"{count} events lost")
        shown = [blob(_ANNOTATION, _annotation("lost", count))]
        return self._event(next(iter(self._open), 0), (self._last, 0), _INSTANT, title, shown)

    def end(self) -> bytes:
        """Nothing: slices that have not ended are shown as such."""
        return b""

    def renamed(self, thread_id: int) -> None:
        """The track is described again at the thread's next event."""
        self._open.pop(thread_id, None)

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        self._symbols = self._programs.symbols(number)
        self._entries = self._roles.symbols(number)

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

    def _kind(self, event_id: int) -> _CompiledRows:
        """The compiled form of an event's rows."""
        info = self._events[event_id]
        if info.source is EventSource.STACK:
            made = _CompiledRows(
                info, _STACK_HEAD, (self._frames(info),), _title(info.group, "stack")
            )
        else:
            at = 3 if info.returns else 2
            makers: list[Maker] = []
            for column in info.columns:
                makers.append(self._maker(column, at))
                at += column.words
            if info.returns:
                makers.append(self._returned)
            name, pairs = info.name, self._pairs(info)
            if pairs:
                name = name.removeprefix(ENTER).removeprefix(EXIT)
            unpack = unpacker(info)
            title = _title(info.group, name)
            enters = not info.returns and info.source not in _CALLS
            made = _CompiledRows(info, unpack, tuple(makers), title, enters, pairs)
        self._kinds[event_id] = made
        return made

    def _frames(self, info: EventInfo) -> Maker:
        def make(words: Words, data: bytes, position: int) -> bytes:
            found: Plain = [self._symbol(pc) for pc in frames(info, data, position)]
            return blob(_ANNOTATION, _annotation("frames", found))

        return make

    def _returned(self, words: Words, data: bytes, position: int) -> bytes:
        """The place that a return goes to."""
        return blob(_ANNOTATION, _annotation("returned_to", self._symbol(words[2])))

    def _maker(self, column: Column, at: int) -> Maker:
        """Turns an argument's words, from one on, into its annotation; many are the same few."""
        name, kind, names = column.name, column.type, self._names
        if not (kind.count or kind.is_string or kind.kind in (ValueKind.CHAR, ValueKind.SYMBOL)):
            return _number_maker(name, at)
        known: dict[int | bytes | None, bytes] = {}

        def annotated(value: int | bytes | None) -> bytes:
            if len(known) >= _VALUES:
                known.clear()
            found = blob(_ANNOTATION, _annotation(name, plain(value, kind, names)))
            if kind.kind is not ValueKind.SYMBOL:  # which is another one in another program
                known[value] = found
            return found

        def figure(words: Words, data: bytes, position: int) -> bytes:
            return known.get(words[at]) or annotated(words[at])

        def string(words: Words, data: bytes, position: int) -> bytes:
            value = string_at(data, position, words[at])
            return known.get(value) or annotated(value)

        def several(words: Words, data: bytes, position: int) -> bytes:
            found: list[int | bytes | None] = list(words[at : at + column.words])
            if kind.is_string:
                found = [string_at(data, position, word) for word in words[at : at + column.words]]
            return blob(_ANNOTATION, _annotation(name, plain(tuple(found), kind, names)))

        if kind.count:
            return several
        return string if kind.is_string else figure

    def _add(
        self, out: list[bytes], kind: _CompiledRows, thread: int, words: Words, shown: list[bytes]
    ) -> None:
        """Turn an event into a slice's begin or end, or an instant."""
        key, title, part = self._role(kind, words)
        stack = self._open[thread]
        if part == _BEGIN:
            if stack and stack[-1] == (key, words[0]):
                part = _INSTANT  # another event of the same hit
            else:
                stack.append((key, words[0]))
        if part == _END:
            depth = next((i for i in range(len(stack) - 1, -1, -1) if stack[i][0] == key), None)
            if depth is None:
                part = _INSTANT
            else:
                # What was begun inside and never returned, by longjmp for example, ends here too.
                out += [self._event(thread, words, _END, b"", []) for _ in stack[depth + 1 :]]
                del stack[depth:]
                title = b""
        out.append(self._event(thread, words, part, title, shown))

    def _pairs(self, info: EventInfo) -> bool:
        """True for an event of a system call whose other end is recorded too."""
        if info.source is EventSource.SYSCALL_ENTER:
            other = EXIT + info.name.removeprefix(ENTER)
        elif info.source is EventSource.SYSCALL_EXIT:
            other = ENTER + info.name.removeprefix(EXIT)
        else:
            return False
        return any(one.group == GROUP and one.name == other for one in self._events.values())

    def _role(self, kind: _CompiledRows, words: Words) -> tuple[int, bytes, int]:
        """The slice an event belongs to, its name, and the event's part in it."""
        info, address = kind.info, words[1]
        if info.source in _CALLS:
            part = _BEGIN if info.source is EventSource.SYSCALL_ENTER else _END
            return -1 - words[2], kind.title, part if kind.pairs else _INSTANT
        if info.returns:
            return address, kind.title, _END
        place = address << _ID_BITS | info.id
        found = self._entries.get(place)
        if found is None:
            found = kind.title, _INSTANT
            if self._names.returning(address):
                found = _title(info.group, function_name(self._symbol(address))), _BEGIN
            self._entries[place] = found
        return address, *found

    def _event(
        self, thread: int, words: Words, part: int, title: bytes, shown: list[bytes]
    ) -> bytes:
        """The packet of an event; one without a title ends what has one."""
        track = self._tracks.get(thread)
        if track is None:
            track = self._tracks[thread] = number(_TRACK, thread or _IDLE)
        named = title + self._place(words[1]) if title else b""
        body = b"".join((_KINDS[part], track, named, *shown))
        size = varint(len(body))
        content = b"".join((_AT, varint(words[0]), _EVENT, size, body, _SEQUENCE_ID))
        return b"".join((_BEGIN_PACKET, varint(len(content)), content))

    def _place(self, address: int) -> bytes:
        found = self._places.get(address)
        if found is None:
            found = blob(_ANNOTATION, _annotation("address", f"{address:#x}"))
            self._places[address] = found
        return found

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


def _annotation(name: str, value: Plain) -> bytes:
    named = blob(_A_NAME, _utf8(name)) if name else b""
    if isinstance(value, list):
        return named + b"".join(blob(_A_ARRAY, _annotation("", item)) for item in value)
    if value is None:
        return named + blob(_A_STRING, b"(fault)")
    if isinstance(value, str):
        return named + blob(_A_STRING, _utf8(value))
    return named + number(_A_INT if value < 0 else _A_UINT, value)


def _number_maker(name: str, at: int) -> Maker:
    """Turns the word at an index into its annotation: all but its varint is known beforehand."""

    def fronts(field: int) -> tuple[bytes, ...]:
        """The bytes in front of a varint of so many."""
        named = (blob(_A_NAME, _utf8(name)) if name else b"") + tag(field, 0)
        return tuple(blob(_ANNOTATION, named + bytes(size))[: -size or None] for size in range(11))

    plain, negative = fronts(_A_UINT), fronts(_A_INT)

    def make(words: Words, data: bytes, position: int) -> bytes:
        value = words[at]
        shown = varint(value)
        return (negative if value < 0 else plain)[len(shown)] + shown

    return make


def _utf8(name: str) -> bytes:
    """Strings of a message must be UTF-8."""
    return text(name.encode(errors="surrogateescape")).encode()
