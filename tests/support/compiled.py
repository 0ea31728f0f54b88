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


def build(folder: Path, name: str, source: str, *flags: str, compiler: str = "gcc") -> Path:
    """Compile for x86-64: C, or assembly, which starts with a directive; C++ by g++."""
    gcc = tool(compiler)
    if os.uname().machine != "x86_64":
        pytest.skip("gcc here does not compile for x86-64")
    suffix = ".S" if source.lstrip().startswith(".") else ".cc" if compiler == "g++" else ".c"
    text = folder / (name + suffix)
    text.write_text(source)
    program = folder / name
    done = subprocess.run(
        [gcc, "-o", program, text, *flags], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"{compiler} cannot build {name}: {done.stderr.splitlines()[-1]}")
    return program
