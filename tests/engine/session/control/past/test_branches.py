"""Branches of a run: other futures from moments of its past, kept side by side."""

from pathlib import Path

import pytest
from controlkit import Given, sample
from guestrun import run
from historykit import state_of
from sessionkit import SAMPLES

from engine.errors import CommandError
from engine.session.control.control import Control
from engine.session.guest.terminal import GuestTerminal
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.views import RunState


def said(guest: str, *words: str, cwd: Path) -> str:
    options = [word for line in words for word in ("-ex", line)]
    done = run(*options, "--batch", str(SAMPLES / guest), cwd=cwd)
    return done.out + done.err


def test_another_future(tmp_path: Path) -> None:
    """A changed variable makes another end; the old run is as it was; both are compared."""
    text = said(
        "x86_64/structs",
        *("record", "break deposit", "run", "continue", "continue", "goto 10%"),
        *("set var grace.balance=9999", "branch rich", "set var grace.balance=9999", "delete"),
        *("continue", "diff main", "switch main", "p grace.balance", "continue", "diff rich"),
        *(
            "info branches",
            "switch main",
            "branch main",
            "branch 7",
            "switch none",
            "branch -d main",
        ),
        *("branch -d rich", "info branches", "goto end", "branch"),
        cwd=tmp_path,
    )
    assert "the past cannot be changed; branch continues from here" in text
    assert "branch rich leaves main at tick 5" in text
    assert text.count("Grace, Harbour Road 1, 10115: 9899, level 9, 0 above") == 1 + 1
    assert text.count("Grace, Harbour Road 1, 10115: 4900, level 9, 0 above") == 1 + 1
    assert "they do the same up to tick 59, to which one of them has come" in text
    assert "$1 = 4700" in text
    assert "they part at tick 585:" in text
    assert '  rich: at tick 5: "\\x0f\'\\x00\\x00" written to 0x401cac' in text
    assert "  main: tick 595, exited with 2" in text
    assert "* main -" in text
    assert "  rich main at 5" in text
    assert "branch main is at hand" in text
    assert "there is a branch main already" in text
    assert "7: a branch's name begins with a letter" in text
    assert "there is no branch none; there are main, rich" in text
    assert "branch rich is gone" in text
    assert "the program has ended here; a branch leaves an earlier moment" in text
    assert "Traceback" not in text


@pytest.fixture
def told() -> list[ev.SessionEvent]:
    return []


def _failures(told: list[ev.SessionEvent]) -> list[str]:
    return [each.text for each in told if isinstance(each, ev.Failed)]


def _to_end(control: Control) -> None:
    while control.state is not RunState.ENDED:
        control.loop.execute(cmd.Continue())


def test_all_that_the_user_did_is_done_again(told: list[ev.SessionEvent]) -> None:
    """Changes, signals and threads that run alone are part of what a branch goes through."""
    control = Control(GuestConfig(sample("x86_64", "race"), history=True), told.append)
    try:
        control.loop.execute(cmd.StepInsn(30))
        control.loop.execute(cmd.WriteRegister("r15", 77))
        control.loop.execute(cmd.StepInsn(20))
        assert len(control.session.machine.threads) > 1
        other = next(tid for tid in control.session.machine.threads if tid != control.thread)
        control.loop.execute(cmd.ChooseThread(other))
        control.loop.execute(cmd.WriteRegister("r14", 78))
        control.loop.execute(cmd.Signal(23))  # which is ignored
        control.loop.execute(cmd.StepInsn(20))
        control.loop.execute(cmd.StepAlone())
        control.loop.execute(cmd.StepInsn(40))
        control.loop.execute(cmd.StepAlone(on=False))
        control.loop.execute(cmd.StepInsn(20))
        assert control.thread == other
        now = state_of(control.session)
        end = control.view().time
        control.loop.execute(cmd.StartBranch("copy"))
        assert not _failures(told)
        assert state_of(control.session) == now
        assert control.view().time == end
        _to_end(control)
        last = control.view().time, control.view().exit_code
        control.loop.execute(cmd.SwitchBranch("main"))
        assert state_of(control.session) == now
        _to_end(control)
        assert (control.view().time, control.view().exit_code) == last
        assert "they do the same" in control.loop.carry_out(cmd.CompareBranches("copy"))
        control.loop.execute(cmd.Seek(end // 2))
        there = state_of(control.session)
        control.loop.execute(cmd.StartBranch())
        assert state_of(control.session) == there
        view = control.view().history
        assert view is not None
        assert (view.branch, view.branches) == ("b1", ("main", "copy", "b1"))
        assert not _failures(told)
    finally:
        control.close()


def test_log_and_output_are_those_of_the_branch(told: list[ev.SessionEvent]) -> None:
    """Probes stay; what was written is told again to the front end, and not to the terminal."""
    terminal = GuestTerminal()
    control = Control(
        GuestConfig(sample("aarch64", "structs"), history=True), told.append, terminal=terminal
    )
    control.loop.refills = True
    try:
        control.loop.execute(cmd.Define("p deposit"))
        _to_end(control)
        events, end = control.view().events, control.view().time
        assert events
        terminal.read()
        control.loop.execute(cmd.Seek(end - 1))
        before = len(told)
        control.loop.execute(cmd.StartBranch("again"))
        fresh = told[before:]
        assert isinstance(fresh[0], ev.Viewed | ev.Branched)
        written = b"".join(each.data for each in fresh if isinstance(each, ev.Output))
        assert written.startswith(b"payment 1001 -> 0\r\n")
        assert not terminal.pending()
        assert control.view().events == events
        assert [view.row.line for view in control.probe_views()] == ["p deposit"]
        control.loop.execute(cmd.Delete((1,)))
        control.loop.execute(cmd.SwitchBranch("main"))
        assert not control.probe_views()
        assert not _failures(told)
    finally:
        control.close()
        terminal.close()


def test_typed_input_comes_again(told: list[ev.SessionEvent]) -> None:
    terminal = GuestTerminal()
    control = Control(
        GuestConfig(sample("x86_64", "lines"), history=True), told.append, terminal=terminal
    )
    try:
        terminal.write(b"one two two\nthree\n\x04")
        _to_end(control)
        end = control.view().time
        inputs = control.branches.run("main").travel.recorder.inputs
        assert inputs is not None
        assert b"three\n" in inputs.calls
        control.loop.execute(cmd.Seek(end - 1))
        there = state_of(control.session)
        control.loop.execute(cmd.StartBranch())
        assert not _failures(told)
        assert state_of(control.session) == there
        _to_end(control)
        assert control.view().time == end
    finally:
        control.close()
        terminal.close()


def test_there_is_an_end_to_them(told: list[ev.SessionEvent]) -> None:
    control = Control(GuestConfig(sample("x86_64", "sort"), history=True), told.append)
    try:
        control.loop.execute(cmd.StepInsn(10))
        for _ in range(7):
            control.loop.carry_out(cmd.StartBranch())
        with pytest.raises(CommandError, match="8 branches already; branch -d NAME gives one up"):
            control.loop.carry_out(cmd.StartBranch())
        control.loop.carry_out(cmd.DeleteBranch("main"))
        control.loop.carry_out(cmd.StartBranch("main"))
        control.loop.carry_out(cmd.Restart())
        assert control.view().time == 0
        assert len(control.branches.lines()) == 9
    finally:
        control.close()


def test_an_interrupt_leaves_all_as_it_was(told: list[ev.SessionEvent]) -> None:
    control = Control(GuestConfig(sample("x86_64", "sort"), history=True), told.append)
    try:
        control.loop.execute(cmd.StepInsn(2000))
        before = state_of(control.session)
        commands: list[cmd.Command] = [cmd.Halt()]
        control.queue.source = Given(lambda: commands.pop() if commands else None)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("engine.session.control.past.branches._ASK", 0)
            with pytest.raises(CommandError, match="interrupted: there is no new branch"):
                control.loop.carry_out(cmd.StartBranch())
        assert state_of(control.session) == before
        assert control.view().history is not None
        control.loop.carry_out(cmd.StartBranch())
    finally:
        control.close()


def test_where_there_is_no_history() -> None:
    control = Control(GuestConfig(sample("x86_64", "sort")), lambda event: None)
    try:
        with pytest.raises(CommandError, match="the run is not recorded"):
            control.loop.carry_out(cmd.StartBranch())
    finally:
        control.close()


@pytest.mark.slow
def test_a_share_is_written_once(tmp_path: Path, told: list[ev.SessionEvent]) -> None:
    log = tmp_path / "log"
    log.write_text("base\n")
    script = f"echo x >> {log}; echo y >> {log}"
    config = GuestConfig(
        "/bin/sh", args=("-c", script), shares=((str(tmp_path), True),), history=True
    )
    control = Control(config, told.append)
    try:
        _to_end(control)
        end = control.view().time
        for share in (30, 90):
            control.loop.execute(cmd.Seek(end * share // 100))
            said = control.loop.carry_out(cmd.StartBranch())
            assert "stays its own, in memory" in said
            _to_end(control)
            assert control.view().exit_code == 0
            assert log.read_text() == "base\nx\ny\n"
            control.loop.execute(cmd.SwitchBranch("main"))
        assert not _failures(told)
    finally:
        control.close()


@pytest.mark.parametrize("line", ["p serve", pytest.param("r fork", marks=pytest.mark.slow)])
def test_of_a_run_that_forks(line: str, told: list[ev.SessionEvent]) -> None:
    """Where the pages of the program are does not depend on the probes in it."""
    control = Control(GuestConfig(sample("x86_64", "forkserver"), history=True), told.append)
    try:
        control.loop.execute(cmd.Define(line))
        _to_end(control)
        control.loop.execute(cmd.Seek(control.view().time // 2))
        control.loop.execute(cmd.StartBranch())
        assert not _failures(told)
        _to_end(control)
        assert "they do the same\n" in control.loop.carry_out(cmd.CompareBranches("main"))
    finally:
        control.close()
