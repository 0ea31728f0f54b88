"""Registers at each instruction of a function, as a real kernel's uprobes record them.

The function holds every kind of instruction that a step out of line has to put right. The
oracle is `uprobe_events` of Linux 6.18; `walk.json` has its definitions and its trace.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any, Final

import pytest
from guestrun import Outcome, run
from sysroot import CHECKOUT, SysrootUnavailable, sysroot

DATA: Final = CHECKOUT / "tests" / "data" / "uprobes"
TESTS: Final[list[dict[str, Any]]] = json.loads((DATA / "walk.json").read_text())["tests"]
KINDS: Final = {test["id"]: test for test in TESTS}
TOGETHER: Final = ("xol/walk-nopie", "xol/walk-pie", "xol/pushf-popf", "xol/pushf", "xol/popf")
TRAP_FLAG: Final = 0x100

# Bytes of the program's path and of argv[0], which lie above the stack and move it: the sum that
# the stack pointers of the oracle's runs (a path of 56 bytes for kf_nopie) go with.
_STRINGS: Final = {"kf_nopie": 96, "kf_pie": 92}
# What the C library's start-up code leaves in registers that xol_walk and main do not touch.
_LEFT_OVER: Final = ("r10", "r11", "r15")

Row = tuple[str, dict[str, int]]


@pytest.fixture(scope="module")
def root() -> Path:
    try:
        return sysroot("x86_64")
    except SysrootUnavailable as reason:
        pytest.skip(str(reason))


def traced(test: dict[str, Any], mode: str, root: Path, folder: Path) -> tuple[Outcome, list[Row]]:
    path = folder / test["elf"]
    shutil.copy(DATA / test["elf"], path)
    words = ["trace", "--clean-env", "--mode", mode, "--root", str(root), "--share", str(folder)]
    words += ["--argv0", "x" * (_STRINGS[test["elf"]] - len(test["elf"]))]
    for definition in test["definitions"]:
        words += ["-e", definition.replace("{ELF}", str(path))]
    done = run(*words, test["elf"], cwd=folder)
    return done, rows(re.findall(r"\d: (\w+: \(0x.*)", done.err))


def rows(bodies: list[str]) -> list[Row]:
    found = []
    for body in bodies:
        name, at, *values = body.split()
        registers = {k: int(v, 16) for k, _, v in (value.partition("=") for value in values)}
        found.append((f"{name} {at}", registers))
    return found


def comparable(found: list[Row]) -> list[Row]:
    """The rows, with the registers left over from the loader as changes since the first row.

    What the loader leaves depends on its build. All else is compared as it is, the stack's
    addresses too: see `_STRINGS`.
    """
    if not found:
        return found
    base = {name: found[0][1][name] for name in _LEFT_OVER}
    return [(at, {k: v - base.get(k, 0) for k, v in regs.items()}) for at, regs in found]


@pytest.mark.sysroot
@pytest.mark.parametrize("name", TOGETHER)
def test_kernel_mode_records_what_linux_does(name: str, root: Path, tmp_path: Path) -> None:
    test = KINDS[name]
    done, found = traced(test, "kernel", root, tmp_path)
    expected = comparable(rows(test["trace"]))

    assert len(found) == len(expected) > 0
    assert comparable(found) == expected
    assert done.out.strip() == test["out"]
    assert done.code == (test["rc"] if test["rc"] >= 0 else 128 - test["rc"])


@pytest.mark.sysroot
@pytest.mark.parametrize("name", ["xol/walk-nopie", "xol/walk-pie"])
def test_strict_mode_refuses_only_the_undefined_instruction(
    name: str, root: Path, tmp_path: Path
) -> None:
    """`x_dead` is a ud2 that is never reached; its probe records nothing on Linux either."""
    test = KINDS[name]
    if name == "xol/walk-pie":
        refused, _ = traced(test, "strict", root, tmp_path)
        assert refused.code == 2
        assert "ud2 does nothing but raise an exception (EINVAL)" in refused.err

    others = [line for line in test["definitions"] if "x_dead" not in line]
    assert len(others) == len(test["definitions"]) - 1
    done, found = traced({**test, "definitions": others}, "strict", root, tmp_path)

    assert comparable(found) == comparable(rows(test["trace"]))
    assert (done.code, done.out.strip()) == (test["rc"], test["out"])


@pytest.mark.sysroot
@pytest.mark.parametrize("name", ["xol/pushf-popf", "xol/pushf"])
def test_strict_mode_keeps_the_trap_flag_out(name: str, root: Path, tmp_path: Path) -> None:
    """Linux steps the copy of pushf with the trap flag set, and the flag is pushed: the one
    difference between the modes here. Strict mode runs as without a probe."""
    test = KINDS[name]
    done, found = traced(test, "strict", root, tmp_path)
    expected = comparable(rows(test["trace"]))
    leaked = [at for at, registers in expected if registers["flags"] & TRAP_FLAG]
    for _, registers in expected:
        registers["flags"] &= ~TRAP_FLAG

    assert leaked
    assert comparable(found) == expected
    assert (done.code, done.out.strip()) == (0, KINDS["xol/popf"]["out"])


@pytest.mark.slow
@pytest.mark.sysroot
def test_a_probe_alone(root: Path, tmp_path: Path) -> None:
    """One probe in the whole function; every eighth of them, for time."""
    alone = [test for test in TESTS if "/one-" in test["id"] and test["rc"] == 0]
    assert len(alone) > 20
    for test in alone[::8]:
        done, found = traced(test, "kernel", root, tmp_path)

        assert comparable(found) == comparable(rows(test["trace"])), test["id"]
        assert (done.code, done.out.strip()) == (0, test["out"])
