"""`kprobe-tui help`: the help of a subcommand, and the chapters of the handbook."""

from collections.abc import Iterator
from difflib import get_close_matches
from textwrap import wrap
from typing import Final

import click
from click.shell_completion import CompletionItem

from engine.chapters import NAMES, PARTS, load_chapter
from engine.chapters.layout import Line, TextLook, lay_out
from engine.cli import console
from engine.cli.grouped import GroupedCommand
from engine.cli.pager import columns, page
from engine.errors import CommandError

_WIDTH: Final = 80
_INDENT: Final = "    "
_NAMES_WIDTH: Final = max(map(len, NAMES)) + 2
_WORLD: Final = "world"
"""The topic that is made from the code when somebody asks for it."""
_ABOUT_WORLD: Final = "What a guest's kernel has, refuses and lacks, asked now."
_WORLDS_PART: Final = "Guests"
"""The part of the handbook that lists `world`."""
TOPICS: Final = (*NAMES, _WORLD)
"""The words that TOPIC may be, besides the subcommands."""


def _world() -> Iterator[str]:
    from engine.session.headless.world import describe_world  # loads a guest of each architecture

    yield "What the guest's world is, has and has not. All of this was asked of the"
    yield "guest's own kernel just now; what is not listed is not there."
    for chapter in describe_world():
        yield ""
        yield from wrap(chapter.title, _WIDTH)
        for row in chapter.rows:
            text = wrap(
                " ".join(row.words),
                _WIDTH,
                initial_indent=f"  {row.label}: ",
                subsequent_indent=_INDENT,
                break_long_words=False,
                break_on_hyphens=False,
            )
            yield from text or [f"  {row.label}: none"]


def _lines_of(topic: str) -> Iterator[Line]:
    """The lines of a topic, which is one of `TOPICS`."""
    if topic == _WORLD:
        return ([(line, TextLook.PLAIN)] for line in _world())
    return lay_out(load_chapter(topic).text, columns())


def _help_lines(text: str) -> Iterator[Line]:
    """The lines of a subcommand's help, its headings marked."""
    for line in text.splitlines():
        is_heading = line.endswith(":") and not line.startswith(" ")
        yield [(line, TextLook.HEADING if is_heading else TextLook.PLAIN)] if line else []


def _list_topics() -> None:
    """Print the topics with a line each, by parts of the handbook."""
    console.write("\nTopics (kprobe-tui help TOPIC):\n")
    for part, names in PARTS.items():
        console.write(f"\n  {part}:\n")
        rows = [(name, load_chapter(name).about) for name in names]
        if part == _WORLDS_PART:
            rows.append((_WORLD, _ABOUT_WORLD))
        for name, about in rows:
            console.write(f"    {name:<{_NAMES_WIDTH}}{about}\n")


def _completed(
    context: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The topics and subcommands that begin with a text."""
    return [CompletionItem(word) for word in _words(context) if word.startswith(incomplete)]


def _words(context: click.Context) -> list[str]:
    """Return the topics and subcommands that may begin TOPIC."""
    group = context.parent
    command = None if group is None else group.command
    known = command.list_commands(context) if isinstance(command, click.Group) else []
    return [*TOPICS, *known]


@click.command(
    cls=GroupedCommand,
    context_settings={"help_option_names": ["-h", "--help"]},
    uses=(
        ("The list of topics and subcommands", ""),
        ("A chapter of the handbook", "filters"),
        ("The options of a subcommand", "trace"),
    ),
)
@click.argument("topics", metavar="[TOPIC]", nargs=-1, shell_complete=_completed)
@click.pass_context
def help(context: click.Context, topics: tuple[str, ...]) -> None:
    """Show a chapter of the handbook, or the help of a subcommand; without TOPIC list both.

    TOPIC is a subcommand ('help trace' is 'trace --help') or one of the topics that are listed
    without it. On a terminal $PAGER, or less, shows a chapter.
    """
    group = context.parent
    assert group is not None
    if len(topics) == 1 and topics[0] in TOPICS:
        page(_lines_of(topics[0]))
        return
    for word in topics:
        command = group.command
        found = command.get_command(group, word) if isinstance(command, click.Group) else None
        if found is None:
            raise CommandError(_unknown(topics, _words(context)))
        group = click.Context(found, info_name=word, parent=group)
    if topics:
        page(_help_lines(group.get_help()))
        return
    console.write(f"{group.get_help()}\n")
    _list_topics()


def _unknown(topics: tuple[str, ...], known: list[str]) -> str:
    """The message for a topic that is not there, with names that resemble it."""
    near = get_close_matches(topics[0], known, 3) if len(topics) == 1 else []
    near += [name for name in known if len(topics) == 1 and topics[0] in name and name not in near]
    meant = f"did you mean {', '.join(near)}? " if near and topics[0] else ""
    return (
        f"help: {' '.join(topics)}: neither a subcommand nor a topic; "
        f"{meant}'kprobe-tui help' lists both"
    )
