"""`kprobe-tui trace`: run a guest with events."""

import signal
from contextlib import AbstractContextManager
from typing import Any

import click
from msgspec.structs import replace

from engine.cli import console
from engine.cli.grouped import Group, SwitchedCommand, option
from engine.cli.host import attached, both
from engine.cli.instances import (
    INSTANCES,
    WithInstances,
    event_options,
    probes_of,
    trace_options,
)
from engine.cli.options import BOOT, boot_flag, config_of, guest_options, schedule_options
from engine.cli.probe_options import guest_probe_options, probe_options
from engine.cli.run import profiled, show, tell_profile
from engine.cli.timing_options import Timing, latency_request, timing_of, timing_options
from engine.session import Session
from engine.session.headless.traces import (
    LIST_FORMS,
    AttachScript,
    opened_graph,
    opened_trace,
)
from engine.session.protocol.config import Mode
from engine.session.protocol.requests import TraceInstance, TraceRequest


class _Trace(SwitchedCommand, WithInstances):
    """`trace`, which is another command with --boot."""

    flag = BOOT

    @property
    def other(self) -> click.Command:
        """The command that boots."""
        from engine.cli.boot_trace import trace_boot  # few traces boot a machine

        return trace_boot


@click.command(
    cls=_Trace,
    context_settings={"allow_interspersed_args": False},
    uses=(
        (
            "Calls of a function with its arguments",
            "-e 'p:demo/ack ackermann m=%di:u32 n=%si:u32' samples/bin/x86_64/recursion",
        ),
        ("System calls of a program", "-e 'syscalls/*' samples/bin/x86_64/recursion"),
        (
            "What a function returns, in a file for other tools",
            "-r factorial --format perfetto -o out.pftrace samples/bin/x86_64/recursion",
        ),
    ),
)
@event_options
@timing_options
@option(
    "--instance",
    metavar="NAME",
    help="Begin another set of events with a buffer, filters and output of its own: the -e, -f, "
    "-r, -o, --filter, --trigger, --format, --buffer ... behind it belong to it; again and again.",
    group=Group.EVENTS,
)
@option(
    "--maxactive-default",
    is_flag=True,
    help="A return probe without a number of its own gets as many instances as in Linux.",
    group=Group.EVENTS,
)
@option(
    "--handlers",
    metavar="FILE.py",
    help="Register the probes that a Python file defines.",
    group=Group.EVENTS,
)
@option(
    "--bpftrace",
    "script",
    metavar="FILE.bt",
    help="Run a script of bpftrace in the same run; what it prints goes to stdout.",
    group=Group.EVENTS,
)
@option(
    "--list",
    "listing",
    is_flag=True,
    help="List the definitions and do not run.",
    group=Group.OUTPUT,
)
@option(
    "--describe",
    is_flag=True,
    help="Print format, filter and trigger files of the events, and do not run.",
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
@probe_options
@guest_probe_options
@schedule_options
@guest_options
@click.pass_context
def trace(
    ctx: click.Context,
    /,
    listing: bool,
    describe: bool,
    list_form: str | None,
    **values: Any,
) -> int:
    """Run GUEST with ARGS and record events; standard streams and exit code are the guest's.

    The trace goes to stderr, or to the file of -o.
    """
    timing = timing_of(ctx, instances=bool(ctx.meta[INSTANCES]))
    if timing.latency:
        return _latencies(timing, values)
    runs = not (describe or listing or list_form is not None)
    request = trace_request(ctx, runs=runs)
    beside: AttachScript | None = None
    if values["script"] is not None:
        from engine.cli.bpftrace import script_beside  # few traces have a script

        beside = script_beside(values["script"], request.config, request.options.mode)
    with opened_trace(request, console.errors(), attach_script=beside) as traced:
        for text in traced.refused:
            console.text(text)
        special = dict(traced.special)
        if runs and any(each.overwrite for each in request.all_options):
            special[signal.SIGUSR1] = both(traced.write_ring, special.get(signal.SIGUSR1))

        def attach(session: Session) -> AbstractContextManager[None]:
            return attached(session, values["timeout"], special)

        if not runs:
            with traced.attached(attach):
                form = list_form or LIST_FORMS[0]
                for line in traced.described() if describe else traced.listed(form):
                    console.put(line, keep="\t" if describe else "")
            console.remarks(traced.remarks, values["color"])
            return 0
        profile = profiled(debug=values["debug"])
        reports = traced.run(attach)
        tell_profile(profile)
    show(reports, values["color"])
    return reports.exit_code


def _latencies(timing: Timing, values: dict[str, Any]) -> int:
    """Trace how long functions take; the exit code."""
    request = latency_request(timing, config_of(values), values)
    with opened_graph(request, console.errors()) as traced:
        reports = traced.run(lambda session: attached(session, values["timeout"]))
    show(reports, values["color"])
    return reports.exit_code


def trace_request(ctx: click.Context, *, runs: bool = True) -> TraceRequest:
    """The request that a parsed command line stands for.

    Args:
        ctx: of the command.
        runs: False where nothing is to be written.

    Raises:
        UsageError: its options do not go together.
        CommandError: a file of definitions cannot be read.
    """
    values = dict(ctx.params)
    instances: tuple[TraceInstance, ...] = ctx.meta[INSTANCES]
    mode, handlers = Mode(values.pop("mode_name")), values["handlers"]
    timing = timing_of(ctx, instances=bool(instances))
    if timing.latency:
        raise click.UsageError("--latency makes a report of its own, and no table of events")
    probes = replace(probes_of(values), sample=timing.sample)
    if probes.is_empty and handlers is None and not instances and values["script"] is None:
        raise click.UsageError(
            "nothing to trace: give -e DEF, -f GLOB, -r GLOB, --perf DEF, --watch EXPR, "
            "--handlers FILE.py, --bpftrace FILE, --latency GLOB or --sample N"
        )
    options = trace_options(values, keeps=runs)
    return TraceRequest(
        config_of(values),
        probes,
        replace(options, mode=mode, stack=options.stack or bool(timing.sample)),
        values["filters"],
        values["triggers"],
        handlers,
        values["maxactive_default"],
        tuple(each.adapted(mode, keeps=runs) for each in instances),
        timing.report,
    )
