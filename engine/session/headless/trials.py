"""Fresh runs of one guest under other turns of its threads, in processes of the host's.

A run that never ends, or takes the emulator with it, is one of another process, which can be
ended; and several are quicker than one.
"""

import ctypes
import hashlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import TIMED_OUT, EngineError, KprobeTuiError
from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.linux.schedule import Choice, Why
from engine.linux.thread import Thread
from engine.linux.turns import ChosenTurns, OwnChoice, TurnKind
from engine.session.guest.session import Session
from engine.session.headless.end_conditions import EndCondition
from engine.session.headless.endings import explain
from engine.session.inspect.backtrace import Backtraces
from engine.session.program.opening import OpenedFiles, OpenedProgram
from engine.session.protocol.config import GuestConfig

_KEPT: Final = 1 << 20
"""Bytes of output that are shown from; all of it is compared."""
_PIECE: Final = 1 << 16
_FRAMES: Final = 12
_PR_SET_PDEATHSIG: Final = 1


class TrialError(KprobeTuiError):
    """A run in another process has failed."""


class OutOfTimeError(KprobeTuiError):
    """The time for runs is over."""


class Attempt(Struct, frozen=True):
    """A run to make.

    Attributes:
        seed: of the turns.
        turns: their kind.
        max_blocks: ticks that it may take, None for any number.
        keep: return the schedule.
        look: look at the threads at each choice that `turns` make.
    """

    seed: int
    turns: TurnKind
    max_blocks: int | None = None
    keep: bool = False
    look: bool = False


class TrialOutcome(Struct, frozen=True):
    """All that two runs can differ in.

    Attributes:
        exit: exit code that stands for the end: 128+N for signal N, 124 for a limit.
        signal: that killed the guest, 0 for none.
        limit: "deadlock" or "max-blocks" if the guest has not ended by itself, else "".
        output: digest of standard output.
    """

    exit: int
    signal: int
    limit: str
    output: str


class Side(Struct, frozen=True):
    """A thread at the moment of a choice.

    Attributes:
        thread: its id and name.
        place: where it stands, in words.
        frames: its backtrace, in lines; () where there is none.
    """

    thread: str
    place: str
    frames: tuple[str, ...]


class Seen(Struct, frozen=True):
    """A choice with both threads.

    Attributes:
        tick: of the guest's clock.
        choice: the choice of the scheduler.
        left: the thread that gives the processor up.
        taken: the one that gets it.
    """

    tick: int
    choice: OwnChoice
    left: Side
    taken: Side


class Ran(Struct, frozen=True):
    """A run that was made.

    Attributes:
        outcome: of it.
        reason: of its end, in words.
        clock: ticks at the end.
        switches: between threads.
        text: what it has written to standard output, as far as it is kept.
        first: id of the first thread.
        choices: its schedule, if that was to be kept.
        seen: its choices with both threads, if they were to be looked at.
        remarks: the report's lines, likewise.
        typed: the bytes of standard input, if this run has read them from the host.
        met: the condition on its end holds: "", or why that cannot be said; None if not.
    """

    outcome: TrialOutcome
    reason: str
    clock: int
    switches: int
    text: bytes
    first: int
    choices: tuple[Choice, ...] = ()
    seen: tuple[Seen, ...] = ()
    remarks: tuple[str, ...] = ()
    typed: bytes | None = None
    met: str | None = None


class HostInput(FeedStream):
    """The host's standard input, read to its end once somebody asks for it.

    Attributes:
        data: all of it; None as long as nobody has asked.
    """

    def __init__(self) -> None:
        """Nothing is read yet."""
        super().__init__()
        self.data: bytes | None = None

    def _fill(self) -> None:
        if self.data is None:
            found = bytearray()
            try:
                while piece := os.read(0, _PIECE):
                    found += piece
            except OSError:  # closed, or not to be read: empty
                pass
            self.data = bytes(found)
            self.feed(self.data)
            self.end()

    def read(self, count: int) -> bytes | None:
        """Up to `count` bytes, b"" at the end."""
        self._fill()
        return super().read(count)

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        self._fill()
        return super().readiness()


def made(
    trial: Attempt,
    config: GuestConfig,
    opened: OpenedProgram | None,
    stdin: bytes | None,
    condition: EndCondition | None = None,
) -> Ran:
    """Make a run.

    Args:
        trial: which.
        config: of the guest; seed and turns are the trial's.
        opened: the program, if it is open already.
        stdin: the bytes of standard input, None to read the host's.
        condition: asked of its end.

    Raises:
        KprobeTuiError: the guest cannot be run, or the condition means nothing.
    """
    given = replace(
        config,
        seed=trial.seed,
        random_seed=config.randomness,
        turns=trial.turns,
        max_blocks=trial.max_blocks,
        count_blocks=True,
    )
    digest, text = hashlib.sha256(), bytearray()

    def write(data: bytes) -> None:
        digest.update(data)
        text.extend(data[: _KEPT - len(text)])

    feed = HostInput() if stdin is None else FeedStream(stdin, ended=True)
    streams = (feed, SinkStream(write), SinkStream(lambda data: None, ino=2))
    session = Session(given, streams, opened)
    try:
        explain(session)
        choices: list[Choice] = []
        looked = _Looked(session) if trial.look else None
        if looked is not None:
            session.kernel.scheduler.chosen = looked.chosen
            session.kernel.switched.append(looked.switched)
        elif trial.keep:
            session.kernel.scheduler.chosen = choices.append
        reports = session.run()
        end = session.machine.exit
        assert end is not None
        clock, switches = session.cpu.blocks(), session.kernel.scheduler.switches
        facts = reports.exit_code, end.signal, clock, switches
        return Ran(
            TrialOutcome(reports.exit_code, end.signal, end.limit, digest.hexdigest()),
            reports.reason,
            clock,
            switches,
            bytes(text),
            session.process.pid,
            tuple(choices if looked is None else looked.choices),
            () if looked is None else tuple(looked.seen),
            tuple(line for remark in reports.remarks for line in remark.lines)
            if trial.look
            else (),
            feed.data if isinstance(feed, HostInput) else None,
            None if condition is None else condition.met(session, facts),
        )
    finally:
        session.close()


class _Looked:
    """Looks at both threads of choices while the guest runs."""

    def __init__(self, session: Session) -> None:
        self.choices: list[Choice] = []
        self.seen: list[Seen] = []
        self._session = session
        self._waiting: tuple[int, OwnChoice, Side] | None = None

    def chosen(self, choice: Choice) -> None:
        """A choice is made; the processor is still the other thread's."""
        self.choices.append(choice)
        turns = self._session.turns
        if isinstance(turns, ChosenTurns) and turns.made is not None:
            left = self._side(self._session.machine.current, turns.made.why)
            self._waiting = choice.tick, turns.made, left

    def switched(self) -> None:
        """The other thread has the processor."""
        if self._waiting is not None:
            tick, choice, left = self._waiting
            self._waiting = None
            self.seen.append(Seen(tick, choice, left, self._side(self._session.machine.current)))

    def _side(self, thread: Thread, why: Why | None = None) -> Side:
        session = self._session
        name = f"thread {thread.tid} ({thread.comm.decode(errors='replace')})"
        if thread.pid != session.process.pid:
            name += f" of process {thread.pid}"
        if why is Why.ENDS:
            return Side(name, "", ())
        call = thread.call.name if thread.wait is not None or thread.answer is not None else ""
        suffix = f", in {call}" if call else ""
        frames = Backtraces(session).take(syscall=call).frames
        inner = next((frame for frame in frames if frame.source != "syscall"), None)
        place = "?" if inner is None else f"{inner.function or '??'}+{inner.offset:#x}"
        if inner is not None and inner.file:
            place += f" ({inner.file}:{inner.line})" if inner.line else f" ({inner.file})"
        lines = tuple(frame.text(number) for number, frame in enumerate(frames[:_FRAMES]))
        return Side(name, place + suffix, lines)


class _Runner:
    """A process of the host's that makes runs."""

    def __init__(
        self, work: Callable[[Attempt, bytes | None], Ran], others: "list[_Runner]"
    ) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, there = context.Pipe()
        inherited = [self.pipe, *(other.pipe for other in others)]
        self.process = context.Process(
            target=_serve, args=(there, work, inherited, os.getpid()), daemon=True
        )
        self.process.start()
        there.close()

    def end(self) -> None:
        """End it, whatever it does."""
        self.process.kill()  # before the pipe goes, whose end the process would complain of
        self.process.join()
        self.pipe.close()


def _serve(
    pipe: Connection,
    work: Callable[[Attempt, bytes | None], Ran],
    inherited: list[Connection],
    parent: int,
) -> None:
    """Make runs until nobody asks for any more."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for each in inherited:
        each.close()
    while True:
        try:
            trial, stdin = pipe.recv()
        except (EOFError, ConnectionResetError):  # the latter where an answer was not read
            return
        try:
            pipe.send(work(trial, stdin))
        except KprobeTuiError as error:
            pipe.send((isinstance(error, EngineError), str(error)))


class Crew:
    """Makes runs of one guest in several processes.

    Attributes:
        stdin: the bytes of standard input; until a run has read them the host's is read.
        runs: made so far.
    """

    def __init__(
        self,
        config: GuestConfig,
        jobs: int,
        seconds: float | None,
        condition: EndCondition | None = None,
        files: OpenedFiles | None = None,
    ) -> None:
        """Nothing runs yet.

        Args:
            config: of the guest.
            jobs: processes.
            seconds: for everything, None for any time.
            condition: asked of each run's end.
            files: those that were opened before.

        Raises:
            ImageError: the guest cannot be run.
        """
        self.stdin: bytes | None = None
        self.runs = 0
        self._jobs = jobs
        self._end = None if seconds is None else monotonic() + seconds
        self._workers: list[_Runner] = []
        self._busy: dict[Connection, tuple[int, Attempt, _Runner]] = {}
        opened = OpenedProgram.open(config, files)
        self._work = lambda trial, stdin: made(trial, config, opened, stdin, condition)

    def one(self, trial: Attempt) -> Ran:
        """Make a run; the first one reads standard input, if the guest asks for it.

        Raises:
            KprobeTuiError: as `several`.
        """
        ran = next(self.several((trial,)))
        if self.stdin is None:
            self.stdin = ran.typed or b""
        return ran

    def several(self, trials: Iterable[Attempt]) -> Iterator[Ran]:
        """Make runs, and give them in their order.

        Those that are left when others are asked for, or nobody asks any more, are ended.

        Raises:
            KprobeTuiError: a run has failed.
            OutOfTimeError: there is no more time.
        """
        waiting = enumerate(trials)
        self._drop()
        busy = self._busy
        done: dict[int, Ran] = {}
        at, left = 0, True
        while True:
            idle = [each for each in self._workers if each.pipe not in busy]
            while left and len(busy) < self._jobs:
                found = next(waiting, None)
                if found is None:
                    left = False
                    break
                worker = idle.pop() if idle else self._hired()
                worker.pipe.send((found[1], self.stdin))
                busy[worker.pipe] = (*found, worker)
            while at in done:
                yield done.pop(at)
                at += 1
            if not busy:
                return
            for pipe in self._heard(busy):
                index, trial, _ = busy[pipe]
                done[index] = _answer(pipe, trial)
                del busy[pipe]
                self.runs += 1

    def _drop(self) -> None:
        """End the runs that nobody waits for any more."""
        for _, _, worker in self._busy.values():
            self._workers.remove(worker)
            worker.end()
        self._busy.clear()

    def _hired(self) -> _Runner:
        worker = _Runner(self._work, self._workers)
        self._workers.append(worker)
        return worker

    def _heard(self, busy: Iterable[Connection]) -> list[Connection]:
        rest = None if self._end is None else max(self._end - monotonic(), 0)
        ready = [each for each in wait(list(busy), rest) if isinstance(each, Connection)]
        if not ready:
            raise OutOfTimeError(TIMED_OUT)
        return ready

    def last(self) -> None:
        """From here on there is time, for what is left to be said."""
        self._end = None

    def close(self) -> None:
        """End all processes."""
        while self._workers:
            self._workers.pop().end()


def _answer(pipe: Connection, trial: Attempt) -> Ran:
    try:
        answer = pipe.recv()
    except (EOFError, ConnectionError):
        raise EngineError(
            f"a run with seed {trial.seed} and turns {trial.turns} took its process with it"
        ) from None
    if isinstance(answer, Ran):
        return answer
    ours, text = answer
    raise (EngineError if ours else TrialError)(text)
