"""Jump probes on x86-64."""

from engine.arch.jump import ArchJumps
from engine.arch.x86_64.encoder import X86Encoder
from engine.arch.x86_64.relocate import (
    LEAST,
    MOST,
    REACH,
    copyable,
    fixed,
    indirect,
    jump,
    movable,
)

JUMPS = ArchJumps(
    least=LEAST,
    most=MOST,
    reach=REACH,
    movable=movable,
    jump=jump,
    copyable=copyable,
    indirect=indirect,
    fixed=fixed,
    needs=lambda data, start: "",
    encoder=X86Encoder,
    linux=True,
)
