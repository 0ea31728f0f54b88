"""A file of a kernel's symbols and frames, for debuggers that know none of the kernel's tables.

A distribution's image has its names in kallsyms and its frames in ORC; the file has them as ELF
symbols and as .debug_frame. It has no code: a debugger reads that in the machine's memory.
Source: the ELF specification (System V gABI), chapters 4 and 5.
"""

import struct
from typing import Final

from engine.arch.base import Arch
from engine.guest.modules import Module
from engine.image.kernel.kernelimage import KernelImage
from engine.unwind.framewriter import FrameSection
from engine.unwind.orc import OrcTables

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_LOAD, _READ_EXECUTE = 1, 5
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_START: Final = _HEADER.size + _SEGMENT.size
_IDENT: Final = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
_EXECUTABLE: Final = 2
_PROGBITS, _SYMTAB, _STRTAB, _NOBITS = 1, 2, 3, 8
_WRITE, _ALLOC, _EXECUTE = 1, 2, 4
_FUNCTION, _OBJECT = 2, 1
_GLOBAL: Final = 1 << 4
_ABSOLUTE: Final = 0xFFF1
_CODE_LETTERS: Final = frozenset(b"tTwW")


def symbol_file(image: KernelImage, arch: Arch) -> bytes:
    """Make the file of an image.

    Args:
        image: the kernel.
        arch: its architecture.
    """
    kept = [each for each in image.elf.sections if each.flags & _ALLOC and each.addr]
    kept.sort(key=lambda each: each.addr)
    starts = [each.addr for each in kept]
    ends = [each.addr + each.size for each in kept]
    strings, symbols = bytearray(b"\0"), bytearray(_SYMBOL.pack(0, 0, 0, 0, 0, 0))
    names, addresses, texts = image.names, image.names.addresses, image.names.names
    local = bytearray()
    count, place, after = 1, -1, 0
    for number, address in enumerate(addresses):
        letter = names.types[number]
        while after < len(addresses) and addresses[after] <= address:
            after += 1
        size = addresses[after] - address if after < len(addresses) else 0
        while place + 1 < len(starts) and starts[place + 1] <= address:
            place += 1
        inside = place >= 0 and address < ends[place]
        section = place + 1 if inside else _ABSOLUTE
        kind = _FUNCTION if letter in _CODE_LETTERS else _OBJECT
        is_global = chr(letter).isupper()
        row = _SYMBOL.pack(
            len(strings), kind | (_GLOBAL if is_global else 0), 0, section, address,
            min(size, ends[place] - address) if inside else 0,
        )  # fmt: skip
        strings += texts[number].encode() + b"\0"
        if is_global:
            symbols += row
        else:
            local += row
            count += 1
    symbols[_SYMBOL.size : _SYMBOL.size] = local
    return _written(image, arch, bytes(symbols), bytes(strings), count)


def _frames(image: KernelImage, arch: Arch) -> bytes:
    """The rules for frames of all code."""
    numbers = {each.name: each.dwarf for each in arch.registers if each.dwarf is not None}
    made = FrameSection(numbers, arch.roles.pc)
    module = Module(image.elf.name, image.elf, 0)
    rows = OrcTables(arch, lambda address: module).rows(image.elf)
    made.add(rows, max((each.addr + each.size for each in image.elf.sections), default=0))
    return made.data()


def _written(image: KernelImage, arch: Arch, symbols: bytes, strings: bytes, local: int) -> bytes:
    kept = [each for each in image.elf.sections if each.flags & _ALLOC and each.addr]
    kept.sort(key=lambda each: each.addr)
    headers, names, contents = [bytes(_SECTION.size)], bytearray(b"\0"), bytearray()

    def add(name: str, kind: int, flags: int, address: int, size: int, *more: int) -> None:
        at = _START + (len(contents) if kind != _NOBITS else 0)
        headers.append(_SECTION.pack(len(names), kind, flags, address, at, size, *more))
        names.extend(name.encode() + b"\0")

    for each in kept:
        flags = each.flags & (_WRITE | _ALLOC | _EXECUTE)
        add(each.name, _NOBITS, flags, each.addr, each.size, 0, 0, 1, 0)
    table = len(headers)
    for name, kind, data, link, info, unit in (
        (".symtab", _SYMTAB, symbols, table + 1, local, _SYMBOL.size),
        (".strtab", _STRTAB, strings, 0, 0, 0),
        (".debug_frame", _PROGBITS, _frames(image, arch), 0, 0, 0),
    ):
        contents += bytes(-len(contents) % 8)
        add(name, kind, 0, 0, len(data), link, info, 8, unit)
        contents += data
    names_size = len(names) + len(b".shstrtab\0")
    add(".shstrtab", _STRTAB, 0, 0, names_size, 0, 0, 1, 0)
    contents += names
    contents += bytes(-len(contents) % 8)
    low, high = kept[0].addr, max(each.addr + each.size for each in kept)
    header = _HEADER.pack(
        _IDENT, _EXECUTABLE, image.elf.machine, 1, 0, _HEADER.size, _START + len(contents), 0,
        _HEADER.size, _SEGMENT.size, 1, _SECTION.size, len(headers), len(headers) - 1,
    )  # fmt: skip
    segment = _SEGMENT.pack(_LOAD, _READ_EXECUTE, _START, low, low, 0, high - low, 1)
    return header + segment + bytes(contents) + b"".join(headers)
