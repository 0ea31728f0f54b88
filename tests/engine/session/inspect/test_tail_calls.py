"""Frames of functions that have ended in a jump: one way is shown, ways without number are not."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from gdbwords import said
from guestrun import run

from engine.session.protocol.config import GuestConfig

_CHAIN = """
__attribute__((noinline)) int last(int n) { asm volatile(""); return n + 1; }
__attribute__((noinline)) int third(int n) { return last(n + 1); }
__attribute__((noinline)) int second(int n) { return third(n * 2); }
__attribute__((noinline)) int first(int n) { return second(n + 3); }
int main(int argc, char **argv) { int x = first(argc); asm volatile("" :: "r"(x)); return x & 1; }
"""

_INLINED = """
#include <stdio.h>
volatile int seen;
__attribute__((noinline)) int leaf(int x) { seen = x; return x + seen; }
static inline __attribute__((always_inline)) int inner(int y) { seen = y; return leaf(y + 1); }
__attribute__((noinline)) int middle(int z) { seen = z; return inner(z * 2); }
int main(void) { int r = middle(3); printf("%d\\n", r); return 0; }
"""


def _diamonds(deep: int) -> str:
    """Functions each of which jumps to one of two, both of which jump to the next."""
    text = '__attribute__((noinline)) int last(int n) { asm volatile(""); return n + 1; }\n'
    behind = "last"
    for number in range(deep):
        for side, word in (("a", "+"), ("b", "^")):
            text += f"__attribute__((noinline)) int {side}{number}(int n) "
            text += f'{{ asm volatile(""); return {behind}(n {word} {number + 3}); }}\n'
        text += f"__attribute__((noinline)) int j{number}(int n) "
        text += f"{{ return n & 1 ? a{number}(n) : b{number}(n * 5); }}\n"
        behind = f"j{number}"
    main = f'int x = {behind}(argc); asm volatile("" :: "r"(x)); return x & 1;'
    return f"{text}int main(int argc, char **argv) {{ {main} }}\n"


def _backtrace(folder: Path, source: str) -> list[str]:
    """The functions of the frames where the last function is."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    (folder / "jumps.c").write_text(source)
    subprocess.run(["gcc", "-g", "-O2", "-o", "jumps", "jumps.c"], cwd=folder, check=True)
    words = ("--batch", "-ex", "break last", "-ex", "run", "-ex", "bt", "jumps")
    done = run(*words, cwd=folder, deadline=120)
    return re.findall(r"(?m)^#\d+ +(?:0x\w+ in )?(\w+) \(", done.out)


@pytest.mark.slow
def test_the_functions_of_the_only_way_are_frames(tmp_path: Path) -> None:
    assert _backtrace(tmp_path, _CHAIN) == ["last", "third", "second", "first", "main"]


@pytest.mark.slow
def test_ways_without_number_end_the_search(tmp_path: Path) -> None:
    """Of 2 to the 40th ways no frame is sure; the answer comes all the same."""
    assert _backtrace(tmp_path, _diamonds(40)) == ["last", "main"]


@pytest.mark.slow
def test_a_frame_is_named_by_the_function_that_was_inlined_where_it_jumps(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    source, program = tmp_path / "tail.c", tmp_path / "tail"
    source.write_text(_INLINED)
    subprocess.run(["gcc", "-g", "-O2", "-o", program, source], check=True)
    lines = said(GuestConfig(str(program)), "break leaf", "run", "up", "print y", "up")
    where, _, value, caller = lines.splitlines()[-5:-1]
    assert where.startswith("#1  0x")
    assert f" in inner (y=6) at {source}:5" in where
    assert value == "$1 = 6"
    assert f" in main () at {source}:7" in caller
