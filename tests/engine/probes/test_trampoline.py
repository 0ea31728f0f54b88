"""What a call returns to: the trampoline, its phases, and those that come to it otherwise."""

import pytest
from probekit import CODE, SP, ProbeGuest
from returnkit import RECURSION, TAIL, F, Seen, each, either, guest_of, registered

from engine.arch.base import TrapKind
from engine.arch.plan import Mode
from engine.cpu.base import StopKind
from engine.probes.breakpoint_machine import BreakpointMachine
from engine.probes.hit_machine import Phase, PhaseWatch
from engine.probes.trampoline import NAME


@each
@either
def test_phases_do_what_the_fast_executor_does(arch: str, mode: Mode) -> None:
    outcomes = []
    for stepped in (False, True):
        guest = guest_of(arch, RECURSION[arch], mode, n=4)
        guest.cpu.count_blocks(True)
        probe = registered(guest)
        seen = Seen(guest, probe)
        texts: list[str] = []
        if stepped:
            walk(guest, texts)
        else:
            guest.run_to_trap()
        outcomes.append((seen.rows, guest.registers(), guest.memory.read(SP - 256, 512)))
        assert (probe.hits, probe.active) == (5, 0)
        if stepped:
            what = NAME if mode is Mode.KERNEL else "wait for the return"
            assert sum(what in text for text in texts) >= 5
    assert outcomes[0] == outcomes[1]


def walk(guest: ProbeGuest, texts: list[str]) -> None:
    """Run to the trap with every hit carried out phase by phase."""
    points = guest.manager.points
    while True:
        point = points.get(guest.pc)
        if point is not None and point.armed:
            texts += [
                f"{row.phase.value}: {row.text}"
                for row in PhaseWatch(BreakpointMachine(guest.manager.hits)).run()
            ]
            continue
        guest.memory.sync()
        stop = guest.cpu.step()
        if stop is not None and stop.kind is StopKind.TRAP:
            return


@each
def test_the_trampoline(arch: str) -> None:
    """In kernel mode the return address is replaced; who asks is told the real one."""
    guest = guest_of(arch, TAIL[arch], Mode.KERNEL)
    manager = guest.manager
    registered(guest)
    guest.memory.sync()
    while guest.pc != F:
        assert guest.cpu.step() is None
    phases = {row.phase: row for row in PhaseWatch(BreakpointMachine(manager.hits)).run()}
    assert "replaced" in phases[Phase.PRE].text
    link = guest.arch.roles.link
    start, end = manager.returns.trampoline or (0, 0)
    slot = guest.sp
    read = guest[link] if link else int.from_bytes(guest.memory.read(slot, 8), "little")
    assert start == read < end
    real = manager.resolve_return(read, slot)
    assert real is not None
    assert CODE < real < F
    assert manager.resolve_return(read, slot + 64) is None
    assert manager.resolve_return(real, slot) is None
    assert manager.resolve_return(read, slot, 1) is None  # one call only
    assert manager.name(start) == NAME
    assert manager.original_pc(start) == real
    while guest.pc != start:
        assert guest.cpu.step() is None
    assert manager.busy()
    rows = PhaseWatch(BreakpointMachine(manager.hits)).run()
    assert [row.phase for row in rows][-4:] == [
        Phase.PRE,
        Phase.EMULATED,
        Phase.POST,
        Phase.RESUME,
    ]
    assert guest.pc == real
    assert not manager.busy()


@each
def test_a_return_to_the_trampoline_that_nobody_made_is_illegal(arch: str) -> None:
    guest = guest_of(arch, TAIL[arch], Mode.KERNEL)
    registered(guest)
    guest.pc = (guest.manager.returns.trampoline or (0, 0))[0]
    stop = guest.run()
    assert (stop.kind, stop.trap) == (StopKind.TRAP, TrapKind.ILLEGAL)


@either
@pytest.mark.parametrize("leave", ["hint #29; ret", ".long 0xd65f0bff"])
def test_a_function_that_signs_its_return_address(mode: Mode, leave: str) -> None:
    parts = (
        "bl {F}; nop; brk #0xf000",
        f"hint #25; stp x29, x30, [sp, #-16]!; mov x0, #5; ldp x29, x30, [sp], #16; {leave}",
    )
    guest = guest_of("aarch64", parts, mode)
    seen = Seen(guest, registered(guest))
    guest.run_to_trap()
    assert [row[2] for row in seen.rows] == [5]
