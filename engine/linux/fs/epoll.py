"""The epoll file: a set of watched files."""

from weakref import WeakSet

from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.eventfd_timerfd import AnonymousFile
from engine.linux.fs.vfs import OpenFile
from engine.linux.memorylimit import HeldMemory, MemoryLimit

ENOENT, EEXIST, EINVAL, ELOOP = 2, 17, 22, 40

EPOLLEXCLUSIVE, EPOLLONESHOT, EPOLLET = 1 << 28, 1 << 30, 1 << 31
_ALWAYS = fl.POLLERR | fl.POLLHUP
_EVENTS = 0x3FFF
_ITEM = 512
"""Bytes that an entry takes."""
_DEEPEST = 5
"""Instances that may watch one another in a row (EP_MAX_NESTS and the first)."""


class EpollItem:
    """One entry: which file, which events, and what edge-triggering has reported."""

    __slots__ = ("data", "events", "fd", "file", "seen")

    def __init__(self, fd: int, file: OpenFile, events: int, data: int) -> None:
        self.fd = fd
        self.file = file
        self.events = events
        self.data = data
        self.seen: tuple[int, int] | None = None

    def ready(self) -> int:
        """Events to report now."""
        if self.events & EPOLLONESHOT and not self.events & _EVENTS:
            return 0
        mask = self.file.readiness() & (self.events & _EVENTS | _ALWAYS)
        if self.events & EPOLLET:
            state = mask, self.file.wakeups(self.events)
            if self.seen is not None and state[1] == self.seen[1]:
                mask &= ~self.seen[0]
            if not state[0]:
                self.seen = None
        return mask

    def reported(self) -> None:
        """Take note that the item's events have been handed to the guest."""
        if self.events & EPOLLET:
            mask = self.file.readiness() & (self.events & _EVENTS | _ALWAYS)
            self.seen = mask, self.file.wakeups(self.events)
        if self.events & EPOLLONESHOT:
            self.events &= ~_EVENTS


class EpollFile(AnonymousFile):
    """An epoll instance."""

    timed = True

    def __init__(self, memory: MemoryLimit) -> None:
        super().__init__(fl.O_RDWR)
        self.title = b"anon_inode:[eventpoll]"
        self._watched: dict[tuple[int, OpenFile], EpollItem] = {}
        self._held = HeldMemory(memory)
        self._watchers: WeakSet[EpollFile] = WeakSet()

    @staticmethod
    def can_watch(file: OpenFile) -> bool:
        """True if a file can become ready (file_can_poll): not a directory or a regular file."""
        backed = file.host_fd() is not None or file.node is not None
        return not (file.is_directory or (file.is_regular and backed))

    def add(self, fd: int, file: OpenFile, events: int, data: int) -> None:
        """EPOLL_CTL_ADD."""
        self._drop_closed()
        if (fd, file) in self._watched:
            raise LinuxError(EEXIST)
        if isinstance(file, EpollFile) and (
            file.reaches(self) or self._above() + file._below() > _DEEPEST
        ):
            raise LinuxError(ELOOP)
        self._held.resize((len(self._watched) + 1) * _ITEM)
        if isinstance(file, EpollFile):
            file._watchers.add(self)
        self._watched[fd, file] = EpollItem(fd, file, events, data)

    def change(self, fd: int, file: OpenFile, events: int, data: int) -> None:
        """EPOLL_CTL_MOD."""
        entry = self._watched.get((fd, file))
        if entry is None:
            raise LinuxError(ENOENT)
        if entry.events & EPOLLEXCLUSIVE:
            raise LinuxError(EINVAL)
        entry.events, entry.data, entry.seen = events, data, None

    def remove(self, fd: int, file: OpenFile) -> None:
        """EPOLL_CTL_DEL."""
        if self._watched.pop((fd, file), None) is None:
            raise LinuxError(ENOENT)
        self._held.resize(len(self._watched) * _ITEM)

    def _below(self) -> int:
        """Number of epoll instances that watch one another in a row, this one the first."""
        files = (file for _, file in self._watched if isinstance(file, EpollFile))
        return 1 + max((file._below() for file in files), default=0)

    def _above(self) -> int:
        """The same, this one the last."""
        watchers = [each for each in self._watchers if any(f is self for _, f in each._watched)]
        return 1 + max((each._above() for each in watchers), default=0)

    def reaches(self, other: "EpollFile") -> bool:
        """True if it watches another epoll instance, directly or not."""
        return self is other or any(
            isinstance(file, EpollFile) and file.reaches(other) for _, file in self._watched
        )

    def collect(self, limit: int) -> list[tuple[int, int]]:
        """Up to `limit` pairs (events, data); reported entries go to the end of the queue."""
        self._drop_closed()
        found = []
        for key, entry in list(self._watched.items()):
            events = entry.ready()
            if not events:
                continue
            found.append((events, entry.data))
            entry.reported()
            self._watched[key] = self._watched.pop(key)
            if len(found) >= limit:
                break
        return found

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        self._drop_closed()
        return fl.READABLE if any(e.ready() for e in self._watched.values()) else 0

    @property
    def outside(self) -> bool:
        """True if the host's user may make one of the watched files readable by a signal."""
        return any(entry.file.outside for entry in self._watched.values())

    def wait_fds(self, events: int) -> tuple[tuple[int, int], ...]:
        """Host descriptors whose readiness may change `readiness`, for `Wait.host_fds`."""
        found: list[tuple[int, int]] = []
        for entry in self._watched.values():
            found.extend(entry.file.wait_fds(entry.events & _EVENTS))
        return tuple(found)

    def next_deadline(self) -> int | None:
        """Guest time (monotonic) at which `readiness` changes by itself: a timerfd."""
        times = [entry.file.next_deadline() for entry in self._watched.values()]
        return min((time for time in times if time is not None), default=None)

    @property
    def activity(self) -> int:
        """Counts what happened to it, for edge-triggered epoll."""
        return sum(entry.file.activity for entry in self._watched.values())

    def _drop_closed(self) -> None:
        for key in [key for key in self._watched if key[1].references == 0]:
            del self._watched[key]
