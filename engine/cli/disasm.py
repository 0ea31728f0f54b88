"""`kprobe-tui disasm`: a program's code as text."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import click

from engine.cli import console
from engine.cli.documents import lines_of
from engine.cli.grouped import Group, GroupedCommand, option
from engine.cli.options import (
    config_of,
    json_option,
    kernel_choice,
    kernel_options,
    program_options,
)
from engine.session.headless.listings import (
    ListedCode,
    disassemble,
    disassemble_raw,
)
from engine.session.protocol.config import architectures
from engine.session.protocol.requests import ListingRequest, RawListingRequest


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a number such as 0x401000") from None


@click.command(
    cls=GroupedCommand,
    uses=(
        ("A function", "samples/bin/x86_64/recursion fibonacci"),
        ("All of a program", "samples/bin/aarch64/recursion"),
        ("Plain bytes", "--raw --arch aarch64 --base 0x400000 code.bin"),
    ),
)
@program_options
@json_option("Print JSON: an object for each instruction.")
@option("--raw", is_flag=True, help="GUEST is plain bytes without headers.", group=Group.GUEST)
@option(
    "--arch",
    "arch_name",
    type=click.Choice(architectures()),
    help="Architecture of plain bytes.",
    group=Group.GUEST,
)
@option(
    "--base",
    type=_number,
    metavar="ADDR",
    help="Address of the first plain byte [default: 0].",
    group=Group.GUEST,
)
@kernel_options
@click.argument("guest", type=click.Path())
@click.argument("place", required=False)
def disasm(
    raw: bool,
    arch_name: str | None,
    base: int | None,
    place: str | None,
    as_json: bool,
    **values: Any,
) -> int:
    """Disassemble GUEST: the function around PLACE, or all executable sections.

    Lines are `ADDRESS <SYMBOL+OFF>: BYTES  TEXT` in Capstone's Intel syntax; bytes that are no
    instruction become `.byte`. PLACE is SYM[+OFF], LIB:SYM[+OFF], PATH:SYM[+OFF], 0xADDR,
    FILE:LINE or PATH:OFFSET; outside of all functions the bytes from there on are shown. A
    kernel image is shown as its text is once it runs; --patched file shows the file's.
    """
    if raw:
        if arch_name is None:
            raise click.UsageError("--raw needs --arch NAME")
        if place is not None:
            raise click.UsageError("--raw takes no PLACE; there are no names in plain bytes")
        code = disassemble_raw(RawListingRequest(values["guest"], arch_name, base or 0))
        if as_json:
            _print_document([code])
        else:
            _show(code)
        return 0
    if arch_name is not None or base is not None:
        raise click.UsageError("--arch and --base go with --raw")
    config = config_of({**values, "args": ()}, kernel=kernel_choice(values))
    found = disassemble(ListingRequest(config, place))
    if as_json:
        _print_document(found)
        return 0
    for code in found:
        _show(code)
        console.remarks(code.damage(), values["color"])
    return 0


def _show(code: ListedCode) -> None:
    for line in _lines(code):
        console.put(line)


def _print_document(stretches: Iterable[ListedCode]) -> None:
    """Print the listing as JSON, an instruction at a time: there may be millions."""
    before, remarks = '{"kind": "disasm", "insns": [', list[list[str]]()
    for code in stretches:
        for item in code.insns:
            named = item.symbol is not None
            row = {
                "address": f"{item.insn.address:#x}",
                "symbol": item.symbol,
                "offset": item.offset if named else None,
                "bytes": item.insn.raw.hex(),
                "text": item.insn.text,
            }
            console.put(f"{before}{json.dumps(row)}")
            before = ","
        remarks += lines_of(code.damage())
    console.put(f'{"" if before == "," else before}], "remarks": {json.dumps(remarks)}}}')


def _lines(code: ListedCode) -> Iterator[str]:
    width = 3 * min(code.insn_max, 8) - 1
    for item in code.insns:
        insn = item.insn
        name = f" <{item.symbol}+{item.offset:#x}>" if item.symbol is not None else ""
        yield f"{insn.address:#x}{name}: {insn.raw.hex(' '):<{width}}  {insn.text}"
