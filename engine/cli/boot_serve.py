"""`kprobe-tui serve --boot`: a booted kernel for gdb."""

from typing import Any

import click

from engine.cli import console
from engine.cli.boot_options import boot_options, boot_request, catch_option
from engine.cli.grouped import Group, GroupedCommand, option
from engine.cli.machine_run import console_input, typed_keys
from engine.session.serve.machineserving import serve_machine


@click.command(
    cls=GroupedCommand,
    uses=(
        ("gdb, by a port of this machine", "--gdb 127.0.0.1:1234 --initrd initrd.gz vmlinuz"),
        ("With the way back", "--gdb 127.0.0.1:1234 --record --init hello vmlinuz"),
        (
            "Stopped where the kernel oopses",
            "--gdb 127.0.0.1:1234 --record --catch oops --init hello vmlinuz",
        ),
        ("By a socket in the file system", "--gdb unix:socket --initrd initrd.gz vmlinuz"),
    ),
)
@option(
    "--gdb",
    "address",
    metavar="ADDR",
    required=True,
    help="Speak gdb's remote protocol on 127.0.0.1:PORT (port 0: any) or unix:PATH, to processes"
    " of this user.",
    group=Group.OTHERS,
)
@option(
    "--record",
    is_flag=True,
    help="Keep moments of the boot, so that gdb can go back in it.",
    group=Group.GUEST,
)
@catch_option
@boot_options
@click.argument("kernel_image", metavar="KERNEL")
def serve_boot(
    kernel_image: str, address: str, record: bool, catches: tuple[str, ...], **values: Any
) -> int:
    """Boot KERNEL for gdb to drive; its console is stdin and stdout.

    The machine stands at its first instruction until gdb lets it run: (gdb) target remote ADDR.
    gdb gets the kernel's symbols and frames from here, so that break vfs_read and backtrace work
    with a distribution's vmlinuz. Nothing is planted: the processor itself stops at a breakpoint.
    On a terminal Ctrl-C ends the command, and other keys are the guest's.

    Exit code: 0 once the kernel has switched the machine off or gdb has left, 1 if it panics or
    cannot go on, 2 for a bad file or bad usage.
    """
    request, stdin = boot_request(kernel_image, values), console_input()
    with typed_keys(stdin):
        return serve_machine(
            *(request, address, console.write_raw, stdin, console.remark),
            past=record,
            catches=catches,
        )
