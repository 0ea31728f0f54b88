"""Runs, steps, stops and slow motion by keys."""

import pytest
from controlkit import moods, sample
from flowkit import User, both, flow, sizes
from textual.strip import Strip

from engine.session.protocol.views import RunState
from tui.panes.code_lines import CodeLine
from tui.panes.code_view import CodeView


@sizes
@both
def test_run_step_over_and_to_the_cursor(arch: str, size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        await user.command("b main")
        await user.until(lambda: user.probes)
        await user.press("c")
        await user.until(lambda: user.view.location == "main+0x0")
        assert user.view.reason == "breakpoint 1: main"  # what was set may be said after it
        start = user.view.pc
        await user.press("i")
        await user.until(lambda: user.view.pc != start)
        second = user.view.pc
        await user.press("o")
        await user.until(lambda: user.view.pc != second)
        await user.command("go fibonacci")
        await user.press("greater_than_sign")
        await user.until(lambda: user.view.location == "fibonacci+0x0")
        await user.press("f")
        await user.until(lambda: user.view.reason == "finished")
        assert user.view.location.startswith("main+")
        line = user.view.line
        await user.press("n")
        await user.until(lambda: user.view.line != line)
        await user.press("s")
        await user.until(lambda: user.view.location.partition("+")[0] != "fibonacci")
        await user.press("c")
        await user.state(RunState.ENDED)
        await user.says("exited with 0")
        await user.press("r")
        await user.state(RunState.READY)
        assert user.view.location.startswith("_start")

    flow(steps, guest=sample(arch, "recursion"), size=size)


def test_a_loop_is_stopped_with_ctrl_c() -> None:
    async def steps(user: User) -> None:
        await user.press("c")
        await user.state(RunState.RUNNING)
        await user.press("ctrl+c")
        await user.state(RunState.STOPPED)
        await user.press("ctrl+c")
        await user.says("not running")

    flow(steps, guest=moods("x86_64"), args=("s",))


def test_what_the_guest_reads_is_typed_in_its_pane() -> None:
    async def steps(user: User) -> None:
        await user.press("c")
        await user.state(RunState.WAITING)
        await user.shows("in read()")
        await user.typing()
        await user.press(*"hello")
        await user.press("enter")
        await user.state(RunState.ENDED)
        await user.shows("result 6")

    flow(steps, guest=moods("x86_64"), args=("r",))


def test_a_guest_that_is_killed() -> None:
    async def steps(user: User) -> None:
        await user.press("c")
        await user.state(RunState.ENDED)
        await user.shows("SIGSEGV")
        await user.press("3")
        await user.press("r", "c")
        await user.state(RunState.ENDED)
        assert user.view.exit_code == 139

    flow(steps, guest=sample("aarch64", "crash"))


@sizes
def test_slow_motion_by_hand(size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        await user.command("b fibonacci")
        await user.until(lambda: user.probes)
        await user.press("c")
        await user.until(lambda: user.view.location == "fibonacci+0x0")
        await user.press("4", "z")
        names = []
        for _ in range(12):
            hit = user.view.hit
            done = len(hit.done) if hit is not None and hit.next else 0
            await user.press("full_stop")
            await user.until(
                lambda done=done: user.view.hit is not None and len(user.view.hit.done) > done
            )
            hit = user.view.hit
            assert hit is not None
            names.append(hit.done[-1].name)
            if not hit.next:
                break
        assert names[:3] == ["armed", "trap", "pre-handlers"]
        assert names[-1] == "resume"
        assert "resume" in user.screen
        await user.press("z")
        await user.press("full_stop")
        await user.until(lambda: user.view.hit is None)

    flow(steps, size=size)


def test_slow_motion_played() -> None:
    async def steps(user: User) -> None:
        await user.command("b fibonacci")
        await user.until(lambda: user.probes)
        await user.press("c")
        await user.until(lambda: user.view.location == "fibonacci+0x0")
        # Speeds are told while the guest stands: the end of a motion has a message of its own.
        await user.press("plus", "plus", "plus", "plus", "minus")
        await user.says("8 phases a second")
        await user.press("plus")
        await user.says("16 phases a second")
        await user.press("P")
        await user.until(lambda: user.view.hit is not None and not user.view.hit.next)
        await user.press("P")
        assert not user.app.controls.slow_motion.playing

    flow(steps)


def test_a_step_paints_the_lines_of_code_that_look_different(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    painted: list[int] = []
    counts: list[int] = []
    paint = CodeView._paint

    def counted(view: CodeView, line: CodeLine, at_cursor: bool, targeted: bool) -> Strip:
        painted.append(line.row.address)
        return paint(view, line, at_cursor, targeted)

    async def steps(user: User) -> None:
        await user.press("i")
        await user.until(lambda: user.view.reason == "stepped")
        assert user.screen
        monkeypatch.setattr(CodeView, "_paint", counted)
        for _ in range(4):
            pc = user.view.pc
            await user.press("i")
            await user.until(lambda pc=pc: user.view.pc != pc)
            assert user.screen
            if abs(user.view.pc - pc) > 15:
                break  # a call: another part of the code
            counts.append(len(set(painted)))
            painted.clear()
        # Where pc was and is, and what comes into sight; a title that comes late paints all once.
        assert min(counts) < 12, counts

    flow(steps)
