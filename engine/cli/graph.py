"""`kprobe-tui graph`: run a guest with its functions traced."""

from contextlib import AbstractContextManager
from typing import Any

import click
from msgspec.structs import replace

from engine.cli import console
from engine.cli.graph_options import graph_choice, graph_options
from engine.cli.grouped import Group, GroupedCommand, SwitchedCommand, option
from engine.cli.host import attached
from engine.cli.instances import typing_options
from engine.cli.options import BOOT, boot_flag, config_of, guest_options, schedule_options
from engine.cli.probe_options import guest_probe_options, probe_options, task_options
from engine.cli.report_options import (
    check_alone,
    check_recorded,
    difference_options,
    report_choice,
    report_options,
)
from engine.cli.run import show
from engine.session import GuestConfig, Session
from engine.session.headless.traces import FORMAT_NAMES, LIST_FORMS, opened_graph
from engine.session.protocol.config import recording_config
from engine.session.protocol.requests import TRACERS, CallChoice, GraphRequest


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
        ("The functions that take longest", "--report -s self samples/bin/x86_64/recursion"),
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
    "--auto-args",
    is_flag=True,
    help="Show arguments and results of the functions whose types are known.",
    group=Group.OUTPUT,
)
@option(
    "-H",
    "--hide",
    "hidden",
    multiple=True,
    metavar="GLOB",
    help="Not these functions, but what is called in them.",
    group=Group.EVENTS,
)
@option(
    "-C",
    "--caller-filter",
    "callers_of",
    multiple=True,
    metavar="GLOB",
    help="Only calls that lead to a call of these functions, and those.",
    group=Group.EVENTS,
)
@option(
    "-t",
    "--time-filter",
    "shortest",
    type=click.IntRange(min=0),
    default=0,
    metavar="TICKS",
    help="Only calls that take at least so long.",
    group=Group.EVENTS,
)
@option(
    "-Z",
    "--size-filter",
    "size_min",
    type=click.IntRange(min=0),
    default=0,
    metavar="BYTES",
    help="Only functions of at least so many bytes.",
    group=Group.EVENTS,
)
@report_options
@difference_options
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
    auto_args: bool,
    hidden: tuple[str, ...],
    callers_of: tuple[str, ...],
    shortest: int,
    size_min: int,
    text_options: tuple[str, ...],
    summary: bool,
    listing: bool,
    list_form: str | None,
    boots: bool,
    **values: Any,
) -> int:
    """Run GUEST with ARGS and show its calls, as ftrace's function_graph tracer does.

    Times and durations count the guest's own blocks of code. The trace goes to stderr, or to
    the file of -o; standard streams and exit code are the guest's. GUEST may be a recording.
    """
    keeps = not listing and list_form is None
    as_json = values["as_json"]
    words, compared = report_choice(values, "ticks")
    chosen, keep = graph_choice(values, args=args_ or auto_args, keeps=keeps)
    calls = CallChoice(shortest, callers_of)
    if chosen.tracer != TRACERS[0] and (words or calls != CallChoice()):
        raise click.UsageError(f"--tracer {chosen.tracer}: nobody knows how long a call takes")
    if words:
        check_alone(keep, text_options)
    elif as_json and (text_options or keep.format != FORMAT_NAMES[0]):
        other = "--option" if text_options else "--format"
        raise click.UsageError(f"--json and {other}: one of them")
    options = replace(
        chosen,
        retval=chosen.retval or (auto_args and chosen.tracer == TRACERS[0]),
        auto=auto_args and not chosen.retval,
        hidden=hidden,
        size_min=size_min,
    )
    config = recording_config(config_of(values))
    if config.recording is not None:
        check_recorded(click.get_current_context())
    keep = replace(keep, calls=calls)
    written = "calls" if as_json and not words else ""
    request = GraphRequest(config, globs, options, keep, text_options, summary, words, written)

    def attach(session: Session) -> AbstractContextManager[None]:
        return attached(session, values["timeout"])

    maker = None
    if words:
        from engine.session.headless.graph_reports import baseline_of, report_maker  # as below

        baseline = None if compared is None else baseline_of(request, compared, attach)
        maker = report_maker(words, baseline)
    with opened_graph(request, console.errors(), _loaded, maker) as traced:
        if listing or list_form is not None:
            for line in traced.listed(list_form or LIST_FORMS[0]):
                console.put(line)
            console.remarks(traced.remarks, values["color"])
            return 0
        reports = traced.run(attach)
    show(reports, values["color"])
    return reports.exit_code


def _loaded(config: GuestConfig) -> Session:
    """The guest of a configuration; of a recording, what it wrote is written again."""
    if config.recording is None:
        return Session(config)
    from engine.session.headless.graph_reports import recorded_session  # few guests are

    return recorded_session(config, console.write_guest)
