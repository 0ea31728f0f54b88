"""The pane of memory: what was read is seen until it is read again."""

from controlkit import sample
from panekit import Bench, drive, until
from textual.pilot import Pilot

from engine.session import GuestConfig
from engine.session.browse.browser import Browser
from engine.session.protocol.commands import ReadMemory, ReadWords, ShowStack
from engine.session.protocol.views import (
    GuestView,
    MappingView,
    RegisterView,
    RunState,
    StackWord,
)
from tui.panes.memory import MemoryPane

STACK = 0x7FFF0000
PAGE = 4096


def view(
    moved: int = 0,
    state: RunState = RunState.STOPPED,
    stack: tuple[StackWord, ...] = (),
) -> GuestView:
    """Of a guest whose stack pointer stays where it is."""
    return GuestView(
        state,
        stack=stack,
        registers=(
            RegisterView("rsp", STACK, 64, "general"),
            RegisterView("rax", moved, 64, "general"),
        ),
        mappings=(MappingView(STACK, STACK + 2 * PAGE, "rw-p", "[stack]"),),
    )


def words(value: int, count: int = 32) -> tuple[StackWord, ...]:
    return tuple(StackWord(STACK + 8 * n, value) for n in range(count))


def pane_of_memory() -> MemoryPane:
    return MemoryPane(Browser(GuestConfig(str(sample("x86_64", "recursion")))))


def test_words_are_seen_until_others_are_told() -> None:
    async def steps(pilot: Pilot[None], app: Bench) -> None:
        def first() -> str:
            return app.rows()[1].strip("│┃ ").split("→")[0].strip(" ►")

        asked = [ShowStack(32), ReadWords(STACK, 16), ReadWords(STACK + 0x80, 16)]
        pane.show(view())
        await until(pilot, lambda: app.asked() == asked)
        assert first().endswith("...")
        pane.remember_words(STACK, words(0x11, 16))
        await until(pilot, lambda: "0x11" in first())

        pane.show(view(moved=1))
        await until(pilot, lambda: app.asked() == 2 * asked)
        assert "0x11" in first(), "and seen until the answer comes"
        assert not pane.source.remember_words(STACK, words(0x11, 16)), "nothing to paint"
        pane.show(view(moved=2))
        await until(pilot, lambda: app.asked() == 3 * asked)
        pane.remember_words(STACK, words(0x22, 2))
        await until(pilot, lambda: "0x22" in first())
        assert "..." in app.rows()[3], "what cannot be read any more is not known"

        pane.show(view(moved=2, state=RunState.ENDED))  # nothing of before
        await until(pilot, lambda: first().endswith("..."))

    pane = pane_of_memory()
    drive(pane, (80, 24), steps)


def test_words_that_come_with_a_view_are_not_asked_for() -> None:
    async def steps(pilot: Pilot[None], app: Bench) -> None:
        def first() -> str:
            return app.rows()[1].strip("│┃ ").split("→")[0].strip(" ►")

        pane.show(view())
        await until(pilot, lambda: len(app.asked()) == 3)
        pane.show(view(moved=1, stack=words(0x11)))
        await until(pilot, lambda: "0x11" in first())
        assert all("0x11" in row for row in app.rows()[1:-1]), "all that is in sight"
        assert len(app.asked()) == 3
        pane.show(view(moved=2, stack=words(0x22, 2)))
        await until(pilot, lambda: "0x22" in first())
        assert "..." in app.rows()[3], "no more of it can be read"
        await pilot.resize_terminal(80, 50)
        await until(pilot, lambda: ShowStack(48) in app.asked())
        pane.action_mode()
        pane.show(view(moved=3, stack=words(0x33)))
        await until(pilot, lambda: ShowStack(0) in app.asked())

    pane = pane_of_memory()
    drive(pane, (80, 24), steps)


def test_pages_are_seen_until_others_are_told() -> None:
    async def steps(pilot: Pilot[None], app: Bench) -> None:
        def line() -> str:
            return next((row for row in app.rows() if f"{STACK:012x}" in row), "")

        def questions() -> int:
            return app.asked().count(ReadMemory(STACK, PAGE))

        pane.show(view())
        pane.locate(STACK)
        await until(pilot, lambda: questions() == 1)
        pane.remember(STACK, ((STACK, b"\xaa" * PAGE),))
        await until(pilot, lambda: "aa aa" in line())

        pane.show(view(moved=1))
        await until(pilot, lambda: questions() == 2)
        assert "aa aa" in line()
        assert not pane.source.remember(STACK, ((STACK, b"\xaa" * PAGE),))
        pane.show(view(moved=2))
        await until(pilot, lambda: questions() == 3)
        pane.remember(STACK, ())  # it is mapped no longer
        await until(pilot, lambda: bool(line()) and "aa" not in line())

    pane = pane_of_memory()
    drive(pane, (80, 24), steps)
