"""Host machine code for single instructions with a VEX prefix, on the registers of QEMU's CPU.

Translated code calls it with the CPUX86State at rdi. Vectors are loaded into the host's of the
same numbers, general registers into r8, r9 and r10; the instruction stands between, with [rax] as
its operand in memory; then what it has changed is stored. The operand is found through the
emulator's TLB as translated code finds it. Whatever that does not allow at once goes through the
emulator's own functions, and so does floating point whose control is not the usual one: the frame
of this slow way is that of `engine.cpu.unicorn_lent_code`. What accesses memory by element is in
`vex_elements`.

Offsets in the CPUX86State beside those of `vex_code`: 0x98 flags, 0x330 MXCSR.
"""

import struct
from collections.abc import Callable
from typing import Final

from engine.arch.engines import LentCode, LentInsns
from engine.arch.x86_64 import vex, vex_elements
from engine.arch.x86_64.decode import FS, GS
from engine.arch.x86_64.vex import (
    BYTES_BY_MASK,
    CONTROL_MOVES,
    GATHERS,
    MASKED,
    MULX,
    REG,
    RM,
    STRINGS,
    VVVV,
    ZERO,
    VexInsn,
    VexOperand,
    element_size,
)
from engine.arch.x86_64.vex_code import (
    APART,
    JMP,
    JNE,
    RAX,
    RCX,
    RDX,
    RET,
    TRANSLATE,
    UPPER,
    VECTORS_AT,
    VZEROUPPER,
    address_of,
    call,
    load_general,
    load_vector,
    offset,
    skip,
    store_general,
    store_vector,
    translation,
)

_FLAGS_AT, _MXCSR_AT = 0x98, 0x330
_FRAME, _UNDERFLOW_AT, _ADDRESS_AT, _STATE_AT, _SIZE_AT = 0x78, 0x10, 0x60, 0x68, 0x70
_ARITHMETIC: Final = 0x8D5
_GENERAL: Final = 8
_R11: Final = 11
_STMXCSR: Final = 3
_SEGMENTS: Final = FS | GS

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
    if insn is None or insn.fields.prefixes & _SEGMENTS == _SEGMENTS:
        return None
    key = insn.fields.key
    if key == ZERO:
        code = _clear(whole=insn.long)
    elif key in GATHERS:
        code = vex_elements.gather(insn, routine, hooked=hooked)
    elif key == BYTES_BY_MASK:
        code = vex_elements.bytes_by_mask(insn, routine)
    elif key == CONTROL_MOVES:
        if not routine("control"):
            return None
        code = _control_move(insn, address, routine, hooked=hooked)
    else:
        code = _code(insn, address, routine, hooked=hooked)
    return LentCode(code, _sets_flags(insn))


def depends_on_address(raw: bytes) -> bool:
    """True if the code for an instruction is for one address: its operand is relative to it."""
    insn = vex.known(raw)
    return insn is not None and insn.fields.rip_relative


def _sets_flags(insn: VexInsn) -> bool:
    key = insn.fields.key
    return key in _SETS_FLAGS or key in STRINGS or (key in _SETS_FLAGS_PLAIN and not insn.prefix)


def _clear(*, whole: bool) -> bytes:
    """Vzeroall and vzeroupper."""
    code = bytes.fromhex("c5f9efc0")  # vpxor xmm0, xmm0, xmm0
    for number in range(16):
        for part in (number, UPPER + number) if whole else (UPPER + number,):
            code += bytes.fromhex("c5fa7f87") + offset(VECTORS_AT + APART * part)
    return code + RET


def _written(insn: VexInsn) -> tuple[int, ...]:
    """Places of the registers that an instruction writes, in that order."""
    key, memory = insn.fields.key, insn.fields.memory
    if key in _COMPARISONS or key in STRINGS:
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
    place = _R11 if fields.key in STRINGS else RAX
    vvvv, rm = numbers.get(VVVV, 0), place if memory else numbers[RM]
    first = (0 if reg & 8 else 0x80) | 0x40 | (0 if rm & 8 else 0x20) | fields.key >> 8
    last = fields.wide << 7 | (~vvvv & 15) << 3 | insn.long << 2 | insn.prefix
    modrm = (0 if memory else 0xC0) | (reg & 7) << 3 | rm & 7
    code = bytes((0xC4, first, last, fields.opcode, modrm))
    return code + bytes((insn.immediate,)) if fields.immediate_at >= 0 else code


_UNUSUAL: Final = (  # mov ecx, [rdi+mxcsr]; and ecx, -64; cmp ecx, 0x1f80
    b"\x8b\x8f" + offset(_MXCSR_AT) + bytes.fromhex("83e1c081f9801f0000")
)
_LOAD_CONTROL: Final = b"\x0f\xae\x97" + offset(_MXCSR_AT)  # ldmxcsr [rdi+mxcsr]
_STORE_CONTROL: Final = b"\x0f\xae\x9f" + offset(_MXCSR_AT)
_UNDERFLOW_MASKED: Final = b"\xf6\x87" + offset(_MXCSR_AT + 1) + b"\x08"  # test byte [], 8
_TAKE_FLAGS: Final = bytes.fromhex("9c5a")  # pushfq; pop rdx
_STORE_FLAGS: Final = (  # and edx, 0x8d5; mov [rdi+cc_src], rdx
    b"\x81\xe2" + offset(_ARITHMETIC) + b"\x48\x89\x97" + offset(_FLAGS_AT)
)
_KNOWN_FLAGS: Final = bytes.fromhex("31c9")  # xor ecx, ecx: what is left undefined is the same


def _code(insn: VexInsn, address: int, routine: Callable[[str], int], *, hooked: bool) -> bytes:
    key, form = insn.fields.key, insn.form
    size = form.bytes(insn.fields.wide, insn.long) if insn.fields.memory else 0
    floats, flags, written = key in _FLOAT, _sets_flags(insn), _written(insn)
    by_place = {operand.place: operand for operand in insn.operands}
    loads = b"".join(
        load_general(_host_number(each), each.number)
        if each.general
        else load_vector(each.number, long=insn.long)
        for each in insn.operands
        if each.place not in written or key in _FUSED
    )
    loads += load_general(RDX, RDX) if key == MULX or key in STRINGS else b""
    if key in STRINGS:  # mov r11, rax: it is the length of a string
        loads += b"\x49\x89\xc3" + load_general(RAX, RAX)
    body = loads + (_KNOWN_FLAGS if flags else b"") + _operation(insn)
    body += _TAKE_FLAGS if flags else b""
    ending = _STORE_FLAGS if flags else b""
    for each in (by_place[place] for place in written):
        store = store_general if each.general else None
        ending += store(_host_number(each), each.number) if store else store_vector(each.number)
    if key in STRINGS:
        ending += store_general(RCX, RCX) if key & 1 else store_vector(0)
    vectors = not all(each.general for each in insn.operands)
    ending += (VZEROUPPER if vectors else b"") + RET
    quick = (_LOAD_CONTROL + body + _STORE_CONTROL if floats else body) + ending

    if key in MASKED:
        slow = vex_elements.masked(insn, element_size(insn), body, routine)
    else:
        slow = _slow(body, size, routine, floats=floats, stores=form.stores, vectors=vectors)
    misaligned = b"\x49\xbb" + struct.pack("<Q", routine("misaligned")) + b"\x41\xff\xe3"
    # Built from behind: each test in front jumps over all that is there so far.
    front = quick
    if size and not hooked:
        front = TRANSLATE + front
        front = skip(translation(size, stores=form.stores), front)
    elif size:
        front = JMP + offset(len(front)) + front
    if floats:
        front = skip(_UNUSUAL, front)
    back = slow + JMP + offset(-len(slow) - 5 - len(ending)) if size or floats else b""
    if size and form.aligned:
        # test al, size - 1; jne misaligned
        front = b"\xa8" + bytes((size - 1,)) + JNE + offset(len(front) + len(back)) + front
        back += misaligned
    return (address_of(insn, address) if size else b"") + front + back


def _control_move(
    insn: VexInsn, address: int, routine: Callable[[str], int], *, hooked: bool
) -> bytes:
    """Vldmxcsr and vstmxcsr."""
    if insn.form.stores and insn.fields.reg == _STMXCSR:
        # mov ecx, [rdi+mxcsr]; mov [rax], ecx
        body = b"\x8b\x8f" + offset(_MXCSR_AT) + b"\x89\x08"
        slow = _slow(body, 4, routine, floats=False, stores=True, vectors=False)
        ending = RET
    else:
        body = b"\x8b\x30"  # mov esi, [rax]
        slow = _slow(body, 4, routine, floats=False, stores=False, vectors=False)
        # mov r11, misaligned; test esi, 0xffff0000; je over; jmp r11
        ending = b"\x49\xbb" + struct.pack("<Q", routine("misaligned"))
        ending += bytes.fromhex("f7c60000ffff 7403 41ffe3") + call(routine("control")) + RET
    quick = body + ending
    front = JMP + offset(len(quick)) + quick
    if not hooked:
        quick = TRANSLATE + quick
        front = skip(translation(4, stores=ending == RET), quick)
    back = slow + JMP + offset(-len(slow) - 5 - len(ending))
    return address_of(insn, address) + front + back


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
        code += b"\xc7\x44\x24" + bytes((_SIZE_AT,)) + offset(size)  # mov dword [rsp+size], size
        code += call(routine("probe" if stores else "load"))
    if floats:
        code += b"\xc7\x44\x24" + bytes((_UNDERFLOW_AT,)) + offset(0)  # mov dword [], 0
        underflow = call(routine("flushed")) + body + call(routine("drowned"))
        code += skip(_UNDERFLOW_MASKED, underflow)
        code += call(routine("guarded")) + body + call(routine("judged"))
    else:
        code += body
    if size and stores:
        code += (VZEROUPPER if vectors else b"") + call(routine("store"))
    return code + b"\x48\x83\xc4" + bytes((_FRAME,))  # add rsp, frame


LENT: Final = LentInsns(lent_code, depends_on_address)
