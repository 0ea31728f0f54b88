"""`kprobe-tui call`: functions of a kernel image, called."""

from typing import Any, Final

import click

from engine.cli import console
from engine.cli.kernel_options import kernel_choice, kernel_options
from engine.escaping import json_text
from engine.session.headless.calls import CallResult, call_functions
from engine.session.protocol.requests import CallRequest

_BLOCKS: Final = 100_000_000
_SHOWN: Final = 64


@click.command()
@kernel_options
@click.option("--json", "as_json", is_flag=True, help="A list of objects instead of lines.")
@click.option(
    "--max-blocks",
    type=click.IntRange(min=1),
    default=_BLOCKS,
    show_default=True,
    help="End a call that takes more basic blocks.",
)
@click.argument("image", type=click.Path())
@click.argument("calls", nargs=-1, required=True)
def call(as_json: bool, max_blocks: int, image: str, calls: tuple[str, ...], **values: Any) -> int:
    """Call functions of a kernel IMAGE or module: 'strlen("hello")'.

    Arguments are numbers, 'c', "text", &name[SIZE] (a buffer, shown behind the call), arrays as
    (u32[]){1, 2}, names of buffers and of symbols. Memory stays from call to call. Allocators are
    served, printk is shown; what needs a running kernel or hardware ends with the reason.

    Exit code: 0 if all calls return, 1 if one does not, 2 for bad usage.
    """
    request = CallRequest(image, calls, kernel_choice(values), max_blocks)
    failed = False
    rows = []
    for result in call_functions(request):
        failed = failed or bool(result.failure)
        if as_json:
            rows.append(_as_json(result))
        else:
            _show(result)
    if as_json:
        console.write(json_text(rows) + "\n")
    return int(failed)


def _show(result: CallResult) -> None:
    for line in result.printed.splitlines():
        console.put(f"printk: {line}")
    if result.failure:
        console.put(f"{result.text} did not return: {result.failure}")
    else:
        kind = f"({result.type}) " if result.type and result.type != "void" else ""
        console.put(f"{result.text} = {kind}{result.shown}")
    for buffer in result.buffers:
        if buffer.changed:
            more = "..." if len(buffer.data) > _SHOWN else ""
            text = "".join(chr(b) if 32 <= b < 127 else "." for b in buffer.data[:_SHOWN])
            console.put(f"    {buffer.name}: {buffer.data[:_SHOWN].hex(' ')}{more}  {text}{more}")
    if result.stubs:
        console.put(f"    imports that nobody exports, answered by 0: {', '.join(result.stubs)}")


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
