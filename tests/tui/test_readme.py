"""The interface does what README and the handbook say of it."""

import re
import shlex
from pathlib import Path

import pytest
from guestrun import run
from pictures import SCENES, key_table
from sysroot import CHECKOUT

from engine.chapters import load_chapter

README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
HEADING = "So do the habits of other tools"


def test_the_table_of_keys_is_the_keymap() -> None:
    table = "\n".join(key_table())
    assert table in load_chapter("keys").text, (
        "python tests/support/pictures.py keys prints the table"
    )


def test_its_pictures_are_there() -> None:
    for name in SCENES:
        path = f"tests/data/pictures/{name}.svg"
        assert path in README
        assert Path(CHECKOUT, path).read_text(encoding="utf-8").startswith("<svg")


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
