"""The pager of `kprobe-tui help`: which one it is, what it gets, and what happens without one."""

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TITLE = "What listens"


def shown(cwd: Path, **environment: str) -> tuple[int, str]:
    """Exit code and output of a chapter's page on a terminal of 24 lines and 80 columns."""
    usual = {name: text for name, text in os.environ.items() if name not in ("PAGER", "LESS")}
    code = (
        "import os,sys; os.environ.update(TERM='xterm');"
        "from engine.cli import main; sys.exit(main(['help', 'listening'], lambda options: 1))"
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-P", "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**usual, **environment},
        cwd=cwd,
    ) as process:
        os.close(theirs)
        output = b""
        try:
            while piece := os.read(ours, 65536):
                output += piece
        except OSError:  # the terminal is gone
            pass
        os.close(ours)
    return process.returncode, output.decode().replace("\r\n", "\n")


def test_the_users_pager_gets_plain_text(tmp_path: Path) -> None:
    code, text = shown(tmp_path, PAGER=f"cat > {tmp_path}/paged; echo paged")
    assert (code, text) == (0, "paged\n")
    paged = (tmp_path / "paged").read_text()
    assert paged.startswith(f"{TITLE}\n\n")
    assert "\x1b" not in paged


def test_less_gets_text_with_looks_and_is_told_so(tmp_path: Path) -> None:
    less = tmp_path / "less"
    less.write_text('#!/bin/sh\necho "options $LESS"\ncat\n')
    less.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    for given, told in (({}, "-FX -R"), ({"LESS": "-i"}, "-i -R")):
        code, text = shown(tmp_path, PATH=path, **given)
        assert code == 0
        assert text.startswith(f"options {told}\n\x1b[1m{TITLE}\x1b[m\n")
    code, text = shown(tmp_path, PATH=path, NO_COLOR="1")
    assert text.startswith(f"options -FX -R\n{TITLE}\n")


@pytest.mark.parametrize("pager", ["", "cat", "no-such-pager --at all"])
def test_without_a_pager_it_is_written(pager: str, tmp_path: Path) -> None:
    code, text = shown(tmp_path, PAGER=pager)
    assert code == 0
    assert f"{TITLE}\n\n" in text
    assert "\x1b" not in text


def test_a_pager_that_is_left_early_ends_the_command_well(tmp_path: Path) -> None:
    code, text = shown(tmp_path, PAGER="head -n 1")
    assert (code, text) == (0, f"{TITLE}\n")


@pytest.mark.skipif(shutil.which("less") is None, reason="less is not installed")
def test_with_less_itself(tmp_path: Path) -> None:
    code, text = shown(tmp_path, PAGER="less -E", LESS="-X", LINES="1000")
    assert code == 0
    assert TITLE in text
    assert "ESC[" not in text
