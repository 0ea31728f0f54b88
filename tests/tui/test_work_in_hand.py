"""A wait is told of: for what, how it is ended, and how many commands wait behind it."""

from collections.abc import Callable
from typing import Any, cast

from textual.app import App

from engine.session.protocol import commands as cmd
from tui.work_in_hand import WorkInHand


class _Clock:
    """Timers that a test lets go off."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []

    def set_timer(self, seconds: float, do: Callable[[], None]) -> "_Clock":
        self.due.append(do)
        return self

    def stop(self) -> None:
        self.due.clear()


def test_what_is_worked_on_is_told_until_it_is_answered() -> None:
    clock, told = _Clock(), list[str]()
    work = WorkInHand(cast(App[Any], clock), told.append)
    restart, line = cmd.Restart(), cmd.TypedLine("break work\nend")
    work.sent(restart)
    for _ in range(2):
        work.sent(line)
    work.sent(cmd.Continue())  # a guest that runs is seen to
    work.sent(cmd.ReadMemory(0, 1, original=False))
    clock.due.pop()()
    assert told[-1] == "works, Esc or Ctrl-C ends it, 2 more typed: restart"
    work.answered(cmd.Restart())  # another one's, and nothing of it was sent
    assert work.is_there
    work.answered(restart)
    assert told[-1] == ""
    clock.due.pop()()
    assert told[-1] == "works, Esc or Ctrl-C ends it, 1 more typed: break work"
    work.answered(line)
    work.answered(line)
    assert not work.is_there


def test_what_was_left_out_goes_with_the_next_answer() -> None:
    work = WorkInHand(cast(App[Any], _Clock()), lambda text: None)
    seeks = [cmd.Seek(1), cmd.Seek(2)]
    for seek in seeks:
        work.sent(seek)
    work.answered(seeks[1])
    assert not work.is_there


def test_how_far_it_is_stands_where_that_is_known() -> None:
    clock, told = _Clock(), list[str]()
    parts = [None, (0.254, ""), (0.5, "/usr/lib/libc\x1b.so.6")]
    work = WorkInHand(cast(App[Any], clock), told.append, lambda: parts.pop(0))
    work.sent(cmd.Seek(100))
    for _ in range(3):
        clock.due.pop()()
    assert told == [
        "works, Esc or Ctrl-C ends it: seek",
        "works 25%, Esc or Ctrl-C ends it: seek",
        "works 50% of libc\\33.so.6, Esc or Ctrl-C ends it: seek",
    ]
