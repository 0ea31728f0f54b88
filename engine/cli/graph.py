"""`kprobe-tui graph`: run a guest with its functions traced."""

from typing import Any

import click

from engine.cli import console
from engine.cli.graph_options import graph_choice, graph_options
from engine.cli.grouped import Group, GroupedCommand, SwitchedCommand, option
from engine.cli.host import attached
from engine.cli.instances import typing_options
from engine.cli.options import BOOT, boot_flag, config_of, guest_options, schedule_options
from engine.cli.probe_options import guest_probe_options, probe_options, task_options
from engine.cli.run import show
from engine.session.headless.traces import LIST_FORMS, opened_graph
from engine.session.protocol.requests import GraphRequest


class _Graph(SwitchedCommand, GroupedCommand):
    """`graph`, which is another command with --boot."""

    flag = BOOT

    @property
    def other(self) -> click.Command:
        """The command that boots."""
        from engine.cli.boot_graph import graph_boot  # few graphs boot a machine

        return graph_boot


@click.command(
    cls=_Graph,
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
@graph_options
@option(
    "--args",
    "args_",
    is_flag=True,
    help="Show what functions are called with.",
    group=Group.OUTPUT,
)
@typing_options
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
@boot_flag
@task_options
@probe_options
@guest_probe_options
@schedule_options
@guest_options
def graph(
    globs: tuple[str, ...],
    args_: bool,
    text_options: tuple[str, ...],
    summary: bool,
    listing: bool,
    list_form: str | None,
    boots: bool,
    **values: Any,
) -> int:
    """Run GUEST with ARGS and show its calls, as ftrace's function_graph tracer does.

    Times and durations count the guest's own blocks of code. The trace goes to stderr, or to
    the file of -o; standard streams and exit code are the guest's.
    """
    keeps = not listing and list_form is None
    options, keep = graph_choice(values, args=args_, keeps=keeps)
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
