"""The guest that `bench` measures on."""

import struct
from typing import Final

from engine.arch.bench import BenchGuest

_CALL: Final = 8
"""Number of the instruction that calls."""


def _constant(register: int, value: int) -> tuple[int, int]:
    """A movz of the low half and a movk of the high one."""
    low, high = value & 0xFFFF, value >> 16
    return 0xD2800000 | low << 5 | register, 0xF2A00000 | high << 5 | register


def _main(address: int, count: int, text: int, work: int) -> bytes:
    words = (
        *_constant(19, count),  # again:
        0xAA1303E0,  # mov x0, x19
        0x91000661,  # add x1, x19, #1
        *_constant(2, text),
        0xAA1303E3,  # mov x3, x19
        0xAA1303E4,  # mov x4, x19
        0x94000000 | (work - address) // 4 - _CALL & 0x3FFFFFF,  # bl WORK
        0xD1000673,  # sub x19, x19, #1
        0xB5000013 | (-8 & 0x7FFFF) << 5,  # cbnz x19, again
        0xD2800000,  # mov x0, #0
        0xD2800BA8,  # mov x8, #93: exit
        0xD4000001,  # svc #0
    )
    return struct.pack(f"<{len(words)}I", *words)


BENCH: Final = BenchGuest(
    main=_main,
    # add x5, x0, x1; mov x0, x5; ret
    work=struct.pack("<3I", 0x8B010005, 0xAA0503E0, 0xD65F03C0),
    fetches=("%x0", "%x1", "%x2", "%x3", "%x4", "%x6", "%x7", "%x8"),
)
