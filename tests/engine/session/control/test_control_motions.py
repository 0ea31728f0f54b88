"""Motions of a debugger, held against a run that executes one instruction after the other."""

from functools import cache
from itertools import pairwise

import archkit
import pytest
from archkit import FIRST_COMPILED
from controlkit import Held, held, moods, sample
from msgspec import structs

from engine.arch import by_name
from engine.session.protocol import commands as cmd
from engine.session.protocol.views import RunState

both = pytest.mark.parametrize("arch", FIRST_COMPILED)


def facts(guest: Held) -> tuple[object, ...]:
    """Everything that a run must not change."""
    view = guest.view
    registers = {r.name: r.value for r in view.registers if r.group in ("general", "flags")}
    stack = registers[guest.control.session.arch.roles.sp]
    memory = guest.control.session.memory.read(stack, 64)
    return view.pc, registers, memory, view.time, view.system_calls


@cache
def walked(arch: str, name: str, start: str, count: int) -> list[tuple[int, int]]:
    """(pc, sp) of instructions executed one by one from a function on."""
    with held(sample(arch, name)) as guest:
        guest.do(cmd.RunTo(guest.address(start)))
        session = guest.control.session
        roles = session.arch.roles
        steps = []
        for _ in range(count):
            steps.append(
                (session.cpu.read_register(roles.pc), session.cpu.read_register(roles.sp))
            )
            session.kernel.step()
            if session.process.exit is not None:
                break
        return steps


@both
def test_steps_go_where_single_steps_go(arch: str) -> None:
    expected = walked(arch, "recursion", "ackermann", 400)
    with held(sample(arch, "recursion")) as guest:
        guest.do(cmd.RunTo(guest.address("ackermann")))
        for pc, _ in expected[1:60]:
            assert guest.do(cmd.StepInsn()).pc == pc
        assert guest.do(cmd.StepInsn(100)).pc == expected[159][0]


@both
@pytest.mark.parametrize("probed", [False, True])
def test_a_step_over_passes_calls_even_recursive_ones(arch: str, probed: bool) -> None:
    expected = walked(arch, "recursion", "ackermann", 3000)
    with held(sample(arch, "recursion")) as guest:
        start = guest.address("ackermann")
        guest.do(cmd.RunTo(start))
        if probed:
            guest.do(cmd.Define("p:demo/a ackermann"), cmd.Define("r:demo/r ackermann"))
        at = steps = 0
        floor = expected[0][1]
        while expected[at][1] <= floor and steps < 60:
            call = archkit.calls(guest.control.session, guest.view.pc)
            pc, sp = expected[at]
            guest.do(cmd.StepOver())
            if call:
                size = len(guest.control.session.code_at(pc))
                at = next(
                    n
                    for n in range(at + 1, len(expected))
                    if pc < expected[n][0] <= pc + size and expected[n][1] == sp
                )
            else:
                at += 1
            steps += 1
            assert guest.view.pc == expected[at][0]
            if at + 1 >= len(expected):
                break
        assert steps > 10


@both
def test_finish_ends_behind_the_call(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        guest.do(cmd.ToggleBreak("ackermann"))
        for depth in range(4):
            view = guest.do(cmd.Continue())
            assert view.reason.startswith("breakpoint 1")
            assert sum(frame.function == "ackermann" for frame in view.frames) >= min(depth, 1)
        caller = view.frames[1]
        guest.do(cmd.Delete((1,)))
        view = guest.do(cmd.Finish())
        assert (view.pc, view.reason) == (caller.pc, "finished")
        assert view.frames[0].function == caller.function
        assert guest.do(cmd.Continue()).exit_code == 0


@both
def test_finish_of_a_function_with_a_return_probe(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        guest.do(cmd.Define("r:demo/r fibonacci $retval"), cmd.RunTo(guest.address("fibonacci")))
        guest.do(cmd.StepInsn(3))
        view = guest.do(cmd.Finish())
        assert view.location.startswith("main+")
        guest.do(cmd.StepInsn())  # a return is served where it leads to
        assert [event.values[0] for event in guest.events][-1] == 610
        assert guest.do(cmd.Continue()).exit_code == 0


@both
@pytest.mark.parametrize("line", ["", "p:demo/x ackermann", "r:demo/x ackermann"])
def test_a_step_over_a_return_leads_to_the_caller(arch: str, line: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        if line:
            guest.do(cmd.Define(line))
        guest.do(cmd.RunTo(guest.address("ackermann")), cmd.StepInsn())
        caller = guest.view.frames[1].pc
        for _ in range(200):
            if archkit.returns(guest.control.session, guest.view.pc):
                break
            guest.do(cmd.StepOver())
        view = guest.do(cmd.StepOver())
        assert view.pc == caller
        assert view.raw_pc == caller


@both
def test_lines_follow_each_other(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        guest.do(cmd.ToggleBreak("main"), cmd.Continue())
        seen = []
        for _ in range(4):
            view = guest.do(cmd.StepLine(over=True))
            assert view.line is not None
            assert view.location.startswith("main+")
            seen.append(view.line[1])
        assert all(one != other for one, other in pairwise(seen))
        assert {32, 33, 34} <= set(seen)
        assert "factorial(20) = 2432902008176640000\n" in guest.out


@both
def test_a_step_by_lines_goes_into_functions(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        guest.do(cmd.ToggleBreak("main"), cmd.Continue())
        seen = {guest.do(cmd.StepLine()).location.partition("+")[0] for _ in range(30)}
        assert "print" in seen


def test_without_lines_a_step_by_lines_says_so() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        failure = guest.fail(cmd.StepLine())
        assert failure is not None
        assert "no line" in failure.text
        assert guest.view.state is RunState.READY


@both
def test_a_breakpoint_ends_every_longer_motion(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        guest.do(cmd.ToggleBreak("main"), cmd.Continue(), cmd.ToggleBreak("fibonacci"))
        for motion in (
            cmd.StepInsn(100_000),
            cmd.RunTo(guest.address("ackermann")),
            cmd.Finish(),
        ):
            guest.do(cmd.Restart(), cmd.Continue())
            view = guest.do(motion)
            assert (view.location, view.reason) == ("fibonacci+0x0", "breakpoint 2: fibonacci")
        guest.do(cmd.Restart(), cmd.Continue())
        for _ in range(20):
            view = guest.do(cmd.StepLine(over=True))
            if view.reason != "stepped":
                break
        assert (view.location, view.reason) == ("fibonacci+0x0", "breakpoint 2: fibonacci")


@both
def test_the_place_of_a_motion_may_be_a_breakpoint_and_a_probe(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        at = guest.address("fibonacci")
        guest.do(cmd.ToggleBreak("fibonacci"), cmd.Define("p:demo/fib fibonacci", stops=True))
        assert guest.do(cmd.RunTo(at)).pc == at
        assert guest.events == []
        assert guest.probe(1).hits == guest.probe(2).hits == 0
        assert guest.do(cmd.Continue()).pc == at
        assert len(guest.events) == 1
        assert guest.probe(1).hits == guest.probe(2).hits == 1
        view = guest.do(cmd.Delete((1,)), cmd.Continue())
        assert (view.pc, view.reason) == (at, "probe 2: p:demo/fib fibonacci")
        view = guest.do(cmd.Enable((2,), on=False), cmd.Continue())
        assert view.exit_code == 0
        assert "fibonacci(15) = 610\n" in guest.out


@both
def test_where_no_guest_can_stop_nothing_moves(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        before = facts(guest)
        for address in (0, 8, (1 << 64) - 4, guest.view.registers[0].value):
            assert guest.fail(cmd.RunTo(address)) is not None
            assert guest.view.state is RunState.READY
        assert facts(guest) == before


@both
def test_a_signal_is_stepped_into_its_handler_and_back(arch: str) -> None:
    with held(moods(arch), "k") as guest:
        guest.do(cmd.RunTo(guest.address("raise_usr1")))
        places = []
        for _ in range(120):
            places.append(guest.do(cmd.StepInsn()).location.partition("+")[0])
            if places[-1] == "on_signal" and len(set(places)) < 3:
                assert "<signal handler called>" in [f.title for f in guest.view.frames]
        order = list(dict.fromkeys(places))
        # Where the kernel says what to return to, that is code of the vDSO or of the engine.
        linux = by_name(arch).linux
        given = "__vdso_rt_sigreturn" if linux.vdso is not None else "?"
        restorer = "restore" if linux.restorer else given
        assert order[:3] == ["raise_usr1", "on_signal", restorer]
        assert guest.do(cmd.Continue()).exit_code == 0
        assert "result 10\n" in guest.out


@both
def test_a_step_over_passes_a_signal(arch: str) -> None:
    with held(moods(arch), "k") as guest:
        guest.do(cmd.Define("p:demo/h on_signal"), cmd.RunTo(guest.address("main")))
        for _ in range(80):
            view = guest.do(cmd.StepOver())
            if view.state is RunState.ENDED:
                break
        assert len(guest.events) == 1
        assert view.exit_code == 0 or guest.do(cmd.Continue()).exit_code == 0
        assert "result 10\n" in guest.out


@both
@pytest.mark.parametrize("name", ["recursion", "jumps", "floats"])
def test_phases_by_hand_are_a_free_run(arch: str, name: str) -> None:
    """The hits of all probes carried out phase by phase, against a run without a stop."""
    lines = {
        "recursion": ("p:demo/a ackermann n=$arg2:u32", "r:demo/f factorial v=$retval"),
        "jumps": ("p:demo/e even_step", "r:demo/d descend $retval", "p:demo/g guarded"),
        "floats": ("p:demo/c celsius", "r:demo/i integrate"),
    }[name]
    definitions = [cmd.Define(line) for line in lines]
    with held(sample(arch, name)) as guest:
        guest.do(*definitions, cmd.Continue())
        expected = (guest.events, guest.out, guest.view.exit_code, facts(guest)[3:])
        hits = [probe.hits for probe in guest.view.probes]
    with held(sample(arch, name)) as guest:
        guest.do(*(structs.replace(d, stops=True) for d in definitions))
        stops = 0
        while guest.do(cmd.Continue()).state is RunState.STOPPED:
            stops += 1
            if stops > 40:
                guest.do(*(cmd.StopOnHit((p.row.id,), on=False) for p in guest.view.probes))
                continue
            for _ in range(12):
                view = guest.do(cmd.StepPhase())
                assert view.hit is not None
                if not view.hit.next:
                    break
            else:
                pytest.fail("a hit without an end")
        assert stops
        assert (guest.events, guest.out, guest.view.exit_code, facts(guest)[3:]) == expected
        assert [probe.hits for probe in guest.view.probes] == hits


@both
@pytest.mark.slow
def test_a_hit_by_phases_leaves_what_a_hit_at_once_leaves(arch: str) -> None:
    """At every instruction of a function: registers, stack, clock after the hit."""
    name, function = "recursion", "ackermann"
    with held(sample(arch, name)) as plain:
        session = plain.control.session
        start = plain.address(function)
        found = session.modules.main.symbols.find(function)  # type: ignore[union-attr]
        assert found is not None
        code = session.memory.read(start, found.size)
    places = []
    at = 0
    while at < len(code):
        insn = session.disassembler.decode(start + at, code[at:])[0]
        places.append(start + at)
        at += insn.size
    compared = 0
    for address in places[::2]:
        results = []
        for way in ("plain", "hit", "phases"):
            with held(sample(arch, name)) as guest:
                guest.do(cmd.RunTo(start))
                if way != "plain" and guest.fail(cmd.Define(f"p:demo/x {address:#x}")):
                    break
                if address != start and guest.do(cmd.RunTo(address)).pc != address:
                    break
                if way == "phases":
                    while guest.do(cmd.StepPhase()).hit.next:  # type: ignore[union-attr]
                        pass
                else:
                    guest.do(cmd.StepInsn())
                found = facts(guest)[:3]
                hits = sum(probe.hits for probe in guest.view.probes)
                assert hits == (way != "plain")
                guest.do(cmd.StepInsn())  # time is counted where a block begins
                results.append((found, facts(guest)))
        if len(results) == 3:
            assert results[0] == results[1] == results[2], hex(address)
            compared += 1
    assert compared >= 6


@both
def test_the_rest_of_a_hit_at_once(arch: str) -> None:
    for rest in (cmd.FinishHit(), cmd.StepInsn(), cmd.Continue()):
        for phases in range(6):
            with held(sample(arch, "recursion")) as guest:
                guest.do(cmd.Define("p:demo/f fibonacci", stops=True), cmd.Continue())
                guest.do(*[cmd.StepPhase()] * phases)
                view = guest.do(rest)
                if isinstance(rest, cmd.Continue):
                    assert view.location == "fibonacci+0x0"
                else:
                    assert view.hit is not None
                    assert view.hit.next == ""
                assert len(guest.events) == 1
                guest.do(cmd.StopOnHit((1,), on=False))
                assert guest.do(cmd.Continue()).exit_code == 0
                assert "fibonacci(15) = 610\n" in guest.out


@pytest.mark.parametrize("arch", FIRST_COMPILED)
@pytest.mark.parametrize("change", ["delete", "disable", "undo", "break", "define", "edit"])
@pytest.mark.parametrize("phases", range(1, 7))
def test_the_list_changes_in_the_middle_of_a_hit(arch: str, change: str, phases: int) -> None:
    with held(sample(arch, "recursion")) as guest:
        guest.do(cmd.Define("p:demo/f fibonacci", stops=True), cmd.Continue())
        guest.do(*[cmd.StepPhase()] * phases)
        commands: dict[str, cmd.Command] = {
            "delete": cmd.Delete((1,)),
            "disable": cmd.Enable((1,), on=False),
            "undo": cmd.Undo(),
            "break": cmd.ToggleBreak("fibonacci"),
            "define": cmd.Define("p:demo/g fibonacci n=$arg1"),
            "edit": cmd.Define("p:demo/f fibonacci n=$arg1", replaces=1),
        }
        guest.do(commands[change])
        for _ in range(10):
            guest.do(cmd.StepPhase())
        for probe in guest.view.probes:
            if probe.kind == "b":
                guest.do(cmd.Delete((probe.row.id,)))
            else:
                guest.do(cmd.StopOnHit((probe.row.id,), on=False))
        assert guest.do(cmd.Continue()).exit_code == 0
        assert "fibonacci(15) = 610\n" in guest.out


def test_registers_cannot_be_set_in_the_middle_of_a_hit() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(cmd.Define("p:demo/f fibonacci", stops=True), cmd.Continue(), cmd.StepPhase())
        assert guest.fail(cmd.WriteRegister("rip", 0)) is not None
        guest.do(cmd.FinishHit(), cmd.WriteRegister("r15", 5))
        assert guest.registers()["r15"] == 5


@both
def test_a_changed_register_changes_what_the_program_does(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        name = by_name(arch).probes.arguments[0]
        guest.do(cmd.RunTo(guest.address("fibonacci")), cmd.WriteRegister(name, 10))
        assert guest.do(cmd.Continue()).exit_code == 0
        assert "fibonacci(15) = 55\n" in guest.out


@both
def test_who_changed_a_register_is_told(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        guest.do(cmd.Define("p:demo/f fibonacci", stops=True), cmd.Continue())
        pc = guest.control.session.arch.roles.pc
        for _ in range(8):
            view = guest.do(cmd.StepPhase())
            assert view.hit is not None
            done = view.hit.done[-1]
            changed = {r.name for r in view.registers if r.origin}
            assert {name for name, _, _ in done.registers} | (
                {pc} if done.before != done.after else set()
            ) == changed
            origins = {r.origin for r in view.registers if r.origin}
            assert origins <= {"insn" if done.by_guest else "machinery"}
            if not view.hit.next:
                break
