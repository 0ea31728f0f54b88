"""`kprobe-tui diff --boot`: do probes change a boot?"""

from functools import partial
from typing import Any

import click

from engine.cli import console
from engine.cli.boot_options import boot_options, boot_request
from engine.cli.boot_trace import boot_technique_option
from engine.cli.diff_options import place_options, places_of
from engine.cli.grouped import GroupedCommand
from engine.cli.machine_run import TIME_OVER, run_heard
from engine.cli.options import (
    color_option,
    debug_option,
    names_choice,
    names_options,
    timeout_option,
)
from engine.cli.probe_options import mode_option
from engine.errors import TIMED_OUT
from engine.session.headless.boot_effect import BootDiffer, BootDiffRequest
from engine.session.protocol.config import Mode


@click.command(
    cls=GroupedCommand,
    uses=(
        ("Does a probe change the boot?", "-e 'p vfs_read' --initrd initrd.gz vmlinuz"),
        (
            "Breakpoints on every instruction of a function",
            "--technique breakpoint --every-insn vfs_read --init hello vmlinuz",
        ),
        ("Returns of a subsystem", "-r 'ext4_*' --disk root.img vmlinuz"),
    ),
)
@place_options
@mode_option
@boot_technique_option
@boot_options
@names_options
@timeout_option
@color_option
@debug_option
@click.argument("kernel_image", metavar="KERNEL")
def diff_boot(kernel_image: str, **values: Any) -> int:
    """Boot KERNEL twice, without and with the probes, and compare the boots.

    Console, clock, registers, devices, disks and every byte of memory are compared, every 16
    million blocks and at the end. Where they differ both are booted again, to find the first
    block that makes a difference. The console appears once, as it is without the probes; it has
    no input.

    Exit code: 0 if the probes have no effect, 1 if they have one, 124 if --timeout has ended the
    comparison before.
    """
    timeout, color = values["timeout"], values["color"]
    probes = places_of(values)
    request = BootDiffRequest(
        boot_request(kernel_image, values),
        probes,
        Mode(values["mode_name"]),
        names_choice(values),
        values["technique"],
    )
    say = partial(console.remark, color=color)
    differ = BootDiffer.of(request, console.write_raw)
    effect, stopped = run_heard(differ.compare, differ.stop, timeout)
    console.remarks(effect.remarks, color)
    if stopped == TIME_OVER:
        say(TIMED_OUT)
    say(f"{effect.places} probed places, {effect.hits} hits, {effect.progress}")
    if effect.lines:
        say("the probes have an effect:")
        for line in effect.lines:
            say(f"  {line}")
        return 1
    if effect.stopped:
        say("the boots were stopped, and were the same so far")
        return stopped
    say("no effect")
    return 0
