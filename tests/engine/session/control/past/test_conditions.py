"""The first and the last time that an expression becomes true, against a run step by step."""

from collections.abc import Callable

import pytest
from historykit import past, recorded
from sessionkit import SAMPLES

from engine.errors import CommandError, GuestFaultError
from engine.history.journal import Op
from engine.history.timeline import Moment
from engine.session.control.past.backwards import Backwards
from engine.session.control.past.conditions import Condition
from engine.session.guest.past import PastSession

Look = Callable[[], tuple[bool, tuple[tuple[int, int], ...]]]


def number(session: PastSession, address: int, size: int) -> int:
    return int.from_bytes(session.seen.memory.peek(address, size), "little")


def symbol(session: PastSession, name: str) -> tuple[int, int]:
    module = session.modules.main
    assert module is not None
    found = next(iter(module.symbols.find_all(name)))
    return found.address + module.bias, found.size


def lived(session: PastSession, tid: int, look: Look, *, own: bool) -> list[Moment]:
    """The moments at which a condition has become true, by single steps; those of one thread."""
    timeline = Backwards(session).timeline
    found, held = [], False
    while not timeline.ended:
        if not own or session.machine.current.tid == tid:
            holds = look()[0]
            if holds and not held:
                found.append(timeline.now())
            held = holds
        session.kernel.step()
    return found


def chain(backwards: Backwards, condition: Condition, most: int = 1000) -> list[Moment]:
    """The moments by the word that goes back, from the end on."""
    found: list[Moment] = []
    backwards.timeline.end()
    while len(found) < most:
        try:
            text = backwards.last_time(condition)
        except CommandError:
            break
        assert text.startswith(f"{condition.text} is true from ")
        assert condition.look()[0]
        found.append(backwards.timeline.now())
    return found


def remainder(session: PastSession) -> Look:
    """A few values of a counter that two threads count with."""
    counter, size = symbol(session, "counter")
    return lambda: (number(session, counter, size) % 31 == 3, ((counter, size),))


def noise(session: PastSession) -> Look:
    """Two variables, each of which may make it true."""
    counter, noisy = symbol(session, "counter"), symbol(session, "noise")
    return lambda: (
        number(session, *counter) & 8 != 0 and number(session, *noisy) & 4 != 0,
        (counter, noisy),
    )


def nothing(session: PastSession) -> Look:
    counter = symbol(session, "counter")
    return lambda: (number(session, *counter) == 0, (counter,))


@pytest.mark.parametrize(
    "make",
    [*(pytest.param(make, marks=pytest.mark.slow) for make in (remainder, noise)), nothing],
)
@pytest.mark.parametrize("arch", ["x86_64", pytest.param("aarch64", marks=pytest.mark.slow)])
def test_memory_of_threads(arch: str, make: Callable[[PastSession], Look]) -> None:
    with recorded(SAMPLES / arch / "race") as ran:
        with past(ran) as session:
            wanted = lived(session, 0, make(session), own=False)
        with past(ran) as session:
            backwards = Backwards(session)
            condition = Condition("EXPR", make(session), 1000, 1000)
            assert chain(backwards, condition) == wanted[::-1]
            end = Moment(len(ran.journal), session.cpu.blocks() + 1, 0)
            backwards.first_time(condition, end)
            assert backwards.timeline.now() == wanted[0]
            never = Condition("EXPR", lambda: (False, condition.look()[1]), 1000, 1000)
            with pytest.raises(CommandError, match="EXPR is true at no moment"):
                backwards.first_time(never, end)
            assert backwards.timeline.now() == wanted[0]


@pytest.mark.slow
@pytest.mark.parametrize(("arch", "register"), [("x86_64", "rbx"), ("aarch64", "x19")])
def test_registers_of_a_thread(arch: str, register: str) -> None:
    """Looked at in front of each instruction of the thread; with memory besides."""

    def make(session: PastSession) -> Look:
        counter = symbol(session, "counter")
        cpu = session.cpu

        def look() -> tuple[bool, tuple[tuple[int, int], ...]]:
            held = cpu.read_register(register)
            return held & 0xFFFFFFFF == number(session, *counter) and held != 0, (counter,)

        return look

    with recorded(SAMPLES / arch / "race") as ran:
        with past(ran) as session:
            wanted = lived(session, 1001, make(session), own=True)
            assert wanted
        with past(ran) as session:
            backwards = Backwards(session)
            condition = Condition("EXPR", make(session), 1001, 1000, (register,))
            assert chain(backwards, condition, 8) == wanted[::-1][:8]
            end = Moment(len(ran.journal), session.cpu.blocks() + 1, 0)
            backwards.first_time(condition, end)
            assert backwards.timeline.now() == wanted[0]


def test_bytes_of_a_system_call() -> None:
    """True behind the call, which is said; the bytes cannot be read before they are mapped."""
    guest = SAMPLES / "x86_64" / "lines"
    with recorded(guest, "foo", stdin=b"one foo\n") as ran, past(ran) as session:
        buffer = next(
            op[1]
            for entry in ran.journal
            for op in entry.ops
            if op[0] == Op.WRITE and b"foo" in bytes(op[2])
        )

        def look() -> tuple[bool, tuple[tuple[int, int], ...]]:
            try:
                return session.seen.memory.peek(buffer, 4) == b"one ", ((buffer, 4),)
            except GuestFaultError:
                return False, ((buffer, 4),)

        backwards = Backwards(session)
        backwards.timeline.end()
        end = Moment(len(ran.journal), session.cpu.blocks() + 1, 0)
        said = backwards.first_time(Condition("EXPR", look, 1000, 1000), end)
        assert said.startswith("EXPR is true from here on, by read(0, ")
        assert session.code_at(backwards.timeline.now().pc - 2)[:2] == b"\x0f\x05"
