"""The position of a front end: in the run itself, or in its past."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from engine.errors import CommandError
from engine.session.control.guest import DebuggedGuest
from engine.session.control.running import Abandoned, StopQuestions
from engine.session.guest.session import Session
from engine.session.protocol import commands as cmd
from engine.session.protocol.views import HistoryView, RunState, StopCause

if TYPE_CHECKING:
    from engine.arch.plan import Mode
    from engine.history.timeline import Moment
    from engine.session.control.past.hits import HitPosition, PastHits
    from engine.session.control.past.log import RecordedSources
    from engine.session.control.past.search import WatchPlace
    from engine.session.control.past.travel import Travel


class RunPosition:
    """A run, and the guest of it in which a front end stands.

    Attributes:
        present: the run itself.
        here: where the front end stands: that, or the guest of the past.
        travel: the way to the past; None where the run is not recorded.
        hits: those of the past; None where the run is not recorded.
    """

    def __init__(
        self,
        present: DebuggedGuest,
        travel: "Travel | None",
        make_past: Callable[[Session], DebuggedGuest],
        questions: StopQuestions,
        changed: int = 0,
    ) -> None:
        """Stand in the run itself.

        Args:
            present: the run.
            travel: the way to its past, if it is recorded.
            make_past: makes a guest under control of the run that is lived through.
            questions: say where motions of the past stop.
            changed: how often the code in sight has changed before.
        """
        self._questions = questions
        self.present = self.here = present
        self.travel = travel
        self._make_past = make_past
        self._past: DebuggedGuest | None = None
        self.hits: PastHits | None = None
        self._changed = changed

    @property
    def in_past(self) -> bool:
        """True if the guest stands in its past."""
        return self.travel is not None and self.travel.there

    @property
    def of_recording(self) -> bool:
        """True if the run is one in a recording, of which nothing can be changed."""
        return self.travel is not None and self.travel.of_recording

    @property
    def changes(self) -> int:
        """Count the moments from which on the code in sight may be other code than before."""
        return self._changed + self.here.probing.changes

    def change(self) -> None:
        """The same addresses may have other code now."""
        self._changed += 1

    def _stand_in(self, guest: DebuggedGuest) -> None:
        seen = self.changes
        self.here = guest
        self._changed = seen + 1 - guest.probing.changes

    # -- the history ----------------------------------------------------------------------------

    def history(self) -> tuple[int, int, bool] | None:
        """Ticks at which the guest stands, and the run; whether it stands in the past.

        None without history.
        """
        if self.travel is None:
            return None
        now = self.here.session.cpu.coming()
        return now, self.travel.present().clock, self.travel.there

    def view(self) -> HistoryView | None:
        """The run as a line; None without history."""
        return None if self.travel is None else self.travel.view()

    @property
    def how_far(self) -> float | None:
        """The part of the way to another moment that has been gone; from any thread."""
        return None if self.travel is None else self.travel.how_far

    def call_at_hand(self) -> tuple[int, int] | None:
        """Tick and instruction of the call that is carried out; None where none is recorded."""
        travel = self.travel
        if travel is None or travel.recorder.full:
            return None
        return travel.landmarks.call(travel.recorder.call)

    @property
    def records_calls(self) -> bool:
        """True if `call_at_hand` knows the moment of a call that is carried out now."""
        return self.travel is not None and not self.travel.recorder.full

    def mark(self, command: cmd.SetMark) -> str:
        """Make the moment at hand a bookmark; in words.

        Raises:
            CommandError: it cannot be done.
        """
        travel = self._marked()
        if not self.here.stands:
            raise CommandError("the program is running; Ctrl-C stops it")
        moment = travel.now()
        return f"bookmark {travel.landmarks.mark(command.name, moment)} at tick {moment.clock}"

    def unmark(self, command: cmd.DeleteMark) -> str:
        """Forget a bookmark; in words.

        Raises:
            CommandError: there is none of that name.
        """
        self._marked().landmarks.unmark(command.name)
        return f"bookmark {command.name} is gone"

    def _marked(self) -> "Travel":
        if self.travel is None:
            raise CommandError("the run is not recorded: no moment of it can be found again")
        return self.travel

    @contextmanager
    def edited(self) -> Iterator[None]:
        """The user changes the guest meanwhile, which is part of its history."""
        if self.travel is None or self.here.session.machine.exit is not None:
            yield
            return
        with self.travel.recorder.edited():
            yield

    # -- motions --------------------------------------------------------------------------------

    def begin_history(
        self,
        recorded: "RecordedSources",
        mode: "Mode",
        goes_on: Callable[[], bool],
        counts: Callable[[], bool],
    ) -> None:
        """The run is recorded: hits of its past can be gone to, phase by phase.

        Args:
            recorded: what is placed.
            mode: strictness of placement.
            goes_on: asked while the past is lived through: False ends it.
            counts: says whether hits that are counted are those of all of the past.
        """
        from engine.session.control.past.hits import PastHits  # few runs are recorded

        travel, running = self.travel, self.present.running
        assert travel is not None, "the run is recorded"

        def mid_hit() -> tuple[int, int] | None:
            phase = running.phase if running.machine is not None else None
            return None if phase is None else phase[:2]

        travel.mid_hit = mid_hit
        self.hits = PastHits(travel, self._make_past, recorded, mode, goes_on, counts)

    def need_history(self) -> None:
        """Refuse what only a recorded run can do.

        Raises:
            CommandError: it is not recorded.
        """
        if self.travel is None:
            raise CommandError(
                "the run is not recorded; record, then run it: its past is there from then on"
            )

    def check(self) -> None:
        """See that a motion may lead to the past, or in it.

        Raises:
            CommandError: the run is not recorded, or the guest stands in the middle of a hit.
        """
        self.need_history()
        if self.here.running.machine is not None:
            raise CommandError("in the middle of a hit; let it finish first")

    def go(self, command: cmd.Command) -> None:
        """Carry a motion out that begins or ends in the past of a recorded run.

        Raises:
            CommandError: it cannot be carried out.
        """
        travel = self.travel
        assert travel is not None, "the run is recorded"
        stays = isinstance(command, cmd.Origin)
        stood = self.here.running.reason, self.here.running.cause
        self._stand_past()
        running = self.here.running
        running.state, running.origin = RunState.RUNNING, "insn"
        running.want("", StopCause.ARRIVED)
        travel.backwards.cut = lambda: bool(running.wanted)
        if not travel.there and not self._leave_present(travel):
            return
        failure: CommandError | None = None
        try:
            text, cause = travel.carry_out(command, self.present.stop_places, self._questions)
        except CommandError as error:
            failure, text, cause = error, str(error), StopCause.CUT_SHORT
        except Abandoned:
            text, cause = "", StopCause.ARRIVED
        finally:
            running.state = RunState.STOPPED
        if running.wanted:
            text, cause = running.wanted, StopCause.INTERRUPTED
        arrived = "moved in time" if isinstance(command, cmd.Seek | cmd.SeekMark) else "stepped"
        running.reason, running.cause = text or arrived, cause
        self.look_for_present()
        if stays and not running.wanted:
            self.here.running.reason, self.here.running.cause = stood
        if failure is not None and (stays or self.here.running.ended):
            raise failure  # how a program has ended says nothing of it

    def _leave_present(self, travel: "Travel") -> bool:
        """Live through the run once more, up to its present; False if that was cut."""
        past = self.here.running
        with suppress(Abandoned):
            try:
                travel.leave()
            finally:
                past.state = RunState.STOPPED
                if not travel.there:
                    self.leave_past()
        if not travel.there:
            running = self.here.running
            running.origin = "insn"
            if not running.ended and past.wanted:
                running.reason, running.cause = past.wanted, StopCause.INTERRUPTED
            return False
        past.state = RunState.RUNNING
        return True

    def _stand_past(self) -> None:
        """Look at the past, outside of any hit, though it may still have to be lived through."""
        travel = self.travel
        assert travel is not None, "the run is recorded"
        if self._past is None:
            self._past = self._make_past(travel.past)
        if self.hits is not None:
            self.hits.shown = False
        if self.here is not self._past:
            self._stand_in(self._past)
        if not travel.there:
            self.here.session.attend()  # who hears meanwhile hears there

    # -- phases of hits ---------------------------------------------------------------------------

    def _position(self) -> "HitPosition | None":
        """The place between phases at which the front end stands; None outside of hits."""
        travel, hits = self.travel, self.hits
        assert travel is not None
        assert hits is not None, "the run is recorded"
        if travel.there:
            return hits.position
        return self._of_present()

    def _of_present(self) -> "HitPosition | None":
        from engine.history.timeline import Moment  # few runs are recorded
        from engine.session.control.past.hits import HitPosition

        travel, phase = self.travel, self.present.running.phase
        if travel is None or phase is None:
            return None
        clock, pc, done = phase
        return HitPosition(Moment(travel.present().at, clock, pc), done)

    def phase_back(self) -> None:
        """Go back by a phase of a hit, or to the last phase of the hit before.

        Raises:
            CommandError: no probe is hit before, or the hit cannot be gone back to.
        """
        hits = self.hits
        assert hits is not None, "the run is recorded"
        position, seen = self._position(), self.here.running.hit

        def find() -> "tuple[Moment, int]":
            moment, done = self._phase_before(position)
            hits.live(moment, done)
            if done and position is not None and seen is not None and not hits.goes_as(seen):
                raise CommandError(
                    "this hit goes another way where its probe stands from the start of the "
                    "run on: its phases cannot be gone back to"
                )
            return moment, done

        self._to_phase(find)

    def to_hit(self) -> None:
        """Go on in the past to the next hit of any probe, or to the present.

        Raises:
            CommandError: the hit cannot be gone to.
        """
        travel, hits = self.travel, self.hits
        assert travel is not None
        assert hits is not None, "the run is recorded"
        finished, position = self.finish_hit(), hits.position
        if not travel.there:
            return
        # A hit that is to be seen first, and what comes at once behind one, are the next; but not
        # where a return has led to its own place.
        at_once = position is None or (finished and position.moment != travel.now())
        self.leave_hit()
        self._to_phase(lambda: self._next_hit(self._questions.watches(), at_once=at_once))

    def _next_hit(
        self, watches: "Sequence[WatchPlace]", *, at_once: bool
    ) -> "tuple[Moment, int] | None":
        """Go on to the next hit and stand in front of it; None where something else stops.

        Args:
            watches: accesses at which the user wants to stop.
            at_once: a hit at the moment at hand is the next one, too.
        """
        travel, hits = self.travel, self.hits
        assert travel is not None
        assert hits is not None, "the run is recorded"
        now, present = travel.now(), travel.present()
        moment = now if at_once and hits.is_at(now) else hits.after(now, present)
        if moment is not None and not travel.is_over and moment[1:] == present[1:]:
            # Where the run itself stands in the middle of a hit, its first phases are the past's.
            moment = moment if self._of_present() is not None else None
        if moment != now and watches:
            text = travel.backwards.to_next((), moment or present, watches)
            running = self.here.running
            if text is not None:
                running.cause = StopCause.HIT if text else StopCause.INTERRUPTED
                running.reason = text or running.wanted
                running.origin = "insn"
                return None
        if moment is not None:
            hits.live(moment, 0)
            return moment, 0
        travel.to_present()
        running = self.here.running
        running.reason, running.cause = "no probe is hit from there to now", StopCause.ARRIVED
        running.origin = "insn"
        return None

    def _to_phase(self, find: "Callable[[], tuple[Moment, int] | None]") -> None:
        """Stand between the phases of a hit of the past.

        Args:
            find: has it lived through, and gives its moment and how many phases of it are done;
                None where it has led to another moment. Where it is cut or cannot be, the front
                end stands where it stood.

        Raises:
            CommandError: it cannot be.
        """
        from engine.session.control.past.log import Cut

        travel, hits = self.travel, self.hits
        assert travel is not None
        assert hits is not None, "the run is recorded"
        here, there, shown = self.here, travel.there, hits.shown
        self._stand_past()
        running = self.here.running
        running.state = RunState.RUNNING
        running.want("", StopCause.ARRIVED)
        travel.backwards.cut = lambda: bool(running.wanted)
        if not travel.there and not self._leave_present(travel):
            return
        try:
            found = find()
        except (Cut, Abandoned, CommandError) as error:
            running.state = RunState.STOPPED
            travel.there = there
            lives = hits.lived is not None and hits.lived.guest is here
            if here is self.present or (shown and lives):  # else outside of hits
                hits.shown = shown
                self._stand_in(here)
            if isinstance(error, CommandError):
                raise
            return
        running.state = RunState.STOPPED
        if found is not None:
            self._show(*found)
        else:
            self.look_for_present()

    def _phase_before(self, position: "HitPosition | None") -> "tuple[Moment, int]":
        """The hit, and how many phases of it are done, a phase before a place."""
        travel, hits = self.travel, self.hits
        assert travel is not None
        assert hits is not None, "the run is recorded"
        if position is not None and position.done:
            return position.moment, position.done - 1
        now = travel.now()
        moment = hits.before(now)
        if moment is None:
            raise CommandError("no probe is hit before this moment")
        if hits.end_of(moment) is None:
            hits.live(moment, None)
        end = hits.end_of(moment)
        assert end is not None, "it has been seen"
        return moment, end[0] - 1 if end[1] == now else end[0]

    def phase_on(self) -> bool:
        """Carry out the next phase of a hit in the past; False where no probe is hit there.

        Raises:
            CommandError: the hit cannot be carried out.
        """
        from engine.session.control.past.log import Cut

        travel, hits = self.travel, self.hits
        if travel is None or hits is None or not travel.there:
            return False
        position = hits.position
        if position is None or hits.is_over:
            now = travel.now()
            if position is not None and now == position.moment:
                return False  # a return goes on where it has led
            self._stand_past()  # as what is lived through on the way may be given up
            running = self.here.running
            state = running.state
            running.state = RunState.RUNNING
            try:
                if not hits.is_at(now):
                    return False
                hits.live(now, 1)
            except (Cut, Abandoned):
                return True
            finally:
                running.state = state
            self._show(now, 1)
            return True
        hits.advance()
        self._show(position.moment, position.done + 1)
        return True

    def _show(self, moment: "Moment", done: int) -> None:
        """Stand between the phases of a hit of the past."""
        travel, hits = self.travel, self.hits
        assert travel is not None
        assert hits is not None, "the run is recorded"
        lived = hits.lived
        end = hits.end_of(moment)
        behind = end is not None and end[0] == done
        timeline = travel.backwards.timeline
        looked_at = self.here.running
        state, looked_at.state = looked_at.state, RunState.RUNNING  # to whoever is heard meanwhile
        try:
            if end is not None and behind and lived is not None and hits.ended:
                timeline.end()
            else:
                timeline.seek(end[1] if end is not None and behind else moment)
        except Abandoned:
            return  # the run begins afresh
        finally:
            looked_at.state = state
        assert lived is not None, "it has been gone to"
        hits.shown = True
        self._stand_in(lived.guest)
        running = lived.guest.running
        running.state, running.cause = RunState.STOPPED, StopCause.ARRIVED
        running.origin = "insn"
        if not done:
            running.reason = "in front of a hit"
        self.look_for_present(phases=True)

    def finish_hit(self) -> bool:
        """Carry out what is left of the hit of the past at hand; False if there is none."""
        hits, travel = self.hits, self.travel
        if hits is None or travel is None or not hits.shown:
            return False
        middle = hits.in_middle
        position = hits.position
        if not middle:
            return False
        while not hits.is_over:
            hits.advance()
            position = hits.position
        assert position is not None
        self._show(position.moment, position.done)
        return True

    def leave_hit(self) -> None:
        """Stand in the past as it was without probes, where a hit of it is over."""
        hits = self.hits
        if hits is not None and hits.shown and self.in_past and not hits.in_middle:
            self._stand_past()

    def look_for_present(self, *, phases: bool = False) -> None:
        """Stand in the run itself again where a motion has come to the present.

        Args:
            phases: it was one by phases: where the run itself stands in the middle of a hit, it
                has come there at that phase.
        """
        travel = self.travel
        if travel is None or not travel.there:
            return
        position = self.hits.position if self.hits is not None else None
        present = self._of_present() if phases else None
        middle = position is not None and self.hits is not None and self.hits.in_middle
        if middle or (present is not None and travel.now() == present.moment):
            arrived = (
                present is not None
                and position is not None
                and position.moment == present.moment
                and position.done >= present.done
            )
        else:
            arrived = travel.arrived()
        if arrived:
            past = self.here.running
            self.leave_past()
            running = self.here.running
            running.origin = "insn"
            if not running.ended:
                running.reason, running.cause = past.reason, past.cause

    def leave_past(self) -> None:
        """Stand in the run itself again."""
        if self.hits is not None:
            self.hits.shown = False
        if self.here is not self.present:
            self._stand_in(self.present)
        if self.travel is not None:
            self.travel.there = False

    def rest(self) -> None:
        """Stand in the run itself, and give back all of its past that was lived through."""
        self.leave_past()
        if self.hits is not None:
            self.hits.close()
        if self.travel is not None:
            self.travel.rest()
        self._past = None

    def close(self) -> None:
        """End the run and its past."""
        self.leave_past()
        if self.hits is not None:
            self.hits.close()
        if self.travel is not None:
            self.travel.close()
        self.present.session.close()
