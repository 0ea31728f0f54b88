"""`kprobe-tui call`: functions of a kernel image, called."""

from typing import Any, Final

import click

from engine.cli import console
from engine.cli.grouped import Group, GroupedCommand, option
from engine.cli.host import attached
from engine.cli.options import color_option, kernel_choice, kernel_options
from engine.escaping import json_text
from engine.session.headless.calls import CallResult, call_functions
from engine.session.protocol.requests import CallRequest

_NOT_MADE: Final = 2
"""Exit code where a call cannot be made."""
_BLOCKS: Final = 100_000_000


@click.command(
    cls=GroupedCommand,
    uses=(
        ("A function of a kernel", "vmlinuz 'strlen(\"hello\")'"),
        ("With a buffer, which is shown", "vmlinuz 'strscpy(&buf[8], \"hello\", 8)'"),
        ("Of a module", "--kernel vmlinuz crc16.ko 'crc16(0, \"abc\", 3)'"),
    ),
)
@kernel_options
@option(
    "--json",
    "as_json",
    is_flag=True,
    help="A list of objects instead of lines.",
    group=Group.OUTPUT,
)
@option(
    "--max-blocks",
    type=click.IntRange(min=1),
    default=_BLOCKS,
    show_default=True,
    help="End a call that takes more basic blocks.",
    group=Group.LIMITS,
)
@color_option
@click.argument("image", type=click.Path())
@click.argument("calls", nargs=-1, required=True)
def call(as_json: bool, max_blocks: int, image: str, calls: tuple[str, ...], **values: Any) -> int:
    """Call functions of a kernel IMAGE or module: 'strlen("hello")'.

    Arguments are numbers, 'c', "text", &name[SIZE] (a buffer, shown behind the call), arrays as
    (u32[]){1, 2}, names of buffers and of symbols. Memory stays from call to call. Allocators are
    served, printk is shown; what needs a running kernel or hardware ends with the reason.

    A call that cannot be made, as of an unknown function, is told, and the others are made.

    Exit code: 0 if all calls return, 1 if one does not, 2 if one cannot be made, or for bad usage.
    """
    color = values.pop("color")
    request = CallRequest(image, calls, kernel_choice(values), max_blocks)
    rows: list[dict[str, Any]] = []
    codes = [0]

    def told(result: CallResult) -> None:
        rows.append(_as_json(result))
        codes.append(int(bool(result.failure)))
        for line in result.lines() if not as_json else ():
            console.put(line)

    def said(line: str) -> None:
        if not as_json:
            console.put(f"printk: {line}")

    def refused(text: str, why: str) -> None:
        rows.append(_as_json(CallResult(text, "", None, "", (), "", (), why)))
        codes.append(_NOT_MADE)
        console.remark(why, color=color)

    reports = call_functions(request, lambda session: attached(session, None), told, said, refused)
    if as_json:
        console.write(json_text(rows) + "\n")
    elif reports.exit_code:
        console.remarks(reports.remarks, color)
    return max(codes) or reports.exit_code


def _as_json(result: CallResult) -> dict[str, Any]:
    return {
        "call": result.text,
        "type": result.type or None,
        "value": result.value,
        "shown": result.shown or None,
        "buffers": {buffer.name: buffer.data.hex() for buffer in result.buffers},
        "changed": [buffer.name for buffer in result.buffers if buffer.changed],
        "printed": result.printed,
        "stubs": list(result.stubs),
        "failure": result.failure or None,
    }
