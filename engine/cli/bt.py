"""`kprobe-tui bt`: a backtrace at a place of a run."""

from typing import Any

import click

from engine.cli import console
from engine.cli.host import attached
from engine.cli.options import config_of, guest_options, lines_of, replay_options
from engine.cli.probe_options import guest_probe_options, probe_options, task_options, tasks_of
from engine.cli.run import show
from engine.escaping import json_text
from engine.session.headless.backtraces import (
    UNWINDER_NAMES,
    Backtrace,
    backtrace_at,
    backtrace_of_core,
)
from engine.session.protocol.config import Mode, core_config
from engine.session.protocol.requests import BacktraceRequest, ProbeRequest


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--at", "place", metavar="PLACE", help="Where: SYM[+OFF], 0xADDR, FILE:LINE, ...")
@click.option("--syscall", metavar="NAME", help="Where: in this system call, in place of --at.")
@click.option(
    "--hit", type=click.IntRange(min=1), default=1, show_default=True, help="At the Nth time."
)
@click.option(
    "--unwinder",
    type=click.Choice(UNWINDER_NAMES),
    default=UNWINDER_NAMES[0],
    show_default=True,
    help="What to show: everything that is known, or what another unwinder would print.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--registers", is_flag=True, help="Show the registers of each frame.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N frames.")
@click.option("--all-threads", is_flag=True, help="The other threads' backtraces, too.")
@click.option(
    "-e", "definitions", multiple=True, metavar="DEF", help="With these probes, as `trace -e`."
)
@click.option(
    "-r", "globs", multiple=True, metavar="GLOB", help="With return probes on these functions."
)
@task_options
@probe_options
@guest_probe_options
@replay_options
@guest_options
def bt(
    place: str | None,
    syscall: str | None,
    hit: int,
    unwinder: str,
    as_json: bool,
    registers: bool,
    limit: int | None,
    all_threads: bool,
    definitions: tuple[str, ...],
    globs: tuple[str, ...],
    mode_name: str,
    **values: Any,
) -> int:
    """Run GUEST with ARGS up to a place and print the backtrace there.

    The guest ends there. Its standard output goes to stderr: stdout has the backtrace alone.
    GUEST CORE without a place prints that of a core file's first thread.
    Exit code: 0 with a backtrace, 1 if the guest ended before, 2 for bad usage, 124 if
    --timeout or --max-blocks ran out before, or all threads wait for each other.
    """
    config = config_of(values)
    if place is None and syscall is None:
        config = core_config(config)
    if (place is None) == (syscall is None) and config.core is None:
        raise click.UsageError("where? give one of --at PLACE and --syscall NAME")
    request = BacktraceRequest(
        config,
        place,
        syscall,
        hit,
        unwinder,
        limit,
        ProbeRequest(tuple(lines_of(definitions)), returns=globs),
        Mode(mode_name),
        all_threads,
        tasks_of(values),
    )
    if config.core is not None:
        stopped = backtrace_of_core(request)
    else:
        stopped = backtrace_at(request, lambda session: attached(session, values["timeout"]))
    if stopped.backtrace is None:
        show(stopped.reports, values["color"])
        where = place if place is not None else f"system call {syscall}"
        console.remark(f"{where}: {stopped.hits} of {hit} hits")
        return stopped.reports.exit_code if stopped.reports.limit else 1
    if as_json:
        found = _json(stopped.backtrace, registers=registers)
        if all_threads:
            found["threads"] = [other.as_json() for other in stopped.others]
        console.put(json_text(found))
    else:
        _print(stopped.backtrace, registers=registers)
        for other in stopped.others:
            console.put("")
            console.put(other.title())
            if other.backtrace is not None:
                _print(other.backtrace, registers=registers)
    console.remarks(stopped.reports.damage, values["color"])
    if config.core is not None:
        console.remarks(stopped.reports.remarks, values["color"])
    return 0


def _json(backtrace: Backtrace, *, registers: bool) -> dict[str, Any]:
    found = backtrace.as_json()
    if registers:
        for row, frame in zip(found["frames"], backtrace.frames, strict=True):
            row["registers"] = {n: f"{value:#x}" for n, value in frame.registers.items()}
    return found


def _print(backtrace: Backtrace, *, registers: bool) -> None:
    *lines, end = backtrace.lines()
    for line, frame in zip(lines, backtrace.frames, strict=True):
        console.put(line)
        if registers and not frame.inlined:
            for name, value in frame.registers.items():
                console.put(f"      {name:8} {value:#018x}")
    console.put(end)
