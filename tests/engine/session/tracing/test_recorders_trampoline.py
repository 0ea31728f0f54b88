"""Return events in kernel mode find below the stack pointer what Linux's trampoline pushed."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from compiled import build, tool
from guestrun import run
from liveevents import PROGRAM as PROGRAM_OF_LIVE
from sessionkit import SAMPLES, loaded
from sysroot import CHECKOUT

from engine.arch.plan import Mode
from engine.image import ElfImage, SymbolTable
from engine.session.protocol.requests import TraceOptions

PROGRAM = CHECKOUT / "tests" / "data" / "uprobes" / "kf_nopie"
ADD3 = 0x1156
RECURSION = SAMPLES / "x86_64" / "recursion"
UPROBE = "a=-8($stack) a_=%ax c=-16($stack) c_=%cx r=-24($stack) r_=%r11"
KPROBE = (
    "ss=-16($stack) ss_=\\0x18 sp=-24(%sp) sp_=%sp f=-32($stack) f_=%flags cs=-40($stack) "
    "cs_=\\0x10 ip=-48($stack) ip_=%ip o=-56($stack) o_=%orig_ax di=-64($stack) di_=%di "
    "ax=-96($stack) ax_=%ax r8=-104($stack) r8_=%r8 r11=-128($stack) r11_=%r11 bx=-136($stack) "
    "bx_=%bx bp=-144($stack) bp_=%bp r15=-176($stack) r15_=%r15"
)
THROWING = """
#include <cstdio>
__attribute__((noinline)) void thrower(int n) { if (n > 2) throw n; std::puts("low"); }
__attribute__((noinline)) void middle(int n) { thrower(n); std::puts("back"); }
int main() { try { middle(1); middle(5); } catch (int n) { std::printf("%d\\n", n); } }
"""


def recorded(line: str, program: Path, mode: Mode) -> list[dict[str, str]]:
    with loaded(program) as guest:
        tracing = guest.tracing(TraceOptions(mode=mode))
        tracing.definitions.define(line)
        guest.run(tracing)
    return [dict(re.findall(r"(\w+)=(\S+)", row)) for row in guest.events]


@pytest.mark.parametrize(
    ("line", "program"),
    [
        (f"r:t/r {PROGRAM}:{ADD3:#x} {UPROBE}", PROGRAM),
        (f"r:t/r fibonacci {KPROBE}", RECURSION),
    ],
    ids=("uprobe", "kprobe"),
)
def test_registers_lie_below_the_stack_pointer(line: str, program: Path) -> None:
    rows = recorded(line, program, Mode.KERNEL)
    assert rows
    for row in rows:
        for name, value in row.items():
            if name + "_" in row:
                assert value == row[name + "_"], name


def test_the_strict_mode_pushes_nothing() -> None:
    rows = recorded(f"r:t/r {PROGRAM}:{ADD3:#x} {UPROBE}", PROGRAM, Mode.STRICT)
    assert rows
    assert any(row["r"] != row["r_"] for row in rows)


def test_what_a_live_kernel_has_recorded_there() -> None:
    """Linux 6.18, x86-64; r11 is what the dynamic loader left there."""
    rows = recorded(f"r:t/r {PROGRAM}:{ADD3:#x} {UPROBE} n=$retval", PROGRAM, Mode.KERNEL)
    assert [(row["a"], row["c"]) for row in rows[:2]] == [("0x7", "0x0"), ("0xffffff95", "0x1")]


def test_an_exception_that_meets_a_trampoline_is_explained(tmp_path: Path) -> None:
    (tmp_path / "throw.cpp").write_text(THROWING)
    program = tmp_path / "throw"
    subprocess.run([tool("g++"), "-O1", tmp_path / "throw.cpp", "-o", program], check=True)
    words = ("-e", "r:g/outer middle", "-e", "r:g/inner thrower", str(program))
    done = run("trace", "--mode", "kernel", *words, cwd=tmp_path)
    assert done.code == 128 + 6
    lines = [line.removeprefix("kprobe-tui:") for line in done.err.splitlines()]
    at = next(n for n, line in enumerate(lines) if "an exception did not get past" in line)
    assert [line.strip() for line in lines[at + 1 : at + 3]] == ["g/inner", "g/outer"]
    strict = run("trace", *words, cwd=tmp_path)
    assert (strict.code, strict.out) == (0, "low\nback\n5\n")
    assert "exception" not in strict.err


def test_an_abort_of_the_programs_own_is_not_blamed_on_probes(tmp_path: Path) -> None:
    source = THROWING.replace("throw n", "__builtin_trap()")
    (tmp_path / "trap.cpp").write_text(source)
    program = tmp_path / "trap"
    subprocess.run([tool("g++"), "-O1", tmp_path / "trap.cpp", "-o", program], check=True)
    done = run("trace", "--mode", "kernel", "-e", "r middle", str(program), cwd=tmp_path)
    assert done.code == 128 + 4
    assert "exception" not in done.err


def test_what_is_left_on_the_stack_is_the_return_address(tmp_path: Path) -> None:
    """As a live kernel (6.18) has recorded these: a word that an older call has left decides.

    f3 calls itself with 24 bytes between; where the return address of a call of f1 was is the
    word that the probe inside f3 takes for its return address.
    """
    flags = ("-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none")
    program = build(tmp_path, "kfmade", PROGRAM_OF_LIVE, *flags)
    image = ElfImage.open(program)
    symbols = SymbolTable(image, ())

    def place(name: str, offset: int = 0) -> str:
        found = symbols.find(name)
        assert found is not None
        return f"{program}:{image.file_offset(found.address + offset):#x}"

    def counted(*lines: str) -> tuple[Counter[str], dict[str, int]]:
        with loaded(program) as guest:
            tracing = guest.tracing(TraceOptions(mode=Mode.KERNEL))
            for line in lines:
                tracing.definitions.define(line)
            guest.run(tracing)
        hits = {key[1]: sum(p.hits for p in e.probes) for key, e in tracing.events.items()}
        return Counter(row.partition(":")[0] for row in guest.events), hits

    found, hits = counted(
        f"r:t/a {place('f1', 17)}", f"r:t/b {place('f3', 8)}", f"r:t/c {place('f3')}"
    )
    assert found == {"a": 8, "b": 3, "c": 12}
    assert hits == {"a": 8, "b": 8, "c": 12}
    found, hits = counted(f"r:t/b {place('f2')}", f"r:t/c {place('f3', 13)}")
    assert hits == {"b": 4, "c": 8}
