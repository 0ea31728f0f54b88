"""Text of a guest, fit to be shown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.escaping import escaped, escaped_bytes, json_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("main+0x4", "main+0x4"),
        ("caf\u00e9 \u4e16\u754c \U0001f600", "caf\u00e9 \u4e16\u754c \U0001f600"),
        ("a\tb\nc\vd\fe\r", r"a\tb\nc\vd\fe\r"),
        ("\x1b[31m", r"\33[31m"),
        ("\x1b7\x1b8", r"\0337\338"),
        ("\0\x07\x7f", r"\0\7\177"),
        ("\x9b31m", r"\xc2\x9b31m"),
        ("\u202eabc\u2066", r"\xe2\x80\xaeabc\xe2\x81\xa6"),
        ("\u200b\ufeff\u2028", r"\xe2\x80\x8b\xef\xbb\xbf\xe2\x80\xa8"),
        (b"\xff\xc3\xa9\x9b", "\\xff\u00e9\\x9b"),
        ("\udcff", r"\xff"),
        ("\ud800", r"\xed\xa0\x80"),
        ('say "a\\b"', 'say "a\\b"'),
    ],
)
def test_what_does_not_print_is_escaped(text: str | bytes, expected: str) -> None:
    assert escaped(text) == expected


def test_a_quoted_text_can_be_read_back() -> None:
    assert escaped('say "a\\b"\n', quoted=True) == r"say \"a\\b\"\n"
    assert escaped_bytes(b'"\\n\n"', quoted=True) == rb"\"\\n\n\""


def test_what_is_kept_stays() -> None:
    assert escaped("a\nb\x1b", keep="\n") == "a\nb\\33"


@given(st.binary(), st.booleans())
def test_nothing_but_what_prints_is_left(data: bytes, quoted: bool) -> None:
    text = escaped(data, quoted=quoted)
    assert text.isprintable()
    assert escaped(text) == text
    assert escaped_bytes(data, quoted=quoted) == text.encode()


@given(st.binary())
def test_a_quoted_text_is_c(data: bytes) -> None:
    quoted = escaped(data, quoted=True).encode()
    back = bytearray()
    at = 0
    while at < len(quoted):
        if quoted[at] != 0x5C:
            back.append(quoted[at])
            at += 1
            continue
        mark = chr(quoted[at + 1])
        if mark == "x":
            back.append(int(quoted[at + 2 : at + 4], 16))
            at += 4
        elif mark in "01234567":
            end = at + 1
            while end < at + 4 and quoted[end : end + 1] in [b"%d" % n for n in range(8)]:
                end += 1
            back.append(int(quoted[at + 1 : end], 8))
            at = end
        else:
            back += {"t": b"\t", "n": b"\n", "v": b"\v", "f": b"\f", "r": b"\r"}.get(
                mark, mark.encode()
            )
            at += 2
    assert bytes(back) == data


def test_json_has_no_control_character() -> None:
    value = {"name": "\x1b\x7f\u202e\udcff\n"}
    text = json_text(value)
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text) == value
