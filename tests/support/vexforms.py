"""Random instructions with a VEX prefix, as a table of small functions in assembly."""

import random
import struct
from collections.abc import Iterator

from engine.arch.x86_64 import vex, vex_forms

_KEPT = (4, 5, 11, 12, 13, 15)
"""Registers that have to stay: of the stack, and of addresses."""
_BEFORE = (
    *("", "", "add %rax, %rcx", "sub %rdx, %rbx", "inc %r9", "cmp %rsi, %rdi", "neg %r14"),
    *("sbb %rax, %rbx", "adc %r9, %r8", "dec %r10", "stc"),
)
"""What leaves flags behind, each in its way, and none undefined."""
_STEPS = (0x1D, 0x40, 0x41)
"""Opcodes with results that are rounded on the way, or never flushed: vcvtps2ph, vdpps, vdppd.

What they raise where underflow is not masked is not all known; see `engine.cpu.unicorn_float`.
"""
_MASKED, _ALL = 9, 21
"""Numbers of controls in `tests/data/avx/forms.c`."""
_PREFIXES = (b"\x65", b"\x67", b"\x3e", b"\x65\x67", b"\x2e\x67\x65", b"\x36\x26")
"""Segments, of which gs begins at 64, and addresses of 32 bits."""
_BEHIND = ("", "", "setc %al", "adc %rcx, %rax", "lahf", "rcl $1, %rbx", "cmovp %rax, %rdx")


def encodings(draw: random.Random, times: int) -> Iterator[bytes]:
    """Encodings of each form, so many times, in registers and places by chance."""
    for (key, prefix, memory), form in vex_forms.all_forms().items():
        found = tried = 0
        while found < times and tried < 50 * times:
            tried += 1
            code = _encoded(draw, key, prefix, memory, form)
            insn = vex.known(code)
            if insn is None or key == vex.ZERO or _clobbers(insn):
                continue
            found += 1
            front = draw.choice(_PREFIXES) if memory and draw.random() < 0.2 else b""
            yield front + code[: insn.fields.size]


def _encoded(
    draw: random.Random, key: int, prefix: int, memory: bool, form: vex_forms.VexForm
) -> bytes:
    wide = draw.random() < 0.5 if form.wide is None else form.wide
    long = draw.random() < 0.5 if form.long is None else form.long
    reg = draw.choice(sorted(form.groups)) if form.groups else draw.randrange(16)
    vvvv = draw.randrange(16) if form.has_register else 0
    rm = draw.randrange(16)
    first = 0x40 | key >> 8 | (0 if reg & 8 else 0x80)
    if form.size == "gather":  # [r12, r13 or r15+vector*scale+distance]
        first &= ~0x40 if draw.random() < 0.5 else 0xFF
        sib = draw.randrange(4) << 6 | draw.randrange(8) << 3 | draw.choice((4, 5, 7))
        tail = bytes((0x44 | (reg & 7) << 3, sib, draw.randrange(256)))
    elif not memory:
        first |= 0 if rm & 8 else 0x20
        tail = bytes((0xC0 | (reg & 7) << 3 | rm & 7,))
    else:
        modrm = (reg & 7) << 3
        aligned = 0xE0 if form.aligned and draw.random() < 0.8 else 0xFF
        distance = draw.randrange(256) & aligned
        match draw.randrange(7):
            case 0:  # [r15+distance]
                tail = bytes((0x47 | modrm, distance))
            case 1:
                tail = bytes((0x87 | modrm,)) + struct.pack("<i", draw.randrange(-200, 200))
            case 2:  # [rbp+rbp+distance]
                first |= 0x20
                tail = bytes((0x44 | modrm, 0x2D, distance >> 1 & aligned))
            case 3:  # [r15]
                tail = bytes((0x07 | modrm,))
            case 4:  # [r13+distance]
                tail = bytes((0x45 | modrm, distance))
            case 5:  # [r12+distance]
                tail = bytes((0x44 | modrm, 0x24, distance))
            case _:  # [r12+r11*scale+distance]
                first &= ~0x40
                tail = bytes((0x44 | modrm, draw.randrange(4) << 6 | 0x1C, distance))
    last = wide << 7 | (~vvvv & 15) << 3 | long << 2 | prefix
    short = first & 0x7F == 0x61 and not wide and draw.random() < 0.5
    if short and key >> 8 == 1:
        return bytes((0xC5, first & 0x80 | last, key & 0xFF)) + tail + draw.randbytes(1)
    return bytes((0xC4, first, last, key & 0xFF)) + tail + draw.randbytes(1)


def _clobbers(insn: vex.VexInsn) -> bool:
    """True if it writes, or may write, a register that has to stay."""
    return any(each.general and each.number in _KEPT for each in insn.operands)


def assembly(codes: list[bytes], draw: random.Random) -> str:
    """A source file with the table that `tests/data/avx/forms.c` runs through."""
    insns = [known for code in codes if (known := vex.known(code)) is not None]
    assert len(insns) == len(codes)
    rows = "".join(
        f" .quad each{at}, {_MASKED if insn.fields.opcode in _STEPS else _ALL}\n"
        for at, insn in enumerate(insns)
    )
    text = ".section .note.GNU-stack\n.globl table, table_size\n.data\n.align 8\n"
    text += f"table_size: .quad {len(codes)}\ntable:\n{rows}.text\n"
    for at, insn in enumerate(insns):
        listed = ", ".join(map(str, insn.raw))
        before, behind = draw.choice(_BEFORE), draw.choice(_BEHIND)
        if draw.random() < 0.9:
            before = f"{_prepared(insn)} {before}"
        text += f"each{at}: {before}\n .byte {listed}\n {behind}\n ret\n"
    return text


def _prepared(insn: vex.VexInsn) -> str:
    """What has an instruction touch memory where there is some."""
    fields = insn.fields
    if fields.key in vex.GATHERS:
        index = f"%ymm{fields.sib >> 3 & 7 | fields.index_high << 3}"
        shift = "vpsrlq $58" if fields.opcode & 1 else "vpsrad $25"
        return f"{shift}, {index}, {index};"
    return "mov %r15, %rdi;" if fields.key == vex.BYTES_BY_MASK else ""
