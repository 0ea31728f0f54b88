"""`kprobe-tui trace --boot`: boot a kernel image with events."""

import time
from typing import Any, Final

import click
from msgspec.structs import replace

from engine.cli import console
from engine.cli.boot_options import boot_options, boot_request, kprobes_option
from engine.cli.grouped import Group, GroupedCommand, option
from engine.cli.instances import probes_of, recorded_options, trace_options
from engine.cli.machine_run import console_input, run_machine, show_figures, trace_stream
from engine.cli.options import (
    color_option,
    debug_option,
    names_choice,
    names_options,
    timeout_option,
)
from engine.cli.probe_options import mode_option, task_options
from engine.session.headless.boot_traces import (
    BOOT_TECHNIQUES,
    TOLD,
    BootRun,
    BootTraceRequest,
    opened_boot_trace,
)
from engine.session.headless.booting import MachineEnd
from engine.session.protocol.config import Mode
from engine.session.protocol.report import NOT_WHOLE, Report

boot_technique_option: Final = option(
    "--technique",
    type=click.Choice(BOOT_TECHNIQUES),
    default=TOLD,
    show_default=True,
    help="told: the processor says when it comes to a probe; breakpoint: one is planted, and the "
    "instruction runs in a slot, as with Linux's kprobes.",
    group=Group.EVENTS,
)


@click.command(
    cls=GroupedCommand,
    uses=(
        (
            "Files that programs of the booted system open",
            "--initrd initrd.gz -e 'p:open do_sys_openat2 name=+0($arg2):ustring' vmlinuz",
        ),
        ("What a function returns, with its callers", "-r vfs_read --stack -o out.txt vmlinuz"),
        (
            "Events that the kernel has itself",
            "--init root -e 'sched:sched_process_*' -e syscalls:openat -e printk:console vmlinuz",
        ),
        (
            "A function of a program inside",
            "--init root -e 'p:u/main /bin/prog:main argc=%di:s32' vmlinuz",
        ),
        ("Calls counted by name", "-f 'ext4_*' --profile -o /dev/null vmlinuz"),
    ),
)
@recorded_options
@task_options
@mode_option
@boot_technique_option
@option(
    "--list",
    "listing",
    is_flag=True,
    help="List the definitions and do not boot.",
    group=Group.OUTPUT,
)
@boot_options
@kprobes_option
@names_options
@timeout_option
@color_option
@debug_option
@click.argument("kernel_image", metavar="KERNEL")
def trace_boot(kernel_image: str, listing: bool, **values: Any) -> int:
    """Boot KERNEL as a machine and record events of it; its console is stdin and stdout.

    Definitions are accepted and refused as KERNEL itself would; one with a path is of a program
    inside. GROUP:EVENT, both may be patterns, is an event that KERNEL has itself. A probe takes
    none of the machine's time, and the kernel and its programs never see their text changed. The
    trace goes to stderr, or to the file of -o; times are nanoseconds since power-on.

    Exit code: as of `kprobe-tui boot`.
    """
    timeout, color, debug = values["timeout"], values["color"], values["debug"]
    kprobes = values.pop("kprobes")
    mode = Mode(values.pop("mode_name"))
    probes = probes_of(values)
    if probes.is_empty:
        raise click.UsageError("nothing to trace: give -e DEF, -f GLOB or -r GLOB")
    request = BootTraceRequest(
        boot_request(kernel_image, values),
        probes,
        replace(trace_options(values, keeps=not listing), mode=mode),
        values["filters"],
        values["triggers"],
        names_choice(values),
        values["technique"],
    )
    stdin = None if listing else console_input()
    began = time.process_time()
    with opened_boot_trace(
        request, console.write_raw, stdin, trace_stream(console.errors(), stdin)
    ) as traced:
        for text in traced.refused:
            console.text(text)
        if listing:
            for line in traced.listed():
                console.put(line)
            console.remarks(traced.remarks, color)
            return 0
        code = run_traced(traced, timeout=timeout, color=color, stdin=stdin, kprobes=kprobes)
        if debug:
            show_figures(traced.booted, began, color)
        return code


def run_traced(
    traced: BootRun, *, timeout: float | None, color: str, stdin: int | None, kprobes: bool
) -> int:
    """Run a traced machine to its end, and show the remarks about the trace.

    Args:
        traced: the machine with its trace.
        timeout: seconds that it has; None for any number.
        color: when messages have some.
        stdin: the console's input.
        kprobes: show the kernel's own at the end.

    Returns:
        The exit code of the command.
    """
    said: list[Report] = []

    def run() -> MachineEnd:
        end, reports = traced.run(traced.booted.run)
        said.extend(reports)
        return end

    code = run_machine(
        traced.booted, run, timeout=timeout, color=color, stdin=stdin, kprobes=kprobes
    )
    console.remarks((*traced.remarks, *said), color)
    return NOT_WHOLE if traced.incomplete else code
