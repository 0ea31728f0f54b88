"""`kprobe-tui bt --boot`: a backtrace at a place of a booted kernel."""

from typing import Any

import click

from engine.cli import console
from engine.cli.backtrace_text import backtrace_options, json_of, put_backtrace
from engine.cli.boot_options import boot_options, boot_request, catch_option
from engine.cli.grouped import Group, GroupedCommand, option
from engine.cli.machine_run import FAILED, TIME_OVER, console_input, run_heard
from engine.cli.options import (
    color_option,
    debug_option,
    names_choice,
    names_options,
    timeout_option,
)
from engine.cli.probe_options import task_options, tasks_of
from engine.errors import TIMED_OUT
from engine.escaping import json_text
from engine.session.headless.boot_backtraces import BootBacktraceRequest, StoppedBoot
from engine.session.headless.booting import ended


@click.command(
    cls=GroupedCommand,
    uses=(
        ("Who opens the third file?", "--at do_sys_openat2 --hit 3 --initrd initrd.gz vmlinuz"),
        ("In the task of a program", "--at vfs_read --comm cat --initrd initrd.gz vmlinuz"),
        ("Where the kernel panics", "--init hello vmlinuz"),
        (
            "Where the kernel warns for the second time",
            "--catch warn --hit 2 --init hello vmlinuz",
        ),
    ),
)
@option(
    "--at",
    "place",
    metavar="PLACE",
    default="",
    help="Where: SYM[+OFF], 0xADDR, FILE:LINE; without it where the kernel panics or gets stuck.",
    group=Group.EVENTS,
)
@catch_option
@backtrace_options
@task_options
@boot_options
@names_options
@timeout_option
@color_option
@debug_option
@click.argument("kernel_image", metavar="KERNEL")
def bt_boot(kernel_image: str, **values: Any) -> int:
    """Boot KERNEL up to a place and print the kernel's backtrace there.

    The machine ends there. Its console goes to stderr: stdout has the backtrace alone, by the
    kernel's own unwind tables, through interrupts, exceptions and modules.

    Exit code: 0 with a backtrace, 1 if the boot ended before, 2 for bad usage, 124 if --timeout
    ran out before: without --at the backtrace is that of what ran then.
    """
    timeout, color, registers = values["timeout"], values["color"], values["registers"]
    request = BootBacktraceRequest(
        boot_request(kernel_image, values),
        values["place"],
        values["hit"],
        values["limit"],
        tasks_of(values),
        names_choice(values),
        values["catches"],
    )
    stream = console.errors()

    def put(data: bytes) -> None:
        stream.write(data)
        stream.flush()

    stopped = StoppedBoot(request, put, console_input())
    result, code = run_heard(stopped.run, stopped.booted.halt, timeout)
    end = result.end
    told = "" if end is None else ended(end, stopped.booted.place(end.pc))
    if code == TIME_OVER:
        console.remark(TIMED_OUT, color=color)
    if told:
        console.remark(told, color=color)
    if stopped.booted.damage:
        console.remark(stopped.booted.damage, color=color)
    if result.backtrace is None:
        wanted = request.place or ", ".join(request.catches)
        if wanted:
            console.remark(f"{wanted}: {result.hits} of {request.hit} hits", color=color)
        console.remarks(result.remarks, color)
        return code or FAILED
    where = f"in the task {result.task}, " if result.task else ""
    if result.caught:
        console.remark(result.caught, color=color)
    console.remark(f"{where}{result.moment}", color=color)
    if values["as_json"]:
        console.put(json_text(json_of([result.backtrace], registers=registers, all_threads=False)))
    else:
        put_backtrace(result.backtrace, registers=registers)
    return code
