"""`kprobe-tui serve`: a guest for other people's front ends."""

from typing import Any

import click

from engine.cli import console
from engine.cli.options import config_of, guest_options, schedule_options
from engine.cli.probe_options import guest_probe_options, probe_options
from engine.session.protocol.config import Mode
from engine.session.serve.serving import serve_gdb


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--gdb",
    "address",
    metavar="ADDR",
    required=True,
    help="Speak gdb's remote protocol on 127.0.0.1:PORT (port 0: any) or unix:PATH.",
)
@click.option("--record", is_flag=True, help="Record the run, so that gdb can go backwards in it.")
@probe_options
@guest_probe_options
@schedule_options
@guest_options
def serve(address: str, record: bool, mode_name: str, **values: Any) -> int:
    """Load GUEST with ARGS, and let gdb drive it: (gdb) target remote ADDR.

    The guest stands at its first instruction until gdb lets it run; its standard streams are those
    of this command. The server ends with the guest.
    """
    return serve_gdb(config_of(values, history=record), address, Mode(mode_name), console.remark)
