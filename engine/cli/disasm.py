"""`kprobe-tui disasm`: a program's code as text."""

import sys
from collections.abc import Iterator
from typing import Any

import click

from engine import arch as architectures
from engine.cli.options import config_of, program_options
from engine.errors import CommandError
from engine.session.browse.listing import Area, ListedInsn, Listing
from engine.session.program.inspection import Inspection
from engine.session.program.places import Places


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a number such as 0x401000") from None


@click.command()
@program_options
@click.option("--raw", is_flag=True, help="GUEST is plain bytes without headers.")
@click.option(
    "--arch",
    "arch_name",
    type=click.Choice(architectures.names()),
    help="Architecture of plain bytes.",
)
@click.option(
    "--base", type=_number, metavar="ADDR", help="Address of the first plain byte [default: 0]."
)
@click.argument("guest", type=click.Path())
@click.argument("place", required=False)
def disasm(
    raw: bool, arch_name: str | None, base: int | None, place: str | None, **values: Any
) -> int:
    """Disassemble GUEST: the function around PLACE, or all executable sections.

    Lines are `ADDRESS <SYMBOL+OFF>: BYTES  TEXT` in Capstone's Intel syntax; bytes that are no
    instruction become `.byte`. PLACE is SYM[+OFF], LIB:SYM[+OFF], 0xADDR, FILE:LINE or
    PATH:OFFSET; outside of all functions the bytes from there on are shown.
    """
    if raw:
        if arch_name is None:
            raise click.UsageError("--raw needs --arch NAME")
        if place is not None:
            raise click.UsageError("--raw takes no PLACE; there are no names in plain bytes")
        _show_raw(values["guest"], arch_name, base or 0)
        return 0
    if arch_name is not None or base is not None:
        raise click.UsageError("--arch and --base go with --raw")
    config = config_of({**values, "args": ()})
    inspection = Inspection.open(config)
    program = inspection.program
    width = 3 * min(inspection.arch.insn_max, 8) - 1
    if place is None:
        listing = Listing(inspection.arch, program.main)
        for area in listing.sections():
            _show(listing, area, width)
        return 0
    shown: set[int] = set()
    for found in Places(inspection.arch, program).resolve(place):
        listing = Listing(inspection.arch, program.at_path(found.path))
        area = listing.around(found)
        if not area.data:
            raise CommandError(f"{place}: the file stores nothing there")
        if area.start not in shown:
            _show(listing, area, width)
        shown.add(area.start)
    return 0


def _show_raw(path: str, name: str, base: int) -> None:
    arch = architectures.by_name(name)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    if base < 0 or base + len(data) > 1 << arch.bits:
        raise CommandError(
            f"--base {base:#x}: {len(data)} bytes from there leave {arch.bits} bits"
        )
    if base % arch.insn_align:
        raise CommandError(f"--base {base:#x}: instructions are {arch.insn_align}-aligned")
    _show(Listing(arch), Area(base, data), 3 * min(arch.insn_max, 8) - 1)


def _show(listing: Listing, area: Area, width: int) -> None:
    write = sys.stdout.write
    for line in _lines(listing.lines(area), width):
        write(line)
    sys.stdout.flush()


def _lines(listed: Iterator[ListedInsn], width: int) -> Iterator[str]:
    for item in listed:
        insn = item.insn
        name = f" <{item.symbol}+{item.offset:#x}>" if item.symbol is not None else ""
        yield f"{insn.address:#x}{name}: {insn.raw.hex(' '):<{width}}  {insn.text}\n"
