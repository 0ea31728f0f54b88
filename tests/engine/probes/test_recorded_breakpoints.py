"""Breakpoints that lead to recording code show what those show at which Python records."""

from pathlib import Path

import archkit
import pytest
from archkit import JUMPING
from controlkit import held
from graphkit import compiled
from jumpkit import NEVER, after, symbol
from sessionkit import SAMPLES, Guest, loaded

from engine.probes.kprobe import Kprobe
from engine.probes.regs import PtRegs
from engine.session.protocol import commands as cmd
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.tracing import Tracing

LOOP = """
volatile long sink;
__attribute__((noinline)) long work(long n) { return sink += n ^ 3; }
__attribute__((noinline)) void turn(long n) { sink += n; }
int main(void)
{
    for (long i = 0; i < 600; i++) {
        if (i % 100 == 0)
            turn(i / 100);
        work(i);
    }
    return 0;
}
"""
FLOATS = """
#include <stdlib.h>
__attribute__((noinline)) double mix(double a, double b, float c)
{ return a * b + c / (a + 1) - (double)(int)b; }
int main(void) { double x = 1; for (int i = 0; i < 50; i++) x = mix(x, i, 2.5f); return x > 0; }
"""


def led(guest: Guest) -> int:
    """Breakpoints that lead to recording code."""
    recorded = guest.session.probes().manager.recorded
    assert recorded is not None
    return len(recorded)


def traced(
    program: Path, hits: int, *lines: str, everywhere: bool = False, args: tuple[str, ...] = ()
) -> tuple[tuple[object, ...], int, int]:
    """All that a run shows; breakpoints that lead to code, and how many there are."""
    rows: list[bytes] = []
    with loaded(program, *args, technique="breakpoint") as guest:
        after(guest, hits)
        tracing = Tracing(guest.session, TraceOptions(), consumer=rows.append)
        for line in lines:
            tracing.definitions.define(line)
        if everywhere:
            tracing.definitions.on_bodies("*")
        exit = guest.run(tracing).exit_code
        manager = guest.session.probes().manager
        placed = manager.placed()
        assert {point.technique for point in placed} == {"breakpoint"}
        counts = {point.address: [probe.hits for probe in point.probes] for point in placed}
        shown = b"".join(rows), guest.out, exit, guest.session.cpu.blocks(), counts
        return shown, led(guest), len(placed)


@pytest.mark.parametrize("arch", JUMPING)
@pytest.mark.parametrize("name", ["sort", "structs", "jumps"])
def test_every_instruction_of_a_program(arch: str, name: str) -> None:
    path = SAMPLES / arch / name
    wanted, none, _ = traced(path, NEVER, everywhere=True)
    assert not none
    shown, some, placed = traced(path, 1, everywhere=True)
    assert shown == wanted
    assert some > placed / 3  # the others were not hit, for the most part


@pytest.mark.parametrize("arch", JUMPING)
def test_instructions_that_linux_steps(arch: str, tmp_path: Path) -> None:
    """Vector arithmetic: no boosted slot of Linux's, and no reason for a second trap."""
    program = compiled(tmp_path, FLOATS, arch, "-O2")
    with loaded(program, technique="breakpoint") as guest:
        where = symbol(guest, "mix")
        found = guest.session.probes().manager.code_map.function(where)
        assert found is not None
        insns = guest.session.disassembler.decode(where, guest.session.memory.read(*span(found)))
    lines = [f"p mix+{insn.address - where}" for insn in insns]
    wanted, _, _ = traced(program, NEVER, *lines)
    shown, some, placed = traced(program, 1, *lines)
    assert shown == wanted
    assert placed == len(insns)
    assert placed - 1 <= some  # the emulator has to look at cvtsi2sd first


def span(found: tuple[int, int]) -> tuple[int, int]:
    """(start, size) of a function."""
    return found[0], found[1] - found[0]


@pytest.mark.parametrize("arch", JUMPING)
def test_it_takes_as_many_hits_as_a_jump_does(arch: str, tmp_path: Path) -> None:
    program = compiled(tmp_path, LOOP, arch, "-O1")
    line = f"p work n={archkit.argument(arch)}"
    wanted, none, _ = traced(program, 601, line)
    assert not none
    assert traced(program, 600, line) == (wanted, 1, 1)


class Changes:
    """Does something else to the probes at each call of `turn`."""

    def __init__(self, guest: Guest, tracing: Tracing, argument: str) -> None:
        self.manager, self.tracing = guest.session.probes().manager, tracing
        self.guest, self.argument = guest, argument
        self.place = symbol(guest, "work")
        self.seen: list[int] = []
        turn = Kprobe(addr=symbol(guest, "turn"), pre_handler=self.change)
        self.manager.register(turn)

    def change(self, probe: Kprobe, regs: PtRegs) -> None:
        self.seen.append(led(self.guest))
        manager, turn = self.manager, regs.argument(0)
        newest = manager.points[self.place].probes[0]
        if turn == 1:
            self.tracing.set_filter("kprobes", "one", "n > 150")
        elif turn == 2:
            self.tracing.definitions.define(f"p:two work m={self.argument}:u8")
        elif turn == 3:
            manager.disable(newest)
        elif turn == 4:
            manager.enable(newest)
        elif turn == 5:
            self.tracing.set_filter("kprobes", "one", "0")


@pytest.mark.parametrize("arch", JUMPING)
def test_what_is_wanted_changes_under_way(arch: str, tmp_path: Path) -> None:
    """A filter, a probe that comes, is disabled and enabled: each makes the code anew."""
    program = compiled(tmp_path, LOOP, arch, "-O1")
    argument = archkit.argument(arch)
    runs = []
    for hits in (NEVER, 1):
        rows: list[bytes] = []
        with loaded(program, technique="breakpoint") as guest:
            after(guest, hits)
            tracing = Tracing(guest.session, TraceOptions(), consumer=rows.append)
            tracing.definitions.define(f"p:one work n={argument}")
            changes = Changes(guest, tracing, argument)
            guest.run(tracing)
            placed = changes.manager.placed()
            counts = {point.address: [one.hits for one in point.probes] for point in placed}
            runs.append((b"".join(rows), guest.session.cpu.blocks(), counts))
            assert changes.seen == ([0] * 6 if hits == NEVER else [0, *[1] * 5])
            kept = guest.session.probes().manager.techniques.buffers()
            assert not kept.waits
    assert runs[0] == runs[1]


@pytest.mark.parametrize("arch", JUMPING)
def test_a_stop_at_the_same_place(arch: str, tmp_path: Path) -> None:
    """The code goes while a debugger stops the guest there, and comes back."""
    program = str(compiled(tmp_path, LOOP, arch, "-O1"))
    shown = []
    for hits in (NEVER, 1):
        with held(program, technique="breakpoint") as guest:
            manager = guest.control.session.probes().manager
            manager.techniques.after = hits
            guest.do(cmd.Define(f"p:e/work work n={archkit.argument(arch)}"))
            guest.do(cmd.Define("p:e/turn turn", stops=True), cmd.Continue(), cmd.Continue())
            assert manager.recorded is not None
            assert len(manager.recorded) == (hits == 1)
            guest.do(cmd.Define("p:e/stop work", stops=True), cmd.Continue())
            assert guest.registers()[guest.control.session.arch.roles.pc] == guest.address("work")
            assert not len(manager.recorded)
            guest.do(cmd.StepInsn(), cmd.Delete((2, 3)), cmd.Continue())
            shown.append([(one.name, one.time, one.values) for one in guest.events])
            assert len(manager.recorded) == (hits == 1)
    assert shown[0] == shown[1]
    assert len([name for name, *_ in shown[0] if name == "work"]) == 600
