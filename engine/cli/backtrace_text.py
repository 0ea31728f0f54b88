"""The text and the JSON of backtraces, and the options that say how much of them is shown."""

from typing import Any, Final

import click

from engine.cli import console
from engine.cli.grouped import Group, option
from engine.cli.options import Command
from engine.session.headless.backtraces import Backtrace, ThreadBacktrace

_OPTIONS: Final = (
    option(
        "--hit",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="At the Nth time.",
        group=Group.EVENTS,
    ),
    option("--json", "as_json", is_flag=True, help="Print JSON.", group=Group.OUTPUT),
    option(
        "--registers", is_flag=True, help="Show the registers of each frame.", group=Group.OUTPUT
    ),
    option(
        "--limit",
        type=click.IntRange(min=1),
        metavar="N",
        help="At most N frames.",
        group=Group.OUTPUT,
    ),
)


def backtrace_options(command: Command) -> Command:
    """Add the options of every subcommand that prints a backtrace at a place."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


def json_of(
    taken: list[Backtrace | ThreadBacktrace], *, registers: bool, all_threads: bool
) -> dict[str, Any]:
    """The first backtrace, with the others as its `threads`."""
    backtrace, *others = taken
    assert isinstance(backtrace, Backtrace), "the first one is of the thread that stopped"
    found = backtrace.as_json()
    if registers:
        for row, frame in zip(found["frames"], backtrace.frames, strict=True):
            row["registers"] = {n: f"{value:#x}" for n, value in frame.registers.items()}
    if all_threads:
        found["threads"] = [other.as_json() for other in others]
    return found


def put_backtrace(found: Backtrace | ThreadBacktrace, *, registers: bool) -> None:
    """Print a backtrace, those of other threads under a title."""
    backtrace: Backtrace | None
    if isinstance(found, ThreadBacktrace):
        console.put("")
        console.put(found.title())
        backtrace = found.backtrace
    else:
        backtrace = found
    if backtrace is None:
        return
    *lines, end = backtrace.lines()
    for line, frame in zip(lines, backtrace.frames, strict=True):
        console.put(line)
        if registers and not frame.inlined:
            for name, value in frame.registers.items():
                console.put(f"      {name:8} {value:#018x}")
    console.put(end)
    console.flush()
