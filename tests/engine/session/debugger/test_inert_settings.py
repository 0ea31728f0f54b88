"""Settings that change nothing here: scripts of gdb's users set them, and go on."""

import pytest
from cguest import CHECKOUT
from gdbwords import said

from engine.session.protocol.config import GuestConfig

STRUCTS = GuestConfig(str(CHECKOUT / "samples" / "bin" / "x86_64" / "structs"))
_TEXT = """
set follow-fork-mode child
set detach-on-fork off
set schedule-multiple on
set charset ASCII
set python print-stack full
set debug infrun 1
set style address foreground blue
set tui border-kind space
set breakpoint always-inserted on
set check range off
set auto-solib-add off
set max-completions unlimited
set remotetimeout 5
set tcp auto-retry off
set unwindonsignal on
set record full insn-number-max 0
set history size unlimited
set index-cache enabled on
set mem inaccessible-by-default off
"""
TAKEN = _TEXT.strip().splitlines()
"""Lines of public .gdbinit files."""


def test_they_are_taken_in_silence() -> None:
    assert said(STRUCTS, *TAKEN) == ""


def test_their_values_are_shown() -> None:
    lines = ("show charset", "set charset ASCII", "show charset", "set debug infrun 1")
    assert said(STRUCTS, *lines, "show debug infrun") == (
        "charset has not been set; nothing depends on it here.\n"
        'charset is "ASCII"; nothing depends on it here.\n'
        'debug infrun is "1"; nothing depends on it here.\n'
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("set input-radix 16", '"input-radix" is always 10 here.'),
        ("set print symbol-filename on", '"print symbol-filename" is always off here.'),
        (
            "set language ada",
            "Expressions of ada are not there: auto, local, asm, c, c++, go, minimal, rust are.",
        ),
        ("set case-sensitive off", 'Undefined item: "off".'),
        ("set stop-on-solib-events 1", '"stop-on-solib-events" is always 0 here.'),
        ("set observer on", '"observer" is always off here.'),
        ("set check type off", '"check type" is always on here.'),
        ("set backtrace past-entry on", '"backtrace past-entry" is always off here.'),
        ("set cwd /tmp", '"set cwd" is not there: --cwd DIR is the program\'s working directory.'),
        ("set nosuch on", 'No symbol "nosuch" in current context.'),
        (
            "set print nosuch on",
            'Undefined set print command: "nosuch on".  Try "help set print".',
        ),
    ],
)
def test_one_whose_effect_is_missing_says_so(line: str, why: str) -> None:
    assert said(STRUCTS, line) == f"! {why}\n"


def test_a_variable_of_the_same_name_is_set() -> None:
    lines = ("break transfer", "run", "set var $debug = 3", "p $debug", "set payment->amount=9")
    assert said(STRUCTS, *lines, "p payment->amount").endswith("$1 = 3\n$2 = 9\n")
