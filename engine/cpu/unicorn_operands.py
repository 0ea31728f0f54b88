"""Operands of SSE in memory, of the size and the alignment that the processor demands.

Unicorn 2.1 loads and stores 16 bytes as two words wherever they are. A processor raises #GP where
an operand of 16 bytes is not aligned, but for a few instructions (SDM volume 1, 11.2.3 and volume
3, 2.8); and some of those for which Unicorn loads 16 or 8 bytes take 8 or 4, which may be the last
ones of a page.

So the two functions that translate a word's load and store are led to host code. It asks which of
the calls that belong to 16 bytes it is, reads the instruction, and has the first word checked for
alignment. TCG makes that check together with its look at the TLB: it costs nothing. Where it
fails Unicorn calls a function that its x86-64 lacks, which is put there.

Without executable host memory, on another host, or where Unicorn's code is not the known one,
nothing changes: operands may stand anywhere.
"""

import ctypes
import struct
from functools import cache
from typing import Final

from engine.cpu import native
from engine.cpu import unicorn_linkage as linkage

_FREE, _ALIGNED, _EIGHT, _FOUR = range(4)
_NONE, _66, _F3, _F2, _38, _3A = range(6)
"""Rows of the table: opcodes by their prefix, and those of the longer maps, which have 66."""

_TAKES: Final = {
    _NONE: (
        *range(0x51, 0x5A),
        *range(0x5C, 0x60),
        0x14,
        0x15,
        0x28,
        0x29,
        0x2B,
        0x5B,
        0xC2,
        0xC6,
    ),
    _66: (
        *(0x14, 0x15, 0x28, 0x29, 0x2B, 0x2C, 0x2D, 0x51, *range(0x54, 0x6E), 0x6F, 0x70),
        *(0x74, 0x75, 0x76, 0x7C, 0x7D, 0x7F, 0xC2, 0xC6, *range(0xD0, 0xD6)),
        *(*range(0xD8, 0xF0), *range(0xF1, 0xF7), *range(0xF8, 0xFF)),
    ),
    _F3: (0x12, 0x16, 0x5B, 0x70),
    _F2: (0x70, 0x7C, 0x7D, 0xD0, 0xE6),
    _38: (
        *(*range(0x0C), 0x10, 0x14, 0x15, 0x17, 0x1C, 0x1D, 0x1E, *range(0x28, 0x2C)),
        *(*range(0x37, 0x42), *range(0xDB, 0xE0)),
    ),
    _3A: (8, 9, *range(0x0C, 0x10), 0x40, 0x41, 0x42, 0x44, 0xDF),
}
"""Instructions that have an operand of 16 bytes in memory which must be aligned (SDM volume 2)."""
_SHORTER: Final = {
    # cvttps2pi, cvtps2pi, cvtps2pd, cvtdq2pd, roundsd
    _EIGHT: ((_NONE, 0x2C), (_NONE, 0x2D), (_NONE, 0x5A), (_F3, 0xE6), (_3A, 0x0B)),
    # punpcklbw, punpcklwd and punpckldq of MMX; roundss
    _FOUR: ((_NONE, 0x60), (_NONE, 0x61), (_NONE, 0x62), (_3A, 0x0A)),
}
"""Instructions whose operand Unicorn loads more bytes of than it has."""


def _table() -> bytes:
    table = bytearray(256 * len(_TAKES))
    for row, opcodes in _TAKES.items():
        for opcode in opcodes:
            table[256 * row + opcode] = _ALIGNED
    for size, places in _SHORTER.items():
        for row, opcode in places:
            table[256 * row + opcode] = size
    return bytes(table)


_LOADS_AT, _STORE_AT = 0x458840, 0x460B61
"""Behind the beginning of the library: the functions that load, and where the first word has been
stored."""
_KNOWN: Final = (
    (0x458840, 0x662, 0x79A232C8),  # a word or a whole operand is loaded
    (0x45FFD0, 0x4790, 0x5A19E526),  # the other instructions of SSE
    (0x411BA2, 0x3F, 0xDC9AF7BD),  # a load that is not aligned is refused
    (0x417DD0, 0x51, 0x7DC88BC8),  # and a store
)
"""Code of Unicorn: (behind the beginning of the library, bytes, CRC-32). The host code knows the
first two by where they are: the translator's structure is at rbx in the first, at rbp in the
second."""
_CLASS_AT: Final = 0x8A50 - 0x8A0
"""Of a CPU's structure: its class, which has the function at 24."""
_REFUSE_AT: Final = 24

LOAD: Final = bytes.fromhex(
    "4183f803"  # cmp r8d, 0x3
    "756d"  # jne loads
    "488b0424"  # mov rax, [rsp]
    "4989d9"  # mov r9, rbx
    "482b05bcffffff"  # sub rax, [loads]
    "483d62060000"  # cmp rax, 0x662
    "7211"  # jb ours
    "4989e9"  # mov r9, rbp
    "482d90770000"  # sub rax, 0x7790
    "483d90470000"  # cmp rax, 0x4790
    "7346"  # jae loads
    # ours:
    "493b91d8000000"  # cmp rdx, [r9+0xd8]
    "741f"  # je first
    "493b91f0000000"  # cmp rdx, [r9+0xf0]
    "7534"  # jne loads
    "4151"  # push r9
    "e86d000000"  # call kind
    "4159"  # pop r9
    "3c02"  # cmp al, 0x2
    "7227"  # jb loads
    "498b91d8000000"  # mov rdx, [r9+0xd8]
    "eb0f"  # jmp narrow
    # first:
    "4151"  # push r9
    "e857000000"  # call kind
    "4159"  # pop r9
    "3c01"  # cmp al, 0x1
    "7211"  # jb loads
    "740b"  # je aligned
    # narrow:
    "41b805000000"  # mov r8d, 0x5
    "4129c0"  # sub r8d, eax
    "eb04"  # jmp loads
    # aligned:
    "4183c840"  # or r8d, 0x40
    # loads:
    "ff2567ffffff"  # jmp [load]
)
STORE: Final = bytes.fromhex(
    "488b0424"  # mov rax, [rsp]
    "483b0554ffffff"  # cmp rax, [behind]
    "7510"  # jne stores
    "55"  # push rbp
    "e827000000"  # call kind
    "4159"  # pop r9
    "3c01"  # cmp al, 0x1
    "7504"  # jne stores
    "4183c840"  # or r8d, 0x40
    # stores:
    "ff254cffffff"  # jmp [store]
)
REFUSE: Final = bytes.fromhex(
    "488dbf508a0000"  # lea rdi, [rdi+0x8a50]
    "be0d000000"  # mov esi, 0xd
    "31d2"  # xor edx, edx
    "4c89c1"  # mov rcx, r8
    "ff2545ffffff"  # jmp [raise]
)
KIND: Final = bytes.fromhex(
    "57"  # push rdi
    "56"  # push rsi
    "52"  # push rdx
    "51"  # push rcx
    "4150"  # push r8
    "4154"  # push r12
    "4155"  # push r13
    "4156"  # push r14
    "4157"  # push r15
    "488b442450"  # mov rax, [rsp+0x50]
    "4c8ba0f0010000"  # mov r12, [rax+0x1f0]
    "4d8ba424b8010000"  # mov r12, [r12+0x1b8]
    "4981c4508a0000"  # add r12, 0x8a50
    "4c8b6810"  # mov r13, [rax+0x10]
    "4531f6"  # xor r14d, r14d
    "41bf0e000000"  # mov r15d, 0xe
    # next:
    "e87e000000"  # call byte
    "3c0f"  # cmp al, 0xf
    "742c"  # je opcode
    "3cc4"  # cmp al, 0xc4
    "7465"  # je none
    "3cc5"  # cmp al, 0xc5
    "7461"  # je none
    "b903000000"  # mov ecx, 0x3
    "3cf2"  # cmp al, 0xf2
    "7411"  # je repeat
    "ffc9"  # dec ecx
    "3cf3"  # cmp al, 0xf3
    "740b"  # je repeat
    "3c66"  # cmp al, 0x66
    "750a"  # jne again
    "4585f6"  # test r14d, r14d
    "7505"  # jne again
    "ffc9"  # dec ecx
    # repeat:
    "4189ce"  # mov r14d, ecx
    # again:
    "41ffcf"  # dec r15d
    "75cd"  # jne next
    "eb3d"  # jmp none
    # opcode:
    "41c1e608"  # shl r14d, 0x8
    "e845000000"  # call byte
    "b900040000"  # mov ecx, 0x400
    "3c38"  # cmp al, 0x38
    "740a"  # je longer
    "3c3a"  # cmp al, 0x3a
    "7517"  # jne look
    "81c100010000"  # add ecx, 0x100
    # longer:
    "4181fe00010000"  # cmp r14d, 0x100
    "7518"  # jne none
    "4189ce"  # mov r14d, ecx
    "e821000000"  # call byte
    # look:
    "4401f0"  # add eax, r14d
    "488d0d32000000"  # lea rcx, [table]
    "0fb60401"  # movzx eax, byte [rcx+rax]
    "eb02"  # jmp known
    # none:
    "31c0"  # xor eax, eax
    # known:
    "415f"  # pop r15
    "415e"  # pop r14
    "415d"  # pop r13
    "415c"  # pop r12
    "4158"  # pop r8
    "59"  # pop rcx
    "5a"  # pop rdx
    "5e"  # pop rsi
    "5f"  # pop rdi
    "c3"  # ret
    # byte:
    "4c89e7"  # mov rdi, r12
    "4c89ee"  # mov rsi, r13
    "49ffc5"  # inc r13
    "4883ec08"  # sub rsp, 0x8
    "ff1571feffff"  # call [fetch]
    "4883c408"  # add rsp, 0x8
    "0fb6c0"  # movzx eax, al
    "c3"  # ret
)
_SLOTS: Final = ("tcg_gen_qemu_ld_i64", "tcg_gen_qemu_st_i64")


def watch(engine: int, target: str) -> bool:
    """Have an engine refuse operands that are not aligned as they have to be.

    Args:
        engine: its handle.
        target: how Unicorn's functions of its architecture end.

    Returns:
        Whether it does.
    """
    if not native.possible():
        return False
    refuse, cpu = _install(target), linkage.cpu_of(engine)
    if not refuse or not cpu:
        return False
    kind = ctypes.c_uint64.from_address(cpu + _CLASS_AT).value
    ctypes.c_uint64.from_address(kind + _REFUSE_AT).value = refuse
    return True


@cache
def _install(target: str) -> int:
    """Lead the two functions to the host code, once; where it refuses, 0 if that cannot be."""
    names = [f"{name}_{target}" for name in _SLOTS]
    own = [linkage.address_of(name) for name in names]
    fetch = linkage.address_of(f"cpu_ldub_code_{target}")
    fault = linkage.address_of(f"raise_exception_err_ra_{target}")
    slots = linkage.slots_of(tuple(name.encode() for name in names))
    base = linkage.known(_KNOWN)
    if slots is None or not base or not all((*own, fetch, fault)):
        return 0
    words = (base + _LOADS_AT, base + _STORE_AT, *own, fetch, fault)
    front = struct.pack(f"={len(words)}Q", *words)
    placed = native.place((front + LOAD + STORE + REFUSE + KIND + _table(),))
    if placed is None:
        return 0
    (at,), memory = placed
    _KEPT.append(memory)
    load = at + len(front)
    store = load + len(LOAD)
    return store + len(STORE) if linkage.redirect(slots, [load, store]) else 0


_KEPT: Final[list[object]] = []
"""The memory with the code: Unicorn runs it as long as the process lives."""
