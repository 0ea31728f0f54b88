"""Options of subcommands that place or judge probes."""

from typing import Any, Final

import click

from engine.cli.grouped import ChoiceOfLater, Group, OptionOfLater, option
from engine.cli.options import Command
from engine.session.protocol.config import AUTO, Mode
from engine.session.protocol.requests import TaskChoice

mode_option: Final = option(
    "--mode",
    "mode_name",
    type=click.Choice([mode.value for mode in Mode]),
    default=Mode.STRICT.value,
    show_default=True,
    help="kernel: refuse what Linux refuses; strict: also what would corrupt the program.",
    group=Group.EVENTS,
)


def _techniques() -> tuple[str, ...]:
    from engine.session.headless.choices import TECHNIQUE_NAMES  # with all that makes probes

    return TECHNIQUE_NAMES


def _technique_help() -> str:
    from engine.session.headless.choices import TECHNIQUES

    words = (
        "auto: breakpoints that become jumps where they can",
        *(f"{kind.name}: {kind.help}" for kind in TECHNIQUES if kind.help),
    )
    return "; ".join(words) + "."


def _returns() -> tuple[str, ...]:
    from engine.session.headless.choices import RETURNS

    return RETURNS


_technique_option: Final = option(
    "--technique",
    cls=OptionOfLater,
    type=ChoiceOfLater(AUTO, _techniques),
    default=AUTO,
    show_default=True,
    help_later=_technique_help,
    group=Group.EVENTS,
)


_returns_option: Final = option(
    "--returns",
    "caught_by",
    type=ChoiceOfLater(AUTO, _returns),
    default=AUTO,
    show_default=True,
    help="How returns are caught: watched where they lead, by Linux's trampoline (mainline), or "
    "by Owens' with unwind data (IA-64); auto: watched in strict mode, mainline in kernel mode.",
    group=Group.EVENTS,
)


def ids_of(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[int, ...]:
    """The ids of an option that takes several, again and again, with commas between them.

    Raises:
        BadParameter: one is no number of a process.
    """
    found: list[int] = []
    for word in (word.strip() for text in given for word in text.split(",")):
        if not (word.isascii() and word.isdigit()) or not 0 < int(word) < 1 << 31:
            raise click.BadParameter(f"{word!r} is no id of a process or thread, as 1000")
        found.append(int(word))
    return tuple(found)


_pid_option: Final = option(
    "--pid",
    "pids",
    multiple=True,
    callback=ids_of,
    metavar="PID[,PID...]",
    help="Only in these processes of the guest, with all their threads, or in these threads; the "
    "first one is 1000.",
    group=Group.EVENTS,
)
_comm_option: Final = option(
    "--comm",
    "comms",
    multiple=True,
    metavar="GLOB",
    help="Only in threads whose name matches.",
    group=Group.EVENTS,
)


def task_options(command: Command) -> Command:
    """Add what says in which processes and threads something counts; see `tasks_of`."""
    return _pid_option(_comm_option(command))


def tasks_of(values: dict[str, Any]) -> TaskChoice:
    """The choice that parsed options stand for."""
    return TaskChoice(values.pop("pids", ()), values.pop("comms", ()))


_follow_option: Final = option(
    "--follow",
    type=click.Choice(["yes", "no"]),
    default="yes",
    show_default=True,
    help="Probes are in the guest's new processes (fork) and programs (exec), too.",
    group=Group.EVENTS,
)


def guest_probe_options(command: Command) -> Command:
    """Add the options of every subcommand that runs a guest with probes."""
    return _returns_option(_follow_option(command))


def probe_options(command: Command) -> Command:
    """Add the options of every subcommand that places or judges probes."""
    return mode_option(_technique_option(command))
