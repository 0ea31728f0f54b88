"""The command group and how errors leave it."""

import os
import sys
import traceback
from typing import Final

import click

from engine.cli.bench import bench
from engine.cli.bt import bt
from engine.cli.check import check
from engine.cli.diff import diff
from engine.cli.disasm import disasm
from engine.cli.graph import graph
from engine.cli.interface import Interface, interface, is_wanted
from engine.cli.recover import recover
from engine.cli.run import run
from engine.cli.trace import trace
from engine.errors import EngineError, KprobeTuiError, ProbeSyntaxError

COMMANDS: Final[tuple[click.Command, ...]] = (
    *(run, trace, graph, bt, check, diff, disasm, bench, recover),
)


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version  # 30 ms

    try:
        number = version("kprobe-tui")
    except PackageNotFoundError:
        number = "(not installed)"
    click.echo(f"kprobe-tui, version {number}")
    ctx.exit()


@click.group(
    commands={command.name or "": command for command in COMMANDS},
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Place probes in an ELF program that runs in an emulated guest.

    kprobe-tui [OPTIONS] GUEST [ARGS]... opens the terminal interface.
    """


def main(
    argv: list[str], open_interface: Interface, others: tuple[click.Command, ...] = ()
) -> int:
    """Run a subcommand, or open the interface for a GUEST; the exit code.

    Args:
        argv: the command line without the command's own name.
        open_interface: opens the terminal interface.
        others: subcommands of the layer above.
    """
    for command in others:
        cli.add_command(command)
    debug = "--debug" in argv
    known = {*cli.commands}
    completing = "_KPROBE_TUI_COMPLETE" in os.environ
    entry: click.Command = interface if is_wanted(argv, known) and not completing else cli
    try:
        result = entry.main(
            args=argv, prog_name="kprobe-tui", standalone_mode=False, obj=open_interface
        )
    except click.ClickException as error:
        error.show()
        return 2
    except click.Abort:
        return 130
    except ProbeSyntaxError as error:
        print(error, file=sys.stderr)  # as error_log shows it
        return 2
    except KprobeTuiError as error:
        if debug:
            traceback.print_exc()
        print(f"kprobe-tui: {error}", file=sys.stderr)
        if error.hint:
            print(f"kprobe-tui: hint: {error.hint}", file=sys.stderr)
        return 125 if isinstance(error, EngineError) else 2
    except BrokenPipeError:
        return 141
    except Exception as error:
        if debug:
            traceback.print_exc()
        print(f"kprobe-tui: the engine failed: {error!r}", file=sys.stderr)
        print(f"kprobe-tui: hint: {EngineError.hint}", file=sys.stderr)
        return 125
    return result if isinstance(result, int) else 0
