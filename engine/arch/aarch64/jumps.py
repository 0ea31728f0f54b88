"""Jump probes on AArch64, where Linux has none: instructions moved, jumps and detours."""

from engine.arch.aarch64.encoder import Aarch64Encoder
from engine.arch.aarch64.relocate import REACH, SIZE, indirect, jump, movable, needs
from engine.arch.jump import ArchJumps

JUMPS = ArchJumps(
    least=SIZE,
    most=SIZE,
    reach=REACH,
    movable=movable,
    jump=jump,
    copyable=lambda raw: False,
    indirect=indirect,
    fixed=lambda raw: False,
    needs=needs,
    encoder=Aarch64Encoder,
    linux=False,
    scratch=("x16", "x17"),
)
