"""Globs, lazy patterns and filters of perf probe (tools/perf/util/string.c, strfilter.c)."""

import time

import pytest

from engine.errors import CommandError
from engine.trace.perfprobe.name_patterns import Glob, NameFilter, is_glob, same_tail


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        *(("a*", "abc", True), ("a*", "bac", False), ("*", "", True), ("?", "", False)),
        *(("a?c", "abc", True), ("a[b-d]e", "ace", True), ("a[!b-d]e", "ace", False)),
        *((r"a\*", "a*", True), (r"a\*", "ab", False), ("a[", "a[", False), ("a[]x]", "ax", True)),
        *(("*b*c", "abxc", True), ("a**c", "abbc", True), ("", "", True), ("", "a", False)),
    ],
)
def test_globs(pattern: str, text: str, fits: bool) -> None:
    assert Glob(pattern).matches(text) == fits


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("x=y+1;", "\tx = y + 1;", True),
        ("x=*", "x   =  anything at all ", True),
        ("x=1;", "x = 1; ", False),  # blanks behind the pattern's end are no match of perf's
        ("return*", "  return 0;", True),
    ],
)
def test_lazy_patterns(pattern: str, text: str, fits: bool) -> None:
    assert Glob(pattern, lazy=True).matches(text) == fits


def test_a_hostile_pattern_ends() -> None:
    began = time.process_time()
    assert not Glob("*a" * 300 + "b").matches("a" * 3000)
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        ("a*", "ab ac"),
        ("!a*", "b bc _x"),
        ("a* | b", "ab ac b"),
        ("!_* & !a*", "b bc"),
        ("(a*|b*) & *c", "ac bc"),
        ("!(a*|_*)", "b bc"),
        ("a* | b & bc", "ab ac"),
        ("[!a]*", "b bc _x"),
    ],
)
def test_filters(rule: str, kept: str) -> None:
    accepts = NameFilter(rule).accepts
    assert [name for name in ("ab", "ac", "b", "bc", "_x") if accepts(name)] == kept.split()


@pytest.mark.parametrize(
    "rule", ["", "!", "a &", "| a", "(a", "a)", "a b", "(" * 5000, "!" * 3000]
)
def test_bad_filters(rule: str) -> None:
    with pytest.raises(CommandError) as raised:
        NameFilter(rule)
    assert "\n" not in str(raised.value)


def test_tails() -> None:
    assert same_tail("/src/main.c", "main.c")
    assert same_tail("ain.c", "/src/main.c"), "perf compares letters, not words"
    assert not same_tail("/src/main.c", "mail.c")
    assert is_glob("a?")
    assert not is_glob("a")
