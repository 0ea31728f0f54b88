"""A split virtqueue, from the device's side. Source: virtio 1.2, section 2.7.

Whatever stands in the guest's memory is the guest's to change: every address is checked, and every
walk ends.
"""

from collections.abc import Callable, Mapping
from mmap import mmap
from struct import pack, unpack_from
from typing import Any, Final

from msgspec import Struct

QUEUE_SIZE: Final = 64
"""Entries of a queue, and buffers of a request, at the most."""
_DESCRIPTOR: Final = 16
_NEXT, _WRITABLE, _INDIRECT = 1, 2, 4
_QUIET: Final = 1
_USED: Final = 8  # bytes of an entry of the used ring
_WRAPS: Final = 0x10000
_REGISTERS: Final = ("size", "enabled", "descriptors", "driver", "device", "seen", "done")

Segment = tuple[int, int]
"""Address and size of a buffer."""
Store = Callable[[int, bytes], None]


class QueueError(Exception):
    """The guest has laid out a queue that no device can serve."""


class Chain(Struct, frozen=True):
    """A request: buffers that the device reads, then buffers that it writes.

    Attributes:
        head: its first descriptor.
        readable: what the device reads.
        writable: what the device writes.
    """

    head: int
    readable: tuple[Segment, ...]
    writable: tuple[Segment, ...]


class SplitQueue:
    """A queue's registers and the device's place in it.

    Attributes:
        size: entries, a power of two.
        enabled: True once the driver has laid the queue out.
        descriptors: address of the table.
        driver: address of the available ring.
        device: address of the used ring.
        seen: requests that were taken, modulo 65536.
        done: requests that were given back, modulo 65536.
    """

    def __init__(self, memory: mmap, store: Store) -> None:
        """Begin as after a reset.

        Args:
            memory: physical, from address 0 on.
            store: writes to it as a device does.
        """
        self._memory, self._store = memory, store
        self.reset()

    def reset(self) -> None:
        """Forget all that the driver has said."""
        self.size = QUEUE_SIZE
        self.enabled = False
        self.descriptors = self.driver = self.device = 0
        self.seen = self.done = 0

    def state(self) -> dict[str, Any]:
        """The state as plain values."""
        return {name: getattr(self, name) for name in _REGISTERS}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        for name in _REGISTERS:
            setattr(self, name, int(state[name]))
        self.enabled = bool(state["enabled"])

    def set_size(self, size: int) -> None:
        """Take a size of the driver's; one that is no power of two is ignored."""
        if not self.enabled and 0 < size <= QUEUE_SIZE and not size & size - 1:
            self.size = size

    @property
    def quiet(self) -> bool:
        """True if the driver wants no interrupt."""
        return bool(self._words(self.driver, "<H")[0] & _QUIET)

    def waiting(self) -> list[Chain]:
        """Take all requests that wait.

        Raises:
            QueueError: one of them is malformed, or there are more than the queue has room for.
        """
        (index,) = self._words(self.driver + 2, "<H")
        count = (index - self.seen) % _WRAPS
        if count > self.size:
            raise QueueError(f"{count} requests in a queue of {self.size}")
        chains = []
        for _ in range(count):
            (head,) = self._words(self.driver + 4 + 2 * (self.seen % self.size), "<H")
            chains.append(self._chain(head))
            self.seen = (self.seen + 1) % _WRAPS
        return chains

    def give_back(self, chain: Chain, written: int) -> None:
        """Tell the driver that a request is done.

        Args:
            chain: the request.
            written: bytes that the device has written.

        Raises:
            QueueError: the ring lies outside the memory.
        """
        at = self.device + 4 + _USED * (self.done % self.size)
        self._check(at, _USED)
        self._check(self.device, 4)
        self._store(at, pack("<2I", chain.head, written))
        self.done = (self.done + 1) % _WRAPS
        self._store(self.device + 2, pack("<H", self.done))

    def _chain(self, head: int) -> Chain:
        readable: list[Segment] = []
        writable: list[Segment] = []
        table, count, index = self.descriptors, self.size, head
        is_inner = False
        steps = 0
        while True:
            if index >= count:
                raise QueueError(f"descriptor {index} of {count}")
            steps += 1
            if steps > count:
                raise QueueError("descriptors that lead to each other")
            address, size, flags, following = self._words(table + _DESCRIPTOR * index, "<QI2H")
            if flags & _INDIRECT:
                inner, rest = divmod(size, _DESCRIPTOR)
                if is_inner or flags & _NEXT or rest or not 0 < inner <= QUEUE_SIZE:
                    raise QueueError("a table of descriptors in a place that has none")
                is_inner, steps = True, 0
                table, count, index = address, inner, 0
                continue
            self._check(address, size)
            if flags & _WRITABLE:
                writable.append((address, size))
            elif writable:
                raise QueueError("a buffer to be read behind one to be written")
            else:
                readable.append((address, size))
            if not flags & _NEXT:
                return Chain(head, tuple(readable), tuple(writable))
            index = following

    def _check(self, address: int, size: int) -> None:
        if address + size > len(self._memory):
            raise QueueError(f"{size} bytes at {address:#x}, where no memory is")

    def _words(self, address: int, layout: str) -> tuple[int, ...]:
        self._check(address, _DESCRIPTOR if layout == "<QI2H" else 2)
        return unpack_from(layout, self._memory, address)
