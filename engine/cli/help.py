"""`kprobe-tui help`: the help of a subcommand, and chapters about the guest."""

from collections.abc import Callable, Iterator
from textwrap import wrap
from typing import Final, NamedTuple

import click

from engine.cli import console
from engine.errors import CommandError

_WIDTH: Final = 80
_INDENT: Final = "    "


class Chapter(NamedTuple):
    """A chapter that is no subcommand.

    Attributes:
        about: what it says, in a line.
        lines: makes it.
    """

    about: str
    lines: Callable[[], Iterator[str]]


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


CHAPTERS: Final = {
    "world": Chapter(
        "What a guest's world is, has and has not: system calls, files, devices, limits.", _world
    )
}
"""The chapters by the names that TOPIC may be."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("topics", metavar="[TOPIC]", nargs=-1)
@click.pass_context
def help(context: click.Context, topics: tuple[str, ...]) -> None:
    """Show the help of a subcommand, or a chapter; without TOPIC list both.

    TOPIC is a subcommand ('help trace' is 'trace --help') or one of the chapters that are listed
    without it.
    """
    group = context.parent
    assert group is not None
    if len(topics) == 1 and topics[0] in CHAPTERS:
        for line in CHAPTERS[topics[0]].lines():
            console.put(line)
        return
    for word in topics:
        command = group.command
        found = command.get_command(group, word) if isinstance(command, click.Group) else None
        if found is None:
            raise CommandError(
                f"help: {' '.join(topics)}: neither a subcommand nor a chapter; "
                "'kprobe-tui help' lists both"
            )
        group = click.Context(found, info_name=word, parent=group)
    click.echo(group.get_help())
    if not topics:
        formatter = click.HelpFormatter(width=_WIDTH)
        with formatter.section("Chapters (kprobe-tui help CHAPTER)"):
            formatter.write_dl([(name, each.about) for name, each in CHAPTERS.items()])
        click.echo(f"\n{formatter.getvalue().rstrip()}")
