"""How jumps come and go: with somebody still inside, by djprobe's protocol, byte by byte."""

import pytest
from archkit import JUMPING
from controlkit import held, moods, sample
from jumpkit import after, detour_of, jumps_of, only, opened, run_to, stopped_at_jump, symbol
from sessionkit import loaded

from engine.probes.breakpoint_machine import BreakpointMachine
from engine.probes.djprobe import CPUS, SafetyCheck
from engine.probes.hit_machine import Phase, PhaseWatch
from engine.probes.kprobe import Kprobe
from engine.session.protocol import commands as cmd

# -- zombies ------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", JUMPING)
def test_a_zombie_can_be_watched(arch: str) -> None:
    with held(sample(arch, "recursion"), technique="jump") as guest:
        stopped_at_jump(guest, arch)
        guest.do(*[cmd.StepPhase()] * 3)
        before = guest.view.detours
        assert (before.standing, before.zombies) == (1, 0)
        after = guest.do(cmd.Delete((1,))).detours
        assert (after.standing, after.zombies) == (0, 1)
        assert after.waits[0].endswith("the guest is still in it")
        guest.do(cmd.FinishHit())
        left = guest.do(cmd.StepInsn()).detours
        assert (left.standing, left.zombies, left.freed) == (0, 0, after.freed + 1)
        assert guest.do(cmd.Continue()).exit_code == 0
        assert "fibonacci(15) = 610\n" in guest.out


@pytest.mark.parametrize("arch", JUMPING)
def test_a_handler_deletes_its_own_probe(arch: str) -> None:
    """It is called from the detour that is not needed any more then."""
    with opened(arch, "recursion", "jump") as (guest, tracing):
        manager, detours = guest.session.probes().manager, jumps_of(guest).code.map
        zombies: list[int] = []
        probe = Kprobe(symbol_name="fibonacci")

        def once(probe: Kprobe, regs: object) -> None:
            manager.unregister(probe)
            zombies.append(len(detours.zombies))

        probe.pre_handler = once
        tracing.start()
        manager.register(probe)
        assert manager.placed()[0].replacement is not None
        guest.run()
        tracing.finish()
        assert probe.hits == 1
        assert len(zombies) == 1
        assert not detours.zombies
        assert detours.freed == 1
        assert "fibonacci(15) = 610" in guest.out


def test_an_old_jump_is_one_again_as_soon_as_it_can() -> None:
    """In `auto` what was hot once need not be hit so often again."""
    with opened("x86_64", "recursion", "auto", "p fibonacci") as (guest, tracing):
        after(guest, 3)
        manager = guest.session.probes().manager
        (point,) = manager.placed()
        manager.refresh(point)
        tracing.start()
        while point.technique != "jump":
            guest.session.kernel.step()
        guest.session.kernel.step()
        detour = detour_of(point)
        inner = Kprobe(addr=detour.displaced[1][1], record=lambda thread: None)
        manager.register(inner)
        assert point.technique == "breakpoint"
        manager.unregister(inner)
        assert point.technique == "jump"
        (probe,) = point.probes
        manager.disable(probe)
        assert point.technique == "breakpoint"
        manager.enable(probe)
        assert point.technique == "jump"
        guest.run()
        tracing.finish()
        assert guest.text.count("p_fibonacci_0") == 987


# -- signals ------------------------------------------------------------------------------


def test_a_signal_handler_returns_into_the_window() -> None:
    """The jump was written while the handler ran: the rest of the window is in the detour."""
    with loaded(moods("x86_64"), "k", technique="jump") as guest:
        tracing = guest.tracing()
        done = tracing.definitions.define("p print")
        assert done is not None
        _, detour = only(guest)
        session, manager = guest.session, guest.session.probes().manager
        handler = symbol(guest, "on_signal")
        inner = detour.displaced[1][1]
        tracing.definitions.remove(done)
        tracing.start()
        assert run_to(guest, inner)
        session.thread.send_signal(10)
        session.kernel.step()
        assert manager.regs.ip == handler
        tracing.definitions.define("p print")
        _, detour = only(guest)
        moved = detour.moved_pc(inner)
        assert moved is not None
        session.kernel.step()
        while manager.regs.ip not in (inner, moved):
            session.kernel.step()
        if manager.regs.ip == inner:
            assert session.space.hooks.hold()
        assert manager.regs.ip == moved
        guest.run()
        tracing.finish()
        assert guest.out == "result 10\n"


# -- djprobe ------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", JUMPING)
def test_djprobe_writes_the_jump_once_all_cpus_have_passed(arch: str) -> None:
    line = "p print t=+0({0}):string"
    with opened(arch, "words", "breakpoint", line) as (guest, tracing):
        guest.run(tracing)
        wanted = guest.text, guest.out
    with opened(arch, "words", "djprobe", line) as (guest, tracing):
        point, detour = only(guest)
        session = guest.session
        size = len(session.arch.breakpoint)
        tracing.start()
        for hit in range(CPUS):
            assert point.technique == "breakpoint"
            assert point.why is not None
            assert point.why.rule == "safety-check"
            there = session.memory.read(point.address, size)
            assert there == session.arch.breakpoint[:size], hit
            assert run_to(guest, point.address)
            assert run_to(guest, detour.displaced[0][0])  # diverted past the recording
        assert point.technique == "jump"
        there = session.memory.read(point.address, len(detour.jump))
        assert there == detour.jump
        session.run()
        tracing.finish()
        assert (guest.text, guest.out) == wanted


@pytest.mark.parametrize("arch", JUMPING)
def test_djprobe_frees_the_stub_once_all_cpus_have_passed(arch: str) -> None:
    with opened(arch, "recursion", "breakpoint") as (guest, _):
        guest.run()
        wanted = guest.out
    with opened(arch, "recursion", "djprobe", "p fibonacci n={0}") as (guest, tracing):
        point, _ = only(guest)
        manager, jumps = guest.session.probes().manager, jumps_of(guest)
        tracing.start()
        while point.technique != "jump":
            guest.session.kernel.step()
        manager.unregister_all(list(point.probes))
        (check,) = manager.points[point.address].probes
        assert isinstance(check, SafetyCheck)
        assert not manager.placed()
        told = []
        for _ in range(CPUS):
            assert len(jumps.code.map.zombies) == 1
            assert run_to(guest, point.address)
            records = {
                record.phase: record
                for record in PhaseWatch(BreakpointMachine(manager.hits)).run()
            }
            told.append(records[Phase.PRE].text)
        assert "1 of 4" in told[0]
        assert "the stub is freed" in told[-1]
        assert not jumps.code.map.zombies
        assert point.address not in manager.points
        guest.session.run()
        tracing.finish()
        assert guest.out == wanted


def test_djprobe_keeps_a_stub_that_nobody_passes_for_ever() -> None:
    """The weakness of the protocol: CPUs that never come by."""
    with opened("x86_64", "recursion", "djprobe", "p fibonacci") as (guest, tracing):
        point, _ = only(guest)
        manager = guest.session.probes().manager

        (mine,) = point.probes

        def take_out(probe: Kprobe, regs: object) -> None:
            if mine in point.probes:
                assert point.technique == "jump"
                manager.unregister(mine)

        manager.register(Kprobe(symbol_name="ackermann", pre_handler=take_out))
        guest.run(tracing)
        (zombie,) = jumps_of(guest).code.map.zombies
        assert len(zombie.unchecked) == CPUS


# -- the order of writes ------------------------------------------------------------------


def test_the_first_byte_traps_while_the_others_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """As text_poke_bp writes: the tail under the breakpoint, then the first byte; and back."""
    with opened("x86_64", "words", "auto", "p print") as (guest, _):
        session, manager = guest.session, guest.session.probes().manager
        (point,) = manager.placed()
        before = session.memory.read(point.address, 5)
        seen: list[bytes] = []
        patch = session.memory.patch

        def watched(address: int, data: bytes, *, forget: bool = True) -> None:
            patch(address, data, forget=forget)
            if point.address <= address < point.address + 5:
                seen.append(session.memory.read(point.address, 5))

        monkeypatch.setattr(session.memory, "patch", watched)
        assert manager.techniques.consider(point)
        detour = detour_of(point)
        trap = session.arch.breakpoint
        assert seen == [trap + detour.jump[1:5], detour.jump[:5]]
        seen.clear()
        manager.techniques.fall_back(point)
        assert seen == [trap + detour.jump[1:5], before]
