"""Arbitration: which technique stands at a point, and which one may take a breakpoint's place.

A kernel optimises in the same way (kernel/kprobes.c: kprobe_optimizer): a point is armed as a
breakpoint, and looked at later. If no technique can take it, it silently stays a breakpoint, and
its candidacy says why. What changes there makes it a breakpoint again, until it is looked at anew.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Final

from engine.cpu.base import Stop
from engine.probes.detourroom import RowMemory
from engine.probes.pending_calls import ReturnSite
from engine.probes.placement_rules import Check
from engine.probes.point import FIRST_HITS, ProbePoint
from engine.probes.target import ProbeTarget
from engine.probes.technique import OTHER_PROBE, Buffers, RecordingCode, Technique

_MANY: Final = 64
"""Changes of code from which on it is cheaper to forget all that was translated."""
AFTER: Final = 256
"""Hits of a breakpoint before it is looked at.

To look (decode the function, ask the rules, build the detour) takes one or two milliseconds, which
about a thousand hits save; most functions of a program are hit far less often, or far more. A
kernel looks at once, but in a worker beside the program, after a delay that collects requests.
Decoding takes the most, about as long for a byte as a hit of a breakpoint: in a large function as
many hits as it has bytes are waited for.
"""


class Arbitration:
    """The techniques of one guest, and what becomes of its breakpoints.

    Attributes:
        after: hits before a breakpoint is looked at.
        at_once: the user has asked for a technique by name: points are looked at when they are
            armed, and it is said where it cannot be.
        sink: where the rows of code in the guest go; None while nothing is traced.
        replacing: techniques that may take a breakpoint's place, the preferred ones first.
    """

    def __init__(
        self,
        target: ProbeTarget,
        points: Mapping[int, ProbePoint],
        plant: Callable[[ProbePoint], None],
        *,
        at_once: bool,
    ) -> None:
        """All points are breakpoints until a technique joins.

        Args:
            target: the guest.
            points: all probed addresses.
            plant: installs the actions of an armed point anew.
            at_once: see the class.
        """
        self.after = AFTER
        self.at_once = at_once
        self.sink: RowMemory | None = None
        self.replacing: Sequence[Technique] = ()
        self._by_kind: dict[str, Technique] = {}
        self._codes: tuple[RecordingCode, ...] = ()
        self._target = target
        self._points = points
        self._plant = plant

    def join(self, kind: str, technique: Technique) -> None:
        """A technique may take the place of breakpoints where those before it do not.

        Args:
            kind: of its replacements (`Replacement.kind`).
            technique: the technique that may serve the points.
        """
        self.replacing = (*self.replacing, technique)
        self._by_kind[kind] = technique
        self.include(technique.code)

    def include(self, code: RecordingCode) -> None:
        """Hits may be led to some code from now on."""
        if code not in self._codes:
            self._codes = (*self._codes, code)

    def follow(self, other: "Arbitration") -> None:
        """The memory is a copy of another one's; nothing is probed here yet."""
        for kind, technique in self._by_kind.items():
            if kind in other._by_kind:
                technique.follow(other._by_kind[kind])

    # -- breakpoints and their replacements -----------------------------------------------

    def waits(self, point: ProbePoint) -> int:
        """Hits after which a point is to come to the engine; 0 = never."""
        for technique in self.replacing:
            if technique.wants_hits(point):
                return 1
        candidacy = point.candidacy
        if candidacy.looked:
            return 0
        for technique in self.replacing:
            if technique.promising(point):
                return candidacy.patience or self.after
        return 0

    def eager(self, point: ProbePoint) -> bool:
        """True if one of the first hits of a point may be that after which it is looked at."""
        return self.after <= FIRST_HITS or any(one.wants_hits(point) for one in self.replacing)

    def arming(self, points: Sequence[ProbePoint]) -> None:
        """Points are about to get their breakpoints: none may stand in a replacement's window."""
        for point in points:
            point.candidacy = point.candidacy.renewed()
        for point in points:
            self.give_way(point.address)

    def give_way(self, address: int) -> None:
        """Something else is about to stand at an address: no replacement may reach over it."""
        for technique in self.replacing:
            other = technique.displacing(address)
            if other is not None:
                technique.fall_back(other, gone=False)
                text = f"another probe stands at {address:#x}"
                other.candidacy = other.candidacy.refused(Check(OTHER_PROBE, False, text))
                self._replant(other)

    def armed(self, points: Sequence[ProbePoint]) -> None:
        """Points have got their breakpoints."""
        if not any(technique.ready for technique in self.replacing):
            return
        wanted = [point for point in points if self.at_once or point.candidacy.hot]
        if not wanted:
            return
        many = len(wanted) > _MANY
        with self._target.memory.changing_code() if many else nullcontext():
            self._consider_each(wanted)

    def _consider_each(self, points: Sequence[ProbePoint]) -> None:
        for point in points:
            if all(isinstance(probe, ReturnSite) for probe in point.probes):
                continue  # which calls return there is not known yet
            if self.consider(point):
                continue
            if self.at_once and not all(probe.machinery for probe in point.probes):
                names = ", ".join(str(probe) for probe in point.probes)
                why = point.why.detail if point.why else ""
                self._target.notify(f"{names}: stays a breakpoint: {why}")

    def due(self, point: ProbePoint) -> None:
        """A point has been hit so often as `waits` says."""
        function = self._target.code_map.function(point.address)
        size = function[1] - function[0] if function is not None else 0
        wanted = size * self.after // AFTER
        watched = any(technique.wants_hits(point) for technique in self.replacing)
        candidacy = point.candidacy
        if not candidacy.patience and wanted > 2 * self.after and not watched:
            point.candidacy = candidacy.patient(wanted - self.after)
            self._replant(point)
        elif not self.consider(point) and point.candidacy.due:
            point.candidacy = point.candidacy.put_off(candidacy.why)

    def consider(self, point: ProbePoint) -> bool:
        """Look at a breakpoint: True once a technique has taken its place; else it knows why."""
        if point.replacement is not None:
            return True
        ready = [technique for technique in self.replacing if technique.ready]
        if not ready or point.candidacy.looked or not point.armed:
            return False
        refused = None
        for technique in ready:
            refused = technique.take(point)
            if point.replacement is not None:
                break
        candidacy = point.candidacy
        if point.replacement is not None:
            point.candidacy = candidacy.replaced(refused.why if refused is not None else None)
        else:
            assert refused is not None, "a technique takes a point or says why not"
            known = candidacy.put_off if refused.for_now else candidacy.refused
            point.candidacy = known(refused.why)
        self._replant(point)
        return point.replacement is not None

    def fall_back(self, point: ProbePoint, *, gone: bool = False) -> None:
        """Make a point a breakpoint again; with `gone` its code is no longer ours to write."""
        replacement = point.replacement
        if replacement is not None:
            self._by_kind[replacement.kind].fall_back(point, gone=gone)

    def reconsider(self, point: ProbePoint) -> None:
        """A point's probes have changed: it is a breakpoint until it is looked at."""
        self.fall_back(point)
        point.candidacy = point.candidacy.renewed()
        if point.armed:
            if self.at_once or point.candidacy.hot:
                self.consider(point)
            self._plant(point)

    def room_made(self, addresses: Sequence[int]) -> None:
        """Breakpoints are gone: who had to give way to one may be looked at again."""
        for technique in self.replacing:
            for address in set(addresses):
                for point in technique.freed(address):
                    self.reconsider(point)
                technique.vacated(address)

    def _replant(self, point: ProbePoint) -> None:
        if point.armed:
            self._plant(point)

    # -- the guest in code of the engine's -------------------------------------------------

    def hit(self, point: ProbePoint) -> None:
        """A breakpoint was hit, and the engine serves it."""
        for technique in self.replacing:
            technique.hit(point)

    @property
    def told(self) -> tuple[str, ...]:
        """Things that techniques have seen at the last hit, in words."""
        return tuple(technique.told for technique in self.replacing)

    def trapped(self, address: int) -> ProbePoint | Stop | bool:
        """See to a breakpoint trap in such code (`RecordingCode.trapped`)."""
        for code in self._codes:
            seen = code.trapped(address)
            if seen:
                return seen
        return False

    def holder(self, address: int) -> RecordingCode | None:
        """The code where which may be an address lies."""
        for code in reversed(self._codes):  # trampolines lie among the detours
            if code.holds(address):
                return code
        return None

    @property
    def displaces(self) -> bool:
        """True if the guest may come to an instruction that is carried out in such code."""
        return any(code.displaces() for code in self._codes)

    def resume(self) -> None:
        """The guest is about to go on."""
        for code in self._codes:
            code.resume()

    def enter(self) -> None:
        """The processor is in this address space again."""
        for code in self._codes:
            code.enter()

    def show_thread(self) -> None:
        """Something else runs here from now on, by id and name."""
        for code in self._codes:
            code.show_thread()

    def original_pc(self, address: int) -> int | None:
        """The program's own address for a place in such code; None elsewhere."""
        for code in self._codes:
            found = code.original_pc(address)
            if found is not None:
                return found
        return None

    # -- traces ---------------------------------------------------------------------------

    def attach(self, sink: RowMemory, comm: Callable[[], bytes]) -> None:
        """A trace begins; rows of code in the guest are the first one's.

        Args:
            sink: where its rows go.
            comm: the running thread's name.
        """
        if self.sink is None:
            self.sink = sink
            for code in self._codes:
                code.attach(sink, comm)

    def release(self) -> None:
        """The first trace has come to nothing; where code in the guest has its rows it stays."""
        if self.sink is not None and not self.sink.shown:
            self.sink = None

    def writes_to(self, sink: RowMemory) -> bool:
        """True if code in the guest may write rows there."""
        return self.sink is sink and any(code.records for code in self._codes)

    def collect(self) -> None:
        """Bring probes' counts of hits up to date."""
        for code in self._codes:
            code.collect()

    def buffers(self) -> Buffers:
        """The code of all techniques outside of the program's."""
        found = [technique.buffers() for technique in self.replacing]
        waits = tuple(text for each in found for text in each.waits)
        return Buffers(
            sum(each.standing for each in found), waits, sum(each.freed for each in found)
        )
