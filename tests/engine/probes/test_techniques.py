"""The list of techniques is the only place that knows which there are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from probekit import CODE, NEAR, ProbeGuest

from engine.cpu.base import Stop
from engine.cpu.ram import PAGE
from engine.probes import techniques
from engine.probes.breakpoint_machine import BreakpointMachine
from engine.probes.detourroom import DetourRoom, RowMemory
from engine.probes.engine_window import EngineWindow
from engine.probes.kprobe import Kprobe
from engine.probes.placement_rules import Check
from engine.probes.point import ProbePoint
from engine.probes.technique import Buffers, Refused, Technique, TechniqueHost
from engine.probes.technique_kind import TechniqueKind
from engine.probes.techniques import TECHNIQUES, chosen, technique_names

WINDOW = 64 * PAGE
NOP5 = bytes.fromhex("0f1f440000")
LOOP = NOP5 + bytes.fromhex("ffcf 75f7 cc")  # dec edi; jnz back; int3
CALLS = 40


@dataclass(frozen=True)
class Stub:
    """A trap of its own, and a jump back."""

    bypass: int
    window: int
    trap: int
    code: bytes
    kind: str = "toy"


class Toy:
    """Turns a five-byte nop into a jump to a trap. Everything a technique has to have is here."""

    told = ""
    records = False
    ready = True

    def __init__(self, host: TechniqueHost) -> None:
        assert host.room is not None
        page = EngineWindow(host.target.memory, *host.room.window).page()
        assert page is not None
        self.host, self.page, self.code = host, page, self
        self.point: ProbePoint | None = None
        self.seen = 0

    def promising(self, point: ProbePoint) -> bool:
        return True

    def wants_hits(self, point: ProbePoint) -> bool:
        return False

    def take(self, point: ProbePoint) -> Refused | None:
        if point.plan.raw != NOP5 or self.point is not None:
            return Refused(Check("toy", False, "no nop of five bytes stands there"))
        target, end = self.host.target, point.address + len(NOP5)
        back = (end - self.page - 6).to_bytes(4, "little", signed=True)
        code = target.arch.breakpoint + b"\xe9" + back
        target.memory.poke(self.page, code)
        point.state = point.state.replaced(Stub(self.page + 1, end, self.page, code))
        away = (self.page - end).to_bytes(4, "little", signed=True)
        target.overlay.exchange(point.address, b"\xe9" + away, NOP5, 1)
        self.point = point
        return None

    def fall_back(self, point: ProbePoint, *, gone: bool) -> None:
        target = self.host.target
        if not gone:
            target.overlay.exchange(point.address, self.host.planted(point), NOP5, 1)
        point.state = point.state.fall_back()
        target.cpu.traps.remove(self.page)
        self.point = None

    def displacing(self, address: int) -> ProbePoint | None:
        point = self.point
        inside = point is not None and point.address < address < point.address + len(NOP5)
        return point if inside else None

    def freed(self, address: int) -> Sequence[ProbePoint]:
        return ()

    def vacated(self, address: int) -> None:
        pass

    def follow(self, other: Technique) -> None:
        pass

    def hit(self, point: ProbePoint) -> None:
        self.seen += 1

    def trapped(self, address: int) -> ProbePoint | bool:
        return (self.point or True) if address == self.page else False

    def holds(self, address: int) -> bool:
        return self.page <= address < self.page + PAGE

    def displaces(self) -> bool:
        return False

    def stopped(self, stop: Stop, pc: int) -> Stop | None:
        return stop

    def resume(self) -> None:
        pass

    def enter(self) -> None:
        pass

    def show_thread(self) -> None:
        pass

    def original_pc(self, address: int) -> int | None:
        return self.point.address if self.point is not None and self.holds(address) else None

    def name(self, address: int) -> str:
        return f"toy+{address - self.page:#x}"

    def attach(self, sink: RowMemory, comm: Callable[[], bytes]) -> None:
        pass

    def collect(self) -> None:
        pass

    def buffers(self) -> Buffers:
        return Buffers(int(self.point is not None))


class ToyMachine(BreakpointMachine):
    """To be told from others."""


def _build(host: TechniqueHost) -> Technique | None:
    return Toy(host)


TOY = TechniqueKind("toy", "for tests", "toy", usual=True, machine=ToyMachine, build=_build)


def guest_with(technique: str) -> ProbeGuest:
    guest = ProbeGuest(
        "x86_64",
        LOOP,
        near=WINDOW,
        room=DetourRoom((NEAR + 32 * PAGE, 32 * PAGE), (), lambda address: None),
        technique=technique,
    )
    guest["rdi"] = CALLS
    return guest


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line."""
    monkeypatch.setattr(techniques, "TECHNIQUES", (*TECHNIQUES, TOY))


@pytest.mark.parametrize("handler", [False, True])
def test_a_technique_that_is_listed_works(listed: None, handler: bool) -> None:
    guest = guest_with("toy")
    manager = guest.manager
    before = guest.memory.read(CODE, 5)
    seen: list[int] = []
    probe = Kprobe(addr=CODE, record=lambda thread: None)
    if handler:
        probe.pre_handler = lambda probe, regs: seen.append(regs.ip)
    manager.register(probe)
    point = manager.points[CODE]
    assert point.technique == "toy", point.why
    assert isinstance(manager.machine(point), ToyMachine)
    assert guest.memory.read(CODE, 1) == b"\xe9"
    (toy,) = manager.techniques.replacing
    assert isinstance(toy, Toy)
    assert manager.original_pc(toy.page) == CODE
    assert manager.name(toy.page + 1) == "toy+0x1"
    assert manager.code.inside(toy.page)
    assert manager.techniques.buffers().standing == 1
    assert guest.run_to_trap() == CODE + len(LOOP) - 1
    assert probe.hits == CALLS
    assert toy.seen == len(seen) == (CALLS if handler else 0)
    assert set(seen) <= {CODE}
    manager.unregister(probe)
    assert guest.memory.read(CODE, 5) == before
    assert not guest.notices


def test_it_replaces_a_breakpoint_that_is_hit_often(listed: None) -> None:
    """In auto, where the techniques in front of it in the list have nothing to offer."""
    guest = guest_with("auto")
    guest.manager.techniques.after = 10
    probe = Kprobe(addr=CODE, record=lambda thread: None)
    guest.manager.register(probe)
    point = guest.manager.points[CODE]
    assert point.technique == "breakpoint"
    guest.run_to_trap()
    assert point.technique == "toy"
    assert probe.hits == CALLS


def test_it_gives_way_and_says_why(listed: None) -> None:
    guest = guest_with("toy")
    guest.manager.register(Kprobe(addr=CODE))
    guest.manager.register(Kprobe(addr=CODE + 5, name="behind"))
    assert [point.technique for point in guest.manager.placed()] == ["toy", "breakpoint"]
    assert guest.notices == ["behind: stays a breakpoint: no nop of five bytes stands there"]


def test_its_name_can_be_chosen(listed: None) -> None:
    assert technique_names()[-1] == "toy"
    assert chosen("toy").at_once


def test_one_that_is_not_listed_is_nowhere() -> None:
    assert "toy" not in technique_names()
    guest = guest_with("toy")
    probe = Kprobe(addr=CODE, record=lambda thread: None)
    guest.manager.register(probe)
    guest.manager.techniques.after = 1
    guest.run_to_trap()
    assert guest.manager.points[CODE].technique == "breakpoint"
    assert guest.manager.techniques.replacing == ()
    assert probe.hits == CALLS


def test_every_technique_begins_as_the_first_of_the_list() -> None:
    for name in technique_names():
        assert chosen(name).kinds[0] is TECHNIQUES[0]
        assert chosen(name).at_once is (name in [kind.name for kind in TECHNIQUES[1:]])


@pytest.mark.parametrize("technique", technique_names())
def test_where_there_is_no_room_all_are_breakpoints(technique: str) -> None:
    guest = ProbeGuest("x86_64", LOOP, technique=technique)
    guest["rdi"] = CALLS
    probe = Kprobe(addr=CODE, record=lambda thread: None)
    guest.manager.register(probe)
    guest.run_to_trap()
    assert (probe.hits, guest.manager.points[CODE].technique) == (CALLS, "breakpoint")
    assert any("cannot be had in this guest" in text for text in guest.notices) == (
        chosen(technique).at_once
    )
