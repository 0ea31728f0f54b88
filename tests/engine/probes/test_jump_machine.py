"""A jump's hit phase by phase: in the detour itself, with a debugger's stop in front of it."""

from itertools import pairwise

import pytest
from archkit import FIRST_JUMPING, JUMPING
from controlkit import held, sample
from jumpkit import after, jumps_of, only, opened, outcome, run_to, stopped_at_jump, symbol

from engine.probes.hit_machine import Phase, PhaseWatch
from engine.probes.jump_machine import JumpMachine, parts
from engine.probes.kprobe import Kprobe
from engine.session.inspect.backtrace import Backtraces
from engine.session.protocol import commands as cmd

# -- phase by phase -----------------------------------------------------------------------


@pytest.mark.parametrize("arch", JUMPING)
@pytest.mark.parametrize("fetch", ["t=+0({0}):string", "far=+0(\\16):string n={0}"])
def test_hits_are_stepped_through_the_detour(arch: str, fetch: str) -> None:
    """The same events, times and output as with breakpoints; also where the engine records."""
    line = f"p print {fetch}"
    with opened(arch, "words", "breakpoint", line) as (guest, tracing):
        guest.run(tracing)
        wanted = guest.text, guest.out
    with opened(arch, "words", "jump", line) as (guest, tracing):
        point, detour = only(guest)
        manager = guest.session.probes().manager
        tracing.start()
        for _ in range(3):
            assert run_to(guest, point.address)
            records = PhaseWatch(JumpMachine(manager.hits)).run()
            assert [record.phase for record in records[:5]] == [
                Phase.ARMED,
                Phase.JUMP,
                Phase.SAVE,
                Phase.RECORD,
                Phase.RESTORE,
            ]
            assert [record.phase for record in records[5:]] == [Phase.DISPLACED] * len(
                detour.displaced
            ) + [Phase.BACK]
            assert records[-1].after == detour.window
            assert all(now.before == then.after for then, now in pairwise(records))
        guest.session.run()
        tracing.finish()
        assert (guest.text, guest.out) == wanted


@pytest.mark.parametrize("arch", JUMPING)
def test_calls_and_returns_are_stepped_through_their_detours(arch: str) -> None:
    """The same events and times as with breakpoints; the second half runs by itself."""
    line = "r fibonacci v=$retval n=$arg1 t=$duration"
    with opened(arch, "recursion", "breakpoint", line) as (guest, tracing):
        guest.run(tracing)
        wanted = guest.text, guest.out
    with opened(arch, "recursion", "jump", line) as (guest, tracing):
        manager = guest.session.probes().manager
        entry, _ = only(guest)
        tracing.start()
        after(guest, 3)
        told = {"enter": 0, "leave": 0}
        engine = set()
        while min(told.values()) < 40:
            jumps = {point.address: point for point in jumps_of(guest).standing()}
            point = jumps.get(manager.regs.ip)
            if point is None:
                guest.session.kernel.step()
                continue
            texts = [record.text for record in PhaseWatch(JumpMachine(manager.hits)).run()]
            told["enter"] += any("put on those that are pending" in text for text in texts)
            told["leave"] += any("the call's record goes" in text for text in texts)
            assert (point is entry) is not any("has returned" in text for text in texts)
            engine |= {text for text in texts if "the engine" in text}
        guest.session.run()
        tracing.finish()
        assert (guest.text, guest.out) == wanted
        # Where the first calls return to is not watched yet.
        assert {text.partition(":")[0] for text in engine} == {"the engine has recorded the call"}


@pytest.mark.parametrize("arch", JUMPING)
def test_a_handler_runs_at_the_trap_in_its_detour(arch: str) -> None:
    with opened(arch, "recursion", "jump") as (guest, tracing):
        manager = guest.session.probes().manager
        seen: list[int] = []
        probe = Kprobe(symbol_name="fibonacci")
        probe.pre_handler = lambda probe, regs: seen.append(regs.ip)
        tracing.start()
        manager.register(probe)
        point, detour = only(guest)
        assert detour.trap is not None
        assert run_to(guest, point.address)
        records = PhaseWatch(JumpMachine(manager.hits)).run()
        assert seen == [point.address]
        assert "serves the hit" in records[2].text
        assert records[-1].after == detour.window
        guest.run()
        tracing.finish()
        assert len(seen) == probe.hits == 987


@pytest.mark.parametrize("arch", JUMPING)
def test_the_parts_are_the_whole_buffer(arch: str) -> None:
    with opened(arch, "words", "jump", "p print t=+0({0}):string") as (guest, _):
        _, detour = only(guest)
        found = parts(detour)
        assert found[0].start == detour.start
        assert found[-1].end == detour.end
        assert all(one.end == two.start for one, two in pairwise(found))
        assert [part.original for part in found if part.original] == [
            address for _, address in detour.displaced
        ]


@pytest.mark.parametrize("arch", JUMPING)
def test_a_fault_of_a_displaced_instruction_is_its_own(arch: str) -> None:
    """Both ways of carrying the hit out say the same of a push without a stack."""
    found = []
    for technique in ("breakpoint", "jump"):
        with opened(arch, "recursion", technique, "p fibonacci") as (guest, tracing):
            session = guest.session
            manager = session.probes().manager
            (point,) = manager.placed()
            tracing.start()
            assert run_to(guest, point.address)
            session.cpu.write_register(session.arch.roles.sp, 0x1000)
            machine = manager.machine(point)
            last = PhaseWatch(machine).run()[-1]
            assert last.phase is (Phase.SLOT if point.replacement is None else Phase.DISPLACED)
            assert "it raised fault" in last.text
            assert machine.stop is not None
            session.kernel.take(machine.stop)
            tracing.finish()
            assert session.process.exit is not None
            found.append((machine.stop, manager.regs.ip, outcome(session.process.exit)))
    assert found[0] == found[1]


@pytest.mark.parametrize("arch", JUMPING)
@pytest.mark.parametrize("line", ["p fibonacci n={0}:u32", "r fibonacci v=$retval"])
def test_backtraces_from_inside_a_detour(arch: str, line: str) -> None:
    """At every instruction of the buffer: the frames of the original's place."""
    with opened(arch, "recursion", "breakpoint") as (guest, _):
        address = symbol(guest, "fibonacci")
        traces = Backtraces(guest.session)
        wanted = {}
        assert run_to(guest, address)
        for _ in range(4):
            frames = traces.take().frames
            wanted[frames[0].pc] = [(frame.pc, frame.cfa) for frame in frames]
            guest.session.kernel.step()
    with opened(arch, "recursion", "jump", line) as (guest, tracing):
        _, detour = only(guest)
        tracing.start()
        traces = Backtraces(guest.session)
        session = guest.session
        seen = set()
        assert run_to(guest, detour.start)
        while detour.start <= session.probes().manager.regs.ip < detour.end:
            frames = traces.take().frames
            assert [(frame.pc, frame.cfa) for frame in frames] == wanted[frames[0].pc]
            seen.add(frames[0].pc)
            session.kernel.step()
        assert {address for _, address in detour.displaced} <= seen


# -- a debugger's stops -------------------------------------------------------------------


@pytest.mark.parametrize("arch", JUMPING)
def test_a_stop_stands_in_front_of_the_jump(arch: str) -> None:
    with held(sample(arch, "recursion"), technique="jump") as guest:
        stopped_at_jump(guest, arch)
        view = guest.view
        assert (view.location, view.probes[0].technique) == ("fibonacci+0x0", "jump")
        assert not guest.events
        for _ in range(4):
            view = guest.do(cmd.StepPhase())
        assert view.hit is not None
        assert view.hit.detour is not None
        assert (view.hit.how, view.hit.next) == ("detour", "restore")
        assert view.location == "fibonacci+0x0"
        inside = [part for part in view.hit.detour.parts if part.start == view.hit.detour.at]
        assert [part.name for part in inside] == ["restore"]
        while view.hit is not None and view.hit.next:
            view = guest.do(cmd.StepPhase())
        assert len(guest.events) == 1
        guest.do(cmd.Continue())
        assert guest.view.location == "fibonacci+0x0"
        assert len(guest.events) == 1
        guest.do(cmd.StopOnHit((1,), on=False))
        assert guest.do(cmd.Continue()).exit_code == 0
        assert (len(guest.events), guest.view.probes[0].hits) == (987, 987)
        time = guest.view.time
    with held(sample(arch, "recursion"), technique="breakpoint") as guest:
        stopped_at_jump(guest, arch)
        guest.do(cmd.StopOnHit((1,), on=False))
        assert guest.do(cmd.Continue()).time == time


@pytest.mark.parametrize("arch", FIRST_JUMPING)
@pytest.mark.parametrize("change", ["delete", "disable", "break", "edit"])
def test_the_list_changes_while_the_guest_is_in_a_detour(arch: str, change: str) -> None:
    for phases in (2, 4, 6) if arch == "x86_64" else (3,):
        with held(sample(arch, "recursion"), technique="jump") as guest:
            stopped_at_jump(guest, arch)
            guest.do(*[cmd.StepPhase()] * phases)
            commands: dict[str, cmd.Command] = {
                "delete": cmd.Delete((1,)),
                "disable": cmd.Enable((1,), on=False),
                "break": cmd.ToggleBreak("fibonacci+4" if arch == "aarch64" else "fibonacci+2"),
                "edit": cmd.Define("p:demo/f fibonacci n=$arg1", replaces=1),
            }
            guest.do(commands[change])
            for _ in range(12):
                guest.do(cmd.StepPhase())
            guest.do(cmd.Delete(tuple(probe.row.id for probe in guest.view.probes)))
            assert guest.do(cmd.Continue()).exit_code == 0
            assert "fibonacci(15) = 610\n" in guest.out
            assert guest.view.detours.zombies == 0
