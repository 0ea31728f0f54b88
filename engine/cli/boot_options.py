"""Options of subcommands that boot a kernel image as a machine."""

from typing import Any, Final

from engine.cli.grouped import Group, option
from engine.cli.options import Command, size
from engine.session.headless.booting import COMMAND_LINE, BootRequest

_OPTIONS: Final = (
    option(
        "--initrd",
        metavar="FILE",
        default="",
        help="The initial ramdisk, as it is packed.",
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
        "--memory",
        type=size,
        default="256M",
        show_default=True,
        metavar="SIZE",
        help="Memory of the machine.",
        group=Group.LIMITS,
    ),
)


def boot_options(command: Command) -> Command:
    """Add the options of every subcommand that boots a kernel."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


def boot_request(kernel: str, values: dict[str, Any]) -> BootRequest:
    """The boot that parsed options stand for, which are taken out.

    Args:
        kernel: path of the image.
        values: of all options.
    """
    return BootRequest(kernel, values.pop("initrd"), values.pop("append"), values.pop("memory"))
