"""Commands whose help begins with their commonest uses, and their options, which are in groups.

An option's group is said where the option is declared: `option("--root", ..., group=Group.GUEST)`.
A command's uses are said where the command is: `@click.command(cls=GroupedCommand, uses=(...))`.

Some options have names that are looked up when somebody gives or reads them, and not before: what
knows the names of techniques is the code that carries them out, which a subcommand that is not
told of one need not load.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, Final, TypeVar

import click
from click.shell_completion import CompletionItem

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Use = tuple[str, str]
"""The purpose of a command line, and the line without the command's own name."""

_INDENT: Final = 4
_WORDS: Final = re.compile(r"(?:[^\s']|'[^']*')+")


class Group(StrEnum):
    """The groups of options, in the order in which a help text has them."""

    EVENTS = "Events and probes"
    PERF = "Listings of perf probe"
    OUTPUT = "Output"
    GUEST = "Guest"
    LIMITS = "Limits"
    IMAGES = "Kernel images"
    WORKERS = "Processes that share the work"
    OTHERS = "Others"


class GroupedOption(click.Option):
    """An option that belongs to a group.

    Attributes:
        group: the section of the help text that the option stands in.
    """

    def __init__(self, *args: Any, group: Group, **more: Any) -> None:
        """Make the option; `more` is click's."""
        super().__init__(*args, **more)
        self.group = group


def option(
    *names: str, group: Group, cls: type[GroupedOption] = GroupedOption, **more: Any
) -> Callable[[Decorated], Decorated]:
    """Declare an option of a command, as `click.option` does.

    Args:
        names: of the option.
        group: the section of the help text that the option stands in.
        cls: class of the option.
        more: arguments of `click.option`.
    """
    return click.option(*names, cls=cls, group=group, **more)


class GroupedCommand(click.Command):
    """A command with its commonest uses in front of its help text, and its options in groups.

    Attributes:
        uses: three command lines, the commonest first.
        guest_behind: GUEST stands behind --, and a script's words in front of that.
    """

    guest_behind: ClassVar[bool] = False

    def __init__(self, *args: Any, uses: tuple[Use, ...] = (), **more: Any) -> None:
        """Make the command; `more` is click's."""
        super().__init__(*args, **more)
        self.uses = uses

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the uses, then what the command does."""
        for purpose, words in self.uses:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(f"{purpose}:")
            lines = _command_lines(f"{ctx.command_path} {words}".rstrip(), formatter.width)
            formatter.write("".join(f"{line}\n" for line in lines))
        super().format_help_text(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, group by group."""
        rows: dict[Group, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                group = parameter.group if isinstance(parameter, GroupedOption) else Group.OTHERS
                rows.setdefault(group, []).append(record)
        for group in Group:
            if group in rows:
                title = "Options" if len(rows) == 1 else str(group)
                with formatter.section(title):
                    formatter.write_dl(rows[group])


def _command_lines(command: str, width: int) -> Iterator[str]:
    """A command line fit to be copied: where it is too long it goes on behind a backslash.

    Args:
        command: words of a shell; one in single quotes stays whole.
        width: columns.
    """
    line = " " * _INDENT
    empty = True
    for word in _WORDS.findall(command):
        if not empty and len(line) + 1 + len(word) > width - 2:
            yield f"{line} \\"
            line = " " * (_INDENT + 2)
            empty = True
        line += word if empty else f" {word}"
        empty = False
    yield line


class ChoiceOfLater(click.ParamType[str]):
    """A choice of names; the one that stands where none is given needs no lookup."""

    name = "choice"

    def __init__(self, usual: str, names: Callable[[], Sequence[str]]) -> None:
        """Take the usual name, and what gives all of them."""
        self._usual = usual
        self._names = names

    @cached_property
    def _choice(self) -> "click.Choice[str]":
        return click.Choice(self._names())

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """One of the names; others are bad usage."""
        return self._usual if value == self._usual else self._choice.convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """The names for a help text."""
        return self._choice.get_metavar(param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names that begin so."""
        return self._choice.shell_complete(ctx, param, incomplete)


class OptionOfLater(GroupedOption):
    """An option whose help is made when it is read."""

    def __init__(self, *args: Any, help_later: Callable[[], str], **more: Any) -> None:
        """An option, and what makes its help."""
        super().__init__(*args, **more)
        self._help_later = help_later

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Name and help."""
        self.help = self._help_later()
        return super().get_help_record(ctx)


class SwitchedCommand(click.Command, ABC):
    """A command that is another one with a flag among its options.

    Attributes:
        flag: the option.
    """

    flag: ClassVar[str]

    @property
    @abstractmethod
    def other(self) -> click.Command:
        """The command with the flag."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse a command line; one with the flag is that of the other command."""
        if self.flag not in args:
            return super().make_context(info_name, args, parent, **extra)
        rest = without_flag(args, self.flag, (*self.params, *self.other.params))
        if rest is None:
            return super().make_context(info_name, args, parent, **extra)
        return self.other.make_context(f"{info_name} {self.flag}", rest, parent, **extra)


def without_flag(
    words: Sequence[str], flag: str, parameters: Iterable[click.Parameter]
) -> list[str] | None:
    """A command line without a flag; None where the flag is not among the options.

    The options end at the first word that is neither an option nor the value of one.

    Args:
        words: of the command line.
        flag: the flag.
        parameters: of the commands that the line may be for.
    """
    takes = {
        name
        for parameter in parameters
        if isinstance(parameter, click.Option) and not parameter.is_flag
        for name in parameter.opts
    }
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-", "--"):
        word = words[at]
        if word == flag:
            return [*words[:at], *words[at + 1 :]]
        at += 2 if word in takes else 1
    return None
