"""The thread in sight: chosen, stepped alone or among the others, and left alone by looks."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from compiled import build
from controlkit import Held, held, sample

from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev

CHILD = r"""
#include <sys/wait.h>
#include <unistd.h>
int value = 1;
__attribute__((noinline)) void here(void) { __asm__ volatile("" ::: "memory"); }
int main(int argc, char **argv)
{
    if (argc > 1) { pause(); return 0; }
    if (!fork()) { value = 2; pause(); }
    if (!fork()) execl(argv[0], argv[0], "again", (char *)0);
    usleep(1000);
    here();
    return 0;
}
"""


@pytest.fixture
def guest() -> Iterator[Held]:
    """Three threads race; the first stands at its first hit of a breakpoint."""
    with held(sample("x86_64", "race"), "3") as found:
        found.do(cmd.ToggleBreak("think"), cmd.Continue())
        yield found


def bytes_at(guest: Held, address: int, size: int) -> bytes:
    guest.do(cmd.ReadMemory(address, size))
    return guest.all(ev.MemoryRead)[-1].pieces[0][1]


def test_registers_and_frames_are_of_the_chosen_one(guest: Held) -> None:
    runs = guest.view
    assert (runs.thread, runs.frames[0].function) == (1001, "think")
    chosen = guest.do(cmd.ChooseThread(1000))
    assert (chosen.thread, chosen.location) == (1000, "thread_join+0x20")
    assert chosen.frames[0].function == "futex"
    assert "main" in [frame.function for frame in chosen.frames]
    assert chosen.hit is None
    assert chosen.waiting_in == "futex"
    again = guest.do(cmd.ChooseThread(0))
    assert (again.thread, again.pc, again.frames) == (1001, runs.pc, runs.frames)
    assert [r.value for r in again.registers] == [r.value for r in runs.registers]


def test_a_register_of_the_chosen_one_is_set_and_set_back(guest: Held) -> None:
    guest.do(cmd.ChooseThread(1002), cmd.WriteRegister("r15", 77))
    guest.do(cmd.ChooseThread(1003))
    values = {r.name: r.value for r in guest.view.registers}
    assert values["r15"] != 77
    guest.do(cmd.ChooseThread(1002))
    assert {r.name: r.value for r in guest.view.registers}["r15"] == 77
    guest.do(cmd.ChooseThread(1003), cmd.Undo(), cmd.ChooseThread(1002))
    assert {r.name: r.value for r in guest.view.registers}["r15"] == 0


@pytest.mark.parametrize("alone", [False, True])
def test_steps_are_the_chosen_ones(guest: Held, alone: bool) -> None:
    guest.do(cmd.ToggleBreak("think"), cmd.StepAlone(on=alone), cmd.ChooseThread(1003))
    view = guest.do(cmd.StepInsn())
    assert (view.thread, view.location, view.reason) == (1003, "rt_clone+0x12", "stepped")
    ran = {thread.tid: thread.ticks for thread in view.listed}
    assert (1002 in ran and ran[1002] == 0) is alone  # the others had their turns, or had not
    if alone:
        view = guest.do(cmd.StepInsn(400))
        assert {t.tid: t.ticks for t in view.listed}[1002] == 0
        assert (view.thread, view.alone) == (1003, True)


def test_a_stop_of_another_thread_comes_first(guest: Held) -> None:
    view = guest.do(cmd.ChooseThread(1003), cmd.StepInsn())
    assert (view.thread, view.reason) == (1001, "breakpoint 1: think")


def test_looks_change_nothing() -> None:
    ends = []
    for looks in (False, True):
        with held(sample("x86_64", "race"), "3") as guest:
            guest.do(cmd.ToggleBreak("think"), *[cmd.Continue()] * 5)
            for tid in (1000, 1003, 1002, 1001) if looks else ():
                guest.do(cmd.ChooseThread(tid))
                guest.do(cmd.ReadMemory(guest.view.pc, 64))
            guest.do(cmd.ToggleBreak("think"), cmd.Continue())
            scheduler = guest.control.session.kernel.scheduler
            ends.append(
                (guest.view.time, guest.view.exit_code, scheduler.switches, scheduler.digest)
            )
    assert ends[0] == ends[1]


def test_memory_and_code_are_of_the_chosen_process(tmp_path: Path) -> None:
    program = build(tmp_path, "child", CHILD, "-static", "-O1", "-no-pie")
    with held(str(program)) as guest:
        guest.do(cmd.ToggleBreak("here"), cmd.Continue())
        session = guest.control.session
        value = session.modules.main
        assert value is not None
        at = next(s.address for s in value.symbols if s.name == "value")
        assert bytes_at(guest, at, 4) == b"\1\0\0\0"
        guest.do(cmd.ChooseThread(1001))
        assert bytes_at(guest, at, 4) == b"\2\0\0\0"
        assert guest.view.location.startswith("__libc_pause+") or "pause" in guest.view.location
        guest.do(cmd.WriteMemory(at, b"\7"))
        assert bytes_at(guest, at, 4) == b"\7\0\0\0"
        guest.do(cmd.ChooseThread(1000))
        assert bytes_at(guest, at, 4) == b"\1\0\0\0"
        view = guest.do(cmd.ChooseThread(1002))
        assert bool(view.program_in_sight) is not view.modules[0].main
        assert [m.path for m in view.modules] == [str(program), "[vdso]"]
        assert bytes_at(guest, at, 4) == b"\1\0\0\0"


@pytest.mark.parametrize("tid", [7, -1, 999])
def test_a_thread_that_there_is_not(guest: Held, tid: int) -> None:
    failure = guest.fail(cmd.ChooseThread(tid))
    assert failure is not None
    assert failure.text == f"there is no thread {tid}; there are 1000 1001 1002 1003"


def test_of_many_threads_some_are_named() -> None:
    with held(sample("x86_64", "race"), "8") as guest:
        guest.do(cmd.ToggleBreak("thread_join"), cmd.Continue())
        failure = guest.fail(cmd.ChooseThread(7))
        assert failure is not None
        assert failure.text.endswith(
            "there are 1000 1001 1002 1003 1004 1005 1006 1007 and 1 more"
        )


def test_in_the_middle_of_a_hit_nobody_else_is_looked_at(guest: Held) -> None:
    guest.do(cmd.StepPhase(), cmd.StepPhase())
    failure = guest.fail(cmd.ChooseThread(1000))
    assert failure is not None
    assert "in the middle of a hit" in failure.text
    guest.do(cmd.FinishHit(), cmd.ChooseThread(1000))
