"""Words of gdb's that are not there say what to use."""

import pytest
from cguest import CHECKOUT
from gdbwords import said

from engine.session.protocol.config import GuestConfig

STRUCTS = GuestConfig(str(CHECKOUT / "samples" / "bin" / "x86_64" / "structs"))


@pytest.mark.parametrize(
    ("line", "use"),
    [
        ("python print(1)", '"python" is not there: there is no Python in these words; `define`'),
        ("checkpoint", '"checkpoint" is not there: after `record`'),
        ("tstart", "kprobe-tui trace -e DEFINITION GUEST"),
        ("layout src", '"layout" is not there: the interface is kprobe-tui GUEST'),
        ("attach 1", "the program runs in an emulator"),
        ("file x", "the program is the one of the command line"),
        ("info checkpoints", "`goto NAME` returns to it"),
        ("set exec-wrapper env", "give the wrapper as GUEST"),
        ("set sysroot /", "--root DIR"),
    ],
)
def test_a_word_says_what_to_use(line: str, use: str) -> None:
    text = said(STRUCTS, line)
    assert text.startswith("! ")
    assert use in text


def test_other_words_are_unknown_as_ever() -> None:
    assert said(STRUCTS, "nosuch") == '! Undefined command: "nosuch".  Try "help".\n'
    assert (
        said(STRUCTS, "info nosuch") == '! Undefined info command: "nosuch".  Try "help info".\n'
    )
