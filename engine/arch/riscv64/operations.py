"""RISC-V instructions carried out in software: those that read or write pc.

Source: The RISC-V Instruction Set Manual, volume I (20191213), sections 2.4 and 2.5. Linux
simulates the same ones (arch/riscv/kernel/probes/simulate-insn.c).
"""

from collections.abc import Callable
from typing import Final

from engine.arch.plan import Operation, StepCpu
from engine.arch.riscv64.decode import (
    MASK,
    NAMES,
    ZERO,
    InsnKind,
    branch_target,
    i_immediate,
    rd,
    rs1,
    rs2,
    u_immediate,
)

_SIGN: Final = 1 << 63

_CONDITIONS: Final[dict[int, tuple[str, Callable[[int, int], bool]]]] = {
    0: ("equals", lambda left, right: left == right),
    1: ("differs from", lambda left, right: left != right),
    4: ("is less than", lambda left, right: left ^ _SIGN < right ^ _SIGN),
    5: ("is not less than", lambda left, right: left ^ _SIGN >= right ^ _SIGN),
    6: ("is below", lambda left, right: left < right),
    7: ("is not below", lambda left, right: left >= right),
}
"""By funct3: in words, and for two unsigned values of 64 bits."""


def _read(cpu: StepCpu, number: int) -> int:
    return cpu.read_register(NAMES[number]) if number else 0


def _jump(word: int, address: int, size: int) -> Operation:
    target = branch_target(word, InsnKind.JAL, address)
    assert target is not None
    link = rd(word)
    if link == ZERO:
        return Operation(f"jump to {target:#x}", lambda cpu: target)
    name, behind = NAMES[link], address + size & MASK

    def run(cpu: StepCpu) -> int:
        cpu.write_register(name, behind)
        return target

    return Operation(f"put the return address {behind:#x} in {name}, jump to {target:#x}", run)


def _indirect(word: int, address: int, size: int) -> Operation:
    base, link, offset = rs1(word), rd(word), i_immediate(word)
    where = f"the address in {NAMES[base]}"
    if offset:
        where += f" {'+' if offset > 0 else '-'} {abs(offset):#x}"
    if link == ZERO:
        return Operation(f"jump to {where}", lambda cpu: _read(cpu, base) + offset & MASK & ~1)
    name, behind = NAMES[link], address + size & MASK

    def run(cpu: StepCpu) -> int:
        target = _read(cpu, base) + offset & MASK & ~1  # first: it may be the same register
        cpu.write_register(name, behind)
        return target

    return Operation(f"put the return address {behind:#x} in {name}, jump to {where}", run)


def _conditional(word: int, address: int, size: int) -> Operation:
    target = branch_target(word, InsnKind.BRANCH, address)
    assert target is not None
    behind = address + size & MASK
    left, right = rs1(word), rs2(word)
    text, holds = _CONDITIONS[word >> 12 & 7]

    def run(cpu: StepCpu) -> int:
        return target if holds(_read(cpu, left), _read(cpu, right)) else behind

    return Operation(f"jump to {target:#x} if {NAMES[left]} {text} {NAMES[right]}", run)


def _address(word: int, address: int, size: int) -> Operation:
    number, value = rd(word), address + u_immediate(word) & MASK
    name, behind = NAMES[number], address + size & MASK

    def run(cpu: StepCpu) -> int:
        if number:
            cpu.write_register(name, value)
        return behind

    return Operation(f"put {value:#x} in {name}", run)


_MAKERS: Final[dict[InsnKind, Callable[[int, int, int], Operation]]] = {
    InsnKind.JAL: _jump,
    InsnKind.JALR: _indirect,
    InsnKind.BRANCH: _conditional,
    InsnKind.AUIPC: _address,
}

EMULATED: Final = frozenset(_MAKERS)
"""The kinds that `operation` knows."""


def operation(word: int, address: int, size: int, kind: InsnKind) -> Operation:
    """Return what carries out an instruction of a kind in EMULATED.

    Args:
        word: the instruction, expanded.
        address: where it stands.
        size: its bytes: 2 or 4.
        kind: what it is.
    """
    return _MAKERS[kind](word, address, size)
