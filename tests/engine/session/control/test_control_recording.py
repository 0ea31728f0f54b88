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
    found.control.loop.refills = True
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
    guest.do(cmd.Continue())
    assert guest.view.exit_code == 21


def test_a_branch_of_it_is_live(guest: Held) -> None:
    """What cannot be done in the recorded run can be in a branch, and the recorded run stays."""
    guest.do(cmd.Continue())
    end = guest.view.time
    guest.do(cmd.Seek(end // 2))
    failure = guest.fail(cmd.WriteRegister("rax", 1))
    assert failure is not None
    assert "branch continues from here" in failure.text
    guest.do(cmd.StartBranch("other"))
    assert guest.view.history is not None
    assert guest.view.history.branch == "other"
    guest.do(cmd.WriteRegister("rax", 1), cmd.WriteRegister("rip", 0))
    guest.do(cmd.Continue())
    assert guest.view.exit_code == 128 + 11
    guest.do(cmd.SwitchBranch("main"))
    assert (guest.view.time, guest.view.exit_code) == (end, 21)


@pytest.mark.slow
def test_words_do_in_a_recording_what_they_do_in_a_run(tmp_path: Path) -> None:
    """Line by line, diff of both branches and their events included.

    Percents are left out: those of a recording are of all of it, those of a run of what has run.
    """
    guest = str(SAMPLES / "x86_64" / "structs")
    run("record", "-o", "run.rec", guest, cwd=tmp_path)
    lines = (
        *("break deposit", "run", "tbreak exit", "delete 1", "continue", "goto 59"),
        *("branch rich", "set var grace.balance=9999", "continue", "diff main", "info branches"),
        *("switch main", "continue", "goto 118", "branch same", "continue", "diff main same"),
    )
    words = [word for line in lines for word in ("-ex", line)]
    live = run("--batch", "-ex", "record", *words, guest, cwd=tmp_path)
    again = run("--batch", *words, "run.rec", cwd=tmp_path)
    assert "branch rich leaves main at tick 59" in live.out
    # To record is to start afresh, which has a breakpoint more; a recording is stood in at once.
    first, _, rest = again.out.partition("\n")
    assert first == "#0  0x0000000000400220 in _start ()"
    assert rest == live.out.replace("breakpoint 3", "breakpoint 2")
    assert again.err == live.err
    refused = run("--batch", *words, "run.rec", "argument", cwd=tmp_path)
    assert refused.code == 2
    assert "run.rec: a recording; it has its own arguments" in refused.err


@pytest.mark.parametrize("name", ["race", pytest.param("forkserver", marks=pytest.mark.slow)])
def test_a_branch_that_changes_nothing_has_the_same_events(name: str, tmp_path: Path) -> None:
    run(
        "record", "-o", "run.rec", "--turns", "50-90", str(SAMPLES / "x86_64" / name), cwd=tmp_path
    )
    path = str(tmp_path / "run.rec")
    guest = Held.of(GuestConfig(path, recording=path))
    guest.control.loop.refills = True
    try:
        guest.do(cmd.Continue())
        end = guest.view.time
        guest.do(cmd.Define("p print"), cmd.Define("r print ret=$retval"))
        count = len(guest.events)
        assert count > 1
        guest.do(cmd.Seek(end // 3), cmd.StartBranch("same"), cmd.Continue())
        assert guest.view.state is RunState.ENDED
        assert guest.view.time == end
        said = guest.control.loop.carry_out(cmd.CompareBranches("main", "same"))
        assert "they do the same" in said
        assert "no event differs" in said
    finally:
        guest.control.close()
        guest.terminal.close()


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
