"""The run that a front end has at hand: what is looked at in this run, and the views of it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Protocol

from msgspec.structs import replace

from engine.errors import CommandError
from engine.image.gofunctions import has_go
from engine.session.control.file_progress import FileProgress, Reached
from engine.session.control.guest import DebuggedGuest
from engine.session.control.past.position import RunPosition
from engine.session.control.runs import EventTeller, KeptRun
from engine.session.protocol import commands as cmd
from engine.session.protocol.probes import ProbeView
from engine.session.protocol.views import (
    DisplayView,
    GuestView,
    HistoryView,
    LayoutView,
    OriginLink,
    PartsView,
    RunState,
)


class TypedWords(Protocol):
    """Carries lines of gdb's words out, and is told what else happens to the guest."""

    def words(self) -> tuple[tuple[tuple[str, ...], str], ...]:
        """Names of all words, and what each does."""

    def carry_out(self, text: str) -> str:
        """Carry a line out; what it printed."""

    def complete(self, line: str) -> list[str]:
        """Whole lines that a line may become."""

    def moves(self, line: str) -> bool:
        """True if a line may let the guest move."""

    def begins_to_move(self) -> None:
        """The guest is about to move."""

    def moved(self) -> None:
        """The guest has moved."""

    def returning(self) -> Callable[[], str]:
        """Note what a call loses at its return: tells the value behind it, in words."""

    def branched(self) -> None:
        """The run at hand is another branch than before."""

    def remark(self, row: int) -> str:
        """When a row of the list of probes stops the guest, in words."""

    def saved(self) -> tuple[cmd.SavedStop, ...]:
        """The stops that words know more of than the list of probes, for another session."""

    def restore(self, stops: tuple[cmd.SavedStop, ...]) -> list[str]:
        """Ask it again; what cannot be done, in words."""

    def displays(self) -> tuple[DisplayView, ...]:
        """The expressions that are shown at each stop."""

    def display_parts(self, branch: cmd.Branch) -> PartsView | None:
        """The value of one of them, and what is in it."""

    def layout(self, text: str, *, again: bool) -> LayoutView:
        """The parts of an object in memory."""


class RunSight:
    """The run at hand, and all that a front end looks at in this run.

    Attributes:
        words: carries lines of gdb's words out; None before the first of these lines.
        links: of the value that was followed back last.
        moves: counts what the guest has done, threads that were chosen and fresh starts.
        frame: number of the frame that is looked at; the guest's motions make it 0.
        goroutines: views list those of a Go program.
        stack: words of the stack that views hold.
        reading: how far the engine is with the files that words have it read.
    """

    def __init__(self, telling: EventTeller, learn: Callable[[], object] | None) -> None:
        """No run is at hand.

        Args:
            telling: gets the context of each run that comes to hand.
            learn: called before the first line of words: sets `words`; None where nobody does.
        """
        self.words: TypedWords | None = None
        self._learn = learn
        self.links: tuple[OriginLink, ...] = ()
        self.moves = self.frame = 0
        self.goroutines = False
        self.stack = 0
        self.reading = FileProgress()
        self._telling = telling
        self._gate = threading.Lock()
        self._hears = False
        self._kept: KeptRun | None = None

    @property
    def is_open(self) -> bool:
        """True while a run is at hand."""
        return self._kept is not None

    @property
    def run(self) -> KeptRun:
        """The run at hand.

        Raises:
            CommandError: the run has been given back, and no memory of it can be looked at.
        """
        if self._kept is None:
            raise CommandError("the guest is closed: nothing can be asked of it any more")
        return self._kept

    @property
    def place(self) -> RunPosition:
        """The place in the run at hand at which the front end stands."""
        return self.run.place

    @property
    def here(self) -> DebuggedGuest:
        """The guest in which the front end stands, and all that works on it."""
        return self.place.here

    # -- the run at hand --------------------------------------------------------------------

    def begin(self, run: KeptRun) -> None:
        """Have a run at hand that begins, and does not hear yet."""
        self._kept = run

    def take(self, run: KeptRun) -> None:
        """Have another run at hand; `attention` is heard in this run from now on."""
        with self._gate:
            self._kept, self._telling.context = run, run.context

    def leave(self) -> None:
        """Tell words that another run is about to be at hand."""
        if self.words is not None:
            self.words.begins_to_move()

    def arrive(self) -> None:
        """Tell words that another run is at hand: what was known of addresses does not hold."""
        self.place.change()
        self.moves_on()
        self.here.running.origin = "insn"
        if self.words is not None:
            self.words.branched()

    def close(self) -> None:
        """Give the run at hand up."""
        self._kept = None

    # -- from any thread --------------------------------------------------------------------

    def hear(self, *, on: bool) -> None:
        """Let `attention` and `nudge` reach the run at hand, or nobody."""
        with self._gate:
            self._hears = on

    def attention(self) -> None:
        """Make a running guest ask soon what has come in."""
        with self._gate:
            if self._hears:
                self.here.session.attend()

    def nudge(self) -> None:
        """Ask again if the guest has not heard yet; for a timer."""
        with self._gate:
            if self._hears and self.here.session.waiting():
                self.here.session.nudge()

    @property
    def how_far(self) -> Reached | None:
        """The part of the work at hand that is done; None where nobody knows.

        Raises:
            CommandError: the run has been given back.
        """
        part = self.place.how_far
        return self.reading.reached if part is None else (part, "")

    # -- what is looked at ------------------------------------------------------------------

    def known_words(self) -> TypedWords:
        """The object that carries words out.

        Raises:
            CommandError: the front end knows no words.
        """
        if self.words is None and self._learn is not None:
            self._learn()
        if self.words is None:
            raise CommandError("nobody knows words here")
        return self.words

    def moves_on(self) -> None:
        """Look at another moment, or another thread, and at no frame of it yet."""
        self.moves += 1
        self.frame, self.here.focus.elsewhere = 0, None

    def look_at(self, frame: int) -> None:
        """Look at a frame of the backtrace, and with it at the memory of its program."""
        self.frame = frame
        self.here.focus.elsewhere = self.here.viewing.space_of(frame)

    @contextmanager
    def visit(self) -> Iterator[None]:
        """Have the processor hold the thread in sight, to be looked at, while the guest stands."""
        with self.here.focus.visit() if self.here.stands else nullcontext():
            yield


class GuestViews:
    """Makes views of the run at hand, one after the other.

    While the guest runs a view shows what the one before has shown of its last stop.
    """

    def __init__(
        self,
        branched: Callable[[HistoryView | None], HistoryView | None],
        *,
        is_shown: bool = True,
    ) -> None:
        """Start without a view.

        Args:
            branched: adds the branches that there are to the line of a run.
            is_shown: False where nobody looks at registers, frames and lines: they are left out
                then, as they want the debug information of each file on the stack.
        """
        self._branched, self._is_shown = branched, is_shown
        self._last = GuestView()

    def make(
        self,
        run: KeptRun,
        words: TypedWords | None,
        *,
        frame: int,
        moment: int,
        goroutines: bool = False,
        stack: int = 0,
    ) -> GuestView:
        """The view of this moment.

        Args:
            run: the one at hand.
            words: who carries typed words out; None before the first of them.
            frame: number of the frame that is looked at.
            moment: counts motions of the guest.
            goroutines: those of a Go program are listed.
            stack: words of the stack that it holds.
        """
        place, here, last = run.place, run.place.here, self._last
        session, viewing, kernel = here.session, here.viewing, here.session.kernel
        running, focus, stands = here.running, here.focus, here.stands
        state = running.state
        if state is RunState.RUNNING and kernel.waiting_in:
            state = RunState.WAITING
        looks = stands and self._moved(run)
        mid_hit = running.machine is not None
        listed = focus.threads(stands=stands, looks=looks and not mid_hit)
        raw, pc = last.raw_pc, last.pc
        with focus.visit() if stands else nullcontext():
            parked = focus.parked
            waiting = kernel.waiting_in if parked is None else ""
            modules = focus.space.modules
            own = running.own if focus.is_runner else {}
            if stands:
                raw = session.cpu.read_register(session.arch.roles.pc)
                raw = raw if parked is None else parked.pc
                pc = running.stands_at(raw) if focus.is_runner else focus.original_pc(raw)
            # Behind a program's frames stand a kernel's, of which `visit` wants the memory.
            if looks and (self._is_shown or session.user_programs is not None):
                registers, frames = (
                    viewing.registers(run.origin, parked),
                    viewing.frames(waiting, own, parked),
                )
            else:
                looked = frame if stands and self._is_shown else 0
                registers, frames = viewing.same_registers(), viewing.same_frames(looked)
            thread = session.machine.tid
            words_there = last.stack[:stack]
            if stands and stack:  # a frame of another program may be looked at by now
                words_there = viewing.stack(stack)
        looked_at = running.state is not RunState.RUNNING and focus.is_runner
        hit = running.hit if looked_at else None
        found = last.goroutines if goroutines else None
        if goroutines and stands and not mid_hit:
            found = focus.goroutines(looks=looks)
        module = modules.at(pc) if stands and self._is_shown else None
        self._last = GuestView(
            state=state,
            reason="" if running.state is RunState.RUNNING else running.reason,
            cause=running.cause,
            arch=session.arch.name,
            program=session.paths.guest,
            build_id=viewing.build_id,
            pc=pc,
            raw_pc=raw,
            location=str(modules.locate(pc)) if stands else last.location,
            line=module.line_at(pc) if module is not None else None,
            registers=registers,
            stack=words_there,
            frames=frames[0],
            frames_end=frames[1],
            frame=frame,
            moment=moment,
            stops=words.saved() if words is not None else (),
            displays=words.displays() if words is not None else (),
            unwinder=viewing.unwinder.name,
            hit=hit,
            at_hit=looked_at and not running.ended and (mid_hit or running.meets() is not None),
            probes=self.probes(run, words),
            planted=viewing.planted(),
            modules=viewing.modules(),
            mappings=viewing.mappings() if stands else last.mappings,
            comms={
                thread: name.decode(errors="replace")
                for thread, name in session.machine.comms.items()
            },
            pids=dict(session.machine.pids),
            thread=thread,
            threads=len(session.machine.threads),
            listed=listed,
            goroutines=found,
            is_go=modules.main is not None and modules.main.image.once(has_go),
            alone=focus.alone,
            program_in_sight=here.tracing.programs.number(focus.seen),
            time=session.cpu.coming() if place.in_past else session.cpu.blocks(),
            system_calls=session.machine.syscall_count,
            waiting_in=waiting,
            events=run.told.count,
            exit_code=run.exit_code,
            troubles=here.troubles.summary,
            changed=place.changes,
            undo=place.present.history.undo_text,
            redo=place.present.history.redo_text,
            histograms=(
                *(
                    run.switches.script.texts(session.cpu.coming() if place.in_past else None)
                    if run.switches.script.request is not None
                    else ()
                ),
                *place.present.histograms.texts(running=running.state is RunState.RUNNING),
            ),
            detours=viewing.detours.counts(),
            history=self._branched(place.view()),
        )
        return self._last

    @staticmethod
    def probes(run: KeptRun, words: TypedWords | None) -> tuple[ProbeView, ...]:
        """The list of a run's probes, with what words ask of their stops.

        Args:
            run: the run whose list is shown.
            words: who carries typed words out; None before the first of them.
        """
        place = run.place
        views = place.present.probes.views(place.here.focus.space)
        if words is None:
            return views
        return tuple(
            replace(view, only=only) if (only := words.remark(view.row.id)) else view
            for view in views
        )

    @staticmethod
    def _moved(run: KeptRun) -> bool:
        """True if the guest has moved since this was asked last: looks are taken once a stop."""
        here = run.place.here
        running, calls = here.running, here.session.machine.syscall_count
        blocked = running.state is RunState.RUNNING and calls != run.calls
        run.calls = calls
        origin, running.origin = running.origin, None
        if origin is None and not blocked:
            return False
        run.origin = origin or "insn"
        return True
