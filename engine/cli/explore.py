"""`kprobe-tui explore`: schedules of a guest's threads searched for one that ends otherwise."""

import os
import shlex
from collections.abc import Iterator
from typing import Any, Final

import click
from click.core import ParameterSource

from engine.cli import console
from engine.cli.documents import document
from engine.cli.grouped import Group, GroupedCommand, option
from engine.cli.options import config_of, guest_options, json_option
from engine.errors import TIMED_OUT
from engine.session.headless.explore import Cause, Explored, explored
from engine.session.headless.trials import Ran, Side
from engine.session.protocol.requests import ExploreRequest

_OWN: Final = (
    "seeds",
    "stop_if",
    "jobs",
    "schedule",
    "timeout",
    "seed",
    "random_seed",
    "guest",
    "args",
    "as_json",
)
_SHOWN: Final = 20
"""Switches that are shown."""


@click.command(
    cls=GroupedCommand,
    context_settings={"allow_interspersed_args": False},
    uses=(
        ("A hundred schedules of a program with threads", "--seeds 100 samples/bin/x86_64/race"),
        (
            "Until a variable has a value at the end",
            "--stop-if 'counter < 200' samples/bin/x86_64/race",
        ),
        (
            "The schedule that does it, in a file",
            "--seeds 100 --record-schedule lost.schedule samples/bin/x86_64/race",
        ),
    ),
)
@option(
    "--seeds",
    type=click.IntRange(min=1),
    metavar="N",
    default=200,
    show_default=True,
    help="Try N seeds, from that of --seed on.",
    group=Group.LIMITS,
)
@option(
    "--stop-if",
    metavar="EXPR",
    help="Stop at a run, too, at whose end this C expression holds: of the program's variables, "
    "exit, signal, clock and switches.",
    group=Group.EVENTS,
)
@option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="K",
    help="Processes that share the search; as many as there are processors if not given.",
    group=Group.WORKERS,
)
@option(
    "--record-schedule",
    "schedule",
    metavar="FILE",
    help="Write the schedule to a file that has no more switches than it takes.",
    group=Group.GUEST,
)
@json_option()
@guest_options
@click.pass_context
def explore(context: click.Context, /, **values: Any) -> int:
    """Run GUEST with ARGS under many schedules of its threads, until one ends in another way.

    Half of the seeds have turns of random lengths, half go by random priorities. A run differs by
    its exit code, signal, standard output, or by a deadlock; then those switches are shown that
    it takes. All runs get the same standard input; what they write is kept.
    Exit code: 0 if nothing differed, 1 if something did, 124 if --timeout ran out.
    """
    request = explore_request(context)
    found = explored(request)
    words = ["kprobe-tui", "run", *_options(context)]
    if values["as_json"]:
        console.put(_document(found, request, words))
    else:
        for line in _lines(found, request, words):
            console.put(line)
        console.remarks(found.remarks, values["color"])
        if not found.in_time:
            console.remark(TIMED_OUT)
    if found.trial is None:
        return 0 if found.in_time else 124
    return 1


def explore_request(context: click.Context) -> ExploreRequest:
    """The request that a parsed command line stands for.

    Raises:
        UsageError: its options do not go together.
    """
    values = dict(context.params)
    schedule = values.pop("schedule")  # which `run` has, too, for another thing
    return ExploreRequest(
        config_of(values),
        values["seeds"],
        values["stop_if"],
        values["jobs"] or len(os.sched_getaffinity(0)),
        values["timeout"],
        schedule,
    )


def _options(context: click.Context) -> Iterator[str]:
    """The options that were given and are those of `run`, as words."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in _OWN or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value, option = context.params[name], parameter.opts[-1]
        if isinstance(parameter, click.Option) and parameter.is_flag:
            yield option
            continue
        for each in value if parameter.multiple else (value,):
            yield option
            yield each[0] if isinstance(each, tuple) else str(each)


def _lines(found: Explored, request: ExploreRequest, run: list[str]) -> Iterator[str]:
    config = request.config
    guest = [config.guest, *config.args]
    if found.trial is None or found.ran is None:
        how = _ended(found.first, None)
        if not found.first.choices:
            yield f"there was never more than one thread that could run: {how}"
        else:
            yield f"{found.tried} seeds, and nothing differed: {how}"
        return
    trial, ran = found.trial, found.ran
    if ran is not found.first:
        yield f"seed {config.seed}: {_ended(found.first, ran)}"
    other = None if ran is found.first else found.first
    yield f"seed {trial.seed}: {_ended(ran, other)}"
    if ran.met:
        yield f"  {ran.met}"
    yield f"  {shlex.join(_repeating(found, request, run))}"
    if found.cause is not None:
        yield from _cause(found.cause, found, request.schedule)
        if request.schedule is not None:
            yield "with these alone:"
            yield f"  {shlex.join([*run, '--schedule', request.schedule, *guest])}"
    elif found.in_time:
        yield "it takes no switch: it ends so, too, where each thread runs until it waits"


def _repeating(found: Explored, request: ExploreRequest, run: list[str]) -> list[str]:
    """The words that make the run again which differs."""
    trial, config = found.trial, request.config
    assert trial is not None
    words = [*run, "--seed", str(trial.seed)]
    if trial.seed != config.randomness:
        words += ["--random-seed", str(config.randomness)]
    if found.ran is not found.first:
        words += ["--turns", str(trial.turns)]
    return [*words, config.guest, *config.args]


def _document(found: Explored, request: ExploreRequest, run: list[str]) -> str:
    """The outcome as JSON."""
    trial, cause = found.trial, found.cause
    differs = None
    if trial is not None and found.ran is not None:
        words = _repeating(found, request, run)
        differs = {"seed": trial.seed, "turns": str(trial.turns), **_plain_run(found.ran)}
        differs |= {"met": found.ran.met, "repeat": words}
    shown = None
    if cause is not None:
        shown = {
            "seed": cause.trial.seed,
            "switches": cause.total,
            "smallest": cause.smallest,
            "needed": [
                {
                    "tick": each.tick,
                    "why": each.choice.why.value,
                    "left": _plain_side(each.left),
                    "taken": _plain_side(each.taken),
                }
                for each in cause.seen
            ],
            "alone": _plain_run(cause.alone),
            "schedule": request.schedule,
        }
    return document(
        "explore",
        found.remarks,
        differs=trial is not None,
        tried=found.tried,
        in_time=found.in_time,
        first={"seed": request.config.seed, **_plain_run(found.first)},
        found=differs,
        cause=shown,
    )


def _plain_run(ran: Ran) -> dict[str, Any]:
    outcome = ran.outcome
    return {
        "end": {"code": outcome.exit, "reason": ran.reason, "limit": outcome.limit},
        "blocks": ran.clock,
        "switches": ran.switches,
        "output": ran.text.decode(errors="backslashreplace"),
    }


def _plain_side(side: Side) -> dict[str, Any]:
    return {"thread": side.thread, "place": side.place, "frames": side.frames}


def _ended(ran: Ran, other: Ran | None) -> str:
    """The end of a run, with the first line of output in which it differs from another."""
    lines = ran.text.splitlines()
    if other is None:
        shown = lines[-1] if lines else b""
    else:
        others = other.text.splitlines()
        pairs = zip(lines, [*others, *[None] * len(lines)], strict=False)
        shown = next((mine for mine, its in pairs if mine != its), b"")
    text = f": {shown.decode(errors='replace')}" if shown else ""
    return f"{ran.reason}, {ran.switches} switches{text}"


def _cause(cause: Cause, found: Explored, schedule: str | None) -> Iterator[str]:
    assert found.trial is not None
    count, seeds = len(cause.seen), ""
    if cause.trial.seed != found.trial.seed:
        seeds = f" of seed {cause.trial.seed}"
        yield "it ends so where each thread runs until it waits, too"
    most = "" if cause.smallest else "at most "
    yield (
        f"{most}{count} of {cause.total} switches{seeds} "
        f"{'makes' if count == 1 else 'make'} the difference:"
    )
    for seen in cause.seen[:_SHOWN]:
        yield f"  tick {seen.tick}: {seen.left.thread} {_why(seen.choice.why.value, seen.left)}"
        yield f"    and {seen.taken.thread} goes on in {seen.taken.place}"
    if count > _SHOWN:
        yield f"  and {count - _SHOWN} more"
    yield f"then: {_ended(cause.alone, found.first)}"
    if cause.seen:
        for side in (cause.seen[-1].left, cause.seen[-1].taken):
            yield from _backtrace(side)
    yield from cause.alone.remarks


def _why(why: str, side: Side) -> str:
    if why == "ends":
        return why
    return f"{'is ' * (why == 'preempted')}{why} in {side.place}"


def _backtrace(side: Side) -> Iterator[str]:
    if side.frames:
        yield f"{side.thread} at the last of them:"
        for frame in side.frames:
            yield f"  {frame}"
