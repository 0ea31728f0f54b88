"""Options of subcommands that boot a kernel image as a machine."""

from typing import Any, Final

import click
from click.core import ParameterSource

from engine.cli.grouped import Group, option
from engine.cli.options import Command, size
from engine.session.headless.bootable import COMMAND_LINE
from engine.session.protocol.config import is_recorded_boot
from engine.session.protocol.kernels import BootRequest

_OPTIONS: Final = (
    option(
        "--initrd",
        metavar="FILE",
        default="",
        help="The initial ramdisk, as it is packed.",
        group=Group.GUEST,
    ),
    option(
        "--init",
        metavar="FILE|DIR",
        default="",
        help="A static program or a script that the kernel runs first, or a folder with such an "
        "init that becomes the root; over --initrd.",
        group=Group.GUEST,
    ),
    option(
        "--modules",
        metavar="DIR",
        default="",
        help="Put the kernel's modules, in DIR or below it, into the ramdisk's /lib/modules.",
        group=Group.GUEST,
    ),
    option(
        "--module",
        "chosen",
        metavar="NAME",
        multiple=True,
        help="Of --modules only this one and what it needs.",
        group=Group.GUEST,
    ),
    option(
        "--append",
        metavar="TEXT",
        default="",
        help=f"More words of the kernel's command line, behind: {COMMAND_LINE}.",
        group=Group.GUEST,
    ),
    option(
        "--disk",
        "disks",
        metavar="FILE",
        multiple=True,
        help="A raw image as a disk, /dev/vda. The image is never written: changes are kept in "
        "memory. May be repeated.",
        group=Group.GUEST,
    ),
    option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        metavar="N",
        help="Of the kernel's random numbers.",
        group=Group.GUEST,
    ),
    option(
        "--memory",
        type=size,
        default="256M",
        show_default=True,
        metavar="SIZE",
        help="Memory of the machine.",
        group=Group.LIMITS,
    ),
    option(
        "--disk-memory",
        type=size,
        default="512M",
        show_default=True,
        metavar="SIZE",
        help="Memory for what the guest changes on disks.",
        group=Group.LIMITS,
    ),
)
_NAMES: Final = (
    *("initrd", "init", "modules", "chosen", "append", "disks", "seed", "memory", "disk_memory"),
)


kprobes_option: Final = option(
    "--kprobes",
    is_flag=True,
    help="Show the kernel's own kprobes at the end on stderr, as it does itself in "
    "/sys/kernel/debug/kprobes/list.",
    group=Group.OUTPUT,
)


catch_option: Final = option(
    "--catch",
    "catches",
    type=click.Choice(("oops", "panic", "warn")),
    multiple=True,
    help="Stop where the kernel tells of an oops, a panic, or a warning (WARN). May be repeated.",
    group=Group.EVENTS,
)


def boot_options(command: Command) -> Command:
    """Add the options of every subcommand that boots a kernel."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


def boot_request(kernel: str, values: dict[str, Any]) -> BootRequest:
    """The boot that parsed options stand for, which are taken out.

    Args:
        kernel: path of the image, or of a recorded boot.
        values: of all options.

    Raises:
        UsageError: a recorded boot has what an option names.
    """
    if is_recorded_boot(kernel):
        _refuse_given(click.get_current_context(), kernel)
    return BootRequest(kernel, **{name: values.pop(name) for name in _NAMES})


def _refuse_given(ctx: click.Context, path: str) -> None:
    """Refuse options that say what a machine is given: a recorded boot has all of it."""
    for parameter in ctx.command.params:
        name = parameter.name or ""
        if name in _NAMES and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"{parameter.opts[0]}: {path} is a recorded boot, and goes as it went then"
            )
