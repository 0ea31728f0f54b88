"""`kprobe-tui boot`: boot a kernel image in an emulated machine."""

import os
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import click

from engine.cli import console
from engine.cli.grouped import Group, GroupedCommand, option
from engine.cli.options import color_option, size, timeout_option
from engine.errors import TIMED_OUT, CutOff
from engine.session.headless.booting import (
    COMMAND_LINE,
    Booted,
    BootEnd,
    BootRequest,
    MachineEnd,
    ended,
)

_FAILED: Final = 1
_TIMED_OUT: Final = 124
_SWITCHED_OFF: Final = (BootEnd.OFF, BootEnd.RESET, BootEnd.HALTED)
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_GRACE: Final = 2.0
"""Seconds that a machine has to stop: it cannot while nobody reads what its console writes."""
_OFTEN: Final = 0.1
"""Seconds between two looks at whether the boot is over: signals are heard between them."""


@click.command(
    cls=GroupedCommand,
    uses=(
        ("To the shell of an initial ramdisk", "--initrd initrd.gz /boot/vmlinuz-6.1.0-56-amd64"),
        ("A static program as the first and only one", "--init hello vmlinuz"),
        ("With words of your own for the kernel", "--append 'quiet init=/bin/sh' vmlinuz"),
        ("Stopped after a minute, with 512 MB", "--timeout 60 --memory 512M vmlinuz"),
    ),
)
@option(
    "--initrd",
    metavar="FILE",
    default="",
    help="The initial ramdisk, as it is packed.",
    group=Group.GUEST,
)
@option(
    "--init",
    metavar="FILE|DIR",
    default="",
    help="A static program or a script that the kernel runs first, or a folder with such an init "
    "that becomes the root; over --initrd.",
    group=Group.GUEST,
)
@option(
    "--modules",
    metavar="DIR",
    default="",
    help="Put the kernel's modules, in DIR or below it, into the ramdisk's /lib/modules.",
    group=Group.GUEST,
)
@option(
    "--module",
    "chosen",
    metavar="NAME",
    multiple=True,
    help="Of --modules only this one and what it needs.",
    group=Group.GUEST,
)
@option(
    "--append",
    metavar="TEXT",
    default="",
    help=f"More words of the kernel's command line, behind: {COMMAND_LINE}.",
    group=Group.GUEST,
)
@option(
    "--disk",
    "disks",
    metavar="FILE",
    multiple=True,
    help="A raw image as a disk, /dev/vda. The image is never written: changes are kept in "
    "memory. May be repeated.",
    group=Group.GUEST,
)
@option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Of the kernel's random numbers.",
    group=Group.GUEST,
)
@option(
    "--memory",
    type=size,
    default="256M",
    show_default=True,
    metavar="SIZE",
    help="Memory of the machine.",
    group=Group.LIMITS,
)
@option(
    "--disk-memory",
    type=size,
    default="512M",
    show_default=True,
    metavar="SIZE",
    help="Memory for what the guest changes on disks.",
    group=Group.LIMITS,
)
@timeout_option
@color_option
@option(
    "--debug",
    is_flag=True,
    help="Show the engine's own figures and tracebacks.",
    group=Group.OUTPUT,
)
@click.argument("kernel")
def boot(kernel: str, **values: Any) -> int:
    """Boot KERNEL, a vmlinuz or vmlinux of x86-64; its console is stdin and stdout.

    The machine has one processor, and its time follows from what the kernel executes: the same
    boot twice is the same. On a terminal Ctrl-A x leaves.

    Exit code: 0 once the kernel has halted, powered off or reset the machine, 1 if it panics or
    cannot go on, 124 if the time ran out, 2 for a bad file or bad usage.
    """
    taken = ("initrd", "append", "memory", "init", "modules", "chosen", "seed", "disks")
    request = BootRequest(
        kernel, disk_memory=values["disk_memory"], **{n: values[n] for n in taken}
    )
    began = time.process_time()
    stdin = sys.stdin.fileno() if sys.stdin is not None else None
    booted = Booted(request, console.write_raw, stdin)
    with _all_keys(stdin):
        end, stopped = _run(booted, values["timeout"])
    told = ended(end, booted.place(end.pc))
    if end.reason is BootEnd.HALTED and os.isatty(1):
        console.write_raw(b"\n")  # its console is in the middle of a line
    if stopped == _TIMED_OUT:
        console.remark(TIMED_OUT, color=values["color"])
    if told:
        console.remark(told, color=values["color"])
    if values["debug"]:
        used = time.process_time() - began
        console.remark(f"{booted.progress}, {used:.1f} s of CPU", color=values["color"])
    return stopped or (0 if end.reason in _SWITCHED_OFF else _FAILED)


def _run(booted: Booted, timeout: float | None) -> tuple[MachineEnd, int]:
    """Run the machine in a thread of its own, as signals are heard in this one.

    Returns:
        The end of the boot, and the exit code of whoever has stopped it, 0 for nobody.

    Raises:
        CutOff: it was to stop, and did not.
    """
    results: list[MachineEnd | BaseException] = []

    def work() -> None:
        try:
            results.append(booted.run())
        except BaseException as error:
            results.append(error)

    stopped, since = 0, 0.0
    until = time.monotonic() + timeout if timeout is not None else None
    worker = threading.Thread(target=work, name="machine", daemon=True)
    with _heard() as signals:
        worker.start()
        while worker.is_alive():
            worker.join(_OFTEN)
            if signals:
                stopped = 128 + signals[0]
            elif until is not None and time.monotonic() > until:
                stopped = _TIMED_OUT
            if stopped:
                booted.halt()
                since = since or time.monotonic()
                if time.monotonic() - since > _GRACE:
                    raise CutOff(stopped)
    (result,) = results
    if isinstance(result, BaseException):
        raise result
    return result, stopped if result.reason is BootEnd.HALTED else 0


@contextmanager
def _heard() -> Iterator[list[int]]:
    """Note the signals that end a command."""
    found: list[int] = []
    before = {
        number: signal.signal(number, lambda number, frame: found.append(number))
        for number in _ENDING
        if signal.getsignal(number) is not signal.SIG_IGN  # nohup has its meaning
    }
    try:
        yield found
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _all_keys(stdin: int | None) -> Iterator[None]:
    """Have a terminal pass every key on, Ctrl-C among them."""
    if stdin is None or not os.isatty(stdin):
        yield
        return
    before = termios.tcgetattr(stdin)
    try:
        tty.setraw(stdin)
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(stdin, termios.TCSADRAIN, before)
