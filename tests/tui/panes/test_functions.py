"""The pane of functions: alone, in an interface, and over a kernel image."""

import pytest
from controlkit import sample
from flowkit import LARGE, User, flow
from kernelimages import AMD64_61, image_path

from engine.session.protocol.views import RunState


def test_functions_are_looked_through_and_lead_to_their_code() -> None:
    async def steps(user: User) -> None:
        await user.ready()
        await user.press("V")
        pane = user.panes.functions
        await user.until(lambda: pane.source.count, "functions")
        everything = pane.source.count
        await user.press("ampersand")
        await user.type("f*i*")
        await user.press("enter")
        await user.until(lambda: 0 < pane.source.count < everything, "fewer")
        names = [pane.source.plain(n, pane.lines.looks) for n in range(pane.source.count)]
        assert names == ["factorial", "fibonacci"]
        await user.press("j", "enter")
        assert user.focus == "code"
        await user.shows("fibonacci+0x0")
        await user.press("V", "b", "c")
        await user.state(RunState.STOPPED)
        assert user.view.location == "fibonacci+0x0"
        await user.press("V", "ampersand")
        await user.type("nosuch")
        await user.press("enter")
        await user.shows("no function matches")

    flow(steps, size=LARGE, guest=sample("x86_64", "recursion"))


@pytest.mark.slow
def test_a_kernel_image_opens_with_its_functions_and_calls_them() -> None:
    async def steps(user: User) -> None:
        await user.ready()
        assert user.focus == "functions"
        head, *_, foot = user.screen.splitlines()
        assert "loaded" in head
        assert "?" not in head, "pc is nowhere"
        assert "continue" not in foot, "no function is called"
        assert "break" in foot
        pane = user.panes.functions
        await user.until(lambda: pane.source.count > 40_000, "functions")
        await user.press("ampersand")
        await user.type("kstrdup")
        await user.press("enter")
        await user.shows("F kstrdup")
        await user.press("j", "k", "y")
        await user.shows("Linux 6.1.192: ftrace")
        await user.shows("lines below")
        await user.press("space", "space", "space")
        await user.shows("j k: the end")
        await user.press("escape", "b")
        await user.until(lambda: user.probes, "a breakpoint")
        await user.command('call kstrdup("abc", GFP_KERNEL)')
        await user.state(RunState.STOPPED)
        assert user.view.location == "kstrdup+0x0"
        await user.until(lambda: "continue" in user.screen.splitlines()[-1])
        await user.press("1", "f")
        await user.until(lambda: " = (char *) 0xffff8880" in user.view.reason, "the result")
        await user.command("call strlen(0)")
        await user.until(lambda: "cannot go on" in user.view.reason, "the failure")
        await user.press("p")
        await user.type("p:m/r vfs_read file count")
        await user.shows("refuses it (EINVAL)")
        await user.press("enter")
        await user.until(lambda: len(user.probes) == 2, "a probe")
        await user.command("copyas perf")
        await user.until(lambda: user.clipboard, "a copy")
        assert user.clipboard == "perf probe 'm:r=vfs_read file=%di:x64 count=%dx:u64'"

    flow(steps, size=LARGE, guest=str(image_path(AMD64_61)))
