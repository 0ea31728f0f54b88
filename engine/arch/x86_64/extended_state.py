"""Xsave, xsaveopt and xrstor of a processor whose state is x87's, SSE's and AVX's.

All in the standard form (Intel SDM volume 1, chapter 13). A component is in its first
configuration if its registers are those of a program that begins: this processor looks.
"""

import struct
from typing import Final

from engine.arch.machine import FrameCpu, TrapError
from engine.arch.x86_64 import fxsave
from engine.errors import GuestFaultError

X87, SSE, AVX = 1, 2, 4
FEATURES: Final = X87 | SSE | AVX
"""XCR0: what the system has switched on."""
HEADER_SIZE: Final = 64
_HEADER: Final = fxsave.SIZE
_UPPER: Final = _HEADER + HEADER_SIZE
SIZE: Final = _UPPER + fxsave.UPPER_SIZE
"""Bytes of an area with all of it."""
LEGACY_SIZE: Final = _UPPER
"""Bytes of one without AVX."""
_ALIGNED: Final = 64
_PROTECTION: Final = 13
_X87_PARTS: Final = (slice(0, 24), slice(32, 160))
_CONTROL_PART: Final = slice(24, 32)
_VECTORS_PART: Final = slice(160, 416)


def in_use(image: bytes, upper: bytes) -> int:
    """The components that are not in their first configuration.

    Args:
        image: what fxsave stores.
        upper: the upper halves of AVX's registers.
    """
    found = 0
    if any(image[part] != fxsave.FRESH[part] for part in _X87_PARTS):
        found |= X87
    if image[_VECTORS_PART] != fxsave.FRESH[_VECTORS_PART]:
        found |= SSE
    return found | (AVX if upper != fxsave.NONE else 0)


def save(cpu: FrameCpu, at: int, wanted: int, *, sparing: bool) -> None:
    """Xsave to an address; the sticky flags are in MXCSR.

    Args:
        cpu: the registers and memory.
        at: where.
        wanted: the components, as edx and eax name them.
        sparing: as xsaveopt, which leaves out those in their first configuration.

    Raises:
        TrapError: the address is not a multiple of 64.
        GuestFaultError: the program may not write there.
    """
    wanted &= FEATURES
    if at % _ALIGNED:
        raise TrapError(_PROTECTION)
    image, upper = fxsave.save(cpu), fxsave.save_upper(cpu)
    used = in_use(image, upper)
    stored = wanted & used if sparing else wanted
    try:
        area = bytearray(cpu.read(at, SIZE if wanted & AVX else LEGACY_SIZE))
    except GuestFaultError as fault:
        raise GuestFaultError(fault.address, "write") from None
    parts = [*(_X87_PARTS if stored & X87 else ())]
    parts += [_CONTROL_PART] if wanted & (SSE | AVX) else []
    parts += [_VECTORS_PART] if stored & SSE else []
    for part in parts:
        area[part] = image[part]
    if stored & AVX:
        area[_UPPER:] = upper
    (before,) = struct.unpack_from("<Q", area, _HEADER)
    struct.pack_into("<Q", area, _HEADER, before & ~wanted | used & wanted)
    cpu.write(at, bytes(area))


def restore(cpu: FrameCpu, at: int, wanted: int) -> None:
    """Xrstor from an address.

    Args:
        cpu: the registers and memory.
        at: where.
        wanted: the components, as edx and eax name them.

    Raises:
        TrapError: the address is not a multiple of 64, or what stands there is no such area.
        GuestFaultError: the program may not read it.
    """
    wanted &= FEATURES
    if at % _ALIGNED:
        raise TrapError(_PROTECTION)
    area = cpu.read(at, SIZE if wanted & AVX else LEGACY_SIZE)
    held, form, reserved = struct.unpack_from("<3Q", area, _HEADER)
    if held & ~FEATURES or form or reserved:
        raise TrapError(_PROTECTION)
    image = bytearray(fxsave.save(cpu))
    if wanted & (SSE | AVX):
        if not fxsave.loadable(area):
            raise TrapError(_PROTECTION)
        image[_CONTROL_PART] = area[_CONTROL_PART]
    parts = [*(_X87_PARTS if wanted & X87 else ())]
    parts += [_VECTORS_PART] if wanted & SSE else []
    for part in parts:
        component = SSE if part is _VECTORS_PART else X87
        image[part] = (area if held & component else fxsave.FRESH)[part]
    upper = fxsave.NONE
    if wanted & held & AVX:
        upper = area[_UPPER:]
    fxsave.load(cpu, bytes(image))
    if wanted & AVX:
        fxsave.load_upper(cpu, upper)
