"""Calls of AArch64 kernel functions: AAPCS64, the current task in sp_el0."""

from typing import Final

from engine.arch.kernelcalls import CallCpu, KernelCalls

_SP_EL0, _TPIDR_EL1, _DAIF = 0xD5384100, 0xD538D080, 0xD53B4220
_CURRENT_EL: Final = 0xD5384240
_MASKED: Final = 0xC0  # interrupts are off
_SKIPPED: Final = (0xD50340DF, 0xD50340FF)  # msr daifset, daifclr; the operand is in bits 8 to 11
_SET_DAIF: Final = 0xD51B4220
_LEVEL_1: Final = 4


def _start(cpu: CallCpu, percpu: int, task: int) -> None:
    return


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
    result="x0",
    link="x30",
    trap=bytes.fromhex("000020d4"),
    trapped_at=0,
    start=_start,
    emulate=_emulate,
)
