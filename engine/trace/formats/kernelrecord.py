"""Rows as the records that a kernel's ring buffer has, for formats that other tools read.

A record begins with the fields of all events and has the event's own at the offsets that its
`format` file tells (`engine.trace.fields`); strings stand behind them, each found by a word with
its offset and size (`__data_loc`, include/trace/stages/stage6_event_callback.h). A string that
could not be read is "(fault)", as a uprobe records it (kernel/trace/trace_probe_kernel.h).
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Final, TypeAlias

from msgspec import Struct

from engine.arch.program import EVENT_LOW, ValueKind
from engine.trace.fields import COMMON, Field, format_text, own_fields
from engine.trace.formats.values import frames
from engine.trace.function import FUNCTION
from engine.trace.graph import ENTRY, EXIT, GROUP
from engine.trace.rows import EventInfo, EventSource, string_at, unpacker

PAGE: Final = 4096
"""Bytes of a page of the ring buffer."""
PAGE_ROOM: Final = PAGE - 16
"""Bytes of a page for events: its head has the time and how many bytes are used."""
RECORD_MOST: Final = PAGE_ROOM - 8
"""Bytes of a record that fits into a page, with the longest head that an event has."""

HEADER_PAGE: Final = (
    "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
    "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
    f"\tfield: char data;\toffset:16;\tsize:{PAGE_ROOM};\tsigned:0;\n"
)
"""The text of tracefs's events/header_page (ring_buffer_print_page_header)."""
HEADER_EVENT: Final = (
    "# compressed entry header\n"
    "\ttype_len    :    5 bits\n"
    "\ttime_delta  :   27 bits\n"
    "\tarray       :   32 bits\n"
    "\n"
    "\tpadding     : type == 29\n"
    "\ttime_extend : type == 30\n"
    "\ttime_stamp : type == 31\n"
    "\tdata max type_len  == 28\n"
)
"""The same of events/header_event (ring_buffer_print_entry_header)."""

STACK_NAME: Final = "kernel_stack"
"""The event of call stacks: trace-cmd and KernelShark print its frames with their names. The one
that the kernel has for a user's stacks is printed as eight numbers."""

_LETTERS: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}
_FAULT: Final = b"(fault)\0"

Words: TypeAlias = Sequence[int]
Make: TypeAlias = Callable[[bytes, int, int], bytes]
"""Makes the record of the row at a position, given the id of its thread."""


class RecordKind(Struct, frozen=True):
    """The compiled form of an event's records.

    Attributes:
        info: the event.
        make: makes one.
        places: words of the row, behind its first, that are addresses of code.
        fixed: how to make one of the row's words alone; None where that is not all.
    """

    info: EventInfo
    make: Make
    places: tuple[int, ...]
    fixed: "FixedRecord | None" = None


class FixedRecord(Struct, frozen=True):
    """Records of numbers.

    Attributes:
        code: format of the whole record for `struct`, without a byte order: the event's number,
            the thread, then the fields; whole words of four bytes.
        size: of it.
        unpack: the words of the row at a position, behind its first.
        pick: those of them that are fields.
        pack: makes the record of the event's number, the thread, and the fields.
        number: the event's.
    """

    code: str
    size: int
    unpack: Callable[[bytes, int], Words]
    pick: Callable[[Words], Words]
    pack: Callable[..., bytes]
    number: int


class _RecordPart(Struct, frozen=True):
    """A piece of a record: its offset, the letter of its number, and where the number comes from.

    Attributes:
        offset: bytes from the record's start.
        code: format for `struct`.
        size: in bytes.
        word: index among a row's words; -1 for none.
        text: it is the place of a string; its bytes stand in the record if `inline`.
        inline: bytes of a string in the record itself, 0 for one behind it.
        end: what stands behind the bytes of one behind it.
    """

    offset: int
    code: str
    size: int
    word: int
    text: bool = False
    inline: int = 0
    end: bytes = b"\0"


def record_kind(info: EventInfo) -> RecordKind:
    """Compile the records of an event."""
    if info.source is EventSource.STACK:
        return RecordKind(info, _stack_maker(info), ())
    tracer = _tracer_event(info)
    if tracer is not None:
        parts = [
            _RecordPart(field.offset, _LETTERS[field.size], field.size, field.word)
            for field in tracer.fields
            if field.word >= 0
        ]
        return RecordKind(info, *_plain_maker(info, parts, tracer.places))
    parts = [part for field in own_fields(info) for part in _parts(info, field)]
    places = [1, 2] if info.returns else [1]
    at = 3 if info.returns else 2
    for column in info.columns:
        if column.type.kind is ValueKind.SYMBOL:
            places += range(at, at + column.words)
        at += column.words
    return RecordKind(info, *_plain_maker(info, parts, tuple(places)))


def format_file(info: EventInfo) -> str:
    """The event's `format` file as the records that `record_kind` makes have it."""
    tracer = _tracer_event(info)
    if tracer is None:
        return format_text(info, narrow=True)
    fields = "".join(field.describe() for field in tracer.fields)
    head = f"name: {tracer.name}\nID: {info.id}\nformat:\n"
    return f"{head}{common_fields()}\n{fields}\nprint fmt: {tracer.expression}\n"


def common_fields() -> str:
    """The lines of the fields of all events."""
    return "".join(f"\t{field.describe()}\n" for field in COMMON)


def by_group(infos: Iterable[EventInfo]) -> dict[str, list[EventInfo]]:
    """The events that are none of the tracers', by their groups."""
    groups: dict[str, list[EventInfo]] = {}
    for info in infos:
        if not is_tracers(info):
            groups.setdefault(info.group, []).append(info)
    return groups


def is_tracers(info: EventInfo) -> bool:
    """True for an event of tracefs's own group `ftrace`."""
    return _tracer_event(info) is not None


# -- the tracers' events (kernel/trace/trace_entries.h) ----------------------------------------


class _TracerField(Struct, frozen=True):
    """A field of a tracer's event: the kernel's words for it, and the row's word it shows."""

    text: str
    offset: int
    size: int
    word: int
    signed: bool = False

    def describe(self) -> str:
        """The part's line of a `format` file."""
        place = f"offset:{self.offset};\tsize:{self.size};\tsigned:{int(self.signed)};"
        return f"\tfield:{self.text};\t{place}\n"


class _TracerEvent(Struct, frozen=True):
    """A tracer's event.

    Attributes:
        name: as the kernel has it.
        fields: in their order.
        expression: behind `print fmt:`.
        places: words that are addresses of code.
    """

    name: str
    fields: tuple[_TracerField, ...]
    expression: str
    places: tuple[int, ...]


_STACK: Final = _TracerEvent(
    STACK_NAME,
    (
        _TracerField("int size", 8, 4, -1, signed=True),
        _TracerField("unsigned long caller[]", 16, 0, -1),
    ),
    '"=> %pS", (void *)REC->caller[0]',
    (),
)
_ENTRY: Final = _TracerEvent(
    ENTRY,
    (
        _TracerField("unsigned long func", 8, 8, 1),
        _TracerField("unsigned int depth", 16, 4, 2),
    ),
    '"--> %ps (%u)", (void *)REC->func, REC->depth',
    (1,),
)
_EXIT: Final = _TracerEvent(
    EXIT,
    (
        _TracerField("unsigned long func", 8, 8, 1),
        _TracerField("unsigned int depth", 16, 4, 3),
        _TracerField("unsigned int overrun", 20, 4, -1),
        _TracerField("unsigned long long calltime", 24, 8, 4),
        _TracerField("unsigned long long rettime", 32, 8, 0),
        _TracerField("unsigned long retval", 40, 8, 6),
    ),
    '"<-- %ps (%u) (start: %llx  end: %llx) over: %u", (void *)REC->func, REC->depth, '
    "REC->calltime, REC->rettime, REC->depth",
    (1,),
)
_FUNCTION: Final = _TracerEvent(
    FUNCTION,
    (
        _TracerField("unsigned long ip", 8, 8, 1),
        _TracerField("unsigned long parent_ip", 16, 8, 2),
    ),
    '" %ps <-- %ps", (void *)REC->ip, (void *)REC->parent_ip',
    (1, 2),
)


def _tracer_event(info: EventInfo) -> _TracerEvent | None:
    """The tracer's event that an event is, if it is one."""
    if info.source is EventSource.STACK:
        return _STACK
    if info.group != GROUP:
        return None
    return {ENTRY: _ENTRY, EXIT: _EXIT, FUNCTION: _FUNCTION}.get(info.name)


def _stack_maker(info: EventInfo) -> Make:
    number = info.id & EVENT_LOW

    def make(data: bytes, position: int, thread: int) -> bytes:
        found = frames(info, data, position)
        return struct.pack(f"<HxxIIxxxx{len(found)}Q", number, thread, len(found), *found)

    return make


# -- all others ----------------------------------------------------------------------------------


def _parts(info: EventInfo, field: Field) -> list[_RecordPart]:
    """The pieces of a field: one for each element."""
    column = field.column
    if column is None:
        return [_RecordPart(field.offset, "Q", 8, field.row // 8 - 1)]
    count = column.words
    size = field.size // count
    if column.type.is_string:
        inline = 0 if field.ctype.startswith("__data_loc") else size
        code, size = (f"{size}s", size) if inline else ("I", 4)
        # The kernel's arrays of numbers of any length end with the last number.
        numbers = info.source is EventSource.KERNEL and "char" not in field.ctype
        word, end = column.word - 1, b"" if numbers else b"\0"
        return [
            _RecordPart(field.offset + at * size, code, size, word + at, True, inline, end)
            for at in range(count)
        ]
    letter = _LETTERS[size]
    if column.type.kind is ValueKind.FLOAT:
        letter = {4: "f", 8: "d"}[size]
    signed = column.type.kind is ValueKind.SIGNED
    return [
        _RecordPart(field.offset + at * size, letter.lower() if signed else letter, size, word)
        for at, word in enumerate(range(column.word - 1, column.word - 1 + count))
    ]


def _plain_maker(
    info: EventInfo, parts: Sequence[_RecordPart], places: tuple[int, ...]
) -> tuple[Make, tuple[int, ...], FixedRecord | None]:
    """The maker of records with fields at fixed offsets, and strings behind them."""
    code, end = "HxxI", 8
    for part in parts:
        code += "x" * (part.offset - end) + part.code
        end = part.offset + part.size
    unpack = unpacker(info)
    number = info.id & EVENT_LOW
    indices = [part.word for part in parts]
    texts = [(at, part) for at, part in enumerate(parts) if part.text]
    if not texts:
        code += "x" * (-end & 3)
        pack, pick = struct.Struct(f"<{code}").pack, _picker(indices)
        fixed = FixedRecord(code, end + (-end & 3), unpack, pick, pack, number)

        def plain(data: bytes, position: int, thread: int) -> bytes:
            return pack(number, thread, *pick(unpack(data, position)))

        return plain, places, fixed
    pack = struct.Struct(f"<{code}").pack

    def texted(data: bytes, position: int, thread: int) -> bytes:
        words = unpack(data, position)
        values: list[int | bytes] = [words[index] for index in indices]
        behind: list[bytes] = []
        at = end
        for index, part in texts:
            found = string_at(data, position, words[part.word])
            if part.inline:
                values[index] = b"" if found is None else found[: part.inline - 1]
                continue
            text = _FAULT if found is None else found + part.end
            values[index] = at | len(text) << 16
            behind.append(text)
            at += len(text)
        return pack(number, thread, *values) + b"".join(behind)

    return texted, places, None


def _picker(indices: Sequence[int]) -> Callable[[Words], Words]:
    """Takes some of a row's words."""
    if not indices:
        return lambda words: ()
    first = indices[0]
    if list(indices) == list(range(first, first + len(indices))):
        return itemgetter(slice(first, first + len(indices)))
    return itemgetter(*indices)
