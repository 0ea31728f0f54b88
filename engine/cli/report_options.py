"""Options of subcommands that sum up calls instead of showing each."""

from collections.abc import Iterable
from typing import Any, Final

import click
from click.core import ParameterSource

from engine.cli.grouped import Group, GroupedOption, option
from engine.cli.options import Command
from engine.session.headless.traces import FORMAT_NAMES
from engine.session.protocol.requests import TraceOptions

_POLICIES: Final = ("abs", "no-abs", "percent", "no-percent", "compact", "full")
_WITHOUT: Final = ("sort", "fields", "avg_total", "avg_self", "task", "compared")
"""Options that are for --report alone."""
_TEXTS: Final = {
    "sort": "--sort",
    "fields": "--fields",
    "avg_total": "--avg-total",
    "avg_self": "--avg-self",
    "task": "--task",
    "compared": "--diff",
    "policy": "--diff-policy",
    "column": "--sort-column",
    "demangle": "--demangle",
    "as_json": "--json",
}
_OF_GUESTS: Final = frozenset({Group.GUEST, Group.LIMITS, Group.IMAGES})
_OPTIONS: Final = (
    option(
        "--report",
        is_flag=True,
        help="Write a table of functions at the end: time with and without callees, calls.",
        group=Group.OUTPUT,
    ),
    option(
        "--callers",
        multiple=True,
        metavar="GLOB",
        help="Write at the end on which ways these functions were called.",
        group=Group.OUTPUT,
    ),
    option(
        "--callees",
        multiple=True,
        metavar="GLOB",
        help="Write at the end what these functions called, and how long it took.",
        group=Group.OUTPUT,
    ),
    option(
        "-s",
        "--sort",
        metavar="KEY[,KEY...]",
        help="With --report: total, self, call, func, size, total-avg, self-max, ...; with "
        "averages: avg, min, max, stdv; with --task: total, self, func, tid, name.",
        group=Group.OUTPUT,
    ),
    option(
        "--fields",
        metavar="NAME[,NAME...]",
        help="With --report: the columns: total, self, call, size, and -avg, -min, -max, -stdv of "
        "total and self; or all.",
        group=Group.OUTPUT,
    ),
    option(
        "--avg-total",
        is_flag=True,
        help="With --report: average, least and most of the total time of a call.",
        group=Group.OUTPUT,
    ),
    option(
        "--avg-self",
        is_flag=True,
        help="With --report: the same of the self time.",
        group=Group.OUTPUT,
    ),
    option(
        "--task",
        is_flag=True,
        help="With --report: sums of each thread instead of each function.",
        group=Group.OUTPUT,
    ),
    option(
        "--demangle",
        type=click.Choice(["simple", "full", "no"]),
        help="With a report: names of C++ and Rust without types (simple, as usual), whole, or as "
        "symbols are.",
        group=Group.OUTPUT,
    ),
    option(
        "--json",
        "as_json",
        is_flag=True,
        help="Write JSON: all calls, or with --report, --callers, --callees what those show.",
        group=Group.OUTPUT,
    ),
)
_DIFFERENCE: Final = (
    option(
        "--diff",
        "compared",
        metavar="FILE",
        help="With --report: what changes from this run to that of FILE, a report of --json or a "
        "recording.",
        group=Group.OUTPUT,
    ),
    option(
        "--diff-policy",
        "policy",
        metavar="WORD[,WORD...]",
        help=f"With --diff: {', '.join(_POLICIES)}.",
        group=Group.OUTPUT,
    ),
    option(
        "--sort-column",
        "column",
        type=click.IntRange(0, 2),
        metavar="N",
        help="With --diff: sort by this run (0), by FILE (1) or by the difference (2).",
        group=Group.OUTPUT,
    ),
)


def report_options(command: Command) -> Command:
    """Add what says how calls are summed up."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


def difference_options(command: Command) -> Command:
    """Add what says with which other run sums are compared."""
    for add in reversed(_DIFFERENCE):
        command = add(command)
    return command


def report_choice(values: dict[str, Any], unit: str) -> tuple[tuple[str, ...], str | None]:
    """The words of a report (`GraphRequest.report`) and the file that it is compared with.

    Args:
        values: of all options; those of reports are taken out.
        unit: of times.

    Raises:
        UsageError: the options do not go together.
    """
    report, callers, callees = (values.pop(name) for name in ("report", "callers", "callees"))
    given = {name: values.pop(name, None) for name in _TEXTS}
    found = [name for name in _TEXTS if given[name] not in (None, False)]
    if report and (callers or callees):
        raise click.UsageError("--report and --callers, --callees: one of them")
    if not (report or callers or callees):
        found = [name for name in found if name != "as_json"]
        if found:
            raise click.UsageError(f"{_TEXTS[found[0]]} needs --report")
        return (), None
    if not report and (wrong := [name for name in found if name in _WITHOUT]):
        raise click.UsageError(f"{_TEXTS[wrong[0]]} is for --report, not for --callers, --callees")
    _check(given)
    words = [f"unit={unit}"]
    words += [f"callers={glob}" for glob in callers] + [f"callees={glob}" for glob in callees]
    words += [
        f"{name}={given[name]}" for name in ("sort", "fields", "policy", "demangle") if given[name]
    ]
    if given["avg_total"] or given["avg_self"]:
        words.append("average=total" if given["avg_total"] else "average=self")
    if given["column"] is not None:
        words.append(f"column={given['column']}")
    words += ["tasks"] if given["task"] else []
    words += ["json"] if given["as_json"] else []
    return tuple(words), given["compared"]


def report_name(words: Iterable[str]) -> str:
    """Name of the format of the report that words stand for, "" for none."""
    keys = {word.partition("=")[0] for word in words}
    if not keys:
        return ""
    return "report" if keys.isdisjoint({"callers", "callees"}) else "callgraph"


def check_alone(options: TraceOptions, text_options: tuple[str, ...]) -> None:
    """Refuse what is about the text of calls, where a report is written instead.

    Raises:
        UsageError: something is.
    """
    if options.format != FORMAT_NAMES[0]:
        raise click.UsageError(
            f"--format {options.format} is for the calls themselves, not for a report of them"
        )
    if text_options:
        raise click.UsageError(
            f"--option {text_options[0]} is for the text of calls, not for a report of them"
        )


def check_recorded(ctx: click.Context) -> None:
    """Refuse options about the guest where that is a recording, which has its own.

    Raises:
        UsageError: there are some.
    """
    for each in ctx.command.params:
        given = ctx.get_parameter_source(each.name or "") is ParameterSource.COMMANDLINE
        of_guest = isinstance(each, GroupedOption) and each.group in _OF_GUESTS
        if given and of_guest and each.name != "timeout":
            raise click.UsageError(f"{each.opts[0]}: GUEST is a recording, which has its own")


def _check(given: dict[str, Any]) -> None:
    """Refuse options that do not go together.

    Raises:
        UsageError: some do not.
    """
    if given["avg_total"] and given["avg_self"]:
        raise click.UsageError("--avg-total and --avg-self: one of them")
    if given["task"]:
        for name in ("fields", "avg_total", "avg_self", "compared"):
            if given[name]:
                raise click.UsageError(f"{_TEXTS[name]} is for functions, not for --task")
    if given["compared"] is None:
        for name in ("policy", "column"):
            if given[name] is not None:
                raise click.UsageError(f"{_TEXTS[name]} needs --diff FILE")
    for word in filter(None, (given["policy"] or "").split(",")):
        if word not in _POLICIES:
            raise click.UsageError(f"--diff-policy {word}: there is {', '.join(_POLICIES)}")
