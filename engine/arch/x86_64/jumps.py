"""Jump probes on x86-64.

What moves instructions is read when the first one is to be moved: runs without probes do without.
"""

from typing import TYPE_CHECKING, Final

from engine.arch.jump import ArchJumps, Movable

if TYPE_CHECKING:
    from engine.arch.x86_64.encoder import X86Encoder

LEAST: Final = 5
MOST: Final = 15
"""A jump is padded with prefixes up to the longest instruction there is."""
REACH: Final = (1 << 31) - (1 << 16)


def _movable(raw: bytes, address: int) -> Movable | str:
    from engine.arch.x86_64.relocate import movable

    return movable(raw, address)


def _jump(place: int, target: int, size: int) -> bytes | None:
    from engine.arch.x86_64.relocate import jump

    return jump(place, target, size)


def _copyable(raw: bytes) -> bool:
    from engine.arch.x86_64.relocate import copyable

    return copyable(raw)


def _indirect(raw: bytes) -> bool:
    """True if an instruction is `jmp` through a register or memory, or a far one."""
    if 0xFF not in raw and 0xEA not in raw:  # nearly always, at no cost
        return False
    from engine.arch.x86_64.relocate import indirect

    return indirect(raw)


def _fixed(raw: bytes) -> bool:
    from engine.arch.x86_64.relocate import fixed

    return fixed(raw)


def _encoder(save_area: int) -> "X86Encoder":
    from engine.arch.x86_64.encoder import X86Encoder

    return X86Encoder(save_area)


JUMPS = ArchJumps(
    least=LEAST,
    most=MOST,
    reach=REACH,
    movable=_movable,
    jump=_jump,
    copyable=_copyable,
    indirect=_indirect,
    fixed=_fixed,
    needs=lambda data, start: "",
    encoder=_encoder,
    led_encoder=_encoder,
    linux=True,
)
