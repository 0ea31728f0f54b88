"""Rows of events: what their columns are, and how one is decoded.

The layout of a row is described in `engine.arch.program`. An `EventInfo` holds what is needed
to show rows without the session that recorded them, so it can be stored beside them.
"""

import struct
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Final, TypeAlias

from msgspec import Struct

from engine.arch.program import (
    RETURN_HEAD,
    ROW_HEAD,
    THREAD_MOST,
    FieldType,
    RecordLayout,
    ValueKind,
    row_head,
)
from engine.errors import EngineError

Scalar: TypeAlias = int | float | bytes | None
"""One decoded value."""
Value: TypeAlias = Scalar | tuple[Scalar, ...]
"""A decoded value: a number, a string without its NUL, None for a string that could not be read,
or a tuple of these for an array."""

HEAD = struct.Struct("<HHI")
"""The low half of the event id, words, thread id with the rest of the event id: see `whole`."""
TIME = struct.Struct("<Q")
"""Behind it: the time, in ticks."""

KERNEL_FRAMES: Final = "kernel_frames"
"""The column of call stacks that tells how many frames are a kernel's."""

_WORD: Final = (1 << 64) - 1

_CODES = {1: "b7x", 2: "h6x", 4: "i4x", 8: "q"}
_FLOAT_CODES = {4: "f4x", 8: "d"}


class FormKind(Enum):
    """The kind of text that a number is shown as, where its type in the source is known."""

    NUMBER = "number"
    TRUTH = "truth"
    CHARACTER = "character"
    ENUMERATION = "enumeration"
    POINTER = "pointer"
    REAL = "real"
    TEXT = "text"
    """The value is a text already."""
    NOTHING = "nothing"
    """There is no value: a function that returns none."""


class ValueForm(Struct, frozen=True):
    """The way in which a value is shown as the source has it.

    Attributes:
        kind: which text is made.
        names: names and numbers of an enumeration.
        variadic: further arguments, of which nothing is known, stand behind it.
    """

    kind: FormKind
    names: tuple[tuple[str, int], ...] = ()
    variadic: bool = False


class Column(Struct, frozen=True):
    """One argument in the rows of an event.

    Attributes:
        name: as shown.
        type: of the argument.
        word: index of its first word.
        ctype: its type in the kernel's words, for the arguments of system calls; else "".
        form: how a function's argument or result is shown; None for the kernel's way.
    """

    name: str
    type: FieldType
    word: int
    ctype: str = ""
    form: ValueForm | None = None

    @property
    def words(self) -> int:
        """Words it takes: one for each element."""
        return max(self.type.count, 1)

    @property
    def code(self) -> str:
        """Format of its words for `struct`, without a byte order."""
        if self.type.is_string:
            return "Q" * self.words
        if self.type.kind is ValueKind.FLOAT:
            return _FLOAT_CODES[self.type.size] * self.words
        one = _CODES[self.type.size]
        return (one if self.type.kind is ValueKind.SIGNED else one.upper().replace("X", "x")) * (
            self.words
        )


Forms: TypeAlias = "tuple[ValueForm | None, ...]"
"""Forms of an event's values, one for each; none at all: they are shown in the kernel's way."""


@lru_cache(maxsize=1024)
def _columns(layout: RecordLayout, forms: Forms) -> tuple[Column, ...]:
    """The columns of rows; many events have the same."""
    shown = forms or (None,) * len(layout.fields)
    return tuple(
        Column(field.arg.name, field.arg.type, field.word, form=form)
        for field, form in zip(layout.fields, shown, strict=True)
    )


class EventSource(Enum):
    """The maker of an event's rows."""

    PROBE = "probe"
    SYSCALL_ENTER = "syscall-enter"
    SYSCALL_EXIT = "syscall-exit"
    SCHED = "sched"
    SYNTHETIC = "synthetic"
    """Triggers of other events make it."""
    EPROBE = "eprobe"
    """Rows of another event make it, of their fields."""
    KERNEL = "kernel"
    """The guest is a kernel, which has the event and its fields itself."""
    STACK = "stack"
    """The call stack at the row before: return addresses, one a word, innermost first."""


class KernelRecord(Struct, frozen=True):
    """The records that a kernel which is the guest itself makes of an event.

    Attributes:
        offsets: of the fields, as the columns have them, in bytes from the record's start.
        sizes: of the fields, in bytes.
        signed: whether the kernel says that numbers in a field have a sign.
        expression: what makes the event's text, behind `print fmt:`; "" where that is not known.
    """

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    signed: tuple[bool, ...]
    expression: str = ""


class EventInfo(Struct, frozen=True, gc=False):
    """One event of the event table.

    Attributes:
        id: up to `EVENT_MOST`; its low half is not 0.
        group: first part of its name.
        name: second part.
        columns: its arguments.
        words: of a row without strings' bytes.
        returns: whether it is a return event.
        symbolic: whether addresses print as symbols (kprobes) instead of hex (uprobes).
        source: what makes its rows.
        attached: the event that makes an event probe's rows, as `GROUP.NAME`; else "".
        record: as the guest's own kernel has the event; None for an event that it does not have.
    """

    id: int
    group: str
    name: str
    columns: tuple[Column, ...]
    words: int = ROW_HEAD
    returns: bool = False
    symbolic: bool = False
    source: EventSource = EventSource.PROBE
    attached: str = ""
    record: KernelRecord | None = None

    @classmethod
    def of(
        cls,
        event_id: int,
        group: str,
        name: str,
        layout: RecordLayout,
        symbolic: bool = False,
        forms: Forms = (),
    ) -> "EventInfo":
        """The description of an event with a layout; `forms` say how its values are shown."""
        returns = layout.head == RETURN_HEAD
        columns = _columns(layout, forms)
        return cls(event_id, group, name, columns, layout.words, returns, symbolic)

    def __str__(self) -> str:
        return f"{self.group}/{self.name}"

    @property
    def strings(self) -> bool:
        """True if bytes may follow the words."""
        return any(column.type.is_string for column in self.columns)

    def accepts(self, words: int) -> bool:
        """True if a row of so many words can be one of this event."""
        if self.strings or self.source is EventSource.STACK:
            return words >= self.words
        return words == self.words

    @property
    def code(self) -> str:
        """Format of a row's words behind the first one for `struct`: time, addresses, columns."""
        head = "QQQ" if self.returns else "QQ"
        return "<8x" + head + "".join(column.code for column in self.columns)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "id": self.id,
            "group": self.group,
            "name": self.name,
            "returns": self.returns,
            "symbolic": self.symbolic,
            "source": self.source.value,
            **({"attached": self.attached} if self.attached else {}),
            **({"record": _record_json(self.record)} if self.record is not None else {}),
            "columns": [
                {
                    "name": column.name,
                    "kind": column.type.kind.value,
                    "size": column.type.size,
                    "count": column.type.count,
                    "width": column.type.width,
                    "offset": column.type.offset,
                    "ctype": column.ctype,
                    **_form_json(column.form),
                }
                for column in self.columns
            ],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "EventInfo":
        """From plain data.

        Raises:
            ValueError, KeyError, TypeError: it is not an event's.
        """
        returns = bool(data["returns"])
        word = RETURN_HEAD if returns else ROW_HEAD
        columns: list[Column] = []
        for item in data["columns"]:
            numbers = [int(item[key]) for key in ("size", "count", "width", "offset")]
            kind = FieldType(ValueKind(item["kind"]), *numbers)
            form = _form_of(item)
            column = Column(str(item["name"]), kind, word, str(item["ctype"]), form)
            if column.type.size not in (0, *_CODES) or not 0 <= column.type.count <= 0xFFFF:
                raise ValueError("a column of an impossible size")
            if kind.kind is ValueKind.FLOAT and kind.size not in _FLOAT_CODES:
                raise ValueError("a floating-point number of an impossible size")
            if not column.type.size and not column.type.is_string:
                raise ValueError("a number without a size")
            columns.append(column)
            word += column.words
        name, group = str(data["name"]), str(data["group"])
        symbolic = bool(data["symbolic"])
        source, of = EventSource(data["source"]), str(data.get("attached", ""))
        number, record = int(data["id"]), _record_of(data.get("record"), len(columns))
        return cls(
            number, group, name, tuple(columns), word, returns, symbolic, source, of, record
        )


def _record_json(record: KernelRecord) -> dict[str, Any]:
    """A kernel's record as plain data."""
    places = {"offsets": list(record.offsets), "sizes": list(record.sizes)}
    return {**places, "signed": list(record.signed), "expression": record.expression}


def _record_of(data: Any, columns: int) -> KernelRecord | None:
    """A kernel's record from plain data.

    Raises:
        ValueError, KeyError, TypeError: it is none, or one of other fields.
    """
    if data is None:
        return None
    places = [tuple(int(each) for each in data[key]) for key in ("offsets", "sizes")]
    offsets, sizes, signed = *places, tuple(bool(each) for each in data["signed"])
    if any(len(each) != columns or min(each, default=0) < 0 for each in (*places, signed)):
        raise ValueError("a record of other fields than the event's")
    return KernelRecord(offsets, sizes, signed, str(data["expression"]))


def _form_json(form: ValueForm | None) -> dict[str, Any]:
    """A column's form as plain data; nothing for a column without."""
    if form is None:
        return {}
    found = {"form": form.kind.value, "names": [*map(list, form.names)]}
    return {**found, "variadic": True} if form.variadic else found


def _form_of(item: Mapping[str, Any]) -> ValueForm | None:
    if "form" not in item:
        return None
    names = tuple((str(name), int(value)) for name, value in item["names"])
    return ValueForm(FormKind(item["form"]), names, bool(item.get("variadic")))


EventTable: TypeAlias = Mapping[int, EventInfo]


def stack_event(number: int, *, kernel: bool = False) -> EventInfo:
    """The event of call stacks.

    Args:
        number: of the event.
        kernel: the guest is a kernel: each row tells in a word in front of its frames how many of
            them, the innermost ones, are the kernel's; the others are those of its program.
    """
    columns = (Column(KERNEL_FRAMES, FieldType(ValueKind.UNSIGNED, 8), ROW_HEAD),)
    if not kernel:
        return EventInfo(number, "ftrace", "user_stack", (), source=EventSource.STACK)
    return EventInfo(
        number, "ftrace", "kernel_stack", columns, ROW_HEAD + 1, source=EventSource.STACK
    )


class Event(Struct, frozen=True):
    """One recorded event.

    Attributes:
        id: the event's number.
        group: first part of its name.
        name: second part.
        time: of the clock of the trace.
        thread_id: who hit it.
        address: of the probe; of the function for a return event.
        returned_to: for a return event, else None.
        values: of its arguments.
    """

    id: int
    group: str
    name: str
    time: int
    thread_id: int
    address: int
    returned_to: int | None
    values: tuple[Value, ...]


def decode(events: EventTable, data: bytes | memoryview, position: int = 0) -> Event:
    """Decode the row at a position.

    Raises:
        KeyError: its event is not in the table.
        struct.error: the row is shorter than its event's rows.
    """
    event_id, _, thread_id = HEAD.unpack_from(data, position)
    if thread_id > THREAD_MOST:
        event_id, thread_id = whole(event_id, thread_id)
    info = events[event_id]
    unpack, shapes = _decoder(info)
    head = 3 if info.returns else 2
    words = unpack(data, position)
    returned_to = words[2] if info.returns else None
    rest = iter(words[head:])
    values = tuple(shape(rest, data, position) for shape in shapes)
    return Event(
        event_id, info.group, info.name, words[0], thread_id, words[1], returned_to, values
    )


def pack_row(
    info: EventInfo, thread: int, time: int, address: int, values: Sequence[int | bytes]
) -> bytes:
    """The row of an event that is no probe's, padded to whole words.

    Args:
        info: the event.
        thread: id of the one it happened in.
        time: of the clock of the trace.
        address: where that thread was.
        values: of its columns, in their order; a string has its NUL, and is empty if it could
            not be read.
    """
    end = info.words * 8
    words: list[int] = []
    texts: list[bytes] = []
    for value in values:
        if isinstance(value, bytes):
            words.append(end | len(value) << 32)
            texts.append(value)
            end += len(value)
        else:
            words.append(value & _WORD)
    size = (end + 7) & ~7
    first, second = row_head(info.id, size >> 3)
    head = (first, second | thread, time, address)
    row = struct.pack(f"<II{2 + len(words)}Q", *head, *words)
    return b"".join((row, *texts)).ljust(size, b"\0")


def whole(event_id: int, thread_id: int) -> tuple[int, int]:
    """The ids of an event and a thread, from the numbers of a row's head."""
    return event_id | (thread_id & ~THREAD_MOST) >> 8, thread_id & THREAD_MOST


def renumbered(data: bytes, numbers: Mapping[int, int]) -> bytes:
    """Whole rows with other event ids.

    Args:
        data: the rows.
        numbers: the new id of each.
    """
    rows, position = bytearray(data), 0
    heads = {old: row_head(new, 0) for old, new in numbers.items()}
    while position < len(data):
        low, words, second = HEAD.unpack_from(data, position)
        event_id, thread = whole(low, second)
        first, rest = heads[event_id]
        HEAD.pack_into(rows, position, first, words, rest | thread)
        position += words * 8
    return bytes(rows)


def string_at(data: bytes | memoryview, position: int, word: int) -> bytes | None:
    """A string of the row at a position by its word, None for one that could not be read."""
    size = word >> 32
    if not size:
        return None
    start = position + (word & 0xFFFFFFFF)
    return bytes(data[start : start + size - 1])


def halfwords(data: bytes) -> Sequence[int]:
    """The unsigned 16-bit numbers of whole rows.

    The low half of the event id and the words are the first two of a row; the rest of the id is
    the upper half of the fourth.
    """
    if sys.byteorder == "little":
        return memoryview(data).cast("H")
    swapped = array("H", data)
    swapped.byteswap()
    return swapped


def uniform(data: bytes, position: int = 0, until: int | None = None) -> tuple[int, int]:
    """Size and number of the rows from a position on if all have one size, else (0, 0).

    With `until`, only of the rows that begin in front of that place.

    Sizes are compared many at a time: if a row has the size, its successor is where it should
    be, so equal numbers at equal distances prove each other.
    """
    if position + 4 > len(data):
        return 0, 0
    size = 8 * (data[position + 2] | data[position + 3] << 8)
    if not size:
        return 0, 0
    end = len(data)
    if until is not None:
        end = min(end, position + -(-(until - position) // size) * size)
    if (end - position) % size:
        return 0, 0
    rows = (end - position) // size
    low, high = data[position + 2 : end : size], data[position + 3 : end : size]
    if low.count(low[0]) != rows or high.count(high[0]) != rows:
        return 0, 0
    return size, rows


def same_size_tally(data: bytes, start: int, stop: int, size: int) -> Counter[int]:
    """The number of rows of each event, by its id, between two places.

    All rows have the same size.
    """
    low, high = data[start:stop:size], data[start + 1 : stop : size]
    rest = data[start + HEAD.size - 1 : stop : size]
    if not any(rest):
        if low.count(low[0]) == len(low) and high.count(high[0]) == len(high):
            return Counter({low[0] | high[0] << 8: len(low)})
        return Counter(halfwords(data)[start // 2 : stop // 2 : size // 2])
    return Counter(a | b << 8 | c << 16 for a, b, c in zip(low, high, rest, strict=True))


def count_rows(data: bytes, position: int = 0) -> int:
    """Number of rows in a stretch of whole rows, from a position on.

    Raises:
        EngineError: one has no size.
    """
    rows = uniform(data, position)[1]
    if rows:
        return rows
    end = len(data)
    unpack = HEAD.unpack_from
    while position < end:
        words = unpack(data, position)[1]
        if not words:
            raise EngineError("a recorded event has no size")
        position += words * 8
        rows += 1
    return rows


Unpack: TypeAlias = Callable[..., tuple[Any, ...]]
"""Words of a row, given its buffer and where it begins there."""


def unpacker(info: EventInfo) -> Unpack:
    """Reads the words behind the first one of an event's rows: time, addresses, columns."""
    return _unpacker(info.code)


@lru_cache(maxsize=1024)
def _unpacker(code: str) -> Unpack:
    """The same for one of the few layouts that all events share."""
    return struct.Struct(code).unpack_from


_Shape: TypeAlias = Callable[[Iterator[int], "bytes | memoryview", int], Value]


@lru_cache(maxsize=1024)
def _decoder(
    info: EventInfo,
) -> tuple[Callable[..., tuple[int, ...]], tuple[_Shape, ...]]:
    shapes = tuple(_shape(column.type) for column in info.columns)
    return unpacker(info), shapes


def _shape(type_: FieldType) -> _Shape:
    def number(words: Iterator[int], data: bytes | memoryview, position: int) -> int:
        return next(words)

    def string(words: Iterator[int], data: bytes | memoryview, position: int) -> bytes | None:
        return string_at(data, position, next(words))

    one = string if type_.is_string else number
    if not type_.count:
        return one

    def elements(
        words: Iterator[int], data: bytes | memoryview, position: int
    ) -> tuple[Scalar, ...]:
        return tuple(one(words, data, position) for _ in range(type_.count))

    return elements
