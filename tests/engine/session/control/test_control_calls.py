"""Functions of a kernel image under control: stops, steps and probes in them, as in a program."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from calledkernel import opened_image
from controlkit import Held, held, sample
from kernelimages import AMD64_61, SLOW_ARM64, image_path

from engine.insn.disasm import Disassembler
from engine.session.inspect.backtrace import Backtraces
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import RunState, StopCause

both = pytest.mark.parametrize("image", [AMD64_61, SLOW_ARM64])
KSTRDUP = 'kstrdup("abc", GFP_KERNEL)'


@contextmanager
def kernel(image: str, *calls: str, technique: str = "auto") -> Iterator[Held]:
    """An image in hand."""
    opened = opened_image(image_path(image))
    with held(str(image_path(image)), *calls, opened=opened, technique=technique) as guest:
        yield guest


@both
def test_a_call_stops_at_a_breakpoint_and_goes_on_to_its_result(image: str) -> None:
    with kernel(image) as guest:
        guest.do(cmd.ToggleBreak("kstrdup"), cmd.Define("p:m/len strlen s=+0($arg1):string"))
        view = guest.do(cmd.CallFunction(KSTRDUP))
        assert (view.state, view.cause, view.location) == (
            RunState.STOPPED,
            StopCause.HIT,
            "kstrdup+0x0",
        )
        assert [frame.function for frame in view.frames] == ["kstrdup"]
        shown = {v.name: v.value for v in view.frames[0].variables}
        assert '"abc"' in shown["s"]
        view = guest.do(cmd.Continue())
        assert view.cause is StopCause.CALL
        assert view.reason.startswith(f"{KSTRDUP} = (char *) ")
        assert [event.values for event in guest.events] == [(b"abc",)]
        assert guest.out == f"{view.reason}\n"
        assert guest.do(cmd.Continue()).reason.startswith("no function is called")


@both
def test_calls_of_the_start_are_made_in_turn_and_again_after_a_restart(image: str) -> None:
    with kernel(image, "gcd(48, 180)", "lcm(4, 6)") as guest:
        for _ in range(2):
            view = guest.do(cmd.StepInsn())
            assert view.location == "gcd+0x0"
            view = guest.do(cmd.Finish())
            assert view.reason == "gcd(48, 180) = (unsigned long) 12"
            view = guest.do(cmd.Continue())
            assert view.reason == "lcm(4, 6) = (unsigned long) 12"
            guest.do(cmd.Restart())


@both
def test_a_call_that_cannot_go_on_stands_there_and_leaves_memory_as_it_is(image: str) -> None:
    with kernel(image, "memset(&buf[8], 7, 8)") as guest:
        guest.do(cmd.Continue())
        view = guest.do(cmd.CallFunction("strcmp(0x10, 0x20)"))
        assert (view.state, view.cause) == (RunState.STOPPED, StopCause.CALL)
        assert view.reason.startswith("cannot go on: read of 0x")
        assert view.location.startswith(("strcmp", "__pi_strcmp"))
        view = guest.do(cmd.CallFunction("memcmp(buf, (u8[]){7,7,7,7,7,7,7,7}, 8)"))
        assert view.reason.endswith(" = (int) 0")
        sleeping = guest.do(cmd.CallFunction("msleep(1)"))
        assert sleeping.reason == "cannot go on: msleep: it sleeps; called from the call itself"
        assert sleeping.location == "msleep+0x0"


def test_what_cannot_be_called_is_told() -> None:
    with kernel(AMD64_61) as guest:
        guest.do(cmd.ToggleBreak("strlen"))
        for text, why in (
            ("nosuch(1)", "no function nosuch in the image"),
            ("gcd(1)", "1 arguments; gcd takes 2"),
            ("gcd(1", "')' is missing"),
        ):
            failure = guest.fail(cmd.CallFunction(text))
            assert failure is not None
            assert why in failure.text
        guest.do(cmd.CallFunction('strlen("a")'))
        failure = guest.fail(cmd.CallFunction("gcd(1, 2)"))
        assert failure is not None
        assert 'in the middle of strlen("a")' in failure.text
    with held(sample("x86_64", "loop")) as guest:
        failure = guest.fail(cmd.CallFunction("main()"))
        assert failure is not None
        assert "no kernel image" in failure.text


def test_return_probes_see_what_is_served() -> None:
    for technique in ("breakpoint", "jump"):
        with kernel(AMD64_61, KSTRDUP, technique=technique) as guest:
            guest.do(
                cmd.Define("r:m/alloc __kmalloc_node_track_caller p=$retval"),
                cmd.Define("r:m/dup kstrdup p=$retval"),
                cmd.Continue(),
            )
            (first,), (second,) = (event.values for event in guest.events)
            assert first == second
            assert isinstance(first, int)
            assert f"{first:#x}" in guest.out


def test_definitions_are_listed_for_a_real_machine() -> None:
    with kernel(AMD64_61) as guest:
        guest.do(cmd.Define("p:m/r vfs_read file count"), cmd.ListDefinitions("perf"))
        (listed,) = guest.all(ev.Listed)
        assert listed.lines == ("perf probe 'm:r=vfs_read file=%di:x64 count=%dx:u64'",)


@pytest.mark.slow
@pytest.mark.parametrize("image", [AMD64_61, SLOW_ARM64])
def test_backtraces_are_what_a_shadow_stack_says_at_every_instruction(image: str) -> None:
    calls = (
        KSTRDUP,
        'snprintf(&text[64], 64, "%pI4 %s %d", (u8[]){1,2,3,4}, "x", 7)',
        'kstrtoull("123", 10, &value)',
        "sort((u32[]){3, 1, 2}, 3, 4, cmp_ex_sort, 0)" if image == AMD64_61 else "gcd(12, 18)",
    )
    with kernel(image, *calls) as guest:
        session = guest.control.session
        supervisor = session.supervisor
        assert supervisor is not None
        traces = Backtraces(session)
        arch, decode = session.arch, Disassembler(session.arch).decode
        stack: list[int] = []
        steps = 0
        while True:
            at = session.cpu.read_register(arch.roles.pc)
            insn = None if supervisor.rests(at) else decode(at, session.code_at(at))[0]
            view = guest.do(cmd.StepInsn())
            if view.cause is StopCause.CALL and view.reason.startswith("no function"):
                break
            now = session.cpu.read_register(arch.roles.pc)
            in_thunk = supervisor.named(at).startswith("__x86_indirect_")  # a jump, all in all
            if insn is not None and arch.is_call(insn) and not in_thunk:
                stack.append(at + insn.size)
            elif stack and now == stack[-1]:  # by `ret`, or served in place of its code
                stack.pop()
            if supervisor.rests(now):
                assert not stack
                continue
            found = [frame.pc for frame in traces.take().frames]
            assert found == [now, *reversed(stack)], supervisor.named(now)
            steps += 1
        assert steps > 800
        assert len(guest.out.splitlines()) >= len(calls)


def test_a_probe_that_the_own_kernel_refuses_is_told_of_and_listed() -> None:
    with kernel(AMD64_61) as guest:
        guest.do(cmd.Define("p get_kprobe"), cmd.Define("p gcd"))
        listed = "get_kprobe is on the kernel's blacklist (kprobes/blacklist)"
        why = f"Linux 6.1.192 refuses it (EINVAL): {listed}"
        assert [probe.refused for probe in guest.view.probes] == [why, ""]
        said = [done.text for done in guest.all(ev.Done)]
        assert said[0] == f"placed p get_kprobe; {why}; here it is placed all the same"
        assert said[1] == "placed p gcd"
