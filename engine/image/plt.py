"""Names for procedure linkage stubs: which import a stub jumps to.

A stub is recognised by what it does, an indirect jump through a GOT slot that a
relocation fills; its place in the section proves nothing (.plt, .plt.sec, .plt.got and
the variants with ENDBR, BND or BTI differ between linkers and options).
"""

import re
import struct
from collections.abc import Iterator
from typing import Final

from engine.image import headers
from engine.image.elf import ElfImage
from engine.image.headers import Section

PLT_SECTIONS: Final = (".plt", ".plt.sec", ".plt.got", ".plt.bnd", ".iplt")
# (GLOB_DAT, JUMP_SLOT, IRELATIVE) of the psABIs.
_TYPES: Final = {headers.EM_X86_64: (6, 7, 37), headers.EM_AARCH64: (1025, 1026, 1032)}
_X86_STUB: Final = re.compile(rb"(?:\xf3\x0f\x1e\xfa)?\xf2?\xff\x25(....)", re.DOTALL)
_BTI_C: Final = 0xD503245F


def plt_sections(image: ElfImage) -> list[Section]:
    """The sections that hold linkage stubs."""
    return [section for section in image.sections if section.name in PLT_SECTIONS]


def stubs(image: ElfImage) -> Iterator[tuple[int, int, int, int]]:
    """Yield (address, size, symbol number in .dynsym, resolver address) of every stub.

    The resolver is 0 unless the slot belongs to an IFUNC of the image itself
    (R_*_IRELATIVE); then the symbol number is 0.
    """
    if image.machine not in _TYPES:
        return
    areas = plt_sections(image)
    slots = _slots(image, any(section.name == ".plt.got" for section in areas)) if areas else {}
    for section in areas:
        code = image.section_data(section)
        walk = _x86_stubs if image.machine == headers.EM_X86_64 else _aarch64_stubs
        found = [(at, slots[slot]) for at, slot in walk(code, section.addr) if slot in slots]
        size = section.entsize
        for number, (at, (symbol, resolver)) in enumerate(found):
            follower = found[number + 1][0] if number + 1 < len(found) else section.size
            if number + 1 < len(found):
                size = follower - at
            size = min(size or section.size, section.size - at)
            yield section.addr + at, size, symbol, resolver


def _slots(image: ElfImage, with_data: bool) -> dict[int, tuple[int, int]]:
    """Map GOT slot -> (symbol number, resolver address), from the relocations."""
    glob_dat, jump_slot, irelative = _TYPES[image.machine]
    wanted = (glob_dat, jump_slot, irelative) if with_data else (jump_slot, irelative)
    slots: dict[int, tuple[int, int]] = {}
    form = struct.Struct(image.layout.order + "QQq")
    for section in image.sections:
        # .rela.dyn can hold half a million entries; only .plt.got needs it.
        plain = section.name in (".rela.plt", ".rela.iplt")
        if section.type != headers.SHT_RELA or not (plain or with_data):
            continue
        raw = image.section_data(section)
        for offset, info, addend in form.iter_unpack(raw[: len(raw) // form.size * form.size]):
            kind = info & 0xFFFFFFFF
            if kind == irelative:
                slots[offset] = (0, addend & 0xFFFFFFFFFFFFFFFF)
            elif kind in wanted:
                slots[offset] = (info >> 32, 0)
    return slots


def _x86_stubs(code: bytes, address: int) -> Iterator[tuple[int, int]]:
    """Yield (offset of the stub, GOT slot) of `jmp *slot(%rip)` forms."""
    for match in _X86_STUB.finditer(code):
        displacement = int.from_bytes(match[1], "little", signed=True)
        yield match.start(), address + match.end() + displacement


def _aarch64_stubs(code: bytes, address: int) -> Iterator[tuple[int, int]]:
    """Yield (offset of the stub, GOT slot) of `adrp x16; ldr x17, [x16, #n]` forms."""
    words = struct.unpack(f"<{len(code) // 4}I", code[: len(code) // 4 * 4])
    for index in range(len(words) - 1):
        adrp, load = words[index], words[index + 1]
        if adrp & 0x9F00001F != 0x90000010 or load & 0xFFC003FF != 0xF9400211:
            continue
        pages = (adrp >> 5 & 0x7FFFF) << 2 | adrp >> 29 & 3
        pages -= (pages & 1 << 20) << 1
        page = (address + 4 * index & ~0xFFF) + (pages << 12)
        slot = page + (load >> 10 & 0xFFF) * 8
        start = index - 1 if index and words[index - 1] == _BTI_C else index
        yield 4 * start, slot
