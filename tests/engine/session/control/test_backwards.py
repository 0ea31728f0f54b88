"""Motions backwards lead to where a run forwards has been."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from historykit import past, recorded
from sessionkit import SAMPLES

from engine.errors import CommandError
from engine.history.timeline import Moment
from engine.session.control.backwards import Backwards, StopPlace
from engine.session.guest.past import PastSession


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
