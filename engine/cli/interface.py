"""`kprobe-tui GUEST`: the options of the terminal interface, which a layer above provides."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import click

from engine.cli.options import config_of, lines_of, open_options, replay_options
from engine.cli.probe_options import guest_probe_options, probe_options
from engine.session import GuestConfig


@dataclass(frozen=True, slots=True)
class InterfaceOptions:
    """Options of the interface as it is opened.

    Attributes:
        config: the guest; its name is "" to have the user pick a sample.
        definitions: lines of `kprobe_events` to place first.
        kernel_rules: place probes exactly as Linux would.
        ascii_only: draw with ASCII only.
        color: "auto", "always" or "never".
        fresh: do not restore probes and layout of the last time.
    """

    config: GuestConfig
    definitions: tuple[str, ...] = ()
    kernel_rules: bool = False
    ascii_only: bool = False
    color: str = "auto"
    fresh: bool = False


Interface = Callable[[InterfaceOptions], int]
"""Opens the interface; the exit code."""


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("-e", "definitions", multiple=True, metavar="DEF", help="Place a probe first.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII only.")
@click.option("--fresh", is_flag=True, help="Forget the probes and layout of the last time.")
@probe_options
@guest_probe_options
@replay_options
@open_options
@click.argument("guest", type=click.Path(), required=False)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def interface(
    open_interface: Interface,
    /,
    definitions: tuple[str, ...],
    ascii_only: bool,
    fresh: bool,
    mode_name: str,
    **values: Any,
) -> int:
    """Open GUEST in the terminal interface; without GUEST, pick one of the samples."""
    return open_interface(
        InterfaceOptions(
            config_of({**values, "guest": values["guest"] or ""}),
            tuple(lines_of(definitions)),
            mode_name == "kernel",
            ascii_only,
            values["color"],
            fresh,
        )
    )


def is_wanted(argv: list[str], subcommands: Collection[str]) -> bool:
    """True if the first word that is no option is a GUEST, or there is none.

    Args:
        argv: the command line.
        subcommands: words that are no GUEST there.
    """
    takes = {
        name: option.nargs if not option.is_flag else 0
        for option in interface.params
        if isinstance(option, click.Option)
        for name in option.opts
    }
    words = iter(argv)
    for word in words:
        if word in ("-h", "--help", "--version"):
            return False
        if not word.startswith("-") or word == "-":
            return word not in subcommands
        if word == "--":
            return True
        name, given, _ = word.partition("=")
        if not given:
            for _ in range(takes.get(name, 0)):
                next(words, None)
    return True
