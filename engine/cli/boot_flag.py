"""`--boot`: GUEST, a kernel image, is booted as a machine, and the command is another one."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Final

import click

from engine.cli.grouped import Group, option

BOOT: Final = "--boot"
boot_flag: Final = option(
    BOOT,
    "boots",
    is_flag=True,
    help="Boot GUEST, a kernel image, as a machine; its own options: --boot --help.",
    group=Group.IMAGES,
)


class Bootable(click.Command, ABC):
    """A command that is another one with --boot among its options."""

    @property
    @abstractmethod
    def booted(self) -> click.Command:
        """The command that boots."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse a command line; one with --boot is that of the other command."""
        if BOOT not in args:
            return super().make_context(info_name, args, parent, **extra)
        rest = without_flag(args, BOOT, (*self.params, *self.booted.params))
        if rest is None:
            return super().make_context(info_name, args, parent, **extra)
        return self.booted.make_context(f"{info_name} {BOOT}", rest, parent, **extra)


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
