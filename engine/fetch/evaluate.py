"""The host evaluator: fetch arguments compiled to a closure that records one hit as a row.

What an argument fetches is the kernel's business (kernel/trace/trace_probe_tmpl.h) but for what
it leaves undefined:

- Unreadable memory gives 0 for a number (the kernel leaves what the buffer held before) and no
  bytes for a string, which prints as "(fault)".
- Every element of an array is fetched on its own: one that is unreadable harms no other.
- A string without a NUL in 4,096 bytes is cut (a uprobe of Linux shows "(fault)" for it).

An event whose arguments are plain registers costs one batch read and one `pack_into` a hit.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from mmap import mmap
from operator import itemgetter
from typing import Any, Literal, Protocol, TypeAlias, cast

from engine.arch.base import Arch
from engine.arch.program import (
    RETURN_HEAD,
    ROW_HEAD,
    Base,
    FetchArg,
    FieldType,
    Kind,
    RecordLayout,
    Source,
)
from engine.errors import GuestFaultError
from engine.fetch.compile import argument

STRING_MAX = 4096
"""Most bytes of a string in a row, its NUL included (MAX_STRING_SIZE of trace_probe.h)."""

ROW_MAX = 0xFFFF
"""Most words of a row."""

Recorder: TypeAlias = Callable[..., None]
"""Records a hit: called with the thread id; for a return event also with the address returned
to, and with what its `capturer` gave at the entry if it has one."""

Registers: TypeAlias = tuple[int, ...]
Number: TypeAlias = Callable[[Registers], int]
Numbers: TypeAlias = Callable[[Registers], Sequence[int]]
Text: TypeAlias = Callable[[Registers], bytes]
Texts: TypeAlias = Callable[[Registers], Sequence[bytes]]

_WORD = (1 << 64) - 1
_NUMBER, _NUMBERS, _TEXT, _TEXTS = range(4)
_REGISTER_SOURCES = (Source.REGISTER, Source.STACK_POINTER, Source.RETVAL)


class FetchCpu(Protocol):
    """What an evaluation asks of a processor."""

    def reader(self, names: tuple[str, ...]) -> Callable[[], tuple[int, ...]]:
        """A function that reads these registers at once; the values are unsigned."""

    def now(self) -> int:
        """The clock that events carry."""


class FetchMemory(Protocol):
    """What an evaluation asks of the guest's memory; both raise `GuestFaultError`."""

    def read(self, address: int, size: int) -> bytes:
        """Copy bytes out."""

    def read_cstring(self, address: int, limit: int) -> bytes:
        """Bytes up to a NUL, without it; cut at `limit` bytes if there is none."""


class RowSink(Protocol):
    """Where rows go: memory that is zero from `position` up to `limit`, both in bytes."""

    position: int

    @property
    def buffer(self) -> mmap | bytearray | memoryview:
        """The memory; the same one for good."""

    @property
    def limit(self) -> int:
        """Where it ends."""

    def drain(self) -> None:
        """Make room: moves `position` back."""

    @property
    def capacity(self) -> int:
        """Bytes that are free after a drain."""


@dataclass(frozen=True, slots=True)
class Site:
    """What differs between the probes of one event.

    Attributes:
        address: of the probe, as the row shows it (a return event: of the function).
        image_base: what `@+OFF` is relative to: the probe's address minus its file offset.
    """

    address: int
    image_base: int = 0


@dataclass(frozen=True, slots=True)
class FetchContext:
    """What the recorders of one guest share.

    Attributes:
        arch: the guest's architecture.
        cpu: its processor, at the probe hit.
        memory: its memory.
        sink: where rows go.
        comm: a thread's name by its id, for `$comm`.
        symbol: the `%pS` text of an address, for the type `symstr`.
        where: address of a symbol in the guest, for `@SYM`; None while its file is not there.
    """

    arch: Arch
    cpu: FetchCpu
    memory: FetchMemory
    sink: RowSink
    comm: Callable[[int], bytes]
    symbol: Callable[[int], str]
    where: Callable[[str], int | None] = lambda name: None


def recorder(event_id: int, layout: RecordLayout, site: Site, context: FetchContext) -> Recorder:
    """Compile an event's arguments for one probe.

    Args:
        event_id: 1 to 65535.
        layout: of its rows; says whether it is a return event.
        site: the probe.
        context: the guest.

    Raises:
        ValueError: an argument that no definition can contain: a string or an array of
            something that is not in memory.
    """
    if not 0 < event_id <= 0xFFFF:
        raise ValueError(f"event id {event_id} does not fit a row")
    args = [field.arg for field in layout.fields]
    if all(_is_plain(arg) for arg in args):
        names = tuple(_register(arg, context.arch) for arg in args)
        return _plain_recorder(event_id, layout, site, names, context)
    text = _only_text(args, context.arch)
    cursor: memoryview | None = getattr(context.sink, "cursor", None)
    if text is not None and layout.head == ROW_HEAD and cursor is not None:
        return _text_recorder(event_id, layout, site, text, context, cursor)
    return _general_recorder(event_id, layout, site, args, context)


def capturer(
    layout: RecordLayout, site: Site, context: FetchContext
) -> Callable[[], tuple[int, ...]] | None:
    """What a return event's probe reads at the entry of the function; None for nothing.

    The values are words: arguments of the function, what other fetches give there, the time.
    """
    wanted = _captured(layout)
    if not wanted:
        return None
    compiler = _Compiler(site, context)
    fetches = [compiler.at_entry(one) for one in wanted if one is not None]
    read = context.cpu.reader(tuple(compiler.registers)) if compiler.registers else tuple
    now, timed = context.cpu.now, None in wanted

    def capture() -> tuple[int, ...]:
        registers = read()
        values = [fetch(registers) for fetch in fetches]
        return (*values, now()) if timed else tuple(values)

    return capture


_Captured: TypeAlias = "tuple[Base, tuple[int, ...]] | int | None"
"""What is captured: a fetch's base and dereferences, a number of an argument, the time."""


def _captured(layout: RecordLayout) -> list[_Captured]:
    """What is captured, in order; the time comes last."""
    found: list[_Captured] = []
    timed = False
    for field in layout.fields:
        base = field.arg.base
        wanted = base.value if base.source is Source.ENTRY else base.fetch
        timed = timed or base.source is Source.DURATION
        if wanted is not None and wanted not in found:
            found.append(wanted)
    return [*found, None] if timed else found


def _is_plain(arg: FetchArg) -> bool:
    return (
        arg.base.source in _REGISTER_SOURCES
        and not arg.derefs
        and not arg.type.count
        and not arg.type.is_string
        and arg.type.kind is not Kind.BITFIELD
    )


def _register(arg: FetchArg, arch: Arch) -> str:
    if arg.base.source is Source.RETVAL:
        return arch.probes.retval
    return arg.base.register if arg.base.source is Source.REGISTER else arch.roles.sp


def _plain_recorder(
    event_id: int, layout: RecordLayout, site: Site, names: tuple[str, ...], context: FetchContext
) -> Recorder:
    pack_into: Callable[..., None] = struct.Struct(f"<II{layout.words - 1}Q").pack_into
    read = context.cpu.reader(names) if names else tuple
    now, sink, address = context.cpu.now, context.sink, site.address
    head = event_id | layout.words << 16
    size = layout.words * 8
    buffer = sink.buffer

    # Joined tuples: a call with single arguments before a starred one builds a list first.
    def entry(thread_id: int) -> None:
        position = sink.position
        if position + size > sink.limit:
            sink.drain()
            position = sink.position
        pack_into(*(buffer, position, head, thread_id, now(), address) + read())  # noqa: RUF005
        sink.position = position + size

    shared: memoryview | None = getattr(sink, "cursor", None)
    cursor = cast(memoryview, shared)
    start, limit = sink.limit - sink.capacity, sink.limit

    def quick(thread_id: int) -> None:
        """The same without a property's call, for the sink of nearly all events."""
        position = start + cursor[0]
        if position + size > limit:
            sink.drain()
            position = start
        pack_into(*(buffer, position, head, thread_id, now(), address) + read())  # noqa: RUF005
        cursor[0] += size

    if layout.head == ROW_HEAD and shared is not None:
        return quick

    def leave(thread_id: int, returned_to: int) -> None:
        position = sink.position
        if position + size > sink.limit:
            sink.drain()
            position = sink.position
        head_of_row = (buffer, position, head, thread_id, now(), address, returned_to)
        pack_into(*head_of_row + read())
        sink.position = position + size

    return leave if layout.head > 3 else entry


@dataclass(frozen=True, slots=True)
class _Text:
    """The one string among plain arguments.

    Attributes:
        names: the arguments' registers in order, but for the string's; that comes last.
        index: of the string among the arguments.
        offset: of its first byte from what its register holds.
    """

    names: tuple[str, ...]
    index: int
    offset: int


def _only_text(args: list[FetchArg], arch: Arch) -> _Text | None:
    """Arguments of which all are plain but one, a string that a register points to."""
    rest = [index for index, arg in enumerate(args) if not _is_plain(arg)]
    if len(rest) != 1:
        return None
    arg = args[rest[0]]
    pointed = arg.base.source in _REGISTER_SOURCES and len(arg.derefs) == 1
    if not pointed or arg.type.kind not in (Kind.STRING, Kind.USTRING) or arg.type.count:
        return None
    plain = [other for other in args if other is not arg]
    names = tuple(_register(other, arch) for other in (*plain, arg))
    return _Text(names, rest[0], arg.derefs[0])


def _text_recorder(
    event_id: int,
    layout: RecordLayout,
    site: Site,
    text: _Text,
    context: FetchContext,
    cursor: memoryview,
) -> Recorder:
    """Registers and one string: a batch read, one look into memory, one `pack_into`.

    `cursor` is the sink's own, see `engine.trace.staging`: a property costs a call each time.
    """
    read, load = context.cpu.reader(text.names), context.memory.read_cstring
    now, sink, address = context.cpu.now, context.sink, site.address
    fixed, index, offset = layout.words * 8, text.index, text.offset
    last = index == len(text.names) - 1
    mask, longest = (1 << context.arch.bits) - 1, STRING_MAX - 1
    if fixed + STRING_MAX > min(ROW_MAX * 8, sink.capacity):
        raise ValueError(f"a row of {layout.words} words and a string does not fit")
    buffer, start, limit = sink.buffer, sink.limit - sink.capacity, sink.limit
    packers: dict[int, Callable[..., None]] = {}

    def packer(size: int) -> Callable[..., None]:
        """For rows of a size: what is packed last is padded with zeros."""
        found = struct.Struct(f"<II{layout.words - 1}Q{size - fixed}s").pack_into
        packers[size] = found
        return found

    def record(thread_id: int) -> None:
        values = read()
        try:
            data = load(values[-1] + offset & mask, longest)
            length = len(data) + 1
        except GuestFaultError:
            data, length = b"", 0
        size = fixed + length + 7 & ~7
        position = start + cursor[0]
        if position + size > limit:
            sink.drain()
            position = start + cursor[0]
        pack = packers[size] if size in packers else packer(size)
        head = (buffer, position, event_id | size << 13, thread_id, now(), address)
        if last:
            pack(*(head + values[:-1] + (fixed | length << 32, data)))
        else:
            tail = (fixed | length << 32, *values[index:-1], data)
            pack(*(head + values[:index] + tail))
        cursor[0] += size

    return record


def _general_recorder(
    event_id: int, layout: RecordLayout, site: Site, args: list[FetchArg], context: FetchContext
) -> Recorder:
    captured = _captured(layout)
    compiler = _Compiler(site, context, captured)
    plan = [compiler.compile(arg) for arg in args]
    pack_into = struct.Struct(f"<II{layout.words - 1}Q").pack_into
    read = context.cpu.reader(tuple(compiler.registers)) if compiler.registers else tuple
    now, sink, address = context.cpu.now, context.sink, site.address
    fixed = layout.words * 8
    room = min(ROW_MAX * 8, sink.capacity)
    if fixed > room:
        raise ValueError(f"a row of {layout.words} words does not fit")
    buffer = sink.buffer
    thread = compiler.thread
    returns = layout.head == RETURN_HEAD

    absent = (0,) * len(captured)

    def record(thread_id: int, returned_to: int = 0, entry: tuple[int, ...] = absent) -> None:
        thread[0] = thread_id
        registers = entry + read()
        words: list[int] = []
        texts: list[bytes] = []
        end = fixed
        for mode, fetch in plan:
            if mode == _NUMBER:
                words.append(fetch(registers))
                continue
            if mode == _NUMBERS:
                words.extend(fetch(registers))
                continue
            for text in (fetch(registers),) if mode == _TEXT else fetch(registers):
                size = len(text)
                if end + size > room:
                    text = text[: room - end - 1] + b"\0" if room - end > 1 else b""
                    size = len(text)
                words.append(end | size << 32)
                texts.append(text)
                end += size
        size = (end + 7) & ~7
        position = sink.position
        if position + size > sink.limit:
            sink.drain()
            position = sink.position
        if texts:
            # Before the words: a row whose first word is zero does not exist yet.
            buffer[position + fixed : position + end] = b"".join(texts)
        head: tuple[int, ...] = (event_id | size << 13, thread_id, now(), address)
        if returns:
            head += (returned_to,)
        pack_into(buffer, position, *head, *words)
        sink.position = position + size

    return record


class _Compiler:
    """Turns arguments into functions of the registers read at a hit."""

    def __init__(
        self, site: Site, context: FetchContext, captured: Sequence[_Captured] = ()
    ) -> None:
        """`captured` is what stands in front of the registers, see `capturer`."""
        self.registers: list[str] = []
        self._captured = captured
        self.thread = [0]
        """The thread of the hit being recorded."""
        self._site = site
        self._context = context
        self._read = context.memory.read
        self._order = cast(Literal["little", "big"], context.arch.byteorder)
        self._word = context.arch.bits // 8
        self._mask = (1 << context.arch.bits) - 1

    def compile(self, arg: FetchArg) -> tuple[int, Callable[[Registers], Any]]:
        """What comes of an argument, and its function: `Number`, `Numbers`, `Text` or `Texts`."""
        kind, count = arg.type.kind, arg.type.count
        if arg.base.source is Source.COMM:
            return _TEXT, self._comm
        if arg.base.source is Source.TEXT:
            data = arg.base.text[: STRING_MAX - 1] + b"\0"
            return _TEXT, lambda registers: data
        address = self._address(arg)
        if kind in (Kind.STRING, Kind.USTRING):
            if address is None:
                raise ValueError(f"{arg.text}: a string that is not in memory")
            return (_TEXTS, self._strings(address, count)) if count else self._string(address)
        if count:
            if address is None:
                raise ValueError(f"{arg.text}: an array that is not in memory")
            numbers = self._array(arg, address)
            return (_TEXTS, self._symbols(numbers)) if kind is Kind.SYMSTR else (_NUMBERS, numbers)
        number = self._value(arg) if address is None else self._load(address, arg.type.size)
        if kind is Kind.BITFIELD:
            number = _bitfield(number, arg.type.offset, arg.type.width)
        if kind is Kind.SYMSTR:
            return _TEXT, self._symbol(number)
        return _NUMBER, number

    def _index(self, name: str) -> int:
        if name not in self.registers:
            self.registers.append(name)
        return len(self._captured) + self.registers.index(name)

    def at_entry(self, wanted: tuple[Base, tuple[int, ...]] | int) -> Number:
        """The word that is captured at the entry; 0 for one that cannot be read."""
        if isinstance(wanted, int):
            wanted = argument(self._context.arch, wanted), ()
        fetch = self.compile(FetchArg("", "", *wanted, FieldType(Kind.HEX, self._word)))[1]
        return cast(Number, fetch)

    def _value(self, arg: FetchArg) -> Number:
        """The value that an argument begins with."""
        base = arg.base
        if base.source in _REGISTER_SOURCES:
            return self._item(_register(arg, self._context.arch))
        if base.source in (Source.ENTRY, Source.AT_ENTRY):
            wanted = base.value if base.source is Source.ENTRY else base.fetch
            return cast(Number, itemgetter(self._captured.index(wanted)))
        if base.source is Source.DURATION:
            index, now = self._captured.index(None), self._context.cpu.now
            return lambda registers: now() - registers[index]
        if base.source is Source.STACK:
            sp = self._item(self._context.arch.roles.sp)
            mask, above = self._mask, base.value * self._word
            return self._load(lambda registers: sp(registers) + above & mask, self._word)
        if base.source is Source.SYMBOL:
            return self._found(base.text.decode(errors="surrogateescape"), base.value)
        value = base.value + (self._site.image_base if base.source is Source.IMAGE else 0)
        value &= self._mask if base.source in (Source.ADDRESS, Source.IMAGE) else _WORD
        return lambda registers: value

    def _found(self, name: str, offset: int) -> Number:
        """The address of a symbol plus an offset."""
        where, mask = self._context.where, self._mask

        def address(registers: Registers) -> int:
            found = where(name)
            if found is None:
                raise GuestFaultError(0, "read")
            return found + offset & mask

        return address

    def _item(self, name: str) -> Number:
        # A reader of one register gives a tuple too.
        return cast(Number, itemgetter(self._index(name)))

    def _address(self, arg: FetchArg) -> Number | None:
        """Where the element stands, None for one that is not in memory; may raise a fault."""
        derefs = arg.derefs
        if arg.base.source in (Source.ADDRESS, Source.IMAGE, Source.SYMBOL):
            derefs = (0, *derefs)
        if not derefs:
            return None
        if arg.base.source in _REGISTER_SOURCES:
            address = self._beside(_register(arg, self._context.arch), derefs[0])
        else:
            address = _add(self._value(arg), derefs[0], self._mask)
        for offset in derefs[1:]:
            address = self._follow(address, offset)
        return address

    def _beside(self, name: str, offset: int) -> Number:
        """An address relative to a register, with as few calls as can be: the usual case."""
        if not offset:
            return self._item(name)
        index, mask = self._index(name), self._mask
        return lambda registers: registers[index] + offset & mask

    def _follow(self, pointer: Number, offset: int) -> Number:
        read, word, order, mask = self._read, self._word, self._order, self._mask

        def follow(registers: Registers) -> int:
            return int.from_bytes(read(pointer(registers), word), order) + offset & mask

        return follow

    def _load(self, address: Number, size: int) -> Number:
        read, order = self._read, self._order

        def load(registers: Registers) -> int:
            try:
                return int.from_bytes(read(address(registers), size), order)
            except GuestFaultError:
                return 0

        return load

    def _array(self, arg: FetchArg, address: Number) -> Numbers:
        read, order, mask = self._read, self._order, self._mask
        size, count = arg.type.size, arg.type.count
        code = {1: "B", 2: "H", 4: "I", 8: "Q"}[size]
        unpack = struct.Struct(f"{'<' if order == 'little' else '>'}{count}{code}").unpack
        low, bits = arg.type.offset, (1 << arg.type.width) - 1

        def one(at: int) -> int:
            try:
                return int.from_bytes(read(at & mask, size), order)
            except GuestFaultError:
                return 0

        def load(registers: Registers) -> Sequence[int]:
            try:
                at = address(registers)
            except GuestFaultError:
                return (0,) * count
            try:
                return unpack(read(at, size * count))
            except GuestFaultError:
                return tuple(one(at + size * index) for index in range(count))

        def fields(registers: Registers) -> Sequence[int]:
            return [value >> low & bits for value in load(registers)]

        return fields if arg.type.kind is Kind.BITFIELD else load

    def _string(self, address: Number) -> tuple[int, Text]:
        read = self._context.memory.read_cstring

        def string(registers: Registers) -> bytes:
            try:
                return read(address(registers), STRING_MAX - 1) + b"\0"
            except GuestFaultError:
                return b""

        return _TEXT, string

    def _strings(self, address: Number, count: int) -> Texts:
        """An array of strings is one of pointers."""
        read, load = self._context.memory.read_cstring, self._read
        word, order, mask = self._word, self._order, self._mask

        def one(at: int) -> bytes:
            try:
                pointer = int.from_bytes(load(at & mask, word), order)
                return read(pointer, STRING_MAX - 1) + b"\0"
            except GuestFaultError:
                return b""

        def strings(registers: Registers) -> Sequence[bytes]:
            try:
                at = address(registers)
            except GuestFaultError:
                return (b"",) * count
            return [one(at + word * index) for index in range(count)]

        return strings

    def _comm(self, registers: Registers) -> bytes:
        return self._context.comm(self.thread[0]) + b"\0"

    def _symbol(self, number: Number) -> Text:
        symbol = self._context.symbol
        return lambda registers: symbol(number(registers)).encode() + b"\0"

    def _symbols(self, numbers: Numbers) -> Texts:
        symbol = self._context.symbol
        return lambda registers: [symbol(value).encode() + b"\0" for value in numbers(registers)]


def _add(value: Number, offset: int, mask: int) -> Number:
    return lambda registers: value(registers) + offset & mask


def _bitfield(number: Number, low: int, width: int) -> Number:
    bits = (1 << width) - 1
    return lambda registers: number(registers) >> low & bits
