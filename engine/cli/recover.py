"""`kprobe-tui recover`: print the events that a killed trace had not written yet."""

import sys
from pathlib import Path

import click

from engine.trace.formats import FORMATS
from engine.trace.formats.base import Names, no_symbol
from engine.trace.recovery import Recovered
from engine.trace.recovery import recover as read_ring
from engine.trace.rows import HEAD, EventSource, decode


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice([form.name for form in FORMATS]),
    default=FORMATS[0].name,
    show_default=True,
    help="How events are written.",
)
@click.option("--header", is_flag=True, help="Print the format's header, too.")
@click.argument("ring", type=click.Path())
def recover(form: str, header: bool, ring: str) -> int:
    """Print the events in RING, the FILE.ring beside the FILE of a trace that was killed.

    They go behind those in FILE: kprobe-tui recover FILE.ring >> FILE
    """
    found = read_ring(Path(ring))
    functions = _returning(found)
    comms = {thread: name.encode(errors="surrogateescape") for thread, name in found.comms.items()}
    names = Names(
        lambda address: found.symbols.get(address) or no_symbol(address),
        comms.get,
        functions.__contains__,
    )
    make = next(kind for kind in FORMATS if kind.name == form)
    writer = make(found.events, names)
    out = sys.stdout.buffer
    if header or not writer.is_text:
        out.write(writer.header())
    out.write(writer.rows(found.rows) + writer.end())
    out.flush()
    click.echo(f"kprobe-tui: {found.count} events", err=True)
    if found.damaged:
        click.echo(f"kprobe-tui: {found.damaged} bytes behind them are damaged", err=True)
    return 0


def _returning(found: Recovered) -> set[int]:
    """Functions that a return event was recorded for."""
    functions: set[int] = set()
    position = 0
    while position < len(found.rows):
        event_id, words, _ = HEAD.unpack_from(found.rows, position)
        info = found.events[event_id]
        if info.returns and info.source is EventSource.PROBE:
            functions.add(decode(found.events, found.rows, position).address)
        position += words * 8
    return functions
