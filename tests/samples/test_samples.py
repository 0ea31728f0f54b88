"""The shipped samples do what their README says, under the emulator and on the real machine."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from archkit import COMPILED, FIRST_COMPILED
from goldenruns import run_command
from sysroot import CHECKOUT

SAMPLES = CHECKOUT / "samples"

SIZE_LIMIT = 30_000


@dataclass(frozen=True)
class Case:
    name: str
    args: list[str]
    stdin: str
    exit: int
    stdout: str


CASES = [
    Case(**row) for row in json.loads((CHECKOUT / "tests/data/samples.json").read_text("utf-8"))
]
NAMES = sorted(path.stem for path in SAMPLES.glob("*.c"))


def _case_name(case: Case) -> str:
    return "-".join([case.name, *case.args, *([f"{len(case.stdin)}-in"] if case.stdin else [])])


each_case = pytest.mark.parametrize("case", CASES, ids=_case_name)
each_arch = pytest.mark.parametrize("arch", COMPILED)


@pytest.mark.parametrize("arch", FIRST_COMPILED)
@each_case
def test_run_prints_and_exits_as_told(case: Case, arch: str, tmp_path: Path) -> None:
    stdin = tmp_path / "stdin"
    stdin.write_text(case.stdin)
    sample = SAMPLES / "bin" / arch / case.name
    words = ["run", str(sample), *case.args]

    done = run_command(words, tmp_path, stdin)

    found = (done.stdout.decode(), done.returncode)
    assert found == (case.stdout, case.exit), done.stderr.decode()


@each_arch
@each_case
def test_expectation_is_what_the_program_really_does(
    case: Case, arch: str, tmp_path: Path
) -> None:
    words = [str(SAMPLES / "bin" / arch / case.name), *case.args]
    if os.uname().machine != arch:
        emulator = shutil.which(f"qemu-{arch}")
        if emulator is None:
            pytest.skip(f"qemu-{arch} is not installed")
        words.insert(0, emulator)

    done = subprocess.run(
        words, input=case.stdin.encode(), cwd=tmp_path, capture_output=True, timeout=300
    )

    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    assert (done.stdout.decode(), code) == (case.stdout, case.exit)


@pytest.mark.parametrize("name", NAMES)
def test_every_sample_is_built_told_and_tested(name: str) -> None:
    cases = [case for case in CASES if case.name == name]
    rows = re.findall(rf"^\| `{name}\b.*$", (SAMPLES / "README.md").read_text("utf-8"), re.M)

    assert len(rows) == 1
    assert any(
        f"`{case.stdout.splitlines()[-1]}`" in rows[0] and f"| {case.exit}" in rows[0]
        for case in cases
    )
    for arch in COMPILED:
        content = (SAMPLES / "bin" / arch / name).read_bytes()
        assert len(content) < SIZE_LIMIT
        assert b".debug_line" in content
        assert b".eh_frame" in content
        assert b"/home/" not in content
        assert str(CHECKOUT).encode() not in content
