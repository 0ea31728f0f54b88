"""The array of a kernel's own trace events, found by what it points to.

Kernels without KALLSYMS_ALL have no symbols around it. It is found from one event that all have:
the text of its tracepoint's name, what points to that, what points to the tracepoint, and what
points to that event; from there the array reaches as far as its pointers lead to events.
"""

import mmap
from collections.abc import Iterator, Mapping
from typing import Final

from engine.image.kernel.kernelimage import KernelImage

_KNOWN: Final = (("sched", "sched_switch"), ("irq", "irq_handler_entry"), ("timer", "timer_start"))
"""Groups and names of events that are in every kernel that traces."""
_POINTER: Final = 8
_MOST: Final = 1 << 14
_PLACES_MAX: Final = 64
_TEXT_MAX: Final = 64


def find_event_array(image: KernelImage) -> tuple[int, int] | None:
    """[start, end) of the array; None where it is not found, or the types are not told."""
    call, group = image.layout("trace_event_call"), image.layout("trace_event_class")
    if call is None or group is None or "class" not in call or "system" not in group:
        return None
    finder = _Finder(image, call["class"][0], group["system"][0])
    for system, name in _KNOWN:
        for slot in finder.slots(call, system, name):
            found = finder.reach(slot)
            if found is not None:
                return found
    return None


class _Finder:
    """Looks for pointers in one image."""

    def __init__(self, image: KernelImage, described: int, system: int) -> None:
        self._image = image
        self._class = described
        self._system = system

    def slots(self, call: Mapping[str, tuple[int, int]], system: str, name: str) -> Iterator[int]:
        """Places that point to an event of that group and name."""
        # `name` and `tp` share a place, in a union without a name.
        named = call["tp"][0] if "tp" in call else self._class + _POINTER
        for text in self._places(b"\0" + name.encode() + b"\0", 1):
            for point in self._pointing(text):
                for use in self._pointing(point):
                    event = use - named
                    if self._group(event) == system.encode():
                        yield from self._pointing(event)

    def reach(self, slot: int) -> tuple[int, int] | None:
        """The pointers to events around one; None where it stands alone."""
        low, high = slot, slot + _POINTER
        while high - low < _MOST * _POINTER and self._is_event(low - _POINTER):
            low -= _POINTER
        while high - low < _MOST * _POINTER and self._is_event(high):
            high += _POINTER
        return (low, high) if high - low > _POINTER else None

    def _is_event(self, slot: int) -> bool:
        group = self._group(self._pointer(slot)) or b""
        return group.isascii() and group.decode().replace("-", "_").isidentifier()

    def _group(self, event: int) -> bytes | None:
        """The name of an event's group; None where there is no event."""
        text = self._pointer(self._pointer(event + self._class) + self._system)
        found = self._image.read(text, _TEXT_MAX) if self._image.holds(text) else b""
        name, end, _ = found.partition(b"\0")
        return name if end else None

    def _pointer(self, address: int) -> int:
        if not self._image.holds(address):
            return 0
        return int.from_bytes(self._image.read(address, _POINTER), "little")

    def _pointing(self, address: int) -> list[int]:
        wanted = address.to_bytes(_POINTER, "little")
        return [at for at in self._places(wanted, 0) if not at % _POINTER]

    def _places(self, wanted: bytes, behind: int) -> list[int]:
        """Addresses so many bytes behind each place of the image that has some bytes."""
        buffer = self._image.elf.buffer
        data = buffer if isinstance(buffer, bytes | bytearray | mmap.mmap) else bytes(buffer)
        found: list[int] = []
        for segment in self._image.elf.load_segments:
            low, high = segment.offset, segment.offset + segment.filesz
            at = data.find(wanted, low, high)
            while at >= 0 and len(found) < _PLACES_MAX:
                found.append(segment.vaddr + at - low + behind)
                at = data.find(wanted, at + 1, high)
        return found
