"""The table of commands."""

import pytest
from controlkit import held, sample

from engine.session.control.control import Control
from engine.session.program.verdicts import Placed, Verdicts
from engine.session.protocol import commands as cmd
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.kinds import KINDS
from engine.trace.definition import Definition


def test_each_command_has_a_handler() -> None:
    """A command that front ends may send is carried out by somebody, and none by two."""
    control = Control(GuestConfig(sample("x86_64", "recursion")), lambda event: None)
    try:
        parts = control.loop.table.parts
        assert {kind for part in parts for kind in part} == set(KINDS)
        assert sum(map(len, parts)) == len(KINDS)
    finally:
        control.close()


def test_a_definition_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict that lets a probe be placed is the one that is shown."""
    judged: list[str] = []
    whole = Verdicts.of_definition

    def of_definition(
        self: Verdicts, definition: Definition, *, bare: bool = False
    ) -> tuple[Placed, ...]:
        judged.append(definition.event)
        return whole(self, definition, bare=bare)

    monkeypatch.setattr(Verdicts, "of_definition", of_definition)
    with held(sample("x86_64", "recursion")) as guest:
        guest.do(cmd.Define("p:first factorial"))
        assert judged == ["first"]
        assert guest.probe(1).place == "factorial+0x0"
        assert guest.probe(1).reason


def test_what_changes_the_guest_is_refused_in_its_past() -> None:
    with held(sample("x86_64", "recursion"), history=True) as guest:
        guest.do(cmd.Define("p:first factorial"), cmd.Continue(), cmd.Seek(100))
        failed = guest.fail(cmd.WriteRegister("rax", 1))
        assert failed is not None
        assert failed.text.startswith("the past cannot be changed")
        guest.do(cmd.Delete((1,)), cmd.Undo())  # the list of probes can be
        assert guest.probe(1).row.line == "p:first factorial"


@pytest.mark.parametrize("command", [cmd.Refresh(), cmd.Input(b"x"), cmd.Continue()], ids=str)
def test_a_closed_guest_carries_nothing_out(command: cmd.Command) -> None:
    with held(sample("x86_64", "recursion")) as guest:
        guest.control.close()
        failed = guest.fail(command)
        assert failed is not None
        assert failed.text == "the guest is closed: nothing can be asked of it any more"
