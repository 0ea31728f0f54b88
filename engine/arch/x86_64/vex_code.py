"""Pieces of the host machine code that carries out instructions with a VEX prefix: see `vex_host`.

The CPUX86State is at rdi. An operand's address comes to rax; rcx, rdx and r11 may be changed.

Offsets in the CPUX86State: 0x0 general registers, 0x120 and 0x138 the bases of fs and gs, 0x338
vectors, 64 bytes apart, of which 16 to 31 are the upper halves of 0 to 15. The TLB's mask and
table for ring 3 stand 0x30 in front of it.
"""

import struct
from functools import partial
from typing import Final

from engine.arch.x86_64.decode import ADDRESS_SIZE, FS, GS
from engine.arch.x86_64.vex import VexInsn

VECTORS_AT, APART, UPPER = 0x338, 64, 16
RAX, RCX, RDX = 0, 1, 2
JNE, JE, JMP = b"\x0f\x85", b"\x0f\x84", b"\xe9"
VZEROUPPER, RET = bytes.fromhex("c5f877"), b"\xc3"

_FS_AT, _GS_AT = 0x120, 0x138
_TLB_MASK, _TLB_TABLE, _TLB_READ, _TLB_WRITE, _TLB_ADDEND = -0x30, -0x28, 0, 8, 0x20
_WORD: Final = (1 << 64) - 1
_HALF: Final = 16
"""Bytes of a vector's lower half."""


def offset(value: int) -> bytes:
    """A displacement or constant of 32 bits."""
    return struct.pack("<i", value)


def _general(opcode: int, host: int, number: int) -> bytes:
    """Mov between a register of the host's and one in the CPUX86State."""
    return bytes((0x48 | host >> 1 & 4, opcode, 0x87 | (host & 7) << 3)) + offset(8 * number)


load_general = partial(_general, 0x8B)
store_general = partial(_general, 0x89)


def part_at(number: int, byte: int) -> int:
    """Place of a byte of a whole vector in the CPUX86State."""
    upper = UPPER if byte >= _HALF else 0
    return VECTORS_AT + APART * (upper + number) + byte % _HALF


def _at(number: int) -> bytes:
    """ModRM and displacement of a vector's lower half, in the vector of the same number."""
    return bytes((0x87 | (number & 7) << 3,)) + offset(part_at(number, 0))


def _upper_at(number: int) -> bytes:
    return bytes((0x87 | (number & 7) << 3,)) + offset(part_at(number, _HALF))


def load_vector(number: int, *, long: bool) -> bytes:
    """Vmovdqu xmm, [rdi+...], and vinserti128 of the upper half."""
    code = bytes((0xC5, 0x7A if number & 8 else 0xFA, 0x6F)) + _at(number)
    if long:
        front = bytes((0xC4, 0x63 if number & 8 else 0xE3, (~number & 15) << 3 | 5, 0x38))
        code += front + _upper_at(number) + b"\1"
    return code


def store_vector(number: int) -> bytes:
    """Vmovdqu [rdi+...], xmm, and vextracti128 of the upper half."""
    code = bytes((0xC5, 0x7A if number & 8 else 0xFA, 0x7F)) + _at(number)
    front = bytes((0xC4, 0x63 if number & 8 else 0xE3, 0x7D, 0x39))
    return code + front + _upper_at(number) + b"\1"


def displacement(insn: VexInsn) -> int:
    """The constant in the address of an operand in memory."""
    fields = insn.fields
    at, size = fields.displacement_at, fields.displacement_size
    return int.from_bytes(insn.raw[at : at + size], "little", signed=True) if size else 0


def segmented(insn: VexInsn) -> bytes:
    """Code that makes the effective address in rax the whole address."""
    prefixes = insn.fields.prefixes
    code = b"\x89\xc0" if prefixes & ADDRESS_SIZE else b""  # mov eax, eax
    if prefixes & (FS | GS):  # add rax, [rdi+base]
        code += b"\x48\x03\x87" + offset(_FS_AT if prefixes & FS else _GS_AT)
    return code


def address_of(insn: VexInsn, address: int) -> bytes:
    """Code that puts the operand's address into rax; it may use rdx."""
    fields, constant = insn.fields, displacement(insn)
    if fields.rip_relative:
        place = struct.pack("<Q", address + fields.size + constant & _WORD)
        return b"\x48\xb8" + place + segmented(insn)
    mod, rm = fields.modrm >> 6, fields.modrm & 7
    add = b"\x48\x05" + offset(constant) if constant else b""  # add rax, constant
    if rm != 4:
        return load_general(RAX, rm | fields.base_high << 3) + add + segmented(insn)
    index, base = fields.sib >> 3 & 7 | fields.index_high << 3, fields.sib & 7
    code = b"\x31\xc0"  # xor eax, eax
    if mod or base != 5:
        code = load_general(RAX, base | fields.base_high << 3)
    if index == 4:
        return code + add + segmented(insn)
    # lea rax, [rax+rdx*scale+constant]
    lea = bytes((0x48, 0x8D, 0x84, (fields.sib >> 6) << 6 | RDX << 3)) + offset(constant)
    return code + load_general(RDX, index) + lea + segmented(insn)


def translation(size: int, *, stores: bool) -> bytes:
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


TRANSLATE: Final = bytes((0x48, 0x03, 0x42, _TLB_ADDEND))
"""Add rax, [rdx+addend]."""


def skip(test: bytes, code: bytes) -> bytes:
    """Code that is run if a test says equal; else what is behind it."""
    return test + JNE + offset(len(code)) + code


def call(place: int) -> bytes:
    """Mov r11, place; call r11."""
    return b"\x49\xbb" + struct.pack("<Q", place) + b"\x41\xff\xd3"
