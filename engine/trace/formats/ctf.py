"""Common Trace Format 1.8: a directory that babeltrace2 and Trace Compass read (diamon.org/ctf).

`metadata` describes the events in TSDL, `stream` has them in packets, each of which says how long
it is and how many events are missing so far: a stream that ends anywhere is read up to there. The
call stack behind an event is an event of its own. A tick of the guest's clock is shown as a
nanosecond. Names of threads stand with the events, those of functions with stacks and symbols.
"""

import struct
from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar, Final, TypeAlias, cast

from msgspec import Struct

from engine.arch.program import EVENT_MOST, THREAD_MOST, ValueKind
from engine.escaping import escaped
from engine.trace.formats.base import ByProgram, Names, Write
from engine.trace.formats.values import frames
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

_MAGIC: Final = 0xC1FC1FC1
_PACKET: Final = struct.Struct("<IIQQQQQ")
"""Magic, stream, bits of content, bits of the packet, times of its begin and end, events lost."""
_EVENT_HEAD: Final = struct.Struct("<IQ")
"""Number of the event and time."""
_SIZES: Final = {1: "b", 2: "h", 4: "i", 8: "q"}
_STREAM, _METADATA = "stream", "metadata"
_FAULT: Final = b"(fault)\0"

Words: TypeAlias = Sequence[int]
Make: TypeAlias = Callable[[Words, bytes, int], bytes]


class _CtfRows(Struct, frozen=True):
    """The compiled form of an event's rows.

    Attributes:
        info: the event.
        unpack: its words, behind the first.
        make: the fields of the event from them, and from the row itself.
    """

    info: EventInfo
    unpack: Callable[[bytes, int], Words]
    make: Make


class CtfFormat:
    """A directory for babeltrace2."""

    name: ClassVar[str] = "ctf"
    wants_stacks: ClassVar[bool] = False
    is_text: ClassVar[bool] = False
    event_most: ClassVar[int] = EVENT_MOST
    main: ClassVar[str] = _STREAM
    batch: ClassVar[int] = 1 << 16

    def resume(self, path: Callable[[str], str]) -> None:
        """The state tells all."""

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table, all of which are there when the header is made."""
        self._events = events
        self._names = names
        self._kinds: dict[int, _CtfRows] = {}
        self._tasks: dict[int, bytes] = {}
        self._programs: ByProgram[bytes] = ByProgram()
        self._symbols = self._programs.symbols(0)
        self._lost = 0
        self._last = 0
        self._aside: list[Write] = []

    @property
    def is_directory(self) -> bool:
        """Always."""
        return True

    @classmethod
    def owns(cls, name: str) -> bool:
        """The two files."""
        return name in (_STREAM, _METADATA)

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """The description, which is a file of its own."""
        self._lost = self._last = 0
        self._aside = [Write(self._metadata().encode(), _METADATA)]
        return b""

    def rows(self, data: bytes) -> bytes:
        """A packet with the events of the rows."""
        out: list[bytes] = [b""]
        kinds, tasks = self._kinds, self._tasks
        head, event_head = HEAD.unpack_from, _EVENT_HEAD.pack
        position, end, first, last = 0, len(data), None, self._last
        while position < end:
            event_id, size, thread = head(data, position)
            if thread > THREAD_MOST:
                event_id, thread = whole(event_id, thread)
            kind = kinds.get(event_id) or self._kind(event_id)
            words = kind.unpack(data, position)
            last = words[0]
            if first is None:
                first = last
            task = tasks.get(thread) or self._task(thread)
            out.append(event_head(event_id, last) + task + kind.make(words, data, position))
            position += size * 8
        if first is None:
            return b""
        self._last = last
        body = b"".join(out)
        return self._packet(body, first, last)

    def lost(self, count: int) -> bytes:
        """A packet without events that counts them: they are missing behind the one before."""
        self._lost += count
        return self._packet(b"", self._last, self._last)

    def end(self) -> bytes:
        """Nothing."""
        return b""

    def aside(self) -> list[Write]:
        """The description."""
        found, self._aside = self._aside, []
        return found

    def renamed(self, thread_id: int) -> None:
        """A thread has another name from here on."""
        self._tasks.pop(thread_id, None)

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        self._symbols = self._programs.symbols(number)

    def state(self) -> object:
        """Events lost so far, and the last time."""
        return [self._lost, self._last]

    def restore(self, state: object) -> None:
        """Go on counting."""
        lost, last = cast("tuple[Any, Any]", state)
        self._lost, self._last = int(lost), int(last)

    def _packet(self, body: bytes, first: int, last: int) -> bytes:
        bits = 8 * (_PACKET.size + len(body))
        return _PACKET.pack(_MAGIC, 0, bits, bits, first, last, self._lost) + body

    def _task(self, thread: int) -> bytes:
        """Process, thread and name: what stands before an event's own fields."""
        comm = self._names.comm(thread)
        found = struct.pack("<ii", self._names.process(thread), thread)
        found += (b"" if comm is None else comm.split(b"\0")[0]) + b"\0"
        if comm is not None:
            self._tasks[thread] = found
        return found

    def _kind(self, event_id: int) -> _CtfRows:
        info = self._events[event_id]
        if info.source is EventSource.STACK:
            unpack = struct.Struct("<8xQQ").unpack_from
            made = _CtfRows(info, unpack, self._stack_maker(info))
        else:
            made = _CtfRows(info, unpacker(info), self._maker(info))
        self._kinds[event_id] = made
        return made

    def _stack_maker(self, info: EventInfo) -> Make:
        def make(words: Words, data: bytes, position: int) -> bytes:
            found = frames(info, data, position)
            names = b"".join(self._symbol(address) for address in found)
            return struct.pack(f"<H{len(found)}Q", len(found), *found) + names

        return make

    def _maker(self, info: EventInfo) -> Make:
        """Makes the fields: addresses and their name, then the arguments in their order."""
        steps: list[Callable[[Words, bytes, int], bytes]] = []
        code, indices = "Q" * (2 if info.returns else 1), [1, 2] if info.returns else [1]

        def numbers(code: str, indices: list[int]) -> Make:
            pack = struct.Struct(f"<{code}").pack
            first, behind = indices[0], indices[-1] + 1  # they follow each other
            return lambda words, data, position: pack(*words[first:behind])

        def string(index: int) -> Make:
            def make(words: Words, data: bytes, position: int) -> bytes:
                found = string_at(data, position, words[index])
                return _FAULT if found is None else found.split(b"\0")[0] + b"\0"

            return make

        at = 3 if info.returns else 2
        for column in info.columns:
            places = range(at, at + column.words)
            at += column.words
            if column.type.is_string:
                if indices:
                    steps.append(numbers(code, indices))
                    code, indices = "", []
                steps += [string(index) for index in places]
            else:
                code += _letter(column) * column.words
                indices += places
        if indices:
            steps.append(numbers(code, indices))
        symbolic = [1] if info.symbolic else []
        at = 3 if info.returns else 2
        for column in info.columns:
            if column.type.kind is ValueKind.SYMBOL:
                symbolic += range(at, at + column.words)
            at += column.words
        symbol = self._symbol

        def all_steps(words: Words, data: bytes, position: int) -> bytes:
            found = [step(words, data, position) for step in steps]
            found += [symbol(words[index]) for index in symbolic]
            return b"".join(found)

        if len(steps) == 1 and not symbolic:
            return steps[0]
        if len(steps) == 1 and symbolic == [1]:
            only = steps[0]
            return lambda words, data, position: only(words, data, position) + symbol(words[1])
        return all_steps

    def _symbol(self, address: int) -> bytes:
        found = self._symbols.get(address)
        if found is None:
            text = self._names.symbol(address).encode(errors="surrogateescape")
            found = self._symbols[address] = text.split(b"\0")[0] + b"\0"
        return found

    # -- the description ------------------------------------------------------------------

    def _metadata(self) -> str:
        out = [_PREAMBLE % (_quoted(self._names.arch), _TYPES)]
        for info in self._events.values():
            title = _quoted(f"{info.group}:{info.name}")
            fields = "".join(f"        {line}\n" for line in _fields(info))
            out.append(
                f"event {{\n    id = {info.id};\n    name = {title};\n    stream_id = 0;\n"
                f"    fields := struct {{\n{fields}    }};\n}};\n\n"
            )
        return "".join(out)


_TYPES: Final = "".join(
    f"typealias integer {{ size = {bits}; align = 8; signed = {signed}; base = {base}; }}"
    f" := {name};\n"
    for bits in (8, 16, 32, 64)
    for name, signed, base in (
        (f"u{bits}", "false", 10),
        (f"s{bits}", "true", 10),
        (f"x{bits}", "false", 16),
    )
) + "".join(
    f"typealias floating_point {{ exp_dig = {exponent}; mant_dig = {mantissa}; align = 8; }}"
    f" := f{exponent + mantissa};\n"
    for exponent, mantissa in ((8, 24), (11, 53))
)
_PREAMBLE: Final = """/* CTF 1.8 */

trace {
    major = 1;
    minor = 8;
    byte_order = le;
    packet.header := struct {
        integer { size = 32; align = 8; signed = false; base = 16; } magic;
        integer { size = 32; align = 8; signed = false; } stream_id;
    };
};

env {
    domain = "guest";
    tracer_name = "kprobe-tui";
    tracer_major = 1;
    tracer_minor = 0;
    architecture = %s;
};

clock {
    name = ticks;
    description = "blocks that the guest has executed";
    freq = 1000000000;
    offset = 0;
};

%s
typealias integer {
    size = 64; align = 8; signed = false; map = clock.ticks.value;
} := ticks_t;

stream {
    id = 0;
    packet.context := struct {
        u64 content_size;
        u64 packet_size;
        ticks_t timestamp_begin;
        ticks_t timestamp_end;
        u64 events_discarded;
    };
    event.header := struct {
        u32 id;
        ticks_t timestamp;
    };
    event.context := struct {
        s32 _pid;
        s32 _tid;
        string _comm;
    };
};

"""


def _fields(info: EventInfo) -> list[str]:
    """The declarations of an event's fields; readers take a `_` off their names."""
    if info.source is EventSource.STACK:
        return ["u16 _depth;", "x64 _frames[_depth];", "string _symbols[_depth];"]
    names = ("__probe_func", "__probe_ret_ip") if info.returns else ("__probe_ip",)
    out = [f"x64 _{name};" for name in names]
    shown = ["string ___probe_symbol;"] if info.symbolic else []
    for column in info.columns:
        name = f"_{_identifier(column.name)}"
        size = f"[{column.type.count}]" if column.type.count else ""
        out.append(f"{_type(column)} {name}{size};")
        if column.type.kind is ValueKind.SYMBOL:
            shown.append(f"string _{name}_symbol{size};")
    return out + shown


def _type(column: Column) -> str:
    kind = column.type
    if kind.is_string:
        return "string"
    letter = {
        ValueKind.SIGNED: "s",
        ValueKind.HEX: "x",
        ValueKind.SYMBOL: "x",
        ValueKind.FLOAT: "f",
    }
    return f"{letter.get(kind.kind, 'u')}{8 * kind.size}"


def _letter(column: Column) -> str:
    if column.type.kind is ValueKind.FLOAT:
        return {4: "f", 8: "d"}[column.type.size]
    letter = _SIZES[column.type.size]
    return letter if column.type.kind is ValueKind.SIGNED else letter.upper()


def _identifier(name: str) -> str:
    return "".join(each if each.isascii() and each.isalnum() else "_" for each in name)


def _quoted(text: str) -> str:
    return f'"{escaped(text, quoted=True)}"'
