"""The records of an ELF file and how their bytes are read: no policy, no ElfImage.

Names and numbers are those of `elf.h`; sizes are in bytes, addresses are link addresses.
"""

import mmap
import struct
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

Buffer = bytes | mmap.mmap

PT_LOAD: Final = 1
PT_DYNAMIC: Final = 2
PT_INTERP: Final = 3
PT_NOTE: Final = 4
PT_TLS: Final = 7
PT_GNU_EH_FRAME: Final = 0x6474E550
PT_GNU_STACK: Final = 0x6474E551
PF_X: Final = 1
PF_W: Final = 2
PF_R: Final = 4

SHT_SYMTAB: Final = 2
SHT_RELA: Final = 4
SHT_NOTE: Final = 7
SHT_NOBITS: Final = 8
SHT_REL: Final = 9
SHT_DYNSYM: Final = 11
SHT_GNU_VERSYM: Final = 0x6FFFFFFF
SHF_WRITE: Final = 1
SHF_ALLOC: Final = 2
SHF_TLS: Final = 0x400
SHF_EXECINSTR: Final = 4
SHF_COMPRESSED: Final = 0x800

BTF: Final = ".BTF"
"""Name of the section of types that kernels carry."""

ET_EXEC: Final = 2
ET_DYN: Final = 3
NT_GNU_BUILD_ID: Final = 3
NOT_A_PROGRAM: Final = {
    0: "has no type (ET_NONE)",
    1: "is an object file (ET_REL); link it first",
    4: "is a core dump (ET_CORE), not a program",
}

EM_386: Final = 3
EM_ARM: Final = 40
MACHINES: Final = {
    0: "EM_NONE",
    2: "EM_SPARC",
    EM_386: "EM_386",
    4: "EM_68K",
    8: "EM_MIPS",
    15: "EM_PARISC",
    18: "EM_SPARC32PLUS",
    20: "EM_PPC",
    21: "EM_PPC64",
    22: "EM_S390",
    EM_ARM: "EM_ARM",
    42: "EM_SH",
    43: "EM_SPARCV9",
    50: "EM_IA_64",
    62: "EM_X86_64",
    92: "EM_OPENRISC",
    94: "EM_XTENSA",
    183: "EM_AARCH64",
    189: "EM_MICROBLAZE",
    243: "EM_RISCV",
    247: "EM_BPF",
    252: "EM_CSKY",
    258: "EM_LOONGARCH",
    0x9026: "EM_ALPHA",
}
MAPPED: Final = (EM_ARM,)
"""Machines that no architecture here is for, whose files have mapping symbols."""
WORD_BITS: Final = {EM_386: 32, EM_ARM: 32}
"""Machines with one word size that no architecture here is for; the other class is damage."""


class Header(Struct, frozen=True):
    """The ELF header behind e_ident, fields in the order of the file."""

    type: int
    machine: int
    version: int
    entry: int
    phoff: int
    shoff: int
    flags: int
    ehsize: int
    phentsize: int
    phnum: int
    shentsize: int
    shnum: int
    shstrndx: int


class Segment(Struct, frozen=True):
    """A program header: `type` is PT_*, `flags` is a mask of PF_R, PF_W, PF_X."""

    type: int
    flags: int
    offset: int
    vaddr: int
    paddr: int
    filesz: int
    memsz: int
    align: int

    def covers(self, address: int, size: int = 1) -> bool:
        """True if all of [address, address + size) lies in this segment's memory."""
        return self.vaddr <= address and address + size <= self.vaddr + self.memsz


class Section(Struct, frozen=True):
    """A section header with its name resolved; `type` is SHT_*, `flags` a mask of SHF_*."""

    name: str
    type: int
    flags: int
    addr: int
    offset: int
    size: int
    link: int
    info: int
    addralign: int
    entsize: int

    def holds(self, address: int) -> bool:
        """True if a link address lies in this section's memory."""
        return bool(self.flags & SHF_ALLOC) and self.addr <= address < self.addr + self.size


class Layout(Struct, frozen=True):
    """The struct formats of one class and byte order; `word` reads one address."""

    order: str
    bits: int
    header: struct.Struct
    segment: struct.Struct
    section: struct.Struct
    symbol: struct.Struct
    word: struct.Struct

    def parse_segment(self, data: bytes) -> Segment:
        """Read one program header; the 32-bit form has p_flags in another place."""
        fields = self.segment.unpack(data)
        if self.bits == 32:
            kind, offset, vaddr, paddr, filesz, memsz, flags, align = fields
            return Segment(kind, flags, offset, vaddr, paddr, filesz, memsz, align)
        return Segment(*fields)


def layout(bits: int, byteorder: str) -> Layout:
    """The formats for files of `bits` (32 or 64) and "little" or "big" byte order."""
    order = "<" if byteorder == "little" else ">"
    if bits == 64:
        forms = ("HHIQQQIHHHHHH", "IIQQQQQQ", "IIQQQQIIQQ", "IBBHQQ", "Q")
    else:
        forms = ("HHIIIIIHHHHHH", "IIIIIIII", "IIIIIIIIII", "IIIBBH", "I")
    return Layout(order, bits, *(struct.Struct(order + form) for form in forms))


def cstring(data: Buffer, start: int, end: int) -> bytes | None:
    """The bytes from `start` up to a NUL before `end`; None if there is no such NUL."""
    stop = data.find(b"\0", start, end) if 0 <= start < end else -1
    return None if stop < 0 else data[start:stop]


def text(raw: bytes) -> str:
    r"""Decode a name for display: what is not UTF-8 shows as \xNN and can be printed."""
    return raw.decode("utf-8", "backslashreplace")


def notes(data: bytes, order: str) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield (owner, type, description) of a note area; stops where it is damaged.

    Names and descriptions are padded to 4 bytes, as all GNU notes are on Linux.
    """
    place = 0
    while place + 12 <= len(data):
        namesz, descsz, kind = struct.unpack_from(order + "III", data, place)
        desc = place + 12 + (namesz + 3 & ~3)
        if desc + descsz > len(data):
            return
        yield (
            data[place + 12 : place + 12 + namesz].rstrip(b"\0"),
            kind,
            data[desc : desc + descsz],
        )
        place = desc + (descsz + 3 & ~3)


def gnu_build_id(data: bytes, order: str) -> str | None:
    """The GNU build-id of a note area, in lower-case hex; None if it has none."""
    for owner, kind, desc in notes(data, order):
        if owner == b"GNU" and kind == NT_GNU_BUILD_ID and desc:
            return desc.hex()
    return None


def foreign(data: Buffer) -> str:
    """Say what a file that does not start with the ELF magic is, and the way out."""
    head = data[:512]
    if head[:2] == b"#!":
        words = head[2:].split(b"\n")[0].split()
        if not words:
            return "is a script without an interpreter; give the program that runs it as GUEST"
        interpreter = text(b" ".join(words))
        return f"is a script for {interpreter}; run that program with the script as its argument"
    magics = {
        b"\x7fELF"[: len(head)]: "ends inside the ELF magic",
        b"MZ": "is a DOS or Windows program",
        b"!<arch>": "is an archive of object files",
        b"\xcf\xfa\xed\xfe": "is a Mach-O file (macOS)",
        b"\xca\xfe\xba\xbe": "is a Mach-O or Java class file",
        b"\x1f\x8b": "is compressed by gzip; unpack it first",
        b"\xfd7zXZ": "is compressed by xz; unpack it first",
        b"KPTRECORD": "is a recorded run (kprobe-tui replay)",
        b"KPTBOOTED": "is a recorded boot (kprobe-tui replay)",
    }
    for magic, meaning in magics.items():
        if head.startswith(magic):
            return f"{meaning}; an ELF program is needed"
    try:
        printable = head.decode("utf-8", "strict").replace("\n", " ").replace("\t", " ")
    except UnicodeDecodeError:
        printable = "\0"
    if printable.isprintable():
        return "is a text file, not an ELF program"
    return f"is not an ELF file: it starts with {head[:4].hex(' ')} instead of 7f 45 4c 46"
