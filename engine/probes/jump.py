"""The jump technique: a detour in the guest records the hit (djprobe, optprobe).

A point is a breakpoint first. After some hits it is looked at (`jumprules`); if all conditions
hold, a detour buffer is built and a jump takes the breakpoint's place, in the order in which a
kernel writes it (`TextOverlay.exchange`). If not, it silently stays a breakpoint, and
`ProbePoint.why` says which condition it was. A second probe in its window, a post-handler and
whatever else changes what is wanted there make it a breakpoint again, until it is looked at anew.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from engine.arch.base import Arch
from engine.arch.plan import Mode
from engine.arch.recorder.generator import record
from engine.arch.recording import DetourPlaces, NotCompilableError, Recorder, Work
from engine.cpu.base import Cpu
from engine.guest.memory import Memory
from engine.guest.text import TextOverlay
from engine.probes.code_map import CodeMap
from engine.probes.detourhits import DetourHits
from engine.probes.detourmap import DetourMap
from engine.probes.detourmemory import DetourMemory, Sink
from engine.probes.detours import Detour, build
from engine.probes.detourwork import counted, in_parts, not_worth, serving, trap, uncompiled, work
from engine.probes.djprobe import SafetyCheck, SafetyChecks
from engine.probes.guestcalls import GuestCalls
from engine.probes.jumprules import Check, JumpPlace, first_failure, moved
from engine.probes.kprobe import Kprobe
from engine.probes.point import ProbePoint
from engine.probes.return_catcher import Returns, ReturnSite, own
from engine.probes.return_sites import ReturnSites
from engine.probes.site import FunctionCode, ImageCode

AFTER: Final = 256
"""Hits of a breakpoint before it is looked at.

To look (decode the function, ask the rules, build the detour) takes one or two milliseconds, which
about a thousand hits save; most functions of a program are hit far less often, or far more. A
kernel looks at once, but in a worker beside the program, after a delay that collects requests.
Decoding takes the most, about as long for a byte as a hit of a breakpoint: in a large function as
many hits as it has bytes are waited for.
"""
AT_ONCE: Final = ("jump", "djprobe")
"""Techniques for which a point need not be hit before it is looked at."""
_CHECKED: Final = Check("safety-check", False, "not all CPUs have passed its breakpoint yet")

Located = tuple[ImageCode, FunctionCode | None, int]
"""A file's code, the function around an address in it, and guest minus link addresses."""


class Owner(Protocol):
    """What jumps ask of the manager of probes."""

    arch: Arch
    cpu: Cpu
    memory: Memory
    overlay: TextOverlay
    mode: Mode
    code_map: CodeMap
    thread: Callable[[], int]
    points: dict[int, ProbePoint]
    returns: Returns
    on_notice: Callable[[str], None]

    def register(self, probe: Kprobe) -> None:
        """Register and arm one probe."""

    def unregister(self, probe: Kprobe) -> None:
        """Take one probe out."""

    def replant(self, address: int) -> None:
        """What is to happen at a point has changed."""

    def planted(self, point: ProbePoint) -> bytes:
        """The breakpoint that stands at a point."""


class Jumps:
    """The jump probes of one guest.

    Attributes:
        technique: "auto", "breakpoint" (no jumps), "jump" (at once, with a notice where it
            cannot be) or "djprobe" (the same by the protocol of 2005).
        checks: which CPUs have passed, for that protocol.
        after: hits before a point is looked at.
        detours: those that there are.
        running: sees to the guest while it is in one.
    """

    def __init__(
        self,
        owner: Owner,
        window: tuple[int, int],
        beside: tuple[tuple[int, int], ...],
        time_page: int,
        locate: Callable[[int], Located | None],
        technique: str = "auto",
    ) -> None:
        """Map nothing yet.

        Args:
            owner: the manager.
            window: (start, size) of the engine window for shared data and detours.
            beside: further ones, for detours near the program.
            time_page: see `engine.cpu.base.SharesTime`.
            locate: the code around a guest address.
            technique: see the attribute.
        """
        self._owner = owner
        self._locate = locate
        self._memory = DetourMemory(owner.memory, window, beside, time_page)
        self.detours = DetourMap()
        self.running = DetourHits(owner, self._memory, self.detours)
        self.technique = technique
        self.after = AFTER
        self.checks = SafetyChecks(self.detours)

    @property
    def sink(self) -> Sink | None:
        """Where rows go; None while nothing is traced."""
        return self._memory.sink

    @sink.setter
    def sink(self, sink: Sink) -> None:
        self._memory.sink = sink

    # -- what is a jump -------------------------------------------------------------------

    def waits(self, point: ProbePoint) -> int:
        """Hits after which a point is to be looked at; 0 = not at all."""
        if self.detours.waiting(point.address):
            return 1
        if self.technique == "breakpoint" or self.sink is None or point.considered:
            return 0
        if self._calls is not None and all(isinstance(one, ReturnSite) for one in point.probes):
            return point.patience or self.after  # which calls return there is not known yet
        if self._wants(point):
            return 0
        takes_engine = isinstance(self._work(serving(point)), str)
        if takes_engine and not self._saves_step(point):
            return 0
        return point.patience or self.after

    def _wants(self, point: ProbePoint) -> str:
        """What a point's probes want beyond recording, "" for nothing."""
        wanted = serving(point)
        if any(probe.post_handler is not None for probe in wanted):
            return "a post-handler runs behind its instruction"
        if any(isinstance(probe, ReturnSite) for probe in wanted):
            found = self._work(wanted)
            return found if isinstance(found, str) else ""
        if any(isinstance(probe, SafetyCheck) for probe in wanted):
            return "CPUs have yet to pass its breakpoint"
        return "" if wanted else "nothing records there"

    def _work(self, probes: Sequence[Kprobe]) -> Work | str:
        return work(probes, self._calls)

    @property
    def _calls(self) -> GuestCalls | None:
        """What is known of calls, where returns are caught by places that they lead to."""
        returns = self._owner.returns
        return returns.calls if isinstance(returns, ReturnSites) else None

    def _unfit(self, point: ProbePoint) -> str:
        """Why a detour there would not be worth it, "" if it would.

        One that traps saves the step that the breakpoint needs: where its copy is boosted there
        is none to be saved.
        """
        if self._saves_step(point):
            return ""
        found = self._work(serving(point))
        return not_worth(found if isinstance(found, str) else uncompiled(self._owner.arch, found))

    def _saves_step(self, point: ProbePoint) -> bool:
        """Whether a detour that traps is wanted there."""
        return self.technique in AT_ONCE or not point.boosted

    def arming(self, points: list[ProbePoint]) -> None:
        """Points are about to get their breakpoints."""
        for point in points:
            point.considered, point.why = False, None
        if self.detours.covers:
            self.make_room([point.address for point in points])

    def armed(self, points: list[ProbePoint]) -> None:
        """Points have got their breakpoints."""
        if self.sink is None:
            return
        at_once = self.technique in AT_ONCE
        for point in points:
            if all(isinstance(probe, ReturnSite) for probe in point.probes):
                continue  # see `waits`
            if not (at_once or point.hot) or self.consider(point) or point.held:
                continue
            if at_once and not all(own(probe) for probe in point.probes):
                names = ", ".join(str(probe) for probe in point.probes)
                why = point.why.detail if point.why else ""
                self._owner.on_notice(f"{names}: stays a breakpoint: {why}")

    def due(self, point: ProbePoint) -> None:
        """A point has been hit so often as `waits` says."""
        function = self._owner.code_map.function(point.address)
        size = function[1] - function[0] if function is not None else 0
        wanted = size * self.after // AFTER
        waiting = self.detours.waiting(point.address)
        if not point.patience and wanted > 2 * self.after and not waiting:
            point.patience = wanted - self.after
            self._owner.replant(point.address)
        else:
            self.consider(point)

    def consider(self, point: ProbePoint) -> bool:
        """Make a point a jump if it can be one; otherwise it knows why not."""
        if point.detour is not None:
            return True
        if self.technique == "breakpoint" or self.sink is None:
            return False
        if point.considered or not point.armed:
            return False
        point.considered = True
        place = self.place(point)
        if place is None:
            point.why = Check("symbol-size", False, "it is in no file's code")
        else:
            point.why = first_failure(place) or self._optimize(point, place)
        point.hot = point.hot or point.detour is not None
        self._owner.replant(point.address)
        return point.detour is not None

    def place(self, point: ProbePoint) -> JumpPlace | None:
        """A point as the rules see it."""
        found = self._locate(point.address)
        if found is None:
            return None
        code, function, bias = found
        probe = next((probe for probe in point.probes if not probe.stops), point.probes[0])
        points, jumps = self._owner.points, self._owner.arch.jumps

        def other(start: int, end: int) -> int | None:
            inside = range(start + bias, end + bias)
            return next((at for at in inside if at in points and points[at].armed), None)

        def near(address: int) -> bool:
            space = self._memory.space
            return jumps is not None and space.near(address + bias, jumps.reach)

        return JumpPlace(
            arch=self._owner.arch,
            address=point.address - bias,
            rules=probe.rules,
            mode=probe.mode or self._owner.mode,
            code=code,
            function=function,
            wants=self._wants(point),
            unfit=self._unfit(point),
            other=other,
            reach=near,
        )

    def _optimize(self, point: ProbePoint, place: JumpPlace) -> Check | None:
        """Build the detour and write the jump; what is in the way, None if it stands."""
        owner = self._owner
        jumps = owner.arch.jumps
        assert jumps is not None, "a place that has passed has jumps"
        shared = self._memory.open(owner.thread())
        if shared is None:
            return Check("reach", False, self._memory.broken)
        window = b"".join(raw for _, raw in place.window)
        if owner.overlay.original(point.address, len(window)) != window:
            return Check("copies", False, "the program has changed its code there")
        pc = owner.cpu.read_register(owner.arch.roles.pc)
        slot = point.slot is not None and 0 <= pc - point.slot < owner.arch.probes.kprobe_slot
        if slot or point.address < pc < point.address + len(window):
            point.considered = False
            return Check("other-probe", False, "the program stands in the window")
        probes = in_parts(serving(point))
        recorder = self._recorder(probes, shared.places, window)
        if recorder is None:
            probes, recorder = (), trap(owner.arch)
        rows = moved(place, point.address - place.address)
        detour = build(shared.space, jumps, point.address, window, recorder, rows)
        if detour is None:
            self._memory.give_back(probes)
            return Check("reach", False, "no detour is left within reach")
        self._install(point, detour, probes)
        return _CHECKED if point.held == "check" else None

    def _recorder(
        self, probes: tuple[Kprobe, ...], places: DetourPlaces, window: bytes
    ) -> Recorder | None:
        """Code that records for all of them, each with a counter; None where a trap has to."""
        jumps, found, calls = self._owner.arch.jumps, self._work(probes), self._calls
        if isinstance(found, str) or jumps is None:
            return None
        counters = [self._memory.counter(probe) for probe in probes]
        words = [counter for counter in counters if counter is not None]
        try:
            if len(words) == len(probes):
                recorder = record(jumps.encoder, counted(found, words), places, window)
                if not isinstance(found, tuple) and calls and self._memory.shared:
                    calls.begin(self._memory.shared.calls)
                return recorder
        except NotCompilableError:
            pass
        self._memory.give_back(probes)
        return None

    def _install(self, point: ProbePoint, detour: Detour, probes: tuple[Kprobe, ...]) -> None:
        owner = self._owner
        stops = any(probe.stops for probe in point.enabled())
        point.held = "check" if self.technique == "djprobe" else "stop" if stops else ""
        owner.memory.poke(detour.start, detour.code)
        point.detour = detour
        live = self.detours.add(point, detour, probes)
        self.running.open(live)
        if point.held == "check":
            self.checks.begin(live)
        unit = len(owner.arch.breakpoint)
        value = owner.planted(point) if point.held else detour.jump
        owner.overlay.exchange(point.address, value, detour.original, unit)

    def collect(self) -> None:
        """Bring the probes' counts of hits up to date, and what is known of calls."""
        if self._calls is not None:
            self._calls.sync()
        self._memory.collect()

    def standing(self) -> list[ProbePoint]:
        """The points that are jumps now."""
        return [live.point for live in self.detours.standing()]

    def hit(self, point: ProbePoint) -> None:
        """A breakpoint was hit: a CPU has passed it; `checks.told` says what that has brought."""
        self.checks.told = ""
        if not self.detours.waiting(point.address):
            return
        for live in self.checks.passes(point.address):
            if not live.zombie:
                self._release(point, live.detour)
        if not self.detours.waiting(point.address):
            for probe in [probe for probe in point.probes if isinstance(probe, SafetyCheck)]:
                self._owner.unregister(probe)
        self.running.reap()

    def _release(self, point: ProbePoint, detour: Detour) -> None:
        """All CPUs have passed: the jump takes the breakpoint's place."""
        owner = self._owner
        stops = any(probe.stops for probe in point.enabled())
        point.held, point.why = "stop" if stops else "", None
        if not stops:
            unit = len(owner.arch.breakpoint)
            owner.overlay.exchange(point.address, detour.jump, detour.original, unit)
        owner.replant(point.address)

    # -- back to a breakpoint -------------------------------------------------------------

    def unoptimize(self, point: ProbePoint, *, gone: bool = False) -> None:
        """The breakpoint comes back; with `gone` the code there is no longer ours to write."""
        detour, owner = point.detour, self._owner
        if detour is None:
            return
        if not gone:
            value = owner.planted(point)
            unit = len(owner.arch.breakpoint)
            owner.overlay.exchange(point.address, value, point.plan.raw, unit)
        worked = point.held != "check"
        point.detour, point.held = None, ""
        live = self.detours.retire(detour)
        self._memory.give_back(live.probes)
        self.detours.wait(live, ())
        if self.technique == "djprobe" and worked and not gone:
            self.checks.begin(live)
        self.running.reap()

    def make_room(self, addresses: list[int]) -> None:
        """Breakpoints are about to be planted: none may stand in a window."""
        for address in addresses:
            live = self.detours.inner(address)
            if live is not None:
                point = live.point
                self.unoptimize(point)
                point.considered = True
                point.why = Check("other-probe", False, f"another probe stands at {address:#x}")
                self._owner.replant(point.address)

    def room_made(self, addresses: list[int]) -> None:
        """Breakpoints are gone: who had to give way to one may be looked at again."""
        gone = set(addresses)
        reach = self._owner.arch.jumps.most if self._owner.arch.jumps else 0
        for address in gone:
            for before in range(address - reach, address):
                point = self._owner.points.get(before)
                if point is not None and point.why and point.why.rule == "other-probe":
                    self.reconsider(point)
            point = self._owner.points.get(address)
            if self.detours.waiting(address) and (point is None or not point.armed):
                self._owner.register(SafetyCheck(address))

    def reconsider(self, point: ProbePoint) -> None:
        """What is wanted at a point has changed: it is a breakpoint until it is looked at."""
        self.unoptimize(point)
        point.considered, point.why = False, None
        if point.armed:
            if self.technique in AT_ONCE or point.hot:
                self.consider(point)
            self._owner.replant(point.address)
