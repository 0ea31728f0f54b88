"""Makes files with ORC tables, with BTF that tells their layout or without."""

import struct

from btfkit import BtfMaker

from engine.image.elf import ElfImage
from engine.image.kernel.kernelelf import MadeSection, MadeSegment, elf_of, with_sections

BASE = 0xFFFFFFFF81000000
CODE = 0x1000
_PROGBITS, _MACHINE = 1, 62

CALL, REGS, PARTIAL = 0, 1, 2
"""Types as they were until 6.3."""


def old(
    sp: int, offset: int, bp: int = 0, bp_offset: int = 0, kind: int = CALL, end: int = 0
) -> bytes:
    return struct.pack("<hhBB", offset, bp_offset, sp | bp << 4, kind | end << 2)


def new(
    sp: int, offset: int, bp: int = 0, bp_offset: int = 0, kind: int = 2, signal: int = 0
) -> bytes:
    return struct.pack("<hhBB", offset, bp_offset, sp | bp << 4, kind | signal << 3)


def orc_types(*, split: bool) -> bytes:
    """BTF of `struct orc_entry`, old or with types of its own for the end."""
    made = BtfMaker()
    short = made.integer("short int", 2, 1)
    word = made.integer("unsigned int", 4)
    last = ("signal", word, 1 << 24 | 43) if split else ("end", word, 1 << 24 | 42)
    made.record(
        "orc_entry",
        6,
        ("sp_offset", short, 0),
        ("bp_offset", short, 16),
        ("sp_reg", word, 4 << 24 | 32),
        ("bp_reg", word, 4 << 24 | 36),
        ("type", word, (3 if split else 2) << 24 | 40),
        last,
        flag=True,
    )
    return made.data()


def orc_image(
    entries: list[tuple[int, bytes]],
    *,
    btf: bytes = b"",
    banner: bytes = b"",
    header: bytes = b"",
    code: bytes = bytes(CODE),
    base_types: bytes = b"",
) -> ElfImage:
    """A file with entries, given as (offset in the code, 6 bytes).

    Args:
        entries: in the order of the tables.
        btf: a section of types.
        banner: text that tells the version.
        header: of the tables.
        code: at `BASE`.
        base_types: what the types go on from.
    """
    place = BASE + len(code)
    offsets = [BASE + at - (place + 4 * number) for number, (at, _) in enumerate(entries)]
    parts = {
        ".text": code,
        ".orc_unwind_ip": struct.pack(f"<{len(offsets)}i", *offsets),
        ".orc_unwind": b"".join(raw for _, raw in entries),
        ".orc_header": header,
        ".BTF": btf,
        ".rodata": banner,
        ".BTF.base": base_types,
    }
    data, sections = b"", []
    for name, part in parts.items():
        if part:
            sections.append(
                MadeSection(name, _PROGBITS, 2, BASE + len(data), len(data), len(part))
            )
            data += part
    segment = MadeSegment(5, 0, BASE, len(data), len(data))
    front, placed = elf_of(_MACHINE, [segment], sections)
    return ElfImage.from_bytes(b"".join(with_sections([front, data], placed)), "vmlinux")
