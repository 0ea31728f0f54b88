"""Return probes by keys: stops at both ends of a call, the trampoline, other unwinders."""

import asyncio

import pytest
from archkit import FIRST_COMPILED
from controlkit import sample
from flowkit import LARGE, User, flow

from engine.session import GuestConfig
from engine.session.protocol.views import RunState
from tui.app import KprobeApp

both = pytest.mark.parametrize("arch", FIRST_COMPILED)
TRAMPOLINE = "kretprobe_trampoline"


@both
def test_other_unwinders_in_the_pane_of_the_backtrace(arch: str) -> None:
    async def steps(user: User) -> None:
        await user.command("b fibonacci+8")
        await user.until(lambda: len(user.probes) == 2)
        for _ in range(3):
            seen = user.view
            await user.press("c")
            await user.until(lambda seen=seen: user.view.time > seen.time)
            await user.state(RunState.STOPPED)
        await user.press("3")
        assert user.panes.backtrace.parts == ("",)
        for name in ("naive", "kernel-2005", "kernel", "owens"):
            await user.press("w")
            await user.until(lambda name=name: user.view.unwinder == name)
            await user.says(f"{name}: ")
            assert user.panes.backtrace.parts == (name,)
            lines = user.panes.backtrace.lines
            shown = [lines.plain(n) for n in range(lines.line_count)]
            shown = [text for text in shown if text[:3].strip().isdigit()]  # no variables
            marked = [text[3:5] == "! " for text in shown]
            assert marked == [frame.differs for frame in user.view.frames], shown
            if name == "owens":
                assert any("! " + TRAMPOLINE in text for text in shown)
        await user.press("w")
        await user.until(lambda: user.view.unwinder == "full")
        assert user.panes.backtrace.parts == ("",)

    flow(steps, guest=sample(arch, "recursion"), definitions=("r:demo/f fibonacci",))


@both
def test_the_trampoline_phase_by_phase(arch: str) -> None:
    app = KprobeApp(
        GuestConfig(sample(arch, "recursion")),
        definitions=("r:demo/f fibonacci",),
        kernel_rules=True,
    )

    async def steps(user: User) -> None:
        await user.until(lambda: user.probes)
        await user.command("stop 1")
        await user.until(lambda: user.probes[0].row.stops)
        while not user.view.reason.endswith(" returns"):
            seen = user.view
            await user.press("c")
            await user.until(lambda seen=seen: user.view.time > seen.time)
            await user.state(RunState.STOPPED)
        real = user.view.pc
        assert user.view.raw_pc != real
        await user.press("4")
        names: list[str] = []
        while names[-1:] != ["resume"]:
            done = len(names)
            await user.press("full_stop")
            await user.until(
                lambda done=done: user.view.hit is not None and len(user.view.hit.done) == done + 1
            )
            hit = user.view.hit
            assert hit is not None
            names.append(hit.done[-1].name)
            assert user.view.pc == real
            assert f"goes on at {real:x}" in user.screen
            assert user.panes.machinery.parts == (TRAMPOLINE, "emulated")
        assert names[0] == "armed"
        assert "emulated" in names
        assert user.view.raw_pc == real

    async def run() -> None:
        async with app.run_test(size=LARGE) as pilot:
            user = User(app, pilot)
            await user.ready()
            await steps(user)

    asyncio.run(run())
