"""Programs that a compiler makes once in a run of the tests, whichever worker is first."""

import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from runfolder import run_folder
from sysroot import locked


def built_once(
    name: str,
    command: Sequence[str | Path],
    source: str | Path,
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Path | str:
    """A program in the folder of the run; the end of what the compiler says where it fails.

    Args:
        name: of the program.
        command: the compiler and its options; `-o` with the program's path, and the source, come
            behind them.
        source: the last word of the command.
        cwd: where the compiler runs; None = in the folder of the program.
        environment: variables of the compiler beside those of the tests.
    """
    words = [os.fspath(one) for one in (*command, source, cwd or "")]
    told = [*words, *(f"{key}={value}" for key, value in sorted((environment or {}).items()))]
    digest = hashlib.sha256("\0".join(told).encode()).hexdigest()[:16]
    program = run_folder(f"built-{digest}") / name
    with locked(program):
        if program.exists():
            return program
        done = subprocess.run(
            [*words[: len(command)], "-o", str(program), os.fspath(source)],
            cwd=cwd or program.parent,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
        )
    return done.stderr[-200:] if done.returncode else program
