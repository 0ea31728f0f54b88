"""`kprobe-tui graph`: run a guest with its functions traced."""

from typing import Any

import click

from engine.cli import console
from engine.cli.grouped import Group, GroupedCommand, option
from engine.cli.host import attached
from engine.cli.options import config_of, guest_options, schedule_options
from engine.cli.probe_options import guest_probe_options, probe_options, task_options, tasks_of
from engine.cli.run import show
from engine.session.headless.traces import FORMAT_NAMES, LIST_FORMS, opened_graph
from engine.session.protocol.config import Mode
from engine.session.protocol.requests import TRACERS, GraphOptions, GraphRequest, TraceOptions

_ONLY_GRAPH = ("depth_max", "retval", "under")


@click.command(
    cls=GroupedCommand,
    context_settings={"allow_interspersed_args": False},
    uses=(
        ("All calls of the program's own functions", "samples/bin/x86_64/recursion"),
        (
            "Some functions, with arguments and return values",
            "-f 'f*' --args --retval samples/bin/x86_64/recursion",
        ),
        ("No deeper than two calls", "--max-depth 2 samples/bin/x86_64/recursion"),
    ),
)
@option(
    "-f",
    "globs",
    multiple=True,
    metavar="GLOB",
    help="Trace the functions that match; LIB:GLOB in a library. Else all of the guest's own.",
    group=Group.EVENTS,
)
@option(
    "--tracer",
    type=click.Choice(TRACERS),
    default=TRACERS[0],
    show_default=True,
    help="Calls with their returns, or calls alone.",
    group=Group.EVENTS,
)
@option(
    "--max-depth",
    "depth_max",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Show calls N deep; 0 for all.",
    group=Group.EVENTS,
)
@option(
    "--args",
    "args_",
    is_flag=True,
    help="Show what functions are called with.",
    group=Group.OUTPUT,
)
@option("--retval", is_flag=True, help="Show what functions return.", group=Group.OUTPUT)
@option(
    "--under",
    multiple=True,
    metavar="GLOB",
    help="Only what is called in these functions.",
    group=Group.EVENTS,
)
@option(
    "--not",
    "without",
    multiple=True,
    metavar="GLOB",
    help="Not these functions, nor (in the graph) what is called in them.",
    group=Group.EVENTS,
)
@option(
    "--option",
    "text_options",
    multiple=True,
    metavar="NAME",
    help="A trace option of tracefs: funcgraph-tail, nofuncgraph-duration, sym-offset, ...",
    group=Group.OUTPUT,
)
@option(
    "--format",
    "form",
    type=click.Choice(FORMAT_NAMES),
    default=FORMAT_NAMES[0],
    show_default=True,
    help="The tracer's text, or calls and returns as events of another format.",
    group=Group.OUTPUT,
)
@option(
    "-o",
    "output",
    metavar="FILE",
    help="Write the trace there, not to stderr.",
    group=Group.OUTPUT,
)
@option(
    "--buffer",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep N events and print them at the end.",
    group=Group.OUTPUT,
)
@option(
    "--overwrite", is_flag=True, help="With --buffer: keep the last events.", group=Group.OUTPUT
)
@option(
    "--summary",
    is_flag=True,
    help="Say at the end what was traced and what it took.",
    group=Group.OUTPUT,
)
@option(
    "--list",
    "listing",
    is_flag=True,
    help="List the functions as definitions of events and do not run.",
    group=Group.OUTPUT,
)
@option(
    "--list-as",
    "list_form",
    type=click.Choice(LIST_FORMS),
    help="List them as commands for another tool, and do not run.",
    group=Group.OUTPUT,
)
@task_options
@probe_options
@guest_probe_options
@schedule_options
@guest_options
def graph(
    globs: tuple[str, ...],
    tracer: str,
    depth_max: int,
    args_: bool,
    retval: bool,
    under: tuple[str, ...],
    without: tuple[str, ...],
    text_options: tuple[str, ...],
    form: str,
    output: str | None,
    buffer: int | None,
    overwrite: bool,
    summary: bool,
    listing: bool,
    list_form: str | None,
    mode_name: str,
    **values: Any,
) -> int:
    """Run GUEST with ARGS and show its calls, as ftrace's function_graph tracer does.

    Times and durations count the guest's own blocks of code. The trace goes to stderr, or to
    the file of -o; standard streams and exit code are the guest's.
    """
    if overwrite and buffer is None:
        raise click.UsageError("--overwrite needs --buffer N")
    if tracer != TRACERS[0]:
        given = {"depth_max": depth_max, "retval": retval, "under": under}
        for name in _ONLY_GRAPH:
            if given[name]:
                raise click.UsageError(
                    f"--{name.replace('depth_max', 'max-depth')} is for calls "
                    f"with their returns, not for --tracer {tracer}"
                )
    keep = TraceOptions(
        form,
        output=None if listing or list_form is not None else output,
        buffer=buffer,
        overwrite=overwrite,
        mode=Mode(mode_name),
        tasks=tasks_of(values),
    )
    options = GraphOptions(tracer, depth_max, args_, retval, under, without)
    request = GraphRequest(config_of(values), globs, options, keep, text_options, summary)
    with opened_graph(request, console.errors()) as traced:
        if listing or list_form is not None:
            for line in traced.listed(list_form or LIST_FORMS[0]):
                console.put(line)
            console.remarks(traced.remarks, values["color"])
            return 0
        reports = traced.run(lambda session: attached(session, values["timeout"]))
    show(reports, values["color"])
    return reports.exit_code
