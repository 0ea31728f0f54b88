"""Handlers that run inside the emulator's callback, against the same ones outside of it."""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from archkit import JUMPING
from graphkit import compiled
from jumpkit import symbol
from sessionkit import loaded

from engine.arch import by_name
from engine.errors import EngineError
from engine.probes import breakpoint_actions
from engine.probes.kprobe import Kprobe
from engine.probes.regs import PtRegs
from engine.session.headless import bench

SOURCE = """
#include <stdio.h>
__attribute__((noinline)) long work(long n) { return n * 3 ^ 5; }
__attribute__((noinline)) long other(long n) { return n + 1000; }
int main(void)
{
    long sum = 0;
    for (long i = 0; i < 200; i++)
        sum += work(i) + (i & 3 ? 0 : other(i));
    printf("%ld\\n", sum);
    return 0;
}
"""

Make = Callable[[list[Any], int], Callable[[Kprobe, PtRegs], int | None]]


def looks(seen: list[Any], other: int) -> Callable[[Kprobe, PtRegs], int | None]:
    """Keeps what it sees."""

    def handler(probe: Kprobe, regs: PtRegs) -> None:
        seen.append((probe.hits, regs.ip, regs.sp, regs.argument(0), regs.read(regs.sp, 16)))

    return handler


def changes(seen: list[Any], other: int) -> Callable[[Kprobe, PtRegs], int | None]:
    """Gives the function another argument, now and then."""

    def handler(probe: Kprobe, regs: PtRegs) -> None:
        if probe.hits % 3 == 0:
            regs[seen[0]] = regs.argument(0) * 7

    return handler


def diverts(seen: list[Any], other: int) -> Callable[[Kprobe, PtRegs], int | None]:
    """Has another function called, now and then."""

    def handler(probe: Kprobe, regs: PtRegs) -> int | None:
        seen.append(regs.ip)
        if probe.hits % 5:
            return None
        regs.ip = other
        return 1

    return handler


def leads_away(seen: list[Any], other: int) -> Callable[[Kprobe, PtRegs], int | None]:
    """The same by setting pc alone."""

    def handler(probe: Kprobe, regs: PtRegs) -> None:
        if probe.hits % 2:
            regs.ip = other

    return handler


def run(program: Path, arch: str, make: Make, technique: str, offset: int) -> tuple[object, ...]:
    """All that a run shows."""
    with loaded(program, technique=technique) as guest:
        manager = guest.session.probes().manager
        name = guest.session.arch.probes.arguments[0]
        seen: list[Any] = [name]
        place = symbol(guest, "work")
        starts = guest.session.disassembler.decode(place, guest.session.memory.read(place, 32))
        first = Kprobe(addr=starts[offset].address, pre_handler=make(seen, symbol(guest, "other")))
        manager.register(first)
        behind = Kprobe(addr=first.addr, pre_handler=looks(seen, 0))
        manager.register(behind)
        guest.run()
        session = guest.session
        end = session.process.exit
        return guest.out, seen, session.cpu.blocks(), end and end.code, first.hits, behind.hits


@pytest.mark.parametrize("arch", JUMPING)
@pytest.mark.parametrize("make", [looks, changes, diverts, leads_away])
@pytest.mark.parametrize("technique", ["breakpoint", "jump"])
@pytest.mark.slow
def test_the_same_inside_and_outside(
    arch: str, make: Make, technique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the entry and at each instruction behind it, boosted, emulated or stepped."""
    program = compiled(tmp_path, SOURCE, arch, "-O1")
    for offset in range(3 if make is looks else 1):
        inside = run(program, arch, make, technique, offset)
        with monkeypatch.context() as patched:
            patched.setattr(breakpoint_actions, "self_contained", lambda handler: False)
            outside = run(program, arch, make, technique, offset)
        assert inside == outside
        assert inside[4] == 200 or make in (diverts, leads_away)


@pytest.mark.parametrize("arch", JUMPING)
def test_its_exception_is_the_callers(arch: str, tmp_path: Path) -> None:
    """The guest stands at the probe, as if the handler had run outside."""
    program = compiled(tmp_path, SOURCE, arch, "-O1")

    def fails(probe: Kprobe, regs: PtRegs) -> None:
        if probe.hits == 7:
            raise LookupError("the seventh")

    with loaded(program, technique="breakpoint") as guest:
        manager, place = guest.session.probes().manager, symbol(guest, "work")
        manager.register(Kprobe(addr=place, pre_handler=fails))
        with pytest.raises(LookupError, match="the seventh"):
            guest.run()
        assert manager.regs.ip == place
        guest.run()
        assert guest.out


class Unhashable:
    """A handler that is equal to others by its own rules."""

    def __init__(self) -> None:
        self.hits = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unhashable)

    def __call__(self, probe: Kprobe, regs: PtRegs) -> None:
        self.hits += 1


def test_any_callable_will_do(tmp_path: Path) -> None:
    program, handler = compiled(tmp_path, SOURCE, "x86_64", "-O1"), Unhashable()
    with loaded(program, technique="breakpoint") as guest:
        manager = guest.session.probes().manager
        manager.register(Kprobe(addr=symbol(guest, "work"), pre_handler=handler))
        guest.run()
    assert handler.hits == 200


@pytest.mark.parametrize("arch", JUMPING)
def test_the_guest_cannot_be_run_from_inside(arch: str, tmp_path: Path) -> None:
    """Where a handler has got at the engine all the same, in a way that cannot be foreseen."""
    program = compiled(tmp_path, SOURCE, arch, "-O1")
    held: dict[str, Any] = {}

    def steps(probe: Kprobe, regs: PtRegs) -> None:
        if "cpu" in held:
            held["cpu"].step()

    with loaded(program, technique="breakpoint") as guest:
        manager, cpu = guest.session.probes().manager, guest.session.cpu

        def hands_it_over(probe: Kprobe, regs: PtRegs) -> None:
            if probe.hits == 2:  # the other one has been looked through by then
                held["cpu"] = cpu

        manager.register(Kprobe(addr=symbol(guest, "work"), pre_handler=steps))
        manager.register(Kprobe(addr=symbol(guest, "other"), pre_handler=hands_it_over))
        with pytest.raises(EngineError, match="the guest runs"):
            guest.run()


def test_a_hit_takes_few_calls() -> None:
    """Between the emulator and an empty handler; a benchmark would count nanoseconds."""
    hits = 2000
    found = []
    for count in (hits, 2 * hits):
        program = bench.program(by_name("x86_64"), count)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bench"
            path.write_bytes(program)
            path.chmod(0o755)
            with loaded(path, technique="breakpoint") as guest:
                probe = Kprobe(symbol_name="work", pre_handler=lambda probe, regs: None)
                guest.session.probes().manager.register(probe)
                found.append(counted(guest.run))
                assert probe.hits == count
    assert (found[1] - found[0]) / hits <= 24


def counted(work: Callable[[], object]) -> int:
    """The number of calls that some work makes, those of functions in C too."""
    count = 0

    def look(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
