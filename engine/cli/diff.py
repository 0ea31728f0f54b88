"""`kprobe-tui diff`: does a probe change the program?"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import click

from engine.cli import console
from engine.cli.diff_options import place_options, places_of
from engine.cli.documents import document, end_of
from engine.cli.grouped import Group, GroupedCommand, SwitchedCommand, option
from engine.cli.host import attached
from engine.cli.options import (
    BOOT,
    boot_flag,
    config_of,
    guest_options,
    json_option,
    replay_options,
)
from engine.cli.probe_options import guest_probe_options, probe_options
from engine.errors import TIMED_OUT
from engine.session.headless.effect import Effect, compare
from engine.session.protocol.config import Mode
from engine.session.protocol.requests import DiffRequest, LiveDiffRequest

_OUT_OF_TIME: Final = 124
"""Exit code where a run is cut by the limit of time."""
_NOTICES: Final = 10
"""Changes to probes that are told beside an effect."""


class _Diff(SwitchedCommand, GroupedCommand):
    """`diff`, which is another command with --boot."""

    flag = BOOT

    @property
    def other(self) -> click.Command:
        """The command that boots."""
        from engine.cli.boot_diff import diff_boot  # few comparisons boot a machine

        return diff_boot


@click.command(
    cls=_Diff,
    context_settings={"allow_interspersed_args": False},
    uses=(
        ("Does a probe change the run?", "-e 'p ackermann' samples/bin/x86_64/recursion"),
        (
            "Probes on every instruction of a function",
            "--every-insn ackermann samples/bin/aarch64/recursion",
        ),
        ("Jumps instead of breakpoints", "--technique jump -f 'f*' samples/bin/x86_64/recursion"),
    ),
)
@place_options
@option(
    "--served",
    is_flag=True,
    help="The probes have handlers, too, which do nothing: the engine serves their hits, outside "
    "the emulator.",
    group=Group.EVENTS,
)
@option(
    "--live",
    "is_live",
    is_flag=True,
    help="Compare with the running kernel of this machine instead (root): what the same probes "
    "record there, event by event.",
    group=Group.EVENTS,
)
@json_option("Tell the outcome as a line of JSON, the last one on stderr.")
@probe_options
@guest_probe_options
@replay_options
@guest_options
@boot_flag
@click.pass_context
def diff(ctx: click.Context, /, **values: Any) -> int:
    """Run GUEST with ARGS twice, without and with the probes, and compare the runs.

    System calls with all registers, output, exit code, the guest's clock and memory are
    compared. The guest's output appears once. Exit code: 0 if the probes have no effect, 1 if
    they have one; the first difference is shown. 124 if --timeout ended a run before any
    difference: it is for each of the two. On a machine of several processors the second run is
    made in a process beside the first, from whose input it takes its own.

    With --live the second run is one of the machine's own kernel, with the same probes as uprobes,
    and the events are compared, addresses and times aside. Exit code: 0 if all that differs is
    explained.
    """
    if values["is_live"]:
        return _diff_live(values)
    request = diff_request(ctx)
    timeout = values["timeout"]
    effect = compare(request, lambda session: attached(session, timeout), at_once=True)
    if values["as_json"]:
        return _tell(effect)
    say = partial(console.remark, color=values["color"])
    console.remarks(effect.damage, values["color"])
    if effect.refused:
        say(f"{len(effect.refused)} places take no probe, the first: {effect.refused[0]}")
    plain, probed = effect.plain, effect.probed
    if effect.cut:
        return _cut(effect.cut, say)
    say(
        f"{probed.points} probed places, {probed.hits} hits, "
        f"{len(plain.calls)} system calls, time {plain.time}"
    )
    if not effect.lines:
        say("no effect")
        return 0
    say("the probes have an effect:")
    for line in effect.lines:
        say(f"  {line}")
    for line in probed.notices[:_NOTICES]:
        say(f"  {line}")
    if len(probed.notices) > _NOTICES:
        say(f"  and {len(probed.notices) - _NOTICES} more changes to probes")
    return 1


def _tell(effect: Effect) -> int:
    """Print a comparison as JSON; the exit code."""
    plain, probed = effect.plain, effect.probed
    found = document(
        "diff",
        effect.damage,
        effect=None if effect.cut else bool(effect.lines),
        lines=effect.lines,
        cut=effect.cut,
        points=probed.points,
        hits=probed.hits,
        system_calls=len(plain.calls),
        blocks=plain.time,
        refused=effect.refused,
        changes=probed.notices,
        ends=[None if each.reports is None else end_of(each.reports) for each in (plain, probed)],
    )
    console.text(found)
    return _OUT_OF_TIME if effect.cut else int(bool(effect.lines))


def _cut(whose: str, say: Callable[[str], None]) -> int:
    """Tell that a run was cut by the limit of time; the exit code of that."""
    say(TIMED_OUT)
    say(f"  {whose} did not end in that time: there is nothing to compare")
    return _OUT_OF_TIME


def diff_request(ctx: click.Context) -> DiffRequest:
    """The request that a parsed command line stands for.

    Raises:
        UsageError: its options do not go together.
        CommandError: a file of definitions cannot be read.
    """
    values = dict(ctx.params)
    probes = places_of(values)
    return DiffRequest(config_of(values), probes, Mode(values["mode_name"]), values["served"])


_GUESTS_ONLY: Final = {
    "root": "--root",
    "isolated": "--isolated",
    "shares": "--share",
    "start": "--start",
    "max_blocks": "--max-blocks",
}
"""Options that the machine cannot follow."""


def _diff_live(values: dict[str, Any]) -> int:
    # A guest alone needs none of it.
    from engine.session.headless.live_effect import compare_live

    probes, served = places_of(values), values["served"]
    others = [option for name, option in _GUESTS_ONLY.items() if values.get(name)]
    if served:
        others.append("--served")
    if values.get("follow") == "no":
        others.append("--follow no")
    if Mode(values["mode_name"]) is Mode.KERNEL:
        others.append("--mode kernel")
    if others:
        option = others[0]
        raise click.UsageError(f"--live runs GUEST on this machine, too: not with {option}")
    request = LiveDiffRequest(config_of(values), probes, seconds=values["timeout"])
    effect = compare_live(request, lambda session: attached(session, values["timeout"]))
    say = partial(console.remark, color=values["color"])
    guest, machine = effect.recorded
    if values["as_json"]:
        found = document(
            "diff --live",
            (*effect.damage, *effect.remarks),
            effect=None if effect.cut else not effect.explained,
            lines=[*effect.comparison.lines(), *effect.lines],
            cut=effect.cut,
            points=effect.places,
            events={"guest": guest, "machine": machine},
        )
        console.text(found)
        return _OUT_OF_TIME if effect.cut else int(not effect.explained)
    console.remarks((*effect.damage, *effect.remarks), values["color"])
    if effect.cut:
        return _cut(effect.cut, say)
    say(f"{effect.places} probes, {guest} events of the guest, {machine} of the running kernel")
    for line in (*effect.comparison.lines(), *effect.lines):
        say(line)
    if effect.explained:
        say("no difference that is not explained")
        return 0
    return 1
