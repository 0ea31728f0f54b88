"""Pages of the kernel's ring buffer, as trace_pipe_raw gives them, taken apart into records.

A page begins with the time of its first record and the number of bytes that are used, the two
highest bits of which say that records before it were overwritten, and that their number stands
behind the last one (kernel/trace/ring_buffer.c, ring_buffer_read_page; enum ring_buffer_type in
include/linux/ring_buffer.h). A record's time is told as a distance from that of the one before.
"""

import re
import struct
from typing import Final

from msgspec import Struct

from engine.errors import CommandError

_HEAD: Final = struct.Struct("<QQ")
_WORD: Final = struct.Struct("<I")
_LONG: Final = struct.Struct("<Q")
_USED: Final = (1 << 30) - 1
_MISSED: Final = 1 << 31
_STORED: Final = 1 << 30
_PADDING, _EXTEND, _STAMP = 29, 30, 31
_DELTA_BITS: Final = 27
_STAMP_BITS: Final = 59
"""Of a time that is told as a whole; the bits above are those of the time before."""
_FIELD: Final = re.compile(r"field: *[^;]*?(\w+);\toffset:(\d+);\tsize:(\d+);")


class RingRecord(Struct, frozen=True, gc=False):
    """One record.

    Attributes:
        time: in nanoseconds, or ticks of another trace clock.
        data: its bytes, up to three more than it has fields for.
    """

    time: int
    data: bytes


class RingPage(Struct, frozen=True):
    """The records of one page.

    Attributes:
        records: in the order of the CPU that wrote them.
        lost: records that were overwritten before them; None for a number nobody has noted.
        damaged: what follows the records is none.
    """

    records: list[RingRecord]
    lost: int | None = 0
    damaged: bool = False


class PageLayout(Struct, frozen=True):
    """The places of things in a page.

    Attributes:
        data: offset of the first record.
        size: of a page in bytes.
    """

    data: int = 16
    size: int = 4096

    @classmethod
    def of(cls, header: str) -> "PageLayout":
        """The layout of events/header_page.

        Raises:
            CommandError: it is the layout of another machine than one with words of 64 bits.
        """
        fields = {name: (int(at), int(size)) for name, at, size in _FIELD.findall(header)}
        at, room = fields.get("data", (0, 0))
        known = fields.get("timestamp") == (0, 8) and fields.get("commit") == (8, 8)
        if not known or at < _HEAD.size or room < 8:
            raise CommandError("events/header_page: a layout of pages that is not known")
        return cls(at, at + room)

    def decode(self, page: bytes) -> RingPage:
        """Take a page apart; of a damaged one what stands before the damage."""
        if len(page) < self.data:
            return RingPage([], damaged=bool(page))
        time, commit = _HEAD.unpack_from(page)
        end = self.data + (commit & _USED)
        lost: int | None = 0
        if commit & _MISSED:
            stored = commit & _STORED and end + 8 <= len(page)
            lost = _LONG.unpack_from(page, end)[0] if stored else None
        damaged = end > len(page)
        end = min(end, len(page))
        at, records = self.data, list[RingRecord]()
        word, take = _WORD.unpack_from, records.append
        while at + 4 <= end:
            (head,) = word(page, at)
            kind, delta = head & 31, head >> 5
            if 0 < kind < _PADDING:
                time += delta
                start, at = at + 4, at + 4 + 4 * kind
                if at > end:
                    return RingPage(records, lost, damaged=True)
                take(RingRecord(time, page[start:at]))
                continue
            if kind == _PADDING and not delta:
                return RingPage(records, lost, damaged)
            if at + 8 > end:
                return RingPage(records, lost, damaged=True)
            (more,) = word(page, at + 4)
            if kind == _EXTEND:
                time += (more << _DELTA_BITS) + delta
                at += 8
            elif kind == _STAMP:
                time = _whole_time((more << _DELTA_BITS) + delta, time)
                at += 8
            else:  # its size is the first word, which counts itself
                time += delta
                start, at = at + 8, at + 4 + (more + 3 & ~3)
                if more < 4 or at > end:
                    return RingPage(records, lost, damaged=True)
                if kind != _PADDING:
                    take(RingRecord(time, page[start:at]))
        return RingPage(records, lost, damaged or at != end)


def _whole_time(stamp: int, before: int) -> int:
    """A time of 59 bits with the bits above from the time before (rb_fix_abs_ts)."""
    top = before >> _STAMP_BITS << _STAMP_BITS
    if top:
        stamp |= top
        if stamp < before:
            stamp += 1 << _STAMP_BITS
    return stamp
