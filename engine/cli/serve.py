"""`kprobe-tui serve`: a guest for other people's front ends."""

import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from engine.cli import console
from engine.cli.grouped import Group, GroupedCommand, SwitchedCommand, option
from engine.cli.interface import interface, opened_guest
from engine.cli.options import BOOT, boot_flag, config_of, guest_options, schedule_options
from engine.cli.probe_options import guest_probe_options, probe_options
from engine.errors import CommandError
from engine.session.protocol.config import GuestConfig, Mode, core_config

_WEB: Final = "--web"


class _FrontEndCommand(SwitchedCommand, GroupedCommand):
    """Keeps the words of its line apart: options, and GUEST ARGS; or those for the interface.

    It is another command with --boot.
    """

    flag = BOOT

    @property
    def other(self) -> click.Command:
        """The command that boots."""
        from engine.cli.boot_serve import serve_boot  # few servers boot a machine

        return serve_boot

    def __init__(self, *words: Any, **more: Any) -> None:
        super().__init__(*words, **more)
        for each in self.params:
            if each.name == "guest":
                each.required = False  # an editor may name it later

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse words, and remember those in front of GUEST."""
        words = list(args)
        name, given, _ = words[0].partition("=") if words else ("", "", "")
        if name == _WEB:
            count = 1 if given else 2
            ctx.meta[_WEB] = words[count:]
            return super().parse_args(ctx, words[:count])
        rest = super().parse_args(ctx, args)
        guest = [] if ctx.params["guest"] is None else [ctx.params["guest"], *ctx.params["args"]]
        options = words[: len(words) - len(guest)]
        if options[-1:] == ["--"]:
            options.pop()
        ctx.meta[__name__] = options, guest
        return rest


@click.command(
    cls=_FrontEndCommand,
    context_settings={"allow_interspersed_args": False},
    uses=(
        ("gdb, which starts the command itself", "--gdb stdio samples/bin/x86_64/structs"),
        ("gdb, by a port of this machine", "--gdb 127.0.0.1:1234 samples/bin/x86_64/structs"),
        ("An editor", "--dap"),
    ),
)
@option(
    "--gdb",
    "address",
    metavar="ADDR",
    help="Speak gdb's remote protocol: stdio, for (gdb) target remote | kprobe-tui serve --gdb"
    " stdio GUEST; or on 127.0.0.1:PORT (port 0: any) or unix:PATH, to processes of this user.",
    group=Group.OTHERS,
)
@option(
    "--dap",
    is_flag=True,
    help="Speak the Debug Adapter Protocol on standard input and output, as an editor starts it.",
    group=Group.OTHERS,
)
@option(
    _WEB,
    "page",
    metavar="ADDR",
    help="Show the interface in a browser, at 127.0.0.1:PORT (port 0: any); what follows are words"
    " of kprobe-tui GUEST.",
    group=Group.OTHERS,
)
@option(
    "--record",
    is_flag=True,
    help="Record the run, so that one can go back in it.",
    group=Group.GUEST,
)
@boot_flag
@probe_options
@guest_probe_options
@schedule_options
@guest_options
def serve(address: str | None, dap: bool, page: str | None, **values: Any) -> int:
    """Load GUEST with ARGS for gdb, an editor or a browser to drive.

    With --gdb the guest stands at its first instruction until gdb lets it run: (gdb) target remote
    ADDR; its standard streams are those of this command, which ends with the guest. With --gdb
    stdio gdb shows the guest's output, and its input is empty. With --dap the editor may name the
    guest itself. With --web each page has a guest of its own.
    """
    ctx = click.get_current_context()
    if page is not None:
        return _web(page, ctx.meta.get(_WEB))
    if (address is None) is not dap:
        raise click.UsageError("--gdb ADDR, --dap or --web ADDR: one of them", ctx)
    if dap:
        # What gdb's half of the command needs is not read for this one, and the other way round.
        from engine.session.serve.dap.dapserving import serve_dap_here

        options, guest = ctx.meta[__name__]
        if guest:
            _configured(values)  # what is wrong with it is said here
        return serve_dap_here(front_end_guest, options, guest, console.remark)
    from engine.session.serve.serving import serve_gdb

    if values["guest"] is None:
        raise click.UsageError("Missing argument 'GUEST'.", ctx)
    assert address is not None
    config, mode = _configured(values)
    return serve_gdb(config, address, mode, console.remark)


def _web(address: str, words: list[str] | None) -> int:
    if words is None:
        raise click.UsageError("--web ADDR comes first, words of the interface follow it")
    with interface.make_context("kprobe-tui", list(words)) as context:
        config = opened_guest(context)
    if context.params["batch"]:
        raise click.UsageError("--batch has no interface that could be shown")
    from engine.session.serve.web.webserving import serve_web

    # As this process was started, without its own words: by the script, or as a module.
    started = [sys.executable, *sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv[1:])]]
    return serve_web([*started, *words], config, address, console.remark)


def _configured(values: dict[str, Any]) -> tuple[GuestConfig, Mode]:
    values = dict(values)
    mode = Mode(values.pop("mode_name"))
    return config_of(values, history=values.pop("record")), mode


def front_end_guest(words: Sequence[str]) -> tuple[GuestConfig, Mode]:
    """The guest that words stand for, as a front end gives them.

    Raises:
        CommandError: one of them means nothing.
    """
    try:
        with serve.make_context("serve", list(words)) as context:
            values = dict(context.params)
            values.pop("address")
            values.pop("dap")
            values.pop("page")
            config, mode = _configured(values)
    except click.ClickException as error:
        raise CommandError(f"launch: {error.format_message()}") from None
    except click.exceptions.Exit:
        raise CommandError("launch: options: --help is for a terminal") from None
    return core_config(config), mode
