"""The jump technique: a detour in the guest records the hit (djprobe, optprobe).

A point is a breakpoint first. After some hits it is looked at (`jumprules`); if all conditions
hold, a detour buffer is built and a jump takes the breakpoint's place, in the order in which a
kernel writes it (`TextOverlay.exchange`). If not, it silently stays a breakpoint, and
`ProbePoint.why` says which condition it was. A second probe in its window, a handler, a return
probe and whatever else changes what is wanted there make it a breakpoint again.

Detours write rows into the memory of the trace's own `Staging`, which is shown to the guest in an
engine window, behind which nothing is mapped: a row that does not fit faults there, and the engine
empties the ring and lets the detour begin the row anew. Loads that fault, and strings that are too
long, are recorded by the engine as at a breakpoint. Nothing of the program's is used meanwhile but
registers, which are kept in another page of the window. The program can write to these pages if
it looks for them: rows are checked before they are believed, and nothing else depends on them.
"""

import ctypes
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from mmap import PAGESIZE, mmap
from typing import Final, Protocol

from engine.arch.base import Arch, TrapKind
from engine.arch.jump import CURSOR, DetourPlaces, NotCompilableError
from engine.arch.plan import Mode
from engine.cpu.base import Cpu, Stop, StopKind
from engine.cpu.ram import PAGE, READ, WRITE
from engine.guest.mapping import MappingError
from engine.guest.memory import Memory
from engine.guest.text import TextOverlay
from engine.probes.detours import Detour, DetourSpace, build
from engine.probes.jumprules import Check, JumpPlace, first_failure, moved
from engine.probes.kprobe import Kprobe
from engine.probes.point import ProbePoint, needs_engine
from engine.probes.returns import ReturnSite
from engine.probes.site import FunctionCode, ImageCode

AFTER: Final = 256
"""Hits of a breakpoint before it is looked at: that costs as much as a thousand of them save."""
THREAD: Final = CURSOR + 24
"""Offset of the thread's word in the page of the save area."""
_COUNTERS: Final = 2 * PAGE
_RING: Final = 1 << 20
_MOST: Final = (_RING - _COUNTERS) // 8
_STRING: Final = 4096 + 8

Located = tuple[ImageCode, FunctionCode | None, int]
"""A file's code, the function around an address in it, and guest minus link addresses."""


class Sink(Protocol):
    """Where rows go: `engine.trace.staging.Staging`."""

    buffer: mmap
    control: mmap
    start: int
    shown: bool

    @property
    def capacity(self) -> int:
        """Bytes of rows that it holds."""

    def drain(self) -> None:
        """Make it empty."""

    def wipe(self, most: int | None = None) -> None:
        """Forget what stands behind its rows."""


class Owner(Protocol):
    """What jumps ask of the manager of probes."""

    arch: Arch
    cpu: Cpu
    memory: Memory
    overlay: TextOverlay
    mode: Mode
    thread: Callable[[], int]
    points: dict[int, ProbePoint]
    on_notice: Callable[[str], None]

    def replant(self, address: int) -> None:
        """What is to happen at a point has changed."""

    def planted(self, point: ProbePoint) -> bytes:
        """The breakpoint that stands at a point."""


@dataclass(frozen=True, slots=True)
class _Shared:
    """What all detours share, once it is mapped; `counters` are words of the host's memory."""

    places: DetourPlaces
    guard: int
    counters: "memoryview[int]"
    save: "memoryview[int]"
    at: int


class Jumps:
    """The jump probes of one guest.

    Attributes:
        technique: "auto", "breakpoint" (no jumps) or "jump" (at once, with a notice where it
            cannot be).
        after: hits before a point is looked at.
        sink: where rows go; None while nothing is traced.
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
        self._window = window
        self._beside = beside
        self._time_page = time_page
        self._locate = locate
        self.technique = technique
        self.after = AFTER
        self.sink: Sink | None = None
        self._shared: _Shared | None = None
        self._space: DetourSpace | None = None
        self._starts: list[int] = []
        self._points: dict[int, ProbePoint] = {}  # by start of their detour
        self._inner: dict[int, ProbePoint] = {}  # by address of an instruction in a window
        self._zombies: list[Detour] = []
        self._counters: dict[ProbePoint, tuple[int, Kprobe]] = {}
        self._free_counters: list[int] = []
        self._broken = ""

    # -- what is a jump -------------------------------------------------------------------

    def waits(self, point: ProbePoint) -> int:
        """Hits after which a point is to be looked at; 0 = not at all."""
        if self.technique == "breakpoint" or self.sink is None or point.considered:
            return 0
        return self.after if self._wants(point) == "" else 0

    def _wants(self, point: ProbePoint) -> str:
        """What a point's probes want beyond recording, "" for nothing."""
        enabled = point.enabled()
        if any(probe.post_handler is not None for probe in enabled):
            return "a post-handler runs behind its instruction"
        if any(needs_engine(probe) for probe in enabled):
            return "a handler runs there"
        if point.wants_return():
            return "a return probe begins there"
        if any(isinstance(probe, ReturnSite) for probe in enabled):
            return "return probes wait there for a call's return"
        if len(enabled) != 1:
            return f"{len(enabled)} probes record there"
        if enabled[0].recording is None:
            return "what is recorded there takes the engine"
        return ""

    def arming(self, points: list[ProbePoint]) -> None:
        """Points are about to get their breakpoints."""
        for point in points:
            point.considered, point.why = False, None
        if self._inner:
            self.make_room([point.address for point in points])

    def armed(self, points: list[ProbePoint]) -> None:
        """Points have got their breakpoints."""
        if self.technique != "jump" or self.sink is None:
            return
        for point in points:
            if not self.consider(point) and not _own(point):
                names = ", ".join(str(probe) for probe in point.probes)
                why = point.why.detail if point.why else ""
                self._owner.on_notice(f"{names}: stays a breakpoint: {why}")

    def consider(self, point: ProbePoint) -> bool:
        """Make a point a jump if it can be one; otherwise it knows why not."""
        if point.detour is not None:
            return True
        if self.technique == "breakpoint" or self.sink is None or not point.armed:
            return False
        point.considered = True
        place = self.place(point)
        if place is None:
            point.why = Check("symbol-size", False, "it is in no file's code")
        else:
            point.why = first_failure(place) or self._optimize(point, place)
        self._owner.replant(point.address)
        return point.why is None

    def place(self, point: ProbePoint) -> JumpPlace | None:
        """A point as the rules see it."""
        found = self._locate(point.address)
        if found is None:
            return None
        code, function, bias = found
        probe = point.probes[0]
        points, jumps = self._owner.points, self._owner.arch.jumps

        def other(start: int, end: int) -> int | None:
            inside = range(start + bias, end + bias)
            return next((at for at in inside if at in points and points[at].armed), None)

        def near(address: int) -> bool:
            space = self._space or DetourSpace(self._owner.memory, [self._window, *self._beside])
            return jumps is not None and space.near(address + bias, jumps.reach)

        return JumpPlace(
            arch=self._owner.arch,
            address=point.address - bias,
            rules=probe.rules,
            mode=probe.mode or self._owner.mode,
            code=code,
            function=function,
            wants=self._wants(point),
            other=other,
            reach=near,
        )

    def _optimize(self, point: ProbePoint, place: JumpPlace) -> Check | None:
        """Build the detour and write the jump; what is in the way, None if it stands."""
        owner = self._owner
        jumps = owner.arch.jumps
        assert jumps is not None, "a place that has passed has jumps"
        shared = self._shared or self._open()
        space = self._space
        if shared is None or space is None:
            return Check("reach", False, self._broken)
        window = b"".join(raw for _, raw in place.window)
        if owner.overlay.original(point.address, len(window)) != window:
            return Check("copies", False, "the program has changed its code there")
        pc = owner.cpu.read_register(owner.arch.roles.pc)
        slot = point.slot is not None and 0 <= pc - point.slot < owner.arch.probes.kprobe_slot
        if slot or point.address < pc < point.address + len(window):
            point.considered = False
            return Check("other-probe", False, "the program stands in the window")
        counter = self._counter(point)
        recording = point.enabled()[0].recording
        if counter is None or recording is None:
            return Check("recorder", False, "no counter is left")
        at = shared.places.save + _COUNTERS + 8 * counter
        try:
            recorder = jumps.record((replace(recording, counter=at),), shared.places)
        except NotCompilableError as error:
            self._give_counter_back(point)
            return Check("recorder", False, str(error))
        bias = point.address - place.address
        rows = moved(place, bias)
        detour = build(space, jumps, point.address, window, recorder, rows)
        if detour is None:
            self._give_counter_back(point)
            return Check("reach", False, "no detour is left within reach")
        self._install(point, detour)
        return None

    def _install(self, point: ProbePoint, detour: Detour) -> None:
        owner = self._owner
        owner.memory.poke(detour.start, detour.code)
        if detour.slow is not None:
            action = partial(self._slow, point, detour)
            owner.cpu.traps.plant(detour.slow, action, detour.window)
        point.detour = detour
        at = bisect_right(self._starts, detour.start)
        self._starts.insert(at, detour.start)
        self._points[detour.start] = point
        for _, address in detour.displaced[1:]:
            self._inner[address] = point
        unit = len(owner.arch.breakpoint)
        owner.overlay.exchange(point.address, detour.jump, detour.original, unit)

    # -- shared memory --------------------------------------------------------------------

    def _open(self) -> _Shared | None:
        """Map what detours share; None where the host or the guest has no room for it."""
        owner, sink = self._owner, self.sink
        assert sink is not None, "asked for while something is traced"
        start, size = self._window
        room = -(-sink.capacity // PAGE) * PAGE
        guard = start + _RING + room
        if self._broken or PAGESIZE != PAGE or guard + 2 * PAGE > start + size:
            self._broken = self._broken or "the host's pages or the ring are too large"
            return None
        read_write = READ | WRITE
        memory = owner.memory
        try:
            memory.attach(start, PAGE, read_write, host=_address(sink.control))
            memory.attach(start + PAGE, PAGE, READ, host=self._time_page)
            memory.attach(start + _COUNTERS, _RING - _COUNTERS, read_write)
            memory.attach(start + _RING, room, read_write, host=_address(sink.buffer) + sink.start)
        except MappingError as error:
            self._broken = f"no memory for detours: {error}"
            return None
        sink.shown = True
        places = DetourPlaces(start, start + 2 * PAGE - 16, start + THREAD, start + _RING)
        mapping = memory.find(start + _COUNTERS)
        assert mapping is not None, "just mapped"
        save = memoryview(sink.control).cast("Q")
        save[THREAD // 8] = owner.thread() << 32
        counters = memory.words(mapping)
        self._shared = _Shared(places, guard, counters, save, start)
        left = (guard + PAGE, start + size - guard - PAGE)
        self._space = DetourSpace(memory, [*self._beside, left])
        return self._shared

    def _counter(self, point: ProbePoint) -> int | None:
        """A word that counts the hits of the point's probe."""
        if self._free_counters:
            number = self._free_counters.pop()
        elif len(self._counters) < _MOST:
            number = len(self._counters)
        else:
            return None
        self._counters[point] = number, point.enabled()[0]
        return number

    def _give_counter_back(self, point: ProbePoint) -> None:
        self._collect(point)
        self._free_counters.append(self._counters.pop(point)[0])

    def collect(self) -> None:
        """Bring the probes' counts of hits up to date."""
        for point in self._counters:
            self._collect(point)

    def _collect(self, point: ProbePoint) -> None:
        assert self._shared is not None, "counters are given out after it is"
        number, probe = self._counters[point]
        probe.hits += self._shared.counters[number]
        self._shared.counters[number] = 0

    def standing(self) -> list[ProbePoint]:
        """The points that are jumps now."""
        return list(self._counters)

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
        point.detour = None
        self._give_counter_back(point)
        for _, address in detour.displaced[1:]:
            self._inner.pop(address, None)
        self._zombies.append(detour)
        self.reap()

    def reap(self) -> None:
        """Free the detours that nobody uses any more, once the guest is not in them."""
        if not self._zombies or self._space is None:
            return
        owner = self._owner
        pc = owner.cpu.read_register(owner.arch.roles.pc)
        left: list[Detour] = []
        for detour in self._zombies:
            if detour.start <= pc < detour.end:
                left.append(detour)
                continue
            if detour.slow is not None:
                owner.cpu.traps.remove(detour.slow)
            at = bisect_right(self._starts, detour.start) - 1
            del self._starts[at]
            del self._points[detour.start]
            self._space.free(detour.start, detour.end - detour.start)
        self._zombies = left

    def make_room(self, addresses: list[int]) -> None:
        """Breakpoints are about to be planted: none may stand in a window."""
        for address in addresses:
            point = self._inner.get(address)
            if point is not None:
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

    def reconsider(self, point: ProbePoint) -> None:
        """What is wanted at a point has changed: it is a breakpoint until it is looked at."""
        self.unoptimize(point)
        point.considered, point.why = False, None
        if point.armed:
            if self.technique == "jump":
                self.consider(point)
            self._owner.replant(point.address)

    # -- while the guest runs -------------------------------------------------------------

    def holds(self, address: int) -> bool:
        """Whether an address lies where detours are."""
        return self._space is not None and self._space.holds(address)

    def at(self, address: int) -> tuple[ProbePoint, Detour] | None:
        """The point and the detour that an address lies in."""
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        start = self._starts[at]
        point = self._points[start]
        detours = [point.detour, *self._zombies]
        found = next((one for one in detours if one is not None and one.start == start), None)
        return (point, found) if found is not None and address < found.end else None

    def resume(self) -> None:
        """The guest is about to go on; in the middle of a window it goes on in the detour.

        A signal handler returns there, or a debugger has put it there.
        """
        if not self._inner and not self._zombies:
            return
        owner = self._owner
        pc = owner.cpu.read_register(owner.arch.roles.pc)
        point = self._inner.get(pc)
        if point is not None and point.detour is not None:
            target = point.detour.moved_pc(pc)
            assert target is not None, "the window's instructions are in its detour"
            owner.cpu.write_register(owner.arch.roles.pc, target)
            owner.cpu.expect(point.detour.window)
        self.reap()

    def stopped(self, stop: Stop, pc: int) -> Stop | None:
        """See to a stop inside a detour; what is left of it for the guest's kernel."""
        found, shared = self.at(pc), self._shared
        if found is None or shared is None:
            return stop
        point, detour = found
        owner = self._owner
        name = owner.arch.roles.pc
        if stop.kind is StopKind.FAULT and detour.recording(pc):
            if shared.guard <= stop.address < shared.guard + PAGE and self.sink is not None:
                self.sink.drain()
                self.sink.wipe()
                owner.cpu.write_register(name, detour.again)
            else:
                owner.cpu.write_register(name, self._slow(point, detour))
            return None
        if stop.trap is TrapKind.SINGLE_STEP and pc <= detour.displaced[0][0]:
            return None  # a program that steps itself sees its own instructions only
        original = detour.original_pc(pc)
        owner.cpu.write_register(name, original)
        if stop.kind is StopKind.TRAP and stop.address and stop.trap is not TrapKind.BREAKPOINT:
            return replace(stop, address=original)
        return stop

    def _slow(self, point: ProbePoint, detour: Detour) -> int:
        """Record a hit as at a breakpoint; where the detour goes on."""
        owner, shared, sink = self._owner, self._shared, self.sink
        assert shared is not None
        assert sink is not None
        for register, offset in detour.recorder.saved.items():
            owner.cpu.write_register(register, shared.save[offset // 8])
        layout = [probe.recording.layout for probe in point.probes if probe.recording]
        words = sum(one.words * 8 + _STRING * len(one.fields) for one in layout)
        sink.wipe(words)
        for probe in point.enabled():
            if probe.record is not None:
                probe.record(owner.thread())
        return detour.finish

    def name(self, address: int) -> str:
        """A place in a detour as a symbol."""
        found = self.at(address)
        if found is None:
            return "detour[free]"
        return f"detour[{found[0].address:#x}]+{address - found[1].start:#x}"


def _own(point: ProbePoint) -> bool:
    return all(isinstance(probe, ReturnSite) for probe in point.probes)


def _address(memory: mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))
