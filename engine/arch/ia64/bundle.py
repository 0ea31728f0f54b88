"""Bundles: 128 bits with a template and three slots of 41 bits.

Source: Intel Itanium Architecture Software Developer's Manual, volume 3, section 4.1.
A slot's address is the bundle's plus the slot number in the low bits, as Linux has it.
"""

from typing import Final

from msgspec import Struct

SIZE: Final = 16
SLOT_MASK: Final = (1 << 41) - 1
_SLOT_AT: Final = (5, 46, 87)

_UNITS: Final = {
    0x00: "MII",
    0x02: "MII",
    0x04: "MLX",
    0x08: "MMI",
    0x0A: "MMI",
    0x0C: "MFI",
    0x0E: "MMF",
    0x10: "MIB",
    0x12: "MBB",
    0x16: "BBB",
    0x18: "MMB",
    0x1C: "MFB",
}
TEMPLATES: Final = tuple(_UNITS.get(number & 0x1E, "") for number in range(32))
"""Units of each template's slots; "" where the template is reserved."""

_MIDDLE_STOPS: Final = {0x02: 1, 0x03: 1, 0x0A: 0, 0x0B: 0}


class Bundle(Struct, frozen=True):
    """A bundle taken apart.

    Attributes:
        template: 5 bits.
        slots: three words of 41 bits.
    """

    template: int
    slots: tuple[int, int, int]

    @property
    def units(self) -> str:
        """Units of the slots, "MLX" where slots 1 and 2 are one; "" if reserved."""
        return TEMPLATES[self.template]

    @property
    def long(self) -> bool:
        """True if slots 1 and 2 hold one instruction."""
        return self.template >> 1 == 2

    def stop_after(self, slot: int) -> bool:
        """True if an instruction group ends behind a slot."""
        if slot == 2:
            return bool(self.template & 1)
        return _MIDDLE_STOPS.get(self.template) == slot

    def pack(self) -> bytes:
        """The 16 bytes, little endian as always."""
        value = self.template
        for at, word in zip(_SLOT_AT, self.slots, strict=True):
            value |= word << at
        return value.to_bytes(SIZE, "little")


def unpack(raw: bytes) -> Bundle:
    """Take 16 bytes apart."""
    value = int.from_bytes(raw[:SIZE], "little")
    return Bundle(
        value & 31,
        (value >> 5 & SLOT_MASK, value >> 46 & SLOT_MASK, value >> 87 & SLOT_MASK),
    )


def next_slot(address: int, bundle: Bundle) -> int:
    """The slot behind the one at `address`, in program order."""
    slot = address & 3
    if slot == 2 or (slot == 1 and bundle.long):
        return (address & ~15) + SIZE & 0xFFFFFFFFFFFFFFFF
    return address + 1
