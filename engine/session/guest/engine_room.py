"""Room of the engine's own in a guest's memory: for slots of probes and for detours."""

from collections.abc import Callable
from typing import Final

from engine.guest.memory import Memory
from engine.probes.detourroom import DetourRoom, Located
from engine.session.guest.loading import LoadedGuest

_SLOT_BYTES: Final = 1 << 20
"""Of the window below the program: for slots; the rest is for detours."""


def slot_windows(guest: LoadedGuest, memory: Memory) -> list[tuple[int, int]]:
    """(start, size) for slots: between the libraries and the stack, and below the program."""
    plan = guest.arch.plan
    windows = [plan.xol]
    windows += [
        (start, min(end - start, _SLOT_BYTES)) for start, end in _low_windows(guest, memory)
    ][:1]
    return windows


def detour_room(
    guest: LoadedGuest, memory: Memory, locate: Callable[[int], Located | None]
) -> DetourRoom:
    """Detours stand in the window near the libraries, and below the program behind the slots."""
    plan = guest.arch.plan
    beside = tuple(
        (start + _SLOT_BYTES, end - start - _SLOT_BYTES)
        for start, end in _low_windows(guest, memory)
        if end - start > 2 * _SLOT_BYTES
    )[:1]
    return DetourRoom(plan.detour, beside, locate)


def _low_windows(guest: LoadedGuest, memory: Memory) -> list[tuple[int, int]]:
    """(start, end) of engine windows below the program; in a copy they may be in pieces."""
    found: list[tuple[int, int]] = []
    for mapping in memory.mappings:
        if not mapping.reserved or mapping.end > guest.arch.plan.trampoline[0]:
            continue
        if found and found[-1][1] == mapping.start:
            found[-1] = found[-1][0], mapping.end
        else:
            found.append((mapping.start, mapping.end))
    return found
