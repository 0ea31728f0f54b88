"""Guests with jump probes."""

from collections.abc import Iterator
from contextlib import contextmanager

import archkit
from controlkit import Held
from sessionkit import SAMPLES, Guest, loaded

from engine.linux.ending import Exit
from engine.probes.detours import Detour
from engine.probes.jump import JumpTechnique
from engine.probes.point import ProbePoint
from engine.session.protocol import commands as cmd
from engine.session.tracing.tracing import Tracing

NEVER = 1 << 40
"""No breakpoint is hit so often: all that happens at it is done in Python."""
WORDS = "the quick brown fox jumps"


@contextmanager
def opened(arch: str, name: str, technique: str, *lines: str) -> Iterator[tuple[Guest, Tracing]]:
    """A loaded sample with definitions; `{0}` in them is the first argument's register."""
    args = (WORDS,) if name == "words" else ()
    with loaded(SAMPLES / arch / name, *args, technique=technique) as guest:
        tracing = guest.tracing()
        for line in lines:
            tracing.definitions.define(line.format(archkit.argument(arch)))
        yield guest, tracing


def symbol(guest: Guest, name: str) -> int:
    """Guest address of a function."""
    found = guest.session.probes().where(name)
    assert found is not None
    return found


def only(guest: Guest) -> tuple[ProbePoint, Detour]:
    """The only point, which has a detour."""
    (point,) = guest.session.probes().manager.placed()
    return point, detour_of(point)


def detour_of(point: ProbePoint) -> Detour:
    """The detour of a point that is a jump."""
    assert isinstance(point.replacement, Detour), point.why
    return point.replacement


def jumps_of(guest: Guest) -> JumpTechnique:
    """The jumps of a guest."""
    (jumps,) = guest.session.probes().manager.techniques.replacing
    assert isinstance(jumps, JumpTechnique)
    return jumps


def after(guest: Guest, hits: int) -> None:
    """Breakpoints are looked at, and recorded in the guest, after so many hits."""
    guest.session.probes().manager.techniques.after = hits


def recorded(point: ProbePoint) -> bool:
    """Tell whether a detour's code records all that is wanted there."""
    return point.replacement is not None and point.replacement.trap is None


def outcome(exit: Exit) -> tuple[object, ...]:
    """How a guest ended, without registers."""
    crash = exit.crash
    return exit.code, exit.signal, (crash.pc, crash.address, crash.why) if crash else None


def run_to(guest: Guest, address: int) -> bool:
    """Step until pc is at an address; whether it came to that."""
    session = guest.session
    while session.process.exit is None:
        if session.probes().manager.regs.ip == address:
            return True
        session.kernel.step()
    return False


def stopped_at_jump(guest: Held, arch: str) -> None:
    """A probe that stops the guest at its first hit."""
    guest.do(
        cmd.Define(f"p:demo/f fibonacci n={archkit.argument(arch)}:u32", stops=True),
        cmd.Continue(),
    )
