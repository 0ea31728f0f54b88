"""Results of functions with random types: what is found is what the program has returned."""

import re
import shutil
import subprocess
from pathlib import Path

import archkit
import pytest
from gdbwords import said
from randomtypes import RandomTypes

from engine.session.protocol.config import GuestConfig

_COUNT = 150
_VALUE = re.compile(r"^(?:Value returned is )?\$\d+ = (.*)$", re.MULTILINE)


def _built(folder: Path, arch: str, *, is_cpp: bool) -> Path:
    compiler = archkit.compiler(arch)
    if is_cpp:
        compiler = re.sub(r"gcc$", "g++", compiler)
        if shutil.which(compiler) is None:
            pytest.skip(f"no {compiler}")
    text = folder / ("types.cc" if is_cpp else "types.c")
    text.write_text(RandomTypes(1, is_cpp=is_cpp).program(_COUNT))
    command = [compiler, "-g", "-w", "-static", "-o", str(folder / "types"), str(text)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "types"


@pytest.mark.slow
@pytest.mark.parametrize("is_cpp", [False, True])
@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
def test_what_is_found_is_what_was_returned(tmp_path: Path, arch: str, is_cpp: bool) -> None:
    path = _built(tmp_path, arch, is_cpp=is_cpp)
    words = ["tbreak main", "run"]
    for number in range(_COUNT):
        words += [f"tbreak f{number}", "continue", f"echo @{number}\\n", "finish", f"p g{number}"]
    parts = said(GuestConfig(str(path)), *words).split("\n@")[1:]
    assert len(parts) == _COUNT
    wrong = {}
    for part in parts:
        name, _, rest = part.partition("\n")
        values = _VALUE.findall(rest)[:2]
        if len(values) != 2 or values[0] != values[1]:
            wrong[name] = rest
    assert not wrong
