"""perf.data as `perf record -o -` writes it: what perf script, perf report and hotspot read.

A stream of records (tools/perf/Documentation/perf.data-file-format.txt, "pipe-mode data";
include/uapi/linux/perf_event.h), so that a file that ends anywhere is read up to there. Events are
tracepoints with their `format` files. Files of the guest are told when the first address in one
comes, with their build ids; the call stack behind an event is its call chain. A tick of the
guest's clock is shown as a nanosecond.
"""

import struct
from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar, Final, cast

from msgspec import Struct

from engine.arch.program import EVENT_LOW, THREAD_MOST
from engine.trace.formats.base import MappedFile, Names
from engine.trace.formats.kernelrecord import (
    HEADER_EVENT,
    HEADER_PAGE,
    PAGE,
    RecordKind,
    by_group,
    format_file,
    is_tracers,
    record_kind,
)
from engine.trace.formats.values import frames
from engine.trace.rows import HEAD, TIME, EventInfo, EventSource, EventTable, whole

_MAGIC: Final = struct.pack("<8sQ", b"PERFILE2", 16)
_MMAP2, _COMM, _LOST, _SAMPLE = 10, 3, 2, 9
_ATTR, _TRACING, _FEATURE = 64, 66, 80
_USER, _EXEC, _BUILD_ID = 2, 1 << 13, 1 << 14
_HEAD: Final = struct.Struct("<IHH")
_SIZE_MOST: Final = 0xFFF8
_TRACEPOINT, _ATTR_SIZE = 2, 112
_IP, _TID, _TIME, _CHAIN, _CPU, _PERIOD, _RAW, _ID = (
    1,
    2,
    4,
    1 << 5,
    1 << 7,
    1 << 8,
    1 << 10,
    1 << 16,
)
_ALL_IDS: Final = 1 << 18 | 1 << 5 | 1 << 6
"""Bits of all events: sample_id_all, exclude_kernel, exclude_hv: nobody misses a kernel."""
_TELLS: Final = 1 << 8 | 1 << 9 | 1 << 13 | 1 << 23 | 1 << 24
"""Bits of the first event: mmap, comm, task, mmap2, comm_exec."""
_CONTEXT_USER: Final = (1 << 64) - 512
_BEHIND: Final = struct.Struct("<IIQQQ")
"""The end of records that are no samples: process, thread, time, CPU, event."""
_FRONT_CODE: Final = "QQIIQQQ"
_FRONT: Final = struct.Struct(f"<{_FRONT_CODE}")
"""The begin of a sample: event, address, process, thread, time, CPU, period."""
_READ_EXECUTE, _PRIVATE = 5, 2
_ARCH_FEATURE, _CPUS_FEATURE, _LAST_FEATURE = 6, 7, 32


class _Plain(Struct, frozen=True):
    """Samples of an event that has only numbers and no call stack.

    Attributes:
        unpack: the words of the row at a position.
        pick: those of them that are fields.
        pack: makes the sample.
        size: of it.
        raw: bytes of its record.
        number: what the record has of the event's.
    """

    unpack: Callable[[bytes, int], Sequence[int]]
    pick: Callable[[Sequence[int]], Sequence[int]]
    pack: Callable[..., bytes]
    size: int
    raw: int
    number: int


class _Task(Struct):
    """A thread whose rows come.

    Attributes:
        pid: its process.
        seen: addresses of it that need no file to be told.
    """

    pid: int
    seen: set[int]


class PerfDataFormat:
    """A file, or a stream, for perf."""

    name: ClassVar[str] = "perf.data"
    wants_stacks: ClassVar[bool] = False
    is_text: ClassVar[bool] = False
    event_most: ClassVar[int] = EVENT_LOW

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table, all of which are there when the header is made."""
        self._events = events
        self._names = names
        self._kinds: dict[int, RecordKind] = {}
        self._plain: dict[int, _Plain] = {}
        self._tasks: dict[int, _Task] = {}
        self._program = 0
        self._programs: dict[int, int] = {}
        """The program that a thread was in at its last event."""
        self._maps: dict[tuple[int, int], list[tuple[int, int]]] = {}
        """Starts and ends of the files that are told, by process and program."""
        self._held: tuple[bytes, bytes] | None = None
        """A sample whose call stack may follow: what stands before it and behind it."""
        self._last = 0
        self._first_event = 0

    @property
    def _chains(self) -> bool:
        return any(info.source is EventSource.STACK for info in self._events.values())

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """The magic, the events' attributes and their formats."""
        self._tasks.clear()
        self._maps.clear()
        self._held = None
        out = [_MAGIC]
        infos = [info for info in self._events.values() if info.source is not EventSource.STACK]
        kind = _ID | _IP | _TID | _TIME | _CPU | _PERIOD | _RAW | _CHAIN * self._chains
        for at, info in enumerate(infos):
            flags = _ALL_IDS | (0 if at else _TELLS)
            attr = struct.pack(
                "<IIQQQQQ", _TRACEPOINT, _ATTR_SIZE, info.id, 1, kind, 0, flags
            ).ljust(_ATTR_SIZE, b"\0")
            out.append(_record(_ATTR, 0, attr + struct.pack("<Q", info.id)))
        if self._names.arch:
            out.append(_feature(_ARCH_FEATURE, _text(self._names.arch)))
        out.append(_feature(_CPUS_FEATURE, struct.pack("<II", 1, 1)))
        out.append(_feature(_LAST_FEATURE, b""))
        formats = _tracing_data(infos)
        out.append(_HEAD.pack(_TRACING, 0, _HEAD.size + 4) + struct.pack("<I", len(formats)))
        out.append(formats)
        return b"".join(out)

    def rows(self, data: bytes) -> bytes:
        """A sample for each row but those of call stacks."""
        out: list[bytes] = []
        kinds, plain, tasks, chains = self._kinds, self._plain, self._tasks, self._chains
        time = self._last
        head, position, end = HEAD.unpack_from, 0, len(data)
        time_of, none = TIME.unpack_from, struct.pack("<Q", 0) if chains else b""
        while position < end:
            event_id, size, thread = head(data, position)
            if thread > THREAD_MOST:
                event_id, thread = whole(event_id, thread)
            quick = plain.get(event_id)
            if quick is not None:
                task = tasks.get(thread) or self._task(out, thread, time_of(data, position + 8)[0])
                words = quick.unpack(data, position)
                time, address = words[0], words[1]
                if address not in task.seen:
                    self._see(out, task, thread, address, time)
                out.append(
                    quick.pack(
                        *(_SAMPLE, _USER, quick.size, event_id, address, task.pid, thread),
                        *(time, 0, 1, quick.raw, quick.number, thread),
                        *quick.pick(words),
                    )
                )
                position += size * 8
                continue
            kind = kinds.get(event_id) or self._kind(event_id)
            (time,) = time_of(data, position + 8)
            task = tasks.get(thread) or self._task(out, thread, time)
            if kind.info.source is EventSource.STACK:
                found = frames(kind.info, data, position)
                for address in found:
                    if address not in task.seen:
                        self._see(out, task, thread, address, time)
                if self._held is not None:
                    chain = struct.pack(f"<QQ{len(found)}Q", len(found) + 1, _CONTEXT_USER, *found)
                    before, behind = self._held
                    self._held = None
                    out.append(self._sample(before + chain + behind))
                position += size * 8
                continue
            if self._held is not None:
                before, behind = self._held
                self._held = None
                out.append(self._sample(before + none + behind))
            (address,) = time_of(data, position + 16)
            if address not in task.seen:
                self._see(out, task, thread, address, time)
            front = _FRONT.pack(event_id, address, task.pid, thread, time, 0, 1)
            raw = kind.make(data, position, thread)
            raw += bytes(-(len(raw) + 4) & 7)
            behind = len(raw).to_bytes(4, "little") + raw
            if chains:
                self._held = front, behind
            else:
                out.append(self._sample(front + behind))
            position += size * 8
        self._last = time
        return b"".join(out)

    def lost(self, count: int) -> bytes:
        """A record that says how many."""
        first = next(iter(self._events), 0)
        body = struct.pack("<QQ", first, count) + self._behind(0, 0, self._last)
        return self._held_back() + _record(_LOST, 0, body)

    def end(self) -> bytes:
        """The last sample, if its call stack might have followed."""
        return self._held_back()

    def renamed(self, thread_id: int) -> None:
        """The name is told with the thread's next event."""
        self._tasks.pop(thread_id, None)

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        if number != self._program:
            self._program = number
            self._tasks.clear()

    def state(self) -> object:
        """Files and threads that are told, the sample that is held back, the last time."""
        held = None if self._held is None else [part.hex() for part in self._held]
        maps = [[*key, ranges] for key, ranges in self._maps.items()]
        return [maps, held, self._last, list(self._programs.items()), list(self._tasks)]

    def restore(self, state: object) -> None:
        """Go on in the same stream."""
        maps, held, last, programs, tasks = cast("Any", state)
        self._maps = {
            (int(pid), int(program)): [(int(start), int(end)) for start, end in ranges]
            for pid, program, ranges in maps
        }
        if held is not None:
            before, behind = held
            self._held = bytes.fromhex(before), bytes.fromhex(behind)
        self._last = int(last)
        self._programs = {int(thread): int(program) for thread, program in programs}
        self._tasks = {int(one): _Task(self._names.process(int(one)), set()) for one in tasks}

    def _kind(self, event_id: int) -> RecordKind:
        found = self._kinds[event_id] = record_kind(self._events[event_id])
        fixed = found.fixed
        if fixed is not None and not self._chains:
            raw = fixed.size + (-(fixed.size + 4) & 7)
            code = f"<IHH{_FRONT_CODE}I{fixed.code}{raw - fixed.size}x"
            pack = struct.Struct(code)
            self._plain[event_id] = _Plain(
                fixed.unpack, fixed.pick, pack.pack, pack.size, raw, fixed.number
            )
        return found

    def _sample(self, body: bytes) -> bytes:
        """A sample; one that is too long for a record is missing."""
        if len(body) + _HEAD.size > _SIZE_MOST:
            return self.lost(1)
        return _HEAD.pack(_SAMPLE, _USER, len(body) + _HEAD.size) + body

    def _held_back(self) -> bytes:
        held, self._held = self._held, None
        if held is None:
            return b""
        return self._sample(held[0] + bytes(8) + held[1])

    def _task(self, out: list[bytes], thread: int, time: int) -> _Task:
        """Tell a thread's name."""
        pid = self._names.process(thread)
        task = self._tasks[thread] = _Task(pid, set())
        comm = self._names.comm(thread)
        execs = self._programs.get(thread, 0) != self._program
        self._programs[thread] = self._program
        if comm is not None:
            body = struct.pack("<II", pid, thread) + _padded(comm[:15] + b"\0")
            body += self._behind(pid, thread, time)
            out.append(_record(_COMM, _USER | _EXEC * execs, body))
        return task

    def _see(self, out: list[bytes], task: _Task, thread: int, address: int, time: int) -> None:
        """Tell the file that an address lies in, unless it has been told."""
        task.seen.add(address)
        told = self._maps.setdefault((task.pid, self._program), [])
        if any(start <= address < end for start, end in told):
            return
        file = self._names.file(address)
        if file is not None:
            told.append((file.start, file.end))
            out.append(self._mmap(file, task.pid, thread, time))

    def _mmap(self, file: MappedFile, pid: int, thread: int, time: int) -> bytes:
        """The record of code of a file in memory."""
        body = struct.pack("<IIQQQ", pid, pid, file.start, file.end - file.start, file.offset)
        ident = bytes.fromhex(file.build_id)[:20]
        if ident:
            body += struct.pack("<BBH20s", len(ident), 0, 0, ident)
        else:
            body += bytes(24)
        body += struct.pack("<II", _READ_EXECUTE, _PRIVATE)
        body += _padded(file.path.encode(errors="surrogateescape") + b"\0")
        body += self._behind(pid, thread, time)
        return _record(_MMAP2, _USER | _BUILD_ID * bool(ident), body)

    def _behind(self, pid: int, thread: int, time: int) -> bytes:
        return _BEHIND.pack(pid, thread, time, 0, next(iter(self._events), 0))


def _record(kind: int, misc: int, body: bytes) -> bytes:
    return _HEAD.pack(kind, misc, _HEAD.size + len(body)) + body


def _feature(number: int, data: bytes) -> bytes:
    return _record(_FEATURE, 0, struct.pack("<Q", number) + _padded(data))


def _text(text: str) -> bytes:
    """A string of a feature: its size and its bytes."""
    data = text.encode() + b"\0"
    data += bytes(-len(data) % 64)
    return struct.pack("<I", len(data)) + data


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) & 7)


def _sized(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


def _tracing_data(infos: list[EventInfo]) -> bytes:
    """The formats as a trace.dat of version 6 has them, in whole words."""
    page, event = HEADER_PAGE.encode(), HEADER_EVENT.encode()
    out = [b"\x17\x08\x44tracing0.6\0\0\x08", struct.pack("<I", PAGE)]
    out += [b"header_page\0", _sized(page), b"header_event\0", _sized(event)]
    tracers = [format_file(info).encode() for info in infos if is_tracers(info)]
    out += [struct.pack("<I", len(tracers)), *map(_sized, tracers)]
    groups = by_group(infos)
    out.append(struct.pack("<I", len(groups)))
    for group, found in groups.items():
        out.append(group.encode() + b"\0" + struct.pack("<I", len(found)))
        out += [_sized(format_file(info).encode()) for info in found]
    out.append(struct.pack("<IIQ", 0, 0, 0))  # no symbols, formats of printk, names of threads
    return _padded(b"".join(out))
