"""`check --definition`, `--vars`, `--lines`, `--funcs`: the listings of perf probe."""

from collections.abc import Callable
from typing import Any, Final

import click

from engine.cli import console
from engine.cli.grouped import Group, option
from engine.cli.options import Command, config_of
from engine.session.protocol.requests import PerfRequest

_OPTIONS: Final = (
    option(
        "--definition",
        "-D",
        "perf_definitions",
        multiple=True,
        metavar="DEF",
        help="Show what a definition of perf probe, as 'func:2 a->b $vars', is for tracefs; again "
        "and again.",
        group=Group.PERF,
    ),
    option(
        "--vars",
        "-V",
        "perf_variables",
        multiple=True,
        metavar="PLACE[,PLACE...]",
        help="List the variables that are known at a place of perf probe.",
        group=Group.PERF,
    ),
    option(
        "--lines",
        "-L",
        "perf_lines",
        multiple=True,
        metavar="RANGE",
        help="Show the lines that a probe may stand at, with numbers: FUNC[:RLN[+NUM|-RLN2]] or "
        "SRC:ALN[+NUM|-ALN2].",
        group=Group.PERF,
    ),
    option("--funcs", "-F", is_flag=True, help="List functions and objects.", group=Group.PERF),
    option(
        "--filter",
        "perf_filter",
        metavar="RULE",
        default="",
        help="With --funcs and --vars: names that are listed: GLOB, !RULE, RULE & RULE, "
        "RULE | RULE.",
        group=Group.PERF,
    ),
    option(
        "--externs",
        is_flag=True,
        help="With --vars: variables outside of functions, too.",
        group=Group.PERF,
    ),
    option(
        "--range",
        "ranges",
        is_flag=True,
        help="With --vars: where in the function each has its location.",
        group=Group.PERF,
    ),
    option(
        "--no-inlines",
        is_flag=True,
        help="With --definition and --vars: no copies of inlined functions.",
        group=Group.PERF,
    ),
)


def perf_options(command: Command) -> Command:
    """Add the options of the listings."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


def take_request(values: dict[str, Any]) -> Callable[[], int] | None:
    """The listings that parsed options ask for, to be shown; None for none.

    Args:
        values: the options; those of the listings are taken out.

    Raises:
        UsageError: they do not go together.
    """
    definitions, lines = values.pop("perf_definitions"), values.pop("perf_lines")
    places: tuple[str, ...] = values.pop("perf_variables")
    variables = tuple(one for text in places for one in text.split(",") if one.strip())
    functions, rule = values.pop("funcs"), values.pop("perf_filter")
    externs, ranges = values.pop("externs"), values.pop("ranges")
    no_inlines = values.pop("no_inlines")
    asked = definitions or variables or lines or functions
    needs = (
        ("--filter", rule, functions or variables, "--funcs or --vars"),
        ("--externs", externs, variables, "--vars"),
        ("--range", ranges, variables, "--vars"),
        ("--no-inlines", no_inlines, definitions or variables, "--definition or --vars"),
    )
    for name, given, goes, what in needs:
        if given and not goes:
            raise click.UsageError(f"{name} goes with {what}")
    if not asked:
        return None
    others = [
        name
        for name, key in (("-e", "definitions"), ("-f", "globs"), ("--all", "everything"))
        if values[key]
    ]
    others += [f"--{name}" for name in ("summary", "as_json", "ask_kernel") if values.get(name)]
    if others:
        shown = others[0].replace("as_json", "json").replace("_", "-")
        raise click.UsageError(f"{shown} does not go with the listings of perf probe")
    request = PerfRequest(
        config_of({**values, "args": ()}),
        definitions,
        variables,
        lines,
        functions,
        rule,
        externs,
        ranges,
        not no_inlines,
    )
    return lambda: _show(request)


def _show(request: PerfRequest) -> int:
    from engine.session.headless.perf_probe import perf_listing  # few checks list

    for listing in perf_listing(request):
        for line in listing.lines:
            console.put(line, keep="\t")
        for remark in listing.remarks:
            console.remark(*filter(None, remark.split("\n")))
    return 0
