"""Programs of Go that call C, and are called by C: backtraces and values beside gdb's."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cguest import CHECKOUT
from compiled import tool
from gdbwords import said

from engine.session.protocol.config import GuestConfig

_SOURCE = CHECKOUT / "tests" / "data" / "go" / "mixed"
_FRAME = re.compile(r"^#(\d+) +(?:0x[0-9a-f]+ in )?(\S+) \(.*?(?: at (\S+:\d+))?$", re.MULTILINE)


def _built(folder: Path) -> Path:
    program = folder / "mixed"
    done = subprocess.run(
        [tool("go"), "build", "-gcflags=all=-N -l", "-o", str(program), "."],
        cwd=_SOURCE,
        env={**os.environ, "CGO_ENABLED": "1", "GOFLAGS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"go cannot build with C: {done.stderr[-200:]}")
    return program


@pytest.mark.slow
def test_backtraces_lead_over_the_border(tmp_path: Path) -> None:
    program = _built(tmp_path)
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    for place in ("main.goDouble", "length", "goDouble", "twice"):
        words = [f"break {place}", "run", "bt"]
        command = ["gdb", "-q", "--batch", "-nx"]
        for word in words:
            command += ["-ex", word]
        done = subprocess.run([*command, program], capture_output=True, text=True, check=False)
        ours = _FRAME.findall(said(GuestConfig(str(program)), *words))
        theirs = _FRAME.findall(done.stdout)
        assert theirs, done.stderr
        # gdb loses its way where C was called, and takes what lies on the stack for frames.
        known = next((n for n, one in enumerate(theirs) if one[1] == "??"), len(theirs))
        known = len(theirs) if place == "main.goDouble" else known
        assert ours[:known] == theirs[:known]
        assert [function for _, function, _ in ours[-2:]] == ["main.work", "main.main"]


@pytest.mark.slow
def test_values_are_those_of_the_code_in_sight(tmp_path: Path) -> None:
    program = GuestConfig(str(_built(tmp_path)))
    out = said(program, "break main.go:37", "run", "p p.A", "p p.P.y", "p l", "whatis p.P")
    assert "$1 = 4\n$2 = 1.5\n$3 = 17.5\ntype = main._Ctype_struct_point\n" in out
    out = said(program, "break twice", "run", "p n", "p n * 2.5", "whatis n", "up 3")
    assert "$1 = 3\n$2 = 7.5\ntype = int\n" in out
