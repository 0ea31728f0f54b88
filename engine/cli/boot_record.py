"""`kprobe-tui record --boot`: boot a kernel image and write the boot to a file."""

import time
from typing import Any

import click

from engine.cli import console
from engine.cli.boot_options import boot_options, boot_request, kprobes_option
from engine.cli.grouped import Group, GroupedCommand, option
from engine.cli.machine_run import console_input, run_machine, show_figures
from engine.cli.options import color_option, debug_option, timeout_option
from engine.session.headless.boot_recordings import opened_boot_recording
from engine.session.protocol.report import NOT_WHOLE


@click.command(
    cls=GroupedCommand,
    uses=(
        ("A boot, and what is typed at its shell", "-o boot.rec --initrd initrd.gz vmlinuz"),
        ("A system on a disk", "-o boot.rec --disk debian.img --append root=/dev/vda1 vmlinuz"),
        ("What a program did in its first minute", "-o boot.rec --init prog --timeout 60 vmlinuz"),
    ),
)
@option(
    "-o", "output", required=True, metavar="FILE", help="Write the boot there.", group=Group.OUTPUT
)
@boot_options
@kprobes_option
@timeout_option
@color_option
@debug_option
@click.argument("kernel_image", metavar="KERNEL")
def record_boot(kernel_image: str, output: str, **values: Any) -> int:
    """Boot KERNEL as a machine and write the boot to a file; its console is stdin and stdout.

    The file holds the kernel, the ramdisk, what was typed and when, and what was read of disks:
    `replay FILE` boots again, byte for byte, without any of them. `trace --boot`, `graph --boot`,
    `bt --boot`, `diff --boot`, `bpftrace --boot` and `serve --boot` take FILE in place of KERNEL:
    probes that nobody had thought of then are placed over the whole boot.

    Exit code: as of `kprobe-tui boot`.
    """
    timeout, color, debug = values["timeout"], values["color"], values["debug"]
    kprobes = values.pop("kprobes")
    began, stdin = time.process_time(), console_input()
    request = boot_request(kernel_image, values)
    with opened_boot_recording(request, output, console.write_raw, stdin) as recorded:
        booted = recorded.booted
        code = run_machine(
            booted, recorded.run, timeout=timeout, color=color, stdin=stdin, kprobes=kprobes
        )
        if debug:
            show_figures(booted, began, color)
        if recorded.failure:
            console.remark(recorded.failure, color=color)
            return NOT_WHOLE
        return code
