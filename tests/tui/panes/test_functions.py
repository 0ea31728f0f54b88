"""The pane of functions: alone, in an interface, and over a kernel image."""

import pytest
from controlkit import sample
from flowkit import LARGE, SMALL, User, flow
from kernelimages import AMD64_61, image_path

from engine.session.browse import Browser, FunctionList
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


def test_parts_and_stubs_are_folded_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["__pfx_begin", "begin", "begin.cold", "__cfi_middle", "middle", "puts@plt", "__own"]
    listed = FunctionList()
    for number, name in enumerate(names):
        listed._add(name, 0x400720 + number, 1, ".text", "")
    monkeypatch.setattr(Browser, "functions", listed)

    async def steps(user: User) -> None:
        await user.press("V")
        pane = user.panes.functions
        await user.until(lambda: pane.source.count == len(names), "functions")
        await user.press("j", "j", "j", "j", "space")  # the cursor is at "middle"

        def shown() -> list[str]:
            return [pane.source.plain(n, pane.lines.looks) for n in range(pane.source.count)]

        assert shown() == ["begin", "middle", "__own"]
        assert shown()[pane.lines.cursor] == "middle"
        await user.shows("4 folded")
        await user.press("ampersand")
        await user.type("begin")
        await user.press("enter")
        assert shown() == ["begin"]
        await user.press("space")
        assert shown() == ["__pfx_begin", "begin", "begin.cold"]

    flow(steps, guest=sample("x86_64", "recursion"))


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


@pytest.mark.slow
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_probe_that_the_images_kernel_refuses_is_told_of_before_and_after(
    size: tuple[int, int],
) -> None:
    """An entry of assembly without a site of ftrace: Enter shows why, and once more places it."""

    async def steps(user: User) -> None:
        await user.ready()
        pane = user.panes.functions
        await user.until(lambda: pane.source.count > 40_000, "functions")
        await user.press("p", "enter")
        await user.shows("Linux 6.1.192 refuses it (EINVAL)")
        assert not user.probes
        await user.press("enter")
        await user.until(lambda: user.probes, "a probe")
        assert "startup_64 is notrace" in user.probes[0].refused
        await user.press("8")
        await user.shows("✗ refused")

    flow(steps, size=size, guest=str(image_path(AMD64_61)))
