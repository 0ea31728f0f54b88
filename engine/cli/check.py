"""`kprobe-tui check`: a verdict on every place, without running the guest."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import click

from engine.cli import console
from engine.cli.grouped import Group, GroupedCommand, option
from engine.cli.kernel_verdicts import show_asked, show_checked
from engine.cli.options import config_of, kernel_choice, kernel_options, lines_of, program_options
from engine.cli.perf_probe import LISTINGS, perf_options, show_listings
from engine.cli.probe_options import probe_options
from engine.errors import ProbeSyntaxError
from engine.escaping import json_text
from engine.session.headless.kernel_guests import check_image
from engine.session.protocol.config import Mode
from engine.session.protocol.requests import CheckRequest, Rules

if TYPE_CHECKING:
    from engine.session.headless.checks import AskedLine, FunctionOutcomes, Placed

_REASONS: Final = 20


@click.command(
    cls=GroupedCommand,
    uses=(
        ("May a probe stand there?", "-e 'p fibonacci+4' samples/bin/x86_64/recursion"),
        ("The entries of all functions that match", "-f 'f*' samples/bin/x86_64/recursion"),
        ("All instructions of a program, counted", "--all --summary samples/bin/x86_64/recursion"),
    ),
)
@program_options
@option(
    "-e",
    "definitions",
    multiple=True,
    metavar="DEF",
    help="Check the place of a definition; again and again; @FILE reads lines.",
    group=Group.EVENTS,
)
@option(
    "-f",
    "globs",
    multiple=True,
    metavar="GLOB",
    help="Check the entries of matching functions; LIB:GLOB those of a library.",
    group=Group.EVENTS,
)
@option(
    "--all",
    "everything",
    is_flag=True,
    help="Check every instruction of GUEST.",
    group=Group.EVENTS,
)
@option(
    "--list",
    "listed",
    is_flag=True,
    help="List the static probes (USDT) of GUEST and its libraries, as -e takes them, instead.",
    group=Group.EVENTS,
)
@perf_options
@option("--summary", is_flag=True, help="Count verdicts and reasons instead.", group=Group.OUTPUT)
@option(
    "--json",
    "as_json",
    is_flag=True,
    help="A list of objects instead of lines.",
    group=Group.OUTPUT,
)
@option(
    "--as",
    "rules_name",
    type=click.Choice([rules.value for rules in Rules]),
    help="Whose rules decide; by default a definition's own, kprobes' for -f and --all.",
    group=Group.EVENTS,
)
@option(
    "--together",
    is_flag=True,
    help="Of a kernel image: every instruction of a function is probed at once.",
    group=Group.IMAGES,
)
@option(
    "--sequence",
    is_flag=True,
    help="Of a kernel image: each definition meets the events of those before it.",
    group=Group.IMAGES,
)
@option(
    "--dynamic-events",
    is_flag=True,
    help="Of a kernel image: definitions are lines of dynamic_events, which has f: and t: lines; "
    "kprobe_events refuses those.",
    group=Group.IMAGES,
)
@option(
    "--list-as",
    "form",
    type=click.Choice(["tracefs", "perf", "bpftrace"]),
    help="Of a kernel image: write the definitions as a real machine's tools take them.",
    group=Group.IMAGES,
)
@option(
    "--ask-kernel",
    is_flag=True,
    help="Of a kernel image: boot it in an emulated machine, have it judge the definitions, too, "
    "and mark where it differs. A later call goes on from a snapshot of the booted machine.",
    group=Group.IMAGES,
)
@option(
    "--append",
    metavar="TEXT",
    default="",
    help="With --ask-kernel: more words of the kernel's command line.",
    group=Group.IMAGES,
)
@kernel_options
@probe_options
@click.argument("guest", type=click.Path())
@click.pass_context
def check(
    ctx: click.Context,
    /,
    everything: bool,
    summary: bool,
    as_json: bool,
    form: str | None,
    listed: bool,
    **values: Any,
) -> int:
    """Say for each place in GUEST whether a probe may stand there; nothing runs.

    Lines are `ADDRESS SYMBOL+OFF TECHNIQUE REASON`; TECHNIQUE is "rejected" where no probe may
    stand. Warnings follow on indented lines. Without -e, -f and --all the entries of all
    functions of GUEST are checked.

    GUEST may be a kernel image or module: its own rules decide then, those of its version, on
    its text as it is once it runs. Each definition meets a kernel without other events. With
    --ask-kernel the kernel itself is asked, too; what differs is marked, and the verdicts and
    the exit code stay ours.

    --definition, --vars, --lines and --funcs write what `perf probe -x GUEST` writes with them,
    and no verdicts; `-e 'perf: DEF'` judges the places of a definition of perf probe.

    Exit code: 0 if every place given with -e is accepted, 1 if one is rejected, 2 for bad
    usage, a bad definition, or a place that does not exist. With --json the last two are rows,
    too: each definition has its own, and the exit code is 1.
    """
    if any(map(ctx.params.get, LISTINGS)):
        return show_listings(ctx.params)
    request = check_request(ctx)
    if listed:
        return _list(request, values, as_json=as_json)
    if values["ask_kernel"]:
        return _ask(request, values, summary=summary, as_json=as_json, form=form)
    if values["append"]:
        raise click.UsageError("--append: words for the kernel that --ask-kernel boots")
    if form is not None:
        from engine.session.headless.kernel_checks import list_as

        for line in list_as(request, form):
            console.put(line)
        return 0
    kernel = check_image(request)
    if kernel is not None:
        code = show_checked(kernel, summary=summary, as_json=as_json)
        console.remarks(kernel.damage(), values["color"])
        if values["debug"]:
            console.remarks(kernel.cache(), values["color"])
        return code
    from engine.session.headless.checks import check as checked  # programs: images need none

    lines = not summary and not as_json
    result = checked(request, brief=lines, each=as_json and not summary)
    found = chain(result.asked, result.rest)
    if summary:
        _show_summary(found, as_json=as_json)
    elif as_json:
        rows = chain.from_iterable(map(_line_rows, result.lines))
        rest = (_as_json(placed, notes=not everything) for placed in result.rest)
        _show_json(chain(rows, rest))
    else:
        for asked in result.lines:
            if asked.listing:
                listing = asked.listing.replace("\t", " ")
                console.put(f"{listing}: accepted, without a place")
        _show_lines(found)
        _show_outcomes(result.outcomes)
    console.remarks(result.damage(), values["color"])
    refused = any(each.error is not None for each in result.lines)
    return int(refused or any(not placed.judgement.ok for placed in result.asked))


def _list(request: CheckRequest, values: dict[str, Any], *, as_json: bool) -> int:
    """Show the static probes that there are."""
    if request.definitions or request.functions or request.everything:
        raise click.UsageError("--list stands alone: it has all static probes")
    from engine.cli.marker_text import show_markers  # few list them

    show_markers(request.config, as_json=as_json, color=values["color"])
    return 0


def _ask(
    request: CheckRequest,
    values: dict[str, Any],
    *,
    summary: bool,
    as_json: bool,
    form: str | None,
) -> int:
    """Show the verdicts and the kernel's own answers."""
    if form is not None:
        raise click.UsageError("--list-as asks no kernel: leave --ask-kernel out")
    from engine.session.headless.kernel_answers import ask_kernel  # few ask

    asked = ask_kernel(request, values["append"], values["timeout"])
    code = show_asked(asked, summary=summary, as_json=as_json)
    if values["debug"]:
        console.remarks(asked.remarks, values["color"])
    differing = sum(1 for row in asked.rows if row.differences)
    if differing:
        console.remark(
            f"{differing} of {len(asked.rows)} definitions: the kernel's answer differs",
            color=values["color"],
        )
    return code


def check_request(ctx: click.Context) -> CheckRequest:
    """The request that a parsed command line stands for.

    Raises:
        UsageError: its options do not go together.
        CommandError: a file of definitions cannot be read.
    """
    values = dict(ctx.params)
    definitions, globs, everything = values["definitions"], values["globs"], values["everything"]
    if everything and (definitions or globs):
        raise click.UsageError("--all stands alone: it has every place that -e and -f can name")
    rules = values["rules_name"]
    choice = kernel_choice(
        values,
        together=values.pop("together"),
        sequence=values.pop("sequence"),
        dynamic_events=values.pop("dynamic_events"),
    )
    return CheckRequest(
        config_of({**values, "args": ()}, kernel=choice),
        tuple(lines_of(definitions)),
        globs,
        everything,
        Rules(rules) if rules else None,
        Mode(values["mode_name"]),
    )


# -- output ----------------------------------------------------------------------------


def _show_outcomes(functions: "Iterator[FunctionOutcomes]") -> None:
    for place, found in functions:
        base, name = place.around.start, place.symbol
        console.put_lines([f"{at:#x} {name}+{at - base:#x} {outcome}" for at, outcome in found])


def _show_lines(found: "Iterator[Placed]") -> None:
    for placed in found:
        place, judgement = placed.place, placed.judgement
        console.put(f"{place.link:#x} {place.name} {placed.outcome}")
        for finding in judgement.findings:
            if finding.message != judgement.reason:
                console.put(f"    {finding.severity} {finding.rule}: {finding.message}")
        if placed.no_jump is not None:
            console.put(f"    no {placed.wished}: {placed.no_jump.rule}: {placed.no_jump.detail}")
        if placed.nearest_jump is not None:
            nearest_jump = f"{placed.nearest_jump:#x}"
            console.put(f"    the nearest place for a {placed.wished}: {nearest_jump}")
        nearest = next((f.nearest for f in judgement.findings if f.severity == "error"), None)
        if nearest is not None:
            console.put(f"    the nearest place that would do: {nearest:#x}")


def _show_json(rows: Iterable[dict[str, Any]]) -> None:
    separator = "["
    for row in rows:
        console.write(f"{separator}\n{json_text(row)}")
        separator = ","
    console.write("[]\n" if separator == "[" else "\n]\n")


def _line_rows(asked: "AskedLine") -> Iterator[dict[str, Any]]:
    """A row for each place of a definition, or the one of its refusal."""
    head = {"definition": asked.line}
    for placed in asked.placed:
        yield {**head, **_as_json(placed, notes=True), "error": None, "column": None}
    error = asked.error
    if error is None:
        if asked.listing:
            yield {**head, "verdict": "ok", "listing": asked.listing, "error": None}
        return
    logged = error if isinstance(error, ProbeSyntaxError) else None
    yield {
        **head,
        "address": None,
        "symbol": None,
        "offset": 0,
        "module": None,
        "verdict": "rejected",
        "technique": "rejected",
        "how": None,
        "reason": str(error) if logged is None else logged.why or logged.text,
        "errno": getattr(error, "errno", "EINVAL"),
        "error": None if logged is None else logged.text,
        "command": None if logged is None else logged.command,
        "column": None if logged is None else logged.column,
        "rules": [],
        "nearest_jump": None,
        "plan": None,
        "lint": [],
    }


def _as_json(placed: "Placed", *, notes: bool) -> dict[str, Any]:
    place, judgement, jump = placed.place, placed.judgement, placed.jump
    plan = judgement.plan
    nearest = placed.nearest_jump if notes else None
    return {
        "address": f"{place.link:#x}",
        "symbol": place.symbol,
        "offset": place.offset,
        "module": place.path,
        "verdict": "ok" if judgement.ok else "rejected",
        "technique": placed.technique,
        "how": judgement.how,
        "reason": judgement.reason,
        "errno": judgement.errno or None,
        "rules": [
            {"rule": row.rule, "ok": row.ok, "detail": row.detail}
            for row in (*judgement.checks, *jump)
        ],
        "nearest_jump": None if nearest is None else f"{nearest:#x}",
        "plan": {"rule": plan.rule, "bytes": plan.raw.hex(), "proven": plan.proven},
        "lint": [
            {
                "rule": finding.rule,
                "severity": finding.severity,
                "message": finding.message,
                "nearest": None if finding.nearest is None else f"{finding.nearest:#x}",
            }
            for finding in judgement.findings
        ],
    }


def _show_summary(found: "Iterator[Placed]", *, as_json: bool) -> None:
    verdicts: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    lint: Counter[str] = Counter()
    techniques: Counter[str] = Counter()
    no_jump: Counter[str] = Counter()
    for placed in found:
        judgement = placed.judgement
        verdict = "ok" if judgement.ok else "rejected"
        verdicts[verdict] += 1
        deciding = next((f.rule for f in judgement.findings if f.severity == "error"), "")
        rule = judgement.plan.rule if deciding in ("", "instruction") else deciding
        reasons[judgement.how or verdict, rule or judgement.reason] += 1
        lint.update(finding.rule for finding in judgement.findings)
        if judgement.ok:
            techniques[placed.technique] += 1
        if placed.lacks:
            no_jump[placed.lacks] += 1
    total = sum(verdicts.values())
    ranked = [
        {"outcome": outcome, "rule": rule, "count": count}
        for (outcome, rule), count in reasons.most_common()
    ]
    if as_json:
        summary = {
            "places": total,
            "verdicts": verdicts,
            "techniques": techniques,
            "reasons": ranked,
            "no_jump": dict(no_jump.most_common()),
            "lint": lint,
        }
        console.write(json_text(summary) + "\n")
        return
    share = {name: f"{count / total:.2%}" for name, count in verdicts.items()}
    counts = ", ".join(f"{n} {name} ({share[name]})" for name, n in verdicts.most_common())
    console.put(f"{total} places{': ' if counts else ''}{counts}")
    for name, count in techniques.most_common():
        console.put(f"{count:>9} {name} ({count / total:.2%})")
    for name, count in no_jump.most_common():
        console.put(f"{count:>9} no jump: {name}")
    for row in ranked[:_REASONS]:
        console.put(f"{row['count']:>9} {row['outcome']}: {row['rule']}")
    if len(ranked) > _REASONS:
        console.put(f"          and {len(ranked) - _REASONS} more reasons")
    for name, count in lint.most_common():
        console.put(f"{count:>9} lint: {name}")
