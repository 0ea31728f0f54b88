"""Programs of Rust for tests, each compiled once in a run of the tests."""

from functools import cache
from pathlib import Path

import pytest
from builtonce import built_once
from cguest import CHECKOUT
from compiled import tool

SOURCES = CHECKOUT / "tests" / "data" / "language"


@cache
def _built(name: str, flags: tuple[str, ...]) -> Path | str:
    command = (tool("rustc"), "--edition", "2021", *flags)
    found = built_once(name, command, SOURCES / f"{name}.rs")
    return f"rustc cannot build {name}: {found}" if isinstance(found, str) else found


def rust_program(name: str, *flags: str) -> Path:
    """A program of tests/data/language; skips the test without a compiler.

    Args:
        name: of the source, without its suffix.
        flags: for rustc.
    """
    found = _built(name, flags or ("-g",))
    if isinstance(found, str):
        pytest.skip(found)
    return found


def line_of(name: str, text: str) -> int:
    """The number of the first line of a program that has a text."""
    lines = (SOURCES / f"{name}.rs").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)
