"""The mathematical part of a C library's own tests: here as natively.

`KPROBE_TUI_LIBC_TEST` names a directory with the programs of musl's libc-test, built for this
host; those whose names begin with `math` are run.
"""

import os
import subprocess
from pathlib import Path

import pytest
import snippets

FOLDER = os.environ.get("KPROBE_TUI_LIBC_TEST", "")
PROGRAMS = sorted(Path(FOLDER).glob("math*")) if FOLDER else []
pytestmark = pytest.mark.skipif(
    not PROGRAMS, reason="KPROBE_TUI_LIBC_TEST names no directory with programs of libc-test"
)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_says_what_it_says_natively(program: Path, tmp_path: Path) -> None:
    ours, theirs = (
        subprocess.run([*under, program], capture_output=True, check=False, cwd=tmp_path)
        for under in (snippets.EMULATOR, ())
    )
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout)
