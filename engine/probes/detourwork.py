"""What the detour of a point has to do: record in code, or trap so that the engine serves it.

Where all probes of a point only record, and code in the guest can do all of it, the detour does it
by itself, one probe after the other. Else it begins with a trap at which the engine serves all of
them: handlers, the entry of return probes, triggers. The displaced instructions run in the detour
all the same, so that nothing is stepped or emulated, and no second trap is taken.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from engine.arch.base import Arch
from engine.arch.jump import DetourPlaces, NotCompilableError, Recorder, Recording
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe
from engine.probes.point import ProbePoint, needs_engine

_ELSEWHERE: Final = 0x7FFF_F000_0000
_TRIAL: Final = DetourPlaces(
    _ELSEWHERE, _ELSEWHERE + 0x1FF0, _ELSEWHERE + 88, _ELSEWHERE + 0x10_0000
)


def serving(point: ProbePoint) -> list[Kprobe]:
    """The probes that a detour is to serve: a stop stands in front of it."""
    return [probe for probe in point.enabled() if not probe.stops]


def recordings(probes: Iterable[Kprobe]) -> tuple[Recording, ...] | str:
    """What all of them record, or what it is that takes the engine."""
    found: list[Recording] = []
    for probe in probes:
        if needs_engine(probe):
            return "a handler runs there"
        if isinstance(probe, Kretprobe):
            return "a return probe begins there"
        if probe.recording is None:
            return "what its event does takes the engine"
        found.append(probe.recording)
    return tuple(found)


def uncompiled(arch: Arch, wanted: tuple[Recording, ...], window: bytes = b"") -> str:
    """Why no code in the guest can record it, "" if it can."""
    if arch.jumps is None:
        return f"there are no jump probes on {arch.name}"
    if not wanted:
        return ""
    trial = tuple(replace(one, counter=_TRIAL.save + 0x2000) for one in wanted)
    try:
        arch.jumps.record(trial, _TRIAL, window)
    except NotCompilableError as error:
        return str(error)
    return ""


def not_worth(why: str) -> str:
    """Why a point whose copy is boosted stays a breakpoint if `why` takes the engine."""
    return why and f"{why}; a trap in a detour would cost what its breakpoint does"


def trap(arch: Arch) -> Recorder:
    """A recorder that is a trap, at which the engine serves all probes."""
    code = arch.breakpoint
    return Recorder(code, {}, (), len(code), trap=0)
