"""The io_uring file: queues in memory that a program shares with its kernel (io_uring(7)).

The program puts entries of 64 bytes into a table and their numbers into the submission queue;
the kernel puts completions of 16 bytes into the completion queue. The layout is that of Linux
(struct io_rings), which tells it to programs by offsets.
"""

import struct
from collections import deque
from contextlib import suppress
from typing import Final, Protocol

from engine.guest.mapping import MappingError
from engine.guest.shared import SharedPages
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.eventfd_timerfd import AnonymousFile, EventFile
from engine.linux.fs.vfs import OpenFile

EINVAL = 22

SQE_SIZE: Final = 64
_CQE_SIZE: Final = 16
_SQ_HEAD, _SQ_TAIL, _CQ_HEAD, _CQ_TAIL = 0, 64, 128, 192
_SQ_MASK, _CQ_MASK, _SQ_ENTRIES, _CQ_ENTRIES = 256, 260, 264, 268
_SQ_DROPPED, _SQ_FLAGS, _CQ_FLAGS, _CQ_OVERFLOW, _CQES = 272, 276, 280, 284, 320
SQPOLL: Final = 2
"""Of the flags that it is made with: a thread of the kernel's takes entries."""
_SQ_NEED_WAKEUP: Final = 1
"""Of the submission queue's flags: that thread sleeps."""
_CQ_OVERFLOWS: Final = 2
"""Of the submission queue's flags: completions wait for room."""
_EVENTFD_DISABLED: Final = 1
"""Of the completion queue's flags, which are the program's."""

_OFF_SQ_RING, _OFF_CQ_RING, _OFF_SQES = 0, 0x8000000, 0x10000000
_PAGE: Final = 4096
_MOST_WAITING: Final = 1 << 16
"""Completions that wait for room; those beyond are only counted."""
_WORD: Final = (1 << 32) - 1


class RingWork(Protocol):
    """The requests of a ring, as its file sees them."""

    @property
    def outside(self) -> bool:
        """True if the host's user may end some of it by a signal."""

    def progress(self) -> None:
        """Complete what can be completed."""

    def wait_fds(self) -> tuple[tuple[int, int], ...]:
        """Host descriptors whose readiness may complete some of it."""

    def next_expiry(self) -> int | None:
        """When time alone completes some of it (CLOCK_MONOTONIC)."""

    def close(self) -> None:
        """Give up what is not complete."""


class RingMemory:
    """Memory of a ring: a file without a name, and the mappings that show it."""

    def __init__(self, file: OpenFile, size: int, shared: SharedPages) -> None:
        self.file = file.acquire()
        self.size = size
        self._shared = shared
        file.truncate(max(1 << (size - 1).bit_length(), _PAGE))

    def read(self, offset: int, size: int) -> bytes:
        """Bytes as the program sees them."""
        found = self._shared.load(self.file.node, offset, size)
        if found is None:
            self._shared.flush(self.file.node)
            found = self.file.pread(size, offset)
        return found

    def write(self, offset: int, data: bytes) -> None:
        """Change bytes for the program to see."""
        shared, node = self._shared, self.file.node
        # Where no memory is left the program is killed once it touches more itself.
        with suppress(MappingError, LinuxError):
            if not shared.store(node, offset, data):
                shared.flush(node)
                finish = shared.file_changes(node, offset, offset + len(data))
                self.file.pwrite(data, offset)
                finish(False)


class UringFile(AnonymousFile):
    """An io_uring.

    Attributes:
        setup: the flags that it was made with.
        entries: entries that the submission queue has room for.
        completions: those of the completion queue.
        work: does what its entries ask for.
        event: the eventfd that is told of completions, if any.
        disabled: it takes no entries yet.
    """

    timed = True
    work: RingWork

    def __init__(
        self,
        rings: OpenFile,
        table: OpenFile,
        shared: SharedPages,
        *,
        setup: int,
        entries: int,
        completions: int,
        order: str,
        disabled: bool,
    ) -> None:
        """Make one with empty queues; `work` is the caller's care.

        Args:
            rings: an empty file for both queues.
            table: the same for entries.
            shared: shows them in mappings.
            setup: flags of io_uring_setup.
            entries: of the submission queue, a power of two.
            completions: of the completion queue, likewise.
            order: of bytes, as `struct` writes it.
            disabled: it takes no entries at first.
        """
        super().__init__(fl.O_RDWR)
        self.title = b"anon_inode:[io_uring]"
        self.setup, self.entries, self.completions = setup, entries, completions
        self.disabled = disabled
        self.event: EventFile | None = None
        self._u32 = struct.Struct(order + "I")
        self._cqe = struct.Struct(order + "QiI")
        self._one = struct.pack(order + "Q", 1)
        self._array = -(-(_CQES + _CQE_SIZE * completions) // 64) * 64
        self._rings = RingMemory(rings, self._array + 4 * entries, shared)
        self._table = RingMemory(table, SQE_SIZE * entries, shared)
        self._head = self._tail = self._lost = 0
        self._waiting: deque[bytes] = deque()
        self._posted = 0
        for place, value in (
            (_SQ_MASK, entries - 1),
            (_CQ_MASK, completions - 1),
            (_SQ_ENTRIES, entries),
            (_CQ_ENTRIES, completions),
            (_SQ_FLAGS, _SQ_NEED_WAKEUP if setup & SQPOLL else 0),
        ):
            rings.pwrite(self._u32.pack(value), place)

    def offsets(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Struct io_sqring_offsets and io_cqring_offsets, but for what is reserved there."""
        submission = (_SQ_HEAD, _SQ_TAIL, _SQ_MASK, _SQ_ENTRIES, _SQ_FLAGS, _SQ_DROPPED)
        completion = (_CQ_HEAD, _CQ_TAIL, _CQ_MASK, _CQ_ENTRIES, _CQ_OVERFLOW, _CQES, _CQ_FLAGS)
        return (*submission, self._array), completion

    def _get(self, place: int) -> int:
        (value,) = self._u32.unpack(self._rings.read(place, 4))
        return int(value)

    def _set(self, place: int, value: int) -> None:
        self._rings.write(place, self._u32.pack(value & _WORD))

    # -- entries ---------------------------------------------------------------------------

    def submitted(self) -> int:
        """Entries that the program has put into the queue and that have not been taken."""
        return min(self._get(_SQ_TAIL) - self._head & _WORD, self.entries)

    def take(self) -> bytes | None:
        """The next entry; None where there is none, or where its number is none of the table."""
        if not self.submitted():
            return None
        place = self._array + 4 * (self._head & self.entries - 1)
        index = self._get(place)
        self._head = self._head + 1 & _WORD
        self._set(_SQ_HEAD, self._head)
        if index >= self.entries:
            self._lost += 1
            self._set(_SQ_DROPPED, self._lost)
            return None
        return self._table.read(SQE_SIZE * index, SQE_SIZE)

    # -- completions -----------------------------------------------------------------------

    def ready(self) -> int:
        """Completions in the queue that the program has not taken."""
        return self._tail - self._get(_CQ_HEAD) & _WORD

    def post(self, user_data: int, result: int, flags: int = 0) -> None:
        """Tell the program of a completion; where there is no room it waits for some."""
        completion = self._cqe.pack(user_data, result, flags)
        self._posted += 1
        if len(self._waiting) >= _MOST_WAITING:
            self._set(_CQ_OVERFLOW, self._get(_CQ_OVERFLOW) + 1)
        elif self._waiting or self.ready() >= self.completions:
            self._waiting.append(completion)
            self._set(_SQ_FLAGS, self._get(_SQ_FLAGS) | _CQ_OVERFLOWS)
        else:
            self._deliver(completion)
        if self.event is not None and not self._get(_CQ_FLAGS) & _EVENTFD_DISABLED:
            self.event.write(self._one)

    def flush(self) -> None:
        """Bring completions that wait to the queue, as far as there is room again."""
        waiting = self._waiting
        if not waiting:
            return
        while waiting and self.ready() < self.completions:
            self._deliver(waiting.popleft())
        if not waiting:
            self._set(_SQ_FLAGS, self._get(_SQ_FLAGS) & ~_CQ_OVERFLOWS)

    def _deliver(self, completion: bytes) -> None:
        place = _CQES + _CQE_SIZE * (self._tail & self.completions - 1)
        self._rings.write(place, completion)
        self._tail = self._tail + 1 & _WORD
        self._set(_CQ_TAIL, self._tail)

    # -- the file --------------------------------------------------------------------------

    def shown_at(self, offset: int, size: int) -> tuple[OpenFile, int]:
        """The file that a mapping of so many bytes at an offset shows, and from where on."""
        if offset in (_OFF_SQ_RING, _OFF_CQ_RING):
            shown = self._rings
        elif offset == _OFF_SQES:
            shown = self._table
        else:
            raise LinuxError(EINVAL)
        if size > max(1 << (shown.size - 1).bit_length(), _PAGE):
            raise LinuxError(EINVAL)
        return shown.file, 0

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        self.work.progress()
        mask = fl.READABLE if self.ready() or self._waiting else 0
        return mask | (fl.WRITABLE if self.submitted() < self.entries else 0)

    def wait_fds(self, events: int) -> tuple[tuple[int, int], ...]:
        """Host descriptors whose readiness may change `readiness`, for `Wait.host_fds`."""
        return self.work.wait_fds()

    def next_deadline(self) -> int | None:
        """Guest time (monotonic) at which `readiness` changes by itself."""
        return self.work.next_expiry()

    @property
    def outside(self) -> bool:
        """True if the host's user may make it readable by a signal."""
        return self.work.outside

    @property
    def activity(self) -> int:
        """Counts what happened to it, for edge-triggered epoll."""
        return self._posted

    def on_close(self) -> None:
        """The last descriptor is gone."""
        self.work.close()
        if self.event is not None:
            self.event.release()
            self.event = None
        self._rings.file.release()
        self._table.file.release()
