"""A second run of a guest beside the first, in a process of its own.

The second run is one of `replay`: it reads what the first one reads. What the first run does with
the host comes to it by a pipe, and it waits where it is quicker. Its results come back when it has
ended; the first run never waits for it. Who has no results, for whatever reason, makes the second
run again after the first.
"""

import ctypes
import os
import pickle
import select
import signal
import struct
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, BinaryIO, Final, NoReturn

from engine.errors import CutOff, EngineError
from engine.session.headless.replay import RecordedIO, ReplayedIO

_PASSED: Final = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGWINCH, signal.SIGUSR1, signal.SIGUSR2),
)
"""Signals that the second run gets once the first one has ended."""
_ENDING: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
_SIZE: Final = struct.Struct("<Q")
_PIECE: Final = 1 << 20
_PIPE: Final = 1 << 16
"""Bytes that a pipe takes at once."""
_SET_DEATH_SIGNAL: Final = 1

TimeKey = tuple[int, int]
"""(device, inode) of a file of the host's."""
Serve = Callable[[int, int], bytes]
"""(address, size) to memory of the second run."""
Work = Callable[["FedIO", "FedTimes"], tuple[bytes, Serve | None]]
"""Makes the second run: its results, and what reads its memory afterwards."""


def can_be() -> bool:
    """True if a process beside this one has a processor of its own."""
    alone = threading.current_thread() is threading.main_thread()
    return alone and len(os.sched_getaffinity(0)) > 1


class TellingIO(RecordedIO):
    """Remembers what passes, and tells a run beside this one of it."""

    def __init__(self, tell: Callable[[object], None]) -> None:
        super().__init__()
        self._tell = tell

    def _keep(self, key: tuple[Any, ...], call: Callable[[], Any]) -> Any:
        try:
            return super()._keep(key, call)
        finally:
            self._tell_last()

    def _tell_last(self) -> None:
        if self.calls:
            self._tell(_RunMessage(self.now(), call=self.calls[-1]))

    def poll(self, fd: int, events: int) -> int:
        """Ask, and tell: the last answer of a system call counts."""
        result = super().poll(fd, events)
        now = self.now()
        self._tell(_RunMessage(now, polled=((now, fd, events), result)))
        return result

    def stat(self, fd: int) -> Any:
        """Ask and remember."""
        result = super().stat(fd)
        self._tell_last()
        return result


class _RunMessage:
    """A message about the first run.

    Attributes:
        count: system calls that it had made.
        call: a call of the host and its result.
        polled: the answer to a poll.
        time: when a file was read last, as it was first seen.
        over: it has ended.
    """

    __slots__ = ("call", "count", "over", "polled", "time")

    def __init__(
        self,
        count: int = 0,
        *,
        call: tuple[tuple[Any, ...], Any] | None = None,
        polled: tuple[tuple[int, int, int], int] | None = None,
        time: tuple[TimeKey, int] | None = None,
        over: bool = False,
    ) -> None:
        self.count, self.call, self.polled = count, call, polled
        self.time, self.over = time, over


class _Feed:
    """Messages about the first run, as the process of the second one reads them.

    Attributes:
        recorded: the calls that have come.
        times: of files.
        count: system calls that the first run is known to have made.
        over: it has ended.
        waited: seconds in which the second run has waited.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.recorded = RecordedIO()
        self.times: dict[TimeKey, int] = {}
        self.count = 0
        self.over = False
        self.waited = 0.0

    def until(self, known: Callable[[], bool]) -> None:
        """Wait until something is known, or the first run has ended."""
        began = time.monotonic()
        while not self.over and not known():
            self._take()
        self.waited += time.monotonic() - began

    def _take(self) -> None:
        message: _RunMessage = pickle.load(self._stream)  # of the process that has forked this one
        self.count, self.over = message.count, message.over
        if message.call is not None:
            self.recorded.calls.append(message.call)
        if message.polled is not None:
            self.recorded.polls.update((message.polled,))
        if message.time is not None:
            self.times.update((message.time,))

    def asked(self) -> tuple[int, int] | None:
        """The next memory that is asked for after the run; None where nobody asks any more."""
        self.until(lambda: False)
        try:
            at, size = pickle.load(self._stream)
        except EOFError:
            return None
        return at, size


class FedIO(ReplayedIO):
    """Gives the first run's answers as they come.

    Attributes:
        taken: answers that were given.
    """

    def __init__(self, feed: _Feed) -> None:
        super().__init__(feed.recorded)
        self._feed = feed
        self.taken = 0

    @property
    def waited(self) -> float:
        """Seconds in which the run has waited for answers."""
        return self._feed.waited

    def _give(self, key: tuple[Any, ...], otherwise: Any) -> Any:
        calls = self._feed.recorded.calls
        if not self.difference:
            self._feed.until(lambda: bool(calls))
        before = len(calls)
        try:
            return super()._give(key, otherwise)
        finally:
            self.taken += before - len(calls)

    def poll(self, fd: int, events: int) -> int:
        """The last answer of the same system call."""
        now = self.now()
        self._feed.until(lambda: self._feed.count > now)
        return super().poll(fd, events)


class FedTimes:
    """The times at which files were read last, as the first run sees them."""

    def __init__(self, feed: _Feed) -> None:
        self._feed = feed

    def accessed(self, device: int, number: int, time: int) -> int:
        """The time that the first run has seen; `time` where it has seen none."""
        times, key = self._feed.times, (device, number)
        self._feed.until(lambda: key in times)
        return times.setdefault(key, time)


class RunBeside:
    """A process in which the second run is made, while this one makes the first."""

    def __init__(self, work: Work) -> None:
        """Begin.

        Args:
            work: makes the run.

        Raises:
            OSError: the host makes no process.
        """
        reading, self._writing = os.pipe()
        self._reading, writing = os.pipe()
        ours, theirs = (self._writing, self._reading), (reading, writing)
        maker = os.getpid()
        try:
            with warnings.catch_warnings():  # of other threads: they are not there
                warnings.simplefilter("ignore", DeprecationWarning)
                self._pid = os.fork()
        except OSError:
            for descriptor in (*ours, *theirs):
                os.close(descriptor)
            raise
        if not self._pid:
            _be_beside(work, ours, theirs, maker)
        for descriptor in theirs:
            os.close(descriptor)
        os.set_blocking(self._writing, False)
        self._unsent = bytearray()
        self._heard: list[int] = []
        self._open = True

    def tell(self, message: object) -> None:
        """Tell of the first run; nobody waits for the process to listen."""
        if not self._open:
            return
        self._unsent += pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._flush()

    def tell_time(self, device: int, number: int, time: int) -> None:
        """Tell when a file was read last."""
        self.tell(_RunMessage(time=((device, number), time)))

    def _flush(self) -> None:
        """Send what the pipe takes."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self._writing, self._unsent[:_PIPE])]
        except BlockingIOError:
            pass
        except BrokenPipeError:  # it is not there any more, or needs no more
            self._unsent.clear()

    def results(self) -> bytes | None:
        """The results once the run has ended; None if there are none.

        Signals to this process are meant for that run meanwhile.

        Raises:
            CutOff: it was ended by one.
        """
        self.tell(_RunMessage(over=True))
        with self._passing_signals():
            found = self._message()
        ending = [number for number in self._heard if number in _ENDING]
        if found is None and ending:
            raise CutOff(128 + ending[-1])
        return found

    def read(self, address: int, size: int) -> bytes:
        """Memory of the run that has ended.

        Raises:
            EngineError: the process is not there any more.
        """
        self.tell((address, size))
        found = self._message()
        if found is None:
            raise EngineError("the process of the second run has died")
        return found

    def _message(self) -> bytes | None:
        """The next message of the process; None if it has ended."""
        data, poll = bytearray(), select.poll()
        poll.register(self._reading, select.POLLIN)
        writing = False
        while len(data) < _SIZE.size or len(data) < _SIZE.size + _SIZE.unpack_from(data)[0]:
            if bool(self._unsent) is not writing:
                writing = not writing
                if writing:
                    poll.register(self._writing, select.POLLOUT)
                else:
                    poll.unregister(self._writing)
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._writing in ready:
                self._flush()
            if self._reading in ready:
                piece = os.read(self._reading, _PIECE)
                if not piece:
                    return None
                data += piece
        return bytes(memoryview(data)[_SIZE.size :])

    @contextmanager
    def _passing_signals(self) -> Iterator[None]:
        def passed(number: int, frame: FrameType | None) -> None:
            self._heard.append(number)
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)

        before = {
            number: signal.signal(number, passed)
            for number in _PASSED
            # As a run hears them: of ignored ones only nohup's is left alone. A shell ignores
            # SIGINT for what it starts behind itself.
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def close(self) -> None:
        """End it, whatever it does."""
        if not self._open:
            return
        self._open = False
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.close(self._writing)
        os.close(self._reading)
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _be_beside(work: Work, theirs: tuple[int, int], ours: tuple[int, int], maker: int) -> NoReturn:
    """The life of the process."""
    code = 1
    try:
        for descriptor in theirs:
            os.close(descriptor)
        os.setpgid(0, 0)  # the terminal's signals are those of the first run
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        reading, writing = ours
        if os.getppid() == maker:
            with open(reading, "rb") as stream:
                feed = _Feed(stream)
                results, serve = work(FedIO(feed), FedTimes(feed))
                _send(writing, results)
                while serve is not None and (wanted := feed.asked()) is not None:
                    _send(writing, serve(*wanted))
            code = 0
    finally:
        os._exit(code)  # whatever has happened: nothing of the maker's is carried on here


def _send(descriptor: int, message: bytes) -> None:
    data = memoryview(_SIZE.pack(len(message)) + message)
    while data:
        data = data[os.write(descriptor, data) :]
