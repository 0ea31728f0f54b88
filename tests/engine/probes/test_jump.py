"""Jump probes: the same events, times, output and end as with breakpoints, whatever happens."""

import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import archkit
import pytest
from archkit import JUMPING
from compiled import build
from jumpkit import NEVER, after, detour_of, jumps_of
from sessionkit import SAMPLES, Guest, loaded

from engine.errors import ProbeRejectedError
from engine.linux.ending import Exit
from engine.probes import arbitration
from engine.probes.arbitration import Arbitration
from engine.probes.jump import JumpTechnique
from engine.probes.kprobe import Kprobe
from engine.probes.point import ProbePoint
from engine.session.tracing import tracing as tracing_module
from engine.session.tracing.tracing import Tracing
from engine.trace.staging import SMALLEST, Staging

TARGETS = ("sort", "words", "recursion", "structs", "jumps", "floats", "lines", "leak", "crash")
ARGUMENTS = {"words": ("the quick brown fox jumps",), "lines": ("o",)}

Prepare = Callable[[Tracing], object]


@contextmanager
def opened(arch: str, name: str, technique: str, hits: int = 1) -> Iterator[Guest]:
    words = ARGUMENTS.get(name, ())
    with loaded(SAMPLES / arch / name, *words, technique=technique) as guest:
        after(guest, hits)
        yield guest


def outcome(exit: Exit | None) -> tuple[object, ...]:
    assert exit is not None
    crash = exit.crash
    return exit.code, exit.signal, (crash.pc, crash.address, crash.why) if crash else None


def result(
    arch: str, name: str, technique: str, prepare: Prepare, hits: int = 1
) -> tuple[tuple[object, ...], list[ProbePoint]]:
    """Everything that a run shows: trace, output, end, clock, hits; and its points."""
    with opened(arch, name, technique, hits) as guest:
        tracing = guest.tracing()
        prepare(tracing)
        guest.run(tracing)
        manager = guest.session.probes().manager
        points = manager.placed()
        counts = {point.address: [probe.hits for probe in point.probes] for point in points}
        time = guest.session.cpu.blocks()
        return (guest.text, guest.out, outcome(guest.session.process.exit), time, counts), points


def alike(arch: str, name: str, prepare: Prepare, technique: str = "auto") -> list[ProbePoint]:
    wanted, _ = result(arch, name, "breakpoint", prepare, NEVER)
    recorded, _ = result(arch, name, "breakpoint", prepare)
    assert recorded == wanted
    got, points = result(arch, name, technique, prepare)
    assert got == wanted
    return points


@pytest.mark.parametrize("arch", JUMPING)
@pytest.mark.parametrize("name", TARGETS)
def test_events_are_those_of_breakpoints(arch: str, name: str) -> None:
    points = alike(arch, name, lambda tracing: tracing.definitions.on_entries("*"))
    assert any(point.technique == "jump" for point in points)


@pytest.mark.parametrize("arch", JUMPING)
@pytest.mark.parametrize("name", ["sort", "crash", "jumps"])
def test_every_instruction_at_once(arch: str, name: str) -> None:
    """Windows and probes that are in each other's way; faults at their original addresses."""
    points = alike(arch, name, lambda tracing: tracing.definitions.on_bodies("*"), "jump")
    assert any(point.technique == "jump" for point in points)
    assert any(point.why and point.why.rule == "other-probe" for point in points) is (
        arch == "x86_64"
    )


@pytest.mark.parametrize("arch", JUMPING)
def test_what_cannot_be_compiled_stays_a_breakpoint(arch: str) -> None:
    line = f"p print c={archkit.argument(arch)}:symstr"
    (point,) = alike(arch, "words", lambda tracing: tracing.definitions.define(line))
    assert point.technique == "breakpoint"
    assert point.why is not None
    assert point.why.rule == "recorder"


@pytest.mark.parametrize("arch", JUMPING)
def test_a_full_ring_loses_nothing(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing_module, "Staging", lambda take, *_: Staging(take, SMALLEST))
    first = archkit.argument(arch)
    many = " ".join(f"x{number}={first}" for number in range(40))
    points = alike(
        arch, "recursion", lambda tracing: tracing.definitions.define(f"p fibonacci {many}")
    )
    (point,) = points
    assert point.technique == "jump", point.why
    assert point.probes[0].hits * 43 * 8 > SMALLEST


@pytest.mark.parametrize("arch", JUMPING)
@pytest.mark.parametrize("size", [4087, 4088, 7000])
def test_a_string_that_is_too_long_for_the_guest(arch: str, size: int) -> None:
    """Recorded by the engine from inside the detour; as long as a breakpoint's."""

    def prepare(tracing: Tracing) -> None:
        session = tracing.session
        page = session.cpu.read_register(session.arch.roles.sp) - 0x20000 & -0x1000
        session.memory.poke(page, b"z" * size)
        line = f"p print t=+0(\\{page:#x}):string u=+0({archkit.argument(arch)}):string"
        tracing.definitions.define(line)

    points = alike(arch, "words", prepare)
    assert [point.technique for point in points] == ["jump"]


@pytest.mark.parametrize("arch", JUMPING)
@pytest.mark.parametrize("name", ["sort", "words"])
@pytest.mark.parametrize("seed", range(2))
def test_arming_and_disarming_at_random_points(arch: str, name: str, seed: int) -> None:
    with opened(arch, name, "breakpoint") as guest:
        guest.run()
        wanted = guest.out, outcome(guest.session.process.exit)
    rng = random.Random(f"{arch} {name} {seed}")
    with opened(arch, name, "jump") as guest:
        tracing = guest.tracing()
        tracing.definitions.on_bodies("*")
        session = guest.session
        manager = session.probes().manager
        probes = [probe for point in manager.placed() for probe in point.probes]
        manager.unregister_all(probes)
        tracing.start()
        seen = Seen(jumps_of(guest))
        armed: list[Kprobe] = []
        for _ in range(120):
            for _ in range(rng.randrange(1, 30)):
                if session.process.exit is None:
                    session.kernel.step()
            seen.look()
            if armed and rng.random() < 0.4:
                probe = armed.pop(rng.randrange(len(armed)))
                manager.unregister(probe)
                continue
            probe = rng.choice(probes)
            if probe in armed:
                rng.choice((manager.disable, manager.enable))(probe)
                continue
            try:
                manager.register(probe)
            except ProbeRejectedError:
                continue
            armed.append(probe)
        guest.run()
        tracing.finish()
        assert (guest.out, outcome(guest.session.process.exit)) == wanted
        assert seen.most > 3


class Seen:
    """How many jumps stood at one time."""

    def __init__(self, jumps: JumpTechnique) -> None:
        self._jumps = jumps
        self.most = 0

    def look(self) -> None:
        self.most = max(self.most, len(self._jumps.standing()))


def test_a_second_probe_in_the_window() -> None:
    """The first gives way, and comes back when the second is gone."""
    with opened("x86_64", "words", "jump") as guest:
        tracing = guest.tracing()
        tracing.definitions.define("p print")
        manager = guest.session.probes().manager
        (point,) = manager.placed()
        inner = detour_of(point).displaced[1][1]
        other = Kprobe(addr=inner, record=lambda thread: None)
        manager.register(other)
        assert point.technique == "breakpoint"
        assert point.why is not None
        assert point.why.rule == "other-probe"
        manager.unregister(other)
        assert point.technique == "jump"
        point.probes[0].post_handler = lambda probe, regs, flags: None
        manager.refresh(point)
        assert point.technique == "breakpoint"
        assert point.why is not None
        assert point.why.rule == "post-handler"
        guest.run(tracing)


def test_a_detour_is_freed_only_once_it_is_left() -> None:
    """The 'zombie': its probe is deleted while the program runs in it."""
    with opened("x86_64", "words", "jump") as guest:
        tracing = guest.tracing()
        done = tracing.definitions.define("p print")
        assert done is not None
        session = guest.session
        manager = session.probes().manager
        (point,) = manager.placed()
        detour = detour_of(point)
        tracing.start()
        while not detour.start < manager.regs.ip < detour.end:
            session.kernel.step()
        assert session.space.hooks.hold()
        assert session.space.hooks.original_pc(manager.regs.ip) == point.address
        tracing.definitions.remove(done)
        assert jumps_of(guest).code.map.at(manager.regs.ip) is not None
        assert session.memory.read(detour.start, len(detour.code)) == detour.code
        while session.space.hooks.hold():
            session.kernel.step()
        assert manager.regs.ip == detour.window
        assert jumps_of(guest).code.map.at(detour.start) is None
        guest.run()
        with opened("x86_64", "words", "breakpoint") as plain:
            plain.run()
        assert guest.out == plain.out


def test_the_program_scribbles_over_the_ring() -> None:
    """Rows and the cursor are the program's to spoil; the engine and the program go on."""
    for damage in (b"\xff" * 8, (3).to_bytes(8, "little"), (1 << 19).to_bytes(8, "little")):
        with opened("x86_64", "sort", "jump") as guest:
            tracing = guest.tracing()
            tracing.definitions.on_entries("*")
            tracing.start()
            session = guest.session
            for _ in range(4000):
                session.kernel.step()
            start = session.arch.plan.detour[0]
            session.memory.poke(start + 64, damage)
            session.memory.poke(start + (1 << 20), b"\x5a" * 4096)
            reports = guest.run()
            tracing.finish()
            assert reports.exit_code == 0


@pytest.mark.parametrize("arch", JUMPING)
def test_a_place_in_a_window_goes_on_in_the_detour(arch: str) -> None:
    """As a signal handler's return does that was interrupted there."""
    with opened(arch, "words", "jump") as guest:
        tracing = guest.tracing()
        tracing.definitions.define("p print")
        (point,) = guest.session.probes().manager.placed()
        detour = detour_of(point)
        manager = guest.session.probes().manager
        for start, address in detour.displaced[1:]:
            manager.regs.ip = address
            assert guest.session.space.hooks.hold()
            assert manager.regs.ip == start
        assert len(detour.displaced) == (2 if arch == "x86_64" else 1)


@pytest.mark.parametrize("arch", JUMPING)
def test_a_large_function_is_looked_at_after_more_hits(
    arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """About as many as it has bytes: to decode it takes so long."""
    seen = []
    consider = Arbitration.consider

    def counting(self: Arbitration, point: ProbePoint) -> bool:
        seen.append(sum(probe.hits for probe in point.probes))
        return consider(self, point)

    monkeypatch.setattr(Arbitration, "consider", counting)
    monkeypatch.setattr(arbitration, "AFTER", 4)
    with opened(arch, "recursion", "auto", hits=4) as guest:
        tracing = guest.tracing()
        tracing.definitions.define("p fibonacci")
        manager = guest.session.probes().manager
        (point,) = manager.placed()
        function = manager.code_map.function(point.address)
        assert function is not None
        guest.run(tracing)
        assert point.replacement is not None, point.why
    # The hit that comes to the engine is not counted yet.
    assert seen == [function[1] - function[0] - 1]


# Goes OFFSET bytes into work() again and again, in a way that nothing in the file tells.
INTO_THE_MIDDLE = r"""
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>
long work(long x);
__asm__(".text\n.globl work\n.type work,@function\n"
        "work: mov %rdi,%rax\n add $3,%rax\n lea 5(%rax,%rax),%rax\n ret\n.size work,.-work\n");
static volatile long way, middle;
static void redirect(int number, siginfo_t *info, void *context) {
    greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    regs[REG_RSP] -= 8;
    *(long *)regs[REG_RSP] = regs[REG_RIP];
    regs[REG_RIP] = middle;
}
__attribute__((noinline)) static long into(long a) {
    long out = a, target = middle;
    switch (way) {
    case 'c': __asm__ volatile("call *%2" : "+a"(out) : "D"(a), "r"(target) : "cc"); break;
    case 'j': __asm__ volatile("lea 1f(%%rip),%%rdx; push %%rdx; jmp *%2; 1:"
                               : "+a"(out) : "D"(a), "r"(target) : "cc", "rdx"); break;
    case 'r': __asm__ volatile("lea 1f(%%rip),%%rdx; push %%rdx; push %2; ret; 1:"
                               : "+a"(out) : "D"(a), "r"(target) : "cc", "rdx"); break;
    case 'm': __asm__ volatile("call *%2" : "+a"(out) : "D"(a), "m"(middle) : "cc"); break;
    case 's': out = raise(SIGUSR1); break;
    }
    return out;
}
int main(int argc, char **argv) {
    struct sigaction action = {.sa_sigaction = redirect, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, 0);
    way = *argv[1], middle = (long)work + atol(argv[2]);
    unsigned long sum = 0;
    for (int i = 0; i < 40; i++)
        sum = sum * 31 + work(i);
    for (int i = 0; i < 10; i++)
        sum = (sum * 31 + into(i)) * 31 + work(sum);
    printf("%lx\n", sum);
    return 0;
}
"""


@pytest.fixture(scope="module")
def middle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("middle")
    return build(folder, "middle", INTO_THE_MIDDLE, "-O1", "-static", "-fcf-protection=none")


@pytest.mark.parametrize(
    "others", [(), pytest.param(("r",), marks=pytest.mark.slow), ("r", "bodies")]
)
@pytest.mark.parametrize("technique", [pytest.param("auto", marks=pytest.mark.slow), "jump"])
@pytest.mark.parametrize("way", ["c3", "c1", "c4", "j3", "r3", "m3"])
def test_a_computed_jump_into_the_window(
    middle: Path, way: str, technique: str, others: tuple[str, ...]
) -> None:
    """It is seen when it comes; the point is a breakpoint from then on."""
    runs = []
    for kind in ("breakpoint", technique):
        with loaded(middle, way[0], way[1], technique=kind) as guest:
            after(guest, 5)
            tracing = guest.tracing()
            tracing.definitions.define("p work")
            if "r" in others:
                tracing.definitions.define("r work")
            if "bodies" in others:  # the jumps are carried out by the machinery
                tracing.definitions.on_bodies("into")
            guest.run(tracing)
            session = guest.session
            runs.append((guest.out, guest.text, session.cpu.blocks(), session.process.exit))
            point = session.probes().manager.points[session.probes().where("work") or 0]
            assert point.technique == "breakpoint"
            if kind != "breakpoint":
                assert point.why is not None
                assert point.why.rule == "computed-entry"
                told = session.probes().notices
                assert len([text for text in told if "could not be foreseen" in text]) == 1
    assert runs[0] == runs[1]
    assert runs[0][0] == subprocess.check_output([middle, *way], text=True)


def test_a_signal_handler_that_returns_into_the_window(middle: Path) -> None:
    """Where the guest enters by way of its kernel it goes on in the detour."""
    with loaded(middle, "s", "3", technique="jump") as guest:
        tracing = guest.tracing()
        tracing.definitions.define("p work")
        guest.run(tracing)
        (point,) = guest.session.probes().manager.placed()
        assert point.technique == "jump"
        assert guest.out == subprocess.check_output([middle, "s", "3"], text=True)
