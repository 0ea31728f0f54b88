"""`kprobe-tui trace`: run a guest with events."""

import signal
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import click

from engine.arch.plan import Mode
from engine.cli.host import attached
from engine.cli.options import config_of, guest_options, lines_of, probe_options, returns_option
from engine.cli.run import show
from engine.errors import ProbeError, ProbeSyntaxError
from engine.session import Session
from engine.session.protocol.report import Reports
from engine.session.tracing.exporting import KERNEL_FORM, LIST_FORMS, listed
from engine.session.tracing.handlers import blamed, load_handlers
from engine.session.tracing.tracing import TraceOptions, Tracing
from engine.session.tracing.triggers import split_option
from engine.trace.fields import format_text
from engine.trace.formats import FORMATS


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "-e",
    "definitions",
    multiple=True,
    metavar="DEF",
    help="An event, as a line of kprobe_events, or system calls, as syscalls/GLOB; again and "
    "again; @FILE reads lines.",
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
    type=click.Choice([form.name for form in FORMATS]),
    default=FORMATS[0].name,
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
@probe_options
@returns_option
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
    session = Session(config_of(values))
    try:
        mode = Mode(mode_name)
        options = TraceOptions(form, output, buffer, overwrite, mode, stack, profile, text_options)
        tracing = Tracing(session, options, sys.stderr.buffer)
        if maxactive_default:
            session.probes().manager.kernel_maxactive = True
        for line in lines_of(definitions):
            tracing.define(line)
        for glob in globs:
            tracing.trace_functions(glob)
        for glob in returns:
            tracing.trace_returns(glob)
        refused = [
            *(each for text in filters for each in controlled(tracing, "--filter", text)),
            *(each for text in triggers for each in controlled(tracing, "--trigger", text)),
        ]
        for text in refused:
            if text:
                click.echo(text, err=True)
        if describe:
            for line in described(tracing):
                click.echo(line)
            return 0
        if listing or list_form is not None:
            for line in listed(tracing, list_form or KERNEL_FORM):
                click.echo(line)
            return 0
        if handlers is not None:
            load_handlers(handlers, session)
        tracing.start()
        if output is None:
            session.hooks.syscall_enter = drained(session.hooks.syscall_enter, tracing)
        special: dict[int, Callable[[], None]] = {}
        if buffer is not None and overwrite:
            session.hooks.attention = tracing.dump
            special[signal.SIGUSR1] = session.kernel.host_attention
        try:
            with attached(session, values["timeout"], special), blamed(handlers):
                reports = session.run()
        finally:
            remarks = tracing.finish()
        show(Reports(reports.exit, (*remarks, *reports.remarks)), values["color"])
    finally:
        session.close()
    return reports.exit_code


def controlled(tracing: Tracing, option: str, given: str) -> Iterator[str]:
    """Give events a filter or a trigger; what was refused in kernel mode.

    The event may be a pattern. As with a filter for a whole group under tracefs, those of the
    events that do not have a field are left alone then, if any other has it.

    Raises:
        ProbeError: there is no such event, or none of them takes it.
    """
    group, name, text = split_option(option, given)
    change = tracing.set_filter if option == "--filter" else tracing.add_trigger
    if not any(sign in group + name for sign in "*?["):
        yield change(group, name, text)
        return
    refused: list[ProbeSyntaxError] = []
    matching = [
        key for key in tracing.infos if fnmatchcase(key[0], group) and fnmatchcase(key[1], name)
    ]
    for key in matching:
        try:
            yield change(*key, text)
        except ProbeSyntaxError as error:
            if error.code != "FIELD_NOT_FOUND":
                raise
            refused.append(error)
    if refused and len(refused) == len(matching):
        raise refused[0]
    if not matching:
        raise ProbeError(f"{option} {given}: no event matches")


def drained(
    before: Callable[[int, str, tuple[int, ...]], None], tracing: Tracing
) -> Callable[[int, str, tuple[int, ...]], None]:
    """Hook for system calls: it writes the trace where it belongs among the guest's output."""

    def enter(number: int, name: str, arguments: tuple[int, ...]) -> None:
        before(number, name, arguments)
        tracing.drain()

    return enter


def described(tracing: Tracing) -> Iterator[str]:
    """The files that tracefs would have for each event."""
    for (group, name), info in tracing.infos.items():
        control = tracing.controls.of(info)
        yield f"# events/{group}/{name}/format"
        yield format_text(info)
        yield f"# events/{group}/{name}/filter"
        yield control.filter_text
        yield f"# events/{group}/{name}/trigger"
        yield from control.trigger_lines()
