"""Reference counters of uprobes: the semaphores with which programs ask "is anybody tracing?".

A uprobe may name a 16-bit counter in the data of its file (`PATH:OFFSET(COUNTER)`, the semaphore
of an SDT marker). While the breakpoint stands in a mapping of the file, the counter in the
program's memory is one higher: once for each place, however many probes want it. Where the page
of the counter is not mapped yet, that waits until it is. (kernel/events/uprobes.c:
update_ref_ctr, delayed_ref_ctr_inc.)
"""

from collections.abc import Callable, Collection
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.cpu.ram import WRITE
from engine.errors import GuestFaultError
from engine.guest.memory import Memory
from engine.probes.point import ProbePoint

_SIZE: Final = 2
_MOST: Final = 0x7FFF
"""The kernel's counter is signed; one that would leave its range is left alone."""


class _Counted(Struct):
    """A place with a counter.

    Attributes:
        path: of the file that the place is in, as it is mapped.
        offset: of the counter in that file.
        address: of the counter that was raised, None while none was.
    """

    path: str
    offset: int
    address: int | None = None


class ReferenceCounters:
    """The counters of one guest."""

    def __init__(self, memory: Memory, notify: Callable[[str], None]) -> None:
        """Nothing is counted yet; `notify` is told what cannot be counted."""
        self._memory = memory
        self._notify = notify
        self._places: dict[int, _Counted] = {}

    def follow(self, other: "ReferenceCounters") -> None:
        """In a copy of another's memory: what is raised there is raised here."""
        self._places = {at: replace(place) for at, place in other._places.items()}

    def keep(self, points: Collection[int]) -> None:
        """Lower the counters of places that have no breakpoint after all."""
        for at in [at for at in self._places if at not in points]:
            place = self._places.pop(at)
            if place.address is not None:
                self._add(place.address, -1)

    def lower_in(self, memory: Memory) -> None:
        """Lower what is raised in a copy of the memory, in which nobody probes."""
        for place in self._places.values():
            if place.address is not None:
                value = int.from_bytes(memory.peek(place.address, _SIZE), "little", signed=True)
                if value > 0:
                    memory.poke(place.address, (value - 1).to_bytes(_SIZE, "little"))

    def armed(self, point: ProbePoint) -> None:
        """A breakpoint was planted: raise its counter, now or when it is there."""
        if point.address in self._places:
            return  # it was, in the memory that this is a copy of
        offset = next((probe.reference for probe in point.probes if probe.reference), 0)
        mapping = self._memory.find(point.address) if offset else None
        if mapping is None:
            return
        place = self._places[point.address] = _Counted(mapping.name, offset)
        self._raise(place)

    def disarmed(self, point: ProbePoint) -> None:
        """A breakpoint is gone: lower its counter, if that is still there."""
        place = self._places.pop(point.address, None)
        if place is not None and place.address is not None and self._find(place) == place.address:
            self._add(place.address, -1)

    def changed(self) -> None:
        """Mappings have changed: a counter may have come, or gone."""
        for place in self._places.values():
            if place.address is None:
                self._raise(place)
            elif self._find(place) != place.address:
                place.address = None

    def _raise(self, place: _Counted) -> None:
        found = self._find(place)
        if found is not None and self._add(found, 1):
            place.address = found

    def _find(self, place: _Counted) -> int | None:
        """Address of the counter: in a mapping of the file that is private and may be written."""
        for mapping in self._memory.mappings:
            if (
                mapping.name == place.path
                and mapping.perms & WRITE
                and not mapping.shared
                and 0 <= place.offset - mapping.offset <= mapping.size - _SIZE
            ):
                return mapping.start + place.offset - mapping.offset
        return None

    def _add(self, address: int, change: int) -> bool:
        try:
            data = self._memory.read(address, _SIZE)
        except GuestFaultError:
            return False
        value = int.from_bytes(data, "little", signed=True) + change
        if not 0 <= value <= _MOST:
            self._notify(f"the reference counter at {address:#x} would become {value}")
            return False
        self._memory.poke(address, value.to_bytes(_SIZE, "little"))
        return True
