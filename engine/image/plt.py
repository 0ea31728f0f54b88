"""Names for procedure linkage stubs: which import a stub jumps to.

A stub is recognised by what it does, an indirect jump through a GOT slot that a
relocation fills; its place in the section proves nothing (.plt, .plt.sec, .plt.got and
the variants with ENDBR, BND or BTI differ between linkers and options).
"""

import struct
from collections.abc import Iterator
from typing import Final

from engine import arch as architectures
from engine.arch.abi import LinkageStubs
from engine.image import headers
from engine.image.elf import ElfImage
from engine.image.headers import Section

PLT_SECTIONS: Final = (".plt", ".plt.sec", ".plt.got", ".plt.bnd", ".iplt")


def plt_sections(image: ElfImage) -> list[Section]:
    """The sections that hold linkage stubs."""
    return [section for section in image.sections if section.name in PLT_SECTIONS]


def stubs(image: ElfImage) -> Iterator[tuple[int, int, int, int]]:
    """Yield (address, size, symbol number in .dynsym, resolver address) of every stub.

    The resolver is 0 unless the slot belongs to an IFUNC of the image itself
    (R_*_IRELATIVE); then the symbol number is 0.
    """
    arch = architectures.for_elf(image.machine, image.bits, image.byteorder)
    form = arch.abi.stubs if arch is not None else None
    if form is None:
        return
    areas = plt_sections(image)
    with_data = any(section.name == ".plt.got" for section in areas)
    slots = _slots(image, form, with_data) if areas else {}
    for section in areas:
        code = image.section_data(section)
        found = [(at, slots[slot]) for at, slot in form.find(code, section.addr) if slot in slots]
        size = section.entsize
        for number, (at, (symbol, resolver)) in enumerate(found):
            follower = found[number + 1][0] if number + 1 < len(found) else section.size
            if number + 1 < len(found):
                size = follower - at
            size = min(size or section.size, section.size - at)
            yield section.addr + at, size, symbol, resolver


def jump_slots(image: ElfImage) -> dict[int, int]:
    """The addresses of .got.plt that calls jump through: each slot's symbol number in .dynsym."""
    arch = architectures.for_elf(image.machine, image.bits, image.byteorder)
    form = arch.abi.stubs if arch is not None else None
    if form is None:
        return {}
    slots = _slots(image, form, with_data=False)
    return {slot: number for slot, (number, resolver) in slots.items() if not resolver}


def _slots(image: ElfImage, form: LinkageStubs, with_data: bool) -> dict[int, tuple[int, int]]:
    """Map GOT slot -> (symbol number, resolver address), from the relocations."""
    wanted = {form.jump_slot, form.glob_dat} if with_data else {form.jump_slot}
    slots: dict[int, tuple[int, int]] = {}
    entry = struct.Struct(image.layout.order + "QQq")
    for section in image.sections:
        # .rela.dyn can hold half a million entries; only .plt.got needs it.
        plain = section.name in (".rela.plt", ".rela.iplt")
        if section.type != headers.SHT_RELA or not (plain or with_data):
            continue
        raw = image.section_data(section)
        for offset, info, addend in entry.iter_unpack(raw[: len(raw) // entry.size * entry.size]):
            kind = info & 0xFFFFFFFF
            if kind == form.irelative:
                slots[offset] = (0, addend & 0xFFFFFFFFFFFFFFFF)
            elif kind in wanted:
                slots[offset] = (info >> 32, 0)
    return slots
