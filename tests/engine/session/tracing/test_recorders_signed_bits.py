"""Signed bit-fields that a definition fetches by name keep their sign, as gdb prints them."""

import re
from pathlib import Path

import pytest
from compiled import build
from debugged import trace

SOURCE = """
enum sign { NEGATIVE = -3, POSITIVE = 2 };
enum plain { NONE, ALL = 3 };
struct bits {
    int b : 5; unsigned u : 5; signed char c : 3; long long l : 40; short s : 9; _Bool f : 1;
    enum sign en : 4; enum plain p : 2; unsigned long long ul : 33; int full : 32; int one : 1;
};
struct bits g = {-9, 23, -2, -123456789012LL, -200, 1, NEGATIVE, ALL, 0x1ffffffffULL, -77, -1};
__attribute__((noinline)) int show(struct bits *p, int k) { return p->b + k; }
int main(void) { return show(&g, 9); }
"""
VALUES = {"b": -9, "u": 23, "c": -2, "l": -123456789012, "s": -200, "f": 1, "en": -3, "p": 3}
VALUES |= {"ul": 0x1FFFFFFFF, "full": -77, "one": -1}


@pytest.mark.parametrize("technique", ["breakpoint", "jump"])
@pytest.mark.parametrize("debug", ["-gdwarf-3", "-gdwarf-4", "-gdwarf-5"])
def test_values_are_those_of_the_program(tmp_path: Path, technique: str, debug: str) -> None:
    program = build(tmp_path, "bits", SOURCE, "-O1", debug)
    names = " ".join(f"{name}=p->{name}" for name in VALUES)
    shown = trace(program, "--technique", technique, "-e", f"p show {names}")
    found = dict(re.findall(r" (\w+)=(-?\d+)", shown))
    assert {name: int(value) for name, value in found.items()} == VALUES


def test_a_filter_sees_the_sign_and_the_kernels_bits_have_none(tmp_path: Path) -> None:
    program = build(tmp_path, "bits", SOURCE, "-O1", "-g")
    events = ("-e", "p:g/a show b=p->b", "-e", "p:g/b show b=+0(%di):b5@0/32")
    shown = trace(program, *events, "--filter", "g/a:b < 0", "--filter", "g/b:b > 0")
    found = re.findall(r" ([ab]): .* b=(-?\d+)", shown)
    assert sorted(found) == [("a", "-9"), ("b", "23")]
