"""Options of commands that tell where a guest's time goes: latencies of functions, samples."""

from typing import Any, Final

import click
from click.core import ParameterSource
from msgspec import Struct

from engine.cli.grouped import Group, option
from engine.cli.options import Command
from engine.session.protocol.config import GuestConfig, Mode
from engine.session.protocol.requests import GraphRequest, TraceOptions

_OPTIONS: Final = (
    option(
        "--latency",
        "latency",
        multiple=True,
        metavar="GLOB",
        help="From entry to return of every matching function: a histogram and percentiles, in "
        "blocks of the guest; LIB:GLOB in a library.",
        group=Group.EVENTS,
    ),
    option(
        "--sample",
        "sample",
        type=click.IntRange(min=1),
        metavar="N",
        help="Sample what runs every N blocks of the guest, without probes: a report at the end, "
        "or the samples in a --format, as folded or pprof.",
        group=Group.EVENTS,
    ),
    option(
        "--threads",
        "by_thread",
        is_flag=True,
        help="With --latency or --sample: each thread by itself.",
        group=Group.OUTPUT,
    ),
    option(
        "--json",
        "as_json",
        is_flag=True,
        help="With --latency or --sample: the report as JSON.",
        group=Group.OUTPUT,
    ),
)
ALONE: Final = {
    "definitions": "-e",
    "globs": "-f",
    "returns": "-r",
    "watches": "--watch",
    "handlers": "--handlers",
    "script": "--bpftrace",
    "filters": "--filter",
    "triggers": "--trigger",
    "listing": "--list",
    "describe": "--describe",
    "list_form": "--list-as",
    "sample": "--sample",
    "stack": "--stack",
    "profile": "--profile",
    "text_options": "--option",
    "buffer": "--buffer",
    "overwrite": "--overwrite",
}
"""Options that do not go together with --latency, by parameter."""


class Timing(Struct, frozen=True):
    """The choices that parsed options stand for.

    Attributes:
        latency: patterns of functions whose latencies are told.
        sample: blocks between two samples, 0 for none.
        report: options of the report that is written in place of events; None for no report.
    """

    latency: tuple[str, ...]
    sample: int
    report: tuple[str, ...] | None


def timing_options(command: Command) -> Command:
    """Add these options."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


def timing_of(ctx: click.Context, *, instances: bool) -> Timing:
    """The options that were given.

    Args:
        ctx: of the command.
        instances: it has further sets of events.

    Raises:
        UsageError: they do not go together with others.
    """
    values = ctx.params
    latency, sample = values["latency"], values["sample"] or 0
    named = ctx.get_parameter_source("form") is not ParameterSource.DEFAULT
    report = (
        *(("json",) if values["as_json"] else ()),
        *(("threads",) if values["by_thread"] else ()),
    )
    flag = "--json" if values["as_json"] else "--threads"
    if report and not (latency or sample):
        more = "; events become JSON with --format jsonl" if values["as_json"] else ""
        raise click.UsageError(f"{flag} is for --latency and --sample{more}", ctx)
    if latency:
        also = [name for key, name in ALONE.items() if values.get(key)]
        also += ["--instance"] if instances else []
        also += ["--format"] if named else []
        if also:
            raise click.UsageError(f"--latency and {also[0]}: one of them in a run", ctx)
        return Timing(latency, 0, report)
    if not sample:
        return Timing((), 0, None)
    if report and named:
        raise click.UsageError(f"{flag} is for the report, which --format replaces", ctx)
    text = values.get("text_options")
    return Timing((), sample, None if named or text else report)


def latency_request(
    timing: Timing, config: GuestConfig, values: dict[str, Any], *, keeps: bool = True
) -> GraphRequest:
    """The run that tells latencies.

    Args:
        timing: which, and how.
        config: the guest.
        values: of the command's parameters.
        keeps: False where nothing is to be written.
    """
    from engine.cli.probe_options import tasks_of

    given = dict(values)
    options = TraceOptions(
        output=given["output"] if keeps else None,
        mode=Mode(given["mode_name"]),
        tasks=tasks_of(given),
    )
    return GraphRequest(
        config, timing.latency, options=options, text=timing.report or (), written="latency"
    )
