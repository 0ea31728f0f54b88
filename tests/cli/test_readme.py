"""README's sessions with other tools' habits are what the commands write."""

import re
import shlex
from pathlib import Path

import pytest
from cguest import CHECKOUT
from guestrun import run

HEADING = "So do the habits of other tools"
README = Path(CHECKOUT, "README.md").read_text(encoding="utf-8")


def sessions() -> list[tuple[str, list[str]]]:
    """(command, lines that it writes) of the block below the heading."""
    block = README[README.index(HEADING) :].partition("```console\n")[2].partition("```")[0]
    found = re.split(r"(?m)^\$ kprobe-tui (.*)\n", block)[1:]
    return [
        (words, text.splitlines()) for words, text in zip(found[::2], found[1::2], strict=True)
    ]


@pytest.mark.parametrize(("words", "lines"), sessions())
def test_a_session_is_what_the_command_writes(words: str, lines: list[str]) -> None:
    command, _, hidden = words.partition(" > ")
    done = run(*shlex.split(command), cwd=Path(CHECKOUT))
    assert done.code == 0
    written = (done.err if hidden else done.out).splitlines()
    whole = lines[-1] != "..."
    assert written[: len(lines) - (not whole)] == lines[: len(lines) - (not whole)]
    assert len(written) == len(lines) or not whole
