"""Perfetto's trace file: protobuf packets of track events, written by ourselves.

Field numbers are those of protos/perfetto/trace/ (trace_packet.proto, track_event.proto,
track_descriptor.proto, debug_annotation.proto). The events of a thread are one track. A function
with an entry and a return event, or a system call with both, is a slice, and slices nest as the
calls do; every other event is an instant. A tick of the guest's clock is shown as a nanosecond.
"""

from collections.abc import Collection
from typing import Any, ClassVar, Final, cast

from engine.trace.formats.base import ByProgram, Names
from engine.trace.formats.protobuf import data as blob
from engine.trace.formats.protobuf import number
from engine.trace.formats.values import Plain, arguments, frames, function_name, text
from engine.trace.rows import HEAD, Event, EventInfo, EventSource, EventTable, decode
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
_KINDS: Final = {kind: number(_TYPE, kind) for kind in (_BEGIN, _END, _INSTANT)}
_PROCESS_BIT: Final = 1 << 32
_IDLE: Final = 1 << 33
"""The track of the idle thread: 0 would be that of all events without one."""


class PerfettoFormat:
    """A file that ui.perfetto.dev and trace_processor open."""

    name: ClassVar[str] = "perfetto"
    wants_stacks: ClassVar[bool] = False
    is_text: ClassVar[bool] = False

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table; options mean nothing here."""
        self._events = events
        self._names = names
        self._programs: ByProgram[str] = ByProgram()
        self._symbols = self._programs.symbols(0)
        self._open: dict[int, list[tuple[int, int]]] = {}
        """Function and time of the slices that have begun, by thread."""
        self._last = 0
        self._paired: dict[int, bool] = {}
        self._titles: dict[tuple[str, str], bytes] = {}
        self._places: dict[int, bytes] = {}
        """Annotations that say where a probe is."""

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """The packet that begins the sequence."""
        self._open.clear()
        return _packet(number(_FLAGS, _STATE_CLEARED))

    def rows(self, data: bytes) -> bytes:
        """The packets of each row."""
        out: list[bytes] = []
        position, end = 0, len(data)
        while position < end:
            event = decode(self._events, data, position)
            info = self._events[event.id]
            if event.thread_id not in self._open:
                self._open[event.thread_id] = []
                out.append(self._track(event.thread_id))
            if info.source is EventSource.STACK:
                found = [self._symbol(pc) for pc in frames(info, data, position)]
                out.append(self._event(event, _INSTANT, "stack", {"frames": list(found)}))
            else:
                out += self._packets(event, info)
            self._last = event.time
            position += HEAD.unpack_from(data, position)[1] * 8
        return b"".join(out)

    def lost(self, count: int) -> bytes:
        """An instant that says how many."""
        event = Event(0, "kprobe-tui", "lost", self._last, next(iter(self._open), 0), 0, None, ())
        return self._event(event, _INSTANT, f"{count} events lost", {"lost": count})

    def end(self) -> bytes:
        """Nothing: slices that have not ended are shown as such."""
        return b""

    def renamed(self, thread_id: int) -> None:
        """The track is described again at the thread's next event."""
        self._open.pop(thread_id, None)

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        self._symbols = self._programs.symbols(number)

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

    def _packets(self, event: Event, info: EventInfo) -> list[bytes]:
        """Turn an event into a slice's begin or end, or an instant."""
        shown = arguments(event, info, self._names)
        key, name, kind = self._role(event, info)
        if event.returned_to is not None:
            shown["returned_to"] = self._symbol(event.returned_to)
        stack = self._open[event.thread_id]
        if kind == _BEGIN:
            if stack and stack[-1] == (key, event.time):
                kind = _INSTANT  # another event of the same hit
            else:
                stack.append((key, event.time))
        if kind != _END:
            return [self._event(event, kind, name, shown)]
        depth = next((i for i in range(len(stack) - 1, -1, -1) if stack[i][0] == key), None)
        if depth is None:
            return [self._event(event, _INSTANT, name, shown)]
        # What was begun inside and never returned, by longjmp for example, ends here too.
        out = [self._event(event, _END, "", {}) for _ in stack[depth + 1 :]]
        del stack[depth:]
        return [*out, self._event(event, _END, "", shown)]

    def _role(self, event: Event, info: EventInfo) -> tuple[int, str, int]:
        """The slice an event belongs to, its name, and the event's part in it."""
        if info.source in (EventSource.SYSCALL_ENTER, EventSource.SYSCALL_EXIT):
            entering = info.source is EventSource.SYSCALL_ENTER
            call = info.name.removeprefix(ENTER if entering else EXIT)
            other = (EXIT if entering else ENTER) + call
            paired = self._paired.get(event.id)
            if paired is None:
                names = {one.name for one in self._events.values() if one.group == GROUP}
                paired = self._paired[event.id] = other in names
            number_ = event.values[0]
            key = -1 - (number_ if isinstance(number_, int) else 0)
            kind = (_BEGIN if entering else _END) if paired else _INSTANT
            return key, call if paired else info.name, kind
        if info.returns:
            return event.address, info.name, _END
        if self._names.returning(event.address):
            return event.address, function_name(self._symbol(event.address)), _BEGIN
        return event.address, info.name, _INSTANT

    def _event(self, event: Event, kind: int, name: str, shown: dict[str, Plain]) -> bytes:
        parts = [_KINDS[kind], number(_TRACK, event.thread_id or _IDLE)]
        if name:
            parts += [self._title(event.group, name), self._place(event.address)]
        parts += [blob(_ANNOTATION, _annotation(key, value)) for key, value in shown.items()]
        return _packet(number(_TIMESTAMP, event.time) + blob(_TRACK_EVENT, b"".join(parts)))

    def _title(self, group: str, name: str) -> bytes:
        """Category and name of an event."""
        found = self._titles.get((group, name))
        if found is None:
            found = blob(_CATEGORY, _utf8(group)) + blob(_EVENT_NAME, _utf8(name))
            self._titles[group, name] = found
        return found

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


def _utf8(name: str) -> bytes:
    """Strings of a message must be UTF-8."""
    return text(name.encode(errors="surrogateescape")).encode()
