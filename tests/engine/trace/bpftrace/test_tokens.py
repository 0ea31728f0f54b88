"""Numbers and strings of scripts (facts: src/util/int_parser.cpp, tests/parser.cpp)."""

from typing import Final

import pytest
from scripttrees import read, refusal, value

from engine.trace.bpftrace.tokens import whole_number

NUMBERS: Final = {
    "0": 0,
    "42": 42,
    "1_000_000": 1_000_000,
    "0x1F": 31,
    "0xdead_beef": 0xDEADBEEF,
    "0755": 0o755,
    "1e6": 1_000_000,
    "5e1_0": 50_000_000_000,
    "18446744073709551615": 2**64 - 1,
    "0xffffffffffffffff": 2**64 - 1,
    "4294967295u": 2**32 - 1,
    "7ul": 7,
    "7ULL": 7,
    "9223372036854775807l": 2**63 - 1,
    "12ns": 12,
    "3us": 3_000,
    "4ms": 4_000_000,
    "5s": 5_000_000_000,
    "2m": 120_000_000_000,
    "1h": 3_600_000_000_000,
    "1d": 86_400_000_000_000,
}
WRONG_NUMBERS: Final = {
    "1_": "1:13-14: ERROR: syntax: trailing underscore in integer literal",
    "0x1_": "1:15-16: ERROR: syntax: trailing underscore in integer literal",
    "12abc": "1:14-17: ERROR: syntax: invalid integer suffix 'abc'",
    "12e": "1:12-15: ERROR: syntax: invalid trailing bytes: 12e",
    "08": "1:12-14: ERROR: syntax: invalid trailing bytes: 08",
    "12e3": "1:12-16: ERROR: syntax: coefficient part of scientific literal must be 1-9: 12e3",
    "2e19": "1:12-16: ERROR: syntax: overflow error, maximum value is 18446744073709551615: 2e19",
    "4294967296u": "1:12-23: ERROR: syntax: overflow error, maximum value is 4294967295:"
    " 4294967296u",
    "18446744073709551616": "1:12-32: ERROR: syntax: overflow error, maximum value is"
    " 18446744073709551615: 18446744073709551616",
    "99999999d": "1:12-21: ERROR: syntax: overflow error, maximum value is"
    " 18446744073709551615: 99999999d",
}
STRINGS: Final = {
    r"": b"",
    r"abc": b"abc",
    r"a\n\t\r\\\"b": b'a\n\t\r\\"b',
    r"\0\7\12\377": b"\0\7\n\xff",
    r"\18": b"\x018",
    r"\x41\X4g": b"A\x04g",
    "\u00e9\u4e2d": "\u00e9\u4e2d".encode(),
    "\udcff": b"\xff",
    "// /* no comment": b"// /* no comment",
}
WRONG_STRINGS: Final = {
    r'"\400"': r"1:13-17: ERROR: syntax: octal escape sequence out of range '\400'",
    r'"\xg"': "1:15-16: ERROR: syntax: invalid hex escape sequence",
    r'"\q"': r"1:14-15: ERROR: syntax: invalid escape character '\q'",
    '"abc': "1:16-16: ERROR: syntax: unterminated string",
    '"abc\n"': "1:16-16: ERROR: syntax: unterminated string",
}


def test_numbers_with_units_and_suffixes() -> None:
    for text, number in NUMBERS.items():
        assert value(text) == str(number), text
        assert whole_number(text) == number, text


def test_wrong_numbers_have_their_place() -> None:
    for text, fault in WRONG_NUMBERS.items():
        assert refusal(f"end {{ $r = {text}; }}") == fault, text


def test_strings_with_escapes() -> None:
    for text, inner in STRINGS.items():
        assert value(f'"{text}"') == repr(inner)[1:], text


def test_wrong_strings_have_their_place() -> None:
    for text, fault in WRONG_STRINGS.items():
        end = "; }" if text.endswith('"') else ""
        assert refusal(f"end {{ $r = {text}{end}") == fault, text


@pytest.mark.parametrize(
    "text", ["begin { 1 }", "/* c */ begin // x\n{ /* y */ 1 } // z", "\n\tbegin{1}"]
)
def test_comments_and_space_are_nothing(text: str) -> None:
    assert len(read(text).probes) == 1


def test_a_comment_without_an_end_is_the_rest() -> None:
    assert not read("/* begin {").probes
    assert refusal("begin { /* 1 }") == "1:15-15: ERROR: syntax: expected '}'"
