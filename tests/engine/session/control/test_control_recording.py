"""A recording under control: lived through, gone back in, probed, and never changed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from controlkit import Held
from guestrun import run
from sessionkit import SAMPLES

from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.views import RunState


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a program that is gone."""
    folder = tmp_path_factory.mktemp("recording")
    guest = folder / "words"
    guest.write_bytes((SAMPLES / "x86_64" / "words").read_bytes())
    guest.chmod(0o755)
    run("record", "-o", "run.rec", "./words", cwd=folder)
    guest.unlink()
    return folder / "run.rec"


@pytest.fixture
def guest(recording: Path) -> Iterator[Held]:
    found = Held.of(GuestConfig(str(recording), recording=str(recording)))
    found.control.refills = True
    yield found
    found.control.close()
    found.terminal.close()


def test_it_is_the_run_with_any_probes(guest: Held) -> None:
    view = guest.do(cmd.Define("p print"), cmd.Continue())
    assert (view.state, view.exit_code) == (RunState.ENDED, 21)
    assert view.history is not None
    assert any(view.history.written)
    written = b"".join(event.data for event in guest.all(ev.Output))
    assert written.endswith(b"total 21\r\n")
    early = guest.events
    assert len(early) == guest.probe(1).hits > 10
    count = len(guest.all(ev.Rows))
    guest.do(cmd.Restart(), cmd.Delete((1,)), cmd.Continue())
    assert not guest.events
    guest.do(cmd.Define("p print"))
    assert len(guest.all(ev.Rows)) > count
    assert [event.time for event in guest.events] == [event.time for event in early]
    first = early[0]
    view = guest.do(cmd.Seek(first.time, first.address))
    assert (view.pc, view.time) == (first.address, first.time)
    output = guest.all(ev.Output)[-1]
    view = guest.do(cmd.Seek(output.time, output.pc))
    assert view.location.startswith("sys_write")


def test_halfway_it_goes_back_and_on(guest: Held) -> None:
    guest.do(cmd.ToggleBreak("print"), *[cmd.Continue()] * 3)
    stop = guest.view
    assert stop.reason.startswith("breakpoint 1")
    back = guest.do(cmd.ContinueBack())
    assert back.time < stop.time
    again = guest.do(cmd.Continue())
    assert (again.pc, again.time) == (stop.pc, stop.time)
    guest.do(cmd.StepInsn(), cmd.StepBack())
    assert guest.view.pc == stop.pc
    guest.do(cmd.Delete((1,)), cmd.Continue())  # to where the run stands
    guest.do(cmd.Continue())
    assert guest.control.state is RunState.ENDED


def test_nothing_in_it_changes(guest: Held) -> None:
    guest.do(cmd.StepInsn())
    for command in (
        cmd.WriteRegister("rax", 1),
        cmd.WriteMemory(guest.view.pc, b"\x90"),
        cmd.Assemble(guest.view.pc, "nop"),
        cmd.Signal(2),
    ):
        failure = guest.fail(command)
        assert failure is not None
        assert "recording" in failure.text
    failure = guest.fail(cmd.StartBranch())
    assert failure is not None
    assert "what the host has answered it" in failure.text
    assert "kprobe-tui ./words runs the program itself" in failure.text
    guest.do(cmd.Continue())
    assert guest.view.exit_code == 21


def test_what_is_cut_off_says_so(recording: Path, tmp_path: Path) -> None:
    part = tmp_path / "part.rec"
    part.write_bytes(recording.read_bytes()[:-20])
    guest = Held.of(GuestConfig(str(part), recording=str(part)))
    try:
        assert any("cut off at byte" in notice.text for notice in guest.all(ev.Notice))
        guest.do(cmd.Continue())
        end = guest.view.time
        guest.do(cmd.Seek(end // 2), cmd.StepBack(), cmd.Seek())
        assert guest.view.time == end
    finally:
        guest.control.close()
        guest.terminal.close()
