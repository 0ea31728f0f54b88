"""`kprobe-tui bench`: what a hit costs on this machine."""

import json
import sys
from typing import Any

import click

from engine.arch import ARCHES
from engine.arch.base import Arch
from engine.session.bench import Case, Cost, can_measure, measure


@click.command()
@click.option(
    "--arch",
    "names",
    multiple=True,
    type=click.Choice([arch.name for arch in ARCHES if can_measure(arch)]),
    help="Of this architecture only; again and again.",
)
@click.option("--calls", type=click.IntRange(min=1000), default=1_000_000, show_default=True)
@click.option("--runs", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--quick", is_flag=True, help="A fifth of the calls, one run.")
@click.option("--json", "as_json", is_flag=True, help="A list of objects instead of a table.")
def bench(names: tuple[str, ...], calls: int, runs: int, quick: bool, as_json: bool) -> int:
    """Measure what a hit costs: CPU nanoseconds over the unprobed run, by technique.

    The guest calls a small function that one probe stands on; nothing is written. The last
    column is how many times as much the same costs with a breakpoint.
    """
    if quick:
        calls, runs = max(calls // 5, 1000), 1
    found: list[dict[str, Any]] = []
    for arch in ARCHES:
        if not can_measure(arch) or (names and arch.name not in names):
            continue
        costs = list(measure(arch, calls, runs))
        found += [_as_json(arch, cost) for cost in costs]
        if not as_json:
            _show(arch, costs)
    if as_json:
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return 0


def _as_json(arch: Arch, cost: Cost) -> dict[str, Any]:
    case = cost.case
    return {
        "arch": arch.name,
        "technique": case.technique,
        "args": case.args,
        "string": case.string,
        "filter_pass": case.filter_pass,
        "ns_per_hit": round(cost.ns_per_hit, 1),
        "detour_bytes": cost.detour_bytes,
    }


def _show(arch: Arch, costs: list[Cost]) -> None:
    plain = {
        (cost.case.args, cost.case.string, cost.case.filter_pass): cost.ns_per_hit
        for cost in costs
        if cost.case.technique == "breakpoint"
    }
    sys.stdout.write(f"{arch.name:<32} ns/hit  bytes  breakpoint costs\n")
    for cost in costs:
        case = cost.case
        other = plain.get((case.args, case.string, case.filter_pass))
        ratio = ""
        if case.technique == "jump" and other is not None and cost.ns_per_hit > 0:
            ratio = f"{other / cost.ns_per_hit:.1f} times"
        size = str(cost.detour_bytes or "")
        sys.stdout.write(f"  {_title(case):<30}{cost.ns_per_hit:>7.0f}{size:>7}  {ratio}\n")


def _title(case: Case) -> str:
    words = [case.technique, f"{case.args} registers"]
    if case.string:
        words.append("+ string")
    if case.filter_pass is not None:
        words.append(f"filter {case.filter_pass} %")
    return ", ".join(words).replace(", +", " +")
