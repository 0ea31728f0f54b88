"""Two programs of Go in our words, against what delve 1.20 said of them (support/delvekit.py)."""

import re
from functools import cache
from typing import Final

import pytest
from delvekit import Answers, answers, ask_us, built, differences, is_refused, masked, stops
from gdbwords import said
from goroutinekit import release

from engine.session.protocol.config import GuestConfig

BUILDS: Final = [
    ("depot", "plain"),
    ("depot", "optimised"),
    ("flow", "plain"),
    ("flow", "optimised"),
]
RELEASE: Final = "go1.19.8"
"""The compiler of the programs that delve was asked of."""
OTHERS: Final = {
    # delve refuses these, and they mean something.
    "gone.place": "*main.place nil",
    "set[233]": "struct {} {}",
    "set['é']": "struct {} {}",
    'byAny["x"]': '"text"',
    "byAny[1]": '"int"',
    "byAny[2.5]": '"real"',
    "arr[1:]": "[]int len: 2, cap: 2, [8,9]",
    "len(arr)": "3",
    "*(*main.box)(raw)": "main.box {W: 1, H: 2, D: 3}",
    "*(*float64)(raw)": "1",
    "whole == in": "true",
    'pathErr.(*"io/fs".PathError).Op': '"open"',
    "a != 17.0": "false",
    "half + small": "0.6000000014901161",
    "complex128(c64)": "(0.5 + -1i)",
    "weekday(2)": "tuesday (2)",
    "l.deposit": "main.(*account).deposit",
    "l.snapshot": "main.account.snapshot",
    "own.deposit": "main.(*account).deposit",
    # Integers are divided as Go divides them.
    "7 / 2": "3",
    # delve shows what is not UTF-8 as other characters, and negative zero as zero.
    "broken": r'"ok\xff\xfe"',
    "zero": "-0",
    # We show the structures that are in a channel.
    "boxes": "\t\t{W: 1, H: 2, D: 3},\n",
    "refs": "\t\t*{X: -1, Y: 1},\n",
    # delve calls what is lost zero, and one string of it empty.
    "cap(part)": "! value has been optimized out",
    "face": "<optimized out>",
    "names": "<optimized out>",
    "local": "<optimized out>",
}
"""Our answers that differ from delve's, by expression: whole, or one part of several lines."""
TYPES: Final = {'first + "x"': "string"}
"""Types that we tell otherwise: texts put together have no type of their own."""
CHANGING: Final = {
    # An address; a truth value that wrong places of the compiler decide; a length that is none.
    "uintptr(raw)": ("plain", "optimised"),
    "v == sentinel": ("optimised",),
    "values": ("optimised",),
    # The register of a value is not saved in a frame, and we say which way it is lost.
    "^2 s": ("optimised",),
    "^2 s.level": ("optimised",),
}
"""Expressions with values that are not told beforehand, by the builds."""
MET: Final = {"v == sentinel": "true"}
"""The reasons for which answers differ where the values are right."""
LOST: Final = (
    "broken = ",
    "zero = ",
    "names = ",
    "local = ",
    "face = ",
    "ofChan = ",
    "weighed = ",
)
"""Beginnings of lines of variables, for the same reasons."""


@cache
def ours(program: str, build: str) -> Answers:
    """Our answers to the questions about a program."""
    return ask_us(program, build)


def is_told(build: str, asked: str, word: str, one: str, other: str) -> bool:
    """True if a difference is one of those that are named above."""
    if word in ("args", "locals"):
        lines = (line for line in other.splitlines() if not line.startswith(LOST))
        return {line for line in lines if "(unreadable" not in line} <= set(one.splitlines())
    if word == "whatis":
        return one == TYPES.get(asked)
    wanted = OTHERS.get(asked, "")
    is_part = wanted.endswith("\n") and wanted in one
    return one in (wanted, MET.get(asked)) or is_part or build in CHANGING.get(asked, ())


def others(build: str, program: str, theirs: Answers) -> list[str]:
    """The differences that no reason is known for."""
    shown = ours(program, build)
    found: list[str] = []
    for stop, asked, word, one, other in differences(shown, theirs):
        # The type of what is lost, or of what delve refuses, is told all the same.
        values = theirs[stop][asked][0], shown[stop][asked][0]
        is_lost = word == "whatis" and any(map(is_refused, values))
        if not is_lost and not is_told(build, asked, word, one, other):
            found.append(f"{stop}: {word} {asked}: {one!r} and not {other!r}")
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("program", "build"), BUILDS)
def test_values_types_and_frames_are_those_of_delve(program: str, build: str) -> None:
    if release() != RELEASE:
        pytest.skip(f"delve was asked with {RELEASE}")
    wrong = others(build, program, answers(program, build))
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_maps_are_read_as_the_source_fills_them() -> None:
    # The layout is another one since Go 1.24; the test holds for the compiler that there is.
    shown = ours("depot", "plain")["keyed"]
    wanted = {
        "len(growing)": "27",
        "growing[13]": "169",
        "growing[26]": "676",
        "growing[27]": "! key not found",
        "len(holes)": "43",
        "holes[294]": '"v294"',
        "holes[8]": "! key not found",
        'bigValue["b"].Tail': "5",
        "byTruth[true]": "[]int len: 1, cap: 1, [1]",
        'byText["k"]': "main.point {X: 1, Y: 2}",
        "byHuge[18446744073709551615]": "true",
        'nested["o"][1][true]': '"deep"',
        "byRef[&origin]": '"origin"',
        "byTiny": 'map[int8]string [\n\t-1: "minus", \n]',
        "byArray": 'map[[2]string]int [\n\t["a","b"]: 12, \n]',
        "byFace": "map[main.crate]int [\n\tmain.box {W: 1, H: 2, D: 3}: 6, \n]",
        "nans": "map[float64]int [\n\tNaN: 1, \n]",
    }
    assert {asked: shown[asked][0] for asked in wanted} == wanted


def test_there_are_as_many_expressions_as_are_told_of() -> None:
    count = sum(len(stop.asked) - 3 for program in ("depot", "flow") for stop in stops(program))
    assert count >= 900  # of each, the value and the type, in two builds
    assert masked("(*int)(0xc0001)") == "(*int)(0x...)"


@pytest.mark.slow
def test_a_generic_function_is_broken_by_its_bare_name() -> None:
    config = GuestConfig(str(built("depot", "plain")))
    text = said(
        config, "break main.generic", "break main.(*stack).push", "run", "info args", "finish"
    )
    assert re.findall(r"\((\d) locations\)", text) == ["3", "2"]
    assert "main.generic[go.shape.int_0,go.shape.[]int_1] (first=5, rest=[]int len: 2" in text
    assert "\nfirst = 5\nrest = []int len: 2, cap: 2, [...]\n" in text
    assert 'Value returned is $1 = "5"' in text
