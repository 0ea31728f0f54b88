"""AArch64 instructions carried out in software: those that read or write pc.

Source: DDI 0487, chapter C6. Register 31 is the zero register in all of them. Linux simulates
the same ones (arch/arm64/kernel/probes/simulate-insn.c) and, as here, leaves BTYPE alone: it is
stale for one instruction. That matters to branches into guarded pages only, which guests do not
have, and finding out would make a hit three times as dear.
"""

from collections.abc import Callable
from typing import Final

from engine.arch.aarch64.decode import Kind, branch_target, signed
from engine.arch.plan import Operation, StepCpu

_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
_N, _Z, _C, _V = 1 << 31, 1 << 30, 1 << 29, 1 << 28
CONDITIONS: Final = (
    *("eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc"),
    *("hi", "ls", "ge", "lt", "gt", "le", "al", "nv"),
)


def holds(condition: int, flags: int) -> bool:
    """True if a condition holds for a value of cpsr; 14 and 15 always do (C1.2.4)."""
    pair = condition >> 1
    if pair == 0:
        result = flags & _Z != 0
    elif pair == 1:
        result = flags & _C != 0
    elif pair == 2:
        result = flags & _N != 0
    elif pair == 3:
        result = flags & _V != 0
    elif pair == 4:
        result = flags & (_C | _Z) == _C
    elif pair == 5:
        result = (flags & _N != 0) == (flags & _V != 0)
    elif pair == 6:
        result = not flags & _Z and (flags & _N != 0) == (flags & _V != 0)
    else:
        return True
    return result != bool(condition & 1)


def _read(cpu: StepCpu, number: int) -> int:
    return cpu.read_register(f"x{number}") if number != 31 else 0


def _write(cpu: StepCpu, number: int, value: int) -> None:
    if number != 31:
        cpu.write_register(f"x{number}", value)


def _name(number: int, wide: bool = True) -> str:
    if number == 31:
        return "xzr" if wide else "wzr"
    return f"{'x' if wide else 'w'}{number}"


def _branch(word: int, address: int, kind: Kind) -> Operation:
    target = branch_target(word, kind, address)
    assert target is not None
    behind = address + 4 & _MASK
    if kind is Kind.B:
        return Operation(f"jump to {target:#x}", lambda cpu: target)

    def link(cpu: StepCpu) -> int:
        cpu.write_register("x30", behind)
        return target

    return Operation(f"put the return address {behind:#x} in x30, jump to {target:#x}", link)


def _conditional(word: int, address: int, kind: Kind) -> Operation:
    target = branch_target(word, kind, address)
    assert target is not None
    behind = address + 4 & _MASK
    number = word & 31
    inverted = bool(word & 1 << 24)
    if kind is Kind.B_COND:
        condition = word & 15

        def by_flags(cpu: StepCpu) -> int:
            return target if holds(condition, cpu.read_register("cpsr")) else behind

        run, when = by_flags, f"the flags say {CONDITIONS[condition]}"
    else:
        if kind is Kind.CBZ:
            wide = bool(word >> 31)
            mask = _MASK if wide else 0xFFFF_FFFF
            when = f"{_name(number, wide)} is {'not ' if inverted else ''}zero"
        else:
            bit = word >> 26 & 32 | word >> 19 & 31
            mask = 1 << bit
            when = f"bit {bit} of {_name(number, bit > 31)} is {'set' if inverted else 'clear'}"

        def by_register(cpu: StepCpu) -> int:
            return target if (_read(cpu, number) & mask != 0) == inverted else behind

        run = by_register
    return Operation(f"jump to {target:#x} if {when}", run)


def _pc(value: int) -> int:
    """The new pc: user addresses lose their tag (D1.2.2, BranchAddr with TBI0 set)."""
    return value if value >> 55 & 1 else value & (1 << 56) - 1


def _indirect(word: int, address: int, kind: Kind) -> Operation:
    number = word >> 5 & 31
    name = _name(number)
    if kind is not Kind.BLR:
        verb = "return" if kind is Kind.RET else "jump"
        return Operation(f"{verb} to the address in {name}", lambda cpu: _pc(_read(cpu, number)))
    behind = address + 4 & _MASK

    def link(cpu: StepCpu) -> int:
        target = _pc(_read(cpu, number))  # first: it may be x30
        cpu.write_register("x30", behind)
        return target

    return Operation(
        f"put the return address {behind:#x} in x30, jump to the address in {name}", link
    )


def _address(word: int, address: int, kind: Kind) -> Operation:
    offset = signed(word, 5, 19) << 2 | word >> 29 & 3
    if kind is Kind.ADRP:
        value = (address & ~0xFFF) + (offset << 12) & _MASK
    else:
        value = address + offset & _MASK
    number = word & 31
    behind = address + 4 & _MASK

    def run(cpu: StepCpu) -> int:
        _write(cpu, number, value)
        return behind

    return Operation(f"put {value:#x} in {_name(number)}", run)


def _literal(word: int, address: int, kind: Kind) -> Operation:
    source = address + 4 * signed(word, 5, 19) & _MASK
    number = word & 31
    extend = kind is Kind.LDRSW_LITERAL
    wide = not extend and bool(word & 1 << 30)
    size = 8 if wide else 4
    behind = address + 4 & _MASK

    def run(cpu: StepCpu) -> int:
        data = cpu.load(source, size)
        _write(cpu, number, int.from_bytes(data, "little", signed=extend) & _MASK)
        return behind

    what = f"the {size} bytes at {source:#x}{' with their sign' if extend else ''}"
    return Operation(f"load {what} into {_name(number, wide or extend)}", run)


def _nothing(word: int, address: int, kind: Kind) -> Operation:
    behind = address + 4 & _MASK
    return Operation("do nothing", lambda cpu: behind)


_MAKERS: Final[dict[Kind, Callable[[int, int, Kind], Operation]]] = {
    Kind.B: _branch,
    Kind.BL: _branch,
    Kind.B_COND: _conditional,
    Kind.CBZ: _conditional,
    Kind.TBZ: _conditional,
    Kind.BR: _indirect,
    Kind.BLR: _indirect,
    Kind.RET: _indirect,
    Kind.ADR: _address,
    Kind.ADRP: _address,
    Kind.LDR_LITERAL: _literal,
    Kind.LDRSW_LITERAL: _literal,
    Kind.NOP: _nothing,
}

EMULATED: Final = frozenset(_MAKERS)
"""The kinds that `operation` knows."""


def operation(word: int, address: int, kind: Kind) -> Operation:
    """Return what carries out an instruction of a kind in EMULATED that stands at an address."""
    return _MAKERS[kind](word, address, kind)
