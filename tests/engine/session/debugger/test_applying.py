"""Words that carry out others: pipes, aliases, frames."""

import pytest
from cguest import CHECKOUT
from gdbwords import said

from engine.session.protocol.config import GuestConfig

STRUCTS = GuestConfig(str(CHECKOUT / "samples" / "bin" / "x86_64" / "structs"))


def test_what_a_word_prints_goes_to_a_command() -> None:
    lines = (
        "pipe p 2+3 | tr 0-9 a-j",
        "pipe -d ! p 7 ! cat",
        "| p 8 | exit 3",
        "p $_shell_exitcode",
    )
    assert said(STRUCTS, *lines) == "$b = f\n$2 = 7\n$4 = 3\n"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("pipe", "Missing COMMAND"),
        ("pipe p 1", "Missing delimiter before SHELL_COMMAND"),
        ("pipe p 1 |", "Missing SHELL_COMMAND"),
        ("pipe | cat", "Missing COMMAND"),
        ("pipe nosuch | cat", 'Undefined command: "nosuch".  Try "help".'),
        ("alias print = info", "Alias already exists: print"),
        ("alias a b = info", "Invalid command name: a b"),
        ("alias x", "Usage: alias [-a] [--] ALIAS = COMMAND [DEFAULT-ARGS...]"),
        ("faas p 1", "No stack."),
        ("frame function main", "No registers."),
    ],
)
def test_errors(line: str, why: str) -> None:
    assert said(STRUCTS, line) == f"! {why}\n"


def test_an_alias_keeps_its_arguments_and_can_be_helped() -> None:
    lines = ("alias px = print -repeats 3 -- ", "px 5", "alias py = px /x", "py 255", "help px")
    assert said(STRUCTS, *lines) == "$1 = 5\n$2 = 0xff\nAlias of print -repeats 3 --.\n"


@pytest.mark.parametrize(
    ("word", "silent"),
    [
        ("taas", True),
        ("faas", True),
        ("frame apply all", False),
        ("with print pretty on --", False),
    ],
)
def test_lines_without_end_in_each_other_are_refused(word: str, silent: bool) -> None:
    output = said(STRUCTS, "break main", "run", f"{word} " * 3000 + "p 1", f"{word} p 2")
    assert ("! Lines stand within each other, 20 deep.\n" in output) is not silent
    assert "$1 = 2" in output
