"""The moments of a recorded run at which an expression becomes true."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from engine.errors import CommandError
from engine.guest.watched import WatchedRange
from engine.history.moment import Moment
from engine.session.control.past.search import PastStretches
from engine.session.guest.past import PastSession
from engine.session.guest.watchpoints import Watch, WatchEvent

_WIDEST: Final = 1 << 20
"""Ticks that are lived through before the newest moment in them is known."""
_WIDEST_ON_FOOT: Final = 1 << 16
"""The same where each instruction is looked at."""
_BEHIND: Final = 64
"""Instructions by which what has made an expression true may be away from where it is so."""

Pieces = tuple[tuple[int, int], ...]


class Condition(Struct, frozen=True):
    """An expression of which it is asked when it is true.

    Attributes:
        text: as the user has written it.
        look: whether it is true in the guest's memory and registers of now, and the bytes,
            (address, size), that this depends on; what cannot be read makes it false.
        tid: the thread whose registers it reads.
        pid: the process whose memory it reads.
        registers: names of those that it reads.
        call: (pc, CFA) of the call that it lives with; None for none.
    """

    text: str
    look: Callable[[], tuple[bool, Pieces]]
    tid: int
    pid: int
    registers: tuple[str, ...] = ()
    call: tuple[int, int] | None = None


class Turn(Struct, frozen=True):
    """A moment at which an expression has become true.

    Attributes:
        before: in front of what has made it so; None at the begin of what is looked at.
        by: what that was, in words; "" for an instruction.
        there: behind that, where it is known.
    """

    before: Moment | None
    by: str = ""
    there: Moment | None = None


class _ConditionNotes(Struct):
    """The notes of a condition while a stretch is lived through.

    Attributes:
        began: where it is looked at first; None while it has not been.
        at_first: it is true there.
        holds: it is true now.
        turns: where it has become true, in order.
    """

    began: Moment | None = None
    at_first: bool = False
    holds: bool = False
    turns: list[Turn] = field(default_factory=list)

    def see(self, holds: bool, turn: Turn, now: Moment) -> None:
        """Take note of whether it is true now; if it is so since now, how that came."""
        if self.began is None:
            self.began, self.at_first = now, holds
        elif holds and not self.holds:
            self.turns.append(turn)
        self.holds = holds


class ConditionSearch:
    """Finds the first and the last moment at which a condition becomes true.

    One that reads memory only is looked at behind each instruction and each system call that
    writes to the bytes that its value has been read from, whatever the thread, and where mappings
    change. One that reads registers is looked at in front of each instruction of one thread where
    these registers or these bytes have changed: the run is stepped for that. The memory is that
    of one process.
    """

    def __init__(
        self, session: PastSession, stretches: PastStretches, cut: Callable[[], bool]
    ) -> None:
        """Nothing is looked for yet; `cut` says whether to give up."""
        self._session = session
        self._kernel = session.kernel
        self._stretches = stretches
        self._timeline = stretches.timeline
        self._cut = cut

    def first(self, condition: Condition, floor: Moment | None, end: Moment) -> str:
        """Go to the first moment at which a condition is true.

        Args:
            condition: the condition.
            floor: where to begin; None for the first instruction.
            end: where to end.

        Returns:
            What has made it true, in words; "" where it was cut: the guest may stand anywhere.

        Raises:
            CommandError: it never was.
        """
        self._go(floor)
        look = self._live(condition, end, first=True)
        if self._cut():
            return ""
        if look.began is not None and look.at_first:
            self._go(look.began)
            return f"{condition.text} is true from the beginning"
        text = self._arrive(condition, look.turns[0], None) if look.turns else ""
        if not text and not self._cut():
            raise CommandError(f"{condition.text} is true at no moment that is recorded")
        return text

    def last(self, condition: Condition, floor: Moment | None, now: Moment) -> str:
        """Go back to the last moment before another one at which a condition became true.

        Arguments, result and errors are those of `first`.
        """
        later: Moment | None = None  # it is true there, and it is not known since when
        widest = _WIDEST_ON_FOOT if condition.registers else _WIDEST
        for _, end in self._stretches.back(now, widest, floor):
            look = self._live(condition, end)
            if self._cut():
                return ""
            if look.began is not None and later is not None and not look.holds:
                look.turns.append(Turn(None, there=later))
            for turn in reversed(look.turns):
                text = self._arrive(condition, turn, now)
                if text or self._cut():
                    return text
            if look.began is not None:
                later = look.began if look.at_first else None
        if later is not None and later < now:
            self._go(later)
            return f"{condition.text} is true from the beginning"
        raise CommandError(f"{condition.text} has not become true before now")

    def _go(self, moment: Moment | None) -> None:
        self._timeline.start()
        if moment is not None:
            self._timeline.seek(moment)

    # -- stretches --------------------------------------------------------------------------

    def _live(self, condition: Condition, end: Moment, *, first: bool = False) -> _ConditionNotes:
        """Go on to a moment, and see where a condition becomes true in front of it.

        Args:
            condition: the condition.
            end: the moment.
            first: one such place is enough.
        """
        look = _ConditionNotes()
        live = self._on_foot if condition.registers else self._watched
        live(condition, end, look, lambda: self._cut() or (first and bool(look.turns)))
        return look

    def _watched(
        self,
        condition: Condition,
        end: Moment,
        look: _ConditionNotes,
        enough: Callable[[], bool],
    ) -> None:
        """Look behind each write to what the condition reads."""
        bytes_read = _BytesRead(self._session, condition.pid)
        copied: list[Turn] = []  # a call may copy a value piece by piece

        def see(turn: Turn) -> None:
            holds, pieces = condition.look()
            look.see(holds, turn, self._timeline.now())
            bytes_read.are(pieces)

        def told(event: WatchEvent) -> None:
            if event.hit.written is None or event.thread.pid != condition.pid:
                return
            turn = Turn(self._stretches.moment_of(event), event.by)
            if event.by:
                copied.append(turn)
            elif turn.before is not None and turn.before < end:
                see(turn)

        def until() -> bool:
            if copied:
                turn = copied[-1]
                copied.clear()
                if turn.before is not None and turn.before < end and bytes_read.in_sight:
                    see(turn)
            elif bytes_read.moved():
                see(Turn(self._stretches.of_entry(), "a change of the mappings"))
            return enough()

        bytes_read.watch.told = told
        bytes_read.moved()
        if bytes_read.in_sight:
            see(Turn(None))
        self._stretches.run(bytes_read.watch, end, until)

    def _on_foot(
        self,
        condition: Condition,
        end: Moment,
        look: _ConditionNotes,
        enough: Callable[[], bool],
    ) -> None:
        """Look in front of each instruction of the thread where something has changed."""
        session = self._session
        bytes_read = _BytesRead(session, condition.pid)
        by: list[str] = []
        bytes_read.watch.told = lambda event: by.append(event.by)
        values: tuple[int, ...] | None = None
        last: Moment | None = None  # of the thread
        now = self._timeline.now()
        steps = self._stretches.steps(end, enough)
        session.watchpoints.add([bytes_read.watch])
        try:
            while now < end and session.machine.exit is None:
                if session.machine.current.tid == condition.tid:
                    fresh = session.cpu.read_registers(condition.registers)
                    if fresh != values or by or bytes_read.moved():
                        holds, pieces = condition.look()
                        look.see(holds, Turn(last, by[-1] if by else "", now), now)
                        bytes_read.are(pieces)
                    values, last = fresh, now
                    by.clear()
                following = next(steps, None)
                if following is None:
                    return
                now = following
        finally:
            session.watchpoints.remove([bytes_read.watch])

    # -- arriving ---------------------------------------------------------------------------

    def _arrive(self, condition: Condition, turn: Turn, before: Moment | None) -> str:
        """Go to where a condition has become true; what made it so, "" if that is nowhere.

        Args:
            condition: the condition.
            turn: how it became true.
            before: a moment in front of which that is to be; None for none.
        """
        timeline = self._timeline
        if turn.there is not None:
            if before is not None and turn.there >= before:
                return ""
            self._go(turn.there)
            return self._text(condition, turn)
        assert turn.before is not None, "it is known where it has become true, or in front of that"
        self._go(turn.before)
        for _ in range(_BEHIND):
            self._kernel.step()
            now = timeline.now()
            if timeline.ended or (before is not None and now >= before):
                return ""
            if self._session.machine.current.pid == condition.pid and condition.look()[0]:
                return self._text(condition, turn)
        return ""

    def _text(self, condition: Condition, turn: Turn) -> str:
        by = turn.by
        if not by and turn.before is not None:
            pc = turn.before.pc
            found = self._session.seen.modules.locate(pc)
            where = f" <{found.symbol.demangled}+{found.offset}>" if found.symbol else ""
            by = f"the instruction at {pc:#x}{where}"
        return f"{condition.text} is true from here on" + (f", by {by}" if by else "")


class _BytesRead:
    """The bytes that an expression has been read from, which are watched.

    Attributes:
        watch: the watch on these bytes.
    """

    def __init__(self, session: PastSession, pid: int) -> None:
        """None yet; they are those of a process."""
        self._session, self._pid = session, pid
        self._layout: object = None
        self.watch = Watch(lambda event: None)

    @property
    def in_sight(self) -> bool:
        """True if a thread of the process runs, so that its memory can be read."""
        return self._session.machine.current.pid == self._pid

    def moved(self) -> bool:
        """True if mappings have changed since this was asked last."""
        if not self.in_sight:
            return False
        layout = self._session.seen.memory.table.layout
        before, self._layout = self._layout, layout
        return before is not layout

    def are(self, pieces: Pieces) -> None:
        """Watch other bytes from now on: (address, size) of each piece."""
        ranges = self.watch.ranges
        if pieces != tuple((one.start, one.size) for one in ranges):
            fresh = [WatchedRange(start, size) for start, size in pieces if size]
            self._session.watchpoints.move(self.watch, fresh)
