"""A lock prefix is refused where a processor refuses it.

Unicorn 2.1 takes a lock prefix in front of any instruction. A processor raises #UD but for a few
that read, change and write memory (SDM volume 2, LOCK). So the function that fetches a byte of
code is led to host code. Where Unicorn's translation fetches a prefix or an opcode and gets a lock
prefix, the host code looks at what follows; where that may not be locked, the translation is given
an opcode that is none in 64-bit mode. This happens once for each instruction that is translated.

Without executable host memory, on another host, or where Unicorn's code is not the known one,
nothing changes: most lock prefixes are ignored.
"""

import ctypes
import struct
from functools import cache
from typing import Final

from engine.cpu import native
from engine.cpu import unicorn_linkage as linkage

_BEHIND_FETCH: Final = 0x464C63
"""Behind the beginning of the library: where Unicorn has fetched a prefix or an opcode."""
_KNOWN: Final = (
    (0x464C21, 0x6F, 0xB9BBA70B),
    (0x464D60, 0x42, 0x68D02261),
)
"""Code of Unicorn around it: (behind the beginning of the library, bytes, CRC-32)."""

_PREFIX, _ESCAPE, _ANY = 0x01, 0x10, 0xFF
_PREFIXES: Final = (*b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3", *range(0x40, 0x50))
_OPERATIONS: Final = (0x00, 0x08, 0x10, 0x18, 0x20, 0x28, 0x30)
_LOCKABLE: Final = {
    **dict.fromkeys((*_OPERATIONS, *(opcode + 1 for opcode in _OPERATIONS)), _ANY),
    **dict.fromkeys((0x80, 0x81, 0x83), 0x7F),  # all but cmp
    **dict.fromkeys((0x86, 0x87), _ANY),  # xchg
    **dict.fromkeys((0xF6, 0xF7), 0x0C),  # not, neg
    **dict.fromkeys((0xFE, 0xFF), 0x03),  # inc, dec
}
"""Opcodes of one byte to the fields of ModRM, as bits, under which they may be locked."""
_LOCKABLE_0F: Final = {
    **dict.fromkeys((0xAB, 0xB3, 0xBB), _ANY),  # bts, btr, btc
    0xBA: 0xE0,
    **dict.fromkeys((0xB0, 0xB1, 0xC0, 0xC1), _ANY),  # cmpxchg, xadd
    0xC7: 0x02,  # cmpxchg8b, cmpxchg16b
}
"""The same of opcodes behind 0f. No mask is that of a prefix or of the escape."""

_LOOK: Final = bytes.fromhex(
    # fetch:
    "57"  # push rdi
    "56"  # push rsi
    "4883ec08"  # sub rsp, 8
    "ff15dcffffff"  # call [rip + original]
    "4883c408"  # add rsp, 8
    "5e"  # pop rsi
    "5f"  # pop rdi
    "3cf0"  # cmp al, 0xf0
    "7401"  # je look
    "c3"  # ret
    # look:
    "488b0c24"  # mov rcx, [rsp]
    "483b0dceffffff"  # cmp rcx, [rip + site]
    "7415"  # je check
    "488b15cdffffff"  # mov rdx, [rip + record]
    "483b0a"  # cmp rcx, [rdx]
    "0f8581000000"  # jne plain
    "4c39e6"  # cmp rsi, r12
    "757c"  # jne plain
    # check:
    "53"  # push rbx
    "55"  # push rbp
    "4154"  # push r12
    "4155"  # push r13
    "4883ec08"  # sub rsp, 8
    "4889fb"  # mov rbx, rdi
    "4889f5"  # mov rbp, rsi
    "4c8d6e0e"  # lea r13, [rsi + 14]
    "4c8d257f000000"  # lea r12, [rip + table]
    # next:
    "4c39ed"  # cmp rbp, r13
    "744c"  # je refused
    "48ffc5"  # inc rbp
    "e85a000000"  # call one
    "410fb60404"  # movzx eax, byte ptr [r12 + rax]
    "3c01"  # cmp al, 1
    "74ea"  # je next
    "3c10"  # cmp al, 0x10
    "7511"  # jne known
    "48ffc5"  # inc rbp
    "e845000000"  # call one
    "410fb6840400010000"  # movzx eax, byte ptr [r12 + rax + 256]
    # known:
    "85c0"  # test eax, eax
    "7422"  # je refused
    "4189c4"  # mov r12d, eax
    "48ffc5"  # inc rbp
    "e82d000000"  # call one
    "3cc0"  # cmp al, 0xc0
    "7313"  # jae refused
    "c1e803"  # shr eax, 3
    "83e007"  # and eax, 7
    "410fa3c4"  # bt r12d, eax
    "7307"  # jnc refused
    "b8f0000000"  # mov eax, 0xf0
    "eb05"  # jmp done
    # refused:
    "b806000000"  # mov eax, 6
    # done:
    "4883c408"  # add rsp, 8
    "415d"  # pop r13
    "415c"  # pop r12
    "5d"  # pop rbp
    "5b"  # pop rbx
    "c3"  # ret
    # plain:
    "b8f0000000"  # mov eax, 0xf0
    "c3"  # ret
    # one:
    "4883ec08"  # sub rsp, 8
    "4889df"  # mov rdi, rbx
    "4889ee"  # mov rsi, rbp
    "ff151dffffff"  # call [rip + original]
    "0fb6c0"  # movzx eax, al
    "4883c408"  # add rsp, 8
    "c3"  # ret
)
"""In front of it: the address of Unicorn's function, the place behind its call, and that of the
record. `unicorn_lent` asks for the first bytes of instructions by its own routine, with the
instruction's address in r12: the record has the place behind that call."""


def _table() -> bytes:
    table = bytearray(512)
    for prefix in _PREFIXES:
        table[prefix] = _PREFIX
    table[0x0F] = _ESCAPE
    for opcode, fields in _LOCKABLE.items():
        table[opcode] = fields
    for opcode, fields in _LOCKABLE_0F.items():
        table[256 + opcode] = fields
    return bytes(table)


def refuse(target: str) -> bool:
    """Have lock prefixes refused where they may not stand, for the whole process.

    Args:
        target: how Unicorn's functions of its architecture end.

    Returns:
        Whether they are.
    """
    return native.possible() and bool(_install(target))


def fetcher(target: str) -> int:
    """The address of what fetches a byte of code: Unicorn's own function, or the host code."""
    return _install(target) or linkage.address_of(f"cpu_ldub_code_{target}")


def asks_too(place: int) -> None:
    """Look at first bytes of instructions that a call in front of `place` asks for, too."""
    _record().words[0] = place


@cache
def _record() -> linkage.HostRecord:
    return linkage.record(1)


@cache
def _install(target: str) -> int:
    """Lead the function to the host code, once; its address, or 0 if that cannot be.

    The host code goes on where the calls led before, which may be a machine's planted code.
    """
    slots = linkage.slots_of((f"cpu_ldub_code_{target}".encode(),))
    base = linkage.known(_KNOWN)
    if slots is None or not base or not native.possible():
        return 0
    own = ctypes.c_uint64.from_address(slots[0]).value
    front = struct.pack("=3Q", own, base + _BEHIND_FETCH, _record().at)
    placed = native.place((front + _LOOK + _table(),))
    if placed is None:
        return 0
    (at,), memory = placed
    _KEPT.append(memory)
    look = at + len(front)
    return look if linkage.redirect(slots, [look]) else 0


_KEPT: Final[list[object]] = []
"""The memory with the code: Unicorn runs it as long as the process lives."""
