"""Watchpoints where gdb has none, or fewer; scripts as in gdb are `test_interpreter`'s."""

import re
import shutil
import subprocess
from pathlib import Path

import archkit
import pytest
from cguest import CHECKOUT, compiled_from
from gdbwords import said

from engine.session.protocol.config import GuestConfig

WATCHED = CHECKOUT / "tests" / "data" / "debugger" / "watched.c"
WORDS = CHECKOUT / "tests" / "data" / "watch" / "words.c"
_TALLY = """\
struct Tally {
    void add(int by) { total_ += by; }
    void scale(int by) { total_ *= by; }
    int total_ = 0;
};
int main()
{
    Tally tally;
    tally.add(1);
    tally.add(2);
    tally.add(3);
    tally.scale(10);
    return 0;
}
"""
IA64 = CHECKOUT / "samples" / "bin" / "ia64" / "syscalls"


def watching(guest: Path, *lines: str, args: tuple[str, ...] = ()) -> str:
    """What a debugger of a guest says to some words."""
    return said(GuestConfig(str(guest), args), *lines)


@pytest.mark.parametrize("arch", archkit.FIRST_COMPILED)
def test_a_system_call_that_writes_is_told(arch: str) -> None:
    text = watching(compiled_from(WATCHED, arch), "watch input", "run", "print input", "bt 1")
    assert 'Old value = "\\000\\000\\000\\000\\000\\000\\000"\n' in text
    assert 'New value = "hello\\000\\000"\n' in text
    assert re.search(r"^Written by read\(3, 0x[0-9a-f]+, 6\)$", text, re.MULTILINE)
    assert '$1 = "hello\\000\\000"' in text


@pytest.mark.parametrize("arch", archkit.FIRST_COMPILED)
def test_every_architecture_stops_behind_the_store(arch: str) -> None:
    steps = ["continue"] * 3
    text = watching(compiled_from(WATCHED, arch), "break main", "run", "watch total", *steps)
    values = re.findall(r"Old value = (\d+)\nNew value = (\d+)", text)
    assert values == [("0", "1"), ("1", "3"), ("3", "9")]


def test_ia64_by_address() -> None:
    text = watching(
        IA64, "watch *(long *)&word", "run", "continue", "continue", "info watchpoints", "continue"
    )
    assert text.startswith("Hardware watchpoint 1: *(long *)&word\n")
    assert re.findall(r"(?:Old|New) value = (\d+)", text) == [
        "0",
        "40",
        "40",
        "0",
        "0",
        "40",
        "40",
        "39",
    ]
    assert "Written by read(3, " in text


def test_a_symbol_without_a_type_wants_a_cast() -> None:
    wanted = "'word' has unknown type; cast it to its declared type"
    assert wanted in watching(IA64, "watch word")


def test_hundreds_at_once_and_their_hits() -> None:
    program = compiled_from(WORDS, "x86_64")
    watches = [f"watch words[{number}]" for number in range(0, 4096, 16)]
    text = watching(program, *watches, "run", *["continue"] * 3, "info watchpoints", args=("200",))
    assert text.count("Hardware watchpoint") == len(watches) + 4
    hits = re.findall(r"already hit (\d+) time", text)
    assert sum(map(int, hits)) == 4


def test_a_condition_that_does_not_hold_lets_the_guest_run_on() -> None:
    program = compiled_from(WORDS, "x86_64")
    text = watching(
        program, "watch words if words[7] == 1", "run", "info watchpoints", args=("200",)
    )
    assert "already hit" not in text
    assert "exited with code 07" in text


def test_an_access_watchpoint_tells_loads_and_stores_apart() -> None:
    program = compiled_from(WATCHED, "x86_64")
    text = watching(
        program, "awatch a.id", "run", "rwatch a.id", "delete 1", "continue", "continue"
    )
    assert "Hardware access (read/write) watchpoint 1: a.id\n" in text
    assert "Hardware read watchpoint 2: a.id\n\nValue = " in text


def test_a_member_is_watched_on_when_its_method_has_returned(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    source = tmp_path / "tally.cpp"
    source.write_text(_TALLY)
    program = tmp_path / "tally"
    subprocess.run(["g++", "-g", "-O0", "-o", program, source], check=True)
    lines = ("break Tally::add if total_ == 3", "run", "watch total_", *["continue"] * 2)
    text = watching(program, *lines)
    assert text.startswith("Breakpoint 1 at ")
    values = re.findall(r"Old value = (\d+)\nNew value = (\d+)", text)
    assert values == [("3", "6"), ("6", "60")]
    assert "deleted" not in text
