"""Goroutines: what delve, gdb and Go's own traceback say of the same programs, and hostile memory.

The programs are those of tests/data/goroutines.
"""

import struct
from collections.abc import Iterator

import pytest
from controlkit import Held, held, sample
from goroutinekit import answers, go_program, own

from engine.errors import CommandError
from engine.image.go_runtime import go_file
from engine.session.inspect.backtrace import Backtraces
from engine.session.inspect.goroutines import MOST, Goroutine, GoroutineList, Goroutines
from engine.session.protocol import commands as cmd
from engine.session.protocol.frames import GuestFrame


@pytest.fixture(scope="module")
def states() -> Iterator[Held]:
    """The program with goroutines in all states, where all wait."""
    with held(go_program("states"), history=True) as guest:
        guest.do(cmd.ToggleBreak("main.sleeps"), cmd.ToggleBreak("main.place"))
        guest.do(cmd.Continue(), cmd.Continue())
        assert guest.view.location.startswith("main.place")
        yield guest


def listed(guest: Held) -> GoroutineList:
    session = guest.control.session
    return Goroutines(session).listed(session.seen)


def frames(guest: Held, one: Goroutine) -> tuple[GuestFrame, ...]:
    backtraces = Backtraces(guest.control.session)
    return backtraces.take().frames if one.thread else backtraces.parked(one).frames


def by_function(guest: Held) -> dict[str, tuple[Goroutine, tuple[GuestFrame, ...]]]:
    """Goroutines and their frames by the program's own function."""
    pairs = [(one, frames(guest, one)) for one in listed(guest).found]
    named = {own([frame.function for frame in found]): (one, found) for one, found in pairs}
    named.pop("", None)
    return named


def test_they_wait_for_what_delve_and_go_say(states: Held) -> None:
    said, found = answers(), by_function(states)
    assert set(found) == set(said["delve"])
    for name, (one, _) in found.items():
        told = said["delve"][name]["wait"]
        assert one.reason == told, name
        # At the traceback main sleeps, where delve has stopped it.
        assert name == "main.place" or one.status == said["traceback"][name], name


def test_their_frames_are_those_of_delve(states: Held) -> None:
    said = answers()["delve"]
    for name, (_, found) in by_function(states).items():
        ours = [[frame.function, frame.line] for frame in found]
        if name == "main.place":  # delve stops behind the check of the stack's size
            assert ours[0][0] == said[name]["frames"][0][0]
            ours, theirs = ours[1:], said[name]["frames"][1:]
        else:
            theirs = said[name]["frames"]
        assert ours == theirs, name


def test_views_name_the_users_code(states: Held) -> None:
    said = answers()["delve"]
    view = states.do(cmd.ListGoroutines())
    assert view.goroutines is not None
    users = {one.user for one in view.goroutines.listed}
    # Of functions that were inlined delve says who has called them.
    assert {told["user"] for told in said.values()} - users <= {"os.(*File).Read"}
    (shown,) = [one for one in view.goroutines.listed if one.shown]
    assert (shown.id, shown.state, shown.start, shown.created) == (
        1,
        "running",
        "runtime.main",
        "",
    )
    assert {one.created for one in view.goroutines.listed if one.user.startswith("main.")} == {
        "",
        "main.main",
    }
    states.do(cmd.ListGoroutines(on=False))


def test_one_is_looked_at_in_place_of_its_thread(states: Held) -> None:
    one, found = by_function(states)["main.deep"]
    view = states.do(cmd.ChooseGoroutine(one.id))
    assert [frame.function for frame in view.frames] == [frame.function for frame in found]
    assert (view.pc, view.location) == (one.pc, view.location)
    assert view.location.startswith("runtime.gopark")
    assert {item.name for item in view.registers} == {"rip", "rsp", "rbp"}
    failure = states.fail(cmd.ChooseGoroutine(99))
    assert failure is not None
    assert failure.text == "No goroutine 99."
    view = states.do(cmd.ChooseThread(0))
    assert view.location.startswith("main.place")


def test_the_list_is_that_of_the_moment_looked_at(states: Held) -> None:
    def at_hand() -> list[tuple[int, str]]:
        return [(one.id, one.status) for one in listed(states).found]

    now, time = at_hand(), states.view.time
    states.do(cmd.ContinueBack())
    assert states.view.location.startswith("main.sleeps")
    before = at_hand()
    (running,) = [number for number, status in before if status == "running"]
    assert dict(now)[running] == "sleep"
    states.do(cmd.Seek(time))
    assert at_hand() == now


def test_nothing_in_memory_is_believed(states: Held) -> None:
    """Counts, addresses and texts that are wrong bound a list, and raise nothing."""
    session = states.control.session
    space, memory = session.seen, session.seen.memory
    module = space.modules.main
    assert module is not None
    runtime = go_file(module.image).runtime
    assert runtime is not None
    whole = listed(states)
    one = next(item for item in whole.found if not item.thread)
    array, count = struct.unpack("<QQ", memory.read(runtime.addresses["runtime.allgs"], 16))

    backtraces = Backtraces(session)

    def with_words(address: int, *words: int) -> GoroutineList:
        data = struct.pack(f"<{len(words)}Q", *words)
        before = memory.read(address, len(data))
        memory.poke(address, data)
        try:
            found = listed(states)
            for item in found.found:
                if item.address == one.address and not item.thread:
                    backtraces.parked(item)
            Goroutines(session).thread(session.machine.current)
            return found
        finally:
            memory.poke(address, before)

    allgs, allm = (runtime.addresses[name] for name in ("runtime.allgs", "runtime.allm"))
    endless = with_words(allgs, array, 1 << 63)
    assert endless.left_out > 1 << 62
    assert endless.why.endswith(f"the first {MOST} of {1 << 63} are looked at")
    assert with_words(allgs, 0x10, 3).left_out == 3
    assert with_words(allgs, array, 0) == GoroutineList()
    assert with_words(array, 0x10).why == "1 cannot be read"
    twice = with_words(array + 8, struct.unpack("<Q", memory.read(array, 8))[0])
    assert len(twice.found) == len(whole.found) - 1
    for name in ("sched.sp", "sched.pc", "m"):
        for value in (0, 1 << 63, one.sp + 4):
            assert len(with_words(one.address + runtime.g[name].offset, value).found) > 1
    status = with_words(one.address + runtime.g["atomicstatus"].offset, 77)
    assert any(item.state == "unknown(77)" for item in status.found)
    machine = struct.unpack("<Q", memory.read(allm, 8))[0]
    link = machine + runtime.m["alllink"].offset
    for value in (machine, 0x10, 1 << 63):
        assert len(with_words(link, value).found) == len(whole.found)
    for value in (0, 0x10):
        assert with_words(allm, value).found[0].id == whole.found[0].id
    texts = runtime.texts["runtime.waitReasonStrings"][0]
    reasons = [item.reason for item in with_words(texts, *(0x10, 1 << 40) * 27).found]
    assert any(reason.startswith("unknown(") for reason in reasons)
    assert listed(states) == whole
    assert count < MOST


def test_other_programs_have_none() -> None:
    with held(sample("x86_64", "structs")) as guest:
        with pytest.raises(CommandError, match="not one of Go"):
            listed(guest)
        assert guest.do(cmd.ListGoroutines()).goroutines is not None
        assert guest.view.goroutines is not None
        assert not guest.view.goroutines.listed
        assert "not one of Go" in guest.view.goroutines.why


def test_without_debug_information_they_are_not_known() -> None:
    with held(go_program("states", "-ldflags=-w")) as guest:
        guest.do(cmd.ToggleBreak("main.place"), cmd.Continue())
        with pytest.raises(CommandError, match="-ldflags=-w"):
            listed(guest)
        assert guest.view.frames[-1].function == "runtime.goexit"


@pytest.mark.slow
def test_stacks_join() -> None:
    """Frames go on behind signals, the scheduler's stack and panics, and end at goexit."""
    with held(go_program("stacks")) as guest:
        follow(guest, answers()["gdb"])


def follow(stacks: Held, said: list[str]) -> None:
    """Look at the stacks of a run at places in the runtime; `said`: gdb's at `main.rescued`."""
    stacks.do(cmd.ToggleBreak("runtime.sighandler"), cmd.Continue())
    names = [frame.title for frame in stacks.view.frames]
    assert names == [
        *("runtime.sighandler", "runtime.sigtrampgo", "runtime.sigtramp"),
        *("<signal handler called>", "main.spin", "main.main.func1", "runtime.goexit"),
    ]
    stacks.do(cmd.ToggleBreak("runtime.sighandler"), cmd.ToggleBreak("runtime.copystack"))
    stacks.do(cmd.Continue())
    names = [frame.function for frame in stacks.view.frames]
    assert names[:3] == ["runtime.copystack", "runtime.newstack", "runtime.morestack"]
    assert names[3] not in ("", names[2])
    assert names[-1] == "runtime.goexit"
    stacks.do(
        cmd.ToggleBreak("runtime.copystack"), cmd.ToggleBreak("runtime.stopTheWorldWithSema")
    )
    stacks.do(cmd.Continue())
    names = [frame.function for frame in stacks.view.frames]
    at = names.index("runtime.systemstack")
    assert names[at + 1] == "runtime.systemstack_switch"
    assert "runtime.GC" in names[at:]
    assert names[-3:] == ["main.main", "runtime.main", "runtime.goexit"]
    stacks.do(cmd.ToggleBreak("runtime.stopTheWorldWithSema"), cmd.ToggleBreak("main.rescued"))
    while not stacks.view.location.startswith("main.rescued"):
        stacks.do(cmd.Continue())
    names = [frame.function for frame in stacks.view.frames]
    assert names == [*said, "runtime.main", "runtime.goexit"]
