"""The own events of a booted kernel in its trace: rows made of the records that it makes itself.

Tracepoints are enabled by the kernel's command line, and each record is read where the kernel has
filled it; system calls need nothing, as the machine stands where the kernel takes them.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct

from engine.errors import GuestFaultError, ProbeError
from engine.fetch.evaluate import FetchContext, Recorder
from engine.image.kernel.eventfields import EventField
from engine.machine.addresses import KernelAddresses
from engine.session.booted.event_hits import (
    ARGUMENTS,
    AX,
    COMMIT,
    ENTERED,
    IP,
    LEFT,
    ORIG_AX,
    EventHits,
)
from engine.session.booted.kernel_events import RAW, EventCatalog, is_from_kernel
from engine.session.booted.stacks import BootStacks
from engine.session.tracing.triggers import EventControls
from engine.trace import sched, syscalls
from engine.trace.rows import Column, EventInfo, pack_row
from engine.trace.staging import put_row

_LETTERS: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}
_RELATIVE: Final = "__rel_loc"
_LONGEST: Final = 1 << 12
"""Bytes of a field of any length: a record lies within a page of the kernel's buffer."""
_LOW: Final = 0xFFFFFFFF

Values = list[int | bytes]
"""Values of an event's columns, as `pack_row` takes them."""


class _ArmedEvent(Struct, eq=False):
    """An event and what it counts.

    Attributes:
        info: the event.
        place: where the machine stands at a hit.
        read: the values and the address of a row, of what a hit is told with.
        record: writes it.
        hits: so far.
    """

    info: EventInfo
    place: int
    read: Callable[[Any], tuple[Values, int]]
    record: Recorder = lambda *hit: None
    hits: int = 0


class BootEvents:
    """The kernel's own events of one trace."""

    def __init__(
        self,
        events: EventCatalog,
        hits: EventHits,
        context: FetchContext,
        controls: EventControls,
        addresses: KernelAddresses,
        program: syscalls.CallerMemory,
        stacks: BootStacks,
        running: Callable[[], int],
    ) -> None:
        """None yet.

        Args:
            events: of the kernel.
            hits: tells them.
            context: of the trace's recorders.
            controls: filters and triggers.
            addresses: the memory as the kernel sees it.
            program: that of the program that runs.
            stacks: leave out, at such events, what only tells them.
            running: gives the id of the task that runs.
        """
        self._events, self._hits, self._context = events, hits, context
        self._controls, self._addresses, self._program = controls, addresses, program
        self._stacks, self._running = stacks, running
        self._armed: list[_ArmedEvent] = []

    def add(self, info: EventInfo) -> None:
        """Have an event recorded.

        Args:
            info: as `EventCatalog.info` describes it.

        Raises:
            ProbeError: the kernel does not tell where.
        """
        call = self._events.fields.events[info.group, info.name]
        if is_from_kernel(info.group):
            place = self._events.fields.recorder(call)
            read = record_reader(
                info.columns, self._events.fields.fields(call), place, self._addresses
            )
            armed = _ArmedEvent(info, self._hits.needed(COMMIT), read)
            self._hits.record(call.address, partial(self._recorded, armed))
        else:
            armed = self._of_call(info)
        self._armed.append(armed)

    def _of_call(self, info: EventInfo) -> _ArmedEvent:
        number = None
        if info.group != RAW:
            number = self._events.call_number(info.name)
        enters = info.name.startswith("sys_enter")
        place = self._hits.needed(ENTERED if enters else LEFT)
        read: Callable[[Sequence[int]], tuple[Values, int]] = _left
        if enters and info.group == RAW:
            read = _entered_raw
        elif enters:
            read = partial(_entered, self._events.arguments(info), self._program)
        armed = _ArmedEvent(info, place, read)
        told = partial(self._called, armed)
        if enters:
            self._hits.enters(number, told)
        else:
            self._hits.leaves(number, told)
        return armed

    @property
    def infos(self) -> Iterator[EventInfo]:
        """The events."""
        return (each.info for each in self._armed)

    @property
    def places(self) -> int:
        """The number of events."""
        return len(self._armed)

    @property
    def hits(self) -> int:
        """The number of times that they have happened."""
        return sum(each.hits for each in self._armed)

    def profile(self) -> Iterator[tuple[str, int, int]]:
        """The name, the hits and the missed ones of each event."""
        for each in self._armed:
            yield each.info.name, each.hits, 0

    def start(self) -> None:
        """Make the recorders, and have the machine tell the events.

        Raises:
            ProbeError: the kernel does not tell them.
        """
        for each in self._armed:
            self._compile(each)
        self._hits.follow()

    def changed(self, info: EventInfo) -> None:
        """An event records in another way from now on."""
        for each in self._armed:
            if each.info is info:
                self._compile(each)

    def listing(self) -> Iterator[str]:
        """The events as `set_event` of tracefs lists them: those that are recorded themselves."""
        for each in self._armed:
            if not self._controls.of(each.info).off:
                yield f"{each.info.group}:{each.info.name}"

    # -- hits -----------------------------------------------------------------------------

    def _compile(self, armed: _ArmedEvent) -> None:
        info, chosen = armed.info, self._controls.chosen

        def make(context: FetchContext) -> Recorder:
            def record(thread: int, values: Values, address: int) -> None:
                row = pack_row(info, thread, context.cpu.now(), address, values)
                put_row(context.sink, row)

            return record

        made = self._controls.recorder(info, make, armed.place)
        if chosen is None or info.group != sched.GROUP:
            armed.record = made
            return
        tasks = [at for at, column in enumerate(info.columns) if column.name.endswith("pid")]

        def of_chosen(thread: int, values: Values, address: int) -> None:
            """One of the tasks that the event is about has to be chosen."""
            about = (thread, *(values[at] for at in tasks))
            if any(isinstance(each, int) and chosen(each) for each in about):
                made(thread, values, address)

        armed.record = of_chosen

    def _recorded(self, armed: _ArmedEvent, entry: int) -> None:
        armed.hits += 1
        try:
            values, address = armed.read(entry)
        except GuestFaultError:
            return  # what leads to the record is no kernel's
        self._stacks.telling = True
        armed.record(self._running(), values, address)
        self._stacks.telling = False

    def _called(self, armed: _ArmedEvent, saved: Sequence[int]) -> None:
        armed.hits += 1
        armed.record(self._running(), *armed.read(saved))


def record_reader(
    columns: Sequence[Column],
    fields: Sequence[EventField],
    place: int,
    addresses: KernelAddresses,
) -> Callable[[int], tuple[Values, int]]:
    """A function that reads the values of a record at an address; it raises `GuestFaultError`.

    Args:
        columns: what becomes of the fields.
        fields: of the record.
        place: the address that rows show.
        addresses: the memory as the kernel sees it.
    """
    code, at = "<", 0
    makers = list[tuple[int, Callable[[int, Sequence[Any]], int | bytes]]]()
    for column, field in zip(columns, fields, strict=True):
        if field.offset < at:
            raise ProbeError(f"{field.name}: fields of the event overlap")
        one, count = _code(column, field)
        code += f"{field.offset - at}x{one}"
        at = field.offset + field.size
        makers += [(count, _maker(column, field, addresses))]
    unpack = addresses.reader(struct.Struct(code))

    def read(entry: int) -> tuple[Values, int]:
        words, found, position = unpack(entry), Values(), 0
        for count, make in makers:
            part = words[position : position + count]
            position += count
            found += part if count > 1 else (make(entry, part),)
        return found, place

    return read


def _code(column: Column, field: EventField) -> tuple[str, int]:
    """The letters of a field for `struct`, and the number of values that they give."""
    if column.type.is_string:
        inline = column.ctype.startswith("char[")
        return (f"{field.size}s", 1) if inline else (_LETTERS[field.size], 1)
    letter = _LETTERS[column.type.size]
    return (letter.lower() if field.signed else letter) * column.words, column.words


def _maker(
    column: Column, field: EventField, addresses: KernelAddresses
) -> Callable[[int, Sequence[Any]], int | bytes]:
    """The maker of a field's value, where it has one, given the record's address."""
    if not column.type.is_string:
        return lambda entry, part: part[0]
    if column.ctype.startswith("char["):
        return lambda entry, part: part[0].partition(b"\0")[0] + b"\0"
    if not field.ctype.startswith("__"):
        return lambda entry, part: _text_at(part[0], addresses)
    behind = field.offset + 4 if field.ctype.startswith(_RELATIVE) else 0
    is_text = "char" in column.ctype

    def dynamic(entry: int, part: Sequence[Any]) -> bytes:
        start, size = part[0] & 0xFFFF, min(part[0] >> 16, _LONGEST)
        data = addresses.read(entry + behind + start, size) if size else b""
        return (data.partition(b"\0")[0] if is_text else data) + b"\0"

    return dynamic


def _text_at(address: int, addresses: KernelAddresses) -> bytes:
    """A text of the kernel's with its NUL; nothing for one that cannot be read."""
    try:
        return addresses.read_cstring(address, syscalls.STRING_MAX) + b"\0"
    except GuestFaultError:
        return b""


def _given(saved: Sequence[int]) -> list[int]:
    return [saved[each] for each in ARGUMENTS]


def _number(saved: Sequence[int]) -> int:
    """The number of a call, which an int holds: -1 where it is over already."""
    value = saved[ORIG_AX] & _LOW
    return value - (1 << 32) if value >> 31 else value


def _entered(
    given: Sequence[syscalls.Argument], memory: syscalls.CallerMemory, saved: Sequence[int]
) -> tuple[Values, int]:
    values = _given(saved)
    texts = [syscalls.pointed_to(each, values, memory) for each in given if each.is_read]
    return [_number(saved), *values[: len(given)], *texts], saved[IP]


def _entered_raw(saved: Sequence[int]) -> tuple[Values, int]:
    return [_number(saved), *_given(saved)], saved[IP]


def _left(saved: Sequence[int]) -> tuple[Values, int]:
    return [_number(saved), saved[AX]], saved[IP]
