"""The jump technique: a detour in the guest records the hit (djprobe, optprobe).

A point is a breakpoint first. When it is looked at (`jumprules`) and all conditions hold, a detour
buffer is built and a jump takes the breakpoint's place, in the order in which a kernel writes it
(`TextOverlay.exchange`). A second probe in its window, a post-handler and whatever else changes
what is wanted there make it a breakpoint again.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, Protocol

from msgspec import Struct

from engine.arch.base import Arch
from engine.cpu.base import WatchesEntries
from engine.probes.detour_keeper import DetourKeeper
from engine.probes.detourmap import DetourMap, LiveDetour
from engine.probes.detours import KIND, Detour, build
from engine.probes.detourwork import in_parts, not_worth, serving, trap, uncompiled
from engine.probes.jump_machine import JumpMachine
from engine.probes.jumprules import (
    COMPUTED_ENTRY,
    JumpPlace,
    checklist,
    failing,
    failing_in,
    first_failure,
    fitting,
    moved,
)
from engine.probes.kprobe import Kprobe
from engine.probes.pending_calls import ReturnSite
from engine.probes.placement_rules import Check
from engine.probes.point import ProbePoint
from engine.probes.point_state import Stage
from engine.probes.technique import OTHER_PROBE, Buffers, Refused, Technique, TechniqueHost
from engine.probes.technique_kind import TechniqueConditions, TechniqueKind


class Handover(Protocol):
    """When a jump takes its breakpoint's place, and when the detour of one may be freed.

    Attributes:
        told: what the last hit of a breakpoint has brought, in words.
        awaits: what a jump waits for once its detour stands; None if it is written at once.
    """

    told: str

    @property
    def awaits(self) -> Check | None:
        """See the class."""

    def objection(self, probes: Iterable[Kprobe]) -> str:
        """Why probes keep a breakpoint from being replaced, "" if they do not."""

    def begin(self, live: LiveDetour) -> None:
        """A detour is to be waited for: its jump is not written yet, or just gone."""

    def wants_hits(self, address: int) -> bool:
        """True while each hit of the breakpoint at an address matters."""

    def hit(self, point: ProbePoint) -> None:
        """A breakpoint was hit: jumps may be written now, and detours be freed."""

    def vacated(self, address: int) -> None:
        """The breakpoint at an address is gone, and so is what stood in its place."""

    def keeps(self, live: LiveDetour) -> str:
        """In words, the wait of a detour that nobody needs any more, "" for none."""


class JumpsDone(Struct, frozen=True):
    """Calls of a handover's when nothing is to be waited for any more.

    Attributes:
        release: writes the jump to a detour.
        reap: frees the detours that nobody uses.
    """

    release: Callable[[LiveDetour], None]
    reap: Callable[[], None]


MakeHandover = Callable[[TechniqueHost, DetourMap, JumpsDone], Handover]


class AtOnce:
    """optprobe's handover: here nobody but the guest can be in the bytes; a `Handover`."""

    told = ""
    awaits: Check | None = None

    def __init__(self, host: TechniqueHost, detours: DetourMap, done: JumpsDone) -> None:
        """Nothing is ever waited for."""

    def objection(self, probes: Iterable[Kprobe]) -> str:
        """None."""
        return ""

    def begin(self, live: LiveDetour) -> None:
        """Nothing."""

    def wants_hits(self, address: int) -> bool:
        """Hits do not matter."""
        return False

    def hit(self, point: ProbePoint) -> None:
        """Hits do not matter."""

    def vacated(self, address: int) -> None:
        """Nothing."""

    def keeps(self, live: LiveDetour) -> str:
        """Nothing but the guest itself."""
        return ""


class JumpTechnique:
    """The jump probes of one guest; a `Technique`.

    Attributes:
        code: the detours that jumps lead to, among others.
        hit: a breakpoint was hit (`Handover.hit`).
    """

    def __init__(self, host: TechniqueHost, detours: DetourKeeper, handover: MakeHandover) -> None:
        """No point is a jump.

        Args:
            host: of the technique.
            detours: keeps the detours.
            handover: decides when jumps are written and detours freed.
        """
        self._host = host
        self._target = host.target
        self.code = detours
        self._jumps = detours.jumps
        done = JumpsDone(self._release, detours.running.reap)
        self._handover = handover(host, detours.map, done)
        self.hit = self._handover.hit
        cpu = host.target.cpu
        self._entries = cpu.entries if isinstance(cpu, WatchesEntries) else None
        self._entered: dict[int, Check] = {}  # points whose windows the program has come into

    @property
    def told(self) -> str:
        """In words, things that the last hit of a breakpoint has brought."""
        return self._handover.told

    @property
    def ready(self) -> bool:
        """True while something is traced."""
        return self.code.ready

    # -- what can be a jump ---------------------------------------------------------------

    def wants_hits(self, point: ProbePoint) -> bool:
        """True while the handover waits for hits of a breakpoint."""
        return self._handover.wants_hits(point.address)

    def promising(self, point: ProbePoint) -> bool:
        """True if a jump may serve a point's probes, and pays."""
        if not self.ready:
            return False
        if self.code.calls is not None and all(
            isinstance(one, ReturnSite) for one in point.probes
        ):
            return True  # which calls return there is not known yet
        if self._wants(point):
            return False
        return self._saves_step(point) or not isinstance(self.code.work(serving(point)), str)

    def _wants(self, point: ProbePoint) -> str:
        """Wishes of a point's probes beyond recording, in words, "" for none."""
        wanted = serving(point)
        if any(probe.post_handler is not None for probe in wanted):
            return "a post-handler runs behind its instruction"
        if any(isinstance(probe, ReturnSite) for probe in wanted):
            found = self.code.work(wanted)
            return found if isinstance(found, str) else ""
        objection = self._handover.objection(wanted)
        return objection or ("" if wanted else "nothing records there")

    def _unfit(self, point: ProbePoint) -> str:
        """Why a detour there would not be worth it, "" if it would.

        One that traps saves the step that the breakpoint needs: where its copy is boosted there
        is none to be saved.
        """
        if self._saves_step(point):
            return ""
        found = self.code.work(serving(point))
        why = found if isinstance(found, str) else uncompiled(self._jumps, found)
        return not_worth(why)

    def _saves_step(self, point: ProbePoint) -> bool:
        """True if a detour that traps is wanted there."""
        return self._host.at_once or not point.boosted

    def place(self, point: ProbePoint) -> JumpPlace | None:
        """A point as the rules see it."""
        found = self.code.locate(point.address)
        if found is None:
            return None
        code, function, bias = found
        probe = next((probe for probe in point.probes if not probe.stops), point.probes[0])
        points, jumps = self._host.points, self._jumps

        def other(start: int, end: int) -> int | None:
            inside = range(start + bias, end + bias)
            return next((at for at in inside if at in points and points[at].armed), None)

        def near(address: int) -> bool:
            return self.code.memory.space.near(address + bias, jumps.reach)

        return JumpPlace(
            arch=self._target.arch,
            address=point.address - bias,
            rules=probe.rules,
            mode=probe.mode or self._target.mode,
            code=code,
            function=function,
            wants=self._wants(point),
            unfit=lambda place: self._unfit(point),
            other=other,
            reach=near,
        )

    def take(self, point: ProbePoint) -> Refused | None:
        """Build a detour and write the jump, or say what is in the way."""
        if point.address in self._entered:
            return Refused(self._entered[point.address])
        place = self.place(point)
        if place is None:
            return Refused(Check("symbol-size", False, "it is in no file's code"))
        failure = first_failure(place)
        return Refused(failure) if failure is not None else self._optimize(point, place)

    def _optimize(self, point: ProbePoint, place: JumpPlace) -> Refused | None:
        target = self._target
        shared = self.code.shared()
        if shared is None:
            return Refused(Check("reach", False, self.code.memory.broken))
        window = place.raw
        if target.overlay.original(point.address, len(window)) != window:
            return Refused(Check("copies", False, "the program has changed its code there"))
        pc = target.regs.ip
        slot = point.slot is not None and 0 <= pc - point.slot < target.arch.probes.kprobe_slot
        if slot or point.address < pc < point.address + len(window):
            why = Check(OTHER_PROBE, False, "the program stands in the window")
            return Refused(why, for_now=True)
        probes = in_parts(serving(point))
        recorder = self.code.recorder(point, probes, window)
        if recorder is None:
            probes, recorder = (), trap(target.arch)
        rows = moved(place, point.address - place.address)
        detour = build(shared.space, self._jumps, point.address, window, recorder, rows)
        if detour is None:
            self.code.memory.give_back(probes)
            return Refused(Check("reach", False, "no detour is left within reach"))
        self._install(point, detour, probes)
        awaits = self._handover.awaits
        return None if awaits is None else Refused(awaits)

    def _install(self, point: ProbePoint, detour: Detour, probes: tuple[Kprobe, ...]) -> None:
        target = self._target
        stage = Stage.STOP if point.wants_stop() else Stage.REPLACED
        if self._handover.awaits is not None:
            stage = Stage.CHECK
        point.state = point.state.replaced(detour, stage)
        live = self.code.open(point, detour, probes)
        if self._entries is not None:
            self._entries.watch(self._inside(detour), partial(self._come, live))
        if stage is Stage.CHECK:
            self._handover.begin(live)
        value = detour.jump if stage is Stage.REPLACED else self._host.planted(point)
        unit = len(target.arch.breakpoint)
        target.overlay.exchange(point.address, value, detour.original, unit)

    def _release(self, live: LiveDetour) -> None:
        """A jump that was held back takes the breakpoint's place."""
        point, detour, target = live.point, live.detour, self._target
        point.state = point.state.checked(stop=point.wants_stop())
        point.candidacy = point.candidacy.cleared()
        if point.state.stage is Stage.REPLACED:
            unit = len(target.arch.breakpoint)
            target.overlay.exchange(point.address, detour.jump, detour.original, unit)
        self._host.replant(point.address)

    # -- back to a breakpoint -------------------------------------------------------------

    def _inside(self, detour: Detour) -> range:
        """The addresses behind the first of a window, at which nothing may begin."""
        unit = self._target.arch.insn_align
        return range(detour.address + unit, detour.window, unit)

    def _come(self, live: LiveDetour, address: int) -> None:
        """The program is about to go on in the middle of a window.

        No rule can exclude it: a computed jump may lead anywhere.
        """
        point = live.point
        if live.zombie or point.state.stage is not Stage.REPLACED:
            return  # the program's own bytes stand there
        self.fall_back(point, gone=False)
        why = Check(COMPUTED_ENTRY, False, f"the program has come to {address:#x} in its window")
        self._entered[point.address] = why
        point.candidacy = point.candidacy.refused(why)
        self._host.replant(point.address)
        names = ", ".join(str(probe) for probe in point.probes if not probe.machinery)
        self._target.notify(
            f"{names or hex(point.address)}: a breakpoint again: {why.detail}, "
            f"by a jump that could not be foreseen"
        )

    def fall_back(self, point: ProbePoint, *, gone: bool) -> None:
        """Put the breakpoint back; with `gone` the code there is no longer ours to write."""
        detour, target = point.replacement, self._target
        assert isinstance(detour, Detour), "the point is a jump"
        if not gone:
            value = self._host.planted(point)
            unit = len(target.arch.breakpoint)
            target.overlay.exchange(point.address, value, point.plan.raw, unit)
        worked = point.state.stage is not Stage.CHECK
        point.state = point.state.fall_back()
        live = self.code.map.at(detour.start)
        assert live is not None, "it is open"
        if self._entries is not None:
            self._entries.forget(self._inside(detour))
        self.code.close(live)
        if worked and not gone:
            self._handover.begin(live)
        self.code.running.reap()

    def displacing(self, address: int) -> ProbePoint | None:
        """The point whose window an address lies in, behind its first instruction."""
        live = self.code.map.inner(address)
        return live.point if live is not None else None

    def freed(self, address: int) -> Sequence[ProbePoint]:
        """Points in front of an address that had to give way to a breakpoint there."""
        around = range(address - self._jumps.most, address)
        found = (self._host.points.get(before) for before in around)
        return [one for one in found if one and one.why and one.why.rule == OTHER_PROBE]

    def vacated(self, address: int) -> None:
        """The handover may want a breakpoint there for longer."""
        self._handover.vacated(address)

    def follow(self, other: Technique) -> None:
        """A copy begins with breakpoints."""

    # -- what there is --------------------------------------------------------------------

    def standing(self) -> list[ProbePoint]:
        """The points that are jumps now."""
        return [live.point for live in self.code.map.standing() if live.detour.jump]

    def buffers(self) -> Buffers:
        """The detours that jumps lead to; what is waited for is in words."""
        self.code.running.reap()
        found = self.code.map
        waits = tuple(
            f"{live.detour.address:#x}: "
            + (self._handover.keeps(live) or "the guest is still in it")
            for live in found.zombies
            if live.detour.jump
        )
        return Buffers(len(self.standing()), waits, found.freed)


def jump_technique(host: TechniqueHost, handover: MakeHandover) -> JumpTechnique | None:
    """Set up the jumps of a guest; None where its architecture, or its processor, has none."""
    return JumpTechnique(host, host.detours, handover) if host.detours is not None else None


def scratch(arch: Arch) -> tuple[str, ...]:
    """Registers that detours leave changed."""
    return arch.jumps.scratch if arch.jumps is not None else ()


CONDITIONS: Final = TechniqueConditions(
    "a jump instead of the breakpoint, once it is hit often",
    checklist,
    failing,
    failing_in,
    fitting,
)
JUMP: Final = TechniqueKind(
    name="jump",
    help="at once, and say where not",
    stands=KIND,
    usual=True,
    machine=JumpMachine,
    build=lambda host: jump_technique(host, AtOnce),
    conditions=CONDITIONS,
    scratch=scratch,
)
