"""`kprobe-tui graph`: run a guest with its functions traced."""

import sys
from typing import Any

import click

from engine.arch.plan import Mode
from engine.cli.host import attached
from engine.cli.options import config_of, guest_options, probe_options, returns_option
from engine.cli.run import show
from engine.session import Session
from engine.session.protocol.report import Reports
from engine.session.tracing.graphing import TRACERS, Graphing, GraphOptions
from engine.session.tracing.tracing import TraceOptions, Tracing
from engine.trace.formats.base import Format
from engine.trace.formats.function import FunctionFormat
from engine.trace.formats.graph import GraphFormat

_FORMATS: dict[str, type[Format]] = {TRACERS[0]: GraphFormat, TRACERS[1]: FunctionFormat}
_ONLY_GRAPH = ("depth_max", "retval", "under")


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "-f",
    "globs",
    multiple=True,
    metavar="GLOB",
    help="Trace the functions that match; LIB:GLOB in a library. Else all of the guest's own.",
)
@click.option(
    "--tracer",
    type=click.Choice(TRACERS),
    default=TRACERS[0],
    show_default=True,
    help="Calls with their returns, or calls alone.",
)
@click.option(
    "--max-depth",
    "depth_max",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Show calls N deep; 0 for all.",
)
@click.option("--args", "args_", is_flag=True, help="Show what functions are called with.")
@click.option("--retval", is_flag=True, help="Show what functions return.")
@click.option(
    "--under", multiple=True, metavar="GLOB", help="Only what is called in these functions."
)
@click.option(
    "--not",
    "without",
    multiple=True,
    metavar="GLOB",
    help="Not these functions, nor (in the graph) what is called in them.",
)
@click.option(
    "--option",
    "text_options",
    multiple=True,
    metavar="NAME",
    help="A trace option of tracefs: funcgraph-tail, nofuncgraph-duration, sym-offset, ...",
)
@click.option("-o", "output", metavar="FILE", help="Write the trace there, not to stderr.")
@click.option(
    "--buffer",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep N events and print them at the end.",
)
@click.option("--overwrite", is_flag=True, help="With --buffer: keep the last events.")
@click.option("--summary", is_flag=True, help="Say at the end what was traced and what it took.")
@probe_options
@returns_option
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
    output: str | None,
    buffer: int | None,
    overwrite: bool,
    summary: bool,
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
    session = Session(config_of(values))
    try:
        keep = TraceOptions(
            output=output, buffer=buffer, overwrite=overwrite, mode=Mode(mode_name)
        )
        tracing = Tracing(session, keep, sys.stderr.buffer)
        shown = (*text_options, *_implied(tracer, args_, retval, text_options))
        tracing.print_as(_FORMATS[tracer], shown)
        wants_args = args_ or {"funcgraph-args", "func-args"} & set(text_options)
        options = GraphOptions(
            tracer,
            depth_max,
            bool(wants_args),
            bool(retval or {"funcgraph-retval", "funcgraph-retval-hex"} & set(text_options)),
            under,
            without,
        )
        graphing = Graphing(tracing, options)
        graphing.add(*(globs or ("*",)))
        tracing.start()
        if output is None:
            session.hooks.syscall_enter = lambda *_: tracing.drain()
        try:
            with attached(session, values["timeout"]):
                reports = session.run()
        finally:
            remarks = [*graphing.remarks(every=summary), *tracing.finish()]
        if summary:
            remarks.append(graphing.summary())
        show(Reports(reports.exit, (*remarks, *reports.remarks)), values["color"])
    finally:
        session.close()
    return reports.exit_code


def _implied(tracer: str, args: bool, retval: bool, given: tuple[str, ...]) -> tuple[str, ...]:
    """Trace options that other options stand for."""
    if tracer != TRACERS[0]:
        return ("func-args",) if args else ()
    found = ("funcgraph-retval",) if retval or "funcgraph-retval-hex" in given else ()
    return (*found, "funcgraph-args") if args else found
