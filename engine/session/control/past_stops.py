"""Hits, in a guest's past, of the places at which a user wants to stop."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from msgspec.structs import replace

from engine.arch.plan import Rules
from engine.errors import ProbeRejectedError
from engine.guest.watched import WatchedRange
from engine.history.timeline import Moment
from engine.probes.kprobe import Kprobe
from engine.session.control.stretches import PastStretches
from engine.session.guest.past import PastSession
from engine.session.guest.watchpoints import Watch, WatchEvent

_NARROWEST: Final = 2_000
"""Ticks of the stretch that is looked at first on the way back; the next is four times as long."""


class StopPlace(NamedTuple):
    """A place at which the user wants to stop.

    Attributes:
        address: of it.
        accepts: says whether a hit there is one to stop at; asked in order.
        text: why the guest stops there.
        arrived: called when it has stopped there.
        behind: it stops behind the instruction where it runs forward.
    """

    address: int
    accepts: Callable[[], bool]
    text: str
    arrived: Callable[[], object] = lambda: None
    behind: bool = False


class WatchPlace(NamedTuple):
    """Bytes at whose accesses the user wants to stop.

    Attributes:
        ranges: where they are.
        accepts: says whether an access is one to stop at; asked in order.
        text: why the guest stops there.
        arrived: called with the access at which it has stopped, and whether it went back to it.
    """

    ranges: tuple[WatchedRange, ...]
    accepts: Callable[[WatchEvent], bool]
    text: str
    arrived: Callable[[WatchEvent, bool], object]


class StopSearch:
    """Lives through stretches of a guest's past and finds the hits of places in them."""

    def __init__(
        self, session: PastSession, stretches: PastStretches, cut: Callable[[], bool]
    ) -> None:
        """Nothing is looked for yet.

        Args:
            session: the guest.
            stretches: of its past.
            cut: asked now and then: True ends it.
        """
        self._session = session
        self._kernel = session.kernel
        self._stretches = stretches
        self._timeline = stretches.timeline
        self._cut = cut

    def last(
        self,
        places: tuple[StopPlace, ...],
        end: Moment,
        watches: Sequence[WatchPlace] = (),
    ) -> tuple[Moment, StopPlace] | None:
        """The last hit in front of a moment, from one checkpoint to the next, the newest first."""
        behind, width = end, _NARROWEST
        for number in range(self._number_before(end), -1, -1):
            clock = self._timeline.checkpoints.taken[number].clock
            while True:
                # What is looked for is often close by: not all up to the checkpoint at once.
                late = behind.clock - width
                if late - clock < width:
                    late = 0
                width *= 4
                start = self._stand_at(number, late)
                hits = [
                    hit
                    for hit in self.between(places, start, behind, watches, back=True)
                    if hit[0] < behind
                ]
                if hits:
                    return hits[-1]
                if self._cut():
                    return None
                behind = min(start, behind)
                if not late:
                    break
        return None

    def _number_before(self, moment: Moment) -> int:
        """Number of the last checkpoint in front of a moment, 0 if there is none."""
        taken = self._timeline.checkpoints.taken
        index = bisect_left([(one.at, one.clock) for one in taken], (moment.at, moment.clock))
        return max(index - 1, 0)

    def _stand_at(self, number: int, clock: int) -> Moment:
        """Stand at a checkpoint, or at a tick behind it if it is not 0."""
        timeline = self._timeline
        timeline.checkpoints.restore(number)
        if clock:
            at = bisect_left(self._kernel.journal.clocks, clock)
            timeline.run_to_tick(at, clock, until=self._cut)
        return timeline.now()

    def between(
        self,
        places: tuple[StopPlace, ...],
        start: Moment,
        end: Moment,
        watches: Sequence[WatchPlace] = (),
        *,
        first: bool = False,
        back: bool = False,
    ) -> list[tuple[Moment, StopPlace]]:
        """Run on from where the guest stands to a moment: the hits of places meanwhile.

        Args:
            places: where probes are planted for that.
            start: where the guest stands.
            end: where to go.
            watches: bytes that are watched for that.
            back: hits are gone back to.
            first: the first hit behind the start is enough; it stops soon behind it.
        """
        kernel, cpu = self._kernel, self._session.cpu
        hits: list[tuple[Moment, StopPlace]] = []
        manager = self._session.probes().manager

        def probe_of(address: int, rules: Rules) -> Kprobe:
            def hit(kprobe: Kprobe, regs: object) -> int:
                moment = Moment(kernel.at, cpu.now(), address)
                if start <= moment < end or moment == end:
                    for place in places:
                        stands = first and moment == start and not place.behind
                        if place.address == address and not stands and place.accepts():
                            hits.append((moment, place))
                            break
                return 0

            return Kprobe(addr=address, pre_handler=hit, rules=rules)

        def watched(place: WatchPlace) -> Watch:
            def told(event: WatchEvent) -> None:
                moment = self._stretches.moment_of(event)
                if start <= moment < end and place.accepts(event):
                    arrived = partial(place.arrived, event, back)
                    stop = StopPlace(event.pc, lambda: True, place.text, arrived, behind=True)
                    hits.append((moment, stop))

            return Watch(told, [replace(one) for one in place.ranges])

        watching = [watched(place) for place in watches]
        self._session.watchpoints.add(watching)
        planted: list[Kprobe] = []
        try:
            for address in {place.address for place in places}:
                for rules in (Rules.KPROBE, Rules.UPROBE):  # calls through memory: the latter only
                    probe = probe_of(address, rules)
                    try:
                        manager.register(probe)
                    except ProbeRejectedError:  # where no probe may stand there is no stop
                        continue
                    planted.append(probe)
                    break
            self._timeline.run_to_tick(
                end.at, end.clock, until=lambda: (first and bool(hits)) or self._cut()
            )
        finally:
            for probe in planted:
                manager.unregister(probe)
            self._session.watchpoints.remove(watching)
        if not (first and hits):
            self._session.watchpoints.add(watching)
            try:
                hits += self._ahead(places, end, hits)
            finally:
                self._session.watchpoints.remove(watching)
        hits.sort(key=lambda hit: hit[0])
        return hits

    def _ahead(
        self,
        places: tuple[StopPlace, ...],
        end: Moment,
        known: list[tuple[Moment, StopPlace]],
    ) -> list[tuple[Moment, StopPlace]]:
        """The hits in the tick of a moment that has just begun, in front of that."""
        seen = {moment for moment, _ in known}
        found = []
        now = self._timeline.now()
        addresses = {place.address for place in places}
        while now < end and now.clock == end.clock and not self._timeline.ended:
            if now.pc in addresses and now not in seen:
                place = next(
                    (one for one in places if one.address == now.pc and one.accepts()), None
                )
                if place is not None:
                    found.append((now, place))
            self._kernel.step()
            following = self._timeline.now()
            if following <= now:
                break
            now = following
        return found
