"""The past of the run at hand, its landmarks, and the way back to the present."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from engine.errors import CommandError
from engine.history.inputs import HostInputs
from engine.history.journal import Journal, Op
from engine.history.livecheckpoints import LiveCheckpoints
from engine.history.moment import Moment
from engine.history.recording import RunRecorder
from engine.linux.machine import Machine
from engine.linux.schedule import Why
from engine.linux.thread import Thread
from engine.session.control.running import StopQuestions
from engine.session.guest.past import PastSession, record
from engine.session.guest.session import Session
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import HistoryView, MarkView, OriginLink, StopCause

if TYPE_CHECKING:
    from engine.session.control.past.backwards import Backwards
    from engine.session.control.past.search import StopPlace

CELLS: Final = 256
"""Stretches that a view divides a run into."""
_NAME_MAX: Final = 64


class Landmarks:
    """The moments of one run.

    Attributes:
        marks: the user's bookmarks.
    """

    def __init__(self, session: Session, is_full: Callable[[], bool] = lambda: False) -> None:
        """The guest stands in front of its first instruction.

        Args:
            session: the run.
            is_full: says that no more of it is recorded: nobody can go to what comes then.
        """
        self.marks: dict[str, Moment] = {}
        self._session = session
        self._is_full = is_full
        self._turns = array("Q", (0,))
        self._threads = array("Q", (session.machine.tid,))
        self._written = array("Q")
        session.machine.moments.switching.append(self._switching)

    def _switching(self, before: Thread | None, thread: Thread | None, why: Why) -> None:
        if self._is_full():
            return
        now, tid = self._session.cpu.blocks(), 0 if thread is None else thread.tid
        if self._turns[-1] == now:
            self._threads[-1] = tid
        else:
            self._turns.append(now)
            self._threads.append(tid)

    def written(self, size: int) -> None:
        """The guest's thread at hand has written something."""
        clock = self._session.cpu.blocks()
        if not self._written or self._written[-1] != clock:
            self._written.append(clock)

    def call(self, behind: tuple[int, int] | None = None) -> tuple[int, int]:
        """Tick and instruction of the system call that is carried out.

        Args:
            behind: the tick, and the pc behind the instruction, if they are known.
        """
        session = self._session
        linux = session.arch.linux
        if behind is None:
            pc = session.cpu.read_register(session.arch.roles.pc)
            pc = session.seen.hooks.original_pc(pc)
            behind = session.cpu.blocks(), pc
        tick, pc = behind
        before = linux.syscall_before
        return tick, pc - linux.syscall_size if before is None else before(pc)

    def mark(self, name: str, moment: Moment) -> str:
        """Give a moment a name; what it is called.

        Args:
            name: it; "" for a number that no mark has.
            moment: the moment that gets a name.

        Raises:
            CommandError: it is no name.
        """
        if not name:
            numbers = range(1, len(self.marks) + 2)
            name = next(each for n in numbers if (each := f"m{n}") not in self.marks)
        if not name.replace("-", "_").replace(".", "_").isidentifier() or len(name) > _NAME_MAX:
            raise CommandError(f"{name}: a bookmark's name begins with a letter")
        if name in ("begin", "start", "end"):
            raise CommandError(f"{name}: every run has that one")
        self.marks[name] = moment
        return name

    def mark_of(self, name: str) -> Moment:
        """The moment of a bookmark.

        Raises:
            CommandError: there is none of that name.
        """
        found = self.marks.get(name)
        if found is None:
            known = ", ".join(self.marks)
            raise CommandError(f"there is no bookmark {name}; there are {known or 'none'}")
        return found

    def unmark(self, name: str) -> None:
        """Forget a bookmark.

        Raises:
            CommandError: there is none of that name.
        """
        self.mark_of(name)
        del self.marks[name]

    def view(self, now: int, end: int, *, past: bool, checkpoints: Iterable[int]) -> HistoryView:
        """The run as a line.

        Args:
            now: the tick at which the guest stands.
            end: that of the present.
            past: whether it stands in the past.
            checkpoints: the ticks of those that there are.
        """
        bounds = [end * cell // CELLS for cell in range(CELLS + 1)]
        threads: tuple[int, ...] = ()
        if len(self._turns) > 1:
            threads = tuple(
                self._threads[max(bisect_right(self._turns, (low + high) // 2) - 1, 0)]
                for low, high in pairwise(bounds)
            )
        return HistoryView(
            now,
            end,
            past,
            tuple(
                MarkView(name, each.clock, each.pc)
                for name, each in sorted(self.marks.items(), key=lambda item: item[1])
            ),
            threads,
            _held(bounds, self._written),
            _held(bounds, array("Q", checkpoints)),
        )


def _held(bounds: list[int], ticks: "array[int]") -> bytes:
    """1 for each stretch in which there is one of some ticks, which are in order."""
    found = bytearray(len(bounds) - 1)
    if not ticks:
        return bytes(found)
    places = [bisect_left(ticks, bound) for bound in bounds[:-1]]
    places.append(bisect_right(ticks, bounds[-1]))
    for cell, (low, high) in enumerate(pairwise(places)):
        found[cell] = high > low
    return bytes(found)


OVER: Final = "No more reverse-execution history."
"""The words of gdb for the first instruction."""


_JOURNAL: Final = 512 << 20
"""Bytes that the journal of a run may take; its history ends there."""


class PastStop(NamedTuple):
    """Why a motion in the past has stopped.

    Attributes:
        text: the reason in words; "" where the motion has come to its end.
        cause: the kind of the reason.
    """

    text: str = ""
    cause: StopCause = StopCause.ARRIVED


class FinishedRecorder:
    """Stands for the recorder of a run that is lived through again: all is recorded.

    Attributes:
        journal: what has been recorded.
        wrote: told of what the guest writes, by its bytes.
        full: never; and where it ended then.
        end: the tick at which the record ended.
        call: none is carried out by this machine's own kernel.
        inputs: what came from the host.
    """

    call: tuple[int, int] | None = None

    def __init__(self, journal: Journal, inputs: HostInputs) -> None:
        """All of it is there."""
        self.inputs: HostInputs | None = inputs
        self.journal = journal
        self.wrote: Callable[[int], object] = lambda size: None
        self.full, self.end = False, 0

    def sync(self) -> None:
        """Everything is in the journal."""

    @contextmanager
    def edited(self) -> Iterator[None]:
        """Nothing can be changed.

        Raises:
            CommandError: always.
        """
        raise CommandError(
            "a recording cannot be changed, its probes can; branch continues from an earlier "
            "moment in a run of its own"
        )
        yield


class Travel:
    """Goes to the past of one run.

    Attributes:
        recorder: of the run.
        there: the guest stands in the past.
        landmarks: bookmarks and the like.
        links: of the value that was followed back last.
        mid_hit: gives tick and address at which the hit has begun in whose middle the run itself
            stands; None where it does not.
    """

    def __init__(
        self,
        live: Session,
        recorder: "RunRecorder | FinishedRecorder",
        again: PastSession | None,
        kept: LiveCheckpoints | None = None,
    ) -> None:
        """The guest stands in the present.

        Args:
            live: the run.
            recorder: has recorded it from its first instruction on.
            again: it, if it is itself lived through again.
            kept: takes checkpoints of it, if anything does.
        """
        self.recorder = recorder
        self.there = False
        self.links: tuple[OriginLink, ...] = ()
        self.mid_hit: Callable[[], tuple[int, int] | None] = lambda: None
        self.landmarks = Landmarks(live, lambda: recorder.full)
        recorder.wrote = self.landmarks.written
        self._live = live
        self._again = again
        self._kept = kept
        self._past: PastSession | None = None
        self._backwards: Backwards | None = None
        self._left = 0  # the tick of the present when it was last left

    @property
    def past(self) -> PastSession:
        """The guest of the past, from whose start on all is known."""
        if self._past is None:
            self._past = self.fresh()
            self.present()  # as far as there is anything
        return self._past

    def fresh(self) -> PastSession:
        """The run once more, in front of its first instruction."""
        live = self._live
        if self._again is not None:
            return self._again.again()
        config = replace(live.config, history=False, record_schedule=None)
        self.recorder.sync()
        from engine.session.program.recorded import RecordedGuest  # few guests are recorded

        opened = live.opened
        files = opened.files if isinstance(opened, RecordedGuest) else None
        return PastSession(config, self.recorder.journal, live.ram.size, opened, files)

    def lendable(self, moment: Moment, distance: int) -> Moment | None:
        """The checkpoint so many in front of a moment, if another guest can begin there.

        Args:
            moment: the moment that is looked back from.
            distance: number of the checkpoint, counted back from there.

        Returns:
            Its moment. None if there is no such checkpoint but the first instruction, or if the
            guest has several processes there or is another program than at first.
        """
        if self._backwards is None:
            return None
        checkpoints = self._backwards.timeline.checkpoints
        index = bisect_left(checkpoints.marks, moment) - distance
        if index <= 0 or not checkpoints.can_lend(index):
            return None
        if list(checkpoints.taken[index].spaces) != [0]:  # probes are placed in one
            return None
        return checkpoints.marks[index]

    def begun(self, mark: Moment | None) -> PastSession:
        """The run once more, at a checkpoint that can be lent; None for its first instruction."""
        past = self.fresh()
        if mark is not None:
            checkpoints = self.backwards.timeline.checkpoints
            checkpoints.lend(checkpoints.marks.index(mark), past.kernel, past.ram)
        return past

    @property
    def backwards(self) -> "Backwards":
        """The motions of the guest of the past."""
        if self._backwards is None:
            from engine.session.control.past.backwards import Backwards  # few runs go back

            self._backwards = Backwards(self.past, self._kept)
        return self._backwards

    @property
    def how_far(self) -> float | None:
        """The part of the way to a moment of the past that has been gone; from any thread."""
        backwards = self._backwards
        return None if backwards is None else backwards.timeline.how_far

    @property
    def _at(self) -> int:
        """Entries of the journal that have happened by now."""
        if self._again is not None:
            return self._again.kernel.at
        return len(self.recorder.journal)

    def present(self) -> Moment:
        """The moment at which the run itself stands."""
        self.recorder.sync()
        live = self._live
        present = Moment(self._at, *live.probes().standing())
        began = self.mid_hit()
        if began is not None:  # of what comes then the past knows nothing yet
            present = Moment(self._at, *began)
        if self.recorder.full:
            present = Moment(len(self.recorder.journal), self.recorder.end, 0)
        if self._past is not None and self._again is None:
            self._past.kernel.reached = present.clock
        return present

    @property
    def is_over(self) -> bool:
        """True if the run has ended, or no more of it is recorded."""
        return self.has_ended or self.recorder.full

    @property
    def of_recording(self) -> bool:
        """True if the run is itself lived through again, as one in a recording is."""
        return self._again is not None

    @property
    def has_ended(self) -> bool:
        """True if the program has."""
        return self._live.machine.exit is not None

    @property
    def machine(self) -> Machine:
        """The machine of the run itself."""
        return self._live.machine

    def collect(self) -> None:
        """Bring the counts of the run's own probes up to date."""
        self._live.probes().collect()

    def leave(self) -> None:
        """Stand in the past, where the run stands now, unless that is cut."""
        present, timeline = self.present(), self.backwards.timeline
        self.backwards.forget(self._left)
        self._left = present.clock
        timeline.approach(present.at, present.clock, self.backwards.cut)
        if self.backwards.cut():
            return
        self.to_present()
        self.there = True

    def to_present(self) -> None:
        """Have the guest of the past stand where the run itself does."""
        if not self.is_over:
            self.backwards.timeline.seek(self.present())
        else:
            self.backwards.timeline.end()

    def arrived(self) -> bool:
        """True if a motion of the past has come to the present."""
        timeline, present = self.backwards.timeline, self.present()
        now = timeline.now()
        # What the user has changed in the present comes at the very same instruction.
        stands = self._live.machine.exit is None
        return timeline.ended or now >= present or (stands and now[1:] == present[1:])

    def carry_out(
        self,
        command: cmd.Command,
        places: Callable[[], Sequence["StopPlace"]],
        questions: StopQuestions,
    ) -> PastStop:
        """Carry a motion out in the past.

        Args:
            command: the motion.
            places: where the user wants to stop.
            questions: at which accesses the user does, and what an expression means.

        Raises:
            CommandError: it cannot be done.
        """
        backwards = self.backwards
        match command:
            case cmd.StepBack(over):
                (backwards.step_over if over else backwards.step)()
            case cmd.LineBack(over):
                backwards.line(over=over)
            case cmd.FinishBack():
                backwards.finish()
            case cmd.ContinueBack():
                hit = backwards.to_last(places(), questions.watches())
                return PastStop(hit, StopCause.HIT) if hit else PastStop(OVER, StopCause.CUT_SHORT)
            case cmd.Continue():
                hit = backwards.to_next(places(), self.present(), questions.watches()) or ""
                return PastStop(hit, StopCause.HIT) if hit else PastStop()
            case cmd.LastWrite(address, size):
                by = backwards.last_write(address, size)
                return _found(f"written by {by}" if by else "")
            case cmd.LastRegisterWrite(register, tid, callee):
                by = backwards.last_register_write(register, tid, callee)
                return _found(f"written by {by}" if by else "")
            case cmd.Origin(_, register, first, size, tid, callee):
                from engine.session.control.past.origins import FollowedPlace  # few are asked for

                self.links = backwards.origin(FollowedPlace(register, first, size, tid), callee)
            case cmd.FirstTime(text):
                return _found(backwards.first_time(questions.condition(text), self.present()))
            case cmd.LastTime(text):
                return _found(backwards.last_time(questions.condition(text)))
            case cmd.Seek(clock, pc):
                self._seek(clock, pc)
            case cmd.SeekMark(name):
                there = self.landmarks.mark_of(name)
                if there < self.present():
                    backwards.timeline.seek(there)
                else:
                    self._seek(None, None)
            case _:
                raise CommandError("that cannot be done in the past")
        return PastStop()

    def _seek(self, clock: int | None, pc: int | None) -> None:
        timeline, present = self.backwards.timeline, self.present()
        if clock is None or clock > present.clock or (clock == present.clock and pc is None):
            self.to_present()
        elif pc is not None:
            self.backwards.go_to(clock, pc)
        elif clock <= 0:
            timeline.start()
        else:
            timeline.seek_clock(clock)

    def now(self) -> Moment:
        """The moment at which the guest stands."""
        return self.backwards.timeline.now() if self.there else self.present()

    def view(self) -> HistoryView:
        """The run as a line."""
        live = self._live
        now = end = self.recorder.end if self.recorder.full else live.cpu.blocks()
        if self.there:
            now = self.past.cpu.coming()
        taken = self._backwards.timeline.checkpoints.taken if self._backwards is not None else ()
        ticks = (one.clock for one in taken)
        return self.landmarks.view(min(now, end), end, past=self.there, checkpoints=ticks)

    def outputs(self) -> Iterator[tuple[int, int, bytes]]:
        """Tick, instruction, and bytes of all that the run itself has written to the host."""
        linux = self._live.arch.linux
        self.recorder.sync()
        for entry in self.recorder.journal:
            for op in entry.ops:
                if op[0] == Op.OUTPUT:
                    before = linux.syscall_before
                    pc = entry.pc - linux.syscall_size if before is None else before(entry.pc)
                    yield entry.clock, pc, op[2]

    def rest(self) -> None:
        """Give back what has been lived through: the run stays as it is, nobody looks at it."""
        if self._past is not None and self._again is None:
            self._past.close()
            self._past = self._backwards = None
            self._left = 0

    def close(self) -> None:
        """Give the past back."""
        if self._past is not None:
            self._past.close()


def _found(text: str) -> PastStop:
    """A moment was looked for: a text says what happened there, "" that nothing is to be said."""
    return PastStop(text, StopCause.FOUND) if text else PastStop()


def recorded(session: Session, script: HostInputs | None = None, *, keeps: bool) -> Travel:
    """The way to the past of a run that begins, and is recorded from here on.

    Args:
        session: the run, before its first instruction.
        script: what comes from the host at first, as it came to another run.
        keeps: checkpoints are taken meanwhile; its probes may change nothing then.
    """
    recorder = record(session, _JOURNAL, HostInputs(script))
    kept = LiveCheckpoints(session.kernel, recorder) if keeps else None
    return Travel(session, recorder, None, kept)


def lived_through(
    session: Session, path: str, tell: Callable[[ev.SessionEvent], object], *, keeps: bool
) -> Travel:
    """The way to the past of a recording's run.

    Args:
        session: it, before its first instruction.
        path: of the recording.
        tell: takes what the guest writes, and in what the recording is not whole.
        keeps: checkpoints are taken meanwhile; its probes may change nothing then.
    """
    from engine.session.program.recorded import RecordedGuest

    assert isinstance(session, PastSession), "it is lived through again"
    opened = session.opened
    assert isinstance(opened, RecordedGuest), "it is in a recording"
    kept = LiveCheckpoints(session.kernel, session.kernel) if keeps else None
    recorder = FinishedRecorder(session.kernel.journal, opened.outside.inputs)
    travel = Travel(session, recorder, session, kept)

    def written(descriptor: int, data: bytes) -> None:
        travel.recorder.wrote(len(data))
        tell(ev.Output(data.replace(b"\n", b"\r\n"), *travel.landmarks.call()))

    session.kernel.output = written
    if opened.damage_text:
        tell(ev.Notice(f"{path}: {opened.damage_text}"))
    return travel
