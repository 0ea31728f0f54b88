"""Expressions of Go as trees, and scalars as Go writes them."""

import struct

import pytest

from engine.errors import CommandError
from engine.language.go_syntax import parse_go
from engine.language.go_values import go_quoted, go_real, go_time
from engine.language.syntax import Expression


def shown(node: Expression) -> str:
    """A tree in brackets."""
    parts = " ".join(map(shown, node.parts))
    return f"({node.kind} {node.text} {parts})" if parts else f"{node.kind}:{node.text}"


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a + b * c", "(binary + name:a (binary * name:b name:c))"),
        ("a == b && c < d", "(binary && (binary == name:a name:b) (binary < name:c name:d))"),
        ("a &^ b | c", "(binary | (binary &^ name:a name:b) name:c)"),
        ("m[1].x", "(member x (index  name:m number:1))"),
        ("s[1:]", "(slice  name:s number:1 none:)"),
        ("s[:2:3]", "(slice  name:s none: number:2 number:3)"),
        ("e.(*main.T).f", "(member f (assertion *main.T name:e))"),
        ("(*main.T)(0x10)", "(call  (unary * (member T name:main)) number:0x10)"),
        ("[]byte(s)", "(call  gotype:[]byte name:s)"),
        ("map[string][]int(m)", "(call  gotype:map[string][]int name:m)"),
        ('"a/b".X', "name:a/b.X"),
        ("~r0", "name:~r0"),
        ("'\\n'", "char:'\\n'"),
        ("$rip", "dollar:$rip"),
    ],
)
def test_trees(text: str, tree: str) -> None:
    assert shown(parse_go(text)) == tree


@pytest.mark.parametrize("text", ["", "a +", "a[", "f(", "m[1:2:3:4]", "e.(", "map[", "<-c", "1x"])
def test_what_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(CommandError):
        parse_go(text)


def test_nesting_has_a_limit() -> None:
    with pytest.raises(CommandError, match="deeply"):
        parse_go("-" * 5000 + "1")


@pytest.mark.parametrize(
    ("number", "size", "text"),
    [
        (1.5, 8, "1.5"),
        (1e-9, 8, "0.000000001"),
        (1e21, 8, "1000000000000000000000"),
        (1 / 3, 4, "0.33333334"),
        (16777216.0, 4, "16777216"),
        (float("inf"), 8, "+Inf"),
        (float("-inf"), 4, "-Inf"),
        (float("nan"), 8, "NaN"),
        (-0.0, 8, "-0"),
    ],
)
def test_numbers(number: float, size: int, text: str) -> None:
    assert go_real(struct.pack("<f" if size == 4 else "<d", number), "little") == text


def test_texts_are_quoted_as_strconv_quotes() -> None:
    raw = 'a"\\\t\x00\x7fé'.encode() + b"\xff" + "\u200b😀".encode()
    assert go_quoted(raw) == '"a\\"\\\\\\t\\x00\\x7fé\\xff\\u200b😀"'


@pytest.mark.parametrize(
    ("wall", "ext", "text"),
    [
        (0, 0, "0001-01-01T00:00:00Z"),
        (123456789, 63718576245, "2020-02-29T12:30:45Z"),
        (0, -157813473294, "-5000-02-03T04:05:06Z"),
        (0, 631110283506, "20000-02-03T04:05:06Z"),
        (1 << 63 | 4287600000 << 30 | 5, 77, "2020-11-14T00:00:00Z, +77"),
    ],
)
def test_times_are_moments_of_the_calendar(wall: int, ext: int, text: str) -> None:
    assert go_time(wall, ext) == text
