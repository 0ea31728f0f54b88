"""Return probes on the command line."""

import json
import re
from functools import cache
from pathlib import Path

import archkit
import pytest
from archkit import FIRST_COMPILED
from guestrun import run
from sysroot import CHECKOUT

from engine.image import ElfImage

SAMPLES = CHECKOUT / "samples" / "bin"
GUESTS = CHECKOUT / "tests" / "data" / "guests"
each_arch = pytest.mark.parametrize("arch", FIRST_COMPILED)
first_arch = pytest.mark.parametrize("arch", FIRST_COMPILED)
either = pytest.mark.parametrize("mode", ["strict", "kernel"])

HANDLERS = """
calls = []

def enter(instance, regs):
    instance.data[:8] = regs.argument(0).to_bytes(8, "little")
    return regs.argument(0) % 2

def leave(instance, regs):
    calls.append((int.from_bytes(instance.data, "little"), regs.retval))

probe = Kretprobe(symbol_name="fibonacci", entry_handler=enter, handler=leave, data_size=8)
probes = [probe]

def exit():
    print("calls", calls, probe.hits, probe.nmissed)
"""


@cache
def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def sample(arch: str, name: str = "recursion") -> str:
    return str(SAMPLES / arch / name)


def events(text: str) -> list[str]:
    return [
        line.split(": ", 1)[1] for line in text.splitlines() if re.search(r"\d: \w+: \(", line)
    ]


@each_arch
@either
def test_entry_and_return_pair(arch: str, mode: str, tmp_path: Path) -> None:
    words = (
        "-e",
        "p:in fibonacci n=$arg1:u32",
        "-e",
        "r20:out fibonacci n=$arg1:u32 v=$retval:u32",
    )
    done = run("trace", "--mode", mode, *words, sample(arch), cwd=tmp_path)
    rows = events(done.err)
    stack: list[str] = []
    returns = 0
    for row in rows:
        if row.startswith("in: (fibonacci+0x"):
            stack.append(row.split()[-1])
            continue
        found = re.fullmatch(r"out: \((\w+)\+0x\w+/0x\w+ <- fibonacci\) (n=\d+) v=(\d+)", row)
        assert found is not None, row
        assert found[2] == stack.pop()
        n = int(found[2].removeprefix("n="))
        assert int(found[3]) == fibonacci(n)
        returns += 1
    assert not stack
    assert returns > 5


@each_arch
def test_the_time_between(arch: str, tmp_path: Path) -> None:
    done = run(
        "trace",
        "-e",
        "r:t fibonacci d=$duration",
        "-e",
        "p:s fibonacci",
        sample(arch),
        cwd=tmp_path,
    )
    stack, checked = [], 0
    for line in done.err.splitlines():
        found = re.search(r" (\d+): (\w): \(.*?\)(?: d=(\d+))?", line)
        if found is None:
            continue
        if found[2] == "s":
            stack.append(int(found[1]))
        else:
            assert int(found[1]) - stack.pop() == int(found[3])
            checked += 1
    assert checked > 5
    refused = run(
        "trace", "--mode", "kernel", "-e", "r:t fibonacci d=$duration", sample(arch), cwd=tmp_path
    )
    assert refused.code == 2
    assert "Invalid $-variable specified" in refused.err


@first_arch
@pytest.mark.slow
def test_values_of_the_entry(arch: str, tmp_path: Path) -> None:
    """Registers and memory as they were there, for kprobes and, unlike in the kernel, uprobes."""
    register = archkit.argument(arch)
    link = archkit.link(arch)
    found = run("check", "--json", "-e", "p fibonacci", sample(arch), cwd=tmp_path)
    at = next(int(row["address"], 16) for row in json.loads(found.out))
    image = ElfImage.open(sample(arch))
    offset = image.file_offset(at)
    args = f"n=$entry({register}):u32 from=$entry({link}) v=$retval:u32"
    for place in ("fibonacci", f"{sample(arch)}:{offset:#x}"):
        done = run("trace", "-e", f"r:a/b {place} {args}", sample(arch), cwd=tmp_path)
        rows = re.findall(r"b: \((\S+) <- \S+\) n=(\d+) from=(\w+) v=(\d+)", done.err)
        assert len(rows) > 100
        assert all(int(value) == fibonacci(int(n)) for _, n, _, value in rows)
        if place != "fibonacci":  # whose addresses print as symbols
            assert all(came == to for to, _, came, _ in rows)
    for bad in ("$entry(%nothing)", "$entry($retval)", "$entry(%sp"):
        refused = run("trace", "-e", f"r:a/b fibonacci {bad}", sample(arch), cwd=tmp_path)
        assert refused.code == 2


@pytest.mark.parametrize("arch", FIRST_COMPILED)
@either
def test_misses_are_counted_and_told(arch: str, mode: str, tmp_path: Path) -> None:
    whole = run("trace", "-e", "r:a/b fibonacci", sample(arch), cwd=tmp_path)
    few = run("trace", "--mode", mode, "-e", "r2:a/b fibonacci", sample(arch), cwd=tmp_path)
    told = re.search(r"a/b: (\d+) of (\d+) hits missed", few.err)
    assert told is not None
    assert int(told[2]) == len(events(whole.err))
    assert int(told[2]) - int(told[1]) == len(events(few.err)) > 0
    assert "missed" not in whole.err


@each_arch
def test_maxactive_default(arch: str, tmp_path: Path) -> None:
    """Ten, where calls are up to 15 deep."""
    for option, missed in (((), False), (("--maxactive-default",), True)):
        done = run("trace", *option, "-r", "fibonacci", sample(arch), cwd=tmp_path)
        assert ("hits missed" in done.err) is missed


@each_arch
@either
def test_handlers(arch: str, mode: str, tmp_path: Path) -> None:
    (tmp_path / "h.py").write_text(HANDLERS)
    done = run("trace", "--mode", mode, "--handlers", "h.py", sample(arch), cwd=tmp_path)
    found = re.search(r"calls (\[.*\]) (\d+) 0", done.out)
    assert found is not None, done.err
    calls = re.findall(r"\((\d+), (\d+)\)", found[1])
    assert calls
    assert len(calls) < int(found[2])
    assert all(int(n) % 2 == 0 for n, _ in calls)


@first_arch
def test_what_cannot_be_placed(arch: str, tmp_path: Path) -> None:
    inside = "8" if arch == "aarch64" else "1"
    done = run("trace", "-e", f"r:a/b fibonacci+{inside}", sample(arch), cwd=tmp_path)
    assert done.code == 2
    assert "Retprobe address must be an function entry" in done.err
    done = run("check", "-e", f"r:a/b fibonacci+{inside}", sample(arch), cwd=tmp_path)
    assert done.code == 1
    assert "error return-entry" in done.out or "a return probe goes on" in done.out
    assert run("check", "-e", "r:a/b fibonacci", sample(arch), cwd=tmp_path).code == 0
    done = run("trace", "-r", "no_such_*", sample(arch), cwd=tmp_path)
    assert done.code == 2
    assert "no function matches" in done.err


@each_arch
def test_the_listing(arch: str, tmp_path: Path) -> None:
    words = ("-e", "r10:g/e fibonacci v=$retval", "-e", "p:f fibonacci%return")
    done = run("trace", "--list", *words, sample(arch), cwd=tmp_path)
    assert done.out.splitlines() == ["r10:g/e fibonacci v=$retval", "r:kprobes/f fibonacci"]


@first_arch
@pytest.mark.parametrize(
    "what",
    ["signals", "segv", "setjmp", "smc", pytest.param("deep 100000", marks=pytest.mark.slow)],
)
def test_returns_of_all_functions_have_no_effect(arch: str, what: str, tmp_path: Path) -> None:
    guest = str(GUESTS / archkit.debian(arch) / "guests-static")
    done = run("diff", "--clean-env", "-r", "*", guest, *what.split(), cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.err.endswith("kprobe-tui: no effect\n")
    found = re.search(r"(\d+) hits", done.err)
    assert found is not None
    assert int(found[1]) > (100000 if "deep" in what else 100)
