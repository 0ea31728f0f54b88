"""Every pane shows the guest of one moment: whatever is done, they agree with memory."""

import re

import pytest
from assembling import assembles
from controlkit import moods, sample
from flowkit import User, flow
from truekit import agree, session

from engine.session.protocol import commands as cmd
from engine.session.protocol.views import RunState
from tui.keymap import ACTIONS

NOT_HERE = {
    "leave": "ends the interface",
    "suspend_process": "leaves the terminal",
    "help": "covers the panes",
    "lesson": "there is none; tests of lessons press its keys",
    "why": "covers the panes",
    "correct": "opens a dialog",
    "filter_events": "opens a line, and changes one list",
    "probe": "opens a dialog; a definition is placed by command",
    "command": "the walk types commands all the time",
    "copy": "shows nothing",
    "copy_definition": "shows nothing",
    "faster": "changes the speed alone",
    "slower": "changes the speed alone",
    "play": "is the phases of a hit by a timer",
    "play_all": "the same",
    "play_back": "the same",
    "graph": "opens a line to type in",
    "interrupt": "the guest stands",
    **dict.fromkeys(
        (
            *("step_back", "over_back", "line_back", "finish_back", "continue_back"),
            *("to_moment", "event_before", "event_behind", "earlier", "later"),
            *("mark", "go_to_moment", "branch"),
        ),
        "goes back in a run that is recorded: this one is not",
    ),
}
"""Actions that the walk leaves out, and why."""
KEYS = {action.id: action.keys.split(",")[0] for action in ACTIONS}


class Walk:
    """Presses keys of actions, and compares after each."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.done: set[str] = set()

    async def act(self, action: str, typed: str = "") -> None:
        """Do an action, with text for the line that it opens."""
        user = self.user
        self.done.add(action)
        await user.press(KEYS[action])
        if typed:
            await user.type(typed)
            await user.press("enter")
        await agree(user, action)

    async def key(self, key: str) -> None:
        """Press the key of a pane."""
        await self.user.press(key)
        await agree(self.user, key, told=False)

    async def post(self, command: cmd.Command) -> None:
        """Have something carried out."""
        self.user.app.post(command)
        await agree(self.user, str(command))


async def all_actions(user: User) -> None:
    walk = Walk(user)
    await agree(user, "at the start")
    await user.command("probe fibonacci")
    await user.until(lambda: user.probes)
    await agree(user, "a probe")
    await user.press("8", "b", "1")
    await walk.act("go_on")
    await user.until(lambda: user.view.state is RunState.STOPPED)
    for _ in range(4):
        await walk.act("phase")
        assert user.view.hit is not None
    await walk.act("phase_back")
    await walk.act("phase")
    await walk.act("step")
    for action in ("step", "step_over", "phase", "step_line", "next_line"):
        await walk.act(action)
    await walk.act("print", "1")
    await walk.act("up_frame")
    await walk.act("breakpoint")
    await walk.act("down_frame")
    for key in "XBSB":
        await walk.key(key)
    await walk.act("assemble", "nop")
    await walk.act("undo")
    await walk.act("redo")
    await walk.act("undo")
    await walk.key("X")
    await walk.act("go_to", "main")
    for key in ("5", "m", "m", "m"):
        await walk.key(key)
    await walk.act("zoom")
    await walk.act("zoom")
    for action in ("bar_left", "bar_right", "bar_up", "bar_down", "bars"):
        await walk.act(action)
    await walk.act("next_tab")
    await walk.act("previous_tab")
    await walk.key("1")
    sp = session(user).cpu.read_register(session(user).arch.roles.sp)
    await walk.post(cmd.WriteMemory(sp, b"\1\2\3\4\5\6\7\x08"))
    await walk.post(cmd.Undo())
    roles = session(user).arch.roles
    names = [r.name for r in session(user).arch.registers if r.group == "general"]
    general = next(name for name in names[1:] if name not in (roles.pc, roles.sp))
    await walk.post(cmd.WriteRegister(general, 0x1234))
    await walk.post(cmd.Undo())
    await walk.act("finish")
    await walk.act("go_on")
    await walk.act("go_to", "factorial")
    await walk.act("run_to")
    for probe in user.probes:
        user.app.post(cmd.Delete((probe.row.id,)))
    await walk.act("go_on")
    await user.until(lambda: user.view.state is RunState.ENDED, "the end")
    await agree(user, "the end")
    await walk.act("restart")
    await user.until(lambda: user.view.state is RunState.READY)
    await agree(user, "afresh")
    assert walk.done | NOT_HERE.keys() == KEYS.keys()


@assembles
@pytest.mark.slow
def test_after_every_action_all_panes_agree_with_the_guest() -> None:
    flow(all_actions)


@assembles
@pytest.mark.slow
@pytest.mark.parametrize("arch", ["aarch64", "ia64", "riscv64"])
def test_the_same_elsewhere(arch: str) -> None:
    flow(all_actions, guest=sample(arch, "recursion"))


def test_panes_of_a_guest_that_waits_or_runs() -> None:
    async def steps(user: User) -> None:
        await user.press("c")
        await user.state(RunState.WAITING)
        await agree(user, "in read")
        await user.typing()
        await user.type("hello")
        await user.press("enter")
        await user.state(RunState.ENDED)
        await agree(user, "the end")
        assert re.search("2 Registers \N{BOX DRAWINGS LIGHT HORIZONTAL}+ at the end", user.screen)

    flow(steps, guest=moods("x86_64"), args=("r",))


def test_panes_of_a_guest_that_runs_are_of_the_last_stop() -> None:
    async def steps(user: User) -> None:
        await user.press("c")
        await user.state(RunState.RUNNING)
        past = ("code", "registers", "backtrace", "machinery", "memory")
        for pane in user.panes:
            assert pane.has_class("-past") is (pane.id in past)
        assert user.screen.count("last stop") == 4, "of those that are seen"
        await user.press("ctrl+c")
        await user.state(RunState.STOPPED)
        await agree(user, "interrupted")
        assert "last stop" not in user.screen

    flow(steps, guest=moods("x86_64"), args=("s",))
