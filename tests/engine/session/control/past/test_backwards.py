"""Motions backwards lead to where a run forwards has been."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cguest import compiled_from
from historykit import past, recorded
from sessionkit import SAMPLES

from engine.errors import CommandError
from engine.guest.watched import WatchedRange
from engine.history.journal import Op
from engine.history.timeline import Moment
from engine.session.control.past.backwards import Backwards
from engine.session.control.past.search import StopPlace
from engine.session.guest.past import PastSession
from engine.session.guest.watchpoints import Watch


@contextmanager
def opened(name: str) -> Iterator[tuple[PastSession, Backwards]]:
    with recorded(SAMPLES / name) as ran, past(ran) as session:
        yield session, Backwards(session)


def forward(session: PastSession, backwards: Backwards, count: int) -> list[Moment]:
    """The next moments, one instruction after the other."""
    found = []
    for _ in range(count):
        found.append(backwards.timeline.now())
        session.kernel.step()
        if session.machine.exit is not None:
            break
    return found


@pytest.mark.parametrize("name", ["x86_64/structs", "aarch64/crash", "ia64/recursion"])
def test_instructions(name: str) -> None:
    with opened(name) as (session, backwards):
        backwards.timeline.seek_clock(20)
        seen = forward(session, backwards, 50)
        backwards.timeline.seek(seen[-1])
        for moment in reversed(seen[:-1]):
            backwards.step()
            assert backwards.timeline.now() == moment


def test_the_first_instruction() -> None:
    with opened("x86_64/words") as (session, backwards):
        session.kernel.step()
        backwards.step()
        first = backwards.timeline.now()
        with pytest.raises(CommandError, match="No more reverse-execution history"):
            backwards.step()
        assert backwards.timeline.now() == first


def address_of(session: PastSession, name: str) -> int:
    found = session.probes().where(name)
    assert found is not None
    return found


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_stops(arch: str) -> None:
    """All hits of a place backwards are those forwards."""
    with opened(f"{arch}/structs") as (session, backwards):
        timeline = backwards.timeline
        timeline.end()
        end = timeline.now()
        place = StopPlace(address_of(session, "deposit"), lambda: True, "breakpoint 1")
        hits: list[Moment] = []
        timeline.start()
        while backwards.to_next((place,), end) == "breakpoint 1":
            hits.append(timeline.now())
        assert len(hits) > 2
        assert timeline.ended or timeline.now() == end
        for moment in reversed(hits):
            assert backwards.to_last((place,)) == "breakpoint 1"
            assert timeline.now() == moment
        assert backwards.to_last((place,)) == ""
        assert timeline.now().clock == 0
        timeline.seek_clock(hits[0].clock)
        assert timeline.now() == hits[0]  # where it stands already is no hit
        assert backwards.to_next((place,), end) == "breakpoint 1"
        assert timeline.now() == hits[1]
        assert session.memory.read(place.address, 1) == session.code_at(place.address)[:1]


@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
def test_calls(arch: str) -> None:
    """The call of a function at any depth of a recursion; a call that has returned is one step."""
    with opened(f"{arch}/recursion") as (session, backwards):
        timeline = backwards.timeline
        entry = address_of(session, "fibonacci")
        timeline.end()
        end = timeline.now()
        timeline.start()
        seen = 0

        def fifth() -> bool:
            nonlocal seen
            seen += 1
            return seen == 5

        assert backwards.to_next((StopPlace(entry, fifth, "there"),), end) == "there"
        depth, calls = session.cpu.read_register(session.arch.roles.sp), []
        for _ in range(4):
            backwards.finish()
            calls.append(timeline.now())
            sp = session.cpu.read_register(session.arch.roles.sp)
            assert sp >= depth
            depth = sp
            insn = session.disassembler.decode(calls[-1].pc, session.code_at(calls[-1].pc))[0]
            assert session.arch.is_call(insn)
        # From behind the call back over it.
        behind = calls[-1].pc + insn.size
        assert backwards.to_next((StopPlace(behind, lambda: True, "behind"),), end) == "behind"
        while session.cpu.read_register(session.arch.roles.sp) != depth:
            assert backwards.to_next((StopPlace(behind, lambda: True, "behind"),), end)
        backwards.step_over()
        assert timeline.now().pc == calls[-1].pc
        assert session.cpu.read_register(session.arch.roles.sp) == depth


_BEHIND_A_CALL = """
__asm__(".text\\n"
        ".type first, @function\\n"
        "first: call leaves\\n"
        ".size first, .-first\\n"
        ".type behind, @function\\n"
        "behind: nop\\n ret\\n"
        ".size behind, .-behind\\n"
        ".type leaves, @function\\n"
        "leaves: add $8, %rsp\\n ret\\n"
        ".size leaves, .-leaves\\n"
        ".type calls, @function\\n"
        "calls: push %r12\\n lea behind(%rip), %r12\\n call *%r12\\n"
        "after: pop %r12\\n ret\\n"
        ".size calls, .-calls\\n"
        ".type through, @function\\n"
        "through: call *pointer(%rip)\\n"
        "passed: ret\\n"
        ".size through, .-through\\n"
        ".data\\n pointer: .quad behind\\n .text\\n");
void first(void);
void behind(void);
void calls(void);
void through(void);
int main(void) { first(); behind(); calls(); for (int i = 0; i < 3; i++) through(); }
"""


@contextmanager
def behind_calls(folder: Path) -> Iterator[tuple[PastSession, Backwards]]:
    source = folder / "behind.c"
    source.write_text(_BEHIND_A_CALL)
    program = compiled_from(source, "x86_64")
    with recorded(program) as ran, past(ran) as session:
        backwards = Backwards(session)
        backwards.timeline.end()
        yield session, backwards


def test_a_function_behind_a_call_that_never_returns(tmp_path: Path) -> None:
    """The call in front of its first instruction is not what has come there."""
    with behind_calls(tmp_path) as (session, backwards):
        timeline = backwards.timeline
        place = StopPlace(address_of(session, "behind"), lambda: True, "there")
        end = timeline.now()
        timeline.start()
        assert backwards.to_next((place,), end) == "there"
        backwards.step_over()
        symbol = session.seen.modules.locate(timeline.now().pc).symbol
        assert symbol is not None
        assert symbol.name == "main"


def test_a_call_with_a_prefix(tmp_path: Path) -> None:
    """It looks like a call without it."""
    with behind_calls(tmp_path) as (session, backwards):
        after = address_of(session, "after")
        assert backwards.to_last((StopPlace(after, lambda: True, "there"),)) == "there"
        backwards.step_over()
        assert backwards.timeline.now().pc == after - 3


def test_a_call_through_memory(tmp_path: Path) -> None:
    """No kprobe may stand there; each is stepped over, and stopped at."""
    with behind_calls(tmp_path) as (session, backwards):
        timeline = backwards.timeline
        end = timeline.now()
        passed, call = address_of(session, "passed"), address_of(session, "through")
        there = StopPlace(passed, lambda: True, "there")
        calls = []
        for _ in range(3):
            assert backwards.to_last((there,)) == "there"
            backwards.step_over()
            calls.append(timeline.now())
        assert {moment.pc for moment in calls} == {call}
        assert backwards.to_last((there,)) == ""
        for moment in reversed(calls):
            assert backwards.to_next((StopPlace(call, lambda: True, "it"),), end) == "it"
            assert timeline.now() == moment


def test_lines() -> None:
    with opened("x86_64/structs") as (session, backwards):
        timeline = backwards.timeline
        timeline.end()
        end = timeline.now()
        timeline.start()
        place = StopPlace(address_of(session, "deposit"), lambda: True, "there")
        assert backwards.to_next((place,), end) == "there"
        backwards.line(over=True)
        module = session.modules.main
        assert module is not None
        line = module.line_at(timeline.now().pc)
        assert line is not None
        assert line[0].endswith("structs.c")
        name = module.symbol_at(timeline.now().pc)
        assert name is not None
        assert name.name == "transfer"


def no_write(backwards: Backwards, cell: int) -> str:
    """Go to the last write of a cell; why that cannot be done."""
    try:
        backwards.last_write(cell, 8)
    except CommandError as error:
        return str(error)
    return ""


def writes(session: PastSession, address: int, size: int, end: int) -> list[Moment]:
    """The instructions that write to memory, by a run forwards with a watchpoint."""
    kernel, found = session.kernel, []
    timeline = Backwards(session).timeline
    watch = Watch(lambda event: found.append(event.pc), [WatchedRange(address, size)])
    session.watchpoints.add([watch])
    moments: list[Moment] = []
    while session.machine.exit is None and session.cpu.blocks() < end:
        before = timeline.now()
        kernel.step()
        moments += [before] * bool(found)
        found.clear()
    session.watchpoints.remove([watch])
    return moments


@pytest.mark.parametrize("arch", ["x86_64", pytest.param("aarch64", marks=pytest.mark.slow)])
def test_last_writes(arch: str) -> None:
    """Of cells of the stack and of data: each write before another, and what wrote."""
    choose = random.Random(7)
    with recorded(SAMPLES / arch / "words") as ran:
        with past(ran) as session:
            backwards = Backwards(session)
            backwards.timeline.seek_clock(300)
            sp = session.cpu.read_register(session.arch.roles.sp)
            cells = [sp + choose.randrange(-16, 24) * 8 for _ in range(3)]
        for cell in cells:
            with past(ran) as session:
                wanted = writes(session, cell, 8, 300)
            with past(ran) as session:
                backwards = Backwards(session)
                backwards.timeline.seek_clock(300)
                got = []
                while not (ended := no_write(backwards, cell)):
                    got.append(backwards.timeline.now())
                assert "nothing has written" in ended
            end = [moment for moment in wanted if moment < Moment(1 << 40, 300, 0)]
            assert got == sorted(set(end), reverse=True)


def test_a_write_by_a_call() -> None:
    """The return address is written in the tick that the call ends."""
    with opened("x86_64/structs") as (session, backwards):
        timeline = backwards.timeline
        entry, before = address_of(session, "deposit"), timeline.now()
        while timeline.now().pc != entry:
            before = timeline.now()
            session.kernel.step()
        assert backwards.last_write(session.cpu.read_register("rsp"), 8) == ""
        assert timeline.now() == before
        assert session.code_at(before.pc)[:1] == b"\xe8"


def test_a_write_by_a_system_call() -> None:
    """The call's own instruction is the place."""
    guest = SAMPLES / "x86_64" / "lines"
    with recorded(guest, "foo", stdin=b"one foo\n") as ran, past(ran) as session:
        backwards = Backwards(session)
        backwards.timeline.end()
        read = next(
            op
            for entry in ran.journal
            for op in entry.ops
            if op[0] == Op.WRITE and b"foo" in op[2]
        )
        assert backwards.last_write(read[1], 3).startswith("read(0, ")
        pc = backwards.timeline.now().pc
        assert session.code_at(pc)[:2] == b"\x0f\x05"
