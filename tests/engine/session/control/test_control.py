"""A session as a list of probes that is edited: everything a front end's keys come to."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import archkit
import pytest
from archkit import FIRST_COMPILED
from assembling import assembles
from controlkit import Held, held, moods, sample
from msgspec import structs

from engine.errors import CommandError
from engine.session.control.control import Control
from engine.session.guest.entering import CallArguments
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.probes import ProbeRow
from engine.session.protocol.views import RunState

both = pytest.mark.parametrize("arch", FIRST_COMPILED)


@both
def test_a_definition_records_every_hit_with_its_argument(arch: str) -> None:
    with held(sample(arch, "loop"), "20") as guest:
        view = guest.do(cmd.Define("p:demo/mix mix i=$arg2:u32"), cmd.Continue())
        assert view.state is RunState.ENDED
        assert view.exit_code == 0
        assert [event.values[0] for event in guest.events] == list(range(20))
        assert view.events == 20
        assert guest.probe(1).hits == 20
        assert "rounds 20, " in guest.out


@both
def test_the_same_probes_in_a_fresh_run(arch: str) -> None:
    with held(sample(arch, "loop"), "20") as guest:
        guest.do(cmd.Define("r:demo/mix mix $retval"), cmd.ToggleBreak("main"), cmd.Continue())
        first = guest.do(cmd.Continue())
        events = [structs.replace(e, thread_id=0) for e in guest.events]
        again = guest.do(cmd.Restart(), cmd.Continue(), cmd.Continue())
        assert [structs.replace(e, thread_id=0) for e in guest.events] == events
        assert len(events) == 20
        assert (again.time, again.system_calls) == (first.time, first.system_calls)
        assert [(p.row.id, p.row.line, p.hits) for p in again.probes] == [
            (1, "r:demo/mix mix $retval", 20),
            (2, "main", 1),
        ]


def test_a_changed_definition_takes_the_place_of_the_old_one() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(cmd.Define("p:demo/a factorial"), cmd.Define("p:demo/b fibonacci"))
        view = guest.do(cmd.Define("p:demo/a factorial n=%di:u32", replaces=1))
        assert [(p.row.id, p.row.line) for p in view.probes] == [
            (1, "p:demo/a factorial n=%di:u32"),
            (2, "p:demo/b fibonacci"),
        ]
        view = guest.do(cmd.Undo())
        assert [p.row.line for p in view.probes] == ["p:demo/a factorial", "p:demo/b fibonacci"]


def test_a_wrong_change_leaves_the_old_definition() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(cmd.Define("p:demo/a factorial", stops=True))
        failure = guest.fail(cmd.Define("p:demo/a factorial n=%nosuch", replaces=1))
        assert failure is not None
        assert failure.column == failure.source.index("%nosuch")
        assert [(p.row.id, p.row.line, p.row.stops) for p in guest.view.probes] == [
            (1, "p:demo/a factorial", True)
        ]
        assert guest.do(cmd.Continue()).location == "factorial+0x0"


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("p:demo/x factorial n=%zz", "%zz"),
        ("p:demo/x factorial n=%di:u33", "u33"),
        ("p:demo/x factorial ^$retval", None),
        ("p:1demo/x factorial", "1demo"),
        ("  p:demo/x factorial a=+0(%di", None),
    ],
)
def test_a_mistake_has_its_column(line: str, at: str | None) -> None:
    with held(sample("x86_64", "recursion")) as guest:
        failure = guest.fail(cmd.Define(line))
        assert failure is not None
        assert failure.text
        if at is not None:
            assert failure.column is not None
            assert failure.source[failure.column :].startswith(at)
        assert guest.view.probes == ()
        assert guest.view.undo == ""


def test_a_breakpoint_is_set_and_cleared_at_the_same_place_however_it_is_spelled() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        view = guest.do(cmd.ToggleBreak("factorial"))
        assert [(p.kind, p.place, p.row.stops) for p in view.probes] == [
            ("b", "factorial+0x0", True)
        ]
        at = guest.address("factorial")
        assert guest.do(cmd.ToggleBreak(f"{at:#x}")).probes == ()
        assert guest.view.planted == {}


@both
def test_off_and_on_again(arch: str) -> None:
    with held(sample(arch, "loop"), "20") as guest:
        guest.do(cmd.Define("p:demo/mix mix"), cmd.Enable((1,), on=False))
        assert not guest.probe(1).row.enabled
        assert guest.view.planted == {}
        guest.do(cmd.RunTo(guest.address("print_hex")))
        assert guest.events == []
        guest.do(cmd.Enable((1,)), cmd.Restart(), cmd.Continue())
        assert len(guest.events) == 20


def test_a_probe_that_is_off_does_not_stop_the_guest() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(cmd.Define("p:demo/fact factorial"), cmd.Enable((1,), on=False))
        guest.do(cmd.StopOnHit((1,)))
        assert guest.do(cmd.Continue()).state is RunState.ENDED
        guest.do(cmd.Restart(), cmd.Enable((1,)))
        assert guest.do(cmd.Continue()).location == "factorial+0x0"
        guest.do(cmd.Enable((1,), on=False))
        assert guest.do(cmd.Continue()).state is RunState.ENDED


@assembles
def test_probes_stand_on_the_code_that_the_user_has_written() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        start = guest.address("fibonacci")  # push r12: two bytes
        why = f"{start + 1:#x} is in the middle of 'push r12'"
        failed = guest.fail(cmd.ToggleBreak("fibonacci+1"))
        assert failed is not None
        assert why in failed.text
        guest.do(cmd.Assemble(start, "nop; nop"), cmd.ToggleBreak("fibonacci+1"))
        guest.do(cmd.Define("p:demo/two fibonacci+2 n=%di"), cmd.Continue())
        assert guest.view.location == "fibonacci+0x1"
        stack = guest.registers()["rsp"]
        guest.do(cmd.StepInsn())
        assert (guest.registers()["rip"], guest.registers()["rsp"]) == (start + 2, stack)
        guest.do(cmd.Delete((2,)), cmd.WriteMemory(start + 2, bytes.fromhex("0f1f00")))
        failed = guest.fail(cmd.Define("p:demo/inside fibonacci+4"))
        assert failed is not None
        assert "'nop dword ptr [rax]' (0f 1f 00)" in failed.text


@assembles
def test_undo_and_redo_walk_through_all_kinds_of_changes() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        start = guest.registers()
        code = guest.control.session.memory.read(guest.address("fibonacci"), 16)
        stack = guest.registers()["rsp"]
        word = guest.control.session.memory.read(stack, 8)

        def state() -> tuple[object, ...]:
            memory = guest.control.session.memory
            return (
                [(p.row.line, p.row.enabled, p.row.stops) for p in guest.view.probes],
                guest.registers()["r12"],
                memory.read(guest.address("fibonacci"), 16),
                memory.read(stack, 8),
            )

        states = [state()]
        for change in (
            cmd.Define("p:demo/fact factorial"),
            cmd.WriteRegister("r12", 42),
            cmd.StopOnHit((1,)),
            cmd.WriteMemory(stack, b"ABCDEFGH"),
            cmd.Enable((1,), on=False),
            cmd.Assemble(guest.address("fibonacci"), "mov eax, 1; ret"),
            cmd.Delete((1,)),
        ):
            guest.do(change)
            states.append(state())
        for before, after in pairwise(states):
            assert before != after
        for expected in reversed(states[:-1]):
            assert guest.view.undo
            guest.do(cmd.Undo())
            assert state() == expected
        assert state() == ([], start["r12"], code, word)
        assert guest.fail(cmd.Undo()) is not None
        for expected in states[1:]:
            guest.do(cmd.Redo())
            assert state() == expected
        assert guest.fail(cmd.Redo()) is not None
        assert guest.view.redo == ""


def test_a_new_change_forgets_what_was_undone() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(cmd.Define("p:demo/a factorial"), cmd.Undo(), cmd.Define("p:demo/b fibonacci"))
        assert guest.fail(cmd.Redo()) is not None
        assert [p.row.line for p in guest.view.probes] == ["p:demo/b fibonacci"]


def test_nothing_of_before_is_undone_in_a_fresh_run() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(cmd.Define("p:demo/a factorial"), cmd.WriteRegister("r12", 1), cmd.Restart())
        assert guest.view.undo == ""
        assert guest.fail(cmd.Undo()) is not None
        assert [p.row.line for p in guest.view.probes] == ["p:demo/a factorial"]


@assembles
@pytest.mark.parametrize("arch", archkit.ASSEMBLED)
def test_assembled_code_runs_and_is_taken_back(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        text = archkit.SEVEN[arch]
        guest.do(cmd.Assemble(guest.address("fibonacci"), text), cmd.Continue())
        assert "fibonacci(15) = 7\n" in guest.out


@assembles
@pytest.mark.parametrize("arch", archkit.ASSEMBLED)
def test_a_probe_on_code_that_is_changed_runs_the_new_code(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        text = archkit.SEVEN[arch]
        guest.do(
            cmd.Define("p:demo/fib fibonacci"),
            cmd.Assemble(guest.address("fibonacci"), text),
            cmd.Continue(),
        )
        assert "fibonacci(15) = 7\n" in guest.out
        assert len(guest.events) == 1


@both
def test_what_is_rubbish_to_assemble_changes_nothing(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        at = guest.address("fibonacci")
        before = guest.control.session.memory.read(at, 32)
        for text in ("nosuch", "mov", ";", "", "mov 1, 2"):
            assert guest.fail(cmd.Assemble(at, text)) is not None, text
        assert guest.fail(cmd.Assemble(0x10, "nop")) is not None
        assert guest.control.session.memory.read(at, 32) == before
        assert guest.view.undo == ""


def test_a_list_of_definitions_that_deletes() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(cmd.Define("p:demo/a factorial"), cmd.Define("p:demo/b fibonacci"))
        assert [p.event for p in guest.do(cmd.Define("-:demo/a")).probes] == ["demo/b"]
        assert [p.event for p in guest.do(cmd.Undo()).probes] == ["demo/a", "demo/b"]


def test_what_is_not_there_cannot_be_changed() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        for command in (
            cmd.Delete((7,)),
            cmd.Enable((7,)),
            cmd.StopOnHit((7,)),
            cmd.Define("p:demo/a factorial", replaces=7),
            cmd.WriteRegister("nosuch", 1),
            cmd.ToggleBreak("nosuch"),
            cmd.WriteMemory(0, b"x"),
            cmd.WriteMemory((1 << 64) - 2, b"xxxx"),
            cmd.ReadMemory(0, 1 << 30),
            cmd.Signal(0),
            cmd.Signal(4711),
        ):
            assert guest.fail(command) is not None, command
        assert guest.do(cmd.Continue()).exit_code == 0


def test_what_can_be_read_of_a_range_is() -> None:
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(cmd.ReadMemory(0, 4096))
        assert guest.all(ev.MemoryRead)[-1].pieces == ()
        at = guest.address("factorial")
        guest.do(cmd.ToggleBreak("factorial"), cmd.ReadMemory(at, 4), cmd.ReadMemory(at, 4, True))
        planted, original = guest.all(ev.MemoryRead)[-2:]
        assert planted.pieces[0][1][:1] == b"\xcc"
        assert original.pieces[0][1][:1] != b"\xcc"
        assert original.pieces[0][1][1:] == planted.pieces[0][1][1:]
        top = guest.registers()["rsp"] & -4096
        guest.do(cmd.ReadMemory(top + 4096 * 64, 4096 * 512))
        guest.do(cmd.ReadMemory(-4096, 8192), cmd.ReadMemory((1 << 64) - 16, 64))


@both
def test_kept_answers_are_told_again_when_they_change(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        sp = guest.control.session.arch.roles.sp
        page = guest.registers()[sp] & -4096
        others = [cmd.ReadMemory(page + 16 * n, 8, kept=True) for n in range(cmd.KEPT_READS)]
        kept = cmd.ReadMemory(page, 4096, kept=True)
        guest.do(kept)
        first = guest.all(ev.MemoryRead)[-1]
        assert first.kept
        told = len(guest.all(ev.MemoryRead))
        guest.do(cmd.WriteRegister(sp, guest.registers()[sp]))
        assert len(guest.all(ev.MemoryRead)) == told, "nothing has changed there"
        guest.do(cmd.WriteMemory(page + 8, b"changed"))
        again = guest.all(ev.MemoryRead)[-1]
        assert again.command == kept
        assert not again.kept, "its place among those that are kept is as it was"
        assert again.pieces[0][1][8:15] == b"changed"
        told = len(guest.all(ev.MemoryRead))
        guest.do(*others, cmd.WriteMemory(page + 8, b"left"))
        assert kept not in [one.command for one in guest.all(ev.MemoryRead)[told:]]


@both
def test_views_hold_words_of_the_stack_where_they_are_asked_for(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        sp = guest.control.session.arch.roles.sp
        assert guest.do(cmd.StepInsn()).stack == ()
        guest.do(cmd.ShowStack(4))
        view = guest.do(cmd.StepInsn())
        assert [word.address for word in view.stack][:1] == [guest.registers()[sp]]
        guest.do(cmd.ReadWords(guest.registers()[sp], 4))
        assert guest.all(ev.WordsRead)[-1].words == view.stack
        size = view.stack[1].address - view.stack[0].address
        guest.do(cmd.WriteMemory(view.stack[1].address, bytes(size)))
        assert guest.view.stack[1].value == 0, "what is written is seen"
        guest.do(cmd.ShowStack(0))
        assert guest.do(cmd.StepInsn()).stack == ()


@both
def test_memory_that_has_gone_keeps_its_change(arch: str) -> None:
    with held(moods(arch), "u") as guest:
        guest.do(cmd.Define("p:demo/tick tick", stops=True), cmd.Continue())
        guest.do(cmd.WriteMemory(0x10000000, b"changed"), cmd.Continue())
        assert guest.fail(cmd.Undo()) is not None
        assert guest.do(cmd.Continue()).exit_code == 0


@both
def test_probes_of_an_earlier_session(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        guest.do(
            cmd.Restore(
                (
                    ProbeRow(1, "p", "p:demo/fact factorial", enabled=False),
                    ProbeRow(2, "p", "p:demo/gone nosuch_function"),
                    ProbeRow(3, "b", "ackermann", stops=True),
                    ProbeRow(4, "p", "p:demo/fib fibonacci", stops=True),
                )
            )
        )
        assert [(p.row.line, p.row.enabled, p.row.stops) for p in guest.view.probes] == [
            ("p:demo/fact factorial", False, False),
            ("ackermann", True, True),
            ("p:demo/fib fibonacci", True, True),
        ]
        (lost,) = guest.all(ev.Remark)
        assert lost.lines[0] == "1 thing of the last time cannot be placed again:"
        assert "nosuch_function" in lost.lines[1]
        assert guest.do(cmd.Continue()).location == "fibonacci+0x0"
        ids = [p.row.id for p in guest.view.probes]
        guest.do(cmd.Define("p:demo/main main"))
        assert len({*ids, guest.view.probes[-1].row.id}) == 4


def test_changes_after_the_end_count_for_the_next_run() -> None:
    with held(sample("x86_64", "loop"), "20") as guest:
        guest.do(cmd.Continue(), cmd.Define("p:demo/mix mix"), cmd.ToggleBreak("print_hex"))
        for command in (cmd.Continue(), cmd.StepInsn(), cmd.StepPhase(), cmd.Finish()):
            failure = guest.fail(command)
            assert failure is not None
            assert "ended" in failure.text
        guest.do(cmd.ReadMemory(guest.address("main"), 16), cmd.Signal(2), cmd.Refresh())
        view = guest.do(cmd.Restart(), cmd.Continue())
        assert view.location == "print_hex+0x0"
        assert len(guest.events) == 20


def test_a_program_that_cannot_be_started_again_leaves_the_old_run(tmp_path: Path) -> None:
    program = tmp_path / "guest"
    program.write_bytes(Path(sample("x86_64", "recursion")).read_bytes())
    with held(str(program)) as guest:
        guest.do(cmd.ToggleBreak("factorial"), cmd.Continue())
        program.unlink()
        assert guest.fail(cmd.Restart()) is not None
        assert guest.do(cmd.Delete((1,)), cmd.Continue()).exit_code == 0


@both
def test_a_stop_on_a_probe_obeys_its_filter(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        guest.do(
            cmd.Define("p:demo/fib fibonacci n=$arg1:u32"),
            cmd.SetFilter("demo/fib", "n==5"),
            cmd.StopOnHit((1,)),
            cmd.Continue(),
        )
        assert not guest.events
        n = next(v.value for v in guest.view.frames[0].variables if v.name == "n")
        assert (guest.view.reason[:8], n) == ("probe 1:", "5")
        guest.do(cmd.SetFilter("demo/fib", ""), cmd.Continue())
        assert next(v.value for v in guest.view.frames[0].variables if v.name == "n") != "5"
        guest.do(cmd.SetFilter("demo/fib", "n > 100"), cmd.Continue())
        assert guest.view.state is RunState.ENDED


@both
def test_a_stop_on_a_return_obeys_its_filter(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        guest.do(
            cmd.Define("r:demo/fib fibonacci ret=$retval:u32"),
            cmd.SetFilter("demo/fib", "ret==8"),
            cmd.StopOnHit((1,)),
            cmd.Continue(),
        )
        assert guest.view.reason.endswith(" returns")
        name = {"x86_64": "rax", "aarch64": "x0", "riscv64": "a0"}[arch]
        value = next(r.value for r in guest.view.registers if r.name == name)
        assert value == 8
        guest.do(cmd.SetFilter("demo/fib", "ret > 100000"), cmd.Continue())
        assert guest.view.state is RunState.ENDED


@both
def test_of_two_stops_at_a_place_each_is_asked(arch: str) -> None:
    with held(sample(arch, "recursion")) as guest:
        guest.do(
            cmd.Define("p:demo/fib fibonacci n=$arg1:u32"),
            cmd.SetFilter("demo/fib", "n==100"),
            cmd.StopOnHit((1,)),
            cmd.ToggleBreak("fibonacci"),
            cmd.Continue(),
        )
        assert guest.view.reason == "breakpoint 2: fibonacci"
        guest.control.questions.accepts = lambda row: row == 1
        guest.do(cmd.Continue())
        assert guest.view.state is RunState.ENDED


@pytest.mark.parametrize("history", [False, True])
def test_nothing_is_asked_of_a_closed_guest(history: bool) -> None:
    """Its memory is gone: looking at it was the end of the process."""
    guest = Held(sample("x86_64", "recursion"), history=history, technique="jump")
    control = guest.control
    guest.do(cmd.Define("p fibonacci"), *[cmd.ContinueToHit()] * 3)
    if history:
        guest.do(cmd.StepBack())
    before = len(guest.said)
    control.close()
    control.close()
    asked: list[Callable[[], object]] = [
        control.view,
        control.probe_views,
        control.history,
        control.branches.lines,
        lambda: guest.probe(1),
        lambda: control.probes,
        lambda: control.session,
        lambda: control.state,
        lambda: control.thread,
        lambda: control.call(0, CallArguments(()), ()),
        lambda: control.loop.carry_out(cmd.StepInsn()),
        control.sight.visit().__enter__,
    ]
    for ask in asked:
        with pytest.raises(CommandError, match="the guest is closed"):
            ask()
    for command in (cmd.Refresh(), cmd.Continue(), cmd.ReadMemory(0x400000, 8), cmd.Restart()):
        failure = guest.fail(command)
        if not isinstance(command, cmd.Refresh):
            assert failure is not None
            assert "the guest is closed" in failure.text
    control.sight.attention()
    control.sight.nudge()
    control.refresh()
    assert all(isinstance(each, ev.Failed | ev.Done) for each in guest.said[before:])
    guest.terminal.close()


def test_what_is_told_of_a_run_is_forgotten_at_a_fresh_start() -> None:
    """A branch that is gone to tells this context again: it is that of one run."""
    kinds = (ev.Declared, ev.ProgramBegan, ev.FileMapped, ev.FileRead)
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(cmd.Define("p:first factorial"), cmd.Continue(), cmd.Restart())
        begun = next(n for n, event in enumerate(guest.said) if isinstance(event, ev.Restarted))
        told = [event for event in guest.said[begun:] if isinstance(event, kinds)]
        assert any(isinstance(event, ev.Declared) for event in told)
        assert guest.control.sight.run.context == told


def test_where_nobody_looks_no_debug_information_is_read() -> None:
    config = GuestConfig(sample("x86_64", "structs"))
    views = []
    for is_shown in (True, False):
        control = Control(config, lambda event: None, is_shown=is_shown)
        control.loop.carry_out(cmd.ToggleBreak("transfer"))
        control.loop.carry_out(cmd.Continue())
        views.append(control.view())
        control.close()
    shown, bare = views
    assert [frame.function for frame in shown.frames[:2]] == ["transfer", "main"]
    assert shown.line is not None
    assert (bare.frames, bare.registers, bare.line) == ((), (), None)
    assert (bare.location, bare.state, bare.pc, bare.reason, bare.time) == (
        shown.location,
        shown.state,
        shown.pc,
        shown.reason,
        shown.time,
    )
