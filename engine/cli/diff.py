"""`kprobe-tui diff`: does a probe change the program?"""

import sys
from collections.abc import Callable
from typing import Any

import click

from engine.arch.plan import Mode
from engine.cli.host import attached
from engine.cli.options import config_of, guest_options, lines_of, probe_options, returns_option
from engine.session import Session
from engine.session.measure.effect import compare
from engine.session.protocol.report import Reports
from engine.session.tracing.tracing import TraceOptions, Tracing


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("-e", "definitions", multiple=True, metavar="DEF", help="Probe as `trace -e` does.")
@click.option(
    "-f", "globs", multiple=True, metavar="GLOB", help="Probe the entry of matching functions."
)
@click.option(
    "-r", "returns", multiple=True, metavar="GLOB", help="Probe the return of matching functions."
)
@click.option(
    "--every-insn",
    "bodies",
    multiple=True,
    metavar="GLOB",
    help="Probe every instruction of matching functions.",
)
@probe_options
@returns_option
@guest_options
def diff(
    definitions: tuple[str, ...],
    globs: tuple[str, ...],
    returns: tuple[str, ...],
    bodies: tuple[str, ...],
    mode_name: str,
    **values: Any,
) -> int:
    """Run GUEST with ARGS twice, without and with the probes, and compare the runs.

    System calls with all registers, output, exit code, the guest's clock and memory are
    compared. The guest's output appears once. Exit code: 0 if the probes have no effect, 1 if
    they have one; the first difference is shown.
    """
    if not definitions and not globs and not returns and not bodies:
        raise click.UsageError(
            "nothing to probe: give -e DEF, -f GLOB, -r GLOB or --every-insn GLOB"
        )
    mode = Mode(mode_name)
    refused: list[str] = []

    def place(session: Session) -> None:
        tracing = Tracing(session, TraceOptions(output="/dev/null", mode=mode))
        for line in lines_of(definitions):
            tracing.define(line)
        for glob in globs:
            tracing.trace_functions(glob)
        for glob in returns:
            tracing.trace_returns(glob)
        for glob in bodies:
            tracing.trace_bodies(glob)
        refused.extend(remark.lines[0] for remark in session.remarks)

    def attach(session: Session, run: Callable[[], Reports]) -> Reports:
        with attached(session, values["timeout"]):
            return run()

    effect = compare(config_of(values), place, attach, mode)
    say = _speaker(values["color"])
    if refused:
        say(f"{len(refused)} places take no probe, the first: {refused[0]}")
    plain, probed = effect.plain, effect.probed
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
    return 1


def _speaker(color: str) -> Callable[[str], None]:
    colored = color == "always" or (color == "auto" and sys.stderr.isatty())
    prefix = "\033[1mkprobe-tui:\033[0m" if colored else "kprobe-tui:"

    def say(text: str) -> None:
        print(prefix, text, file=sys.stderr)

    return say
