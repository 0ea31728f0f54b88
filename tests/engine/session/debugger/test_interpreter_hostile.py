"""Lines that nobody types by hand: each is answered soon, and the next one, too."""

import time

import pytest
from cguest import CHECKOUT
from gdbwords import said

from engine.session.protocol.config import GuestConfig

STRUCTS = GuestConfig(str(CHECKOUT / "samples" / "bin" / "x86_64" / "structs"))
_MANY = 3_000
TEXTS = {
    "sum": "1" + "+1" * _MANY,
    "members": "a" + ".b" * _MANY,
    "pointers": "a" + "->b" * _MANY,
    "commas": "1" + ",1" * _MANY,
    "names": "x," * _MANY,
    "templates": "x<" * _MANY,
    "scopes": "x::" * _MANY,
    "brackets": "(" * _MANY,
    "stars": "*" * _MANY + "x",
    "sizes": "sizeof " * _MANY + "1",
    "casts": "(int *)" * _MANY + "1",
    "digits": "9" * 5_000,
    "hexadecimal": "0x" + "f" * 5_000,
    "a thousand terms": "1" + "+1" * 1_000,
    "a long name": "x" * 100_000,
    "no text": "\udcff\0",
}
WORDS = ("print", "x", "ptype", "whatis", "break", "list", "info line", "delete", "ignore 1", "up")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_line_is_refused(text: str) -> None:
    began = time.process_time()
    lines = [f"{word} {text}" for word in WORDS]
    out = said(STRUCTS, "break transfer", "run", *lines, "print 1")
    assert out.endswith("= 1\n")
    assert time.process_time() - began < 60


@pytest.mark.parametrize("word", ["forward-search", "info functions", "rbreak", "info types"])
def test_a_deep_pattern_is_refused(word: str) -> None:
    out = said(STRUCTS, "list main", f"{word} {'(' * _MANY}", "print 1")
    assert out.endswith("$1 = 1\n")
    assert "\n! " in out


def test_what_people_type_is_long_enough() -> None:
    assert said(STRUCTS, f"print 1{' + 1' * 190}") == "$1 = 191\n"
    assert said(STRUCTS, f"print 1{' + 1' * 210}") == "! the expression is nested too deeply\n"
    digits, long = "7" * 5_000, "x" * 10_000
    assert said(STRUCTS, f"set args {digits}", "show args").count("7") == 5_000
    assert said(STRUCTS, f'print sizeof("{long}")') == "$1 = 10001\n"
