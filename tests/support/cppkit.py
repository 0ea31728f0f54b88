"""Programs of C++ for tests, and gdb's answers to questions about them."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from cguest import CHECKOUT
from gdbwords import said

from engine.session.protocol.config import GuestConfig

DATA = CHECKOUT / "tests" / "data" / "language"
COMMAND = ("x86_64-linux-gnu-g++", "-std=c++20", "-g", "-O0", "-no-pie")
LLVM = ("-nostdinc++", "-isystem", "/usr/include/c++/v1", "-nodefaultlibs")
LLVM_LIBRARIES = ("-lc++", "-lc++abi", "-lc", "-lm", "-lgcc_s", "-lgcc")


def built(name: str, folder: Path, before: Sequence[str] = (), behind: Sequence[str] = ()) -> str:
    """A program of the test's."""
    if shutil.which(COMMAND[0]) is None:
        pytest.skip("no compiler for C++")
    made = folder / name
    source = DATA / f"{name}.cc"
    subprocess.run([*COMMAND, *before, "-o", made, source, *behind], check=True)
    return str(made)


def built_for(library: str, name: str, folder: Path) -> str:
    """The same with libstdc++ or libc++."""
    if library == "libstdc++":
        return built(name, folder)
    if not Path("/usr/include/c++/v1").is_dir():
        pytest.skip("libc++ is not installed")
    return built(name, folder, LLVM, LLVM_LIBRARIES)


def blank(text: str) -> str:
    """An answer without what differs from run to run."""
    return re.sub("0x[0-9a-f]+", "ADDRESS", re.sub(r"^\$\d+ = ", "", text.strip(), flags=re.M))


def golden(name: str) -> dict[str, str]:
    """Lines and gdb's answers."""
    parts = (DATA / f"{name}.gdb").read_text().split(">>> ")[1:]
    return {line: text.strip() for line, _, text in (part.partition("\n") for part in parts)}


def answers(
    program: str, start: Sequence[str], lines: Sequence[str], printers: str | None = None
) -> dict[str, str]:
    """What is answered to lines, behind others."""
    asked = []
    for line in lines:
        shown = line.replace("\\", "\\\\")
        asked += [f"echo >>> {shown}\\n", line]
    text = said(GuestConfig(program, printers=printers), *start, *asked).replace("! ", "")
    parts = text.split(">>> ")[1:]
    return {line: blank(rest) for line, _, rest in (part.partition("\n") for part in parts)}
