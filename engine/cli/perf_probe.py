"""`check --definition`, `--vars`, `--lines`, `--funcs`: the listings of perf probe."""

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


LISTINGS: Final = (
    "perf_definitions",
    "perf_variables",
    "perf_lines",
    "funcs",
    "perf_filter",
    "externs",
    "ranges",
    "no_inlines",
)
"""Keys of the parsed options: one that is given asks for a listing."""


def show_listings(values: dict[str, Any]) -> int:
    """Show what parsed options ask for; the exit code.

    Raises:
        UsageError: they do not go together.
    """
    definitions, lines, functions = (
        values[key] for key in ("perf_definitions", "perf_lines", "funcs")
    )
    variables = [one for text in values["perf_variables"] for one in text.split(",") if one]
    if values["perf_variables"] and not variables:
        raise click.UsageError("--vars needs a place: FUNC[@SRC][:RLN|+OFFS] or SRC:ALN")
    needs = (
        ("--filter", "perf_filter", functions or variables, "--funcs or --vars"),
        ("--externs", "externs", variables, "--vars"),
        ("--range", "ranges", variables, "--vars"),
        ("--no-inlines", "no_inlines", definitions or variables, "--definition or --vars"),
    )
    for name, key, goes, what in needs:
        if values[key] and not goes:
            raise click.UsageError(f"{name} goes with {what}")
    others = {
        "-e": "definitions",
        "-f": "globs",
        "--all": "everything",
        "--summary": "summary",
        "--ask-kernel": "ask_kernel",
    }
    for name, key in others.items():
        if values[key]:
            raise click.UsageError(f"{name} does not go with the listings of perf probe")
    return _show(
        PerfRequest(
            config_of({**values, "args": ()}),
            definitions,
            tuple(variables),
            lines,
            functions,
            values["perf_filter"],
            values["externs"],
            values["ranges"],
            not values["no_inlines"],
        ),
        as_json=values["as_json"],
    )


def _show(request: PerfRequest, *, as_json: bool) -> int:
    from engine.session.headless.perf_probe import perf_listing  # few checks list

    if as_json:
        from engine.cli.documents import document  # fewer are read by programs
        from engine.session.protocol.report import Report  # as above

        found = list(perf_listing(request))
        listings = [
            {"listing": each.kind, "of": each.asked, "lines": each.lines} for each in found
        ]
        remarks = [Report(tuple(text.split("\n"))) for each in found for text in each.remarks]
        console.put(document("perf", remarks, listings=listings))
        return 0
    for listing in perf_listing(request):
        for line in listing.lines:
            console.put(line, keep="\t")
        for remark in listing.remarks:
            console.remark(*filter(None, remark.split("\n")))
    return 0
