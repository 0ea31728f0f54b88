"""Events as tables of typed columns, for pandas, DuckDB and their kin: Parquet and Arrow.

One table an event type: time, thread, process and place, the arguments with their types, and the
call stack behind the event. A trace of one event type is a file, of several a directory with a
file for each. Rows are written in groups, as they come from the ring: a Parquet file gets a new
footer behind each group (the one before stays where it is, unused), an Arrow file is a stream.
What was written is a whole file at any time but while a group is being written.

All of it is done by pyarrow, on columns that are cut out of rows without looking at one.
"""

import os
import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Final, Literal, cast

from msgspec import Struct, field

from engine.arch.program import EVENT_MOST, THREAD_MOST, ValueKind
from engine.errors import CommandError
from engine.trace.formats.base import ByProgram, Names, Write
from engine.trace.formats.values import frames, text
from engine.trace.rows import (
    HEAD,
    Column,
    EventInfo,
    EventSource,
    EventTable,
    string_at,
    uniform,
    whole,
)

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as _missing:
    raise CommandError(
        "formats parquet and arrow need the package pyarrow, and so does sweep: "
        "pip install 'kprobe-tui[columns]'"
    ) from _missing

_BATCH: Final = 8 << 20
_GROUPS_MOST: Final = 32
"""Row groups of a file in a directory: each has the footers of those before it behind it."""
_END_OF_STREAM: Final = 8
_SIZES: Final[dict[int, Literal["B", "H", "I", "Q"]]] = {1: "B", 2: "H", 4: "I", 8: "Q"}
_BYTE: Final = 8
_LONG: Final = 1000
"""Bytes of a value that is worth being compressed."""
_FIRST: Final = ("time", "lost_before", "pid", "tid", "cpu", "comm", "address", "symbol")

Cut = Callable[[bytes, int], Any]
"""Makes a column of so many rows of one event, all of which have their words in line."""


class _Pending(Struct):
    """Rows of one event that are being put together.

    Attributes:
        fixed: their words, without strings' bytes.
        rows: the whole rows, where there are strings.
        stacks: the call stack behind each, where call stacks are recorded.
        lost: (row, events missing before it).
    """

    fixed: list[bytes] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    stacks: list[tuple[int, ...]] = field(default_factory=list)
    lost: list[tuple[int, int]] = field(default_factory=list)


class _EventColumns(Struct):
    """One event's table.

    Attributes:
        info: the event.
        schema: of the table.
        stem: of its file's name.
        groups: row groups in the file at hand.
        part: number of that file, 0 for the first.
        size: bytes of that file.
        meta: its footer so far.
    """

    info: EventInfo
    schema: Any
    stem: str
    groups: int = 0
    part: int = 0
    size: int = 0
    meta: Any = None


class ColumnsFormat(ABC):
    """The parts that both formats share; see `ParquetFormat` and `ArrowFormat`."""

    wants_stacks: ClassVar[bool] = False
    is_text: ClassVar[bool] = False
    event_most: ClassVar[int] = EVENT_MOST
    main: ClassVar[str] = ""
    batch: ClassVar[int] = _BATCH
    suffix: ClassVar[str] = ""

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table, all of which are there when the header is made."""
        self._events = events
        self._names = names
        self._tables: dict[int, _EventColumns] = {}
        self._programs: ByProgram[str] = ByProgram()
        self._symbols = self._programs.symbols(0)
        self._missing = 0
        self._aside: list[Write] = []

    @property
    def is_directory(self) -> bool:
        """True if there are several event types."""
        return len([info for info in self._events.values() if not _is_stack(info)]) > 1

    @classmethod
    def owns(cls, name: str) -> bool:
        """A file of these formats."""
        return name.endswith((".parquet", ".arrows"))

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """Empty tables."""
        self._tables.clear()
        self._missing = 0
        self._aside.clear()
        stacks = any(map(_is_stack, self._events.values()))
        used: set[str] = set()
        for info in self._events.values():
            if _is_stack(info):
                continue
            stem = file_stem(info.group, info.name)
            while stem in used:
                stem += "_"
            used.add(stem)
            schema = _schema(info, self._names.arch, stacks)
            table = self._tables[info.id] = _EventColumns(info, schema, stem)
            self._begin(table)
        return b""

    def rows(self, data: bytes) -> bytes:
        """A row group for each event type."""
        for event_id, pending in self._sorted(data).items():
            table = self._tables[event_id]
            self._append(table, self._record_batch(table, pending))
        return b""

    def lost(self, count: int) -> bytes:
        """Note lost events, told with the next row."""
        self._missing += count
        return b""

    def end(self) -> bytes:
        """Nothing: all is written."""
        return b""

    def aside(self) -> list[Write]:
        """The row groups."""
        found, self._aside = self._aside, []
        return found

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        self._symbols = self._programs.symbols(number)

    def state(self) -> object:
        """Files, their sizes and row groups; events that are missing before the next one."""
        tables = [[key, one.groups, one.part, one.size] for key, one in self._tables.items()]
        return [tables, self._missing]

    def restore(self, state: object) -> None:
        """Go on in the same files; `resume` reads what they have."""
        tables, missing = cast("Any", state)
        if not self._tables:
            self.header()
            self._aside.clear()
        for key, groups, part, size in tables:
            table = self._tables[int(key)]
            if table.groups != int(groups) or table.part != int(part):
                table.meta = None
            table.groups, table.part, table.size = int(groups), int(part), int(size)
        self._missing = int(missing)

    def resume(self, path: Callable[[str], str]) -> None:
        """Read what the files have that a state does not tell."""
        for table in self._tables.values():
            if table.meta is None:
                self._read(table, path(self._file(table)))

    def _file(self, table: _EventColumns) -> str:
        """The name of a table's file at hand, "" where it is the only one."""
        if not self.is_directory:
            return ""
        part = f"-{table.part}" if table.part else ""
        return f"{table.stem}{part}{self.suffix}"

    def _put(self, table: _EventColumns, data: bytes) -> None:
        self._aside.append(Write(data, self._file(table)))
        table.size += len(data)

    def _next_file(self, table: _EventColumns) -> None:
        """Begin another file if the one at hand has enough row groups."""
        if table.groups >= _GROUPS_MOST and self.is_directory:
            table.part += 1
            table.groups = table.size = 0
            table.meta = None
            self._begin(table)

    @abstractmethod
    def _begin(self, table: _EventColumns) -> None:
        """Make an empty table."""

    @abstractmethod
    def _append(self, table: _EventColumns, batch: Any) -> None:
        """Write a row group."""

    @abstractmethod
    def _read(self, table: _EventColumns, path: str) -> None:
        """Read what a file has of a table."""

    # -- rows ------------------------------------------------------------------------------

    def _sorted(self, data: bytes) -> dict[int, _Pending]:
        """The rows by event, each with its call stack."""
        found: dict[int, _Pending] = {}
        if not data:
            return found
        only = self._only(data)
        if only is not None:
            found[only] = _Pending([data])
            if self._missing:
                found[only].lost.append((0, self._missing))
                self._missing = 0
            return found
        position, end = 0, len(data)
        head, last = HEAD.unpack_from, None
        tables = self._tables
        while position < end:
            event_id, size, thread = head(data, position)
            if thread > THREAD_MOST:
                event_id, thread = whole(event_id, thread)
            table = tables.get(event_id)
            behind = position + size * 8
            if table is None:
                if last is not None:
                    last.stacks[-1] = frames(self._events[event_id], data, position)
                position = behind
                continue
            last = found.get(event_id)
            if last is None:
                last = found[event_id] = _Pending()
            if self._missing:
                last.lost.append((len(last.stacks), self._missing))
                self._missing = 0
            info = table.info
            last.fixed.append(data[position : position + info.words * 8])
            if info.strings:
                last.rows.append(data[position:behind])
            last.stacks.append(())
            position = behind
        return found

    def _only(self, data: bytes) -> int | None:
        """The event that all rows are of, if they are numbers alone and there is no other."""
        if len(self._tables) != len(self._events):
            return None
        size, rows = uniform(data)
        if not rows:
            return None
        event_id, _, thread = HEAD.unpack_from(data)
        for at in (0, 1, 7):
            if data[at::size].count(data[at]) != rows:
                return None
        event_id = whole(event_id, thread)[0]
        table = self._tables.get(event_id)
        return None if table is None or table.info.strings else event_id

    def _record_batch(self, table: _EventColumns, pending: _Pending) -> Any:
        """The rows of an event as columns."""
        info = table.info
        data = pending.fixed[0] if len(pending.fixed) == 1 else b"".join(pending.fixed)
        count = len(data) // (info.words * 8)
        tids = self._number(data, info, 0, 4, at=4)
        if info.id > 0xFFFF:  # the upper half of the event's number stands beside the thread
            tids = pa.array([one & THREAD_MOST for one in tids.to_pylist()], pa.uint32())
        tids = tids.view(pa.int32())  # they are below `THREAD_MOST`
        threads = tids.dictionary_encode()
        known = threads.dictionary.to_pylist()
        address = self._number(data, info, 2, 8)
        lost = _zeros(pa.uint32(), count)
        if pending.lost:
            counts = dict(pending.lost)
            lost = pa.array([counts.get(row, 0) for row in range(count)], pa.uint32())
        columns = [
            self._number(data, info, 1, 8),
            lost,
            pa.array(map(self._names.process, known), pa.int32()).take(threads.indices),
            tids,
            _zeros(pa.int16(), count),
            pa.array([self._comm(one) for one in known], pa.string()).take(threads.indices),
            address,
            self._symbol_column(address),
        ]
        if info.returns:
            back = self._number(data, info, 3, 8)
            columns += [back, self._symbol_column(back)]
        for column in info.columns:
            columns += self._argument(data, info, column, pending)
        if len(columns) < len(table.schema):
            columns += self._stacks(pending, count)
        return pa.record_batch(columns, schema=table.schema)

    def _comm(self, thread: int) -> str | None:
        comm = self._names.comm(thread)
        return None if comm is None else text(comm)

    @staticmethod
    def _number(data: bytes, info: EventInfo, word: int, size: int, at: int = 0) -> Any:
        """The lowest bytes of a word of each row as unsigned numbers."""
        per = 8 // size
        view = memoryview(data).cast(_SIZES[size])
        cut = view[word * per + at // size :: info.words * per].tobytes()
        kind = {1: pa.uint8, 2: pa.uint16, 4: pa.uint32, 8: pa.uint64}[size]()
        return pa.Array.from_buffers(kind, len(cut) // size, [None, pa.py_buffer(cut)])

    def _symbol_column(self, addresses: Any) -> Any:
        """The names of places."""
        found = addresses.dictionary_encode()
        names = [self._symbol(one) for one in found.dictionary.to_pylist()]
        return pa.array(names, pa.string()).take(found.indices)

    def _symbol(self, address: int) -> str:
        found = self._symbols.get(address)
        if found is None:
            found = text(self._names.symbol(address).encode(errors="surrogateescape"))
            self._symbols[address] = found
        return found

    def _argument(
        self, data: bytes, info: EventInfo, column: Column, pending: _Pending
    ) -> list[Any]:
        """The column of an argument, and that of its names if it is a place."""
        kind = column.type
        words = range(column.word, column.word + column.words)
        if kind.is_string:
            values = [self._strings(pending.rows, word) for word in words]
            if not kind.count:
                return [pa.array(values[0], pa.string())]
            return [pa.array([*zip(*values, strict=True)], pa.list_(pa.string()))]
        parts = [self._number(data, info, word, kind.size) for word in words]
        if kind.kind is ValueKind.CHAR:
            parts = [
                pa.array([text(bytes([one])) for one in part.to_pylist()], pa.string())
                for part in parts
            ]
        elif kind.kind in (ValueKind.SIGNED, ValueKind.FLOAT):
            parts = [part.view(_arrow_type(column)) for part in parts]
        named = parts if kind.kind is ValueKind.SYMBOL else []
        places = [self._symbol_column(part) for part in named]
        if not kind.count:
            return [*parts, *places]
        return [_lists(one) for one in (parts, places) if one]

    @staticmethod
    def _strings(rows: Iterable[bytes], word: int) -> list[str | None]:
        found: list[str | None] = []
        for row in rows:
            (value,) = struct.unpack_from("<Q", row, word * 8)
            one = string_at(row, 0, value)
            found.append(None if one is None else text(one))
        return found

    def _stacks(self, pending: _Pending, count: int) -> list[Any]:
        stacks = pending.stacks or [()] * count
        names = [[self._symbol(one) for one in stack] for stack in stacks]
        return [pa.array(stacks, pa.list_(pa.uint64())), pa.array(names, pa.list_(pa.string()))]


class ParquetFormat(ColumnsFormat):
    """Parquet files, compressed."""

    name: ClassVar[str] = "parquet"
    suffix: ClassVar[str] = ".parquet"

    def renamed(self, thread_id: int) -> None:
        """Names are asked for with each group."""

    def _begin(self, table: _EventColumns) -> None:
        table.meta = None
        self._put(table, _empty_parquet(table.schema.serialize().to_pybytes()))

    def _append(self, table: _EventColumns, batch: Any) -> None:
        self._next_file(table)
        # Offsets of a row group are those of the file that it comes to stand in.
        hole = _Hole()
        writer = _parquet_writer(table.schema, hole.out, compressed=batch.nbytes > _LONG)
        hole.begin(table.size)
        writer.write_batch(batch)
        writer.close()
        meta = writer.writer.metadata
        if table.meta is None:
            table.meta = meta
        else:
            table.meta.append_row_groups(meta)
        footer = pa.BufferOutputStream()
        table.meta.write_metadata_file(footer)
        data = hole.taken()
        (size,) = struct.unpack_from("<I", data, len(data) - 8)
        table.groups += 1
        self._put(table, data[: -8 - size] + footer.getvalue().to_pybytes()[4:])

    def _read(self, table: _EventColumns, path: str) -> None:
        if table.groups:
            try:
                table.meta = pq.read_metadata(path)
            except (OSError, pa.ArrowException) as error:
                raise CommandError(f"{path} was changed since: {error}") from error


def _parquet_writer(schema: Any, out: Any, *, compressed: bool) -> Any:
    """A writer of row groups; to compress a few rows costs more than all else of them."""
    texts = [each.name for each in schema if pa.types.is_string(each.type)]
    # A list's values have a path of their own.
    texts += [f"{name}.list.element" for name in ("stack", "frames")]
    return pq.ParquetWriter(
        out, schema, compression="zstd" if compressed else "none", use_dictionary=texts,
        column_encoding={"time": "DELTA_BINARY_PACKED"}, write_statistics=True,
    )  # fmt: skip


@lru_cache
def _empty_parquet(schema: bytes) -> bytes:
    """A whole file without rows, of a schema as Arrow's IPC has it."""
    out = pa.BufferOutputStream()
    _parquet_writer(pa.ipc.read_schema(pa.py_buffer(schema)), out, compressed=False).close()
    return bytes(out.getvalue())


class ArrowFormat(ColumnsFormat):
    """Arrow's IPC streams, compressed."""

    name: ClassVar[str] = "arrow"
    suffix: ClassVar[str] = ".arrows"

    def renamed(self, thread_id: int) -> None:
        """Names are asked for with each group."""

    def _begin(self, table: _EventColumns) -> None:
        self._put(table, table.schema.serialize().to_pybytes())

    def _append(self, table: _EventColumns, batch: Any) -> None:
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_batch(batch)
        front = len(table.schema.serialize())
        table.groups += 1
        self._put(table, sink.getvalue().to_pybytes()[front:-_END_OF_STREAM])

    def _next_file(self, table: _EventColumns) -> None:
        """A stream has no footers."""

    def _read(self, table: _EventColumns, path: str) -> None:
        """A stream goes on as it is."""


class _Hole:
    """A file in memory whose first byte stands somewhere in another file: in front is a hole."""

    def __init__(self) -> None:
        self._file = os.memfd_create("columns")
        self._start = 0
        self.out = pa.OSFile(f"/proc/self/fd/{self._file}", "wb")

    def begin(self, start: int) -> None:
        """Bytes from here on stand at this offset of the other file; those before do not."""
        self._start = os.lseek(self.out.fileno(), start, os.SEEK_SET)

    def taken(self) -> bytes:
        """Bytes written behind `begin`, or all; the file is gone then."""
        self.out.close()
        data = os.pread(self._file, os.fstat(self._file).st_size - self._start, self._start)
        os.close(self._file)
        return data


def file_stem(group: str, name: str) -> str:
    """The name of an event's file in a directory of tables, without its suffix."""
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", f"{group}_{name}")


def write_table(path: str, kinds: Mapping[str, str], rows: Sequence[Sequence[object]]) -> None:
    """Write plain values as a Parquet file.

    Args:
        path: of the file, which is made or written over.
        kinds: Arrow's names of the columns' types, "[]" behind that of lists' elements.
        rows: the values; None is null.

    Raises:
        OSError: it cannot be written.
    """
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    types = [_type_named(kind) for kind in kinds.values()]
    arrays = [pa.array(one, kind) for one, kind in zip(columns, types, strict=True)]
    schema = pa.schema(list(zip(kinds, types, strict=True)))
    # A compressor for each column, and a dictionary of one value, cost a single row more than all
    # else of it; a file that gets its bytes piece by piece, too.
    single = len(rows) == 1
    compression: object = "zstd"
    if single:
        long = [name for name, one in zip(kinds, arrays, strict=True) if one.nbytes > _LONG]
        compression = dict.fromkeys(long, "zstd")
    out = pa.BufferOutputStream()
    with pq.ParquetWriter(
        out, schema, compression=compression, use_dictionary=not single, store_schema=False
    ) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    with open(path, "wb") as file:
        file.write(out.getvalue())


def read_table(paths: Sequence[str], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of Parquet files, one after the other.

    Args:
        paths: of the files.
        columns: that are read; what a file does not have is None.

    Raises:
        CommandError: a file is damaged.
    """
    found: list[dict[str, Any]] = []
    for path in paths:
        try:
            # To read ahead takes threads, for what is a page or two here.
            with pq.ParquetFile(path, pre_buffer=False) as file:
                there = [name for name in columns if name in file.schema_arrow.names]
                rows = file.read(there, use_threads=False).to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise CommandError(f"{path}: no table of ours: {error}") from error
        found += [{**dict.fromkeys(columns), **row} for row in rows]
    return found


def row_count(path: str) -> int:
    """Rows of a Parquet file."""
    with pa.OSFile(path) as file:
        return int(pq.read_metadata(file).num_rows)


def _type_named(kind: str) -> Any:
    one = pa.type_for_alias(kind.removesuffix("[]"))
    return pa.list_(one) if kind.endswith("[]") else one


def _is_stack(info: EventInfo) -> bool:
    return info.source is EventSource.STACK


def _arrow_type(column: Column) -> Any:
    kind = column.type
    if kind.is_string or kind.kind is ValueKind.CHAR:
        return pa.string()
    name = {ValueKind.SIGNED: "int", ValueKind.FLOAT: "float"}.get(kind.kind, "uint")
    return getattr(pa, f"{name}{_BYTE * kind.size}")()


def _zeros(kind: Any, count: int) -> Any:
    """A column of zeros."""
    return pa.Array.from_buffers(
        kind, count, [None, pa.py_buffer(bytes(count * kind.bit_width // 8))]
    )


def _lists(parts: Sequence[Any]) -> Any:
    """Lists of one element of each part."""
    rows, width = len(parts[0]), len(parts)
    order = pa.array([at * rows + row for row in range(rows) for at in range(width)], pa.int64())
    offsets = pa.array(range(0, rows * width + 1, width), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.concat_arrays(parts).take(order))


def _schema(info: EventInfo, arch: str, stacks: bool) -> Any:
    """The columns of an event's table; an argument's name gets a `_` where another one has it."""
    kinds = (
        *(pa.uint64(), pa.uint32(), pa.int32(), pa.int32(), pa.int16()),
        *(pa.string(), pa.uint64(), pa.string()),
    )
    fields = list(zip(_FIRST, kinds, strict=True))
    if info.returns:
        fields += [("returned_to", pa.uint64()), ("returned_to_symbol", pa.string())]
    for column in info.columns:
        kind = _arrow_type(column)
        several = [(column.name, kind)]
        if column.type.kind is ValueKind.SYMBOL:
            several.append((f"{column.name}_symbol", pa.string()))
        fields += [(name, pa.list_(one) if column.type.count else one) for name, one in several]
    if stacks:
        fields += [("stack", pa.list_(pa.uint64())), ("frames", pa.list_(pa.string()))]
    seen: set[str] = set()
    named = []
    for name, kind in fields:
        while name in seen:
            name += "_"
        seen.add(name)
        named.append(pa.field(name, kind))
    about = {"event": f"{info.group}/{info.name}", "clock": "blocks of the guest", "arch": arch}
    return pa.schema(named, metadata=about)
