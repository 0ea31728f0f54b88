"""Lines and remarks of the commands."""

import io
import os
import subprocess
import sys

import pytest
from sysroot import CHECKOUT

from engine.cli import console


def test_a_line_stays_one(capsys: pytest.CaptureFixture[str]) -> None:
    console.put("0x1 a\nforged \x1b[m")
    assert capsys.readouterr().out == "0x1 a\\nforged \\33[m\n"


def test_a_remark_has_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    console.remark("first\n", "sec\x9bond")
    assert capsys.readouterr().err == "kprobe-tui: first\\n\nkprobe-tui:   sec\\xc2\\x9bond\n"
    console.remark("x", color="always")
    assert capsys.readouterr().err == "\033[1mkprobe-tui:\033[0m x\n"


def test_text_keeps_its_lines_only(capsys: pytest.CaptureFixture[str]) -> None:
    console.text("a\n  b\r")
    assert capsys.readouterr().err == "a\n  b\\r\n"


def test_what_the_encoding_lacks_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    console.prepare()
    console.put("caf\u00e9")
    sys.stdout.flush()
    assert raw.getvalue() == b"caf\\xe9\n"


SAMPLE = CHECKOUT / "samples" / "bin" / "x86_64" / "recursion"


def outcome(words: str) -> tuple[int, str]:
    """Exit code and standard error of a line for a shell; K is the command, S a sample."""
    env = {**os.environ, "K": f"{sys.executable} -m tui", "S": str(SAMPLE)}
    done = subprocess.run(["bash", "-c", words], cwd=CHECKOUT, env=env, capture_output=True)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("$K check $S > /dev/full", 2, "standard output: No space left on device"),
        ("$K check --all --json $S | head -1; exit ${PIPESTATUS[0]}", 141, ""),
        ("$K bt --at main $S >&-", 2, "standard output is closed"),
        ("$K trace -f main $S 2> /dev/full", 2, ""),
        ("env -u PYTHONUNBUFFERED $K trace -f main $S 2> /dev/full", 2, ""),
        ("env -u PYTHONUNBUFFERED $K run $S 2> /dev/full", 0, ""),
        ("$K run $S >&- 2>&-", 0, ""),
        ("$K trace -f main $S 2>&-", 2, ""),
        (
            "$K trace -f main -o /dev/full $S",
            2,
            "/dev/full: No space left on device; 1 events lost",
        ),
        ("$K trace -f main --buffer 9 -o /dev/full $S", 2, "1 events lost"),
        ("$K trace -f main --format folded -o /dev/full $S", 2, "No space left on device"),
        ("$K graph -f main -o /dev/full $S", 2, "events lost"),
    ],
)
def test_an_output_that_takes_nothing_is_told(words: str, code: int, said: str) -> None:
    got, err = outcome(words)
    assert got == code, err
    assert said in err
    assert "Traceback" not in err
    assert "engine failed" not in err
