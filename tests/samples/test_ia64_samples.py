"""The shipped samples for IA-64 do what their README says, and their sources still make them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from goldenruns import run_command
from sysroot import CHECKOUT

SAMPLES = CHECKOUT / "samples"
NAMES = sorted(path.stem for path in (SAMPLES / "ia64").glob("*.s") if path.stem != "rt")
EXPECTED = {
    "pipeline": "copied 64, dot product 804960, found at 40\n",
    "recursion": "factorial(20) = 2432902008176640000\nfibonacci(15) = 610\nackermann(2, 3) = 9\n",
    "syscalls": "through the pipe 820, heap grew by 12345, lseek says 29\n",
}


@pytest.mark.parametrize("name", NAMES)
def test_run_prints_and_exits_as_told(name: str, tmp_path: Path) -> None:
    empty = tmp_path / "stdin"
    empty.touch()
    words = ["run", str(SAMPLES / "bin" / "ia64" / name)]
    done = run_command(words, tmp_path, empty)
    assert (done.stdout.decode(), done.returncode) == (EXPECTED[name], 0), done.stderr.decode()
    row = re.search(rf"^\| `ia64/{name}`.*$", (SAMPLES / "README.md").read_text("utf-8"), re.M)
    assert row is not None
    assert f"`{EXPECTED[name].splitlines()[-1]}` | 0 |" in row[0]


@pytest.mark.parametrize("name", NAMES)
def test_sources_make_the_programs(name: str, tmp_path: Path) -> None:
    if not all(shutil.which(f"ia64-linux-gnu-{tool}") for tool in ("as", "ld")):
        pytest.skip("binutils-ia64-linux-gnu is not installed")
    copy = tmp_path / "samples"
    shutil.copytree(SAMPLES, copy, ignore=shutil.ignore_patterns("bin"))
    subprocess.run(["make", "-C", copy, f"bin/ia64/{name}"], check=True, capture_output=True)

    def code(program: Path) -> bytes:
        out = tmp_path / "text"
        subprocess.run(
            ["ia64-linux-gnu-objcopy", "-O", "binary", "-j", ".text", program, out], check=True
        )
        return out.read_bytes()

    shipped = SAMPLES / "bin" / "ia64" / name
    assert code(copy / "bin" / "ia64" / name) == code(shipped)
    assert b".debug_line" in shipped.read_bytes()
    assert str(CHECKOUT).encode() not in shipped.read_bytes()
