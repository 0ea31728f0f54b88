"""The table of commands holds all of them, and views are made of changes only."""

from typing import get_args

import pytest
from controlkit import held, sample

from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.kinds import KINDS, CommandKind, kind_of


def test_each_command_has_one_kind() -> None:
    assert set(KINDS) == set(get_args(cmd.Command))
    assert set(KINDS.values()) == set(CommandKind)


@pytest.mark.parametrize(
    "question",
    [
        cmd.ReadMemory(0x401000, 16),
        cmd.ReadWords(0x401000, 2),
        cmd.ShowStack(2),
        cmd.ReadParts(0, ()),
        cmd.ListDefinitions("tracefs"),
    ],
    ids=lambda question: type(question).__name__,
)
def test_a_question_makes_no_view(question: cmd.Command) -> None:
    told: list[ev.SessionEvent] = []
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(cmd.StepInsn())
        tell = guest.control._telling
        tell.out = told.append
        guest.control.loop.execute(question)
        assert kind_of(question) is CommandKind.QUESTION
        assert [type(event) for event in told][-1] is ev.Done
        assert not any(isinstance(event, ev.Viewed) for event in told)
        told.clear()
        guest.control.loop.execute(cmd.StepInsn())
        assert sum(isinstance(event, ev.Viewed) for event in told) == 1
