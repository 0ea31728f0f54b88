"""`kprobe-tui trace`: run a guest with events."""

import sys
from typing import Any

import click

from engine.arch.plan import Mode
from engine.cli.host import attached
from engine.cli.options import config_of, guest_options, lines_of, probe_options
from engine.cli.run import show
from engine.session import Session
from engine.session.exporting import KERNEL_FORM, LIST_FORMS, listed
from engine.session.handlers import blamed, load_handlers
from engine.session.report import Reports
from engine.session.tracing import TraceOptions, Tracing


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "-e",
    "definitions",
    multiple=True,
    metavar="DEF",
    help="An event, as a line of kprobe_events; again and again; @FILE reads lines.",
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
    type=click.Choice(["ftrace"]),
    default="ftrace",
    show_default=True,
    help="How events are written.",
)
@click.option(
    "--buffer",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep N events and print them at the end.",
)
@click.option("--overwrite", is_flag=True, help="With --buffer: keep the last events.")
@click.option("--list", "listing", is_flag=True, help="List the definitions and do not run.")
@click.option(
    "--list-as",
    "list_form",
    type=click.Choice(LIST_FORMS),
    help="List them as commands for another tool, and do not run.",
)
@probe_options
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
    listing: bool,
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
    session = Session(config_of(values))
    try:
        options = TraceOptions(form, output, buffer, overwrite, Mode(mode_name))
        tracing = Tracing(session, options, sys.stderr.buffer)
        if maxactive_default:
            session.probes().manager.kernel_maxactive = True
        for line in lines_of(definitions):
            tracing.define(line)
        for glob in globs:
            tracing.trace_functions(glob)
        for glob in returns:
            tracing.trace_returns(glob)
        if listing or list_form is not None:
            for line in listed(tracing, list_form or KERNEL_FORM):
                click.echo(line)
            return 0
        if handlers is not None:
            load_handlers(handlers, session)
        tracing.start()
        if output is None:
            session.hooks.syscall_enter = lambda *_: tracing.drain()
        try:
            with attached(session, values["timeout"]), blamed(handlers):
                reports = session.run()
        finally:
            remarks = tracing.finish()
        show(Reports(reports.exit, (*remarks, *reports.remarks)), values["color"])
    finally:
        session.close()
    return reports.exit_code
