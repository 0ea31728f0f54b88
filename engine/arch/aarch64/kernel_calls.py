"""Calls of AArch64 kernel functions: AAPCS64, the current task in sp_el0."""

from typing import Final

from engine.arch.kernelcalls import CallCpu, CalledMemory, KernelCalls
from engine.arch.kernelsites import ExceptionEntry

_SP_EL0, _TPIDR_EL1, _DAIF = 0xD5384100, 0xD538D080, 0xD53B4220
_CURRENT_EL: Final = 0xD5384240
_MASKED: Final = 0xC0  # interrupts are off
_SKIPPED: Final = (0xD50340DF, 0xD50340FF)  # msr daifset, daifclr; the operand is in bits 8 to 11
_SET_DAIF: Final = 0xD51B4220
_LEVEL_1: Final = 4
_ZERO_REGISTER: Final = 31
_EFAULT: Final = (1 << 64) - 14

# asm/asm-extable.h; the numbers of 5.17 to 5.19 mean the same, or have the fixup alone.
_UACCESS, _KACCESS, _ZEROPAD = 2, 3, 4


def _start(cpu: CallCpu, percpu: int, task: int) -> None:
    return


def _fix_up(cpu: CallCpu, memory: CalledMemory, entry: ExceptionEntry, address: int) -> None:
    """Carry out arch/arm64/mm/extable.c, fixup_exception; before 5.17 only the fixup counts."""
    kind, data = entry.data & 0xFFFF, entry.data >> 16 & 0xFFFF
    first, second = data & 31, data >> 5 & 31
    if kind in (_UACCESS, _KACCESS):
        for register, value in ((first, _EFAULT), (second, 0)):
            if register != _ZERO_REGISTER:
                cpu.write_register(f"x{register}", value)
    elif kind == _ZEROPAD:
        at = cpu.read_register(f"x{second}")
        word = int.from_bytes(memory.read(at & -8, 8), "little")
        cpu.write_register(f"x{first}", word >> 8 * (at & 7))
    cpu.write_register("pc", entry.fixup)


def _emulate(cpu: CallCpu, raw: bytes, task: int) -> int:
    word = int.from_bytes(raw[:4], "little")
    values = {_SP_EL0: task, _TPIDR_EL1: 0, _DAIF: _MASKED, _CURRENT_EL: _LEVEL_1}
    if word & ~31 in values:
        if word & 31 != 31:
            cpu.write_register(f"x{word & 31}", values[word & ~31])
        return 4
    return 4 if word & ~0xF00 in _SKIPPED or word & ~31 == _SET_DAIF else 0


CALLS: Final = KernelCalls(
    arguments=tuple(f"x{number}" for number in range(8)),
    results=("x0", "x1"),
    large_result="x8",
    large_by_address=True,
    link="x30",
    trap=bytes.fromhex("000020d4"),
    trapped_at=0,
    heap=0xFFFF_0000_0010_0000,
    user=0x2000_0000_0000,
    start=_start,
    emulate=_emulate,
    fix_up=_fix_up,
)
