"""Small programs and libraries that tests compile from text."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def tool(name: str) -> str:
    """A tool of the machine; skips the test without it."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}")
    return found


def build(folder: Path, name: str, source: str, *flags: str) -> Path:
    """Compile C (or assembly, for a source that starts with a directive) for x86-64."""
    gcc = tool("gcc")
    if os.uname().machine != "x86_64":
        pytest.skip("gcc here does not compile for x86-64")
    text = folder / (name + (".S" if source.lstrip().startswith(".") else ".c"))
    text.write_text(source)
    program = folder / name
    done = subprocess.run(
        [gcc, "-o", program, text, *flags], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"gcc cannot build {name}: {done.stderr.splitlines()[-1]}")
    return program
