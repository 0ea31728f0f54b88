"""Jump probes on AArch64, where Linux has none: instructions moved, jumps and detours.

What moves instructions is read when the first one is to be moved: runs without probes do without.
"""

from typing import TYPE_CHECKING, Final

from engine.arch.aarch64.encode import BRANCH_REACH
from engine.arch.jump import ArchJumps, Movable

if TYPE_CHECKING:
    from engine.arch.aarch64.encoder import Aarch64Encoder

SIZE: Final = 4
REACH: Final = BRANCH_REACH - (1 << 16)


def _movable(raw: bytes, address: int) -> Movable | str:
    from engine.arch.aarch64.relocate import movable

    return movable(raw, address)


def _jump(place: int, target: int, size: int) -> bytes | None:
    from engine.arch.aarch64.relocate import jump

    return jump(place, target, size)


def _indirect(raw: bytes) -> bool:
    if raw[3:4] not in _BRANCHES:  # nearly always, at no cost
        return False
    from engine.arch.aarch64.relocate import indirect

    return indirect(raw)


def _needs(data: bytes, start: int) -> str:
    from engine.arch.aarch64.relocate import needs

    return needs(data, start)


def _encoder(save_area: int) -> "Aarch64Encoder":
    from engine.arch.aarch64.encoder import Aarch64Encoder

    return Aarch64Encoder(save_area)


def _led_encoder(save_area: int) -> "Aarch64Encoder":
    from engine.arch.aarch64.encoder import Aarch64Encoder

    return Aarch64Encoder(save_area, led=True)


_BRANCHES: Final = (b"\xd6", b"\xd7")
"""The top byte of all branches by register (DDI 0487, C4.1)."""

JUMPS = ArchJumps(
    least=SIZE,
    most=SIZE,
    reach=REACH,
    movable=_movable,
    jump=_jump,
    copyable=lambda raw: False,
    indirect=_indirect,
    fixed=lambda raw: False,
    needs=_needs,
    encoder=_encoder,
    led_encoder=_led_encoder,
    linux=False,
    scratch=("x16", "x17"),
)
