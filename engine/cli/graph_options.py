"""Options of subcommands that trace functions."""

from typing import Any, Final

import click

from engine.cli.grouped import Group, option
from engine.cli.options import Command
from engine.cli.probe_options import tasks_of
from engine.session.headless.traces import FORMAT_NAMES, WEIGH_CALLS
from engine.session.protocol.config import Mode
from engine.session.protocol.requests import TRACERS, GraphOptions, TraceOptions

WEIGHTS: Final = ("time", "calls")
_WEIGHED: Final = ("folded", "pprof")
_ONLY_GRAPH: Final = ("depth_max", "retval", "under")
_OPTIONS: Final = (
    option(
        "-f",
        "globs",
        multiple=True,
        metavar="GLOB",
        help="Trace the functions that match; LIB:GLOB in a library. Else all of the guest's own.",
        group=Group.EVENTS,
    ),
    option(
        "--tracer",
        type=click.Choice(TRACERS),
        default=TRACERS[0],
        show_default=True,
        help="Calls with their returns, or calls alone.",
        group=Group.EVENTS,
    ),
    option(
        "-D",
        "--max-depth",
        "depth_max",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="Show calls N deep; 0 for all.",
        group=Group.EVENTS,
    ),
    option("--retval", is_flag=True, help="Show what functions return.", group=Group.OUTPUT),
    option(
        "-F",
        "--under",
        "under",
        multiple=True,
        metavar="GLOB",
        help="Only what is called in these functions.",
        group=Group.EVENTS,
    ),
    option(
        "-N",
        "--not",
        "without",
        multiple=True,
        metavar="GLOB",
        help="Not these functions, nor (in the graph) what is called in them.",
        group=Group.EVENTS,
    ),
    option(
        "--option",
        "text_options",
        multiple=True,
        metavar="NAME",
        help="A trace option of tracefs: funcgraph-tail, nofuncgraph-duration, sym-offset, ...",
        group=Group.OUTPUT,
    ),
    option(
        "--format",
        "form",
        type=click.Choice(FORMAT_NAMES),
        default=FORMAT_NAMES[0],
        show_default=True,
        help="The tracer's text, or calls and returns as events of another format.",
        group=Group.OUTPUT,
    ),
    option(
        "--weigh",
        type=click.Choice(WEIGHTS),
        default=WEIGHTS[0],
        show_default=True,
        help="Of --format folded and pprof: what a stack counts, time in its last function or "
        "calls of that. A profile has both and shows this one first.",
        group=Group.OUTPUT,
    ),
    option(
        "-o",
        "output",
        metavar="FILE",
        help="Write the trace there, not to stderr.",
        group=Group.OUTPUT,
    ),
    option(
        "--buffer",
        type=click.IntRange(min=1),
        metavar="N",
        help="Keep N events and print them at the end.",
        group=Group.OUTPUT,
    ),
    option(
        "--overwrite",
        is_flag=True,
        help="With --buffer: keep the last events.",
        group=Group.OUTPUT,
    ),
)


def graph_options(command: Command) -> Command:
    """Add what says which functions are traced, and how that is written."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


def graph_choice(
    values: dict[str, Any], *, args: bool = False, keeps: bool = True
) -> tuple[GraphOptions, TraceOptions]:
    """The tracer, and the form of its trace, that parsed options stand for; they are taken out.

    Args:
        values: of all options.
        args: arguments of the functions are recorded.
        keeps: False where nothing is to be written.

    Raises:
        UsageError: the options do not go together.
    """
    form, weigh = values.pop("form"), values.pop("weigh")
    if weigh != WEIGHTS[0] and form not in _WEIGHED:
        raise click.UsageError(f"--weigh {weigh} is for --format folded and pprof")
    tracer, buffer, overwrite = (values.pop(name) for name in ("tracer", "buffer", "overwrite"))
    output = values.pop("output")
    if overwrite and buffer is None:
        raise click.UsageError("--overwrite needs --buffer N")
    given = {name: values.pop(name) for name in _ONLY_GRAPH}
    if tracer != TRACERS[0]:
        for name in _ONLY_GRAPH:
            if given[name]:
                raise click.UsageError(
                    f"--{name.replace('depth_max', 'max-depth')} is for calls "
                    f"with their returns, not for --tracer {tracer}"
                )
    keep = TraceOptions(
        form,
        text=(WEIGH_CALLS,) if weigh != WEIGHTS[0] else (),
        output=output if keeps else None,
        buffer=buffer,
        overwrite=overwrite,
        mode=Mode(values.pop("mode_name")),
        tasks=tasks_of(values),
        prototypes=values.pop("prototypes", None),
        printing=values.pop("printing", ()),
    )
    graph = GraphOptions(
        tracer, given["depth_max"], args, given["retval"], given["under"], values.pop("without")
    )
    return graph, keep
