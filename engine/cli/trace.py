"""`kprobe-tui trace`: run a guest with events."""

import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import click

from engine.cli import console
from engine.cli.host import attached
from engine.cli.options import config_of, guest_options, lines_of, schedule_options
from engine.cli.probe_options import guest_probe_options, probe_options, task_options, tasks_of
from engine.cli.run import remarks, show
from engine.session import Session
from engine.session.headless.traces import FORMAT_NAMES, LIST_FORMS, opened_trace
from engine.session.protocol.config import Mode
from engine.session.protocol.requests import ProbeRequest, TraceOptions, TraceRequest


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "-e",
    "definitions",
    multiple=True,
    metavar="DEF",
    help="An event, as a line of kprobe_events, system calls, as syscalls/GLOB, or what the "
    "scheduler does, as sched:GLOB; again and again; @FILE reads lines.",
)
@click.option(
    "-f",
    "globs",
    multiple=True,
    metavar="GLOB",
    help="An event on the entry of every matching function; LIB:GLOB in a library.",
)
@click.option(
    "-r",
    "returns",
    multiple=True,
    metavar="GLOB",
    help="An event on the return of every matching function.",
)
@click.option(
    "--maxactive-default",
    is_flag=True,
    help="A return probe without a number of its own gets as many instances as in Linux.",
)
@click.option(
    "--handlers", metavar="FILE.py", help="Register the probes that a Python file defines."
)
@click.option("-o", "output", metavar="FILE", help="Write the trace there, not to stderr.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMAT_NAMES),
    default=FORMAT_NAMES[0],
    show_default=True,
    help="How events are written.",
)
@click.option(
    "--buffer",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep N events and print them at the end.",
)
@click.option(
    "--overwrite",
    is_flag=True,
    help="With --buffer: keep the last events; SIGUSR1 writes them out, too.",
)
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="GROUP/NAME:EXPR",
    help="Record an event only where the kernel's filter expression holds.",
)
@click.option(
    "--trigger",
    "triggers",
    multiple=True,
    metavar="GROUP/NAME:TRIGGER",
    help="Do something at an event: stacktrace, traceon, traceoff, snapshot, enable_event, "
    "disable_event, hist:keys=FIELD.",
)
@click.option("--stack", is_flag=True, help="Record the call stack behind each event.")
@click.option("--profile", is_flag=True, help="Print hits and misses of each probe at the end.")
@click.option(
    "--option",
    "text_options",
    multiple=True,
    metavar="NAME",
    help="A trace option of tracefs for the text: fields, raw, hex, verbose, noirq-info, ...",
)
@click.option("--list", "listing", is_flag=True, help="List the definitions and do not run.")
@click.option(
    "--describe",
    is_flag=True,
    help="Print format, filter and trigger files of the events, and do not run.",
)
@click.option(
    "--list-as",
    "list_form",
    type=click.Choice(LIST_FORMS),
    help="List them as commands for another tool, and do not run.",
)
@task_options
@probe_options
@guest_probe_options
@schedule_options
@guest_options
def trace(
    definitions: tuple[str, ...],
    globs: tuple[str, ...],
    returns: tuple[str, ...],
    maxactive_default: bool,
    handlers: str | None,
    output: str | None,
    form: str,
    buffer: int | None,
    overwrite: bool,
    filters: tuple[str, ...],
    triggers: tuple[str, ...],
    stack: bool,
    profile: bool,
    text_options: tuple[str, ...],
    listing: bool,
    describe: bool,
    list_form: str | None,
    mode_name: str,
    **values: Any,
) -> int:
    """Run GUEST with ARGS and record events; standard streams and exit code are the guest's.

    The trace goes to stderr, or to the file of -o.
    """
    if not definitions and not globs and not returns and handlers is None:
        raise click.UsageError(
            "nothing to trace: give -e DEF, -f GLOB, -r GLOB or --handlers FILE.py"
        )
    if overwrite and buffer is None:
        raise click.UsageError("--overwrite needs --buffer N")
    mode = Mode(mode_name)
    runs = not (describe or listing or list_form is not None)
    kept = output if runs else None
    request = TraceRequest(
        config_of(values),
        ProbeRequest(tuple(lines_of(definitions)), globs, returns),
        TraceOptions(
            form, kept, buffer, overwrite, mode, stack, profile, text_options, tasks_of(values)
        ),
        filters,
        triggers,
        handlers,
        maxactive_default,
    )
    with opened_trace(request, console.errors()) as traced:
        for text in traced.refused:
            console.text(text)
        special: dict[int, Callable[[], None]] = {}
        if runs and buffer is not None and overwrite:
            special[signal.SIGUSR1] = traced.write_ring

        def attach(session: Session) -> AbstractContextManager[None]:
            return attached(session, values["timeout"], special)

        if not runs:
            with traced.attached(attach):
                form = list_form or LIST_FORMS[0]
                for line in traced.described() if describe else traced.listed(form):
                    console.put(line)
            remarks(traced.remarks, values["color"])
            return 0
        reports = traced.run(attach)
    show(reports, values["color"])
    return reports.exit_code
