"""The command group and how errors leave it."""

import errno
import io
import os
import resource
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final, cast

import click

from engine.cli import console
from engine.errors import (
    TIMED_OUT,
    CutOff,
    EngineError,
    KprobeTuiError,
    ProbeSyntaxError,
    SourceError,
)
from engine.escaping import escaped

if TYPE_CHECKING:
    from engine.cli.interface import Interface

COMMANDS: Final[dict[str, str]] = {
    "run": "Run GUEST with ARGS; standard streams and exit code are the guest's.",
    "trace": "Run GUEST with ARGS and record events; standard streams and exit code are the "
    "guest's.",
    "strace": "Run GUEST with ARGS and show its system calls and signals, as strace does.",
    "bpftrace": "Run GUEST with ARGS and a script of bpftrace attached to it.",
    "live": "Place the probes in the running kernel of this machine (root), and read what it "
    "records.",
    "graph": "Run GUEST with ARGS and show its calls, as ftrace's function_graph tracer does.",
    "bt": "Run GUEST with ARGS up to a place and print the backtrace there.",
    "check": "Say for each place in GUEST whether a probe may stand there; nothing runs.",
    "diff": "Run GUEST with ARGS twice, without and with the probes, and compare the runs.",
    "explore": "Run GUEST with ARGS under many schedules of its threads, until one ends in "
    "another way.",
    "sweep": "Carry out all cells of FILE, a matrix of runs in TOML, and keep what comes out.",
    "record": "Run GUEST with ARGS and write the run to a file, which replay lives through again.",
    "replay": "Live through a recorded run again, with events; FILE is all it needs.",
    "disasm": "Disassemble GUEST: the function around PLACE, or all executable sections.",
    "call": "Call functions of a kernel IMAGE or module: 'strlen(\"hello\")'.",
    "bench": "Measure what a hit costs: CPU nanoseconds over the unprobed run, by technique.",
    "serve": "Load GUEST with ARGS for gdb, an editor or a browser to drive.",
    "boot": "Boot KERNEL, a vmlinuz or vmlinux of x86-64; its console is stdin and stdout.",
    "recover": "Print the events in RING, the FILE.ring beside the FILE of a trace that was "
    "killed.",
    "help": "Show a chapter of the handbook, or the help of a subcommand; without TOPIC "
    "list both.",
}
"""The subcommands and the first sentence of their help: `engine.cli.NAME` has the command NAME."""
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OUT_OF_TIME: Final = 124
_USUAL_LIMITS: Final = (
    (resource.RLIMIT_NOFILE, 256),
    (resource.RLIMIT_AS, 1 << 30),
    (resource.RLIMIT_STACK, 1 << 20),
)
_HANDLERS: Final = "engine.session.tracing.handlers"
_HELPS: Final = ("-h", "--help", "--version", "-V")


def _import_msgspec() -> None:
    """Import msgspec without typing_extensions, which it asks for what `typing` has these days."""
    modules = cast("dict[str, ModuleType | None]", sys.modules)
    if "msgspec" in modules or "typing_extensions" in modules:
        return
    modules["typing_extensions"] = None  # not to be had, for a moment
    try:
        import_module("msgspec")
    finally:
        del modules["typing_extensions"]


INTERFACE_OPTIONS: Final = (
    ("-e DEF", "Place a probe first."),
    ("--fresh", "Forget the probes and layout of the last time."),
    ("--history / --no-history", "Record the run, so that one can go back in it."),
    ("--ascii", "Draw with ASCII only."),
    ("--color [auto|always|never]", "never: no colors, as NO_COLOR has it."),
    ("--mode [kernel|strict]", "Refuse what Linux refuses; or what would do harm, too."),
    ("--seed N", "Of all randomness, turns of threads included."),
    ("--root DIR", "This tree is the guest's whole file system."),
    ("--boot", "Boot GUEST, a kernel image, as a machine; its options: --boot --help."),
    ("--batch", "Carry out gdb's words (-x, -ex), no interface."),
    ("-x, --command FILE", "With --batch: carry out the words in FILE."),
    ("-ex, --eval-command CMD", "With --batch: a word, as -ex 'break main'."),
)
"""The commonest options of the interface; `--help` does not import the command that has them."""


class Subcommands(click.Group):
    """A group whose commands are imported when they are used: each needs another part of us."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all subcommands."""
        return sorted({*COMMANDS, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, None for an unknown one."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        _import_msgspec()
        found = getattr(import_module(f"engine.cli.{cmd_name}"), cmd_name)
        assert isinstance(found, click.Command)
        return found

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, the subcommands, and the options of the interface for `--help`."""
        super().format_options(ctx, formatter)
        with formatter.section("Options of the interface, in front of GUEST; those of run, too"):
            formatter.write_dl(INTERFACE_OPTIONS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of subcommands for `--help`."""
        names = self.list_commands(ctx)
        limit = formatter.width - 6 - max(map(len, names))
        helps = {**COMMANDS, **{name: each.help for name, each in self.commands.items()}}
        rows = [
            (name, click.Command(name, help=helps[name]).get_short_help_str(limit))
            for name in names
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


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


def _print_script(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is None or ctx.resilient_parsing:
        return
    from engine.cli.shells import script

    console.write(script(value))
    console.flush()
    ctx.exit()


@click.group(cls=Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
@click.option(
    "--completion",
    type=click.Choice(("bash", "zsh", "fish")),
    is_eager=True,
    expose_value=False,
    callback=_print_script,
    help='Print a script that completes words in a shell: eval "$(kprobe-tui --completion bash)".',
)
def cli() -> None:
    """Place probes in an ELF program that runs in an emulated guest.

    kprobe-tui [OPTIONS] GUEST [ARGS]... opens the terminal interface.
    """


def main(
    argv: list[str], open_interface: "Interface", others: tuple[click.Command, ...] = ()
) -> int:
    """Run a subcommand, or open the interface for a GUEST; the exit code.

    Args:
        argv: the command line without the command's own name.
        open_interface: opens the terminal interface.
        others: subcommands of the layer above.
    """
    console.prepare()
    for command in others:
        cli.add_command(command)
    return console.heard(_carried_out(argv, open_interface, "--debug" in argv))


def _carried_out(argv: list[str], open_interface: "Interface", debug: bool) -> int:
    try:
        _ensure_room()
        result = _entry(argv).main(
            args=argv, prog_name="kprobe-tui", standalone_mode=False, obj=open_interface
        )
        console.flush()
    except click.ClickException as error:
        console.text(_shown(error))
        return 2
    except click.Abort:
        return 130
    except ProbeSyntaxError as error:
        console.remark(*error.before)
        console.text(str(error))  # as error_log shows it
        return 2
    except SourceError as error:
        console.text(str(error))
        return 2
    except KprobeTuiError as error:
        if debug:
            console.text(_traceback())
        console.remark(*error.before)
        console.remark(str(error))
        if error.hint:
            console.remark(f"hint: {error.hint}")
        return 125 if isinstance(error, EngineError) else 2
    except CutOff as end:
        if end.code == _OUT_OF_TIME:
            console.remark(TIMED_OUT)
        return end.code
    except Exception as error:
        from engine.hostlimits import limit_reached  # hardly ever asked

        limit = limit_reached(error)
        if limit:
            if debug:
                console.text(_traceback())
            console.remark(limit)
            return 2
        if isinstance(error, OSError) and error.errno in _FULL:
            console.remark(f"the output cannot be written: {error.strerror}")
            return 2
        told = _blamed(error)
        if debug:
            console.text(_traceback())
        if told:
            console.remark(told)
            return 2
        console.remark(f"the engine failed: {error!r}")
        console.remark(f"hint: {EngineError.hint}")
        return 125
    return result if isinstance(result, int) else 0


def _ensure_room() -> None:
    """Look closer where a limit of the host's is unusually low.

    Raises:
        CommandError: it is too low.
    """
    for kind, usual in _USUAL_LIMITS:
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY and soft < usual:
            from engine.hostlimits import ensure_room  # most hosts have room

            ensure_room()


def end_soon(code: int) -> None:
    """Have the process end in a moment, if code of a handlers file could keep it from that.

    Args:
        code: exit code of the process.
    """
    if _HANDLERS in sys.modules:
        from engine.session.headless import process_end

        process_end.end_soon(code, console.remark)


def _blamed(error: Exception) -> str:
    """Why an error is the doing of a handlers file, "" if it is not."""
    if _HANDLERS not in sys.modules:
        return ""
    from engine.session.headless.process_end import blame

    return blame(error)


def _traceback() -> str:
    """The exception at hand, for --debug."""
    from traceback import format_exc

    return format_exc()


def _shown(error: click.ClickException) -> str:
    """An error as click shows it; a word of the command line cannot make a line of its own."""
    shown = io.StringIO()
    context = error.ctx if isinstance(error, click.UsageError) else None
    click.UsageError("", context).show(shown)
    return shown.getvalue().rstrip("\n") + escaped(error.format_message())


def _entry(argv: list[str]) -> click.Command:
    """The command that a command line is for: the group, or the interface where GUEST comes."""
    names = {*COMMANDS, *cli.commands}
    first = argv[0] if argv else ""
    if "_KPROBE_TUI_COMPLETE" in os.environ:
        from click.shell_completion import add_completion_class  # a shell asks

        from engine.cli.shells import CLASSES

        for each in CLASSES:
            add_completion_class(each)
        return cli
    if first in names or first in _HELPS:
        return cli
    # Options that subcommands do not have.
    from engine.cli.interface import ensure_guest, guest_word, interface
    from engine.cli.options import BOOT

    word = guest_word(argv)
    if word is None and BOOT in argv:
        return interface  # which has its own help
    if word is None or word in names:
        return cli
    ensure_guest(word, argv, names)
    return interface
