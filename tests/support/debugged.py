"""The program of `tests/data/variables` in many builds, and what gdb says about it."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import archkit
import pytest
from guestrun import run
from runfolder import run_folder
from sysroot import locked

SOURCE = Path(__file__).resolve().parents[1] / "data" / "variables" / "guest.c"
FUNCTIONS = ("work", "byval", "many")
PIE_BASE = 0x555555554000
"""Where Linux puts a program on x86-64 without randomisation, and this program too."""

_SCRIPT = """
import gdb, json, os

job = json.load(open(os.environ["JOB"]))
out = []
for line in ("pagination off", "confirm off", "print entry-values no", "disable-randomization on"):
    gdb.execute("set " + line)

def value(text):
    is_string = text.endswith(":string")
    try:
        found = gdb.parse_and_eval(text.removesuffix(":string"))
        if found.is_optimized_out:
            return None
        return found.string() if is_string else int(found)
    except Exception:
        return None

def layout(kind):
    return [
        [f.name, f.bitpos, f.bitsize, f.type.strip_typedefs().sizeof] for f in kind.fields()
    ]

if "types" in job:
    out = {name: layout(gdb.lookup_type(name).strip_typedefs()) for name in job["types"]}
elif "break" in job:
    spot = gdb.Breakpoint(job["break"])
    out = [place.address for place in spot.locations]
else:
    gdb.execute("starti > /dev/null")
    for address in job["places"]:
        gdb.execute("break *" + str(int(address) + job["bias"]), to_string=True)
    while True:
        try:
            gdb.execute("continue", to_string=True)
            address = gdb.selected_frame().pc() - job["bias"]
        except gdb.error:
            break
        texts = job["places"].get(str(address))
        if texts is not None:
            out.append((address, {text: value(text) for text in texts}))
json.dump(out, open(job["out"], "w"))
"""


@cache
def debugged(arch: str, *flags: str) -> Path:
    """The program compiled with -g and these options; skips the test without a compiler."""
    compiler = archkit.compiler(arch)
    name = "-".join(["guest", arch, *(flag.strip("-").replace("=", "") for flag in flags)])
    folder = run_folder("variables") / name
    with locked(folder):
        if not (folder / name).exists():
            folder.mkdir(exist_ok=True)
            _build(compiler, folder, flags, [] if os.uname().machine == arch else ["-static"])
    return folder / name


def _build(compiler: str, folder: Path, flags: Sequence[str], linked: Sequence[str]) -> None:
    for step in (["-c", SOURCE, "-o", "guest.o"], ["guest.o", "-o", folder.name, *linked]):
        done = subprocess.run(
            [compiler, "-g", *flags, *step],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"{compiler} cannot build: {done.stderr.splitlines()[-1]}")


def ask_gdb(program: Path, job: dict[str, Any]) -> Any:
    """The answer of gdb, which runs natively what it runs; skips the test without it."""
    gdb = shutil.which("gdb")
    if gdb is None:
        pytest.skip("no gdb")
    with tempfile.TemporaryDirectory() as folder:
        script, question, answer = (Path(folder, name) for name in ("ask.py", "job", "out"))
        script.write_text(_SCRIPT)
        question.write_text(json.dumps({**job, "out": str(answer)}))
        environment = {**os.environ, "JOB": str(question), "LD_BIND_NOW": "1"}
        done = subprocess.run(
            [gdb, "-nx", "-batch", "-x", script, "--args", program],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if not answer.exists():
            pytest.skip(f"gdb does not run the program here: {done.stderr[-200:]}")
        return json.loads(answer.read_text())


def trace(program: Path, *options: str) -> str:
    """The events of a run."""
    done = run("trace", "-o", "/dev/stderr", *options, str(program), cwd=program.parent)
    assert done.code == 0, done.err
    return "\n".join(line for line in done.err.splitlines() if not line.startswith("#"))
