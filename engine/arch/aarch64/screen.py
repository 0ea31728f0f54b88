"""Instructions of AArch64 that must not run in Unicorn as they stand.

- rndr and rndrrs ask the host: given seeded bytes instead.
- The virtual counter traps at EL0 (CNTKCTL_EL1) and shows the guest's deterministic one; the
  identification registers trap too and are answered as Linux does for programs, with values
  that promise nothing (arch/arm64/kernel/cpufeature.c, emulate_mrs).
"""

import struct
from typing import Final

from engine.arch.base import Screened, Screening
from engine.arch.machine import ArchCpu, Insn

_RNDR, _RNDRRS = 0xD53B2400, 0xD53B2420
_CNTVCT, _CNTVCTSS, _CNTFRQ = 0xD53BE040, 0xD53BE0C0, 0xD53BE000
_ID_REGISTERS, _ID_MASK = 0xD5380000, 0xFFFFF000
_MIDR, _MPIDR = 0xD5380000, 0xD53800A0
_FREQUENCY: Final = 1_000_000_000
"""Counts in a second: the counter's are nanoseconds, as from Armv8.6 on."""
_ZERO_REGISTER = 31


SUSPECTS: Final = {0x24: frozenset({0x3B})}
"""`mrs xN, rndr` is 0xD53B24NN."""


def screen(insns: tuple[Insn, ...]) -> tuple[Screened, ...]:
    """The instructions among these that must not run as they stand."""
    return tuple(
        Screened(insn.address, insn.size, Screening.EMULATE, "random number")
        for insn in insns
        if insn.size == 4 and _word(insn.raw) & ~31 in (_RNDR, _RNDRRS)
    )


def prepare(cpu: ArchCpu, insn: Insn) -> None:
    """Nothing runs in place here."""


def emulate(cpu: ArchCpu, insn: Insn) -> int:
    """Rndr with seeded bytes; NZCV cleared, as after success."""
    _set(cpu, _word(insn.raw) & 31, int.from_bytes(cpu.entropy(8), "little"))
    cpu.write_register("cpsr", cpu.read_register("cpsr") & ~0xF0000000)
    return insn.address + 4


def reads_counter(raw: bytes) -> bool:
    """True for reads of the virtual counter."""
    return len(raw) >= 4 and _word(raw) & ~31 in (_CNTVCT, _CNTVCTSS)


def emulate_trapped(cpu: ArchCpu, raw: bytes, pc: int) -> int | None:
    """Counter and identification registers; the address behind the instruction."""
    if len(raw) < 4:
        return None
    word = _word(raw)
    register = word & ~31
    if register in (_CNTVCT, _CNTVCTSS):
        value = cpu.counter()
    elif register == _CNTFRQ:
        value = _FREQUENCY
    elif word & _ID_MASK == _ID_REGISTERS:
        value = {_MIDR: 0x000F0510, _MPIDR: 0x80000000}.get(register, 0)
    else:
        return None
    _set(cpu, word & 31, value)
    return pc + 4


def _word(raw: bytes) -> int:
    (word,) = struct.unpack_from("<I", raw)
    return int(word)


def _set(cpu: ArchCpu, number: int, value: int) -> None:
    if number != _ZERO_REGISTER:
        cpu.write_register(f"x{number}", value)
