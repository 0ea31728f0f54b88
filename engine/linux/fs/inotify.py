"""An inotify instance: a queue of events (fs/notify/inotify)."""

import errno
import itertools
import struct
from collections import deque
from typing import Final, NamedTuple

from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs import fsnotify
from engine.linux.fs.eventfd_timerfd import AnonymousFile
from engine.linux.fs.fsnotify import InodeWatch, Watches
from engine.linux.fs.termios import FIONREAD
from engine.linux.fs.vfs import IoctlCaller, Node

_MOST_EVENTS: Final = 16384
"""Events that wait in an instance (fs.inotify.max_queued_events),"""
_MOST_OF_ALL: Final = 1 << 17
"""and in all of them, so that they fit in the host's memory."""
_MOST_INSTANCES: Final = 128
"""fs.inotify.max_user_instances."""
_KEPT: Final = fsnotify.EVENTS | fsnotify.EXCL_UNLINK | fsnotify.ONESHOT


class InodeEvent(NamedTuple):
    """Something that has happened to what is watched."""

    number: int
    mask: int
    cookie: int
    name: bytes

    @property
    def size(self) -> int:
        """Bytes of struct inotify_event and the name, padded to as much again."""
        return 16 + (len(self.name) + 16 & ~15 if self.name else 0)


class InotifyUse:
    """The use of all instances together.

    Attributes:
        instances: that are open.
        events: that wait.
    """

    def __init__(self) -> None:
        self.instances = self.events = 0


class InotifyFile(AnonymousFile):
    """An inotify instance."""

    def __init__(self, watches: Watches, use: InotifyUse, byteorder: str, flags: int) -> None:
        """Make an instance without watches.

        Args:
            watches: those of the tree.
            use: of all instances.
            byteorder: of the guest.
            flags: O_NONBLOCK or 0.

        Raises:
            LinuxError: EMFILE if there are too many.
        """
        if use.instances >= _MOST_INSTANCES:
            raise LinuxError(errno.EMFILE)
        super().__init__(fl.O_RDONLY | flags)
        self.title = b"anon_inode:inotify"
        self._watches, self._use = watches, use
        use.instances += 1
        self._head = struct.Struct("<iIII" if byteorder == "little" else ">iIII")
        self._mine: dict[int, InodeWatch] = {}
        self._numbers = itertools.count(1)
        self._events: deque[InodeEvent] = deque()
        self._overflown = False
        self._activity = 0

    def on_close(self) -> None:
        """The last descriptor is gone."""
        for watch in list(self._mine.values()):
            self._watches.remove(watch, told=False)
        self._use.events -= len(self._events)
        self._use.instances -= 1
        self._events.clear()

    def watch(self, node: Node, mask: int) -> int:
        """InodeWatch a node, or watch it for other events; the watch descriptor.

        Raises:
            LinuxError: EEXIST with MASK_CREATE if it is watched, ENOSPC for too many watches.
        """
        for watch in self._watches.of(node):
            if watch.listener is self:
                if mask & fsnotify.MASK_CREATE:
                    raise LinuxError(errno.EEXIST)
                more = watch.mask if mask & fsnotify.MASK_ADD else 0
                watch.mask = mask & _KEPT | more
                return watch.number
        if self._watches.count >= fsnotify.MOST_WATCHES:
            raise LinuxError(errno.ENOSPC)
        watch = InodeWatch(self, next(self._numbers), node, mask & _KEPT)
        self._mine[watch.number] = watch
        self._watches.add(watch)
        return watch.number

    def unwatch(self, number: int) -> None:
        """Take a watch away; EINVAL if there is none."""
        watch = self._mine.get(number)
        if watch is None:
            raise LinuxError(errno.EINVAL)
        self._watches.remove(watch)

    def forget(self, number: int) -> None:
        """A watch is over."""
        del self._mine[number]

    def tell(self, number: int, mask: int, cookie: int, name: bytes) -> None:
        """Something has happened: an event, unless the last one says the same."""
        event = InodeEvent(number, mask, cookie, name)
        events = self._events
        if len(events) >= _MOST_EVENTS or self._use.events >= _MOST_OF_ALL:
            if self._overflown:
                return
            self._overflown = True
            event = InodeEvent(-1, fsnotify.Q_OVERFLOW, 0, b"")
        elif events and mask != fsnotify.IGNORED:
            last = events[-1]
            if (last.number, last.mask, last.name) == (number, mask, name):
                return
        events.append(event)
        self._use.events += 1
        self._activity += 1

    def read(self, count: int) -> bytes | None:
        """As many events as fit; EINVAL if not even one does."""
        events = self._events
        if not events:
            return None
        out = bytearray()
        while events and len(out) + events[0].size <= count:
            event = events.popleft()
            self._use.events -= 1
            if event.mask == fsnotify.Q_OVERFLOW:
                self._overflown = False
            room = event.size - 16
            out += self._head.pack(event.number, event.mask, event.cookie, room)
            out += event.name.ljust(room, b"\0")
        if not out:
            raise LinuxError(errno.EINVAL)
        return bytes(out)

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        return fl.READABLE if self._events else 0

    def came(self) -> tuple[int, int]:
        """Counts what came to read."""
        return self._activity, 0

    @property
    def activity(self) -> int:
        """Counts what happened to it, for edge-triggered epoll."""
        return self._activity

    def ioctl(self, caller: IoctlCaller, request: int, argument: int) -> int:
        """FIONREAD: bytes of all events that wait."""
        if request != FIONREAD:
            raise LinuxError(errno.ENOTTY)
        size = sum(event.size for event in self._events)
        order = "<" if caller.arch.byteorder == "little" else ">"
        caller.memory.write(argument, struct.pack(order + "i", size))
        return 0
