"""`kprobe-tui bpftrace`: run a guest with a script of bpftrace."""

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from engine.cli import console
from engine.cli.grouped import Group, GroupedCommand, SwitchedCommand, option
from engine.cli.host import attached
from engine.cli.options import (
    BOOT,
    Command,
    boot_flag,
    config_of,
    guest_options,
    schedule_options,
)
from engine.cli.probe_options import guest_probe_options, probe_options
from engine.cli.run import show
from engine.errors import CommandError
from engine.session.headless.bpftrace import (
    FORMATS,
    list_probes,
    opened_script,
    script_patterns,
    script_text,
)
from engine.session.protocol.config import GuestConfig, Mode
from engine.session.protocol.scripts import ScriptRequest

if TYPE_CHECKING:
    from engine.session.headless.traces import AttachScript

_WORDS: Final = "engine.cli.bpftrace.words"
_BEHIND: Final = "--"
_STDIN: Final = "stdin"
_OF_SCRIPTS: Final = "BPFTRACE_"


class ScriptCommand(GroupedCommand):
    """A command whose words in front of `--` are a script's file and parameters.

    Attributes:
        runs: what stands behind.
        or_else: what can stand there if the script does not care.
    """

    runs = "GUEST"
    or_else = "; a script that probes nothing runs on any program, such as /bin/true"
    guest_behind = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep those words, and parse the rest as any command that runs a guest."""
        at = _first_word(args, self.params)
        words = args[at:]
        if _BEHIND not in words and not {"-h", "--help"} & set(args[:at]):
            where = f"it stands behind --, as in -e SCRIPT -- {self.runs}{self.or_else}"
            raise click.UsageError(f"no {self.runs}: {where}", ctx)
        given, behind = _divided(words)
        ctx.meta[_WORDS] = tuple(given)
        return super().parse_args(ctx, [*args[:at], *behind])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The pieces of the usage line."""
        return ["[OPTIONS]", "[FILE [PARAMS]...]", "--", "GUEST", "[ARGS]..."]


class _SwitchedScript(SwitchedCommand, ScriptCommand):
    """`bpftrace`, which is another command with --boot."""

    flag = BOOT

    @property
    def other(self) -> click.Command:
        """The command that boots."""
        from engine.cli.boot_bpftrace import bpftrace_boot  # few scripts boot a machine

        return bpftrace_boot


def words_of(ctx: click.Context) -> tuple[str, ...]:
    """The words in front of `--`."""
    words: tuple[str, ...] = ctx.meta[_WORDS]
    return words


def _divided(words: list[str]) -> tuple[list[str], list[str]]:
    """Divide words into those of the script and those of what runs, with its `--`.

    Options of a script stand behind a `--` as in bpftrace; then a second one begins what runs.
    """
    if _BEHIND not in words:
        return words, []
    first = words.index(_BEHIND)
    rest = words[first + 1 :]
    if not rest or not rest[0].startswith("-") or _BEHIND not in rest:
        return words[:first], words[first:]
    second = rest.index(_BEHIND)
    return [*words[:first], *rest[:second]], rest[second:]


def _first_word(args: Sequence[str], parameters: Sequence[click.Parameter]) -> int:
    """Find the first word that is neither an option nor the value of one."""
    options = {
        name: each
        for each in parameters
        if isinstance(each, click.Option)
        for name in (*each.opts, *each.secondary_opts)
    }
    at = 0
    while at < len(args) and args[at].startswith("-") and args[at] not in ("-", _BEHIND):
        word = args[at]
        if not word.startswith("--") and word not in options:  # -qe is -q -e
            word = (
                f"-{word[-1]}" if all(_is_flag(options, f"-{each}") for each in word[1:-1]) else ""
            )
        takes = word in options and not _is_flag(options, word)
        at += 2 if takes else 1
    return min(at, len(args))


def _is_flag(options: Mapping[str, click.Option], name: str) -> bool:
    found = options.get(name)
    return found is not None and (found.is_flag or found.count)


_OPTIONS: Final = (
    option(
        "-e",
        "script",
        metavar="SCRIPT",
        help="Run this text; else the first word in front of -- is the FILE with the script.",
        group=Group.EVENTS,
    ),
    option(
        "-l",
        "--list",
        "listing",
        is_flag=True,
        help="List the probes that patterns, or a script, in front of -- mean, and do not run.",
        group=Group.EVENTS,
    ),
    option(
        "-v",
        "--verbose",
        is_flag=True,
        help="List their arguments, too (-lv).",
        group=Group.EVENTS,
    ),
    option(
        "--dry-run",
        is_flag=True,
        help="Check the script, place its probes, and do not run.",
        group=Group.EVENTS,
    ),
    option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write what the script prints to FILE, not stdout.",
        group=Group.OUTPUT,
    ),
    option(
        "-f",
        "--format",
        "form",
        type=click.Choice(FORMATS),
        default=FORMATS[0],
        show_default=True,
        help="Print text, or lines of JSON.",
        group=Group.OUTPUT,
    ),
    option("-q", "--quiet", is_flag=True, help="No word of attached probes.", group=Group.OUTPUT),
)


def script_options(command: Command) -> Command:
    """Add the options of the commands that run a script."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


@click.command(
    cls=_SwitchedScript,
    context_settings={"allow_interspersed_args": False},
    uses=(
        (
            "How often functions are called",
            "-e 'uprobe:./a.out:f* { @[func] = count(); }' -- ./a.out",
        ),
        ("A script with a parameter", "sizes.bt 100 -- /bin/ls -l"),
        ("What a script can be attached to", "-lv 'uprobe:./a.out:*' -- ./a.out"),
    ),
)
@script_options
@boot_flag
@probe_options
@guest_probe_options
@schedule_options
@guest_options
@click.pass_context
def bpftrace(
    ctx: click.Context,
    /,
    script: str | None,
    listing: bool,
    verbose: bool,
    dry_run: bool,
    mode_name: str,
    output: str | None,
    form: str,
    quiet: bool,
    **values: Any,
) -> int:
    """Run GUEST with ARGS and a script of bpftrace attached to it.

    The script's output goes to stdout, or to the file of -o; standard streams are the guest's.
    The exit code is the guest's, or that of exit(N).
    """
    words = words_of(ctx)
    config = config_of(values)
    if listing:
        patterns = listed_patterns(script, words, config.guest)
        for line in list_probes(config, patterns, verbose=verbose):
            console.put(line)
        return 0
    if verbose:
        raise click.UsageError("-v: with -l")
    name, data, parameters = read_script(script, words)
    request = ScriptRequest(
        config,
        name,
        script_text(name, data).text,
        parameters,
        settings_of_scripts(),
        form,
        output,
        quiet,
        Mode(mode_name),
    )
    with opened_script(request, console.write_bytes, say) as scripted:
        if dry_run:
            console.remarks(scripted.remarks, values["color"])
            return 0
        reports = scripted.run(
            lambda session: attached(session, values["timeout"], scripted.special)
        )
    show(reports, values["color"])
    return reports.exit_code


def read_script(script: str | None, words: tuple[str, ...]) -> tuple[str, bytes, tuple[str, ...]]:
    """Name and text of the script, and its parameters.

    Raises:
        UsageError: there is none.
        CommandError: it cannot be read.
    """
    if script is not None:
        return _STDIN, script.encode(errors="surrogateescape"), words
    if not words:
        raise click.UsageError("no script: give -e SCRIPT or FILE in front of -- GUEST")
    name, *parameters = words
    if name == "-":
        return _STDIN, sys.stdin.buffer.read(), tuple(parameters)
    try:
        with open(name, "rb") as file:
            return name, file.read(), tuple(parameters)
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from error


def script_beside(
    file: str, config: GuestConfig, mode: Mode, *, recorded: bool = False
) -> "AttachScript":
    """The script of a file, to be attached beside the events of a trace.

    Args:
        file: path of it; "-" is standard input.
        config: the guest of the trace.
        mode: strictness of placement.
        recorded: the run is lived through again, and is not to be changed.

    Raises:
        CommandError: the file cannot be read, or is no text.
    """
    from engine.session.headless.script_beside import ScriptBeside  # few scripts stand beside

    name, data, _ = read_script(None, (file,))
    request = ScriptRequest(
        config,
        name,
        script_text(name, data).text,
        environment=settings_of_scripts(),
        quiet=True,
        mode=mode,
        recorded=recorded,
        beside=True,
    )
    return partial(ScriptBeside, request, console.write_bytes, say)


def settings_of_scripts() -> dict[str, str]:
    """The variables of the environment that set the config of scripts."""
    return {key: value for key, value in os.environ.items() if key.startswith(_OF_SCRIPTS)}


def listed_patterns(
    script: str | None, words: tuple[str, ...], program: str = ""
) -> tuple[str, ...]:
    """Return the patterns that -l lists: those of a word with commas, or the probes of a script.

    Raises:
        UsageError: there is more than one word, and no script.
        CommandError: the script cannot be read.
        WrongScriptError: it is wrong.
    """
    if script is None and not (words and os.path.isfile(words[0])):
        if len(words) > 1:
            raise click.UsageError("-l: one pattern, or a script, in front of --")
        return tuple(words[0].split(",")) if words else ("",)
    name, data, parameters = read_script(script, words)
    return script_patterns(script_text(name, data), parameters, program)


def say(data: bytes) -> None:
    """Write a warning of a script's to standard error."""
    console.text(data.decode(errors="surrogateescape").rstrip("\n"))
