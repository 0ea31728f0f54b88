"""Hits in the past of a run: where they are, and their phases one by one.

A hit's phases depend on all that its probes have done before: when a jump took a breakpoint's
place, which calls are pending, which slot is free. So the run is lived through once more with the
probes in place from its start on, up to the hit, and then phase by phase. It is enough to do so
from a checkpoint on where no probe knows of the hits before, and where it is certain by then
whether a jump has taken the breakpoint's place.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from msgspec import Struct

from engine.arch.plan import Mode, Rules
from engine.errors import CommandError
from engine.history.moment import Moment
from engine.probes.kprobe import Kprobe, Uprobe
from engine.probes.kretprobe import Kretprobe, KretprobeInstance, Uretprobe
from engine.probes.point_state import Stage
from engine.session.control.entries import ProbeEntry
from engine.session.control.guest import DebuggedGuest
from engine.session.control.past.epochs import is_without_state
from engine.session.control.past.log import LogContent, Patience, RecordedSources, begin, run_on
from engine.session.control.past.travel import Travel
from engine.session.guest.past import PastSession
from engine.session.guest.wanted_probes import Wanted
from engine.session.program.places import Place
from engine.session.protocol.views import HitView

_STEPS: Final = 100_000
"""Instructions between the tick before a hit and the hit, at the most."""

_FURTHER: Final = 4
"""So many times as far back the next hit is looked for where there was none."""

GoesOn = Callable[[], bool]
"""Asked now and then: False ends what takes long."""


def moment_of(past: PastSession) -> Moment:
    """The moment at which a guest of the past stands, the machinery's code left out."""
    return Moment(past.kernel.at, *past.probes().standing())


class _SeenHit(BaseException):
    """The hit that is looked for in a run has been seen."""


class FoundHits:
    """Lives once through a run, and notes the moments at which probes are hit.

    Attributes:
        moments: in order, each once.
        past: the run.
        begin: the moment behind which hits are found; None for all of them.
        upto: the moment up to which they are known.
    """

    def __init__(
        self,
        past: PastSession,
        entries: Iterable[ProbeEntry],
        mode: Mode,
        begin: Moment | None = None,
    ) -> None:
        """Place probes that do nothing else.

        Args:
            past: the run, which is closed with this.
            entries: whose hits are looked for.
            mode: strictness of placement.
            begin: the moment at which the guest stands; None in front of its first instruction.
        """
        self.moments: list[Moment] = []
        self.past = past
        self.begin = begin
        self.upto = Moment(-1, -1, 0)
        probing = past.probes(mode)
        for entry in entries:
            if entry.row.enabled:
                wanted = [
                    Wanted(one.place, self._probe(one.place, entry.catches_returns), anywhere=True)
                    for one in entry.placed
                ]
                probing.place_each(wanted)

    def _probe(self, place: Place, returns: bool) -> Kprobe:
        """A probe that notes its hits: of a return probe entry and return."""
        kernel, cpu = self.past.kernel, self.past.cpu

        probing = self.past.probes()

        def note(pc: int, clock: int = 0) -> None:
            moment = Moment(kernel.at, clock or cpu.now(), pc)
            if not self.moments or self.moments[-1] != moment:
                self.moments.append(moment)

        def hit(probe: Kprobe, regs: object) -> None:
            note(probe.addr or 0)

        if not returns:
            if place.rules is not Rules.UPROBE:
                return Kprobe(mode=Mode.KERNEL, pre_handler=hit)
            uprobe = Uprobe(place.path, place.file_offset or 0, mode=Mode.KERNEL)
            uprobe.handler = hit
            return uprobe
        made: Kretprobe
        if place.rules is Rules.UPROBE:
            made = Uretprobe(place.path, place.file_offset or 0, maxactive=1 << 20)
        else:
            made = Kretprobe(maxactive=1 << 20)
        made.entry_handler = lambda call, regs: note(call.rp.addr or 0)

        def returned(call: KretprobeInstance, regs: object) -> None:
            # From a trampoline the program goes on in the next tick.
            note(call.ret_addr, cpu.now() + (probing.here.manager.returns.trampoline is not None))

        made.handler = returned
        return made

    def before(self, moment: Moment, goes_on: GoesOn) -> Moment | None:
        """The last hit in front of a moment; None for none.

        Raises:
            Cut: it was not to go on.
        """
        self._run(moment, goes_on)
        index = bisect_left(self.moments, moment)
        found = self.moments[index - 1] if index else None
        return None if found is not None and not self.reaches(found) else found

    def reaches(self, moment: Moment) -> bool:
        """True if it is known whether there is a hit at a moment, or will be."""
        return self.begin is None or self.begin < moment

    def has(self, moment: Moment, goes_on: GoesOn) -> bool:
        """True if a probe is hit at a moment, which is one of the recorded run's inside.

        Raises:
            Cut: it was not to go on.
        """
        self._run(Moment(*moment[:2], moment.pc + 1), goes_on)
        index = bisect_left(self.moments, moment)
        return index < len(self.moments) and self.moments[index] == moment

    def after(self, moment: Moment, end: Moment, goes_on: GoesOn) -> Moment | None:
        """The first hit behind a moment, up to another one; None for none.

        Raises:
            Cut: it was not to go on.
        """
        self._run(moment, goes_on)
        end = Moment(*end[:2], end.pc + 1)
        with suppress(_SeenHit):
            self._run(end, goes_on, lambda: self._first_behind(moment) is not None)
        found = self._first_behind(moment)
        return found if found is not None and found < end else None

    def _first_behind(self, moment: Moment) -> Moment | None:
        """The first hit behind a moment; None as long as no hit is known to be that."""
        index = bisect_right(self.moments, moment)
        known = index < len(self.moments) and self.moments[index] < self.upto
        return self.moments[index] if known else None

    def _run(
        self, end: Moment, goes_on: GoesOn, enough: Callable[[], bool] = lambda: False
    ) -> None:
        """Live on up to a moment, and know all hits in front of it.

        Raises:
            Cut: it was not to go on.
            _SeenHit: `enough`, which is asked now and then, has said so.
        """
        if end <= self.upto or enough():
            return
        past, patience = self.past, Patience(goes_on)

        def look() -> None:
            patience.look()
            here = Moment(past.kernel.at, past.cpu.coming(), 0)
            if here > self.upto:
                self.upto = here
                self.moments.sort()
            if enough():
                raise _SeenHit

        run_on(past, end.at, end.clock, look)
        for _ in range(_STEPS):
            if past.machine.exit is not None or moment_of(past) >= end:
                break
            past.kernel.step()
        self.upto = end
        self.moments.sort()

    def close(self) -> None:
        """Give the run back."""
        self.past.close()


class HitPosition(Struct, frozen=True):
    """A place between the phases of hits at one moment.

    Attributes:
        moment: in front of the hits' instruction; a return and a probe may be hit at the same.
        done: phases that have been carried out since.
    """

    moment: Moment
    done: int


class LivedHits:
    """A guest of the past in which the probes stand, and which goes through hits phase by phase.

    Attributes:
        guest: the guest of the past, and what works on it.
        past: the same.
        moment: of the hits at which it stands, or has stood last.
        done: phases that were carried out there.
    """

    def __init__(self, guest: DebuggedGuest, past: PastSession) -> None:
        """The guest stands in front of its first instruction."""
        self.guest = guest
        self.past = past
        self.moment = Moment(-1, -1, 0)
        self.done = 0
        self._last = 0  # the point of the hit at hand, or of the last one

    @property
    def between(self) -> bool:
        """True if a hit is over, and nothing else is hit at its moment."""
        running = self.guest.running
        if running.machine is not None:
            return False
        point = running.meets()
        return self.now() != self.moment or point is None or point.address == self._last

    def now(self) -> Moment:
        """The moment at which it stands; not in the middle of a hit."""
        return moment_of(self.past)

    def go_to(self, moment: Moment, patience: Patience) -> bool:
        """Go on to the hits of a moment; False if there is none.

        Raises:
            Cut: it was not to go on.
        """
        past, running = self.past, self.guest.running
        moved = running.machine is not None or self.now() != moment
        if running.machine is not None:
            self._pass()

        def look() -> None:
            running.wanted = ""
            # Behind a call or at a signal's handler it may stand in front of the hit already.
            if not past.machine.current.hooks.hold() and self.now() != moment:
                self._pass()
            patience.look()

        # A return is caught in front of its tick.
        run_on(past, moment.at, max(moment.clock - 2, 0), look)
        for _ in range(_STEPS):
            if past.machine.exit is not None or (now := self.now()) > moment:
                return False
            if now == moment and (point := running.meets()) is not None:
                if moved:
                    running.forget_hit()  # one on the way is none that is looked at
                self.moment, self.done, self._last = moment, 0, point.address
                self._look()
                return True
            if running.meets() is not None:
                self._pass()
            else:
                running.step_phase()
            patience.look()
        return False

    def is_certain(self, earlier: Callable[[int, int], bool]) -> bool:
        """True if the point at hand is what it would be if it had stood from the start on.

        Args:
            earlier: says whether there were fewer hits of an address than a number, all told.
        """
        point = self.guest.running.meets()
        if point is None:
            return False
        if point.replacement is not None and point.state.stage is not Stage.CHECK:
            return True
        hits = self.guest.probing.here.manager.techniques.waits(point)
        return not hits or earlier(point.address, hits)

    def _pass(self) -> None:
        """Carry out the hit at hand, if there is one."""
        running = self.guest.running
        if running.machine is not None or running.meets() is not None:
            running.step_phase()
            while running.machine is not None:
                running.step_phase()

    def advance(self) -> None:
        """Carry out the next phase of the hits at the moment."""
        running = self.guest.running
        if running.machine is None:
            point = running.meets()
            self._last = point.address if point is not None else 0
        running.step_phase()
        self.done += 1
        self._look()

    def _look(self) -> None:
        """Take what has been recorded, as at each stop of a run: what code records starts anew."""
        self.guest.tracing.drain()
        self.guest.probing.collect()

    def close(self) -> None:
        """Give the run back."""
        self.guest.tracing.finish()
        self.past.close()


class PlacedContent(Struct, frozen=True):
    """All whose hits there are: the list of probes, functions that are traced, kernel's events."""

    rows: object
    log: LogContent


class PastHits:
    """The hits of one run's past.

    Attributes:
        lived: the guest in which the front end sees a hit; None for none.
        shown: the front end stands in that guest.
    """

    def __init__(
        self,
        travel: Travel,
        make_guest: Callable[[PastSession], DebuggedGuest],
        recorded: RecordedSources,
        mode: Mode,
        goes_on: GoesOn,
        counts: Callable[[], bool],
    ) -> None:
        """Look for hits when somebody asks for them.

        Args:
            travel: the way to the run's past.
            make_guest: makes a guest under control of the run that is lived through.
            recorded: what is placed.
            mode: strictness of placement.
            goes_on: asked now and then: False ends what takes long.
            counts: says whether hits that are counted are those of all of the past.
        """
        self._travel = travel
        self._make_guest = make_guest
        self._recorded = recorded
        self._probes = recorded.probes
        self._mode = mode
        self._goes_on = goes_on
        self._counts = counts
        self._content: PlacedContent | None = None
        self._found: FoundHits | None = None
        self.lived: LivedHits | None = None
        self.shown = False
        self._ends: dict[Moment, tuple[int, Moment]] = {}

    # -- where they are -------------------------------------------------------------------------

    def before(self, moment: Moment) -> Moment | None:
        """The moment of the last hit in front of another moment; None for none.

        Raises:
            Cut: it was not to go on.
        """
        distance = 1
        while True:
            hits = self._hits(moment, distance)
            found = hits.before(moment, self._goes_on)
            if found is not None or hits.begin is None:
                return found
            distance *= _FURTHER
            if self._found is hits:
                self._drop_found()

    def after(self, moment: Moment, end: Moment) -> Moment | None:
        """The moment of the first hit behind another moment, up to an end; None for none.

        Raises:
            Cut: it was not to go on.
        """
        return self._hits(moment, 1).after(moment, end, self._goes_on)

    def is_at(self, moment: Moment) -> bool:
        """True if a probe is hit at a moment of the past.

        Raises:
            Cut: it was not to go on.
        """
        entries = [entry for entry in self._probes.entries if entry.row.enabled]
        if not entries:
            return False
        if self._found is None and not any(entry.catches_returns for entry in entries):
            # Whoever steps where no probe is does not wait for all hits to be looked for.
            places = self._probes.planted_addresses()
            if moment.pc not in places:
                return False
        return self._hits(moment, 1).has(moment, self._goes_on)

    def _hits(self, moment: Moment, distance: int) -> FoundHits:
        """The hits up to a moment, from so many checkpoints in front of it on at least."""
        self._look()
        begin = None
        if self._mode is Mode.STRICT and not any(
            entry.catches_returns for entry in self._probes.entries
        ):
            begin = self._travel.lendable(moment, distance)
        found = self._found
        if found is not None and (
            not found.reaches(moment) or (begin is not None and found.upto < begin)
        ):
            self._drop_found()
        if self._found is None:
            past = self._travel.begun(begin)
            self._found = FoundHits(past, self._probes.entries, self._mode, begin)
        self._found.past.kernel.reached = self._travel.present().clock
        return self._found

    def _drop_found(self) -> None:
        if self._found is not None:
            self._found.close()
        self._found = None

    def _look(self) -> None:
        """Forget all that is known if something else is placed now."""
        probes = self._recorded.probes
        now = PlacedContent(
            [
                (
                    entry.row.kind,
                    entry.row.line,
                    entry.row.enabled,
                    entry.row.stops,
                    entry.row.rules,
                )
                for entry in probes.entries
            ],
            LogContent.of(self._recorded),
        )
        if now != self._content:
            self.close()
            self._ends.clear()
            self._content = now

    # -- phases ---------------------------------------------------------------------------------

    @property
    def position(self) -> HitPosition | None:
        """The place in a hit of the past at which the front end stands; None outside of hits."""
        if self.lived is None or not self.shown:
            return None
        return HitPosition(self.lived.moment, self.lived.done)

    def end_of(self, moment: Moment) -> tuple[int, Moment] | None:
        """Phases of the hits of a moment, and the moment behind; None while nobody has seen it."""
        return self._ends.get(moment)

    def live(self, moment: Moment, done: int | None) -> None:
        """Have the hits of a moment carried out up to a phase.

        Args:
            moment: of the hits.
            done: phases to carry out; None for all.

        Raises:
            Cut: it was not to go on.
            CommandError: with the probes of now, placed from the start on, there is no such hit.
        """
        self._look()
        lived, patience = self.lived, Patience(self._goes_on)
        there = lived is not None and lived.moment == moment
        if lived is not None and there and done is not None and lived.done > done:
            lived, there = None, False
        if lived is not None and not there and (lived.moment > moment or self._is_over(lived)):
            lived = None
        if lived is None:
            lived, there = self._brought(moment, patience)
        try:
            self._go(lived, moment, done, patience, there=there)
        except BaseException:
            lived.close()
            if lived is self.lived:  # it stands between hits
                self.lived, self.shown = None, False
            raise
        if lived is not self.lived:
            if self.lived is not None:
                self.lived.close()
            self.lived = lived
        self.settle()

    def _go(
        self,
        lived: LivedHits,
        moment: Moment,
        done: int | None,
        patience: Patience,
        *,
        there: bool,
    ) -> None:
        """Have a guest go to a phase of the hits of a moment."""
        lived.past.kernel.reached = self._travel.present().clock
        if not there and not lived.go_to(moment, patience):
            raise CommandError(
                f"the hit at {moment.pc:#x} in tick {moment.clock} does not come about where its "
                "probe stands from the start of the run on: its phases cannot be gone back to"
            )
        while (done is None or lived.done < done) and not (lived.done and lived.between):
            lived.advance()
            patience.look()
        if done is not None and lived.done < done:
            raise CommandError("the hit has fewer phases where its probe stands from the start on")

    def settle(self) -> None:
        """Note how the hits at hand end, where they have."""
        lived = self.lived
        if lived is not None and lived.done and lived.between:
            self._ends[lived.moment] = lived.done, lived.now()

    @staticmethod
    def _is_over(lived: LivedHits) -> bool:
        return lived.guest.session.machine.exit is not None

    def _brought(self, moment: Moment, patience: Patience) -> tuple[LivedHits, bool]:
        """A guest with the probes on its way to the hits of a moment, and whether it stands there.

        From a checkpoint on, where that shows the hits as they are from the start on.
        """
        content = LogContent.of(self._recorded)
        if is_without_state(content, self._probes, self._mode):
            mark = self._travel.lendable(moment, 1)
            past = self._travel.begun(mark)
            lived = self._begin(past, content)
            if mark is None:
                return lived, False
            try:
                past.kernel.reached = self._travel.present().clock
                if lived.go_to(moment, patience) and lived.is_certain(self._fewer):
                    return lived, True
            except BaseException:
                lived.close()
                raise
            lived.close()
        return self._begin(self._travel.fresh(), content), False

    def _fewer(self, address: int, count: int) -> bool:
        """True if it is known that an address was hit less often than that in all of the past."""
        if not self._counts():
            return False
        self._travel.collect()
        return any(
            entry.earlier + sum(probe.hits + probe.nmissed for probe in entry.probes) < count
            for entry in self._probes.entries
            if entry.row.enabled and any(probe.addr == address for probe in entry.probes)
        )

    def _begin(self, past: PastSession, content: LogContent) -> LivedHits:
        """A guest with the probes, where it stands."""
        guest = self._make_guest(past)
        # A hit of what is refused there does not come about, and whoever goes to it is told so.
        begin(guest, self._probes.rows, content.graph, content.depth, content.kernel)
        return LivedHits(guest, past)

    def goes_as(self, seen: HitView) -> bool:
        """True if the hit at hand goes the way of one that was seen, as far as both have come."""
        now = self.lived.guest.running.hit if self.lived is not None else None
        return now is None or all(
            one.name == other.name for one, other in zip(seen.done, now.done, strict=False)
        )

    @property
    def is_over(self) -> bool:
        """True if all phases of the hits at hand are carried out."""
        return (
            self.lived is not None
            and self.lived.moment in self._ends
            and (self._ends[self.lived.moment][0] == self.lived.done)
        )

    @property
    def in_middle(self) -> bool:
        """True if some of the phases are carried out, and some are left."""
        return self.lived is not None and self.lived.done > 0 and not self.is_over

    @property
    def ended(self) -> bool:
        """True if the run has ended with the hit at hand."""
        return self.lived is not None and self._is_over(self.lived)

    def advance(self) -> None:
        """Carry out the next phase of the hits at hand."""
        assert self.lived is not None, "there are some"
        self.lived.advance()
        self.settle()

    def close(self) -> None:
        """Give all runs back."""
        if self._found is not None:
            self._found.close()
        if self.lived is not None:
            self.lived.close()
        self._found = self.lived = None
        self.shown = False
