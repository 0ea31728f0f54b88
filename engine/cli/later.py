"""Options whose names are looked up when somebody gives or reads them, and not before.

What knows the names of techniques is the code that carries them out: a subcommand that is not
told any need not load it.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import click
from click.shell_completion import CompletionItem


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


class OptionOfLater(click.Option):
    """An option whose help is made when it is read."""

    def __init__(self, *args: Any, help_later: Callable[[], str], **more: Any) -> None:
        """An option, and what makes its help."""
        super().__init__(*args, **more)
        self._help_later = help_later

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Name and help."""
        self.help = self._help_later()
        return super().get_help_record(ctx)
