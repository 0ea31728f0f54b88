"""`kprobe-tui bt`: a backtrace at a place of a run."""

from typing import Any

import click

from engine.cli import console
from engine.cli.backtrace_text import backtrace_options, json_of, put_backtrace
from engine.cli.grouped import Group, GroupedCommand, SwitchedCommand, option
from engine.cli.host import attached
from engine.cli.options import BOOT, boot_flag, config_of, guest_options, lines_of, replay_options
from engine.cli.probe_options import guest_probe_options, probe_options, task_options, tasks_of
from engine.cli.run import show
from engine.escaping import json_text
from engine.session.headless.backtraces import (
    UNWINDER_NAMES,
    Backtrace,
    ThreadBacktrace,
    backtrace_at,
    backtrace_of_core,
)
from engine.session.protocol.config import Mode, core_config
from engine.session.protocol.requests import BacktraceRequest, ProbeRequest


class _BacktraceCommand(SwitchedCommand, GroupedCommand):
    """`bt`, which is another command with --boot."""

    flag = BOOT

    @property
    def other(self) -> click.Command:
        """The command that boots."""
        from engine.cli.boot_bt import bt_boot  # few backtraces boot a machine

        return bt_boot


@click.command(
    cls=_BacktraceCommand,
    context_settings={"allow_interspersed_args": False},
    uses=(
        (
            "The backtrace at a function's first call",
            "--at factorial samples/bin/x86_64/recursion",
        ),
        (
            "At the third call, with registers",
            "--at fibonacci --hit 3 --registers samples/bin/x86_64/recursion",
        ),
        (
            "In a system call, all threads",
            "--syscall write --all-threads samples/bin/x86_64/recursion",
        ),
    ),
)
@option(
    "--at",
    "place",
    metavar="PLACE",
    help="Where: SYM[+OFF], 0xADDR, FILE:LINE, ...",
    group=Group.EVENTS,
)
@option(
    "--syscall",
    metavar="NAME",
    help="Where: in this system call, in place of --at.",
    group=Group.EVENTS,
)
@option(
    "--unwinder",
    type=click.Choice(UNWINDER_NAMES),
    default=UNWINDER_NAMES[0],
    show_default=True,
    help="What to show: everything that is known, or what another unwinder would print.",
    group=Group.OUTPUT,
)
@backtrace_options
@option(
    "--all-threads", is_flag=True, help="The other threads' backtraces, too.", group=Group.OUTPUT
)
@option(
    "-e",
    "definitions",
    multiple=True,
    metavar="DEF",
    help="With these probes, as `trace -e`.",
    group=Group.EVENTS,
)
@option(
    "-r",
    "globs",
    multiple=True,
    metavar="GLOB",
    help="With return probes on these functions.",
    group=Group.EVENTS,
)
@task_options
@probe_options
@guest_probe_options
@replay_options
@guest_options
@boot_flag
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
    boots: bool,
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
    found: list[Backtrace | ThreadBacktrace] = []
    if config.core is not None:
        tell = found.append if as_json else lambda one: put_backtrace(one, registers=registers)
        reports = backtrace_of_core(request, tell)
    else:
        stopped = backtrace_at(request, lambda session: attached(session, values["timeout"]))
        reports = stopped.reports
        if stopped.backtrace is None:
            show(reports, values["color"])
            where = place if place is not None else f"system call {syscall}"
            console.remark(f"{where}: {stopped.hits} of {hit} hits")
            return reports.exit_code if reports.limit else 1
        found += [stopped.backtrace, *stopped.others]
        for text in stopped.indirect:
            console.remark(text)
    if as_json:
        console.put(json_text(json_of(found, registers=registers, all_threads=all_threads)))
    else:
        for one in found:
            put_backtrace(one, registers=registers)
    console.remarks(reports.damage, values["color"])
    if config.core is not None:
        console.remarks(reports.remarks, values["color"])
    return 0
