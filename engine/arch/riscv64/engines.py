"""Names of RISC-V in Unicorn and Capstone, and Unicorn's way to user level.

Keystone has no RISC-V: nothing assembles what a user types.
"""

import struct
from typing import Final

from msgspec.structs import replace

from engine.arch.engines import (
    USER_START,
    CapstoneNames,
    EngineNames,
    Setting,
    UnicornNames,
    UserStart,
)
from engine.arch.machine import Insn
from engine.arch.riscv64.decode import C_EBREAK, EBREAK, branch_target, classify, word_of

_ECALL: Final = 8

_START: Final = UserStart(
    at=0x80_0000,
    pages=struct.pack("<I", 0x30200073),  # mret
    entry=0,
    settings=(
        # Floating point is on; the level to return to is the user's, that of MPP = 0.
        Setting("MSTATUS", 3 << 13),
        Setting("MEPC", USER_START),
    ),
    level=None,  # user level may not ask for its own
)


def respell(insn: Insn) -> Insn:
    """The instruction with where it jumps to in place of the distance that Capstone prints."""
    word = word_of(insn.raw)
    target = branch_target(word, classify(word), insn.address)
    if target is None:
        return insn
    front, comma, _ = insn.operands.rpartition(", ")
    return replace(insn, operands=f"{front}{comma}{target:#x}")


ENGINES: Final = EngineNames(
    unicorn=UnicornNames(
        arch="RISCV",
        modes=("UC_MODE_RISCV64",),
        target="riscv64",
        start=_START,
        writable=(("fcsr", 0xFF, 0),),
        # After any exception pc is four bytes on, which is right for system calls alone.
        advances=tuple((number, 4) for number in range(16) if number != _ECALL),
        unsaved=("fcsr",),  # the exception flags in it
        refused_breakpoints=(struct.pack("<I", EBREAK), struct.pack("<H", C_EBREAK)),
    ),
    capstone=CapstoneNames(
        "CS_ARCH_RISCV", ("CS_MODE_RISCV64", "CS_MODE_RISCVC"), respell=respell
    ),
)
