"""Recorders in AArch64 code.

x16 and x17 are free where a jump leads to a detour (`engine.arch.aarch64.relocate.needs`), and
saved by whoever leads the guest there from a breakpoint, so that nothing has to be saved before
registers are looked at. Flags are left alone: what is to be known of a
difference is its sign, or whether it is zero.
"""

import struct
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from engine.arch.aarch64.encode import bitmask, constant
from engine.arch.program import Compare
from engine.arch.recorder.encoder import Combination, NumberTest, RecorderRegisters, Shift, Way
from engine.arch.recording import SCRATCH, NotCompilableError

TEMPORARY, VALUE, ROW, SP, LINK = 16, 17, 15, 31, 30

_REGISTERS: Final = RecorderRegisters(
    names={**{f"x{number}": number for number in range(31)}, "sp": SP},
    pc="pc",
    sp=SP,
    result=0,
    value=VALUE,
    row=ROW,
    others=(14, 13, 12, 11),
    free=frozenset({TEMPORARY, VALUE}),
    temporary=TEMPORARY,
    vectors={f"v{number}": number for number in range(32)},
)
_LED: Final = replace(
    _REGISTERS, free=frozenset(), entered={TEMPORARY: SCRATCH, VALUE: SCRATCH + 8}
)
"""The same where a breakpoint has led there."""
_B, _CBZ, _CBNZ, _TBZ63, _TBNZ63 = 0x14000000, 0xB4000000, 0xB5000000, 0xB6F80000, 0xB7F80000
_TRAP: Final = 0xD42000C0
"""`brk` as breakpoints of kprobes have it."""
_OPCODES: Final = {
    Combination.ADD: 0x8B000000,
    Combination.SUB: 0xCB000000,
    Combination.AND: 0x8A000000,
    Combination.OR: 0xAA000000,
    Combination.XOR: 0xCA000000,
    Combination.AND_NOT: 0x8A200000,
    Combination.OR_NOT: 0xAA200000,
}
_CONSTANTS: Final = {Combination.AND: 0x92000000, Combination.XOR: 0xD2000000}
_SHIFTS: Final = {Way.LEFT: 0, Way.RIGHT: 1 << 22, Way.ARITHMETIC: 2 << 22}
_EXTENDED: Final = 0x200000
"""Set in `add` and `sub` whose first register may be sp, and whose second is extended."""
_WHOLE: Final = 3 << 13
"""All 64 bits of the second."""
_SIGN: Final = 4 << 13
_SIZES: Final = {1: 0 << 13, 2: 1 << 13, 4: 2 << 13}
_SCALED: Final = {1: 0x39400000, 2: 0x79400000, 4: 0xB9400000, 8: 0xF9400000}
_UNSCALED: Final = {1: 0x38400000, 2: 0x78400000, 4: 0xB8400000, 8: 0xF8400000}
_LOAD_PAIR, _STORE_PAIR = 0xA9400000, 0xA9000000
_OPPOSITE: Final = {Compare.GE: Compare.LT, Compare.LE: Compare.GT, Compare.EQ: Compare.NE}
_MOST: Final = 1 << 12
"""Immediates of `add` and `sub` are below, as are those of loads and stores, in units of size."""


class Aarch64Encoder:
    """Machine code with labels."""

    def __init__(self, save: int, *, led: bool = False) -> None:
        """For a save area at an address; `led` by a breakpoint, x16 and x17 are given back."""
        self._save = save
        self._led = led
        self._words: list[int] = []
        self._labels: dict[str, int] = {}
        self._uses: list[tuple[int, str]] = []

    @property
    def registers(self) -> RecorderRegisters:
        """The same for all recorders, but for who needs x16 and x17."""
        return _LED if self._led else _REGISTERS

    @property
    def pieces(self) -> tuple[int, ...]:
        """As many bytes as a register has, and fewer."""
        return 8, 4, 2, 1

    # -- a recorder's beginning and end ---------------------------------------------------

    def flags_free(self, window: bytes) -> bool:
        """No instruction here changes any."""
        del window
        return True

    def begin(self) -> None:
        """No code: x17 is free, or has been saved."""

    def hold_flags(self) -> None:
        """No code: they stay where they are."""

    def keep(self, saved: Mapping[int, int], *, flags: bool) -> None:
        """`stp`, as far as registers lie side by side, and `str`."""
        del flags
        self.constant(TEMPORARY, self._save)
        self._pairs(saved, _STORE_PAIR, 0xF9000000)

    def give_back(self, saved: Mapping[int, int], *, flags: bool) -> None:
        """`ldp` and `ldr`."""
        del flags
        self.constant(TEMPORARY, self._save)
        self._pairs(saved, _LOAD_PAIR, 0xF9400000)

    def end(self, *, flags: bool) -> None:
        """`ldp` of both, or x17 does not keep the cursor, which hangs on the host's time."""
        del flags
        if self._led:
            self.constant(TEMPORARY, self._save + SCRATCH)
            self.load_pair(TEMPORARY, VALUE, TEMPORARY)
        else:
            self.constant(VALUE, 0)

    def finished(self) -> bytes:
        """With 26, 19 or 14 bits of distance in each branch."""
        for at, name in self._uses:
            distance = self._labels[name] // 4 - at
            if self._words[at] & 0x7C000000 == _B:
                self._words[at] |= distance & 0x3FFFFFF
            elif self._words[at] & 0x7E000000 == 0x36000000:
                if not -(1 << 13) <= distance < 1 << 13:
                    raise NotCompilableError("too long a recorder")
                self._words[at] |= (distance & 0x3FFF) << 5
            else:
                self._words[at] |= (distance & 0x7FFFF) << 5
        return struct.pack(f"<{len(self._words)}I", *self._words)

    # -- control --------------------------------------------------------------------------

    def label(self, name: str, /) -> int:
        """No code."""
        self._labels[name] = len(self._words) * 4
        return len(self._words) * 4

    def jump(self, name: str, /) -> None:
        """`b`."""
        self._branch(_B, name)

    def jump_if_zero(self, register: int, name: str, /, *, zero: bool = True) -> None:
        """`cbz` or `cbnz`."""
        self._branch((_CBZ if zero else _CBNZ) | register, name)

    def fits(self, value: int, size: int) -> bool:
        """All do: x16 is for them."""
        del value, size
        return True

    def jump_if(self, what: NumberTest, name: str, *, outcome: bool, spare: int) -> None:
        """`sub` or `and` with a constant, and a branch on the sign or on zero."""
        del spare
        compare, register, size = what.compare, what.register, what.size
        if compare in _OPPOSITE:
            compare, outcome = _OPPOSITE[compare], not outcome
        if compare in (Compare.LT, Compare.GT):
            less = compare is Compare.LT
            if size == 8:
                self._borrow(register, what.value, less, what.signed)
            else:  # x > c where c - x is below 0, and x < c where c - 1 - x is not
                outcome = outcome is not less
                self.constant(TEMPORARY, what.value - less)
                self._minus(register, _SIZES[size] | _SIGN * what.signed)
            self._branch((_TBNZ63 if outcome else _TBZ63) | TEMPORARY, name)
            return
        self.constant(TEMPORARY, what.value & (1 << 8 * size) - 1)
        if compare is Compare.AND:
            self._three(_OPCODES[Combination.AND], TEMPORARY, register, TEMPORARY)
        else:
            self._minus(register, _SIZES.get(size, _WHOLE))
        self.jump_if_zero(TEMPORARY, name, zero=not outcome)

    def _borrow(self, register: int, value: int, less: bool, signed: bool) -> None:
        """x16 is below 0 if 64 bits are less than a constant, or greater.

        That is the borrow of a subtraction, from the highest bits of all three; the constant's
        is known. As signed numbers those of the operands count the other way round.
        """
        self.constant(TEMPORARY, value)
        first, second = (register, TEMPORARY) if less else (TEMPORARY, register)
        self._three(_OPCODES[Combination.SUB], TEMPORARY, first, second)
        high = bool(value >> 63 & 1)
        inverse = less is not signed
        if high is inverse:
            how = Combination.OR_NOT if inverse else Combination.OR
        else:
            how = Combination.AND_NOT if inverse else Combination.AND
        self._three(_OPCODES[how], TEMPORARY, TEMPORARY, register)

    def jump_if_bytes(
        self, base: int, offset: int, piece: bytes, name: str, *, equal: bool, spare: int
    ) -> None:
        """`ldr`, `eor` with a constant, `cbz` or `cbnz`."""
        self.load(TEMPORARY, base, offset, len(piece))
        self.constant(spare, int.from_bytes(piece, "little"))
        self._three(_OPCODES[Combination.XOR], TEMPORARY, TEMPORARY, spare)
        self.jump_if_zero(TEMPORARY, name, zero=equal)

    def trap(self) -> None:
        """`brk`."""
        self._words.append(_TRAP)

    # -- registers ------------------------------------------------------------------------

    def constant(self, register: int, value: int) -> None:
        """`movz` and `movk`, or `orr` of a logical immediate where that is shorter."""
        self._words += constant(register, value & (1 << 64) - 1)

    def move(self, target: int, source: int) -> None:
        """`mov`, unless they are the same."""
        if target == source:
            return
        if source == SP:
            self._words.append(0x91000000 | source << 5 | target)
        else:
            self._three(_OPCODES[Combination.OR], target, SP, source)

    def move_vector(self, target: int, source: int) -> None:
        """`fmov`."""
        self._words.append(0x9E660000 | source << 5 | target)

    def add(self, target: int, source: int, value: int) -> None:
        """`add` or `sub` of a constant, by way of x16 where that is a long one."""
        if not value:
            self.move(target, source)
        elif -_MOST < value < _MOST:
            opcode = 0x91000000 if value > 0 else 0xD1000000
            self._words.append(opcode | abs(value) << 10 | source << 5 | target)
        else:
            self.constant(TEMPORARY, value)
            self.combine(Combination.ADD, target, source, TEMPORARY)

    def combine(
        self, how: Combination, target: int, one: int, other: int, shift: Shift | None = None
    ) -> None:
        """One instruction on three registers."""
        fields = _EXTENDED | _WHOLE if one == SP else 0
        if shift is not None:
            fields |= _SHIFTS[shift.way] | shift.bits << 10
        self._words.append(_OPCODES[how] | fields | other << 16 | one << 5 | target)

    def combine_constant(self, how: Combination, register: int, value: int, spare: int) -> None:
        """With a logical immediate, or another register."""
        fields = bitmask(value & (1 << 64) - 1)
        if fields is not None:
            self._words.append(_CONSTANTS[how] | fields | register << 5 | register)
        else:
            self.constant(spare, value)
            self._three(_OPCODES[how], register, register, spare)

    def extract(
        self, target: int, source: int, low: int, width: int, *, signed: bool = False
    ) -> None:
        """`ubfx` or `sbfx`."""
        bits = low << 16 | low + width - 1 << 10
        operation = 0x93400000 if signed else 0xD3400000
        self._words.append(operation | bits | source << 5 | target)

    def count_bytes(self, register: int) -> None:
        """`rev; clz; lsr 3`."""
        both = register << 5 | register
        self._words += (0xDAC00C00 | both, 0xDAC01000 | both, 0xD343FC00 | both)

    def return_address(self, register: int) -> int:
        """x30."""
        del register
        return LINK

    # -- memory ---------------------------------------------------------------------------

    def load(self, register: int, base: int, offset: int, size: int = 8) -> None:
        """`ldr` or `ldur`, by way of x16 far from the base."""
        if not offset % size and 0 <= offset < _MOST * size:
            self._words.append(_SCALED[size] | offset // size << 10 | base << 5 | register)
        elif -256 <= offset < 256:
            self._words.append(_UNSCALED[size] | (offset & 0x1FF) << 12 | base << 5 | register)
        elif base == TEMPORARY:
            raise NotCompilableError("too far from a register")
        else:
            self.constant(TEMPORARY, offset)
            self.combine(Combination.ADD, TEMPORARY, base, TEMPORARY)
            self.load(register, TEMPORARY, 0, size)

    def store(self, register: int, base: int, offset: int) -> None:
        """`str`."""
        if not 0 <= offset < _MOST * 8:
            raise NotCompilableError("too long a row")
        self._words.append(0xF9000000 | offset // 8 << 10 | base << 5 | register)

    def load_pair(self, first: int, second: int, base: int) -> None:
        """`ldp`."""
        self._words.append(_LOAD_PAIR | second << 10 | base << 5 | first)

    def store_pair(self, first: int, second: int, base: int) -> None:
        """`stp`."""
        self._words.append(_STORE_PAIR | second << 10 | base << 5 | first)

    def differ(self, target: int, base: int, offset: int, size: int, value: int) -> None:
        """`ldr`, `eor` with a constant."""
        self.load(target, base, offset, size)
        self.constant(TEMPORARY, value & (1 << 8 * size) - 1)
        self._three(_OPCODES[Combination.XOR], target, target, TEMPORARY)

    def reach(self, register: int, offset: int) -> int:
        """Add the offset."""
        self.add(register, register, offset)
        return 0

    def read(self, register: int, address: int, size: int = 8) -> None:
        """`ldr` from the save area on, or by the address."""
        self.load(register, TEMPORARY, self._base(address, size), size)

    def write(self, address: int) -> None:
        """`str` in the same way."""
        self.store(VALUE, TEMPORARY, self._base(address, 8))

    def increment(self, address: int) -> None:
        """In x17."""
        offset = self._base(address, 8)
        self.load(VALUE, TEMPORARY, offset)
        self.add(VALUE, VALUE, 1)
        self.store(VALUE, TEMPORARY, offset)

    def clock(self, time: int, spare: int) -> None:
        """`ldr` twice, `sub`."""
        offset = self._base(time, 8)
        self.load(VALUE, TEMPORARY, offset)
        self.load(spare, TEMPORARY, offset + 8)
        self._three(_OPCODES[Combination.SUB], VALUE, VALUE, spare)

    # -- instructions ---------------------------------------------------------------------

    def _branch(self, opcode: int, name: str) -> None:
        self._uses.append((len(self._words), name))
        self._words.append(opcode)

    def _three(self, opcode: int, target: int, one: int, other: int) -> None:
        self._words.append(opcode | other << 16 | one << 5 | target)

    def _minus(self, register: int, extension: int) -> None:
        """`sub` of a register, extended, from x16."""
        fields = _OPCODES[Combination.SUB] | _EXTENDED | extension
        self._three(fields, TEMPORARY, TEMPORARY, register)

    def _base(self, address: int, size: int) -> int:
        """Set x16 so that a word at an address is in reach; its offset from there."""
        offset = address - self._save
        if offset % size or not 0 <= offset < (_MOST - 1) * size:
            offset = 0
        self.constant(TEMPORARY, address - offset)
        return offset

    def _pairs(self, saved: Mapping[int, int], pair: int, single: int) -> None:
        rest = sorted(saved.items(), key=lambda item: item[1])
        while rest:
            register, offset = rest.pop(0)
            place = TEMPORARY << 5 | register
            if rest and rest[0][1] == offset + 8:
                second, _ = rest.pop(0)
                self._words.append(pair | offset // 8 << 15 | second << 10 | place)
            else:
                self._words.append(single | offset // 8 << 10 | place)
