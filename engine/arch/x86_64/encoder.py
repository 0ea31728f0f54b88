"""Recorders in x86-64 code.

rax is for values: no register is free, and only rax can be saved without another one, at an
absolute address. Flags are saved by lahf and seto, which costs less than pushf and needs no stack,
and only where a recorder computes with them and the displaced instructions do not overwrite them
all the same; sums and the time are computed without. A filter that compares registers with
constants leaves the flags in rax.
"""

import struct
from collections.abc import Mapping
from typing import Final

from engine.arch.program import Compare
from engine.arch.recorder.encoder import Combination, NumberTest, RecorderRegisters, Shift, Way
from engine.arch.recording import CURSOR, NotCompilableError
from engine.arch.x86_64.liveness import overwrites_flags
from engine.arch.x86_64.operations import NAMES

RAX, RCX, RDX, RSP, RSI, RDI, R8, R9 = 0, 1, 2, 4, 6, 7, 8, 9
_RBP: Final = 5
"""As a base it has no form without an offset; nor has r13."""
FLAGS: Final = CURSOR + 16
"""Place of the flags in the save area."""

_REGISTERS: Final = RecorderRegisters(
    names={name: number for number, name in enumerate(NAMES)},
    pc="rip",
    sp=RSP,
    result=RAX,
    value=RAX,
    row=RCX,
    others=(RDX, RSI, RDI, R8, R9),
    popped=8,
    vectors={f"xmm{number}": number for number in range(16)},
)
_E, _NE, _TRAP = 4, 5, b"\xcc"
_UNSIGNED: Final = {
    Compare.EQ: _E,
    Compare.NE: _NE,
    Compare.LT: 2,
    Compare.LE: 6,
    Compare.GT: 7,
    Compare.GE: 3,
    Compare.AND: _NE,
}
"""Conditions of jumps; they come in pairs of opposites."""
_SIGNED: Final = {Compare.LT: 12, Compare.LE: 14, Compare.GT: 15, Compare.GE: 13}
_ADD, _MOV, _LEA, _TEST, _CMP = 0x01, 0x89, 0x8D, 0x85, 0x39
_OPCODES: Final = {
    Combination.SUB: 0x29,
    Combination.AND: 0x21,
    Combination.OR: 0x09,
    Combination.XOR: 0x31,
    Combination.AND_NOT: 0x21,
    Combination.OR_NOT: 0x09,
}
_INVERTED: Final = (Combination.AND_NOT, Combination.OR_NOT)
_CONSTANTS: Final = {Combination.AND: 4, Combination.XOR: 6}
_SHIFTS: Final = {Way.LEFT: 4, Way.RIGHT: 5, Way.ARITHMETIC: 7}
_NOT, _NEG = 2, 3
_LOADS: Final = {1: b"\x0f\xb6", 2: b"\x0f\xb7", 4: b"\x8b", 8: b"\x8b"}
_WORDS: Final = {1: "<b", 2: "<h", 4: "<i", 8: "<i"}


class X86Encoder:
    """Machine code with labels; jumps are near ones."""

    def __init__(self, save: int) -> None:
        """For a save area at an address."""
        self._save = save
        self._code = bytearray()
        self._labels: dict[str, int] = {}
        self._uses: list[tuple[int, str]] = []
        self._zero = -1, -1  # (offset, register): there flags say whether it is 0

    @property
    def registers(self) -> RecorderRegisters:
        """The same for all recorders."""
        return _REGISTERS

    @property
    def pieces(self) -> tuple[int, ...]:
        """As many bytes as a constant can be compared with."""
        return 4, 2, 1

    # -- a recorder's beginning and end ---------------------------------------------------

    def flags_free(self, window: bytes) -> bool:
        """As far as the displaced instructions say."""
        return overwrites_flags(window)

    def begin(self) -> None:
        """`mov` of rax."""
        self._absolute(self._save, store=True)

    def hold_flags(self) -> None:
        """`lahf; seto al`."""
        self._code += b"\x9f\x0f\x90\xc0"

    def keep(self, saved: Mapping[int, int], *, flags: bool) -> None:
        """Rax has the save area's address then."""
        if flags:
            self._absolute(self._save + FLAGS, store=True)
        self.constant(RAX, self._save)
        for register, offset in saved.items():
            if register != RAX:
                self.store(register, RAX, offset)

    def give_back(self, saved: Mapping[int, int], *, flags: bool) -> None:
        """The same in reverse."""
        self.constant(RAX, self._save)
        for register, offset in saved.items():
            if register != RAX:
                self.load(register, RAX, offset)
        if flags:
            self._absolute(self._save + FLAGS)

    def end(self, *, flags: bool) -> None:
        """`add al, 127` sets OF if it was set; `sahf` does the rest."""
        if flags:
            self._code += b"\x04\x7f\x9e"
        self._absolute(self._save)

    def finished(self) -> bytes:
        """With 32 bits of distance in each jump."""
        for at, name in self._uses:
            struct.pack_into("<i", self._code, at, self._labels[name] - at - 4)
        return bytes(self._code)

    # -- control --------------------------------------------------------------------------

    def label(self, name: str, /) -> int:
        """No code; flags are unknown behind it."""
        self._labels[name] = len(self._code)
        self._zero = -1, -1
        return len(self._code)

    def jump(self, name: str, /) -> None:
        """`jmp`."""
        self._code += b"\xe9"
        self._distance(name)

    def jump_if_zero(self, register: int, name: str, /, *, zero: bool = True) -> None:
        """`jz` or `jnz`, behind a `test` if flags say something else."""
        if self._zero != (len(self._code), register):
            self._two(_TEST, register, register)
        self._jump_on(_E if zero else _NE, name)

    def fits(self, value: int, size: int) -> bool:
        """Constants have 32 bits with a sign."""
        return -(1 << 31) <= _signed(value, size) < 1 << 31

    def jump_if(self, what: NumberTest, name: str, *, outcome: bool, spare: int) -> None:
        """`cmp` or `test` of the register's low bytes, and a conditional jump."""
        register, value, size = what.register, what.value, what.size
        bits = what.compare is Compare.AND
        if self.fits(value, size):
            rex = (0x48 if size == 8 else 0x40) | register >> 3
            opcode = (0xF7 if bits else 0x81) - (size == 1)
            form = 0xC0 | (0 if bits else 7) << 3 | register & 7
            self._code += (b"\x66" if size == 2 else b"") + bytes([rex, opcode, form])
            self._code += struct.pack(_WORDS[size], _signed(value, size))
        else:
            self.constant(spare, value)
            self._two(_TEST if bits else _CMP, spare, register)
        condition = (_SIGNED if what.signed else _UNSIGNED)[what.compare]
        self._jump_on(condition if outcome else condition ^ 1, name)

    def jump_if_bytes(
        self, base: int, offset: int, piece: bytes, name: str, *, equal: bool, spare: int
    ) -> None:
        """`cmp` of memory with a constant."""
        del spare
        if len(piece) == 2:
            self._code += b"\x66"
        self._operand(b"\x80" if len(piece) == 1 else b"\x81", 7, base, offset, 0)
        self._code += piece
        self._jump_on(_E if equal else _NE, name)

    def trap(self) -> None:
        """`int3`."""
        self._code += _TRAP

    # -- registers ------------------------------------------------------------------------

    def constant(self, register: int, value: int) -> None:
        """`mov` in its shortest form."""
        value &= (1 << 64) - 1
        size = 4 if value < 1 << 32 else 8
        rex = (size & 8) | register >> 3
        if rex:
            self._code.append(0x40 | rex)
        self._code.append(0xB8 | register & 7)
        self._code += value.to_bytes(size, "little")

    def move(self, target: int, source: int) -> None:
        """`mov`, unless they are the same."""
        if target != source:
            self._two(_MOV, source, target)

    def move_vector(self, target: int, source: int) -> None:
        """`movq`."""
        rex = 0x48 | (source >> 3) << 2 | target >> 3
        self._code += bytes((0x66, rex, 0x0F, 0x7E, 0xC0 | (source & 7) << 3 | target & 7))

    def add(self, target: int, source: int, value: int) -> None:
        """`lea`."""
        if value:
            self._operand(b"\x8d", target, source, value, 8)
        else:
            self.move(target, source)

    def combine(
        self, how: Combination, target: int, one: int, other: int, shift: Shift | None = None
    ) -> None:
        """`lea` for sums; `shl` and the like and `not` before the others."""
        if shift is not None:
            self._shift(_SHIFTS[shift.way], other, shift.bits)
        if how is Combination.ADD:
            self._sum(target, one, other)
            return
        opcode, source = _OPCODES[how], other
        if how in _INVERTED:
            self._unary(_NOT, other)
        if target != other:
            self.move(target, one)
        else:
            source = one
            if how is Combination.SUB:
                self._unary(_NEG, target)
                opcode = _ADD
        self._two(opcode, source, target)
        if how in _INVERTED and target != other:
            self._unary(_NOT, other)
        self._zero = len(self._code), target

    def combine_constant(self, how: Combination, register: int, value: int, spare: int) -> None:
        """With 32 bits of a constant and a sign, or another register."""
        signed = _signed(value, 8)
        if -(1 << 31) <= signed < 1 << 31:
            form = 0xC0 | _CONSTANTS[how] << 3 | register & 7
            self._code += bytes([0x48 | register >> 3, 0x81, form]) + struct.pack("<i", signed)
        else:
            self.constant(spare, value)
            self._two(_OPCODES[how], spare, register)
        self._zero = len(self._code), register

    def extract(
        self, target: int, source: int, low: int, width: int, *, signed: bool = False
    ) -> None:
        """`shl`, and `shr` or `sar`."""
        self.move(target, source)
        if low + width < 64:
            self._shift(4, target, 64 - low - width)
        if width < 64:
            self._shift(7 if signed else 5, target, 64 - width)
            self._zero = len(self._code), target

    def count_bytes(self, register: int) -> None:
        """`bsf; jnz; or 64; shr 3`: bsf leaves 0 as it is, and says so."""
        rex = 0x48 | (register >> 3) * 5
        self._code += bytes([rex, 0x0F, 0xBC, 0xC0 | (register & 7) * 9])
        self._code += bytes([0x75, 4, 0x48 | register >> 3, 0x83, 0xC8 | register & 7, 64])
        self._shift(5, register, 3)

    def return_address(self, register: int) -> int:
        """From the stack."""
        self.load(register, RSP, 0)
        return register

    # -- memory ---------------------------------------------------------------------------

    def load(self, register: int, base: int, offset: int, size: int = 8) -> None:
        """`mov` or `movzx`."""
        self._operand(_LOADS[size], register, base, offset, 8 * (size == 8))

    def store(self, register: int, base: int, offset: int) -> None:
        """`mov`."""
        self._operand(b"\x89", register, base, offset, 8)

    def load_pair(self, first: int, second: int, base: int) -> None:
        """`mov` twice."""
        self.load(first, base, 0)
        self.load(second, base, 8)

    def store_pair(self, first: int, second: int, base: int) -> None:
        """`mov` twice."""
        self.store(first, base, 0)
        self.store(second, base, 8)

    def differ(self, target: int, base: int, offset: int, size: int, value: int) -> None:
        """`mov` of the constant, `xor` with memory."""
        self.constant(target, value & (1 << 8 * size) - 1)
        self._operand(b"\x33", target, base, offset, 8 * (size == 8))

    def reach(self, register: int, offset: int) -> int:
        """No code: instructions have 32 bits of offset."""
        del register
        return offset

    def read(self, register: int, address: int, size: int = 8) -> None:
        """`mov` from an absolute address for rax, through the register itself for others."""
        if register == RAX:
            self._absolute(address, wide=size == 8)
        else:
            self.constant(register, address)
            self.load(register, register, 0, size)

    def write(self, address: int) -> None:
        """`mov` to an absolute address."""
        self._absolute(address, store=True)

    def increment(self, address: int) -> None:
        """In rax, by `lea`."""
        self._absolute(address)
        self.add(RAX, RAX, 1)
        self._absolute(address, store=True)

    def clock(self, time: int, spare: int) -> None:
        """By `not` and `lea`: minus x is not x plus 1."""
        self.constant(spare, time)
        self.load(RAX, spare, 8)
        self._unary(_NOT, RAX)
        self.load(spare, spare, 0)
        self._sum(RAX, RAX, spare, 1)

    # -- instructions ---------------------------------------------------------------------

    def _absolute(self, address: int, *, store: bool = False, wide: bool = True) -> None:
        """`mov` between rax (eax) and an absolute address."""
        if wide:
            self._code.append(0x48)
        self._code.append(0xA3 if store else 0xA1)
        self._code += address.to_bytes(8, "little")

    def _distance(self, name: str) -> None:
        self._uses.append((len(self._code), name))
        self._code += bytes(4)

    def _jump_on(self, condition: int, name: str) -> None:
        self._code += bytes((0x0F, 0x80 | condition))
        self._distance(name)

    def _operand(self, opcode: bytes, register: int, base: int, offset: int, wide: int) -> None:
        """An instruction with a register and `[base+offset]`; `wide`: 8 for 64 bits."""
        code, rex = self._code, wide | (register >> 3) << 2 | base >> 3
        if rex:
            code.append(0x40 | rex)
        code += opcode
        none, short = not offset and base & 7 != _RBP, -128 <= offset < 128
        code.append((0 if none else 0x40 if short else 0x80) | (register & 7) << 3 | base & 7)
        if base & 7 == RSP:
            code.append(0x24)
        if none:
            return
        if short:
            code.append(offset & 0xFF)
        elif -(1 << 31) <= offset < 1 << 31:
            code += offset.to_bytes(4, "little", signed=True)
        else:
            raise NotCompilableError(f"offset {offset:#x} has more than 32 bits")

    def _sum(self, target: int, base: int, index: int, offset: int = 0) -> None:
        """`lea` of base + index + offset, with an offset of 8 bits or none."""
        if index == RSP:
            base, index = index, base
        rex = 0x48 | (target >> 3) << 2 | (index >> 3) << 1 | base >> 3
        form, sib = 4 | (target & 7) << 3, (index & 7) << 3 | base & 7
        if not offset and base & 7 != _RBP:
            self._code += bytes([rex, _LEA, form, sib])
        else:
            self._code += bytes([rex, _LEA, 0x40 | form, sib, offset & 0xFF])

    def _two(self, opcode: int, register: int, other: int) -> None:
        """An instruction of 64 bits on two registers, `other` being ModRM.rm."""
        rex = 0x48 | (register >> 3) << 2 | other >> 3
        self._code += bytes([rex, opcode, 0xC0 | (register & 7) << 3 | other & 7])

    def _unary(self, extension: int, register: int) -> None:
        """`not` or `neg`."""
        self._code += bytes([0x48 | register >> 3, 0xF7, 0xC0 | extension << 3 | register & 7])

    def _shift(self, extension: int, register: int, count: int) -> None:
        form = 0xC0 | extension << 3 | register & 7
        self._code += bytes([0x48 | register >> 3, 0xC1, form, count])


def _signed(value: int, size: int) -> int:
    sign = 1 << 8 * size - 1
    return (value & 2 * sign - 1 ^ sign) - sign
