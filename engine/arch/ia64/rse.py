"""The register stack in memory: how frames lie in the backing store.

Source: Intel Itanium Architecture Software Developer's Manual, volume 2, section 6.
The store grows upwards; every 64th word, the one whose address bits 8:3 are all ones, holds the
NaT bits of the 63 registers below it.
"""

from collections.abc import Callable
from typing import Final

MASK: Final = (1 << 64) - 1
CFM_MASK: Final = (1 << 38) - 1


def frame_size(cfm: int) -> int:
    """Registers of a frame (sof)."""
    return cfm & 127


def locals_size(cfm: int) -> int:
    """Registers of a frame that are not its output (sol)."""
    return cfm >> 7 & 127


def skip_up(bsp: int, registers: int) -> int:
    """Address of the register that lies `registers` above the one at `bsp`."""
    slot = bsp >> 3 & 63
    return bsp + 8 * (registers + (slot + registers) // 63) & MASK


def skip_down(bsp: int, registers: int) -> int:
    """Address of the register that lies `registers` below the one at `bsp`."""
    slot = bsp >> 3 & 63
    return bsp - 8 * (registers + (62 - slot + registers) // 63) & MASK


def stacked(bsp: int, count: int, read: Callable[[int, int], bytes]) -> list[int]:
    """The first `count` registers of the frame at `bsp`, from memory.

    Raises:
        GuestFaultError: by `read`, where the store is not mapped.
    """
    if not count:
        return []
    end = skip_up(bsp, count - 1) + 8
    data = read(bsp, end - bsp)
    return [
        int.from_bytes(data[at : at + 8], "little")
        for at in range(0, len(data), 8)
        if (bsp + at) >> 3 & 63 != 63
    ]


def is_frame(cfm: int) -> bool:
    """True if a frame marker has no reserved values."""
    sof, rotating = frame_size(cfm), 8 * (cfm >> 14 & 15)
    return (
        sof <= 96
        and locals_size(cfm) <= sof
        and rotating <= sof
        and cfm >> 18 & 127 < max(rotating, 1)
        and cfm >> 25 & 127 < 96
        and cfm >> 32 & 63 < 48
    )
