"""All that has come into a run from its host: answers to its kernel, and acts of its user.

That is all that a live guest needs, beside its program and its seed, to come to the same moment
once more: `HostInputs` keeps it, `InputStream` stands between a guest's standard streams and the
host. Until the guest has come there it gets the answers that are kept, nothing is asked of the
host and nothing is written to it; from there on the host answers, and all is kept again.
"""

import os
import select
import termios
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct

from engine.history.moment import Moment
from engine.linux.fs import flags as fl
from engine.linux.fs.stdio import HostIO, HostStream, StreamStat
from engine.linux.host import HostEvents
from engine.linux.process import Process

_MOST: Final = 64 << 20
"""Bytes of answers that are kept of a run."""
_OF_ANSWER: Final = 120
"""Bytes that the answer to a question about readiness takes."""
_ALIKE: Final = 8
"""Times that "not ready" is kept in a row: how often a wait asks is the host's business."""
_SETTINGS: Final = (termios.TCSETS, termios.TCSETS + 1, termios.TCSETS + 2)
_TERMIOS: Final = 36

Answer = TypeVar("Answer", int, bytes, StreamStat)


class ActKind(Enum):
    """The kinds of what a user does to a guest that is part of its run."""

    EDIT = "a change by the user"
    SIGNAL = "a signal of the user's"
    PREFER = "a thread that is to run alone"
    PREFER_NEXT = "a thread that is to run alone from its next turn on"


class UserAct(NamedTuple):
    """Something that the user did.

    Attributes:
        moment: when.
        kind: what.
        value: what follows `Op` for a change, the signal's number, the thread's id or 0.
    """

    moment: Moment
    kind: ActKind
    value: Any

    @property
    def makes_entry(self) -> bool:
        """True if the journal has an entry of it."""
        return self.kind in (ActKind.EDIT, ActKind.SIGNAL)


class _HostRefusal(NamedTuple):
    """The host's refusal."""

    code: int


class InputPiece(Struct, frozen=True):
    """A part of what came into a run, as it is written to a file.

    Attributes:
        acts: what the user did.
        calls: answers: numbers, bytes, (errno,), or attributes.
        reads: numbers of those that are bytes read from a stream.
        readiness: entry, tick, question, answers to it.
        timeouts: entry, tick, number of waits that were over by time.
        accesses: device, number, time.
    """

    acts: tuple[UserAct, ...] = ()
    calls: tuple[Any, ...] = ()
    reads: tuple[int, ...] = ()
    readiness: tuple[tuple[int, int, int, list[int]], ...] = ()
    timeouts: tuple[tuple[int, int, int], ...] = ()
    accesses: tuple[tuple[int, int, int], ...] = ()


class HostInputs:
    """Everything that came into one run from its host.

    Attributes:
        acts: what the user did, in order.
        calls: what the host answered, in order.
        reads: numbers of those answers that are bytes read from a stream.
        readiness: answers to the question what a stream is ready for, by entry of the journal,
            tick and question.
        timeouts: waits for the host that were over by time alone, by entry and tick.
        accesses: times at which files of the host had been read when the guest first asked.
        full: there was too much: what came later is not kept.
        now: gives the entry of the journal that is next, and the tick.
        unlike: the guest has asked for something else than it did before.
        dry: it waits for something that did not come before.
    """

    def __init__(self, script: "HostInputs | None" = None) -> None:
        """Nothing has come yet.

        Args:
            script: answers that are to be given again, until `go_live`.
        """
        self.acts: list[UserAct] = []
        self.calls: list[Any] = []
        self.reads: list[int] = []
        self.readiness: dict[tuple[int, int, int], list[int]] = {}
        self.timeouts: dict[tuple[int, int], int] = {}
        self.accesses: dict[tuple[int, int], int] = {}
        self.full = False
        self.now: Callable[[], tuple[int, int]] = lambda: (0, 0)
        self.unlike = self.dry = False
        if script is not None:
            self.accesses.update(script.accesses)
        self._script = script
        self._given = self._gone = self._told_accesses = 0
        self._key = (-1, -1)
        self._asked: dict[int, int] = {}
        self._waited = 0
        self._size = 0
        self._streams: list[InputStream] = []
        self._wait: Callable[[Mapping[int, int], float | None], bool] = lambda asked, time: True

    def attach(self, process: Process, host: HostEvents) -> None:
        """Stand between the standard streams of a process, which has not run, and the host."""
        known: dict[int, InputStream] = {}
        for file in map(process.files.peek, range(3)):
            if isinstance(file, HostStream):
                io = known.get(id(file.io))
                if io is None:
                    io = known[id(file.io)] = InputStream(file.io, self)
                file.io = io
                io.hold(file)
        self._streams = list(known.values())
        self._wait, host.wait = host.wait, self._waits

    @property
    def size(self) -> int:
        """Bytes that all of it takes."""
        return self._size

    @property
    def again(self) -> bool:
        """True while answers are given again."""
        return self._script is not None

    @property
    def is_usual(self) -> bool:
        """True if the host answers, and has never said but that output is taken."""
        return self._script is None and not self.readiness

    def go_live(self) -> None:
        """The host answers from here on."""
        self._script = None
        self.come_back()

    def come_back(self) -> None:
        """The guest goes on, another one of the same streams did meanwhile."""
        for stream in self._streams:
            stream.come_back()

    def accessed(self, device: int, number: int, time: int) -> int:
        """The time of a file's last access: the first that there was, as to ask changes it."""
        return self.accesses.setdefault((device, number), time)

    # -- in files -------------------------------------------------------------------------------

    def taken(self, *, end: bool = False) -> InputPiece | None:
        """Take out what is written to a file; None for nothing.

        Args:
            end: what is asked at this moment, too: nothing more comes of it.
        """
        at = -1 if end else self.now()[0]
        ready = [key for key in self.readiness if key[0] != at]
        over = [key for key in self.timeouts if key[0] != at]
        known = list(self.accesses.items())[self._told_accesses :]
        if not (self.acts or self.calls or ready or over or known):
            return None
        self._told_accesses += len(known)
        piece = InputPiece(
            tuple(self.acts),
            tuple((each.code,) if isinstance(each, _HostRefusal) else each for each in self.calls),
            tuple(self.reads),
            tuple((*key, self.readiness.pop(key)) for key in ready),
            tuple((*key, self.timeouts.pop(key)) for key in over),
            tuple((*key, time) for key, time in known),
        )
        self._gone += len(self.calls)
        for part in (self.acts, self.calls, self.reads):
            part.clear()
        self._size = 0
        return piece

    def put(self, piece: InputPiece) -> None:
        """Add what was read from a file.

        Raises:
            ValueError: it makes no sense.
        """
        for act in piece.acts:
            # Where a user can change more than that nothing is written to files.
            if act.kind is ActKind.EDIT or not isinstance(act.value, int):
                raise ValueError(f"{act.kind.value} {act.value!r}")
            self.acts.append(act)
        for answer in piece.calls:
            if isinstance(answer, int | bytes):
                self.calls.append(answer)
            elif not isinstance(answer, list) or not all(type(each) is int for each in answer):
                raise ValueError(f"an answer {answer!r} of the host")
            elif len(answer) == 1:
                self.calls.append(_HostRefusal(*answer))
            elif len(answer) == len(StreamStat._fields):
                self.calls.append(StreamStat(*answer))
            else:
                raise ValueError(f"an answer {answer!r} of the host")
            self._size += 8 + (len(answer) if isinstance(answer, bytes) else 0)
        self.reads += piece.reads
        self.readiness.update(((at, tick, key), each) for at, tick, key, each in piece.readiness)
        self.timeouts.update(((at, tick), count) for at, tick, count in piece.timeouts)
        self.accesses.update(((device, file), time) for device, file, time in piece.accesses)
        self._size += _OF_ANSWER * (len(piece.readiness) + len(piece.timeouts))

    def unread(self, script: "HostInputs") -> bytes:
        """Bytes that another run read from streams behind the moment this one has come to."""
        numbers = (number for number in script.reads if self._given <= number < len(script.calls))
        rest = map(script.calls.__getitem__, numbers)
        return b"".join(each for each in rest if isinstance(each, bytes))

    # -- answers --------------------------------------------------------------------------------

    def _keep(self, size: int) -> bool:
        self._size += size
        self.full = self.full or self._size > _MOST
        return not self.full

    def ask(self, kind: type[Answer], call: Callable[[], Answer]) -> Answer:
        """The host's answer, or the one that it gave before.

        Raises:
            OSError: the host has refused.
        """
        script = self._script
        if script is not None:
            answer = script.calls[self._given] if self._given < len(script.calls) else None
            self._given += 1
            if not isinstance(answer, (kind, _HostRefusal)):
                self.unlike = True
                answer = _HostRefusal(5)
        else:
            try:
                answer = call()
            except OSError as error:
                answer = _HostRefusal(error.errno or 5)
        if self._keep(8 + (len(answer) if isinstance(answer, bytes) else 0)):
            self.calls.append(answer)
        if isinstance(answer, _HostRefusal):
            raise OSError(answer.code, os.strerror(answer.code))
        return answer

    def read(self, call: Callable[[], bytes]) -> bytes:
        """Bytes of a stream; see `ask`."""
        number = self._gone + len(self.calls)
        data = self.ask(bytes, call)
        self.reads.append(number)
        return data

    def ready(self, fd: int, events: int, call: Callable[[], int]) -> int:
        """POLL* bits that a stream is ready for."""
        usual = events if events == select.POLLOUT else 0
        at, tick = self.now()
        key = at, tick, fd << 16 | events
        script = self._script
        if script is not None:
            kept = script.readiness.get(key, [])
            number = self._place(at, tick).get(key[2], 0)
            self._asked[key[2]] = number + 1
            answer = kept[min(number, len(kept) - 1)] if kept else usual
        else:
            answer = call()
        known = self.readiness.get(key)
        if known is None:
            # Output is nearly always taken: only where it is not that is worth a place.
            if (answer != usual or not usual) and self._keep(_OF_ANSWER):
                self.readiness[key] = [answer]
        elif answer or len(known) < _ALIKE or known[-1]:
            known.append(answer)
        return answer

    def _place(self, at: int, tick: int) -> dict[int, int]:
        """The number of times that each question was asked at this place."""
        if self._key != (at, tick):
            self._key = at, tick
            self._asked, self._waited = {}, 0
        return self._asked

    def _waits(self, asked: Mapping[int, int], timeout: float | None) -> bool:
        """Wait for the host; as it went before."""
        at, tick = self.now()
        script = self._script
        if script is None:
            came = self._wait(asked, timeout)
        else:
            counts = self._place(at, tick)
            left = any(
                key[:2] == (at, tick) and counts.get(key[2], 0) < len(script.readiness[key])
                for key in _keys(script.readiness, at, tick, asked)
            )
            self._waited += not left
            came = left or self._waited > script.timeouts.get((at, tick), 0)
            self.dry = self.dry or (came and not left)
        if not came and self._keep(_OF_ANSWER):
            self.timeouts[at, tick] = self.timeouts.get((at, tick), 0) + 1
        return came


def _keys(
    known: Mapping[tuple[int, int, int], object], at: int, tick: int, asked: Iterable[int]
) -> list[tuple[int, int, int]]:
    """The keys of the questions about some descriptors that were asked at a place."""
    either = select.POLLIN | select.POLLOUT
    wanted = [(at, tick, fd << 16 | events) for fd in asked for events in (1, 4, either)]
    return [key for key in wanted if key in known]


class InputStream(HostIO):
    """A guest's way to standard streams of the host, by way of what is kept."""

    def __init__(self, inner: HostIO, inputs: HostInputs) -> None:
        """Ask the host as `inner` does."""
        self._inner = inner
        self._inputs = inputs
        self._places: dict[int, int] = {}
        self._settings: dict[int, bytes] = {}

    def hold(self, file: HostStream) -> None:
        """A stream of the guest's leads here."""
        if file.is_regular:
            if file.flags & fl.O_ACCMODE != fl.O_RDONLY:
                return  # others may write there, too
            try:
                self._places[file.fd] = self._inner.seek(file.fd, 0, os.SEEK_CUR)
            except OSError:
                return
        elif file.is_terminal:
            try:
                settings = self._inner.ioctl(file.fd, termios.TCGETS, bytes(_TERMIOS))
            except OSError:
                return
            self._settings[file.fd] = settings

    def come_back(self) -> None:
        """Give files that are read the guest's position, and terminals its settings."""
        for fd, place in self._places.items():
            self._inner.seek(fd, place, os.SEEK_SET)
        for fd, settings in self._settings.items():
            try:
                self._inner.ioctl(fd, termios.TCSETS, settings)
            except OSError:
                continue

    def read(self, fd: int, count: int) -> bytes:
        """Read a stream."""
        data = self._inputs.read(lambda: self._inner.read(fd, count))
        if fd in self._places:
            self._places[fd] += len(data)
        return data

    def write(self, fd: int, data: bytes) -> int:
        """Write; the number of bytes taken."""
        return self._inputs.ask(int, lambda: self._inner.write(fd, data))

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        """Read a redirected file."""
        return self._inputs.ask(bytes, lambda: self._inner.pread(fd, count, offset))

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        """Write a redirected file."""
        return self._inputs.ask(int, lambda: self._inner.pwrite(fd, data, offset))

    def seek(self, fd: int, offset: int, whence: int) -> int:
        """Move the position of a redirected file."""
        place = self._inputs.ask(int, lambda: self._inner.seek(fd, offset, whence))
        if fd in self._places:
            self._places[fd] = place
        return place

    def truncate(self, fd: int, size: int) -> None:
        """Cut a redirected file."""

        def cut() -> int:
            self._inner.truncate(fd, size)
            return 0

        self._inputs.ask(int, cut)

    def poll(self, fd: int, events: int) -> int:
        """POLL* bits that hold now."""
        inputs = self._inputs
        if events == select.POLLOUT and inputs.is_usual and self._inner.has_room(fd):
            return events
        return inputs.ready(fd, events, lambda: self._inner.poll(fd, events))

    def stat(self, fd: int) -> StreamStat:
        """Attributes of the descriptor."""
        return self._inputs.ask(StreamStat, lambda: self._inner.stat(fd))

    def status(self, fd: int) -> int:
        """The stream's status flags."""
        return self._inner.status(fd)

    def is_terminal(self, fd: int) -> bool:
        """True if it is a terminal."""
        return self._inner.is_terminal(fd)

    def keep_settings(self, fd: int) -> None:
        """The guest is about to change a terminal's settings."""
        if not self._inputs.again:
            self._inner.keep_settings(fd)

    def flush(self, fd: int, queue: int) -> None:
        """Drop what a terminal has not handed over."""
        if not self._inputs.again:
            self._inner.flush(fd, queue)

    def ioctl(self, fd: int, request: int, argument: bytes) -> bytes:
        """A terminal's or pipe's answer."""
        answer = self._inputs.ask(bytes, lambda: self._inner.ioctl(fd, request, argument))
        if request in _SETTINGS:
            self._settings[fd] = argument
        return answer
