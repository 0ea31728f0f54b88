"""Files that processes map, names they have and children they start, as the kernel tells perf.

A trace has addresses and ids of threads only; the program that had them is often gone when its
events are read. So the kernel is asked for its records of mmap, comm and fork, with times of the
same clock as the trace's (perf_event_open(2), include/uapi/linux/perf_event.h).
"""

import ctypes
import errno
import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from engine import arch as architectures

_PAGES: Final = 128
"""Pages of data of a CPU's ring."""
_CLOEXEC: Final = 8
_SOFTWARE, _DUMMY = 1, 9
_MONOTONIC: Final = 1
_TID_TIME: Final = 1 << 1 | 1 << 2
# Bits of perf_event_attr behind read_format.
_INHERIT, _MMAP, _COMM, _TASK = 1 << 1, 1 << 8, 1 << 9, 1 << 13
_MMAP_DATA, _SAMPLE_ID_ALL, _MMAP2, _COMM_EXEC, _USE_CLOCKID = (
    1 << 17,
    1 << 18,
    1 << 23,
    1 << 24,
    1 << 25,
)
_FLAGS: Final = (
    *(_INHERIT, _MMAP, _COMM, _TASK, _MMAP_DATA),
    *(_SAMPLE_ID_ALL, _MMAP2, _COMM_EXEC, _USE_CLOCKID),
)
_ATTR: Final = struct.Struct("<IIQQQQQIIQQQQIiQIHHIIQ")
_HEAD: Final = struct.Struct("<IHH")
_LOST_RECORD, _COMM_RECORD, _FORK_RECORD, _MMAP2_RECORD = 2, 3, 7, 10
_IS_EXEC: Final = 1 << 13
_TAIL_PLACE, _HEAD_PLACE = 1032, 1024
"""Offsets in the first page of a ring (struct perf_event_mmap_page)."""


def _syscall(machine: str) -> int | None:
    """perf_event_open's number on a machine, by its `uname -m`; None on one that is not known."""
    tables = (
        one.linux.syscalls for one in architectures.records() if one.linux.machine == machine
    )
    return next(
        (at for table in tables for at, name in table.items() if name == "perf_event_open"), None
    )


class LiveRegion(Struct, frozen=True, order=True):
    """A stretch of a process's memory.

    Attributes:
        start: address.
        end: behind the last byte.
        offset: of the first byte in the file.
        path: of the file, or a name such as [stack]; "" for memory without one.
        code: it may be executed.
    """

    start: int
    end: int
    offset: int
    path: str
    code: bool = False

    @property
    def is_file(self) -> bool:
        """True if a file is mapped there."""
        return self.path.startswith("/") and not self.path.startswith("//")

    def hides(self, old: "LiveRegion") -> bool:
        """True if addresses mean something else where this has come in the place of another one.

        The parts of a file that the loader maps over one another are one thing.
        """
        if self.end <= old.start or old.end <= self.start or not old.is_file:
            return False
        moved = self.start - self.offset != old.start - old.offset
        if old.code:
            return self.path != old.path or moved
        return self.is_file and self.path != old.path


class MapNotice(Struct, frozen=True):
    """A process has mapped something.

    Attributes:
        time: of CLOCK_MONOTONIC, in nanoseconds.
        pid: the process.
        region: the stretch of memory that was mapped.
    """

    time: int
    pid: int
    region: LiveRegion


class NameNotice(Struct, frozen=True):
    """A thread has another name; `executed`: as its process is another program from here on."""

    time: int
    pid: int
    tid: int
    comm: bytes
    executed: bool


class ForkNotice(Struct, frozen=True):
    """A thread of a process has started one, of the same process or of a new one.

    Attributes:
        time: of it.
        pid: process of the new thread.
        parent: the thread that has started it.
        tid: the new thread.
    """

    time: int
    pid: int
    parent: int
    tid: int


class MissedNotices(Struct, frozen=True):
    """The kernel had no room for so many records."""

    time: int
    count: int


Notice = MapNotice | NameNotice | ForkNotice | MissedNotices


def parse_notices(data: bytes) -> Iterator[Notice]:
    """The records of a stretch of a ring; of damaged ones what stands before them."""
    at = 0
    while at + _HEAD.size <= len(data):
        kind, misc, size = _HEAD.unpack_from(data, at)
        if size < _HEAD.size or at + size > len(data):
            return
        found = _parsed(kind, misc, data[at + _HEAD.size : at + size])
        if found is not None:
            yield found
        at += size


def _parsed(kind: int, misc: int, body: bytes) -> Notice | None:
    if len(body) < 32:
        return None
    (time,) = struct.unpack_from("<Q", body, len(body) - 8)  # behind pid and tid
    if kind == _MMAP2_RECORD and len(body) >= 64 + 16:
        pid, _, start, length, offset = struct.unpack_from("<IIQQQ", body)
        path = body[64:-16].partition(b"\0")[0]
        (access,) = struct.unpack_from("<I", body, 56)
        code = bool(access & mmap.PROT_EXEC)
        region = LiveRegion(start, start + length, offset, os.fsdecode(path), code)
        return MapNotice(time, pid, region)
    if kind == _COMM_RECORD:
        pid, tid = struct.unpack_from("<II", body)
        comm = body[8:-16].partition(b"\0")[0]
        return NameNotice(time, pid, tid, comm, bool(misc & _IS_EXEC))
    if kind == _FORK_RECORD and len(body) >= 24 + 16:
        pid, _, tid, parent = struct.unpack_from("<IIII", body)
        return ForkNotice(time, pid, parent, tid)
    if kind == _LOST_RECORD:
        return MissedNotices(time, struct.unpack_from("<Q", body, 8)[0])
    return None


class Sideband:
    """The kernel's records about some processes and their children, or about all.

    Attributes:
        failure: why there are none, "" while there are.
    """

    def __init__(self, pids: Sequence[int] = ()) -> None:
        """Ask for them from here on; for all processes without `pids`, which are threads' ids."""
        self.failure = ""
        self._rings: list[tuple[int, mmap.mmap]] = []
        try:
            for pid in pids or (-1,):
                for cpu in _online():
                    self._open(pid, cpu)
        except OSError as error:
            self.failure = error.strerror or str(error)
            self.close()

    def _open(self, pid: int, cpu: int) -> None:
        number = _syscall(os.uname().machine)
        if number is None:
            raise OSError(errno.ENOSYS, "not known for this machine")
        flags = sum(_FLAGS)
        attr = _ATTR.pack(
            *(_SOFTWARE, _ATTR.size, _DUMMY, 0, _TID_TIME, 0, flags),
            *(0, 0, 0, 0, 0, 0, 0, _MONOTONIC, 0, 0, 0, 0, 0, 0, 0),
        )
        libc = ctypes.CDLL(None, use_errno=True)
        fd = libc.syscall(
            ctypes.c_long(number), attr, ctypes.c_long(pid), ctypes.c_long(cpu), ctypes.c_long(-1),
            ctypes.c_long(_CLOEXEC),
        )  # fmt: skip
        if fd < 0:
            number = ctypes.get_errno()
            if number == errno.ESRCH and pid != -1:
                return  # a thread that is gone
            raise OSError(number, os.strerror(number))
        try:
            ring = mmap.mmap(fd, (1 + _PAGES) * mmap.PAGESIZE)
        except OSError:
            os.close(fd)
            raise
        self._rings.append((fd, ring))

    def read(self) -> list[Notice]:
        """The records that have come since the last time, by time."""
        found: list[Notice] = []
        for _, ring in self._rings:
            found += parse_notices(_taken(ring))
        found.sort(key=lambda notice: notice.time)
        return found

    def close(self) -> None:
        """Ask no longer."""
        for fd, ring in self._rings:
            ring.close()
            os.close(fd)
        self._rings.clear()


def _taken(ring: mmap.mmap) -> bytes:
    """The bytes that a ring has; they are free from here on."""
    size = len(ring) - mmap.PAGESIZE
    head: int = struct.unpack_from("<Q", ring, _HEAD_PLACE)[0]
    tail: int = struct.unpack_from("<Q", ring, _TAIL_PLACE)[0]
    if head == tail:
        return b""
    start, end = mmap.PAGESIZE + tail % size, mmap.PAGESIZE + head % size
    data = ring[start:end] if start < end else ring[start:] + ring[mmap.PAGESIZE : end]
    struct.pack_into("<Q", ring, _TAIL_PLACE, head)
    return data


def _online() -> list[int]:
    """The numbers of the CPUs."""
    found: list[int] = []
    with open("/sys/devices/system/cpu/online", encoding="ascii") as file:
        for part in file.read().strip().split(","):
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
    return found
