"""Names of AArch64 in Unicorn, Capstone and Keystone, and Unicorn's way to EL0."""

import struct
from typing import Final

from engine.arch.engines import (
    USER_START,
    CapstoneNames,
    EngineNames,
    KeystoneNames,
    Setting,
    UnicornNames,
    UserStart,
)


def _key(op0: int, op1: int, crn: int, crm: int, op2: int) -> tuple[int, ...]:
    """A system register in the order in which Unicorn wants it."""
    return crn, crm, op0, op1, op2


# nTWE, nTWI: wfe and wfi are no traps; DZE, UCT, UCI: dc zva, ctr_el0 and cache maintenance
# at EL0; EnIA, EnIB, EnDA, EnDB: pointer authentication.
_SCTLR = 1 << 18 | 1 << 16 | 1 << 14 | 1 << 15 | 1 << 26 | 1 << 31 | 1 << 30 | 1 << 27 | 1 << 13
_HCR = 1 << 41 | 1 << 40 | 1 << 31  # API, APK, RW
_SCR = 1 << 17 | 1 << 16 | 1 << 10 | 1  # API, APK, RW, NS
_TCR = 16 | 16 << 16 | 5 << 32 | 1 << 37  # 48-bit addresses, TBI0 as Linux sets it

_START: Final = UserStart(
    at=0xFFFF_0000_0000_0000,
    # msr spsr_el1, x1; msr elr_el1, x2; eret
    pages=struct.pack("<3I", 0xD5184001, 0xD5184022, 0xD69F03E0).ljust(4096, b"\0"),
    entry=0,
    settings=(
        Setting("CPACR_EL1", 3 << 20),  # FP and SIMD; SVE stays off
        Setting("CP_REG", _SCTLR, _key(3, 0, 1, 0, 0), adds=True),  # SCTLR_EL1
        Setting("CP_REG", _HCR, _key(3, 4, 1, 1, 0)),  # HCR_EL2
        Setting("CP_REG", _SCR, _key(3, 6, 1, 1, 0)),  # SCR_EL3
        Setting("CP_REG", _TCR, _key(3, 0, 2, 0, 2)),  # TCR_EL1
        Setting("CP_REG", 0, _key(3, 0, 14, 1, 0)),  # CNTKCTL_EL1: counters trap: time is ours
        Setting("X1", 0),
        Setting("X2", USER_START),
    ),
    secrets=(
        *(("CP_REG", _key(3, 0, 2, 1, op2)) for op2 in range(4)),  # APIAKey, APIBKey
        *(("CP_REG", _key(3, 0, 2, 2, op2)) for op2 in range(4)),  # APDAKey, APDBKey
        *(("CP_REG", _key(3, 0, 2, 3, op2)) for op2 in range(2)),  # APGAKey
    ),
    level=("PSTATE", 0xF, 0),
    cleared=("X2",),
)

ENGINES: Final = EngineNames(
    unicorn=UnicornNames(
        arch="ARM64",
        modes=("UC_MODE_ARM",),
        target="aarch64",
        start=_START,
        cpu="UC_CPU_ARM64_MAX",
        page_size=4096,  # else 1 KiB: four times the TLB misses
        registers=(("cpsr", "PSTATE"), ("tpidr", "TPIDR_EL0")),
        # NZCV, BTYPE: all else of PSTATE is not a program's to set.
        writable=(("cpsr", 0xF0000C00, 0),),
    ),
    capstone=CapstoneNames("CS_ARCH_ARM64", ("CS_MODE_LITTLE_ENDIAN",)),
    keystone=KeystoneNames("KS_ARCH_ARM64", ("KS_MODE_LITTLE_ENDIAN",)),
)
