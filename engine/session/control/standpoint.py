"""The place of a front end: in the run itself, or in its past."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from engine.errors import CommandError
from engine.session.control.running import Abandoned
from engine.session.control.stand import GuestStand
from engine.session.guest.session import Session
from engine.session.protocol import commands as cmd
from engine.session.protocol.views import HistoryView, RunState, StopCause

if TYPE_CHECKING:
    from engine.session.control.backwards import WatchPlace
    from engine.session.control.travel import Travel
    from engine.session.control.truths import Condition


class Standpoint:
    """A run, and the guest of it in which a front end stands.

    Attributes:
        present: the run itself.
        here: where the front end stands: that, or the guest of the past.
        travel: the way to the past; None where the run is not recorded.
    """

    def __init__(
        self,
        present: GuestStand,
        travel: "Travel | None",
        make_past: Callable[[Session], GuestStand],
        changed: int = 0,
    ) -> None:
        """Stand in the run itself.

        Args:
            present: it.
            travel: the way to its past, if it is recorded.
            make_past: makes somewhere to stand of the guest of the past.
            changed: how often the code in sight has changed before.
        """
        self.present = self.here = present
        self.travel = travel
        self._make_past = make_past
        self._past: GuestStand | None = None
        self._changed = changed

    @property
    def in_past(self) -> bool:
        """True if the guest stands in its past."""
        return self.travel is not None and self.travel.there

    @property
    def changes(self) -> int:
        """Another number whenever the code in sight may be other code than before."""
        return self._changed + self.here.probing.changes

    def change(self) -> None:
        """The same addresses may have other code now."""
        self._changed += 1

    def _stand_in(self, stand: GuestStand) -> None:
        seen = self.changes
        self.here = stand
        self._changed = seen + 1 - stand.probing.changes

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

    def call_at_hand(self) -> tuple[int, int] | None:
        """Tick and instruction of the call that is carried out; None where none is recorded."""
        travel = self.travel
        if travel is None or travel.recorder.full:
            return None
        return travel.landmarks.call()

    def mark(self, command: cmd.SetMark | cmd.DeleteMark) -> str:
        """Make the moment at hand a bookmark, or forget one; in words.

        Raises:
            CommandError: it cannot be done.
        """
        travel = self.travel
        if travel is None:
            raise CommandError("the run is not recorded: no moment of it can be found again")
        if isinstance(command, cmd.DeleteMark):
            travel.landmarks.unmark(command.name)
            return f"bookmark {command.name} is gone"
        if not self.here.stands:
            raise CommandError("the program is running; Ctrl-C stops it")
        moment = travel.now()
        return f"bookmark {travel.landmarks.mark(command.name, moment)} at tick {moment.clock}"

    @contextmanager
    def edited(self) -> Iterator[None]:
        """The user changes the guest meanwhile, which is part of its history."""
        if self.travel is None or self.here.session.machine.exit is not None:
            yield
            return
        with self.travel.recorder.edited():
            yield

    # -- motions --------------------------------------------------------------------------------

    def check(self) -> None:
        """See that a motion may lead to the past, or in it.

        Raises:
            CommandError: the run is not recorded, or the guest stands in the middle of a hit.
        """
        if self.travel is None:
            raise CommandError(
                "the run is not recorded; record, then run it: its past is there from then on"
            )
        if self.here.running.machine is not None:
            raise CommandError("in the middle of a hit; let it finish first")

    def go(
        self,
        command: cmd.Command,
        watches: "Callable[[], Sequence[WatchPlace]]",
        condition: "Callable[[str], Condition]",
    ) -> None:
        """Carry a motion out that begins or ends in the past of a recorded run.

        Args:
            command: it.
            watches: gives the accesses at which the user wants to stop.
            condition: gives an expression a meaning where the guest stands.
        """
        travel = self.travel
        assert travel is not None, "the run is recorded"
        if not travel.there:
            if self._past is None:
                self._past = self._make_past(travel.past)
            self._stand_in(self._past)
            self.here.session.attend()  # who hears meanwhile hears there
        running = self.here.running
        running.state, running.origin = RunState.RUNNING, "insn"
        running.want("", StopCause.ARRIVED)
        travel.backwards.cut = lambda: bool(running.wanted)
        if not travel.there and not self._leave_present(travel):
            return
        try:
            text = travel.carry_out(command, self.present.stop_places, watches, condition)
        except CommandError as error:
            text = str(error)
        except Abandoned:
            text = ""
        finally:
            running.state = RunState.STOPPED
        text = running.wanted or text
        arrived = "moved in time" if isinstance(command, cmd.Seek | cmd.SeekMark) else "stepped"
        running.reason, running.cause = text or arrived, StopCause.ARRIVED
        if running.wanted:
            running.cause = StopCause.INTERRUPTED
        elif text:
            hit = text.startswith(("breakpoint", "probe", "watchpoint"))
            running.cause = StopCause.HIT if hit else StopCause.CUT_SHORT
        self.look_for_present()

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

    def look_for_present(self) -> None:
        """Stand in the run itself again where a motion has come to the present."""
        travel = self.travel
        if travel is not None and travel.there and travel.arrived():
            past = self.here.running
            self.leave_past()
            running = self.here.running
            running.origin = "insn"
            if not running.ended:
                running.reason, running.cause = past.reason, past.cause

    def leave_past(self) -> None:
        """Stand in the run itself again."""
        if self.here is not self.present:
            self._stand_in(self.present)
        if self.travel is not None:
            self.travel.there = False

    def close(self) -> None:
        """End the run and its past."""
        self.leave_past()
        if self.travel is not None:
            self.travel.close()
        self.present.session.close()
