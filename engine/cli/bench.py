"""`kprobe-tui bench`: what a hit costs on this machine."""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click

from engine.arch import by_name, names, records
from engine.arch.base import Arch
from engine.errors import CommandError
from engine.session.measure import bench_peers as benchpeers
from engine.session.measure.bench import Case, Cost, can_measure, measure, native

_PLAIN: Final = Case("jump", 3, entry="jump")
"""Case that others are compared with."""
_TITLES: Final = {
    "handler": "empty handler in Python",
    "return": "return probe",
    "graph": "function_graph, a call",
    "function": "function tracer, a call",
}

Peers = list[tuple[str, int, float]]
"""Name, registers recorded, nanoseconds."""


def _measured(
    ctx: click.Context, param: click.Parameter, chosen: tuple[str, ...]
) -> tuple[str, ...]:
    for name in chosen:
        if not can_measure(by_name(name)):
            raise click.BadParameter(f"there is no guest to measure on for {name}")
    return chosen


@click.command()
@click.option(
    "--arch",
    "chosen",
    multiple=True,
    type=click.Choice(names()),
    callback=_measured,
    help="Of this architecture only; again and again.",
)
@click.option("--calls", type=click.IntRange(min=1000), default=1_000_000, show_default=True)
@click.option("--runs", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--quick", is_flag=True, help="A fifth of the calls, one run.")
@click.option(
    "--peers/--no-peers",
    default=True,
    show_default=True,
    help="gdb and uftrace on a native program too, where they are installed.",
)
@click.option(
    "--live-kernel",
    is_flag=True,
    help="A uprobe of the running kernel too (root, tracefs); it is removed afterwards.",
)
@click.option("--json", "as_json", is_flag=True, help="A list of objects instead of a table.")
def bench(
    chosen: tuple[str, ...],
    calls: int,
    runs: int,
    quick: bool,
    peers: bool,
    live_kernel: bool,
    as_json: bool,
) -> int:
    """Measure what a hit costs: CPU nanoseconds over the unprobed run, by technique.

    The guest calls a small function that one probe stands on; nothing is written. `bytes` are the
    guest's for the probe: the copy's slot and the detour. The last column is how many times as
    much the same costs with a breakpoint; for others, than a jump that records 3 registers.
    """
    if quick:
        calls, runs = max(calls // 5, 1000), 1
    found: list[dict[str, Any]] = []
    jump = None
    for arch in records():
        if not can_measure(arch) or (chosen and arch.name not in chosen):
            continue
        costs = list(measure(arch, calls, runs))
        found += [_as_json(arch, cost) for cost in costs]
        jump = jump or next((cost.ns_per_hit for cost in costs if cost.case == _PLAIN), None)
        if not as_json:
            _show(arch, costs)
    others = list(_measure_peers(runs, peers=peers, live_kernel=live_kernel))
    if as_json:
        found += [
            {"arch": "host", "technique": name, "args": args, "ns_per_hit": round(spent, 1)}
            for name, args, spent in others
        ]
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
    elif others:
        _show_peers(others, jump)
    return 0


def _measure_peers(
    runs: int, *, peers: bool, live_kernel: bool
) -> Iterator[tuple[str, int, float]]:
    """Costs of the same elsewhere, as far as they can be measured here."""
    with tempfile.TemporaryDirectory() as folder:
        program = native(Path(folder))
        if live_kernel and program is not None:
            yield "kernel uprobe", 3, benchpeers.kernel_uprobe(program, runs)
        if not peers:
            return
        tools: list[tuple[str, int, Callable[[], float | None]]] = [
            ("uftrace -pg", 0, lambda: benchpeers.uftrace(runs))
        ]
        if program is not None:
            tools.insert(0, ("gdb", 3, lambda: benchpeers.gdb(program, runs)))
        for name, args, measured in tools:
            try:
                spent = measured()
            except CommandError as error:
                click.echo(f"kprobe-tui: {name} is left out: {error}", err=True)
                continue
            if spent is not None:
                yield name, args, spent


def _as_json(arch: Arch, cost: Cost) -> dict[str, Any]:
    case = cost.case
    return {
        "arch": arch.name,
        "technique": case.technique,
        "entry": case.entry,
        "args": case.args,
        "string": case.string,
        "filter_pass": case.filter_pass,
        "ns_per_hit": round(cost.ns_per_hit, 1),
        "slot_bytes": cost.slot_bytes,
        "detour_bytes": cost.detour_bytes,
    }


def _show(arch: Arch, costs: list[Cost]) -> None:
    plain = {_key(cost.case): cost.ns_per_hit for cost in costs if cost.case.entry != "jump"}
    sys.stdout.write(f"{arch.name:<37} ns/hit  bytes  breakpoint costs\n")
    for cost in costs:
        other = plain.get(_key(cost.case))
        ratio = ""
        if cost.case.entry == "jump" and other is not None and cost.ns_per_hit > 0:
            ratio = f"{other / cost.ns_per_hit:.1f} times"
        size = cost.slot_bytes + cost.detour_bytes
        title = _title(cost.case)
        sys.stdout.write(f"  {title:<35}{cost.ns_per_hit:>7.0f}{size:>7}  {ratio}".rstrip() + "\n")


def _key(case: Case) -> tuple[object, ...]:
    """Facts that a case with a jump and one with a breakpoint share."""
    what = "" if case.technique == case.entry else case.technique
    return what, case.args, case.string, case.filter_pass


def _show_peers(others: Peers, jump: float | None) -> None:
    sys.stdout.write(f"{'elsewhere, on a native program':<37} ns/hit\n")
    for name, args, spent in others:
        title = f"{name}, {args} registers" if args else f"{name}, a call"
        ratio = f"{spent / jump:.1f} times a jump" if jump else ""
        sys.stdout.write(f"  {title:<35}{spent:>7.0f}         {ratio}".rstrip() + "\n")


def _title(case: Case) -> str:
    if case.technique in _TITLES:
        return f"{_TITLES[case.technique]}, {case.entry}"
    words = [case.technique, f"{case.args} registers"]
    if case.string:
        words.append("+ string")
    if case.filter_pass is not None:
        words.append(f"filter {case.filter_pass} %")
    return ", ".join(words).replace(", +", " +")
