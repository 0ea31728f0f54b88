"""Instructions that Linux's uprobes take for others, and what they do instead.

After the checks Linux goes by one opcode byte alone (OPCODE1 in arch/x86/kernel/uprobes.c). Of an
instruction with VEX, EVEX, XOP or REX2 that is the last byte of its opcode, whatever its map.
"""

from typing import Final

from msgspec import Struct

from engine.arch import uprobe_faults as faults
from engine.arch.plan import Fixup, Operation
from engine.arch.uprobe_faults import UprobeFault
from engine.arch.x86_64.decode import LEGACY, REP, Decoded, decode
from engine.arch.x86_64.operations import do_nothing, operation
from engine.arch.x86_64.verdicts import Rex2

_NOP: Final = 0x90
_TAKEN_FOR: Final = {
    **dict.fromkeys((0xE9, 0xEB, *range(0x70, 0x80)), faults.JUMP),
    0xE8: faults.CALL,
    _NOP: faults.NOP,
    **dict.fromkeys((0xC2, 0xC3, 0xCA, 0xCB), faults.RETURN),
    0x9D: faults.POPF,
}
_COPIED: Final = {faults.RETURN.rule: Fixup.STRANDED, faults.POPF.rule: Fixup.STEP_FLAG}
"""Faults whose instruction is copied, with what is wrong behind the copy."""


class Mistake(Struct, frozen=True):
    """An instruction that is taken for another one.

    Attributes:
        fault: of which kind.
        wrong: what Linux does, in words that follow "Linux".
        size: bytes of the instruction.
        operation: what is emulated in its place; None if a copy of it is stepped. Linux does not
            look for an operand relative to rip then (riprel_analyze is left out).
        fixups: behind the copy.
    """

    fault: UprobeFault
    wrong: str
    size: int
    operation: Operation | None
    fixups: tuple[Fixup, ...] = ()

    @property
    def refused(self) -> bool:
        """True if strict mode takes no probe there."""
        return self.fault.strict == faults.REFUSES


def mistake(insn: Decoded, raw: bytes, address: int) -> Mistake | None:
    """The mistake that Linux makes of an instruction; None if it makes none."""
    key = insn.key
    if insn.encoding == LEGACY:
        if key != _NOP or not insn.base_high or insn.prefixes & REP:
            return None
        fault = faults.XCHG
        return Mistake(fault, fault.text(), insn.size, do_nothing(insn, address))
    found = _TAKEN_FOR.get(key & 0xFF)
    if found is None:
        return None
    wrong, fixup = found.text(key & 0xFF), _COPIED.get(found.rule)
    if fixup is None:
        return Mistake(found, wrong, insn.size, _emulation(insn, raw, address))
    fixups = (fixup,) if fixup is Fixup.STRANDED else (Fixup.IP, fixup)
    return Mistake(found, wrong, insn.size, None, fixups)


def mistaken_rex2(insn: Rex2, raw: bytes, address: int) -> Mistake | None:
    """The same of an instruction with REX2 that is emulated; None for any other."""
    opcode = insn.opcode
    if _TAKEN_FOR.get(opcode) not in (faults.JUMP, faults.CALL, faults.NOP):
        return None
    at = raw.index(b"\xd5")
    payload = raw[at + 1]
    rex = bytes([0x40 | payload & 0xF])
    second = payload >> 7
    likened = decode(raw[:at] + rex + b"\x0f" * second + raw[at + 2 :])
    if likened is None:
        return None
    longer = 0 if second else 1  # REX2 is a byte longer than REX; the escape 0f is part of it
    size = likened.size + longer
    moved = likened.immediate_at + longer if likened.immediate_size else -1
    insn_here = likened._replace(size=size, immediate_at=moved)
    wrong = faults.REX2.text(opcode)
    return Mistake(faults.REX2, wrong, size, _emulation(insn_here, raw, address))


def _emulation(insn: Decoded, raw: bytes, address: int) -> Operation:
    """The emulation of what the opcode byte means in the one-byte map."""
    opcode = insn.key & 0xFF
    if opcode == _NOP:
        return do_nothing(insn, address)
    done = operation(insn._replace(encoding=LEGACY, key=opcode), raw, address)
    assert done is not None, "it is a branch in that map"
    return done
