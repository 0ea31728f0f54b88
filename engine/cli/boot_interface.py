"""`kprobe-tui --boot KERNEL`: a booted kernel in the terminal interface."""

from typing import Any

import click

from engine.cli import console
from engine.cli.boot_options import boot_options, boot_request
from engine.cli.interface import (
    STEPS_KEY,
    Interface,
    InterfaceOptions,
    SteppedCommand,
    front_options,
    step_options,
)
from engine.cli.options import (
    color_option,
    lines_of,
    names_choice,
    names_options,
    timeout_option,
)
from engine.cli.probe_options import mode_option
from engine.session import GuestConfig
from engine.session.protocol.config import Mode


@click.command(
    cls=SteppedCommand,
    uses=(
        ("A kernel with an initial ramdisk", "--initrd initrd.gz vmlinuz"),
        ("With a kprobe from the first instruction on", "-e 'p:my/read vfs_read' vmlinuz"),
        ("A recorded boot, all of it the past", "boot.rec"),
        ("gdb's words, no interface", "--batch -ex 'b vfs_read' -ex c -ex bt vmlinuz"),
    ),
)
@front_options
@mode_option
@step_options
@boot_options
@names_options
@timeout_option
@color_option
@click.argument("kernel_image", metavar="KERNEL")
@click.pass_obj
def interface_boot(
    open_interface: Interface,
    /,
    kernel_image: str,
    definitions: tuple[str, ...],
    ascii_only: bool,
    fresh: bool,
    history: bool,
    mode_name: str,
    batch: bool,
    **values: Any,
) -> int:
    """Boot KERNEL, a vmlinuz or vmlinux of x86-64, and open it in the terminal interface.

    The machine stands at its first instruction until c lets it run. Its console is pane 7, its
    tasks are pane T; probes take none of its time, and one can go back in the boot.

    KERNEL may be a recorded boot: that goes again, byte for byte, to where it has ended then, and
    with --batch stands at its first instruction.
    """
    steps = click.get_current_context().meta[STEPS_KEY]
    boot, choice = boot_request(kernel_image, values), names_choice(values)
    config = GuestConfig(
        kernel_image, called=True, history=history, kernel=choice, boot=boot, seed=boot.seed
    )
    lines = tuple(lines_of(definitions))
    if batch:
        from engine.session.bootcontrol.batch import batch_boot  # as much as a machine

        def put(text: str) -> None:
            console.write(text)
            console.flush()

        outputs = put, console.write_raw, console.text
        return batch_boot(config, lines, steps, *outputs, Mode(mode_name), values["timeout"])
    if values["timeout"] is not None:
        raise click.UsageError("--timeout goes with --batch.")
    if steps:
        raise click.UsageError("-x and -ex go with --batch.")
    return open_interface(
        InterfaceOptions(config, lines, mode_name == "kernel", ascii_only, values["color"], fresh)
    )
