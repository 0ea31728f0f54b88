"""Host machine code for instructions with a VEX prefix that access memory by element.

Masked moves are made as a whole where all of their operand may be accessed; else element by
element, of those that the mask chooses: all are tried before any is stored. Gathers store each
element, and take it out of the mask, as soon as it is loaded: a fault leaves what was done before
it (Intel SDM volume 2, VGATHERDPS), and the instruction can be begun again. The frame of
the slow way is of this module: room for an operand, the CPUX86State, the address.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from engine.arch.x86_64.vex import VexInsn
from engine.arch.x86_64.vex_code import (
    JE,
    JMP,
    JNE,
    RAX,
    RET,
    TRANSLATE,
    VZEROUPPER,
    call,
    displacement,
    load_general,
    offset,
    part_at,
    segmented,
    translation,
)

_STATE_AT, _ADDRESS_AT, _FRAME = 0x20, 0x28, 0x48
_R8, _RDI = 8, 7
_VECTOR: Final = 32
_GATHER_ELEMENT: Final = 1
"""Bit of a gather's opcode that says that its indexes have 64 bits."""


class _Element(NamedTuple):
    """One element of an operand.

    Attributes:
        number: of it.
        size: bytes of it.
        mask: register whose bits choose it, by the highest of the element.
    """

    number: int
    size: int
    mask: int

    @property
    def at(self) -> int:
        """Place in the operand."""
        return self.number * self.size

    def chosen(self, code: bytes) -> bytes:
        """Code that is run if the mask chooses it."""
        # test byte [rdi+sign], 0x80; je over
        sign = part_at(self.mask, self.at + self.size - 1)
        return b"\xf6\x87" + offset(sign) + b"\x80" + JE + offset(len(code)) + code


def _elements(size: int, whole: int, mask: int) -> Iterator[_Element]:
    return (_Element(number, size, mask) for number in range(whole // size))


def _enter() -> bytes:
    """Make the frame: sub rsp; mov [rsp+state], rdi; mov [rsp+address], rax."""
    code = b"\x48\x83\xec" + bytes((_FRAME,))
    code += b"\x48\x89\x7c\x24" + bytes((_STATE_AT,))
    return code + b"\x48\x89\x44\x24" + bytes((_ADDRESS_AT,))


_LEAVE: Final = b"\x48\x83\xc4" + bytes((_FRAME,))  # add rsp
_STATE: Final = b"\x48\x8b\x7c\x24" + bytes((_STATE_AT,))  # mov rdi, [rsp+state]
_ROOM: Final = b"\x48\x89\xe0"  # mov rax, rsp


def _place(element: _Element) -> bytes:
    """Mov rsi, [rsp+address]; add rsi, place."""
    code = b"\x48\x8b\x74\x24" + bytes((_ADDRESS_AT,))
    return code + (b"\x48\x81\xc6" + offset(element.at) if element.at else b"")


def _sized(element: _Element) -> bytes:
    """Mov edx, size; mov rcx, [rsp+return address]."""
    return b"\xba" + offset(element.size) + b"\x48\x8b\x4c\x24" + bytes((_FRAME,))


def _claimed(element: _Element, routine: Callable[[str], int]) -> bytes:
    return element.chosen(_place(element) + _sized(element) + call(routine("claim")) + _STATE)


def _given(element: _Element, value: bytes, routine: Callable[[str], int]) -> bytes:
    """Store an element that code loads to rdx."""
    code = _place(element) + value + b"\xb9" + offset(element.size)  # mov ecx, size
    code += b"\x4c\x8b\x44\x24" + bytes((_FRAME,))  # mov r8, [rsp+return address]
    return element.chosen(code + call(routine("give")) + _STATE)


def masked(insn: VexInsn, size: int, body: bytes, routine: Callable[[str], int]) -> bytes:
    """The slow way of a masked move up to where results are stored; rax is its address.

    Args:
        insn: the instruction.
        size: bytes of an element.
        body: executes it on what is at [rax].
        routine: addresses of routines.
    """
    whole = insn.form.bytes(insn.fields.wide, insn.long)
    elements = tuple(_elements(size, whole, insn.fields.vvvv))
    code = _enter()
    if insn.form.stores:
        code += b"".join(_claimed(element, routine) for element in elements)
        code += _ROOM + body + VZEROUPPER
        for element in elements:
            value = b"\x48\x8b\x54\x24" + bytes((element.at,))  # mov rdx, [rsp+place]
            code += _given(element, value, routine)
        return code + _LEAVE
    wide = b"\x48" if size == 8 else b""
    for element in elements:
        loaded = _place(element) + _sized(element) + call(routine("take")) + _STATE
        loaded += wide + b"\x89\x44\x24" + bytes((element.at,))  # mov [rsp+place], rax
        code += element.chosen(loaded)
    return code + _ROOM + body + _LEAVE


def bytes_by_mask(insn: VexInsn, routine: Callable[[str], int]) -> bytes:
    """Vmaskmovdqu: each byte by itself."""
    elements = tuple(_elements(1, 16, insn.operand))
    code = load_general(RAX, _RDI) + segmented(insn) + _enter()
    code += b"".join(_claimed(element, routine) for element in elements)
    for element in elements:
        value = b"\x0f\xb6\x97" + offset(part_at(insn.register, element.at))  # movzx edx, byte []
        code += _given(element, value, routine)
    return code + _LEAVE + RET


def _base(insn: VexInsn) -> bytes:
    """Code that puts the constant part of a gather's addresses into r8."""
    fields, constant = insn.fields, displacement(insn)
    if fields.modrm >> 6 == 0 and fields.sib & 7 == 5:
        return b"\x49\xc7\xc0" + offset(constant)  # mov r8, constant
    code = load_general(_R8, fields.sib & 7 | fields.base_high << 3)
    return code + (b"\x49\x81\xc0" + offset(constant) if constant else b"")  # add r8, constant


def _cleared(register: int, begin: int, end: int) -> bytes:
    """Code that clears bytes of a vector, words of eight."""
    # mov qword [rdi+place], 0
    return b"".join(
        b"\x48\xc7\x87" + offset(part_at(register, at)) + offset(0) for at in range(begin, end, 8)
    )


def gather(insn: VexInsn, routine: Callable[[str], int], *, hooked: bool) -> bytes:
    """The code of a whole gather.

    Args:
        insn: the instruction.
        routine: addresses of routines.
        hooked: its accesses are to be seen.
    """
    fields = insn.fields
    size, step = (8 if fields.wide else 4), (8 if fields.opcode & _GATHER_ELEMENT else 4)
    used = size * ((_VECTOR if insn.long else 16) // max(size, step))
    index = fields.sib >> 3 & 7 | fields.index_high << 3
    wide = b"\x48" if size == 8 else b""
    base = _base(insn)
    code = base
    for element in _elements(size, used, fields.vvvv):
        # movsxd rax, dword [rdi+index], or mov rax, [rdi+index]
        found = (b"\x48\x8b\x87" if step == 8 else b"\x48\x63\x87") + offset(
            part_at(index, step * element.number)
        )
        # lea rax, [r8+rax*scale]
        found += bytes((0x49, 0x8D, 0x04, (fields.sib >> 6) << 6)) + segmented(insn)
        # push rdi; mov rsi, rax; mov edx, size; mov rcx, [rsp+8]; call; pop rdi
        slow = b"\x57\x48\x89\xc6\xba" + offset(size) + b"\x48\x8b\x4c\x24\x08"
        slow += call(routine("take")) + b"\x5f" + base
        if not hooked:
            quick = TRANSLATE + wide + b"\x8b\x00"  # mov eax, [rax]
            quick += JMP + offset(len(slow))
            found += translation(size, stores=False) + JNE + offset(len(quick)) + quick
        found += slow
        # mov [rdi+place], eax
        found += wide + b"\x89\x87" + offset(part_at(insn.register, element.at))
        code += element.chosen(found)
        # mov [rdi+place], 0
        code += wide + b"\xc7\x87" + offset(part_at(fields.vvvv, element.at)) + offset(0)
    cleared = (_cleared(number, used, _VECTOR) for number in (insn.register, fields.vvvv))
    return code + b"".join(cleared) + RET
