"""`kprobe-tui live`: the same definitions in the running kernel of this machine."""

from typing import Any

import click

from engine.cli import console
from engine.cli.grouped import Group, GroupedCommand, option
from engine.cli.instances import probes_of, recorded_options, trace_options
from engine.cli.options import machine_config, machine_options, seconds, size
from engine.cli.probe_options import ids_of
from engine.cli.run import show
from engine.session.headless.live import opened_live, owner_of, running_image
from engine.session.protocol.requests import LiveRequest, ProbeRequest


@click.command(
    cls=GroupedCommand,
    context_settings={"allow_interspersed_args": False},
    uses=(
        (
            "A program of this machine, under its own kernel",
            "-e 'p:demo/ack ackermann m=%di:u32' samples/bin/x86_64/recursion",
        ),
        (
            "Calls in processes that run, for ten seconds",
            "-f 'libc.so.6:malloc' --pid 812,813 --duration 10",
        ),
        (
            "A function of the running kernel",
            "-e 'p:my/open do_sys_openat2 name=+0(%si):ustring' --duration 5",
        ),
    ),
)
@recorded_options
@option(
    "--pid",
    "pids",
    multiple=True,
    callback=ids_of,
    metavar="PID[,PID...]",
    help="Record these processes of the machine, with all their threads and children.",
    group=Group.EVENTS,
)
@option(
    "--duration",
    type=seconds,
    metavar="S",
    help="End after S seconds; a program that was started gets SIGTERM then.",
    group=Group.LIMITS,
)
@option(
    "--kernel-buffer",
    type=size,
    metavar="SIZE",
    default="8M",
    show_default=True,
    help="The kernel's buffer for each CPU.",
    group=Group.EVENTS,
)
@option(
    "--aslr",
    "randomized",
    is_flag=True,
    help="Random addresses for GUEST; without, they are the same each time, as under gdb.",
    group=Group.GUEST,
)
@machine_options
def live(
    pids: tuple[int, ...],
    duration: float | None,
    kernel_buffer: int,
    randomized: bool,
    **values: Any,
) -> int:
    """Place the probes in the running kernel of this machine (root), and read what it records.

    They are uprobes in the program's file: GUEST is started with ARGS, and its processes' events
    are recorded; or with --pid those of processes that run. Without either, give --duration or
    end with Ctrl-C. If GUEST is the running kernel's image they are kprobes; it is taken, if it is
    where distributions have it, without GUEST, --pid and a file in the definitions. Everything is
    removed at the end, and after a kill with the next start.

    The kernel's own events (syscalls/, sched:), event probes and synthetic events are refused:
    trace --list-as tracefs writes their lines.
    """
    probes = probes_of(values)
    if probes.is_empty:
        raise click.UsageError("nothing to trace: give -e DEF, -f GLOB or -r GLOB")
    starts = values["guest"] is not None
    if not starts:
        values["guest"] = owner_of(pids[0]) if pids else _file_of(probes)
    request = LiveRequest(
        machine_config(values),
        probes,
        trace_options(values),
        values["filters"],
        values["triggers"],
        starts,
        pids,
        duration,
        kernel_buffer,
        randomized,
    )
    with opened_live(request, console.errors()) as recording:
        reports = recording.run()
    show(reports, values["color"])
    return reports.exit_code


def _file_of(probes: ProbeRequest) -> str:
    """The file that the first definition names by its path; without one the running kernel's."""
    for line in probes.definitions:
        for word in line.split():
            path, colon, _ = word.rpartition(":")
            if colon and path.startswith("/"):
                return path
    return running_image()
