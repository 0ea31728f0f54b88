"""The queue of commands that wait for their turn."""

from collections.abc import Callable

from controlkit import Given

from engine.session.control.loop import CommandQueue
from engine.session.control.running import Abandoned
from engine.session.protocol import commands as cmd


def queued(*commands: cmd.Command) -> CommandQueue:
    """A queue whose source has these commands."""
    coming = iter(commands)
    return CommandQueue(Given(lambda: next(coming, None)))


def test_a_halt_ends_what_is_lived_through() -> None:
    queue = queued(cmd.StepInsn(), cmd.Halt(), cmd.Refresh(), cmd.Continue())
    assert not queue.listens()
    assert queue.cut
    assert list(queue.ahead) == [cmd.Continue()]  # what was typed in front of the halt is gone


def test_a_fresh_start_ends_it_and_waits_for_its_turn() -> None:
    queue = queued(cmd.StepInsn(), cmd.Restart())
    assert not queue.listens()
    assert list(queue.ahead) == [cmd.StepInsn(), cmd.Restart()]


def test_without_either_it_goes_on() -> None:
    queue = queued(cmd.StepInsn(), cmd.ReadWords(0, 1))
    assert queue.listens()
    assert list(queue.ahead) == [cmd.StepInsn(), cmd.ReadWords(0, 1)]


def test_a_call_is_halted_and_what_else_has_come_in_waits() -> None:
    queue = queued(cmd.StepInsn(), cmd.Halt(), cmd.Continue())
    assert queue.halted()
    assert not queue.cut
    assert list(queue.ahead) == [cmd.StepInsn()]
    assert not queue.halted()
    assert list(queue.ahead) == [cmd.StepInsn(), cmd.Continue()]


def test_a_line_of_words_ends_where_its_front_end_is_gone() -> None:
    def gone() -> cmd.Command | None:
        raise Abandoned

    asked: Callable[[], cmd.Command | None] = gone
    assert CommandQueue(Given(asked)).cuts_short()
