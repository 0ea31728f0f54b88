"""Rows made of the records that a running kernel has written, by its own `format` files.

The way back from `engine.trace.formats.kernelrecord`. The fields of a record are found by the
names that they have in the event's `format` file; what is not there, the kernel does not record.
"""

import re
import struct
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from engine.arch.program import THREAD_MOST, ValueKind, row_head
from engine.errors import CommandError
from engine.trace.fields import own_fields
from engine.trace.rows import EventInfo

_FIELD: Final = re.compile(
    r"\tfield:(?P<type>[^;]*?)(?P<name>\w+)(?P<array>\[[^];]*\])?;"
    r"\toffset:(?P<offset>\d+);\tsize:(?P<size>\d+);\tsigned:(?P<signed>[01]);"
)
_LETTERS: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}
_FAULT: Final = b"(fault)"

RowMaker = Callable[[int, bytes], bytes]
"""Makes the row of a time and a record; `struct.error` for a record that is too short."""


class KernelField(Struct, frozen=True):
    """A field of a record.

    Attributes:
        name: of it.
        offset: bytes from the start.
        size: bytes.
        signed: whether numbers in it are.
    """

    name: str
    offset: int
    size: int
    signed: bool


class KernelEvent(Struct, frozen=True):
    """An event as its `format` file describes it.

    Attributes:
        number: the type that its records begin with.
        fields: by name.
    """

    number: int
    fields: dict[str, KernelField]

    @classmethod
    def of(cls, text: str) -> "KernelEvent":
        """The event of a `format` file.

        Raises:
            CommandError: it is none.
        """
        number = re.search(r"^ID: (\d+)$", text, re.MULTILINE)
        if number is None:
            raise CommandError("an event's format file does not tell its ID")
        fields = {
            found["name"]: KernelField(
                found["name"], int(found["offset"]), int(found["size"]), found["signed"] == "1"
            )
            for found in _FIELD.finditer(text)
        }
        return cls(int(number[1]), fields)

    def field(self, name: str) -> KernelField:
        """A field by its name.

        Raises:
            CommandError: there is none.
        """
        found = self.fields.get(name)
        if found is None:
            raise CommandError(f"the kernel records no {name} (its format file has no such field)")
        return found


def thread_of(record: bytes) -> int:
    """The thread that has written a record: common_pid, which all records have at the same place.

    Raises:
        struct.error: it is too short.
    """
    thread: int = struct.unpack_from("<i", record, 4)[0]
    return thread & THREAD_MOST


def row_maker(info: EventInfo, event: KernelEvent) -> RowMaker:
    """Compile what makes rows of an event's records.

    Args:
        info: what the rows are.
        event: what the records are.

    Raises:
        CommandError: the kernel does not record what the rows need.
    """
    code, strings, words = "", list[int](), 0
    picked: list[tuple[int, str, int]] = []  # offset, letter, word of the row behind the time
    for field in own_fields(info):
        theirs, column = event.field(field.name), field.column
        count = 1 if column is None else column.words
        if theirs.size % count or theirs.size // count not in _LETTERS:
            raise CommandError(f"{info}: {theirs.name} of {theirs.size} bytes is not known")
        size = theirs.size // count
        letter = _LETTERS[size]
        signed = column is not None and column.type.kind is ValueKind.SIGNED
        letter = letter.lower() if signed else letter
        text = column is not None and column.type.is_string
        for at in range(count):
            if text:
                strings.append(words)
            picked.append((theirs.offset + at * size, letter, words))
            code += "q" if signed else "Q"
            words += 1
    unpack, order = _unpacker(picked)
    pack = struct.Struct(f"<IIQ{code}").pack
    size = info.words * 8
    first, second = row_head(info.id, info.words)
    if not strings:

        def plain(time: int, record: bytes) -> bytes:
            values = unpack(record)
            return pack(first, second | thread_of(record), time, *order(values))

        return plain

    def texted(time: int, record: bytes) -> bytes:
        values = list(order(unpack(record)))
        end, texts = size, list[bytes]()
        for index in strings:
            text = _string(record, values[index])
            values[index] = end | len(text) << 32
            texts.append(text)
            end += len(text)
        whole = end + 7 & ~7
        start, rest = row_head(info.id, whole >> 3)
        row = pack(start, rest | thread_of(record), time, *values)
        return b"".join((row, *texts)).ljust(whole, b"\0")

    return texted


def _unpacker(
    picked: Sequence[tuple[int, str, int]],
) -> tuple[Callable[[bytes], tuple[int, ...]], Callable[[Sequence[int]], Sequence[int]]]:
    """Reads numbers at offsets, and puts what was read into the order of the row."""
    code, at = "<", 0
    ordered = sorted(picked)
    for offset, letter, _ in ordered:
        if offset < at:
            raise CommandError("fields of an event overlap")
        code += f"{offset - at}x{letter}"
        at = offset + struct.calcsize(f"<{letter}")
    unpack = struct.Struct(code).unpack_from
    places = [word for _, _, word in ordered]
    if places == list(range(len(places))):
        return unpack, lambda values: values
    wanted = [places.index(word) for word in range(len(places))]
    return unpack, lambda values: [values[index] for index in wanted]


def _string(record: bytes, location: int) -> bytes:
    """A string with its NUL; nothing for one that the kernel could not read."""
    start, size = location & 0xFFFF, location >> 16
    text = record[start : start + size].partition(b"\0")[0]
    return b"" if text == _FAULT or not size else text + b"\0"


def stack_maker(info: EventInfo, event: KernelEvent) -> RowMaker:
    """The maker of rows of user call stacks (user_stack, kernel/trace/trace_entries.h).

    Args:
        info: the event of call stacks.
        event: `ftrace/user_stack`.

    Raises:
        CommandError: the kernel's has no addresses.
    """
    callers = event.field("caller")
    count = callers.size // 8
    unpack = struct.Struct(f"<{callers.offset}x{count}Q").unpack_from

    def make(time: int, record: bytes) -> bytes:
        frames = [frame for frame in unpack(record) if frame]
        words = info.words + len(frames)
        first, second = row_head(info.id, words)
        head = (first, second | thread_of(record), time, frames[0] if frames else 0)
        return struct.pack(f"<II{words - 1}Q", *head, *frames)

    return make
