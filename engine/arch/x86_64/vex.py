"""Instructions with a VEX prefix, carried out by the host's own vector unit.

Unicorn has none of them. An instruction is given other registers, its operand in memory a place in
a block of the engine's; the host carries that out, and what has changed goes into the guest's
registers. So one piece of host code serves all instructions that differ in registers and addresses
alone. Those that touch memory by element (masked moves, gathers), and those that the host's own
state is no part of, are carried out here (Intel SDM volume 2, chapter 5).

What the host cannot do never gets to it: see `vex_forms`. Most instructions are not carried out
here where translations can call the host's code for them: see `vex_host`.
"""

import struct
from functools import lru_cache
from typing import Final, NamedTuple

from engine.arch.machine import ArchCpu, Insn, LentCpu, TrapError
from engine.arch.x86_64.decode import ADDRESS_SIZE, FS, GS, VEX, Decoded, decode
from engine.arch.x86_64.operations import NAMES, operand_address
from engine.arch.x86_64.vex_forms import VexForm, form_of
from engine.errors import GuestFaultError

_ILLEGAL, _PROTECTION, _SIMD = 6, 13, 19
_ARITHMETIC: Final = 0x8D5
_ALL_MASKED, _FLAGS, _CONTROL = 0x1F80, 0x3F, 0xFFC0
_BEFORE: Final = 7
"""Exceptions that are seen before anything is computed: invalid, denormal, division by zero."""
_WORD, _LOW = (1 << 64) - 1, (1 << 32) - 1
_LANE: Final = (1 << 128) - 1
_WHOLE: Final = tuple(f"ymm{number}" for number in range(16))

_BLOCK: Final = struct.Struct("<32s32s32s32s32s32s6QQII")
"""Vectors 8 to 11 and 0, the operand in memory, r8, r9, r10, rax, rdx, rcx, flags, MXCSR."""
_MEMORY_AT: Final = 160
REG, VVVV, RM, IS4 = range(4)
"""Places of an encoding that name a register."""
_FIRST: Final = 8
"""The register that stands for that in REG; those for the other places follow."""
_RDI: Final = 7
_STATE: Final = ("eflags", "mxcsr")

_GENERAL_REG: Final = frozenset(
    {0x12C, 0x12D, 0x150, 0x1C5, 0x1D7, 0x2F2, 0x2F5, 0x2F6, 0x2F7, 0x3F0}
)
"""Opcodes, with their maps, whose ModRM.reg is a general register."""
_GENERAL_RM: Final = frozenset(
    {0x12A, 0x16E, 0x17E, 0x1C4, 0x2F2, 0x2F3, 0x2F5, 0x2F6, 0x2F7, 0x3F0}
    | {0x314, 0x315, 0x316, 0x317, 0x320, 0x322}
)
_GENERAL_VVVV: Final = frozenset({0x2F2, 0x2F3, 0x2F5, 0x2F6, 0x2F7})
_MOVQ: Final = 0x17E
MULX: Final = 0x2F6
"""The key of mulx, whose second factor is rdx."""
STRINGS: Final = range(0x360, 0x364)
_FOURTH: Final = frozenset({0x34A, 0x34B, 0x34C})
ZERO: Final = 0x177
"""Vzeroall and vzeroupper."""
CONTROL_MOVES: Final = 0x1AE
BYTES_BY_MASK: Final = 0x1F7
MASKED: Final = {0x22C: 4, 0x22D: 8, 0x22E: 4, 0x22F: 8, 0x28C: 0, 0x28E: 0}
"""Moves of elements by a mask: bytes of an element, 0 where VEX.W tells."""
GATHERS: Final = range(0x290, 0x294)


class VexOperand(NamedTuple):
    """A register that an instruction names.

    Attributes:
        place: in the encoding: REG, VVVV, RM or IS4.
        number: of the register.
        general: it is a general register, not a vector.
    """

    place: int
    number: int
    general: bool


class VexInsn(NamedTuple):
    """An instruction with a VEX prefix that there is.

    Attributes:
        fields: of its encoding.
        form: of it.
        prefix: VEX.pp.
        long: VEX.L.
        raw: its bytes.
    """

    fields: Decoded
    form: VexForm
    prefix: int
    long: bool
    raw: bytes

    @property
    def register(self) -> int:
        """Number of the register in ModRM.reg."""
        at = self.fields.extension_at + 1
        return self.fields.reg | (~self.raw[at] >> 4 & 8)

    @property
    def operand(self) -> int:
        """Number of the register in ModRM.rm."""
        return self.fields.modrm & 7 | self.fields.base_high << 3

    @property
    def operands(self) -> tuple[VexOperand, ...]:
        """Registers that the instruction names, apart from those of an address.

        Mulx may name one twice, which has the upper half then: that in REG is written last.
        """
        fields, key = self.fields, self.fields.key
        found = []
        if not fields.memory:
            general = key in _GENERAL_RM and (key != _MOVQ or self.prefix == 1)
            found.append(VexOperand(RM, self.operand, general))
        if self.form.has_register:
            found.append(VexOperand(VVVV, fields.vvvv, key in _GENERAL_VVVV))
        if self.form.groups is None:
            found.append(VexOperand(REG, self.register, key in _GENERAL_REG))
        if key in _FOURTH:
            found.append(VexOperand(IS4, self.immediate >> 4, False))
        return tuple(found)

    @property
    def plain(self) -> bool:
        """True if it is about those, one place in memory and flags, and the host computes it."""
        key = self.fields.key
        beside = key in MASKED or key in GATHERS or key in STRINGS
        return not beside and key not in (ZERO, BYTES_BY_MASK, CONTROL_MOVES)

    @property
    def immediate(self) -> int:
        """The instruction's immediate; 0 without."""
        at = self.fields.immediate_at
        return self.raw[at] if at >= 0 else 0


@lru_cache(maxsize=1 << 12)
def known(raw: bytes) -> VexInsn | None:
    """The instruction at the front of some bytes; None unless it is one with a VEX prefix."""
    fields = decode(raw)
    if fields is None or fields.encoding != VEX or not fields.known:
        return None
    raw = raw[: fields.size]
    last = raw[fields.extension_at + (1 if raw[fields.extension_at] == 0xC5 else 2)]
    long, prefix = bool(last & 4), last & 3
    if fields.key == ZERO:
        form = _NOTHING if not prefix else None
    else:
        form = form_of(fields.key, prefix, fields.memory)
    if form is None or form.wide not in (None, fields.wide) or form.long not in (None, long):
        return None
    if not form.has_register and fields.vvvv:
        return None
    if form.groups is not None and fields.reg not in form.groups:
        return None
    found = VexInsn(fields, form, prefix, long, raw)
    return None if fields.key in GATHERS and not _gathers(found) else found


_NOTHING: Final = VexForm(None, None, False, None, "", False, False)


def _gathers(insn: VexInsn) -> bool:
    """True if a gather has an index, and no register in two places."""
    fields = insn.fields
    if fields.sib < 0:
        return False
    index = fields.sib >> 3 & 7 | fields.index_high << 3
    return len({insn.register, fields.vvvv, index}) == 3


def emulate(cpu: LentCpu, insn: Insn) -> None:
    """Carry one out; pc stays.

    Raises:
        TrapError: it raises an exception of the processor.
        GuestFaultError: the program may not touch its operand.
    """
    found = known(insn.raw)
    if found is None:
        raise TrapError(_ILLEGAL)
    key = found.fields.key
    if key == ZERO:
        _clear(cpu, whole=found.long)
    elif key in MASKED:
        _masked(cpu, found, insn.address)
    elif key in GATHERS:
        _gather(cpu, found)
    elif key == BYTES_BY_MASK:
        _bytes_by_mask(cpu, found)
    elif key == CONTROL_MOVES:
        _control(cpu, found, insn.address)
    else:
        _borrow(cpu, found, insn.address)


def vector(cpu: ArchCpu, number: int) -> int:
    """The 256 bits of a register."""
    return cpu.read_register(_WHOLE[number])


def set_vector(cpu: ArchCpu, number: int, value: int) -> None:
    """Set them."""
    cpu.write_register(_WHOLE[number], value)


def _clear(cpu: ArchCpu, *, whole: bool) -> None:
    """Vzeroall and vzeroupper."""
    for number in range(16):
        value = cpu.read_register(_WHOLE[number])
        if value >> (0 if whole else 128):
            cpu.write_register(_WHOLE[number], 0 if whole else value & _LANE)


class _Loan(NamedTuple):
    """An instruction as the host carries it out.

    Attributes:
        code: for the host.
        general: (place among the block's general registers, number) of those that it uses.
        vectors: the same of vectors.
        size: bytes of its operand in memory; 0 without one.
    """

    code: bytes
    general: tuple[tuple[int, int], ...]
    vectors: tuple[tuple[int, int], ...]
    size: int


@lru_cache(maxsize=1 << 12)
def _loan(raw: bytes) -> _Loan:
    insn = known(raw)
    assert insn is not None
    fields = insn.fields
    general = tuple((at, number) for at, number, is_general in insn.operands if is_general)
    vectors = tuple((at, number) for at, number, is_general in insn.operands if not is_general)
    size = insn.form.bytes(fields.wide, insn.long) if fields.memory else 0
    return _Loan(host_code(insn), general, vectors, size)


def host_code(insn: VexInsn) -> bytes:
    """The instruction with the block's registers, and at [rdi+160] what is in memory."""
    fields, memory = insn.fields, insn.fields.memory
    third = 0x40 | fields.key >> 8 | (0 if insn.form.groups is None else 0x80)
    third |= 0x20 if memory else 0
    vvvv = _FIRST + VVVV if insn.form.has_register else 0
    last = fields.wide << 7 | (~vvvv & 15) << 3 | insn.long << 2 | insn.prefix
    reg = _FIRST + REG & 7 if insn.form.groups is None else fields.reg
    modrm = (0x80 | _RDI if memory else 0xC0 | _FIRST + RM & 7) | reg << 3
    code = bytes((0xC4, third, last, fields.opcode, modrm))
    if memory:
        code += struct.pack("<i", _MEMORY_AT)
    if fields.immediate_at >= 0:
        is4 = _FIRST + IS4 << 4 | insn.immediate & 15
        code += bytes((is4 if fields.key in _FOURTH else insn.immediate,))
    return code


def _borrow(cpu: LentCpu, insn: VexInsn, address: int) -> None:
    """Have the host carry it out."""
    code, general, vectors, size = _loan(insn.raw)
    form, key = insn.form, insn.fields.key
    place, data = 0, b""
    if size:
        place = operand_address(insn.fields, insn.raw, address)[0](cpu)
        if form.aligned and place % size:
            raise TrapError(_PROTECTION)
        data = b"" if form.stores else cpu.read(place, size)
    before: list[bytes] = [b""] * 5
    words = [0] * 6
    for at, number in vectors:
        before[at] = cpu.read_register(_WHOLE[number]).to_bytes(32, "little")
    for at, number in general:
        words[at] = cpu.read_register(NAMES[number])
    if key in STRINGS:
        words[3] = cpu.read_register("rax")
    if key in STRINGS or key == MULX:
        words[4] = cpu.read_register("rdx")
    flags, mxcsr = cpu.read_registers(_STATE)
    control = mxcsr & _CONTROL | _ALL_MASKED
    block = _BLOCK.pack(*before, data, *words, flags & _ARITHMETIC | 2, control, 0)
    *after, stored, r8, r9, r10, _, _, rcx, new_flags, status, _ = _BLOCK.unpack(
        cpu.on_host(code, block)
    )
    raised = status & _FLAGS
    if raised & _BEFORE & ~(mxcsr >> 7):  # nothing was computed then (SDM volume 1, 11.5.2)
        raised &= _BEFORE
    unmasked = raised & ~(mxcsr >> 7)
    if size and form.stores and not unmasked:
        cpu.write(place, stored[:size])
    if raised & ~mxcsr:
        cpu.write_register("mxcsr", mxcsr | raised)
    if unmasked:
        raise TrapError(_SIMD)
    results = r8, r9, r10
    for at, number in vectors:
        if at < 3 and after[at] != before[at]:
            cpu.write_register(_WHOLE[number], int.from_bytes(after[at], "little"))
    for at, number in general:
        if results[at] != words[at] or (key == MULX and at < 2):
            cpu.write_register(NAMES[number], results[at])
    if key in STRINGS and key & 1:
        cpu.write_register("rcx", rcx)
    elif key in STRINGS:
        set_vector(cpu, 0, int.from_bytes(after[4], "little"))
    if (flags ^ new_flags) & _ARITHMETIC:
        cpu.write_register("eflags", flags & ~_ARITHMETIC | new_flags & _ARITHMETIC)


def _elements(value: int, size: int, count: int) -> list[bytes]:
    data = value.to_bytes(32, "little")
    return [data[size * at : size * at + size] for at in range(count)]


def element_size(insn: VexInsn) -> int:
    """Bytes of an element of a masked move."""
    return MASKED[insn.fields.key] or (8 if insn.fields.wide else 4)


def _masked(cpu: ArchCpu, insn: VexInsn, address: int) -> None:
    """Vmaskmovps, vmaskmovpd and vpmaskmov: what is not moved is not touched."""
    size = element_size(insn)
    count = (32 if insn.long else 16) // size
    place = operand_address(insn.fields, insn.raw, address)[0](cpu)
    mask = _elements(vector(cpu, insn.fields.vvvv), size, count)
    chosen = [at for at in range(count) if mask[at][-1] & 0x80]
    if insn.form.stores:
        source = _elements(vector(cpu, insn.register), size, count)
        _store(cpu, [(place + size * at & _WORD, source[at]) for at in chosen])
        return
    result = bytearray(32)
    for at in chosen:
        result[size * at : size * at + size] = cpu.read(place + size * at & _WORD, size)
    set_vector(cpu, insn.register, int.from_bytes(result, "little"))


def _bytes_by_mask(cpu: ArchCpu, insn: VexInsn) -> None:
    """Vmaskmovdqu: bytes at rdi, through a segment if there is one."""
    source = vector(cpu, insn.register).to_bytes(32, "little")
    mask = vector(cpu, insn.operand).to_bytes(32, "little")
    place = cpu.read_register("rdi") & (_LOW if insn.fields.prefixes & ADDRESS_SIZE else _WORD)
    place += _segment(cpu, insn.fields)
    _store(
        cpu,
        [(place + at & _WORD, source[at : at + 1]) for at in range(16) if mask[at] & 0x80],
    )


def _store(cpu: ArchCpu, pieces: list[tuple[int, bytes]]) -> None:
    """Write all pieces, or none where one of them may not be written."""
    kept = []
    for place, data in pieces:
        try:
            kept.append(cpu.read(place, len(data)))
        except GuestFaultError as fault:
            raise GuestFaultError(fault.address, "write") from None
    for done, (place, data) in enumerate(pieces):
        try:
            cpu.write(place, data)
        except GuestFaultError:
            for (where, _), before in zip(pieces[:done], kept, strict=False):
                cpu.write(where, before)
            raise


def _segment(cpu: ArchCpu, fields: Decoded) -> int:
    if fields.prefixes & (FS | GS):
        return cpu.read_register("fs_base" if fields.prefixes & FS else "gs_base")
    return 0


def _gather(cpu: ArchCpu, insn: VexInsn) -> None:
    """Gathers: a fault leaves what was loaded before it, and its elements out of the mask."""
    fields = insn.fields
    size, index_size = (8 if fields.wide else 4), (8 if fields.opcode & 1 else 4)
    count = (32 if insn.long else 16) // max(size, index_size)
    numbers = vector(cpu, fields.sib >> 3 & 7 | fields.index_high << 3)
    indexes = _elements(numbers, index_size, count)
    scale = 1 << (fields.sib >> 6)
    at, displaced = fields.displacement_at, fields.displacement_size
    base = int.from_bytes(insn.raw[at : at + displaced], "little", signed=True) if displaced else 0
    if fields.modrm >> 6 or fields.sib & 7 != 5:
        base += cpu.read_register(NAMES[fields.sib & 7 | fields.base_high << 3])
    reach = _LOW if fields.prefixes & ADDRESS_SIZE else _WORD
    segment = _segment(cpu, fields)
    mask = bytearray(vector(cpu, fields.vvvv).to_bytes(32, "little"))
    result = bytearray(vector(cpu, insn.register).to_bytes(32, "little"))
    used = size * count
    try:
        for number in range(count):
            end = size * number + size
            if mask[end - 1] & 0x80:
                index = int.from_bytes(indexes[number], "little", signed=True)
                place = (base + index * scale & reach) + segment & _WORD
                result[end - size : end] = cpu.read(place, size)
            mask[end - size : end] = bytes(size)
        result[used:] = bytes(32 - used)
        mask[used:] = bytes(32 - used)
    finally:
        set_vector(cpu, insn.register, int.from_bytes(result, "little"))
        set_vector(cpu, fields.vvvv, int.from_bytes(mask, "little"))


def _control(cpu: ArchCpu, insn: VexInsn, address: int) -> None:
    """Vldmxcsr and vstmxcsr."""
    place = operand_address(insn.fields, insn.raw, address)[0](cpu)
    if insn.form.stores and insn.fields.reg == 3:
        flags = cpu.float_flags()
        value = cpu.read_register("mxcsr") | flags
        cpu.write(place, value.to_bytes(4, "little"))
        return
    value = int.from_bytes(cpu.read(place, 4), "little")
    if value >> 16:
        raise TrapError(_PROTECTION)
    cpu.clear_float_flags()
    cpu.write_register("mxcsr", value)
