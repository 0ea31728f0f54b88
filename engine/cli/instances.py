"""`--instance NAME`: further sets of events over the same run, each with options of its own."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from engine.cli.grouped import Group, GroupedCommand, option
from engine.cli.options import lines_of
from engine.cli.probe_options import task_options, tasks_of
from engine.session.headless.traces import FORMAT_NAMES
from engine.session.protocol.config import Mode
from engine.session.protocol.many_lines import many_lines
from engine.session.protocol.requests import ProbeRequest, TraceInstance, TraceOptions

_OPTION: Final = "--instance"
INSTANCES: Final = "instances"
"""Key of the parsed instances in a context's `meta`."""

_OPTIONS: Final = (
    option(
        "-e",
        "definitions",
        multiple=True,
        metavar="DEF",
        help="An event, as a line of kprobe_events, system calls, as syscalls/GLOB, or what the "
        "scheduler does, as sched:GLOB; again and again; @FILE reads lines.",
        group=Group.EVENTS,
    ),
    option(
        "-f",
        "globs",
        multiple=True,
        metavar="GLOB",
        help="An event on the entry of every matching function; LIB:GLOB in a library.",
        group=Group.EVENTS,
    ),
    option(
        "-r",
        "returns",
        multiple=True,
        metavar="GLOB",
        help="An event on the return of every matching function.",
        group=Group.EVENTS,
    ),
    option(
        "-o",
        "output",
        metavar="FILE",
        help="Write the trace there, not to stderr.",
        group=Group.OUTPUT,
    ),
    option(
        "--format",
        "form",
        type=click.Choice(FORMAT_NAMES),
        default=FORMAT_NAMES[0],
        show_default=True,
        help="How events are written.",
        group=Group.OUTPUT,
    ),
    option(
        "--buffer",
        type=click.IntRange(min=1),
        metavar="N",
        help="Keep N events and print them at the end.",
        group=Group.OUTPUT,
    ),
    option(
        "--overwrite",
        is_flag=True,
        help="With --buffer: keep the last events; SIGUSR1 writes them out, too.",
        group=Group.OUTPUT,
    ),
    option(
        "--filter",
        "filters",
        multiple=True,
        metavar="GROUP/NAME:EXPR",
        help="Record an event only where the kernel's filter expression holds.",
        group=Group.EVENTS,
    ),
    option(
        "--trigger",
        "triggers",
        multiple=True,
        metavar="GROUP/NAME:TRIGGER",
        help="Do something at an event: stacktrace, traceon, traceoff, snapshot, enable_event, "
        "disable_event, hist:keys=FIELD.",
        group=Group.EVENTS,
    ),
    option(
        "--stack",
        is_flag=True,
        help="Record the call stack behind each event.",
        group=Group.OUTPUT,
    ),
    option(
        "--profile",
        is_flag=True,
        help="Print hits and misses of each probe at the end.",
        group=Group.OUTPUT,
    ),
    option(
        "--option",
        "text_options",
        multiple=True,
        metavar="NAME",
        help="A trace option of tracefs for the text: fields, raw, hex, verbose, noirq-info, ...",
        group=Group.OUTPUT,
    ),
)
_WATCH: Final = option(
    "--watch",
    "watches",
    multiple=True,
    metavar="EXPR",
    help="An event for each store to a variable, *(TYPE *)ADDR, or ADDR,LEN; again and again.",
    group=Group.EVENTS,
)


_PERF: Final = option(
    "--perf",
    "perf_definitions",
    multiple=True,
    metavar="DEF",
    help="An event, as a definition of perf probe: 'func:2 a->b', 'SRC:LINE $vars', "
    "'-x LIB FUNC%return $retval'; again and again.",
    group=Group.EVENTS,
)


_ARGS: Final = option(
    "--args",
    "typed",
    is_flag=True,
    help="Events of -f have the function's arguments, those of -r its result, as the source names "
    "them.",
    group=Group.EVENTS,
)


_prototypes: Final = option(
    "--prototypes",
    metavar="FILE.h",
    help="With --args: prototypes of functions that no debug information describes; those of the "
    "C library are known.",
    group=Group.EVENTS,
)


_printing: Final = option(
    "--print",
    "printing",
    multiple=True,
    metavar="NAME=VALUE",
    help="With --args: how values are shown, as gdb's set print: elements=20, depth=2, repeats=5, "
    "union=off, ...; again and again.",
    group=Group.OUTPUT,
)


def typing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what says of values with types where they are told and how they are shown."""
    return _prototypes(_printing(command))


def event_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a set of events, which `trace` has and each of its instances."""
    return recorded_options(_PERF(_ARGS(typing_options(_WATCH(task_options(command))))))


def recorded_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add those of them that do not need a guest."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


def probes_of(values: dict[str, Any]) -> ProbeRequest:
    """The probes that parsed options stand for.

    Raises:
        UsageError: they do not go together.
    """
    definitions = many_lines(lines_of(values.pop("definitions")))
    found = ProbeRequest(
        definitions,
        values.pop("globs"),
        values.pop("returns"),
        watches=values.pop("watches", ()),
        perf=values.pop("perf_definitions", ()),
        typed=values.pop("typed", False),
    )
    if found.typed and not (found.entries or found.returns):
        raise click.UsageError("--args is for the events of -f and -r")
    return found


def trace_options(values: dict[str, Any], *, keeps: bool = True) -> TraceOptions:
    """The form of a trace that parsed options stand for; its mode is the caller's care.

    Args:
        values: the options; those used are taken out.
        keeps: False where nothing is to be written.

    Raises:
        UsageError: they do not go together.
    """
    buffer, overwrite = values.pop("buffer"), values.pop("overwrite")
    if overwrite and buffer is None:
        raise click.UsageError("--overwrite needs --buffer N")
    output = values.pop("output")
    return TraceOptions(
        values.pop("form"),
        output if keeps else None,
        buffer,
        overwrite,
        Mode.STRICT,
        values.pop("stack"),
        values.pop("profile"),
        values.pop("text_options"),
        tasks_of(values),
        prototypes=values.pop("prototypes", None),
        printing=values.pop("printing", ()),
    )


@click.command(name=_OPTION, add_help_option=False)
@event_options
def _instance(**values: Any) -> None:
    """Options of one instance; only parsed."""


class WithInstances(GroupedCommand):
    """A command with a set of events of its own, and further ones behind `--instance NAME`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the options of instances apart, then parse the rest as any command does.

        Raises:
            UsageError: an instance has no name or output, or a name that another has.
        """
        mine, parts = self._parted(list(args))
        found: list[TraceInstance] = []
        for name, words in parts:
            found.append(_parsed(ctx, name, words))
        if len({name for name, _ in parts}) < len(parts):
            raise click.UsageError(f"each {_OPTION} needs a name of its own", ctx)
        ctx.meta[INSTANCES] = tuple(found)
        return super().parse_args(ctx, mine)

    def _parted(self, args: list[str]) -> tuple[list[str], list[tuple[str, list[str]]]]:
        """The command's own words, and (name, words) of each instance."""
        takes = {name: param for param in self.params for name in param.opts}
        theirs = {name for param in _instance.params for name in param.opts}
        mine: list[str] = []
        parts: list[tuple[str, list[str]]] = []
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] not in ("-", "--"):
            word = args[at]
            name, has_value, value = word.partition("=")
            if not word.startswith("--"):
                name, has_value, value = word[:2], word[2:], word[2:]
            if name == _OPTION:
                at += 1 if has_value else 2
                given = value if has_value else "".join(args[at - 1 : at])
                if not given or given.startswith("-"):
                    raise click.UsageError(f"{_OPTION} needs a NAME")
                parts.append((given, []))
                continue
            param = takes.get(name)
            flag = param is None or (isinstance(param, click.Option) and param.is_flag)
            size = 1 if flag or has_value else 2
            place = parts[-1][1] if parts and name in theirs else mine
            place += args[at : at + size]
            at += size
        return mine + args[at:], parts


def _parsed(ctx: click.Context, name: str, words: Sequence[str]) -> TraceInstance:
    values = _instance.make_context(f"{_OPTION} {name}", list(words), parent=ctx).params
    if values["output"] is None:
        raise click.UsageError(f"{_OPTION} {name} needs a -o FILE of its own", ctx)
    probes = probes_of(values)
    filters, triggers = values.pop("filters"), values.pop("triggers")
    options = trace_options(values)
    if probes.is_empty:
        raise click.UsageError(
            f"{_OPTION} {name}: nothing to trace: give -e, -f, -r or --perf", ctx
        )
    return TraceInstance(name, probes, options, filters, triggers)
