"""The work of a point's detour: record in code, or trap so that the engine serves the hit.

Where all probes of a point only record, and code in the guest can do all of it, the detour does it
by itself, one probe after the other. Else it begins with a trap at which the engine serves all of
them: handlers, several return probes, triggers. The displaced instructions run in the detour
all the same, so that nothing is stepped or emulated, and no second trap is taken.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from engine.arch.base import Arch
from engine.arch.jump import ArchJumps
from engine.arch.recording import (
    CallEntry,
    CallReturn,
    DetourPlaces,
    NotCompilableError,
    Recorder,
    Recording,
    Work,
    recorded_by,
)
from engine.probes.guestcalls import GuestCalls
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe
from engine.probes.pending_calls import ReturnSite
from engine.probes.point import ProbePoint, needs_engine

_ELSEWHERE: Final = 0x7FFF_F000_0000
_TRIAL: Final = DetourPlaces(
    save=_ELSEWHERE,
    time=_ELSEWHERE + 0x1FF0,
    thread=_ELSEWHERE + 88,
    ring=_ELSEWHERE + 0x10_0000,
    left=_ELSEWHERE + 0x2000,
    sites=_ELSEWHERE + 0x20_1000,
)
_TRIAL_COUNTER: Final = _ELSEWHERE + 0x3000


def serving(point: ProbePoint) -> list[Kprobe]:
    """The probes that a detour is to serve: a stop stands in front of it."""
    return [probe for probe in point.enabled() if not probe.stops]


def work(probes: Sequence[Kprobe], calls: GuestCalls | None) -> Work | str:
    """The work of code in the guest for all of them, or the reason why it takes the engine.

    Args:
        probes: those of one place, newest first.
        calls: keeps the calls that code records; None where it may not.

    Returns:
        It, for the probes in the order of `in_parts`.
    """
    entry: CallEntry | None = None
    if len(probes) == 1 and isinstance(probes[0], ReturnSite) and calls is not None:
        site = probes[0]
        if site.record is None:
            return "a handler runs at the return"
        return calls.numbers.ending(site.addr or 0, site.last)
    found: list[Recording] = []
    for probe in probes:
        if needs_engine(probe):
            return "a handler runs there"
        if isinstance(probe, Kretprobe):
            begun = _begun(probe, calls) if entry is None else "several return probes begin there"
            if isinstance(begun, str):
                return begun
            entry = begun
        elif probe.recording is None:
            return "what its event does takes the engine"
        else:
            found.append(probe.recording)
    return tuple(found) if entry is None else replace(entry, before=tuple(found))


def _begun(probe: Kretprobe, calls: GuestCalls | None) -> CallEntry | str:
    return "a return probe begins there" if calls is None else calls.numbers.entry(probe)


def in_parts(probes: Iterable[Kprobe]) -> tuple[Kprobe, ...]:
    """Probes in the order of a detour's parts: the entry of a return probe comes last."""
    return tuple(sorted(probes, key=lambda probe: isinstance(probe, Kretprobe)))


def counted(wanted: Work, counters: Sequence[int]) -> Work:
    """The same with the words that each probe has for itself."""
    if isinstance(wanted, CallReturn):
        return replace(wanted, known=counters[0])
    if isinstance(wanted, CallEntry):
        before = _each(wanted.before, counters[:-1])
        return replace(wanted, counter=counters[-1], before=before)
    return _each(wanted, counters)


def _each(wanted: tuple[Recording, ...], counters: Sequence[int]) -> tuple[Recording, ...]:
    pairs = zip(wanted, counters, strict=True)
    return tuple(replace(one, counter=counter) for one, counter in pairs)


def uncompiled(jumps: ArchJumps, wanted: Work, window: bytes = b"") -> str:
    """Why no code in the guest can record it, "" if it can."""
    if not wanted:
        return ""
    from engine.arch.recorder.generator import record  # few runs have a jump probe

    count = len(recorded_by(wanted)) + isinstance(wanted, CallEntry)
    try:
        record(jumps.encoder, counted(wanted, [_TRIAL_COUNTER] * count), _TRIAL, window)
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
