"""Event counters and timers as files."""

import struct

from engine.linux.clock import FOREVER, Clock
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.attributes import Stat
from engine.linux.fs.devices import ANONYMOUS
from engine.linux.fs.vfs import OpenFile

EINVAL = 22

_FULL = (1 << 64) - 2
_MOST = (1 << 64) - 1


class AnonymousFile(OpenFile):
    """A file that has neither name nor contents."""

    def seek(self, offset: int, whence: int) -> int:
        """Take any position: the file has none (noop_llseek)."""
        return self.offset

    def stat(self) -> Stat:
        """Attributes."""
        return Stat(ANONYMOUS, 1, 0o600, 1, 0, 0, 0, 0, 4096, 0, 0, 0, 0)


class EventFile(AnonymousFile):
    """An eventfd: a 64-bit counter."""

    messages = True
    least = 8

    def __init__(self, count: int, *, semaphore: bool, byteorder: str, flags: int = 0) -> None:
        super().__init__(fl.O_RDWR | flags)
        self.title = b"anon_inode:[eventfd]"
        self._count = count
        self._semaphore = semaphore
        self._format = struct.Struct("<Q" if byteorder == "little" else ">Q")
        self._activity = 0

    @property
    def activity(self) -> int:
        """Counts what happened to it, for edge-triggered epoll."""
        return self._activity

    def read(self, count: int) -> bytes | None:
        """Up to `count` bytes, b"" at the end, None if it would block."""
        if count < 8:
            raise LinuxError(EINVAL)
        if not self._count:
            return None
        value = 1 if self._semaphore else self._count
        self._count -= value
        self._activity += 1
        return self._format.pack(value)

    def write(self, data: bytes) -> int | None:
        """Take bytes: their number, None if it would block."""
        if len(data) < 8:
            raise LinuxError(EINVAL)
        (value,) = self._format.unpack(data[:8])
        if value > _FULL:
            raise LinuxError(EINVAL)
        if self._count + value > _FULL:
            return None
        self._count += value
        self._activity += 1
        return 8

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        mask = fl.READABLE if self._count else 0
        return mask | (fl.WRITABLE if self._count < _FULL else 0)


class TimerFile(AnonymousFile):
    """A timerfd: counts expirations of a timer in guest time."""

    timed = True
    least = 8

    def __init__(self, clock: Clock, *, realtime: bool, byteorder: str, flags: int = 0) -> None:
        super().__init__(fl.O_RDWR | flags)
        self.title = b"anon_inode:[timerfd]"
        self._clock = clock
        self._realtime = realtime
        self._format = struct.Struct("<Q" if byteorder == "little" else ">Q")
        self._expires: int | None = None
        self._interval = 0

    def set(self, value: int, interval: int, *, absolute: bool) -> None:
        """Arm (or with 0 disarm) the timer; nanoseconds."""
        self._interval = interval
        if value == 0:
            self._expires = None
            return
        now = self._clock.monotonic()
        if not absolute:
            value += now
        elif self._realtime:
            value += now - self._clock.realtime()
        self._expires = min(value, FOREVER)

    def get(self) -> tuple[int, int]:
        """(nanoseconds left, interval)."""
        if self._expires is None:
            return 0, self._interval
        left = self._expires - self._clock.monotonic()
        if left <= 0:
            left = -(-left % self._interval) + self._interval if self._interval else 0
        return left, self._interval

    def _expired(self) -> int:
        if self._expires is None:
            return 0
        late = self._clock.monotonic() - self._expires
        if late < 0:
            return 0
        return min(1 + late // self._interval, _MOST) if self._interval else 1

    def read(self, count: int) -> bytes | None:
        """Up to `count` bytes, b"" at the end, None if it would block."""
        if count < 8:
            raise LinuxError(EINVAL)
        expired = self._expired()
        if not expired:
            return None
        assert self._expires is not None, "it has expired"
        self._expires = self._expires + expired * self._interval if self._interval else None
        return self._format.pack(expired)

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        return fl.READABLE if self._expired() else 0

    def next_deadline(self) -> int | None:
        """Guest time (monotonic) at which `readiness` changes by itself: a timerfd."""
        return self._expires

    @property
    def activity(self) -> int:
        """Counts what happened to it, for edge-triggered epoll."""
        return self._expired()
