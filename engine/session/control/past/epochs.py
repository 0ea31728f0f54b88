"""The log of a recorded run, made stretch by stretch, the newest first, by two processes.

A stretch of the past begins at a moment to which the timeline goes quickly, from a checkpoint. It
is lived through with what is recorded now in place from there on. That gives the rows of a run
that was recorded from its start only where no state reaches from one stretch into the next:
`is_in_pieces` says of what that holds.

Each stretch is lived through by a forked process, on its own copy of the guest of the past as it
is, translations included. A fresh process would have to open the program, and to live through the
run up to there: states of the guest cannot be handed over but by a copy of all memory. Where no
checkpoint is yet, this process goes there and takes them, while another one is already behind it.
"""

import ctypes
import gc
import json
import os
import select
import signal
import struct
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, NoReturn

from msgspec import Struct

from engine.arch.plan import Mode
from engine.cpu import hostmemory
from engine.errors import KprobeTuiError
from engine.history.moment import Moment
from engine.linux.machine import Machine
from engine.linux.space import AddressSpace
from engine.probes.kretprobe import Kretprobe
from engine.session.control.past.log import LogContent, PastLog
from engine.session.control.past.travel import Travel
from engine.session.control.probe_list import ProbeList
from engine.session.control.runs import ToldEvents
from engine.session.tracing.programs import Programs
from engine.trace import syscalls
from engine.trace.rows import EventInfo

_SIZE: Final = struct.Struct("<I")
_PIECE: Final = 1 << 18
"""Bytes that are read at once."""
_SET_DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG (linux/prctl.h)."""

Send = Callable[[bytes], None]
"""Takes a message for the process that waits for it."""


class ForkedProcess:
    """A forked process: it sends messages, and ends.

    It shares nothing that either writes to but the pipe of its messages, hears no signals of the
    terminal's, and ends with the thread that has made it. Files stay open in it as long as it
    lives; what it runs must use none of them.

    Attributes:
        descriptor: to wait for: there is something to read.
    """

    def __init__(self, work: Callable[[Send], None]) -> None:
        """Let it work.

        Args:
            work: what it does; it ends with it.

        Raises:
            OSError: the host makes no process.
        """
        self.descriptor, theirs = os.pipe()
        self._buffer = bytearray()
        maker = os.getpid()
        try:
            with warnings.catch_warnings():  # of the other threads: they are not there
                warnings.simplefilter("ignore", DeprecationWarning)
                self.pid = os.fork()
        except OSError:
            os.close(self.descriptor)
            os.close(theirs)
            raise
        if not self.pid:
            _be_forked(work, theirs, maker)
        os.close(theirs)
        os.set_blocking(self.descriptor, False)

    def messages(self) -> tuple[list[bytes], bool]:
        """The messages that have come since, and whether that was all of them."""
        ended, found, buffer = False, [], self._buffer
        with suppress(BlockingIOError):
            while len(buffer) < _PIECE:
                data = os.read(self.descriptor, _PIECE)
                if not data:
                    ended = True
                    break
                buffer += data
        position = 0
        while position + _SIZE.size <= len(buffer):
            end = position + _SIZE.size + _SIZE.unpack_from(buffer, position)[0]
            if end > len(buffer):
                break
            found.append(bytes(memoryview(buffer)[position + _SIZE.size : end]))
            position = end
        del buffer[:position]
        return found, ended

    def end(self) -> threading.Thread:
        """End it, if it still works; nobody waits while the host takes its memory apart.

        Returns:
            Ends when nothing of it is left.
        """
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.descriptor)
        reaping = threading.Thread(target=_reap, args=(self.pid,), daemon=True)
        reaping.start()
        return reaping


def _reap(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _be_forked(work: Callable[[Send], None], pipe: int, maker: int) -> NoReturn:
    """The life of the forked process."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGWINCH):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() == maker:
            gc.disable()  # what it looks at, it copies
            hostmemory.unshare()

            def send(message: bytes) -> None:
                data = memoryview(_SIZE.pack(len(message)) + message)
                while data:
                    data = data[os.write(pipe, data) :]

            work(send)
            code = 0
    finally:
        os._exit(code)  # whatever has happened: nothing of the maker's is carried on here


SHORT: Final = 20_000_000
"""Ticks of a run (about a second) that is not worth the stretches."""
PROCESSES: Final = 2
"""Processes that work at one time."""
_FEWEST: Final = 12
"""Checkpoints that a stretch has, at least: of 0.1 seconds of the processor's time each. A process
takes 0.3 to 0.6 seconds to look at the code around probes, and to translate its stretch, anew."""
_FIRST: Final = 4
"""Checkpoints of the first stretch on the way to the present, which shows the first rows."""
_STRETCHES: Final = 16
"""Stretches of a run, about."""
_GAP: Final = 4
"""Distances between checkpoints that may lie between the last one and the present."""
_WAIT: Final = 0.02
"""Seconds between two looks at whether to go on."""
_TRIES: Final = 2
"""Processes that may try a stretch."""
_END: Final = 1 << 62
"""A tick behind all others."""

_ROWS, _CLOCK, _DONE, _REFUSED, _FAILED = b"rchnf"
"""The first bytes of messages: rows, a tick that is done, hits by row, a notice, an error."""


class EpochError(KprobeTuiError):
    """The log cannot be made in stretches."""


class Epoch(Struct, eq=False):
    """A stretch of the past.

    Attributes:
        number: of the stretch, in order.
        begin: the moment at which it begins.
        end: in front of which it ends.
        over: it ends with the run instead.
        clock: the tick up to which it is done.
        done: it is.
        tries: processes that have failed at it.
    """

    number: int
    begin: Moment
    end: Moment
    over: bool = False
    clock: int = 0
    done: bool = False
    tries: int = 0


def is_in_pieces(
    wanted: LogContent, probes: ProbeList, machine: Machine, mode: Mode, programs: Programs
) -> bool:
    """True if each row of a log is known without what was recorded before.

    That is so for hits of breakpoints and jumps with filters, and for system calls, of one
    process. Calls that are under way, histograms, triggers that turn others off and on, the idle
    state of the scheduler reach further; code that is changed as kernel rules have it does too.

    Args:
        wanted: what is recorded.
        probes: the probes of that.
        machine: that of the run itself.
        mode: strictness of placement.
        programs: those that it has run.
    """
    if programs.several or not hasattr(os, "fork"):
        return False
    if len(set(machine.pids.values())) > 1 or len(machine.processes) > 1:
        return False
    return is_without_state(wanted, probes, mode)


def is_without_state(wanted: LogContent, probes: ProbeList, mode: Mode) -> bool:
    """True if what is recorded of a hit or a system call does not depend on those before.

    Args:
        wanted: what is recorded.
        probes: the probes of that.
        mode: strictness of placement.
    """
    if mode is not Mode.STRICT or wanted.graph:
        return False
    if any(globs and group != syscalls.GROUP for group, globs in wanted.kernel):
        return False
    rows = {row.id for row in wanted.rows}
    return not any(row.rules.triggers for row in wanted.rows) and all(
        entry.probes and not any(isinstance(probe, Kretprobe) for probe in entry.probes)
        for entry in probes.entries
        if entry.row.id in rows
    )


class _EpochProcess(Struct, eq=False):
    process: ForkedProcess
    stretch: Epoch


class PastEpochs:
    """Makes the log of a run in stretches.

    Attributes:
        hits: of each row of the list, by its id, in the stretches that are done.
        refused: what could not be placed, in words.
    """

    def __init__(
        self,
        travel: Travel,
        wanted: LogContent,
        mode: Mode,
        number_of: Callable[[EventInfo], int],
        rows: ToldEvents,
    ) -> None:
        """Nothing is done yet.

        Args:
            travel: the way to the run's past.
            wanted: what is to be recorded.
            mode: strictness of placement.
            number_of: gives the id that an event has in the log.
            rows: tells the rows.
        """
        self.hits: dict[int, int] = {}
        self.refused: list[str] = []
        self._travel = travel
        self._timeline = travel.backwards.timeline
        if not travel.there:
            self._timeline.catch_up()
        self._wanted, self._mode, self._number_of = wanted, mode, number_of
        self._rows = rows
        self._all: list[Epoch] = []
        self._waiting: list[Epoch] = []
        self._workers: list[_EpochProcess] = []
        self._processors = _processors()
        self._end = Moment(0, 0, 0)

    @property
    def is_ahead(self) -> bool:
        """True if there are checkpoints up to the present already, or a processor to go there."""
        return self._processors > 1 or not self._misses(self._travel.present())

    def _misses(self, end: Moment) -> bool:
        """True if the last checkpoint lies far in front of a moment."""
        marks = self._timeline.marks()
        clock = marks[-1].clock
        return end.clock - clock > _GAP * max(clock // len(marks), 1)

    def run(
        self, end: Moment, *, over: bool, goes_on: Callable[[int], bool]
    ) -> tuple[tuple[int, int], ...]:
        """Live through the run.

        Args:
            end: the moment up to which.
            over: there is nothing behind it.
            goes_on: told now and then how many ticks are done: False ends it.

        Returns:
            Stretches that were not done, as it was ended: first and last tick of each.

        Raises:
            EpochError: two processes have failed at one stretch.
        """
        timeline, self._end = self._timeline, end
        here, ended = timeline.now(), timeline.ended
        asked = 0.0
        cut = False

        def look(wait: float = 0.0) -> bool:
            nonlocal asked, cut
            self._attend(wait)
            if not cut and time.monotonic() - asked >= _WAIT:
                asked = time.monotonic()
                cut = not goes_on(self._clock())
            return not cut

        try:
            self._plan()
            if self._misses(end):
                timeline.approach(end.at, end.clock, lambda: not self._led(look))
                self._plan()
            if not cut:
                begin = self._all[-1].end if self._all else timeline.marks()[0]
                if begin < end or over:
                    self._add(Epoch(len(self._all), begin, end, over))
                self._processors += 1  # nobody else works here now
                while (self._waiting or self._workers) and look(_WAIT):
                    pass
        finally:
            for worker in self._workers:
                worker.process.end()
            self._workers.clear()
            if self._travel.there and (timeline.now() != here or timeline.ended != ended):
                timeline.end() if ended else timeline.seek(here)
        return self._missing() if cut else ()

    def _led(self, look: Callable[[], bool]) -> bool:
        """On the way to the present: what has come into reach is worked on."""
        self._plan()
        return look()

    # -- what is to be done ---------------------------------------------------------------------

    def _plan(self) -> None:
        """Make stretches of the checkpoints that are there."""
        marks = [mark for mark in self._timeline.marks() if mark < self._end]
        each = max(len(marks) // _STRETCHES, _FEWEST)
        begin = self._all[-1].end if self._all else marks[0]
        later = [mark for mark in marks if mark > begin]
        if not self._all and len(later) == _FIRST:
            each = _FIRST
        for end in later[each - 1 :: each]:
            self._add(Epoch(len(self._all), begin, end))
            begin = end

    def _add(self, stretch: Epoch) -> None:
        stretch.clock = stretch.begin.clock
        self._all.append(stretch)
        self._waiting.append(stretch)

    def _clock(self) -> int:
        return sum(one.clock - one.begin.clock for one in self._all)

    def _missing(self) -> tuple[tuple[int, int], ...]:
        found: list[tuple[int, int]] = []
        last = self._all[-1].end.clock if self._all else 0
        rest = [(one.begin.clock, one.end.clock) for one in self._all if not one.done]
        if not self._all or self._all[-1].end < self._end:
            rest.append((last, _END))
        if self._all and self._all[-1].over and not self._all[-1].done:
            rest.append((last, _END))
        for begin, end in rest:
            if found and begin <= found[-1][1] + 1:
                found[-1] = found[-1][0], end
            else:
                found.append((begin, end))
        return tuple(found)

    # -- processes ------------------------------------------------------------------------------

    def _attend(self, wait: float) -> None:
        """Take what has come, and let as many work as may."""
        while self._waiting and len(self._workers) < min(self._processors - 1, PROCESSES):
            self._waiting.sort(key=lambda one: one.number)
            self._begin(self._waiting.pop())
        if not self._workers:
            return
        poll = select.poll()
        by_descriptor = {one.process.descriptor: one for one in self._workers}
        for descriptor in by_descriptor:
            poll.register(descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(wait * 1000):
            self._hear(by_descriptor[descriptor])

    def _begin(self, stretch: Epoch) -> None:
        stretch.clock = stretch.begin.clock
        self._rows.begin(stretch.number)
        try:
            process = ForkedProcess(partial(self._live, stretch))
        except OSError as error:
            raise EpochError(f"no process: {error}") from error
        self._workers.append(_EpochProcess(process, stretch))

    def _hear(self, worker: _EpochProcess) -> None:
        stretch = worker.stretch
        messages, ended = worker.process.messages()
        for message in messages:
            kind, data = message[0], message[1:]
            if kind == _ROWS:
                self._rows.rows(data, stretch.number)
            elif kind == _CLOCK:
                stretch.clock = int(data)
            elif kind == _REFUSED:
                text = data.decode()
                if text not in self.refused:
                    self.refused.append(text)
            elif kind == _DONE:
                stretch.done, stretch.clock = True, stretch.end.clock
                for number, hits in json.loads(data).items():
                    self.hits[int(number)] = self.hits.get(int(number), 0) + hits
            else:
                raise EpochError(data.decode())
        if not ended:
            return
        worker.process.end()
        self._workers.remove(worker)
        if stretch.done:
            return
        stretch.tries += 1
        if stretch.tries >= _TRIES:
            raise EpochError("processes have ended in the middle of their work")
        self._waiting.append(stretch)

    # -- in a process ---------------------------------------------------------------------------

    def _live(self, stretch: Epoch, send: Send) -> None:
        """Live through a stretch, in a process of its own."""
        try:
            self._record(stretch, send)
        except KprobeTuiError as error:
            send(bytes((_FAILED,)) + str(error).encode())

    def _record(self, stretch: Epoch, send: Send) -> None:
        past, timeline = self._travel.past, self._timeline
        past.kernel.reached = self._end.clock
        past.kernel.limit = None
        timeline.seek(stretch.begin)
        past.hooks.attention = lambda: None
        if past.probing is not None:
            past.probing.release()
        log = PastLog(
            past,
            self._wanted,
            self._mode,
            self._number_of,
            lambda data: send(bytes((_ROWS,)) + data),
        )
        spaces = past.machine.spaces
        spaces.copied = spaces.replaced = _another
        for text in log.refused:
            send(bytes((_REFUSED,)) + text.encode())

        def goes_on(clock: int) -> bool:
            send(bytes((_CLOCK,)) + str(clock).encode())
            return True

        log.run(stretch.end, over=stretch.over, goes_on=goes_on)
        send(bytes((_DONE,)) + json.dumps(log.hits()).encode())


def _another(old: AddressSpace, new: AddressSpace) -> None:
    raise EpochError("there are several processes")


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
