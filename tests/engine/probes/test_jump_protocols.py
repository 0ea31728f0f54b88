"""How jumps come and go: phase by phase, by djprobe's protocol, and with somebody still inside."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest
from controlkit import Held, held, sample
from guestrun import ARCHES
from sessionkit import SAMPLES, Guest, loaded

from engine.linux.kernel import Exit
from engine.probes.detours import Detour
from engine.probes.djprobe import CPUS, SafetyCheck
from engine.probes.jump import Jumps
from engine.probes.jumpphases import JumpMachine, parts
from engine.probes.kprobe import Kprobe
from engine.probes.phase import Phase
from engine.probes.phases import PhaseMachine
from engine.probes.point import ProbePoint
from engine.session import commands as cmd
from engine.session.backtrace import Backtraces
from engine.session.tracing import Tracing

FIRST = {"x86_64": "%di", "aarch64": "%x0"}
WORDS = "the quick brown fox jumps"


@contextmanager
def opened(arch: str, name: str, technique: str, *lines: str) -> Iterator[tuple[Guest, Tracing]]:
    args = (WORDS,) if name == "words" else ()
    with loaded(SAMPLES / arch / name, *args, technique=technique) as guest:
        tracing = guest.tracing()
        for line in lines:
            tracing.define(line.format(FIRST[arch]))
        yield guest, tracing


def symbol(guest: Guest, name: str) -> int:
    found = guest.session.probes().where(name)
    assert found is not None
    return found


def only(guest: Guest) -> tuple[ProbePoint, Detour]:
    (point,) = guest.session.probes().manager.placed()
    assert point.detour is not None, point.why
    return point, point.detour


def jumps_of(guest: Guest) -> Jumps:
    jumps = guest.session.probes().manager.jumps
    assert jumps is not None
    return jumps


def outcome(exit: Exit) -> tuple[object, ...]:
    crash = exit.crash
    return exit.code, exit.signal, (crash.pc, crash.address, crash.why) if crash else None


def run_to(guest: Guest, address: int) -> bool:
    session = guest.session
    while session.kernel.exit is None:
        if session.probes().manager.regs.ip == address:
            return True
        session.kernel.step()
    return False


# -- phase by phase -----------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHES)
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
            records = JumpMachine(manager).run()
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


@pytest.mark.parametrize("arch", ARCHES)
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
        records = JumpMachine(manager).run()
        assert seen == [point.address]
        assert "serves the hit" in records[2].text
        assert records[-1].after == detour.window
        guest.run()
        tracing.finish()
        assert len(seen) == probe.hits == 987


@pytest.mark.parametrize("arch", ARCHES)
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


@pytest.mark.parametrize("arch", ARCHES)
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
            machine = PhaseMachine(manager) if point.detour is None else JumpMachine(manager)
            last = machine.run()[-1]
            assert last.phase is (Phase.SLOT if point.detour is None else Phase.DISPLACED)
            assert "it raised fault" in last.text
            assert machine.stop is not None
            session.kernel.take(machine.stop)
            tracing.finish()
            assert session.kernel.exit is not None
            found.append((machine.stop, manager.regs.ip, outcome(session.kernel.exit)))
    assert found[0] == found[1]


@pytest.mark.parametrize("arch", ARCHES)
def test_backtraces_from_inside_a_detour(arch: str) -> None:
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
    with opened(arch, "recursion", "jump", "p fibonacci n={0}:u32") as (guest, tracing):
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


def stopped_at_jump(guest: Held, arch: str) -> None:
    guest.do(cmd.Define(f"p:demo/f fibonacci n={FIRST[arch]}:u32", stops=True), cmd.Continue())


@pytest.mark.parametrize("arch", ARCHES)
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


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("change", ["delete", "disable", "break", "edit"])
def test_the_list_changes_while_the_guest_is_in_a_detour(arch: str, change: str) -> None:
    for phases in (2, 4, 6) if arch == "x86_64" else (3,):
        with held(sample(arch, "recursion"), technique="jump") as guest:
            stopped_at_jump(guest, arch)
            guest.do(*[cmd.StepPhase()] * phases)
            commands: dict[str, cmd.Command] = {
                "delete": cmd.Delete((1,)),
                "disable": cmd.Enable((1,), on=False),
                "break": cmd.Break("fibonacci+4" if arch == "aarch64" else "fibonacci+2"),
                "edit": cmd.Define("p:demo/f fibonacci n=$arg1", replaces=1),
            }
            guest.do(commands[change])
            for _ in range(12):
                guest.do(cmd.StepPhase())
            guest.do(cmd.Delete(tuple(probe.id for probe in guest.view.probes)))
            assert guest.do(cmd.Continue()).exit_code == 0
            assert "fibonacci(15) = 610\n" in guest.out
            assert guest.view.detours.zombies == 0


# -- zombies ------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHES)
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


@pytest.mark.parametrize("arch", ARCHES)
def test_a_handler_deletes_its_own_probe(arch: str) -> None:
    """It is called from the detour that is not needed any more then."""
    with opened(arch, "recursion", "jump") as (guest, tracing):
        manager, detours = guest.session.probes().manager, jumps_of(guest).detours
        zombies: list[int] = []
        probe = Kprobe(symbol_name="fibonacci")

        def once(probe: Kprobe, regs: object) -> None:
            manager.unregister(probe)
            zombies.append(len(detours.zombies))

        probe.pre_handler = once
        tracing.start()
        manager.register(probe)
        assert manager.placed()[0].detour is not None
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
        jumps = jumps_of(guest)
        jumps.after = 3
        manager = guest.session.probes().manager
        (point,) = manager.placed()
        manager.refresh(point)
        tracing.start()
        while point.technique != "jump":
            guest.session.kernel.step()
        guest.session.kernel.step()
        detour = point.detour
        assert detour is not None
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


# -- djprobe ------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHES)
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


@pytest.mark.parametrize("arch", ARCHES)
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
            assert len(jumps.detours.zombies) == 1
            assert run_to(guest, point.address)
            records = {record.phase: record for record in PhaseMachine(manager).run()}
            told.append(records[Phase.PRE].text)
        assert "1 of 4" in told[0]
        assert "the stub is freed" in told[-1]
        assert not jumps.detours.zombies
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
        (zombie,) = jumps_of(guest).detours.zombies
        assert len(zombie.unchecked) == CPUS


# -- where a jump would do ----------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHES)
def test_the_nearest_place_for_a_jump(arch: str) -> None:
    """What is named can have one, and nothing nearer in the function can."""
    with loaded(SAMPLES / arch / "jumps") as guest:
        placing = guest.session.probes().placing
        placed = list(placing.of_all())
    good: dict[tuple[int, int] | None, list[int]] = {}
    for one in placed:
        if one.technique == "jump":
            good.setdefault(one.place.function, []).append(one.place.link)
    named = 0
    for one in placed:
        if one.technique == "jump" or not one.judgement.ok:
            assert one.nearest_jump is None
            continue
        here = one.place.link
        wanted = min((abs(link - here) for link in good.get(one.place.function, [])), default=None)
        found = one.nearest_jump
        assert wanted == (None if found is None else abs(found - here))
        named += found is not None
    assert named or arch == "aarch64"


# -- the order of writes ------------------------------------------------------------------


def test_the_first_byte_traps_while_the_others_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """As text_poke_bp writes: the tail under the breakpoint, then the first byte; and back."""
    with opened("x86_64", "words", "auto", "p print") as (guest, _):
        session, manager = guest.session, guest.session.probes().manager
        (point,) = manager.placed()
        before = session.memory.read(point.address, 5)
        seen: list[bytes] = []
        poke = session.memory.poke

        def watched(address: int, data: bytes, *, forget: bool = True) -> None:
            poke(address, data, forget=forget)
            if point.address <= address < point.address + 5:
                seen.append(session.memory.read(point.address, 5))

        monkeypatch.setattr(session.memory, "poke", watched)
        assert jumps_of(guest).consider(point)
        detour = point.detour
        assert detour is not None
        trap = session.arch.breakpoint
        assert seen == [trap + detour.jump[1:5], detour.jump[:5]]
        seen.clear()
        jumps_of(guest).unoptimize(point)
        assert seen == [trap + detour.jump[1:5], before]
