"""`kprobe-tui boot`: boot a kernel image in an emulated machine."""

import time
from typing import Any

import click

from engine.cli import console
from engine.cli.boot_options import boot_options, boot_request, kprobes_option
from engine.cli.grouped import GroupedCommand
from engine.cli.machine_run import console_input, run_machine, show_figures
from engine.cli.options import color_option, debug_option, timeout_option
from engine.session.headless.bootable import bootable
from engine.session.headless.booting import Booted


@click.command(
    cls=GroupedCommand,
    uses=(
        ("To the shell of an initial ramdisk", "--initrd initrd.gz /boot/vmlinuz-6.1.0-56-amd64"),
        ("A static program as the first and only one", "--init hello vmlinuz"),
        ("Stopped after a minute, with 512 MB", "--timeout 60 --memory 512M vmlinuz"),
    ),
)
@boot_options
@kprobes_option
@timeout_option
@color_option
@debug_option
@click.argument("kernel")
def boot(kernel: str, **values: Any) -> int:
    """Boot KERNEL, a vmlinuz or vmlinux of x86-64; its console is stdin and stdout.

    The machine has one processor, and its time follows from what the kernel executes: the same
    boot twice is the same. On a terminal Ctrl-A x leaves.

    Exit code: 0 once the kernel has halted, powered off or reset the machine, 1 if it panics or
    cannot go on, 124 if the time ran out, 2 for a bad file or bad usage.
    """
    timeout, color, debug = values["timeout"], values["color"], values["debug"]
    kprobes = values.pop("kprobes")
    began = time.process_time()
    stdin = console_input()
    booted = Booted(bootable(boot_request(kernel, values)), console.write_raw, stdin)
    code = run_machine(
        booted, booted.run, timeout=timeout, color=color, stdin=stdin, kprobes=kprobes
    )
    if debug:
        show_figures(booted, began, color)
    return code
