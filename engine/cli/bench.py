"""`kprobe-tui bench`: what a hit costs on this machine."""

import json
from pathlib import Path
from typing import Any, Final

import click

from engine.cli import console
from engine.cli.grouped import Group, GroupedCommand, option
from engine.session.headless.bench import (
    Case,
    Cost,
    PeerCost,
    is_measured,
    own_costs,
    peer_costs,
)
from engine.session.protocol.config import architectures
from engine.session.protocol.requests import BenchRequest

_PLAIN: Final = Case("jump", 3, entry="jump")
"""Others are compared with this."""
_TITLES: Final = {
    "handler": "empty handler in Python",
    "return": "return probe",
    "graph": "function_graph, a call",
    "function": "function tracer, a call",
}


_NAMES: Final = ("technique", "entry", "args", "string", "filter_pass", "format")
Earlier = dict[tuple[object, ...], tuple[float, float]]
"""By architecture and case: the nanoseconds of a hit, and of the unprobed call, back then."""


def _earlier(ctx: click.Context, param: click.Parameter, path: str | None) -> Earlier:
    if path is None:
        return {}
    found: Earlier = {}
    try:
        for row in json.loads(Path(path).read_bytes()):
            if "loop_ns" in row:  # not of other tools
                key = (row["arch"], *(row[name] for name in _NAMES))
                found[key] = float(row["ns_per_hit"]), float(row["loop_ns"])
    except OSError as error:
        raise click.BadParameter(f"{path}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError) as error:
        text = f"{path}: that is not what `bench --json` writes: {error!r}"
        raise click.BadParameter(text) from error
    if not found:
        raise click.BadParameter(f"{path}: there is no figure of `bench --json` in it")
    return found


def _measured(
    ctx: click.Context, param: click.Parameter, chosen: tuple[str, ...]
) -> tuple[str, ...]:
    for name in chosen:
        if not is_measured(name):
            raise click.BadParameter(f"there is no guest to measure on for {name}")
    return chosen


@click.command(
    cls=GroupedCommand,
    uses=(
        ("All architectures and techniques", ""),
        ("Quickly, without other tools", "--quick --no-peers"),
        ("One architecture", "--arch aarch64"),
    ),
)
@option(
    "--arch",
    "chosen",
    multiple=True,
    type=click.Choice(architectures()),
    callback=_measured,
    help="Of this architecture only; again and again.",
    group=Group.GUEST,
)
@option(
    "--calls",
    type=click.IntRange(min=1000),
    default=1_000_000,
    show_default=True,
    group=Group.LIMITS,
)
@option("--runs", type=click.IntRange(min=1), default=3, show_default=True, group=Group.LIMITS)
@option("--quick", is_flag=True, help="A fifth of the calls, one run.", group=Group.LIMITS)
@option(
    "--peers/--no-peers",
    default=True,
    show_default=True,
    help="gdb, uftrace and Frida on a native program too, where they are installed.",
    group=Group.EVENTS,
)
@option(
    "--live-kernel",
    is_flag=True,
    help="A uprobe of the running kernel too (root, tracefs); it is removed afterwards.",
    group=Group.EVENTS,
)
@option(
    "--compare",
    "earlier",
    type=click.Path(exists=True, dir_okay=False),
    callback=_earlier,
    help="A file that `--json` has written earlier: its figures, and ratios, beside the new ones.",
    group=Group.OUTPUT,
)
@option(
    "--json",
    "as_json",
    is_flag=True,
    help="A list of objects instead of a table.",
    group=Group.OUTPUT,
)
def bench(
    chosen: tuple[str, ...],
    calls: int,
    runs: int,
    quick: bool,
    peers: bool,
    live_kernel: bool,
    earlier: Earlier,
    as_json: bool,
) -> int:
    """Measure what a hit costs: CPU nanoseconds over the unprobed run, by technique.

    The guest calls a small function that one probe stands on; nothing is written but where events
    go to a file (3 registers, breakpoint). `bytes` are the
    guest's for the probe: the copy's slot and the detour. The last column is how many times as
    much the same costs with a breakpoint; for others, than a jump that records 3 registers. The
    last row is what an unprobed call of the guest costs, which has been subtracted: two runs of
    this command compare as far as these rows are alike.
    """
    if quick:
        calls, runs = max(calls // 5, 1000), 1
    request = BenchRequest(chosen, calls, runs, peers, live_kernel)
    found: list[dict[str, Any]] = []
    jump = None
    for costs in own_costs(request):
        found += [_as_json(cost, earlier) for cost in costs]
        jump = jump or next((cost.ns_per_hit for cost in costs if cost.case == _PLAIN), None)
        if not as_json:
            _show(costs, earlier)
    others: list[tuple[PeerCost, float]] = []
    for peer in peer_costs(request):
        if peer.ns_per_hit is None:
            console.remark(f"{peer.name} is left out: {peer.why}")
        else:
            others.append((peer, peer.ns_per_hit))
    if as_json:
        found += [
            {
                "arch": "host",
                "technique": peer.name,
                "args": peer.args,
                "ns_per_hit": round(spent, 1),
            }
            for peer, spent in others
        ]
        console.write(json.dumps(found, indent=1) + "\n")
    elif others:
        _show_peers(others, jump)
    return 0


def _as_json(cost: Cost, earlier: Earlier) -> dict[str, Any]:
    case, then = cost.case, earlier.get((cost.arch, *_identity(cost.case)))
    compared = {} if then is None else {"earlier_ns": then[0], "earlier_loop_ns": then[1]}
    return {
        "arch": cost.arch,
        "technique": case.technique,
        "entry": case.entry,
        "args": case.args,
        "string": case.string,
        "filter_pass": case.filter_pass,
        "format": case.format,
        "ns_per_hit": round(cost.ns_per_hit, 1),
        "loop_ns": round(cost.loop_ns, 2),
        "slot_bytes": cost.slot_bytes,
        "detour_bytes": cost.detour_bytes,
        **compared,
    }


def _show(costs: list[Cost], earlier: Earlier) -> None:
    plain = {_key(cost.case): cost.ns_per_hit for cost in costs if cost.case.entry == "breakpoint"}
    head = f"{costs[0].arch:<37} ns/hit  bytes  breakpoint costs"
    console.write(f"{head:<64}{'earlier':>9}\n" if earlier else f"{head}\n")
    for cost in costs:
        other = plain.get(_key(cost.case))
        times = ""
        if cost.case.entry != "breakpoint" and other is not None and cost.ns_per_hit > 0:
            times = f"{other / cost.ns_per_hit:.1f} times"
        size = cost.slot_bytes + cost.detour_bytes
        row = f"  {_title(cost.case):<35}{cost.ns_per_hit:>7.0f}{size:>7}  {times}"
        then = earlier.get((cost.arch, *_identity(cost.case)))
        _write(row, cost.ns_per_hit, None if then is None else then[0])
    least = min(costs, key=lambda cost: cost.loop_ns)
    loops = [loop for (arch, *_), (_, loop) in earlier.items() if arch == least.arch]
    row = f"  {'an unprobed call, subtracted':<35}{least.loop_ns:>7.1f}"
    _write(row, least.loop_ns, min(loops, default=None))


def _write(row: str, now: float, then: float | None) -> None:
    """A row, with the figure of an earlier run and how many times as much it was."""
    if then is not None:
        ratio = f"{then / now:6.2f} times" if now > 0 else ""
        row = f"{row:<64}{then:>9.{0 if then > 99 else 1}f} {ratio}"
    console.write(row.rstrip() + "\n")


def _identity(case: Case) -> tuple[object, ...]:
    """A case as `--json` names it."""
    return tuple(getattr(case, name) for name in _NAMES)


def _key(case: Case) -> tuple[object, ...]:
    """The part of a case that is the same with a jump and with a breakpoint."""
    what = "" if case.technique == case.entry else case.technique + case.format
    return what, case.args, case.string, case.filter_pass


def _show_peers(others: list[tuple[PeerCost, float]], jump: float | None) -> None:
    console.write(f"{'elsewhere, on a native program':<46} ns/hit\n")
    for peer, spent in others:
        title = f"{peer.name}, {peer.args} registers" if peer.args else f"{peer.name}, a call"
        ratio = f"{spent / jump:.1f} times a jump" if jump else ""
        console.write(f"  {title:<44}{spent:>7.0f}  {ratio}".rstrip() + "\n")


def _title(case: Case) -> str:
    if case.format:
        return f"{case.format} to a file, an event"
    if case.technique in _TITLES:
        return f"{_TITLES[case.technique]}, {case.entry}"
    words = [case.technique, f"{case.args} registers"]
    if case.string:
        words.append("+ string")
    if case.filter_pass is not None:
        words.append(f"filter {case.filter_pass} %")
    return ", ".join(words).replace(", +", " +")
