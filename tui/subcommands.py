"""`kprobe-tui config`, the settings, and `kprobe-tui learn`, the lessons.

Imports wait until a command runs: the list of subcommands must not cost Textual's import.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from tui.lessons import Lesson

OpenLesson = Callable[["Lesson", str, bool], int]
"""Opens a lesson with a kernel image ("" for none), in ASCII only or not; the exit code."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def config() -> None:
    """Settings of the terminal interface: where, what, a file to begin with."""


@config.command()
def path() -> None:
    """Print the file of settings."""
    from tui.settings import settings_path

    click.echo(str(settings_path()))


@config.command()
def show() -> None:
    """Print what is in force."""
    from tui.keymap import ACTIONS
    from tui.settings import load_settings

    settings = load_settings()
    click.echo(f"theme  {settings.theme or 'textual-dark'}")
    click.echo(f"ascii  {str(settings.ascii).lower()}")
    for action in ACTIONS:
        keys = settings.keys.get(action.id, action.keys)
        click.echo(f"{keys:<28} {action.id:<16} {action.help}")


@config.command()
def init() -> None:
    """Write a file of settings with everything in it, commented out."""
    from tui.settings import write_template

    click.echo(str(write_template()))


def _begun(
    context: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The lessons that begin with a text, with what each is about."""
    from tui.lessons import LESSONS, load_lesson

    found = [load_lesson(name) for name in LESSONS if name.startswith(incomplete)]
    return [CompletionItem(lesson.name, help=lesson.about) for lesson in found]


def learn_command(open_lesson: OpenLesson) -> click.Command:
    """Make the subcommand.

    Args:
        open_lesson: opens a lesson.
    """

    @click.command(context_settings={"help_option_names": ["-h", "--help"]})
    @click.option(
        "--kernel", default="", metavar="IMAGE", help="The kernel image for the lesson about one."
    )
    @click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII only.")
    @click.argument("lesson", required=False, shell_complete=_begun)
    def learn(lesson: str | None, kernel: str, ascii_only: bool) -> int:
        """List the lessons, or open LESSON, a number or a name, in the interface."""
        from tui.lessons import find_lesson, list_lessons

        if lesson is not None:
            return open_lesson(find_lesson(lesson), kernel, ascii_only)
        for line in list_lessons():
            click.echo(line)
        click.echo("'kprobe-tui learn N' opens one.")
        return 0

    return learn
