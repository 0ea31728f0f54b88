"""x86-64 instructions carried out in software: those that read or write the instruction pointer.

Sources: Intel SDM volumes 1 and 2; AMD APM volume 3 for near returns and indirect branches with
an operand-size prefix, which go to 16-bit addresses there and in the emulator. Relative
branches ignore that prefix, as on Intel processors and in Linux. Far transfers have no
operation: the emulator refuses every one at user level, in a slot as in place.
"""

from collections.abc import Callable
from typing import Final

from engine.arch.machine import RegisterFile
from engine.arch.plan import Operation, StepCpu
from engine.arch.x86_64.decode import ADDRESS_SIZE, FS, GS, OPERAND_SIZE, REP, Decoded

_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
_LOW: Final = 0xFFFF_FFFF
NAMES: Final = (
    *("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"),
    *(f"r{number}" for number in range(8, 16)),
)
"""General registers in the order of their numbers."""

_CONDITIONS: Final = ("o", "no", "b", "ae", "e", "ne", "be", "a")
_SIGNED: Final = ("s", "ns", "p", "np", "l", "ge", "le", "g")
CONDITIONS: Final = _CONDITIONS + _SIGNED
"""Suffixes of conditional instructions in the order of their numbers."""

_CARRY, _PARITY, _ZERO, _SIGN, _OVERFLOW = 1, 4, 0x40, 0x80, 0x800
_MASKS: Final = (_OVERFLOW, _CARRY, _ZERO, _CARRY | _ZERO, _SIGN, _PARITY)
_RESUME, _VIRTUAL = 1 << 16, 1 << 17
_USER_FLAGS: Final = 0x244DD5
"""Flags that popf changes at user level with IOPL 0: CF PF AF ZF SF TF DF OF NT AC ID."""
_FIXED_FLAGS: Final = 2

_Run = Callable[[StepCpu], int]
_Address = Callable[[RegisterFile], int]


def holds(condition: int, flags: int) -> bool:
    """True if a condition (0-15) holds for a value of eflags (SDM volume 1, appendix B)."""
    pair = condition >> 1
    if pair < 6:
        result = flags & _MASKS[pair] != 0
    else:
        result = (flags & _SIGN != 0) != (flags & _OVERFLOW != 0)
        if pair == 7:
            result = result or flags & _ZERO != 0
    return result != bool(condition & 1)


def relative_target(insn: Decoded, raw: bytes, address: int) -> int:
    """Target of a branch relative to its end."""
    at = insn.immediate_at
    distance = int.from_bytes(raw[at : at + insn.immediate_size], "little", signed=True)
    return address + insn.size + distance & _MASK


def operation(insn: Decoded, raw: bytes, address: int) -> Operation | None:
    """Emulation of an instruction in software; None for one that has no need of it."""
    build = _BUILDERS.get(insn.key)
    return build(insn, raw, address) if build is not None and not insn.encoding else None


def is_nop(insn: Decoded) -> bool:
    """True if it is a no-operation by name: 90 without F3 or REX.B, 0f 1f /0."""
    if insn.encoding:
        return False
    if insn.key == 0x90:
        return not insn.base_high and not insn.prefixes & REP
    return insn.key == 0x11F and not insn.reg and not insn.rex & 4


def do_nothing(insn: Decoded, address: int) -> Operation:
    """A no-operation."""
    behind = address + insn.size & _MASK
    return Operation(f"do nothing, go on at {behind:#x}", lambda cpu: behind)


def push_register(insn: Decoded, address: int) -> Operation:
    """Push of a 64-bit register; `push rsp` stores the value before."""
    behind = address + insn.size & _MASK
    name = NAMES[insn.key & 7 | insn.base_high << 3]

    def run(cpu: StepCpu) -> int:
        _push(cpu, cpu.read_register(name), 8)
        return behind

    return Operation(f"push {name}", run, 8)


def _push(cpu: StepCpu, value: int, size: int) -> None:
    top = cpu.read_register("rsp") - size & _MASK
    cpu.store(top, (value & (1 << 8 * size) - 1).to_bytes(size, "little"))
    cpu.write_register("rsp", top)


def _load(cpu: StepCpu, address: int, size: int) -> int:
    return int.from_bytes(cpu.load(address, size), "little")


def _near_size(insn: Decoded) -> int:
    """Bytes of the instruction pointer that a near return or indirect branch moves."""
    return 2 if insn.prefixes & OPERAND_SIZE and not insn.wide else 8


def _jump(insn: Decoded, raw: bytes, address: int) -> Operation:
    target = relative_target(insn, raw, address)
    return Operation(f"jump to {target:#x}", lambda cpu: target)


def _call(insn: Decoded, raw: bytes, address: int) -> Operation:
    target = relative_target(insn, raw, address)
    behind = address + insn.size & _MASK

    def run(cpu: StepCpu) -> int:
        _push(cpu, behind, 8)
        return target

    return Operation(f"push the return address {behind:#x}, jump to {target:#x}", run, 8)


def _conditional(insn: Decoded, raw: bytes, address: int) -> Operation:
    target = relative_target(insn, raw, address)
    behind = address + insn.size & _MASK
    condition = insn.key & 15

    def run(cpu: StepCpu) -> int:
        return target if holds(condition, cpu.read_register("eflags")) else behind

    text = f"jump to {target:#x} if the flags say {CONDITIONS[condition]}, else go on"
    return Operation(f"{text} at {behind:#x}", run)


def _loop(insn: Decoded, raw: bytes, address: int) -> Operation:
    target = relative_target(insn, raw, address)
    if insn.prefixes & OPERAND_SIZE and not insn.wide:
        target &= 0xFFFF
    behind = address + insn.size & _MASK
    mask, name = (_LOW, "ecx") if insn.prefixes & ADDRESS_SIZE else (_MASK, "rcx")
    key = insn.key
    if key == 0xE3:

        def if_zero(cpu: StepCpu) -> int:
            return behind if cpu.read_register("rcx") & mask else target

        return Operation(f"jump to {target:#x} if {name} is 0, else go on at {behind:#x}", if_zero)

    def run(cpu: StepCpu) -> int:
        count = cpu.read_register("rcx") - 1 & mask
        cpu.write_register("rcx", count)
        if not count:
            return behind
        if key != 0xE2 and (cpu.read_register("eflags") & _ZERO != 0) != (key == 0xE1):
            return behind
        return target

    also = {0xE0: " and ZF is clear", 0xE1: " and ZF is set", 0xE2: ""}[key]
    text = (
        f"count {name} down, jump to {target:#x} if it is not 0{also}, else go on at {behind:#x}"
    )
    return Operation(text, run)


def _return(insn: Decoded, raw: bytes, address: int) -> Operation:
    size = _near_size(insn)
    extra = _immediate_word(insn, raw)

    def run(cpu: StepCpu) -> int:
        top = cpu.read_register("rsp")
        target = _load(cpu, top, size)
        cpu.write_register("rsp", top + size + extra & _MASK)
        return target

    return Operation("pop the return address, jump to it" + _dropped(extra), run)


def _immediate_word(insn: Decoded, raw: bytes) -> int:
    at = insn.immediate_at
    return int.from_bytes(raw[at : at + 2], "little") if insn.immediate_size else 0


def _dropped(extra: int) -> str:
    return f", drop {extra:#x} bytes" if extra else ""


def _group_five(insn: Decoded, raw: bytes, address: int) -> Operation | None:
    """Ff /2 and /4: indirect near calls and jumps."""
    if insn.reg not in (2, 4):
        return None
    size = _near_size(insn)
    behind = address + insn.size & _MASK
    calls = insn.reg == 2
    if insn.memory:
        where, what = operand_address(insn, raw, address)

        def target_of(cpu: StepCpu) -> int:
            return _load(cpu, where(cpu), size)

        what = f"the address in {what}"
    else:
        name = NAMES[insn.modrm & 7 | insn.base_high << 3]
        mask = (1 << 8 * size) - 1

        def target_of(cpu: StepCpu) -> int:
            return cpu.read_register(name) & mask

        what = name
    if not calls:
        return Operation(f"jump to {what}", target_of)

    def run(cpu: StepCpu) -> int:
        target = target_of(cpu)  # before the push: it may depend on rsp or stand below it
        _push(cpu, behind, size)
        return target

    return Operation(f"push the return address {behind:#x}, jump to {what}", run, size)


def operand_address(insn: Decoded, raw: bytes, address: int) -> tuple[_Address, str]:
    """Computation of the address of a memory operand, by the registers, and its text."""
    mod, rm = insn.modrm >> 6, insn.modrm & 7
    at = insn.displacement_at
    size = insn.displacement_size
    constant = int.from_bytes(raw[at : at + size], "little", signed=True) if size else 0
    base = index = None
    scale = 1
    if insn.rip_relative:
        constant += address + insn.size
    elif rm == 4:
        number = insn.sib >> 3 & 7 | insn.index_high << 3
        if number != 4:
            index = NAMES[number]
            scale = 1 << (insn.sib >> 6)
        if mod or insn.sib & 7 != 5:
            base = NAMES[insn.sib & 7 | insn.base_high << 3]
    else:
        base = NAMES[rm | insn.base_high << 3]
    mask = _LOW if insn.prefixes & ADDRESS_SIZE else _MASK
    segment = "fs_base" if insn.prefixes & FS else "gs_base" if insn.prefixes & GS else None

    def where(cpu: RegisterFile) -> int:
        total = constant
        if base is not None:
            total += cpu.read_register(base)
        if index is not None:
            total += cpu.read_register(index) * scale
        total &= mask
        if segment is not None:
            total += cpu.read_register(segment)
        return total & _MASK

    terms = [term for term in (segment, base, f"{index}*{scale}" if index else None) if term]
    if not terms:
        return where, f"[{constant & mask:#x}]"
    if constant:
        terms.append(f"{constant & mask:#x}" if constant > 0 else f"-{-constant:#x}")
    return where, "[" + "+".join(terms).replace("+-", "-") + "]"


def _push_flags(insn: Decoded, raw: bytes, address: int) -> Operation:
    size = _near_size(insn)
    behind = address + insn.size & _MASK

    def run(cpu: StepCpu) -> int:
        _push(cpu, cpu.read_register("eflags") & ~(_RESUME | _VIRTUAL), size)
        return behind

    return Operation("push the flags", run, size)


def _pop_flags(insn: Decoded, raw: bytes, address: int) -> Operation:
    size = _near_size(insn)
    behind = address + insn.size & _MASK
    changes = _USER_FLAGS & (1 << 8 * size) - 1

    def run(cpu: StepCpu) -> int:
        top = cpu.read_register("rsp")
        new = _load(cpu, top, size)
        old = cpu.read_register("eflags") & ~_RESUME
        cpu.write_register("eflags", old & ~changes | new & changes | _FIXED_FLAGS)
        cpu.write_register("rsp", top + size & _MASK)
        return behind

    return Operation("pop what a program may set of the flags", run)


_BUILDERS: Final[dict[int, Callable[[Decoded, bytes, int], Operation | None]]] = {
    0x9C: _push_flags,
    0x9D: _pop_flags,
    0xC2: _return,
    0xC3: _return,
    0xE8: _call,
    0xE9: _jump,
    0xEB: _jump,
    0xFF: _group_five,
    **dict.fromkeys((0xE0, 0xE1, 0xE2, 0xE3), _loop),
    **dict.fromkeys((*range(0x70, 0x80), *range(0x180, 0x190)), _conditional),
}
