"""Which files may run: the rules of Linux's fs/binfmt_elf.c, each with its text.

A rule answers with the reason for a refusal, or None. What only a damaged file can hold
is refused even where some kernel would go on. Nothing here looks at sections: Linux does
not either.
"""

from collections.abc import Sequence
from typing import Final

from engine import arch as architectures
from engine.image import headers
from engine.image.headers import Header, Layout, Segment

PAGE_SIZE: Final = 4096
PATH_MAX: Final = 4096
_MAX_PHDR_BYTES: Final = 65536  # load_elf_phdrs() refuses a larger table, PN_XNUM with it


def check_header(head: Header, layout: Layout, file_size: int) -> str | None:
    """Check type, machine and the place of the program headers.

    EI_VERSION, e_version, EI_OSABI and e_ehsize are ignored, as Linux ignores them.
    """
    if head.type not in (headers.ET_EXEC, headers.ET_DYN):
        return headers.NOT_A_PROGRAM.get(head.type, f"has the unknown type {head.type:#x}")
    classes = architectures.classes_of(head.machine)
    if not classes and head.machine in headers.WORD_BITS:
        classes = frozenset((headers.WORD_BITS[head.machine],))
    if classes and layout.bits not in classes:  # x32, arm64ilp32 or damage
        bits = min(classes)
        return (
            f"ELF header: a {layout.bits}-bit file for {headers.MACHINES[head.machine]};"
            f" only {bits}-bit programs are supported there"
        )
    size = layout.segment.size
    if head.phnum == 0:
        return "ELF header: no program headers, so nothing can be loaded"
    if head.phentsize != size:
        return f"ELF header: e_phentsize is {head.phentsize}, must be {size}"
    if head.phnum * size > _MAX_PHDR_BYTES:
        limit = _MAX_PHDR_BYTES // size
        return f"ELF header: {head.phnum} program headers; Linux loads at most {limit}"
    if head.phoff + head.phnum * size > file_size:
        return (
            f"program headers: {head.phnum} at {head.phoff:#x} reach past the end"
            f" of the file ({file_size:#x} bytes)"
        )
    return None


def check_loads(segments: Sequence[Segment], bits: int) -> str | None:
    """Check every PT_LOAD for itself; overlap and order are free, as in Linux."""
    loads = 0
    for number, segment in enumerate(segments):
        if segment.type == headers.PT_LOAD:
            loads += segment.memsz > 0
            if reason := _check_load(segment, bits):
                return f"program header {number}: {reason}"
    return None if loads else "program headers: no PT_LOAD with memory, so there is nothing to run"


def _check_load(segment: Segment, bits: int) -> str | None:
    offset, vaddr = segment.offset, segment.vaddr
    if segment.filesz > segment.memsz:
        return f"p_filesz {segment.filesz:#x} is larger than p_memsz {segment.memsz:#x}"
    if vaddr + segment.memsz > (1 << bits) - PAGE_SIZE:
        return f"p_vaddr {vaddr:#x} plus p_memsz {segment.memsz:#x} wraps around the address space"
    if segment.filesz and (offset - vaddr) % PAGE_SIZE:
        return (
            f"p_offset {offset:#x} and p_vaddr {vaddr:#x} differ within the page"
            f" ({PAGE_SIZE} bytes), so it cannot be mapped"
        )
    if segment.filesz and offset + segment.filesz >= 1 << 63:
        return f"p_offset {offset:#x} is no file offset"
    return None


def check_interpreter(filesz: int, raw: bytes) -> str | None:
    """Check the path of PT_INTERP: `filesz` as claimed, `raw` as stored."""
    if not 2 <= filesz <= PATH_MAX:
        return f"a path of {filesz} bytes; 2 to {PATH_MAX} are valid"
    if len(raw) < filesz:
        return "the path lies behind the end of the file"
    if raw[-1] != 0:
        return "the path does not end with a NUL byte"
    if raw[0] == 0:
        return "the path is empty"
    return None
