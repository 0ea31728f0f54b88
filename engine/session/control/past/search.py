"""Stretches of a guest's past lived through again, and the hits of places to stop at in them."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from msgspec.structs import replace

from engine.arch.plan import Rules
from engine.cpu.base import StopKind
from engine.errors import ProbeRejectedError
from engine.guest.watched import WatchedRange
from engine.history.journal import Entry, EntryCause, Op
from engine.history.timeline import Moment, Timeline
from engine.probes.kprobe import Kprobe
from engine.session.guest.past import PastSession
from engine.session.guest.watchpoints import Watch, WatchEvent

_NARROWEST: Final = 16
"""Ticks of the first stretch back; each next one is four times as wide."""
_FRUITLESS: Final = 1 << 20
"""Steps that lead to no later moment before nobody waits any longer for one."""


class PastStretches:
    """Runs a guest of the past over stretches of its run.

    Attributes:
        timeline: its moments.
    """

    def __init__(self, session: PastSession, timeline: Timeline) -> None:
        """Take a past of which no stretch has been lived through."""
        self._session = session
        self._kernel = session.kernel
        self.timeline = timeline

    def back(
        self, before: Moment, widest: int, floor: Moment | None = None
    ) -> Iterator[tuple[Moment, Moment]]:
        """Stretches in front of a moment, the newest first: begin and end; it stands at the begin.

        Args:
            before: where the newest ends.
            widest: ticks of a stretch, at the most.
            floor: where the oldest begins; None for the first instruction.
        """
        timeline, end, width = self.timeline, before, _NARROWEST
        lowest = 0 if floor is None else floor.clock
        while True:
            clock = end.clock - width
            if clock > lowest:
                timeline.seek_clock(clock)
            elif floor is None:
                timeline.start()
            else:
                timeline.seek(floor)
            start = timeline.now()
            if start < end:
                yield start, end
                end = start
            if clock <= lowest:
                return
            width = min(4 * width, widest)

    def steps(self, end: Moment, cut: Callable[[], bool]) -> Iterator[Moment]:
        """Go on instruction by instruction up to a moment: each moment behind another one."""
        timeline, fruitless = self.timeline, 0
        now = timeline.now()
        while now < end and not timeline.ended and fruitless < _FRUITLESS and not cut():
            self._kernel.step()
            following = timeline.now()
            fruitless = 0 if following > now else fruitless + 1
            now = following
            yield now

    def ticks(self, clock: int, cut: Callable[[], bool]) -> Iterator[int]:
        """Go on tick by tick up to the begin of one: each tick that begins."""
        kernel, cpu = self._kernel, self._session.cpu
        quantum, fruitless = StopKind.QUANTUM, 0
        clear, at = 0, -1  # the tick of the entry that comes next, where nothing else is to do
        try:
            while (now := cpu.coming()) < clock and not self.timeline.ended and not cut():
                if now < clear and kernel.at == at:
                    stop = cpu.run(1)
                    if stop.kind is not quantum:
                        at = -1
                        kernel.handle(stop)
                else:
                    before = kernel.at
                    kernel.limit = now
                    kernel.resume()
                    entry = kernel.next
                    at = before if kernel.at == before else -1  # else it is to be got ready
                    clear = 0 if entry is None else entry.clock
                following = cpu.coming()
                if following > now:
                    fruitless = 0
                    yield following
                    continue
                fruitless += 1
                if fruitless >= _FRUITLESS:
                    return
        finally:
            kernel.limit = None

    def run(self, watch: Watch, end: Moment, until: Callable[[], bool]) -> None:
        """Go on to a moment while bytes are watched.

        Args:
            watch: the bytes.
            end: the moment.
            until: asked between two stretches of the journal's, and in the last tick between two
                instructions: True ends it.
        """
        watchpoints, timeline = self._session.watchpoints, self.timeline
        watchpoints.add([watch])
        try:
            timeline.run_to_tick(end.at, end.clock, until=until)
            if not until() and timeline.now().clock == end.clock:
                for _ in self.steps(end, until):
                    pass
        finally:
            watchpoints.remove([watch])

    def moment_of(self, event: WatchEvent) -> Moment:
        """The moment in front of what has just accessed watched bytes."""
        if event.by:
            return self.of_entry()
        session, pc = self._session, event.pc
        cpu = session.cpu
        insn = next(iter(session.disassembler.decode(pc, session.code_at(pc))), None)
        behind = pc + insn.size if insn is not None else pc
        clock = cpu.blocks()
        if cpu.read_register(session.arch.roles.pc) != behind:  # a call: that may be counted yet
            clock = cpu.coming() - 1
        return Moment(self._kernel.at, clock, pc)

    def of_entry(self) -> Moment:
        """The moment in front of what has led to the last entry of the journal's."""
        kernel, linux = self._kernel, self._session.arch.linux
        entry = kernel.journal[kernel.at - 1]
        pc = entry.pc
        if entry.cause == EntryCause.SYSCALL:
            before = linux.syscall_before
            pc = pc - linux.syscall_size if before is None else before(pc)
        return Moment(kernel.at - 1, entry.clock, pc)


_NEAREST: Final = 2_000
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
        """Take the past that hits are looked for in.

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
        behind, width = end, _NEAREST
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

        def acting(entry: Entry) -> None:
            """Note a hit where the user has led the program elsewhere before it went on.

            No probe is hit there: its instruction is not carried out.
            """
            what = {op[0] for op in entry.ops}
            moment = Moment(kernel.at, entry.clock, entry.pc)
            pc = Op.REGISTER, self._session.arch.roles.pc
            moved = any(tuple(op[:2]) == pc for op in entry.ops)
            by_kernel = what & {Op.SIGNAL, Op.SWITCHING}
            if not moved or by_kernel or not start <= moment < end or (first and moment == start):
                return
            for place in places:
                if place.address == entry.pc and place.accepts():
                    hits.append((moment, place))
                    return

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
            kernel.acting = acting
            self._timeline.run_to_tick(
                end.at, end.clock, until=lambda: (first and bool(hits)) or self._cut()
            )
        finally:
            kernel.acting = None
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
