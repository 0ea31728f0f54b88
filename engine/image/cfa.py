"""The canonical frame address at an instruction: what locations of locals are relative to.

Only the rules of the CFA itself are followed (DWARF 5, 6.4.2.2); where registers were saved
is the unwinder's business.
"""

from typing import Final

from engine.image.cfi import Fde, find_fde
from engine.image.elf import ElfImage
from engine.image.reader import DamagedError, Reader

# Operands of the instructions that do not touch the CFA: u = unsigned LEB128, b = block.
_OPERANDS: Final = {
    0x00: "",
    0x05: "uu",
    0x06: "u",
    0x07: "u",
    0x08: "u",
    0x09: "uu",
    0x10: "ub",
    0x11: "uu",
    0x14: "uu",
    0x15: "uu",
    0x16: "ub",
    0x2D: "",
    0x2E: "u",
    0x2F: "uu",
}


def cfa_at(image: ElfImage, address: int) -> tuple[int, int] | None:
    """(DWARF register, offset) whose sum is the CFA at a link address.

    None where the unwind tables do not say it that way.
    """
    fde = find_fde(image, address)
    if fde is None:
        return None
    try:
        return _run(fde, address, image.layout.order)
    except DamagedError:
        return None


def _run(fde: Fde, address: int, order: str) -> tuple[int, int] | None:
    cie = fde.cie
    rule: tuple[int, int] | None = None
    saved: list[tuple[int, int] | None] = []
    at = fde.start
    for code in (cie.instructions, fde.instructions):
        reader = Reader(code, 0, len(code), order)
        while reader.place < reader.end:
            byte = reader.u8()
            high, low = byte & 0xC0, byte & 0x3F
            advance = 0
            if high == 0x40:
                advance = low
            elif high == 0x80:
                reader.uleb()
            elif high == 0xC0:
                pass
            elif byte == 0x01:  # DW_CFA_set_loc: no linker keeps it, and its encoding varies
                return None
            elif byte in (0x02, 0x03, 0x04):
                advance = reader.uint(1 << (byte - 2))
            elif byte == 0x0A:
                saved.append(rule)
            elif byte == 0x0B:
                if not saved:
                    raise DamagedError("a state is restored that was not remembered")
                rule = saved.pop()
            elif byte == 0x0C:
                rule = reader.uleb(), reader.uleb()
            elif byte == 0x0D:
                rule = reader.uleb(), rule[1] if rule else 0
            elif byte == 0x0E:
                rule = (rule[0], reader.uleb()) if rule else None
            elif byte == 0x0F:
                reader.block(reader.uleb())
                rule = None
            elif byte == 0x12:
                rule = reader.uleb(), reader.sleb() * cie.data_alignment
            elif byte == 0x13:
                rule = (rule[0], reader.sleb() * cie.data_alignment) if rule else None
            else:
                _over(reader, byte)
            at += advance * cie.code_alignment
            if at > address:
                return rule
    return rule


def _over(reader: Reader, byte: int) -> None:
    operands = _OPERANDS.get(byte)
    if operands is None:
        raise DamagedError(f"call frame instruction {byte:#x}")
    for operand in operands:
        size = reader.uleb()
        if operand == "b":
            reader.take(size)
