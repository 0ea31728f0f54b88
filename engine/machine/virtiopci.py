"""A virtio device on a PCI bus, all of whose registers are ports. Source: virtio 1.2, section 4.1.

There is nothing of the time before virtio 1.0, and no MSI-X: the interrupt is a line.
"""

from collections.abc import Mapping
from struct import pack
from typing import Any, Final, Protocol

from engine.machine.clock import NO_EVENT, MachineClock
from engine.machine.pci import PciFunction
from engine.machine.virtqueue import QueueError, SplitQueue

VERSION_1: Final = 1 << 32
INDIRECT: Final = 1 << 28
VENDOR: Final = 0x1AF4
SUBSYSTEM: Final = (VENDOR, 0x1100)
_FIRST_DEVICE: Final = 0x1040
_COMMON, _ISR, _NOTIFY, _DEVICE, _END = 0, 0x38, 0x3C, 0x40, 0x80
_CAPABILITY: Final = 9  # vendor specific
_KINDS: Final = ((1, _COMMON, 0x38), (2, _NOTIFY, 2), (3, _ISR, 1), (4, _DEVICE, _END - _DEVICE))
"""Number, offset and size of each part."""
_WINDOW_KIND: Final = 5
_CAPABILITIES: Final = 0x40
_ROOM: Final = 20
_FEATURES_OK, _DRIVER_OK, _NEEDS_RESET = 8, 4, 0x40
_QUEUE, _CHANGED = 1, 2
_NO_VECTOR: Final = 0xFFFF
_LOW: Final = 0xFFFFFFFF


class VirtioDevice(Protocol):
    """A kind of device without the bus that it is on.

    Attributes:
        number: of its type.
        kind: class of a PCI function.
        features: that it offers, without those of the transport.
    """

    number: int
    kind: int
    features: int

    def configuration(self) -> bytes:
        """The device's own registers."""

    def serve(self, queue: SplitQueue) -> int:
        """Carry out all requests that wait.

        Returns:
            Nanoseconds until they are done; 0 if there were none.

        Raises:
            QueueError: the queue is malformed.
        """


class VirtioFunction:
    """The registers of a device with one queue; a `pci.WindowDevice`.

    Attributes:
        function: its configuration space.
        due: time of the next interrupt.
        status: as the driver has set it.
        isr: why there is an interrupt.
        accepted: features that the driver has taken.
        queue: the device's queue.
    """

    def __init__(self, device: VirtioDevice, queue: SplitQueue, clock: MachineClock) -> None:
        """Begin as after power-on."""
        self._device, self._clock = device, clock
        self.queue = queue
        self.due = NO_EVENT
        self.status = self.isr = self.accepted = 0
        self._offered_half = self._accepted_half = self._chosen = 0
        self.function = PciFunction(VENDOR, _FIRST_DEVICE + device.number, device.kind)
        self._give_capabilities()

    def _give_capabilities(self) -> None:
        at = _CAPABILITIES
        for kind, offset, size in _KINDS:
            body = pack("<4B4x2I", _CAPABILITY, 0, _ROOM, kind, offset, size) + bytes(4)
            self.function.give_capability(at, body)
            at += _ROOM
        self.function.give_capability(at, pack("<4B16x", _CAPABILITY, 0, _ROOM, _WINDOW_KIND))
        self.function.window = at
        self.function.writable[at + 4] = 0xFF
        self.function.writable[at + 8 : at + 16] = b"\xff" * 8

    @property
    def _features(self) -> int:
        return self._device.features | VERSION_1 | INDIRECT

    def pass_time(self) -> None:
        """Interrupt if that is due."""
        if self._clock.now >= self.due:
            self.due = NO_EVENT
            self.isr |= _QUEUE
            self.function.level = True

    # -- a `machine.Device` -----------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The state as plain values; the function's is a part of the bus."""
        halves = self._offered_half, self._accepted_half, self._chosen
        return {
            "queue": self.queue.state(),
            "due": self.due,
            "said": [self.status, self.isr, self.accepted],
            "halves": list(halves),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        self.queue.restore(state["queue"])
        self.due = int(state["due"])
        self.status, self.isr, self.accepted = state["said"]
        self._offered_half, self._accepted_half, self._chosen = state["halves"]

    # -- a `pci.WindowDevice` ---------------------------------------------------------------

    def read(self, offset: int, size: int) -> int:
        """Serve an IN; what asks why there is an interrupt, ends it."""
        if offset == _ISR:
            value, self.isr = self.isr, 0
            self.function.level = False
            return value
        if offset >= _DEVICE:
            data = self._device.configuration()
            offset -= _DEVICE
        else:
            data = self._common()
        return int.from_bytes(data[offset : offset + size].ljust(size, b"\0"), "little")

    def _common(self) -> bytes:
        chosen, queue = self._chosen, self.queue
        is_queue = not chosen
        return pack(
            "<4I2H2B5H3Q",
            self._offered_half,
            self._features >> 32 * self._offered_half & _LOW if self._offered_half < 2 else 0,
            self._accepted_half,
            self.accepted >> 32 * self._accepted_half & _LOW if self._accepted_half < 2 else 0,
            _NO_VECTOR,
            1,
            self.status,
            0,
            chosen,
            queue.size if is_queue else 0,
            _NO_VECTOR,
            queue.enabled and is_queue,
            0,
            queue.descriptors if is_queue else 0,
            queue.driver if is_queue else 0,
            queue.device if is_queue else 0,
        )

    def write(self, offset: int, size: int, value: int) -> None:
        """Serve an OUT; each register has its own size."""
        queue = self.queue
        match offset, size:
            case 0x00, 4:
                self._offered_half = value
            case 0x08, 4:
                self._accepted_half = value
            case 0x0C, 4 if self._accepted_half < 2 and not self.status & _FEATURES_OK:
                shift = 32 * self._accepted_half
                self.accepted = self.accepted & ~(_LOW << shift) | value << shift
            case 0x14, 1:
                self._set_status(value)
            case 0x16, 2:
                self._chosen = value
            case 0x3C, 2 | 4:
                self._notify(value)
            case _ if self._chosen or queue.enabled:
                pass
            case 0x18, 2:
                queue.set_size(value)
            case 0x1C, 2:
                queue.enabled = value == 1
            case 0x20 | 0x24, 4:
                queue.descriptors = _half(queue.descriptors, offset - 0x20, value)
            case 0x28 | 0x2C, 4:
                queue.driver = _half(queue.driver, offset - 0x28, value)
            case 0x30 | 0x34, 4:
                queue.device = _half(queue.device, offset - 0x30, value)

    def _set_status(self, value: int) -> None:
        if not value:
            self.queue.reset()
            self.due = NO_EVENT
            self.status = self.isr = self.accepted = 0
            self._offered_half = self._accepted_half = self._chosen = 0
            self.function.level = False
            return
        fits = self.accepted & VERSION_1 and not self.accepted & ~self._features
        self.status = value & 0xFF | self.status & _NEEDS_RESET
        if not fits:
            self.status &= ~_FEATURES_OK

    def _notify(self, number: int) -> None:
        serves = self.status & _DRIVER_OK and not self.status & _NEEDS_RESET
        if number or not serves or not self.queue.enabled:
            return
        try:
            taken = self._device.serve(self.queue)
            if taken and not self.queue.quiet:
                self.due = min(self.due, self._clock.now + taken)
        except QueueError:
            self.status |= _NEEDS_RESET
            self.isr |= _CHANGED
            self.function.level = True


def _half(old: int, shift: int, value: int) -> int:
    """A number of 64 bits with one half of it changed."""
    return old & ~(_LOW << 8 * shift) | value << 8 * shift
