"""A PCI bus by configuration mechanism 1: a host bridge, and functions with ports and interrupts.

Source: PCI Local Bus Specification 3.0, sections 3.2.2.3.2 and 6. Without ACPI nobody tells a
kernel how interrupts are wired: it takes the line that firmware has left in each function.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

ADDRESS, DATA = 0xCF8, 0xCFC
PORTS_OF_FUNCTION: Final = 0x80
"""Ports of a function's base address register."""
LINES: Final = (11, 10)
"""Lines of functions, in turn."""
_FIRST_PORT: Final = 0xC000
_ENABLED: Final = 1 << 31
_SPACE: Final = 256
_COMMAND, _STATUS, _CLASS, _BAR, _SUBSYSTEM, _FIRST_CAPABILITY = 4, 6, 8, 0x10, 0x2C, 0x34
_LINE, _PIN = 0x3C, 0x3D
_PORTS, _NO_INTERRUPT, _COMMANDS = 1, 0x400, 0x407
_INTERRUPTS, _CAPABILITIES = 8, 0x10
_PORT_SPACE: Final = 1
_HOST_BRIDGE: Final = (0x1B36, 0x0008, 0x060000)


class WindowDevice(Protocol):
    """The device behind a function's ports."""

    def read(self, offset: int, size: int) -> int:
        """Serve an IN at an offset of the ports."""

    def write(self, offset: int, size: int, value: int) -> None:
        """Serve an OUT at an offset of the ports."""


class PciFunction:
    """A function's configuration space.

    Attributes:
        space: the bytes of it.
        writable: the bits of each byte that a guest may change.
        level: True while the function asks for an interrupt.
        window: of the capability by which ports are reached from here, or 0; see virtio 1.2,
            section 4.1.4.9.
    """

    def __init__(self, vendor: int, device: int, kind: int) -> None:
        """Begin as after power-on.

        Args:
            vendor: number of the maker.
            device: number of the device.
            kind: class, subclass and interface.
        """
        self.space = bytearray(_SPACE)
        self.writable = bytearray(_SPACE)
        self.level = False
        self.window = 0
        self.put(0, 2, vendor)
        self.put(2, 2, device)
        self.put(_CLASS, 4, kind << 8 | 1)

    def put(self, offset: int, size: int, value: int) -> None:
        """Set a register, whatever a guest may do."""
        self.space[offset : offset + size] = value.to_bytes(size, "little")

    def get(self, offset: int, size: int) -> int:
        """Get a register as it is kept."""
        return int.from_bytes(self.space[offset : offset + size], "little")

    def give_ports(self, first: int, line: int, subsystem: tuple[int, int]) -> None:
        """Give it ports and an interrupt, as firmware does.

        Args:
            first: of the ports.
            line: of the interrupt.
            subsystem: numbers of the maker and the device.
        """
        self.put(_COMMAND, 2, _PORTS)
        self.put(_BAR, 4, first | _PORT_SPACE)
        self.put(_SUBSYSTEM, 2, subsystem[0])
        self.put(_SUBSYSTEM + 2, 2, subsystem[1])
        self.put(_LINE, 1, line)
        self.put(_PIN, 1, 1)
        for at, size, bits in (
            (_COMMAND, 2, _COMMANDS),
            (_BAR, 4, 0xFFFF & -PORTS_OF_FUNCTION),
            (_LINE, 1, 0xFF),
        ):
            self.writable[at : at + size] = bits.to_bytes(size, "little")

    def give_capability(self, at: int, body: bytes) -> None:
        """Add a capability in front of those that there are.

        Args:
            at: its offset.
            body: its bytes; the second one becomes the offset of the next capability.
        """
        self.space[at : at + len(body)] = body
        self.space[at + 1] = self.space[_FIRST_CAPABILITY]
        self.space[_FIRST_CAPABILITY] = at
        self.put(_STATUS, 2, _CAPABILITIES)

    @property
    def first_port(self) -> int:
        """The first of its ports; 0 while it does not answer."""
        answers = self.get(_COMMAND, 2) & _PORTS
        return self.get(_BAR, 4) & 0xFFFF & -PORTS_OF_FUNCTION if answers else 0

    @property
    def interrupts(self) -> bool:
        """True while it drives its line."""
        return self.level and not self.get(_COMMAND, 2) & _NO_INTERRUPT

    def state(self) -> dict[str, Any]:
        """The state as plain values."""
        return {"space": bytes(self.space), "level": self.level}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        self.space[:] = state["space"]
        self.level = bool(state["level"])

    def read(self, offset: int, size: int) -> int:
        """Serve a read of the configuration space."""
        value = self.get(offset, size)
        if offset <= _STATUS < offset + size and self.level:
            value |= _INTERRUPTS << 8 * (_STATUS - offset)
        return value

    def write(self, offset: int, size: int, value: int) -> None:
        """Serve a write to the configuration space."""
        for at, byte in enumerate(value.to_bytes(size, "little"), offset):
            bits = self.writable[at]
            self.space[at] = self.space[at] & ~bits | byte & bits


class PciBus:
    """Bus 0.

    Attributes:
        address: of the next access.
        functions: by their slot; the host bridge is the first.
        devices: what lies behind the ports of each.
    """

    def __init__(self, set_line: Callable[[int, bool], None]) -> None:
        """Begin with nothing; there is no bus until something is on it.

        Args:
            set_line: sets a line of the interrupt controllers.
        """
        self._set_line = set_line
        self.address = 0
        self.functions: list[PciFunction] = []
        self.devices: list[WindowDevice | None] = []

    def add(self, function: PciFunction, device: WindowDevice, subsystem: tuple[int, int]) -> None:
        """Add a function to the next slot, and give it ports and a line."""
        if not self.functions:
            self.functions.append(PciFunction(*_HOST_BRIDGE))
            self.devices.append(None)
        number = len(self.functions) - 1
        first = _FIRST_PORT + number * PORTS_OF_FUNCTION
        function.give_ports(first, LINES[number % len(LINES)], subsystem)
        self.functions.append(function)
        self.devices.append(device)

    def state(self) -> dict[str, Any]:
        """The state as plain values, but for the devices behind the ports."""
        return {
            "address": self.address,
            "functions": [function.state() for function in self.functions],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state of a bus with the same functions."""
        self.address = int(state["address"])
        for function, kept in zip(self.functions, state["functions"], strict=True):
            function.restore(kept)

    def update_lines(self) -> None:
        """Have each line follow the functions that share it."""
        for number, line in enumerate(LINES):
            sharing = self.functions[1 + number :: len(LINES)]
            if sharing:
                self._set_line(line, any(function.interrupts for function in sharing))

    def read(self, port: int, size: int) -> int:
        """Serve an IN: ones where nothing answers."""
        nothing = (1 << 8 * size) - 1
        if not self.functions:
            return nothing
        if port == ADDRESS and size == 4:
            return self.address
        if port & -4 == DATA:
            found, offset = self._addressed(port, size)
            if found < 0:
                return nothing
            function, device = self.functions[found], self.devices[found]
            if device is not None and (place := _window(function, offset, size)) is not None:
                value = device.read(place, size)
                self.update_lines()
                return value
            return function.read(offset, size)
        for function, device in zip(self.functions, self.devices, strict=True):
            if (at := _offset(function, port, size)) is not None and device is not None:
                value = device.read(at, size)
                self.update_lines()
                return value
        return nothing

    def write(self, port: int, size: int, value: int) -> None:
        """Serve an OUT, which is lost where nothing answers."""
        value &= (1 << 8 * size) - 1
        if not self.functions:
            return
        if port == ADDRESS and size == 4:
            self.address = value
        elif port & -4 == DATA:
            found, offset = self._addressed(port, size)
            if found >= 0:
                function, device = self.functions[found], self.devices[found]
                if device is not None and (place := _window(function, offset, size)) is not None:
                    device.write(place, size, value)
                else:
                    function.write(offset, size, value)
                self.update_lines()
        else:
            for function, device in zip(self.functions, self.devices, strict=True):
                if (at := _offset(function, port, size)) is not None and device is not None:
                    device.write(at, size, value)
                    self.update_lines()
                    return

    def _addressed(self, port: int, size: int) -> tuple[int, int]:
        """The slot that an access to the data is for, -1 for none, and the offset there."""
        bus, number = self.address >> 16 & 0xFF, self.address >> 8 & 0xFF
        offset = self.address & 0xFC | port & 3
        slot = number >> 3
        fits = (port & 3) + size <= 4
        there = (
            self.address & _ENABLED and not bus and not number & 7 and slot < len(self.functions)
        )
        return (slot if there and fits else -1), offset


def _offset(function: PciFunction, port: int, size: int) -> int | None:
    """The offset of a port in a function's; None where the port is not one of them."""
    first = function.first_port
    inside = first and first <= port and port + size <= first + PORTS_OF_FUNCTION
    return port - first if inside else None


def _window(function: PciFunction, offset: int, size: int) -> int | None:
    """The offset of the ports that an access to the capability's data is for; None for no such."""
    window = function.window
    if not window or offset != window + 16:
        return None
    place = function.get(window + 8, 4)
    is_for_ports = function.get(window + 4, 1) == 0 and function.get(window + 12, 4) == size
    return place if is_for_ports and place + size <= PORTS_OF_FUNCTION else None
