"""The things that a guest asks for in vain are told when it asks, not only at its end."""

from pathlib import Path

import pytest
from compiled import build
from controlkit import held
from flowkit import User, flow

from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import RunState

SOURCE = r"""
#include <fcntl.h>
#include <unistd.h>
#include <sys/syscall.h>
__attribute__((noinline)) void asked(void) { asm volatile(""); }
int main(int argc, char **argv)
{
    char byte;
    syscall(1900);
    syscall(1900);
    asked();
    open(argv[1], O_RDONLY);
    for (int number = 2000; number < 2015; number++)
        syscall(number);
    if (argc < 3)
        read(0, &byte, 1);
    return 101;
}
"""


@pytest.fixture
def guest(tmp_path: Path) -> tuple[str, str]:
    secret = tmp_path / "secret"
    secret.write_text("kept from the guest")
    return str(build(tmp_path, "vain", SOURCE, "-static", "-O1")), str(secret)


def test_they_are_told_once_and_when_they_happen(guest: tuple[str, str]) -> None:
    program, secret = guest
    call = "not supported: system call number 1900"
    with held(program, secret, "on") as one:
        assert one.view.troubles == ""
        one.do(cmd.ToggleBreak("asked"), cmd.Continue())
        told = [line for event in one.all(ev.Remark) for line in event.lines]
        assert told == [call]
        assert one.view.troubles == "1 unsupported"
        one.do(cmd.Continue())
        assert one.view.state is RunState.ENDED
        told = [line for event in one.all(ev.Remark) for line in event.lines]
        assert told.count(call) == 1
        assert f"not visible: {secret}  (--share {secret} shows it)" in told
        assert len([line for line in told if "number 20" in line]) == 9, "ten of a kind"
        assert one.view.troubles == "16 unsupported, 1 path refused"
        one.do(cmd.Restart())
        assert one.view.troubles == ""


def test_the_screen_has_them_while_the_guest_waits(guest: tuple[str, str]) -> None:
    program, secret = guest

    async def steps(user: User) -> None:
        await user.press("c")
        await user.state(RunState.WAITING)
        await user.shows("16 unsupported, 1 path refused")
        await user.press("escape", "7", "z")  # the keys were the guest's
        await user.shows("system call number 1900")
        await user.shows("not visible: /")
        await user.press("enter")
        await user.type("x")
        await user.press("enter")
        await user.state(RunState.ENDED)
        await user.shows("exited with 101")
        assert "16 unsupported" in user.screen

    flow(steps, guest=program, args=(secret,))
