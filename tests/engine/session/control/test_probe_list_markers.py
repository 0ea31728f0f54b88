"""Static probes in the list of an interface: one definition becomes a row for each place."""

from pathlib import Path

import pytest
from controlkit import held
from markerkit import CODE, Note, file_with

from engine.session.protocol import commands as cmd


@pytest.fixture
def guest(tmp_path: Path) -> str:
    notes = (Note(), Note(name=b"gone", address=CODE + 2), Note(address=CODE + 4))
    program = tmp_path / "zoo"
    program.write_bytes(file_with(b"".join(note.raw for note in notes)))
    program.chmod(0o755)
    return str(program)


def test_a_row_for_each_place_and_one_step_back(guest: str) -> None:
    with held(guest) as here:
        view = here.do(cmd.Define("sdt_zoo:*"))
        lines = [probe.row.line for probe in view.probes]
        assert [line.split()[0] for line in lines] == [
            *("p:sdt_zoo/fed", "p:sdt_zoo/gone", "p:sdt_zoo/fed")
        ]
        assert here.do(cmd.Undo()).probes == ()
        assert [probe.row.line for probe in here.do(cmd.Redo()).probes] == lines
        here.do(cmd.Continue())
        assert [here.probe(number).hits for number in (1, 2, 3)] == [1, 1, 1]


def test_several_take_the_place_of_one(guest: str) -> None:
    with held(guest) as here:
        here.do(cmd.Define("p:a/b %zoo:gone"))
        view = here.do(cmd.Define("%zoo:fed", replaces=1))
        assert [probe.row.line.split()[0] for probe in view.probes] == ["p:sdt_zoo/fed"] * 2


def test_a_mistake_changes_nothing(guest: str) -> None:
    with held(guest) as here:
        before = here.do(cmd.Define("p:a/b %zoo:gone")).probes
        assert here.fail(cmd.Define("sdt_zoo:nosuch")) is not None
        assert here.fail(cmd.Define("p %zoo:fed $arg2", replaces=1)) is not None
        assert here.fail(cmd.Define("p %zoo:fed %nosuch")) is not None
        assert [probe.row.line for probe in here.view.probes] == [p.row.line for p in before]


def test_a_breakpoint_at_a_marker(guest: str) -> None:
    with held(guest) as here:
        view = here.do(cmd.ToggleBreak("%zoo:gone"), cmd.Continue())
        assert view.pc == CODE + 2
