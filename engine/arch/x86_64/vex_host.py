"""Host machine code for single instructions with a VEX prefix, on the registers of QEMU's CPU.

Translated code calls it with the CPUX86State at rdi. Vectors are loaded into the host's of the
same numbers, general registers into r8, r9 and r10; the instruction stands between, with [rax] as
its operand in memory; then what it has changed is stored. The operand is found through the
emulator's TLB as translated code finds it. Whatever that does not allow at once goes through the
emulator's own functions, and so does floating point whose control is not the usual one: the frame
of this slow way is that of `engine.cpu.unicorn_lent_code`.

Offsets in the CPUX86State: 0x0 general registers, 0x98 flags, 0x330 MXCSR, 0x338 vectors, 64
bytes apart, of which 16 to 31 are the upper halves of 0 to 15. The TLB's mask and table for ring 3
stand 0x30 in front of it.
"""

import struct
from collections.abc import Callable
from functools import partial
from typing import Final

from engine.arch.engines import LentCode, LentInsns
from engine.arch.x86_64 import vex
from engine.arch.x86_64.decode import ADDRESS_SIZE, FS, GS
from engine.arch.x86_64.vex import MULX, REG, RM, VVVV, ZERO, VexInsn, VexOperand

_FLAGS_AT, _MXCSR_AT, _VECTORS_AT = 0x98, 0x330, 0x338
_APART, _UPPER = 64, 16
_TLB_MASK, _TLB_TABLE, _TLB_READ, _TLB_WRITE, _TLB_ADDEND = -0x30, -0x28, 0, 8, 0x20
_FRAME, _UNDERFLOW_AT, _ADDRESS_AT, _STATE_AT, _SIZE_AT = 0x78, 0x10, 0x60, 0x68, 0x70
_ARITHMETIC: Final = 0x8D5
_WORD: Final = (1 << 64) - 1
_RAX, _RDX, _GENERAL = 0, 2, 8

_COMPARISONS: Final = frozenset({0x12E, 0x12F, 0x20E, 0x20F, 0x217})
"""Opcodes, with their maps, that change the flags alone."""
_SETS_FLAGS: Final = _COMPARISONS | {0x2F2, 0x2F3}
_SETS_FLAGS_PLAIN: Final = frozenset({0x2F5, 0x2F7})
"""Keys of bzhi and bextr, which set flags if VEX.pp is 0; the shifts of those keys do not."""
_FUSED: Final = range(0x296, 0x2C0)
"""Keys of fused multiplications and additions: the destination is an operand, too."""
_FLOAT: Final = frozenset(
    (
        *(0x151, *range(0x158, 0x160), 0x12A, 0x12C, 0x12D, 0x12E, 0x12F, 0x1C2, 0x1E6),
        *(0x17C, 0x17D, 0x1D0, 0x213, 0x308, 0x309, 0x30A, 0x30B, 0x31D, 0x340, 0x341),
        *_FUSED,
    )
)
"""Keys of instructions that read MXCSR or set its flags."""
_SCALAR_MOVE: Final = 0x111

_VZEROUPPER, _RET = bytes.fromhex("c5f877"), b"\xc3"


def lent_code(
    raw: bytes, address: int, routine: Callable[[str], int], *, hooked: bool
) -> LentCode | None:
    """The code for an instruction; None for one that it is not to run.

    Args:
        raw: the instruction.
        address: of it.
        routine: addresses of the routines of `engine.cpu.unicorn_lent_code`.
        hooked: its accesses are to be seen: all go through the emulator's functions.
    """
    insn = vex.known(raw)
    if insn is None or insn.fields.prefixes & (ADDRESS_SIZE | FS | GS):
        return None
    if insn.fields.key == ZERO:
        return LentCode(_clear(whole=insn.long), sets_flags=False)
    if not insn.plain:
        return None
    return LentCode(_code(insn, address, routine, hooked=hooked), _sets_flags(insn))


def depends_on_address(raw: bytes) -> bool:
    """True if the code for an instruction is for one address: its operand is relative to it."""
    insn = vex.known(raw)
    return insn is not None and insn.fields.rip_relative


def _sets_flags(insn: VexInsn) -> bool:
    key = insn.fields.key
    return key in _SETS_FLAGS or (key in _SETS_FLAGS_PLAIN and not insn.prefix)


def _offset(value: int) -> bytes:
    return struct.pack("<i", value)


def _general(opcode: int, host: int, number: int) -> bytes:
    """Mov between a register of the host's and one in the CPUX86State."""
    return bytes((0x48 | host >> 1 & 4, opcode, 0x87 | (host & 7) << 3)) + _offset(8 * number)


_load_general = partial(_general, 0x8B)
_store_general = partial(_general, 0x89)


def _at(number: int) -> bytes:
    """ModRM and displacement of a vector's lower half, in the vector of the same number."""
    return bytes((0x87 | (number & 7) << 3,)) + _offset(_VECTORS_AT + _APART * number)


def _upper_at(number: int) -> bytes:
    at = _VECTORS_AT + _APART * (_UPPER + number)
    return bytes((0x87 | (number & 7) << 3,)) + _offset(at)


def _load_vector(number: int, *, long: bool) -> bytes:
    """Vmovdqu xmm, [rdi+...], and vinserti128 of the upper half."""
    code = bytes((0xC5, 0x7A if number & 8 else 0xFA, 0x6F)) + _at(number)
    if long:
        front = bytes((0xC4, 0x63 if number & 8 else 0xE3, (~number & 15) << 3 | 5, 0x38))
        code += front + _upper_at(number) + b"\1"
    return code


def _store_vector(number: int) -> bytes:
    """Vmovdqu [rdi+...], xmm, and vextracti128 of the upper half."""
    code = bytes((0xC5, 0x7A if number & 8 else 0xFA, 0x7F)) + _at(number)
    front = bytes((0xC4, 0x63 if number & 8 else 0xE3, 0x7D, 0x39))
    return code + front + _upper_at(number) + b"\1"


def _clear(*, whole: bool) -> bytes:
    """Vzeroall and vzeroupper."""
    code = bytes.fromhex("c5f9efc0")  # vpxor xmm0, xmm0, xmm0
    for number in range(16):
        for part in (number, _UPPER + number) if whole else (_UPPER + number,):
            code += bytes.fromhex("c5fa7f87") + _offset(_VECTORS_AT + _APART * part)
    return code + _RET


def _written(insn: VexInsn) -> tuple[int, ...]:
    """Places of the registers that an instruction writes, in that order."""
    key, memory = insn.fields.key, insn.fields.memory
    if key in _COMPARISONS:
        return ()
    if insn.form.groups is not None:
        return (VVVV,)
    if key == MULX:
        return (VVVV, REG)
    if insn.form.stores or (key == _SCALAR_MOVE and insn.prefix in (2, 3)):
        return () if memory else (RM,)
    return (REG,)


def _host_number(operand: VexOperand) -> int:
    return _GENERAL + operand.place if operand.general else operand.number


def _operation(insn: VexInsn) -> bytes:
    """The instruction itself, with the host's registers."""
    fields, memory = insn.fields, insn.fields.memory
    numbers = {operand.place: _host_number(operand) for operand in insn.operands}
    reg = numbers.get(REG, fields.reg)
    vvvv, rm = numbers.get(VVVV, 0), _RAX if memory else numbers[RM]
    first = (0 if reg & 8 else 0x80) | 0x40 | (0 if rm & 8 else 0x20) | fields.key >> 8
    last = fields.wide << 7 | (~vvvv & 15) << 3 | insn.long << 2 | insn.prefix
    modrm = (0 if memory else 0xC0) | (reg & 7) << 3 | rm & 7
    code = bytes((0xC4, first, last, fields.opcode, modrm))
    return code + bytes((insn.immediate,)) if fields.immediate_at >= 0 else code


def _address(insn: VexInsn, address: int) -> bytes:
    """Code that puts the operand's address into rax; it may use rdx."""
    fields, raw = insn.fields, insn.raw
    at, size = fields.displacement_at, fields.displacement_size
    constant = int.from_bytes(raw[at : at + size], "little", signed=True) if size else 0
    if fields.rip_relative:
        return b"\x48\xb8" + struct.pack("<Q", address + fields.size + constant & _WORD)
    mod, rm = fields.modrm >> 6, fields.modrm & 7
    add = b"\x48\x05" + _offset(constant) if constant else b""  # add rax, constant
    if rm != 4:
        return _load_general(_RAX, rm | fields.base_high << 3) + add
    index, base = fields.sib >> 3 & 7 | fields.index_high << 3, fields.sib & 7
    code = b"\x31\xc0"  # xor eax, eax
    if mod or base != 5:
        code = _load_general(_RAX, base | fields.base_high << 3)
    if index == 4:
        return code + add
    # lea rax, [rax+rdx*scale+constant]
    lea = bytes((0x48, 0x8D, 0x84, (fields.sib >> 6) << 6 | _RDX << 3)) + _offset(constant)
    return code + _load_general(_RDX, index) + lea


def _translation(size: int, *, stores: bool) -> bytes:
    """Code that looks the address in rax up in the TLB: equal if it may be accessed there."""
    mask, table = struct.pack("b", _TLB_MASK), struct.pack("b", _TLB_TABLE)
    return b"".join(
        (
            bytes.fromhex("4889c2 48c1ea06 482357") + mask,  # mov rdx,rax; shr rdx,6; and rdx,[]
            bytes.fromhex("480357") + table,  # add rdx, [rdi+table]
            # The page of the last byte: an operand on two pages is on none.
            bytes.fromhex("488d48") + bytes((size - 1,)),  # lea rcx, [rax+size-1]
            bytes.fromhex("4881e100f0ffff"),  # and rcx, -4096
            bytes.fromhex("483b4a") + bytes((_TLB_WRITE if stores else _TLB_READ,)),  # cmp
        )
    )


_TRANSLATE: Final = bytes((0x48, 0x03, 0x42, _TLB_ADDEND))  # add rax, [rdx+addend]
_UNUSUAL: Final = (  # mov ecx, [rdi+mxcsr]; and ecx, -64; cmp ecx, 0x1f80
    b"\x8b\x8f" + _offset(_MXCSR_AT) + bytes.fromhex("83e1c081f9801f0000")
)
_LOAD_CONTROL: Final = b"\x0f\xae\x97" + _offset(_MXCSR_AT)  # ldmxcsr [rdi+mxcsr]
_STORE_CONTROL: Final = b"\x0f\xae\x9f" + _offset(_MXCSR_AT)
_UNDERFLOW_MASKED: Final = b"\xf6\x87" + _offset(_MXCSR_AT + 1) + b"\x08"  # test byte [], 8
_TAKE_FLAGS: Final = bytes.fromhex("9c5a")  # pushfq; pop rdx
_STORE_FLAGS: Final = (  # and edx, 0x8d5; mov [rdi+cc_src], rdx
    b"\x81\xe2" + _offset(_ARITHMETIC) + b"\x48\x89\x97" + _offset(_FLAGS_AT)
)
_KNOWN_FLAGS: Final = bytes.fromhex("31c9")  # xor ecx, ecx: what is left undefined is the same
_JNE, _JMP = b"\x0f\x85", b"\xe9"


def _code(insn: VexInsn, address: int, routine: Callable[[str], int], *, hooked: bool) -> bytes:
    key, form = insn.fields.key, insn.form
    size = form.bytes(insn.fields.wide, insn.long) if insn.fields.memory else 0
    floats, flags, written = key in _FLOAT, _sets_flags(insn), _written(insn)
    by_place = {operand.place: operand for operand in insn.operands}
    loads = b"".join(
        _load_general(_host_number(each), each.number)
        if each.general
        else _load_vector(each.number, long=insn.long)
        for each in insn.operands
        if each.place not in written or key in _FUSED
    )
    loads += _load_general(_RDX, _RDX) if key == MULX else b""
    body = loads + (_KNOWN_FLAGS if flags else b"") + _operation(insn)
    body += _TAKE_FLAGS if flags else b""
    ending = _STORE_FLAGS if flags else b""
    for each in (by_place[place] for place in written):
        store = _store_general if each.general else None
        ending += store(_host_number(each), each.number) if store else _store_vector(each.number)
    vectors = not all(each.general for each in insn.operands)
    ending += (_VZEROUPPER if vectors else b"") + _RET
    quick = (_LOAD_CONTROL + body + _STORE_CONTROL if floats else body) + ending

    slow = _slow(body, size, routine, floats=floats, stores=form.stores, vectors=vectors)
    misaligned = b"\x49\xbb" + struct.pack("<Q", routine("misaligned")) + b"\x41\xff\xe3"
    # Built from behind: each test in front jumps over all that is there so far.
    front = quick
    if size and not hooked:
        front = _TRANSLATE + front
        front = _skip(_translation(size, stores=form.stores), front)
    elif size:
        front = _JMP + _offset(len(front)) + front
    if floats:
        front = _skip(_UNUSUAL, front)
    back = slow + _JMP + _offset(-len(slow) - 5 - len(ending)) if size or floats else b""
    if size and form.aligned:
        # test al, size - 1; jne misaligned
        front = b"\xa8" + bytes((size - 1,)) + _JNE + _offset(len(front) + len(back)) + front
        back += misaligned
    return (_address(insn, address) if size else b"") + front + back


def _skip(test: bytes, code: bytes) -> bytes:
    """Code that is run if a test says equal; else what is behind it."""
    return test + _JNE + _offset(len(code)) + code


def _call(place: int) -> bytes:
    return b"\x49\xbb" + struct.pack("<Q", place) + b"\x41\xff\xd3"  # mov r11, place; call r11


def _slow(
    body: bytes,
    size: int,
    routine: Callable[[str], int],
    *,
    floats: bool,
    stores: bool,
    vectors: bool,
) -> bytes:
    """The slow way up to where results are stored; rax is the operand's address."""
    code = b"\x48\x83\xec" + bytes((_FRAME,))  # sub rsp, frame
    code += b"\x48\x89\x7c\x24" + bytes((_STATE_AT,))  # mov [rsp+state], rdi
    if size:
        code += b"\x48\x89\x44\x24" + bytes((_ADDRESS_AT,))  # mov [rsp+address], rax
        code += b"\xc7\x44\x24" + bytes((_SIZE_AT,)) + _offset(size)  # mov dword [rsp+size], size
        code += _call(routine("probe" if stores else "load"))
    if floats:
        code += b"\xc7\x44\x24" + bytes((_UNDERFLOW_AT,)) + _offset(0)  # mov dword [], 0
        underflow = _call(routine("flushed")) + body + _call(routine("drowned"))
        code += _skip(_UNDERFLOW_MASKED, underflow)
        code += _call(routine("guarded")) + body + _call(routine("judged"))
    else:
        code += body
    if size and stores:
        code += (_VZEROUPPER if vectors else b"") + _call(routine("store"))
    return code + b"\x48\x83\xc4" + bytes((_FRAME,))  # add rsp, frame


LENT: Final = LentInsns(lent_code, depends_on_address)
