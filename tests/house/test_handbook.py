"""README is short, and the handbook is whole: chapters, links, tables, commands and options."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from engine.chapters import FOLDER, NAMES, PARTS, all_chapters, load_chapter
from engine.chapters.layout import find_links, lay_out
from engine.cli import COMMANDS
from engine.cli.interface import interface
from engine.cli.main import cli
from tui.subcommands import config

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_LINES = 350
"""Lines of README at the most: it is for newcomers, what else there is goes into a chapter."""
LONGEST_SENTENCE = 61
"""Characters of a chapter's first sentence, which stands beside its name in 80 columns."""


def options() -> Iterator[tuple[str, str]]:
    """Each long option of each command, with the command's name; "" is the interface."""
    context = click.Context(cli)
    known = {name: cli.get_command(context, name) for name in COMMANDS}
    for name, command in {**known, **config.commands, "": interface}.items():
        assert command is not None
        for parameter in command.params:
            for word in parameter.opts if isinstance(parameter, click.Option) else ():
                if word.startswith("--"):
                    yield name, word


def tables(text: str) -> Iterator[str]:
    """The tables of a Markdown text."""
    found = re.finditer(r"(?m)(?:^\|.*\n)+", re.sub(r"(?s)```.*?```", "", text))
    return (table[0] for table in found)


def test_readme_is_short() -> None:
    assert len(README.splitlines()) <= MOST_LINES


def test_every_file_is_listed_once() -> None:
    assert sorted(f"{name}.md" for name in NAMES) == sorted(
        path.name for path in FOLDER.iterdir() if path.suffix not in (".py", "")
    )
    assert len(set(NAMES)) == len(NAMES) == sum(map(len, PARTS.values()))


@pytest.mark.parametrize("name", NAMES)
def test_a_chapter_begins_with_a_title_and_one_sentence(name: str) -> None:
    lines = (FOLDER / f"{name}.md").read_text(encoding="utf-8").split("\n")
    assert re.fullmatch(r"# \S.*", lines[0])
    assert (lines[1], lines[3]) == ("", "")
    about = load_chapter(name).about
    assert about == lines[2]
    assert re.fullmatch(r"[A-Z].*[^.]\.", about)
    assert ". " not in about
    assert len(about) <= LONGEST_SENTENCE


@pytest.mark.parametrize("name", NAMES)
def test_a_chapter_has_no_more_of_markdown_than_is_drawn(name: str) -> None:
    text = load_chapter(name).text
    assert text.count("```") % 2 == 0
    assert text.replace("\n", "").replace("\t", "").isprintable()
    outside = re.sub(r"(?s)```.*?```", "", text)
    for line in outside.splitlines():
        assert not re.match(r"#{3,}|\d+\. |\* |\+ |>|<|!\[|\s+- |={3,}|-{3,}", line), line
    list(lay_out(text, 80))


def test_links_lead_somewhere() -> None:
    for chapter in all_chapters():
        for target in find_links(chapter.text):
            assert target.startswith("https://") or (FOLDER / target).is_file(), (
                f"{chapter.name}: {target}"
            )
    local = [target for target in find_links(README) if not target.startswith("https://")]
    assert [target for target in local if not (ROOT / target).exists()] == []


def test_readme_leads_to_every_chapter() -> None:
    assert {f"engine/chapters/{name}.md" for name in NAMES} <= set(find_links(README))


def test_tables_that_readme_shares_are_the_chapters() -> None:
    told = "\n".join(chapter.text for chapter in all_chapters())
    shared = list(tables(README))
    assert len(shared) >= 2  # the first five minutes, what runs
    for table in shared:
        assert table in told, "README has another table than the chapter it comes from"


def test_every_command_and_option_is_told_of() -> None:
    told = "\n".join(chapter.text for chapter in all_chapters())
    missing = [
        f"{name} {word}".strip()
        for name, word in options()
        if word != "--help" and not re.search(rf"{re.escape(word)}(?![\w-])", told)
    ]
    assert missing == []
    for name in (*COMMANDS, *config.commands):
        assert re.search(rf"\b{name}\b", told), name


def test_an_option_is_missed() -> None:
    """The rule's control: no word of another option's stands for one that is not told of."""
    assert ("trace", "--stack") in set(options())
    assert ("", "--batch") in set(options())
    assert re.search(rf"{re.escape('--no')}(?![\w-])", "--no-history, --nothing") is None
