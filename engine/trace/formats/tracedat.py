"""trace.dat, version 7: what trace-cmd and KernelShark read (trace-cmd.dat.v7(5)).

The file begins with a first table of options, whose place its header tells, and the `format`
files of all events. Behind them are the pages of one processor's ring buffer, written while the
guest runs; how many bytes they are is written anew with each piece, so that the file is whole up
to there at any time. Names of threads and functions come at the end, in a second table.

Where a page ends early the rest is zero: a page is written with the piece that its events are of.
"""

import struct
from collections.abc import Callable, Collection
from typing import Any, ClassVar, Final, cast

from engine.arch.program import EVENT_LOW, THREAD_MOST
from engine.escaping import escaped
from engine.trace.formats.base import Names, Write
from engine.trace.formats.kernelrecord import (
    HEADER_EVENT,
    HEADER_PAGE,
    PAGE,
    PAGE_ROOM,
    RECORD_MOST,
    RecordKind,
    by_group,
    common_fields,
    format_file,
    is_tracers,
    record_kind,
)
from engine.trace.formats.values import frames
from engine.trace.rows import HEAD, TIME, EventSource, EventTable, whole

_MAGIC: Final = b"\x17\x08\x44tracing7\0"
_LITTLE, _LONG = 0, 8
_OPTIONS, _STRINGS, _HEADER_INFO, _FTRACE, _EVENTS, _KALLSYMS, _CMDLINES = (
    0,
    15,
    16,
    17,
    18,
    19,
    21,
)
_BUFFER, _CLOCK, _UNAME, _CPUS, _VERSION = 3, 4, 5, 8, 9
"""Numbers of sections and of the options that lead to them, and of other options."""
_SECTION: Final = struct.Struct("<HHIQ")
_OPTION: Final = struct.Struct("<HI")
_PAGE_HEAD: Final = struct.Struct("<QQ")
_MISSED, _MISSED_COUNT = 1 << 31, 1 << 30
"""Bits beside a page's size: events are missing before it; how many stands behind its events."""
_DELTA_BITS: Final = 27
_DELTA_END: Final = 1 << _DELTA_BITS
_WORD: Final = struct.Struct("<I").pack
_SHORT_MOST: Final = 28 * 4
"""Bytes of a record whose size stands in its head."""
_EXTEND: Final = 30
_TITLES: Final = (
    *("headers", "ftrace events", "events format", "flyrecord", "options", "symbols"),
    "cmdlines",
)
"""Names of sections."""
_TRACE_CLOCK: Final = "counter"
_LOST_FORMAT: Final = (
    "name: lost\nID: %d\nformat:\n%s\n"
    "\tfield:unsigned int count;\toffset:8;\tsize:4;\tsigned:0;\n\n"
    'print fmt: "%%u events are missing in front of this one", REC->count\n'
)
"""The event that stands at the end if events are missing there."""
_BETWEEN: Final = "[unknown]"
_CACHED: Final = 1 << 20
"""Functions to name at the most: a table of them is kept to the end."""


class TraceDatFormat:
    """A file for `trace-cmd report` and KernelShark."""

    name: ClassVar[str] = "trace.dat"
    wants_stacks: ClassVar[bool] = False
    is_text: ClassVar[bool] = False
    event_most: ClassVar[int] = EVENT_LOW
    main: ClassVar[str] = ""
    batch: ClassVar[int] = 1 << 18

    def resume(self, path: Callable[[str], str]) -> None:
        """The state tells all."""

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table, all of which are there when the header is made."""
        self._events = events
        self._names = names
        self._kinds: dict[int, RecordKind] = {}
        self._comms: dict[int, str] = {}
        self._functions: dict[int, tuple[str, int]] = {}
        """Name and end of the functions that addresses were in, by their start."""
        self._seen: set[int] = set()
        self._layout: tuple[int, int, int, int] = (0, 0, 0, 0)
        """Offsets of the size of the pages in the options and in their section's head, of the
        pages, and of the second table's offset in the first."""
        self._size = 0
        """Bytes of pages."""
        self._missed = 0
        """Events that are missing before the next page."""
        self._last = 0
        """The time of the last event."""
        self._aside: list[Write] = []

    @property
    def is_directory(self) -> bool:
        """False: the format is one file."""
        return False

    @classmethod
    def owns(cls, name: str) -> bool:
        """There is no directory."""
        return False

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """All before the pages."""
        self._size = self._missed = 0
        self._aside.clear()
        out = bytearray(_MAGIC + bytes((_LITTLE, _LONG)) + struct.pack("<I", PAGE))
        out += b"none\0\0"
        first = len(out)
        out += bytes(8)
        found: list[tuple[int, bytes]] = []
        for number, title, body in (
            (_HEADER_INFO, "headers", _header_info()),
            (_FTRACE, "ftrace events", self._tracers()),
            (_EVENTS, "events format", self._formats()),
        ):
            found.append((number, struct.pack("<Q", len(out))))
            out += _section(number, title, body)
        found.append((_CPUS, struct.pack("<I", 1)))
        found.append((_CLOCK, f"[{_TRACE_CLOCK}]\0".encode()))
        found.append((_VERSION, b"kprobe-tui\0"))
        if self._names.arch:
            found.append((_UNAME, f"Linux guest {self._names.arch}\0".encode()))
        titles = "".join(f"{title}\0" for title in _TITLES).encode()
        out += _section(_STRINGS, "", titles)
        struct.pack_into("<Q", out, first, len(out))
        # Where pages begin is known once the size of the options is.
        start = len(out) + _SECTION.size
        head = b"".join(_option(number, data) for number, data in found)
        buffer_at = start + len(head) + _OPTION.size
        buffer = self._buffer(0, 0)
        done_at = buffer_at + len(buffer) + _OPTION.size
        section_at = done_at + 8
        pages = -(-(section_at + _SECTION.size) // PAGE) * PAGE
        buffer = self._buffer(section_at, pages)
        body = head + _option(_BUFFER, buffer) + _option(0, bytes(8))
        out += _section(_OPTIONS, "options", body)
        out += _SECTION.pack(_BUFFER, 0, _title("flyrecord"), pages - section_at - _SECTION.size)
        out += bytes(pages - len(out))
        self._layout = buffer_at + len(buffer) - 8, section_at + 8, pages, done_at
        return bytes(out)

    def rows(self, data: bytes) -> bytes:
        """Pages with the records of the rows."""
        pages = _Pages(self._missed, self._last)
        self._missed = 0
        kinds, seen, add = self._kinds, self._seen, pages.add
        head, position, end = HEAD.unpack_from, 0, len(data)
        while position < end:
            event_id, size, thread = head(data, position)
            if thread > THREAD_MOST:
                event_id, thread = whole(event_id, thread)
            kind = kinds.get(event_id) or self._kind(event_id)
            if thread not in self._comms:
                self._meet(thread)
            fixed = kind.fixed
            if fixed is not None:
                words = fixed.unpack(data, position)
                for place in kind.places:
                    if words[place] not in seen:
                        self._see(words[place])
                add(words[0], fixed.pack(fixed.number, thread, *fixed.pick(words)))
                position += size * 8
                continue
            for place in kind.places:
                (address,) = TIME.unpack_from(data, position + 8 + 8 * place)
                if address not in seen:
                    self._see(address)
            if kind.info.source is EventSource.STACK:
                for address in frames(kind.info, data, position):
                    if address not in seen:
                        self._see(address)
            record = kind.make(data, position, thread)
            (time,) = TIME.unpack_from(data, position + 8)
            pages.add(time, record)
            position += size * 8
        out = pages.end()
        self._missed, self._last = pages.missed, pages.last
        self._grow(out)
        return out

    def lost(self, count: int) -> bytes:
        """Note lost events, told in the head of the next page."""
        self._missed += count
        return b""

    def end(self) -> bytes:
        """Names of threads and functions, and a second table of options that leads to them."""
        more, out = b"", bytearray()
        if self._missed:
            # They are told in front of an event: this one.
            pages = _Pages(self._missed, self._last)
            pages.add(self._last, struct.pack("<HxxII", self._own_event, 0, self._missed))
            more = pages.end()
            self._missed = 0
            self._grow(more)
        at = self._layout[2] + self._size
        found: list[tuple[int, bytes]] = []
        symbols = self._symbols().encode(errors="surrogateescape")
        comms = "".join(
            f"{thread} {comm}\n" for thread, comm in sorted(self._comms.items())
        ).encode(errors="surrogateescape")
        for number, title, body in (
            (_KALLSYMS, "symbols", struct.pack("<I", len(symbols)) + symbols),
            (_CMDLINES, "cmdlines", struct.pack("<Q", len(comms)) + comms),
        ):
            found.append((number, struct.pack("<Q", at + len(out))))
            out += _section(number, title, body)
        options = at + len(out)
        body = b"".join(_option(number, data) for number, data in found) + _option(0, bytes(8))
        out += _section(_OPTIONS, "options", body)
        self._aside.append(Write(struct.pack("<Q", options), at=self._layout[3]))
        return more + bytes(out)

    def aside(self) -> list[Write]:
        """The size of the pages, and where the second table is."""
        found, self._aside = self._aside, []
        return found

    def renamed(self, thread_id: int) -> None:
        """A file has one name a thread: its last one."""
        self._comms.pop(thread_id, None)

    def program(self, number: int) -> None:
        """An address has one name: the first one that it was given."""

    def state(self) -> object:
        """Places in the file, bytes of pages, and the names so far."""
        return [
            list(self._layout),
            self._size,
            self._missed,
            self._last,
            list(self._comms.items()),
            list(self._functions.items()),
        ]

    def restore(self, state: object) -> None:
        """Go on behind the pages that there are."""
        layout, size, missed, last, comms, functions = cast("Any", state)
        one, two, three, four = layout
        self._layout = int(one), int(two), int(three), int(four)
        self._size, self._missed, self._last = int(size), int(missed), int(last)
        self._comms = {int(thread): str(comm) for thread, comm in comms}
        self._functions = {int(start): (str(name), int(end)) for start, (name, end) in functions}
        self._seen = set()

    def _kind(self, event_id: int) -> RecordKind:
        found = self._kinds[event_id] = record_kind(self._events[event_id])
        return found

    def _meet(self, thread: int) -> None:
        comm = self._names.comm(thread)
        if comm is not None:
            self._comms[thread] = _word(escaped(comm)) or "?"

    def _see(self, address: int) -> None:
        """Remember the function around an address."""
        self._seen.add(address)
        symbol = self._names.symbol(address)
        name, plus, rest = symbol.rpartition("+0x")
        if plus and len(self._functions) < _CACHED:
            offset, _, size = rest.partition("/0x")
            start = address - int(offset, 16)
            self._functions.setdefault(start, (_word(name), start + int(size or "0", 16)))

    def _symbols(self) -> str:
        """The table of functions; what is between them has a name that says so.

        A reader takes an address for a part of the function in front of it.
        """
        out: list[str] = []
        last = 0
        for start, (name, end) in sorted(self._functions.items()):
            if last and start > last:
                out.append(f"{last:x} T {_BETWEEN}\n")
            out.append(f"{start:x} T {name}\n")
            last = max(end, start + 1)
        return "".join((*out, f"{last:x} T {_BETWEEN}\n"))

    def _grow(self, pages: bytes) -> None:
        self._size += len(pages)
        in_option, in_section, start, _ = self._layout
        content = start - in_section - 8 + self._size
        self._aside.append(Write(struct.pack("<Q", content), at=in_section))
        self._aside.append(Write(struct.pack("<Q", self._size), at=in_option))

    def _tracers(self) -> bytes:
        """The section of tracefs's own events."""
        found = [format_file(info).encode() for info in self._events.values() if is_tracers(info)]
        return struct.pack("<I", len(found)) + b"".join(map(_sized, found))

    def _formats(self) -> bytes:
        """The section of all others."""
        groups = by_group(self._events.values())
        out = [struct.pack("<I", len(groups) + 1)]
        for group, infos in groups.items():
            out.append(group.encode() + b"\0" + struct.pack("<I", len(infos)))
            out += [_sized(format_file(info).encode()) for info in infos]
        out.append(b"kprobe_tui\0" + struct.pack("<I", 1))
        out.append(_sized((_LOST_FORMAT % (self._own_event, common_fields())).encode()))
        return b"".join(out)

    @property
    def _own_event(self) -> int:
        """A number that no other event has."""
        return next((id for id in range(EVENT_LOW, 0, -1) if id not in self._events), EVENT_LOW)

    def _buffer(self, section: int, pages: int) -> bytes:
        """The option of the pages, whose last eight bytes are their size."""
        head = struct.pack("<Q", section) + b"\0" + f"{_TRACE_CLOCK}\0".encode()
        return head + struct.pack("<IIIQQ", PAGE, 1, 0, pages, 0)


class _Pages:
    """Pages of a ring buffer that are being filled."""

    def __init__(self, missed: int, last: int) -> None:
        """`missed` events are not there in front of them, behind one at the time `last`."""
        self.missed = missed
        self.last = last
        self._out: list[bytes] = []
        self._page: list[bytes] = []
        self._used = 0
        self._first = 0

    def add(self, time: int, record: bytes) -> None:
        """Add an event; one that is too long for a page is missing."""
        size = len(record)
        delta = time - self.last
        used = self._used + 4 + size
        short = size <= _SHORT_MOST and not size & 3
        if short and 4 + size < used <= PAGE_ROOM and 0 <= delta < _DELTA_END:
            self._page += (_WORD(size >> 2 | delta << 5), record)
            self._used = used
            self.last = time
        else:
            self._add(time, record + bytes(-size & 3), delta)

    def _add(self, time: int, record: bytes, delta: int) -> None:
        """The same for any record: it may need another page, or a longer head."""
        size = len(record)
        if size > RECORD_MOST:
            self._flush()
            self.missed += 1
            return
        head = 4 if size <= _SHORT_MOST else 8
        together = 0 <= delta < _DELTA_END << 32 and self._used + 8 + head + size <= PAGE_ROOM
        if not self._used or not together:
            self._flush()
            self._first = time
            delta = 0
        elif delta >= _DELTA_END:
            low = delta & _DELTA_END - 1
            self._page.append(struct.pack("<II", _EXTEND | low << 5, delta >> _DELTA_BITS))
            self._used += 8
            delta = 0
        if head == 4:
            self._page += (_WORD(size >> 2 | delta << 5), record)
        else:
            self._page += (struct.pack("<II", delta << 5, size + 4), record)
        self._used += head + size
        self.last = time

    def end(self) -> bytes:
        """All pages."""
        self._flush()
        return b"".join(self._out)

    def _flush(self) -> None:
        """The page is done."""
        if not self._used:
            return
        body = b"".join(self._page)
        flags = 0
        if self.missed:
            flags = _MISSED
            if len(body) + 8 <= PAGE_ROOM:
                flags |= _MISSED_COUNT
            self._out.append(_PAGE_HEAD.pack(self._first, len(body) | flags))
            if flags & _MISSED_COUNT:
                body += struct.pack("<Q", self.missed)
            self.missed = 0
        else:
            self._out.append(_PAGE_HEAD.pack(self._first, len(body)))
        self._out.append(body.ljust(PAGE_ROOM, b"\0"))
        self._page.clear()
        self._used = 0


def _title(text: str) -> int:
    """The place of a title among all; 0 for none."""
    return sum(len(title) + 1 for title in _TITLES[: _TITLES.index(text)]) if text else 0


def _section(number: int, title: str, body: bytes) -> bytes:
    return _SECTION.pack(number, 0, _title(title), len(body)) + body


def _option(number: int, data: bytes) -> bytes:
    return _OPTION.pack(number, len(data)) + data


def _sized(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


def _header_info() -> bytes:
    page, event = HEADER_PAGE.encode(), HEADER_EVENT.encode()
    return b"header_page\0" + _sized(page) + b"header_event\0" + _sized(event)


def _word(text: str) -> str:
    """A text without what ends a line of a table."""
    return escaped(text).replace(" ", "_") if "\n" in text else text
