"""`kprobe-tui recover`: print the events that a killed trace had not written yet."""

import click

from engine.cli import console
from engine.cli.grouped import Group, GroupedCommand, option
from engine.session.headless.recovery import FORMAT_NAMES, recovered_text


@click.command(
    cls=GroupedCommand,
    uses=(
        ("The rest of a trace that was killed, behind the trace", "trace.txt.ring"),
        ("With the header of the format", "--header trace.txt.ring"),
        ("A trace of another format", "--format jsonl trace.jsonl.ring"),
    ),
)
@option(
    "--format",
    "form",
    type=click.Choice(FORMAT_NAMES),
    help="How events are written; as the trace was if not given.",
    group=Group.OUTPUT,
)
@option("--header", is_flag=True, help="Print the format's header, too.", group=Group.OUTPUT)
@click.argument("ring", type=click.Path())
def recover(form: str | None, header: bool, ring: str) -> int:
    """Print the events in RING, the FILE.ring beside the FILE of a trace that was killed.

    They go behind those in FILE: kprobe-tui recover FILE.ring >> FILE

    A FILE (or directory) of a format that is no stream is completed itself.
    """
    found = recovered_text(ring, form, header=header)
    console.write_bytes(found.text)
    console.remark(
        f"{found.count} events{f' written to {found.completed}' * bool(found.completed)}"
    )
    for line in found.notes:
        console.remark(line)
    return 0
