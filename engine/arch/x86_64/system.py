"""Instructions of x86-64 that look at tables of the system, go to a segment or raise exceptions.

Unicorn's tables are not those of Linux, and programs cannot read them. So what a program sees of
descriptors is told here, as are far returns, calls and jumps, which Unicorn ends with a page fault
at its own table. Sources: Intel SDM volumes 2 and 3 (5.4, 6.12); Linux's arch/x86/kernel/umip.c
for the instructions that store registers of the system, arch/x86/kernel/cpu/common.c (gdt_page)
and arch/x86/entry/vdso/vma.c (setup_getcpu) for the descriptors, arch/x86/kernel/idt.c for the
vectors.
"""

import struct
from typing import Final, NamedTuple

from engine.arch.machine import ArchCpu, Insn, TrapError
from engine.arch.x86_64.decode import LEGACY, LOCK, OPERAND_SIZE, Decoded, decode
from engine.arch.x86_64.operations import NAMES, operand_address

_ZERO: Final = 0x40
_PROTECTION: Final = 13
_WORD: Final = (1 << 64) - 1


class _UserSegment(NamedTuple):
    """A descriptor that programs may use: rights as lar gives them, limit as lsl does."""

    rights: int
    limit: int

    @property
    def is_code(self) -> bool:
        """True if it can be in cs."""
        return self.rights & 0x800 != 0

    @property
    def writable(self) -> bool:
        """True if it can be in ss, and verw says so."""
        return self.rights & 0xA00 == 0x200

    @property
    def is_wide(self) -> bool:
        """True if its code has 64 bits."""
        return self.rights & 0x200000 != 0


_SEGMENTS: Final = {
    0x20: _UserSegment(0xCFFB00, 0xFFFFFFFF),  # 32-bit code
    0x28: _UserSegment(0xCFF300, 0xFFFFFFFF),  # data
    0x30: _UserSegment(0xAFFB00, 0xFFFFFFFF),  # 64-bit code
    0x78: _UserSegment(0x40F500, 0),  # the limit tells of processor and node: 0
}
"""By selector without the requested privilege level; the others are of the kernel, or empty."""
_LAR, _LSL = 0x102, 0x103
_GROUP_6, _GROUP_7 = 0x100, 0x101
_SLDT, _STR, _VERR, _VERW = 0, 1, 4, 5
_SGDT, _SIDT, _SMSW = 0, 1, 4
STORED: Final = {
    (_GROUP_6, _SLDT): 0,
    (_GROUP_6, _STR): 0x40,
    (_GROUP_7, _SGDT): 0xFFFF_FFFF_FFFE_0000,
    (_GROUP_7, _SIDT): 0xFFFF_FFFF_FFFF_0000,
    (_GROUP_7, _SMSW): 0x8005_0033,
}
"""Linux's answers to the instructions that a processor with UMIP refuses."""


def known(raw: bytes) -> bool:
    """True for an instruction that looks at descriptors or system registers: see `carry_out`."""
    insn = decode(raw)
    if insn is None or insn.encoding != LEGACY:
        return False
    field = insn.reg
    if insn.key in (_LAR, _LSL) or (insn.key == _GROUP_6 and field in (_VERR, _VERW)):
        return True
    return (insn.key, field) in STORED and (insn.memory or insn.key == _GROUP_6 or field == _SMSW)


def carry_out(cpu: ArchCpu, insn: Insn) -> int:
    """Lar, lsl, verr, verw, sgdt, sidt, sldt, str or smsw; the address behind it."""
    decoded = decode(insn.raw)
    assert decoded is not None
    looks = decoded.key == _GROUP_6 and decoded.reg in (_VERR, _VERW)
    if looks or decoded.key in (_LAR, _LSL):
        _look(cpu, decoded, insn)
    else:
        _store(cpu, decoded, insn)
    return insn.address + insn.size


def _selector(cpu: ArchCpu, decoded: Decoded, raw: bytes, address: int) -> int:
    """The operand of 16 bits."""
    if decoded.memory:
        return int.from_bytes(
            cpu.read(operand_address(decoded, raw, address)[0](cpu), 2), "little"
        )
    return cpu.read_register(_rm(decoded)) & 0xFFFF


def _look(cpu: ArchCpu, decoded: Decoded, insn: Insn) -> None:
    segment = _SEGMENTS.get(_selector(cpu, decoded, insn.raw, insn.address) & ~3)
    if segment is not None and decoded.key == _GROUP_6 and decoded.reg == _VERW:
        segment = segment if segment.writable else None
    flags = cpu.read_register("eflags") & ~_ZERO
    cpu.write_register("eflags", flags | (_ZERO if segment is not None else 0))
    if segment is not None and decoded.key in (_LAR, _LSL):
        value = segment.rights if decoded.key == _LAR else segment.limit
        name = NAMES[decoded.reg | (decoded.rex & 4) << 1]
        if _size(decoded) == 2:
            value = cpu.read_register(name) & ~0xFFFF | value & 0xFFFF
        cpu.write_register(name, value)


def _store(cpu: ArchCpu, decoded: Decoded, insn: Insn) -> None:
    """Store as Linux does for a program (fixup_umip_exception)."""
    value = STORED[decoded.key, decoded.reg]
    if not decoded.memory:
        name, size = _rm(decoded), _size(decoded)
        mask = (1 << 8 * size) - 1  # a register keeps the rest of it, even that of 32 bits
        cpu.write_register(name, cpu.read_register(name) & ~mask | value & mask)
        return
    table = decoded.key == _GROUP_7 and decoded.reg != _SMSW
    data = struct.pack("<HQ", 0, value) if table else struct.pack("<H", value & 0xFFFF)
    cpu.write(operand_address(decoded, insn.raw, insn.address)[0](cpu), data)


def _rm(decoded: Decoded) -> str:
    return NAMES[decoded.modrm & 7 | decoded.base_high << 3]


def _size(decoded: Decoded) -> int:
    """Bytes of an operand."""
    return 8 if decoded.wide else 2 if decoded.prefixes & OPERAND_SIZE else 4


# -- exceptions -----------------------------------------------------------------------------

_INT, _INT1, _MOVE_TO_SEGMENT = 0xCD, 0xF1, 0x8E
_POPS: Final = frozenset({0x1A1, 0x1A9})
_LOADS: Final = frozenset({0x1B2, 0x1B4, 0x1B5})
"""Opcodes that load a segment register: the emulator can load nothing but null there."""
_REFUSED: Final = frozenset({0x107, 0x133})
"""Sysret and rdpmc."""
_CS: Final = 1
_CONTROLS: Final = frozenset((0, 2, 3, 4, 8))
_DEBUGS: Final = range(8)
_MOVES_OF_SYSTEM: Final = {0x120: _CONTROLS, 0x122: _CONTROLS, 0x121: _DEBUGS, 0x123: _DEBUGS}
"""Opcodes that move control and debug registers: numbers of those that there are."""
_UNDEFINED: Final = 6


def transferred(cpu: ArchCpu, raw: bytes, pc: int) -> int | None:
    """Carry out a far transfer that was refused, or say what a processor would raise instead.

    Args:
        cpu: with the program's rights to memory.
        raw: the instruction's bytes.
        pc: its address.

    Returns:
        Where control goes; None for another instruction.

    Raises:
        TrapError: the exception is another one, or has an error code.
        GuestFaultError: an operand is not there.
    """
    insn = decode(raw)
    if insn is None or insn.encoding != LEGACY or insn.prefixes & LOCK:
        return None
    key = insn.key
    if key in (_RETURN, _RETURN_AND_POP):
        return _return(cpu, insn, raw)
    if key == _IRET:
        return _interrupt_return(cpu, insn)
    if key == _GROUP_5 and insn.memory and insn.reg in (_CALL, _JUMP):
        return _branch(cpu, insn, raw, pc)
    if key == _INT:
        raise TrapError(_PROTECTION, raw[insn.immediate_at] << 3 | 2)
    if key == _INT1:
        cpu.write_register("rip", pc + insn.size)
        raise TrapError(1, own=True)
    if key in _REFUSED:
        raise TrapError(_PROTECTION)
    if key in _MOVES_OF_SYSTEM and insn.reg | (insn.rex & 4) << 1 not in _MOVES_OF_SYSTEM[key]:
        raise TrapError(_UNDEFINED)
    if key == _MOVE_TO_SEGMENT and insn.reg != _CS:
        raise TrapError(_PROTECTION, _selector(cpu, insn, raw, pc) & ~3)
    if key in _POPS:
        raise TrapError(_PROTECTION, _word(cpu, cpu.read_register("rsp"), 2) & ~3)
    if key in _LOADS and insn.memory:
        at = operand_address(insn, raw, pc)[0](cpu)
        raise TrapError(_PROTECTION, _word(cpu, at + _size(insn), 2) & ~3)
    return None


# -- far transfers --------------------------------------------------------------------------

_RETURN, _RETURN_AND_POP, _IRET, _GROUP_5 = 0xCB, 0xCA, 0xCF, 0xFF
_CALL, _JUMP = 3, 5
# Flags that iret changes at user level: those of popf, and RF.
_FLAGS, _FIXED_FLAGS = 0x254DD5, 2


def _word(cpu: ArchCpu, address: int, size: int) -> int:
    return int.from_bytes(cpu.read(address & _WORD, size), "little")


def _return(cpu: ArchCpu, insn: Decoded, raw: bytes) -> int:
    size, top = _size(insn), cpu.read_register("rsp")
    target, selector = _word(cpu, top, size), _word(cpu, top + size, size) & 0xFFFF
    _enter(selector, target, returns=True)
    at = insn.immediate_at
    more = int.from_bytes(raw[at : at + 2], "little") if insn.key == _RETURN_AND_POP else 0
    cpu.write_register("rsp", top + 2 * size + more & _WORD)
    return target


def interrupt_return(cpu: ArchCpu, raw: bytes) -> int:
    """Carry out iret; where control goes. TrapError where a processor refuses it."""
    insn = decode(raw)
    assert insn is not None
    return _interrupt_return(cpu, insn)


def _interrupt_return(cpu: ArchCpu, insn: Decoded) -> int:
    size, top = _size(insn), cpu.read_register("rsp")
    target, code, flags, stack, data = (_word(cpu, top + size * at, size) for at in range(5))
    _enter(code & 0xFFFF, target, returns=True)
    data &= 0xFFFF
    segment = _SEGMENTS.get(data & ~3)
    if segment is None or data & 3 != 3 or not segment.writable:
        raise TrapError(_PROTECTION, data & ~3)
    mask = _FLAGS & (1 << 8 * size) - 1
    cpu.write_register("eflags", cpu.read_register("eflags") & ~mask | flags & mask | _FIXED_FLAGS)
    cpu.write_register("rsp", stack)
    return target


def _branch(cpu: ArchCpu, insn: Decoded, raw: bytes, pc: int) -> int:
    """A far call or jump; with REX.W the address has 64 bits, as Intel's processors have it."""
    size, at = _size(insn), operand_address(insn, raw, pc)[0](cpu)
    target, selector = _word(cpu, at, size), _word(cpu, at + size, 2)
    _enter(selector, target, returns=False)
    if insn.reg == _CALL:
        back = (pc + insn.size) & (1 << 8 * size) - 1
        top = cpu.read_register("rsp") - 2 * size & _WORD
        cpu.write(top, back.to_bytes(size, "little") + (0x33).to_bytes(size, "little"))
        cpu.write_register("rsp", top)
    return target


def _enter(selector: int, target: int, *, returns: bool) -> None:
    """Refuse code that the program may not go to, or that has 32 bits."""
    segment = _SEGMENTS.get(selector & ~3)
    lower = returns and selector & 3 != 3
    if segment is None or not segment.is_code or lower or not segment.is_wide:
        raise TrapError(_PROTECTION, selector & ~3)
    if target >> 47 not in (0, 0x1FFFF):
        raise TrapError(_PROTECTION)
