"""gdb's words for the past: there, back to the present, and what cannot be done there."""

from pathlib import Path

from guestrun import run
from sessionkit import SAMPLES


def said(guest: str, *words: str, cwd: Path) -> str:
    options = [word for line in words for word in ("-ex", line)]
    done = run(*options, "--batch", str(SAMPLES / guest), cwd=cwd)
    return done.out + done.err


def test_there_and_back(tmp_path: Path) -> None:
    text = said(
        "x86_64/structs",
        *("record", "break deposit", "run", "info record", "p $pc", "reverse-step", "p $pc"),
        *("info record", "continue", "p $pc", "info record", "continue", "reverse-continue"),
        cwd=tmp_path,
    )
    modes = [line for line in text.splitlines() if line.endswith("mode:")]
    assert modes == ["Record mode:", "Replay mode:", "Record mode:"]
    values = [line.partition("= ")[2] for line in text.splitlines() if line.startswith("$")]
    assert values[0] == values[2] != values[1]
    assert text.count("Breakpoint 1, deposit") == 3
    assert "Traceback" not in text


def test_what_the_past_refuses(tmp_path: Path) -> None:
    text = said(
        "x86_64/structs",
        *("record", "break deposit", "run", "reverse-stepi", "set var $rax = 5", "goto end"),
        *("set var $rax = 5", "p $rax", "reverse-stepi", "stepi", "p $rax", "record", "goto 9x"),
        cwd=tmp_path,
    )
    assert "the past cannot be changed" in text
    assert "$1 = 5" in text
    assert "$2 = 5" in text  # a change in the present is part of what is lived through again
    assert "already being recorded" in text
    assert "goto begin, goto end, or goto TICK" in text


def test_without_a_recording(tmp_path: Path) -> None:
    text = said(
        "x86_64/structs", "break deposit", "run", "info record", "reverse-step", cwd=tmp_path
    )
    assert "No recording is currently active." in text
    assert "the run is not recorded" in text


def test_from_a_crash_to_its_cause(tmp_path: Path) -> None:
    text = said(
        "x86_64/crash",
        *("record", "run", "reverse-finish", "reverse-continue", "continue", "bt 1"),
        cwd=tmp_path,
    )
    assert "add_setting (sum=4" in text
    assert "No more reverse-execution history." in text
    assert text.rstrip().splitlines()[-1].startswith("#0  read_value (entry=0x0)")
