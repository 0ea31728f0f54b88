"""The project on 64-bit ARM: its wheels, README's first command and a part of the tests."""

import re
import shlex
from pathlib import Path

import pytest
from foreignpython import aarch64_python, run_there
from sysroot import CHECKOUT, SysrootUnavailable

pytestmark = pytest.mark.slow

PART = (
    "tests/engine/fetch",
    "tests/engine/cpu/test_native.py",
    "tests/engine/cpu/test_unicorn_cpu.py",
    "tests/engine/cpu/test_unicorn_library.py",
    "tests/engine/cpu/test_unicorn_linkage.py",
    "tests/engine/insn/test_asm.py",
)
"""None that forks runs: qemu-user has no PR_SET_CHILD_SUBREAPER."""


@pytest.fixture(scope="module")
def python() -> Path:
    try:
        return aarch64_python()
    except SysrootUnavailable as error:
        pytest.skip(f"no Python of 64-bit ARM: {error}")


def test_the_command_of_the_readme(python: Path) -> None:
    text = (CHECKOUT / "README.md").read_text()
    found = re.search(r"<!-- run -->\n```sh\n.*&& \S+/kprobe-tui (.*)\n```", text)
    assert found is not None
    done = run_there(python, "tui", *shlex.split(found[1]))
    assert done.returncode == 0, done.stderr
    assert "fibonacci(15) = 610\n" in done.stdout
    assert re.search(r" ack: \(ackermann\+0x0/0x54\) m=2 n=3$", done.stderr, re.MULTILINE)


def test_a_part_of_the_tests(python: Path) -> None:
    done = run_there(python, "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *PART)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 400
