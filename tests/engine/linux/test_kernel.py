"""Moments at which the kernel looks at the guest's time: probes do not move them."""

from collections.abc import Callable
from pathlib import Path

import archkit
import pytest
from archkit import EVERY, JUMPING
from cguest import compiled
from goldenruns import GUESTS
from sessionkit import SAMPLES, loaded

from engine.linux.signals import SIG_IGN, SIGALRM, Action
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe
from engine.session import Session
from engine.session.guest.wanted_probes import Wanted
from engine.session.protocol.requests import ProbeRequest, TraceOptions
from engine.session.tracing.tracing import Tracing

Place = Callable[[Session], None]

_FUNCTIONS = ("fibonacci", "factorial")
_PERIOD = 370  # nanoseconds: 37 ticks


def recorded(session: Session) -> None:
    tracing = Tracing(session, TraceOptions(output="/dev/null"))
    tracing.definitions.place(ProbeRequest(entries=_FUNCTIONS, returns=_FUNCTIONS))


def served(make: Callable[[], Kprobe], *, everywhere: bool = False) -> Place:
    """Probes that the engine serves, on entries or on every instruction."""

    def place(session: Session) -> None:
        probing = session.probes()
        verdicts = probing.verdicts
        for name in _FUNCTIONS:
            for entry in verdicts.places.matching(name):
                places = verdicts.instructions(entry) if everywhere else [entry]
                probing.place_each([Wanted(at, make()) for at in places])

    return place


KINDS: dict[str, Place] = {
    "recorded": recorded,
    "pre": served(lambda: Kprobe(pre_handler=lambda probe, regs: 0)),
    "post": served(lambda: Kprobe(post_handler=lambda probe, regs, flags: None)),
    "pre-everywhere": served(lambda: Kprobe(pre_handler=lambda p, r: 0), everywhere=True),
    "post-everywhere": served(lambda: Kprobe(post_handler=lambda p, r, f: None), everywhere=True),
    "entry": served(lambda: Kretprobe(entry_handler=lambda instance, regs: 0)),
    "return": served(lambda: Kretprobe(handler=lambda instance, regs: None)),
}


def moments(arch: str, place: Place | None, **config: object) -> list[tuple[int, int, int]]:
    """(tick, time, pc) whenever a timer has run out, and where the run ended."""
    found: list[tuple[int, int, int]] = []
    with loaded(SAMPLES / arch / "recursion", **config) as guest:
        session = guest.session
        process, cpu = session.process, session.cpu
        process.hand.actions[SIGALRM] = Action(SIG_IGN)
        expired = process.timers.expired

        def listening() -> list[int]:
            numbers = expired()
            if numbers:
                found.append((cpu.blocks(), session.clock.peek(), session.thread.pc()))
            return numbers

        process.timers.expired = listening  # type: ignore[method-assign]
        process.timers.arm(0, 15, _PERIOD)
        if place is not None:
            place(session)
        guest.run()
        found.append((cpu.blocks(), session.clock.peek(), session.thread.pc()))
        if place is not None:
            points = session.probes().manager.placed()
            assert sum(probe.hits for point in points for probe in point.probes) > 20
    return found


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(arch, marks=[pytest.mark.slow] if number else [])
        for number, arch in enumerate(EVERY)
    ],
)
def plain(request: pytest.FixtureRequest) -> tuple[str, list[tuple[int, int, int]]]:
    return request.param, moments(request.param, None)


@pytest.mark.parametrize("kind", KINDS)
def test_probes_move_no_timer(plain: tuple[str, list[tuple[int, int, int]]], kind: str) -> None:
    arch, want = plain
    assert len(want) > 20
    assert moments(arch, KINDS[kind]) == want


@pytest.mark.parametrize("arch", JUMPING)
def test_jumps_move_no_timer(arch: str) -> None:
    plain = moments(arch, None)
    assert moments(arch, recorded, technique="jump") == plain


@pytest.mark.parametrize("arch", EVERY)
def test_probes_move_no_limit(arch: str) -> None:
    """The run ends in front of the same tick, wherever a hit stands in its block."""
    for most in (201, 202, 1000):
        plain = moments(arch, None, max_blocks=most)
        assert plain[-1][0] == most
        for kind in ("post-everywhere", "return"):
            assert moments(arch, KINDS[kind], max_blocks=most)[-1] == plain[-1]


MODES = ("files", "ipc", "mem", "signals", "smc", "time")


def trail(arch: str, mode: str, *, heard: bool) -> tuple[object, ...]:
    """All that a run shows, with somebody listening to its system calls or with nobody."""
    path = GUESTS / archkit.debian(arch) / "guests-static"
    if not path.exists():
        pytest.skip(f"{path} is not committed")
    return trail_of(path, mode, heard=heard)


def trail_of(path: Path, *args: str, heard: bool) -> tuple[object, ...]:
    """The same of any program."""
    with loaded(path, *args) as guest:
        session = guest.session
        session.cpu.count_blocks(True)
        if heard:
            session.hooks.syscall_enter = lambda number, name, arguments: None
        guest.run()
        end = session.end, session.clock.peek(), session.cpu.blocks(), session.kernel.exit
        turns = session.kernel.scheduler
        return *end, session.machine.syscall_count, turns.switches, turns.digest, guest.out


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("arch", archkit.COMPILED)
def test_quick_calls_differ_in_nothing(
    arch: str, mode: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("engine.linux.dispatch._OFTEN", 1)
    assert trail(arch, mode, heard=False) == trail(arch, mode, heard=True)


@pytest.mark.parametrize("args", [(), ("wild",)])
@pytest.mark.parametrize("arch", archkit.COMPILED)
def test_handlers_are_entered_and_left_alike(arch: str, args: tuple[str, ...]) -> None:
    """Nested, on another stack, with rounding of their own; a wild one returns to address 0."""
    program = compiled("handled", arch)
    trail = trail_of(program, *args, heard=False)
    assert trail == trail_of(program, *args, heard=True)
    assert trail[-1] or args
