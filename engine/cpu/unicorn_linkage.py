"""Unicorn's library from inside: functions, the slots through which it calls them, CPUs."""

import ctypes
import mmap
import os
import struct
import zlib
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, Final, NamedTuple

from msgspec import Struct

from engine.cpu.unicorn_library import uclib

# The engine structure's pointer to its CPUState, and the way back, in the pinned build.
_CPU_AT, _BACK_AT = 0x1B8, 0x81A8

# elf.h: dynamic tags and the relocation of a function that is called through a slot.
_STRTAB, _SYMTAB, _STRSZ, _PLTRELSZ, _JMPREL = 5, 6, 10, 2, 23
_JUMP_SLOT: Final = 7
_ENTRY: Final = 24  # bytes of a symbol, and of a relocation
_HEADER_SIZE, _LOAD, _READABLE = 64, 1, 4
_NEEDED: Final = {_STRTAB, _SYMTAB, _STRSZ, _PLTRELSZ, _JMPREL}
_MOST: Final = 1 << 24


def address_of(name: str) -> int:
    """The address of a function of the library; 0 where it has none of the name."""
    function = getattr(uclib, name, None)
    return ctypes.cast(function, ctypes.c_void_p).value or 0 if function is not None else 0


def address_in(function: Any) -> int:
    """The address behind a ctypes function."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def cpu_of(engine: int) -> int:
    """The CPUState of an engine; 0 if it is not where the pinned build keeps it."""
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)
    except OSError:
        return 0
    try:
        (cpu,) = struct.unpack("=Q", os.pread(memory, 8, engine + _CPU_AT))
        (back,) = struct.unpack("=Q", os.pread(memory, 8, cpu + _BACK_AT))
    except (OSError, OverflowError, struct.error):
        return 0
    finally:
        os.close(memory)
    return int(cpu) if back == engine else 0


def page_flusher(engine: int, target: str) -> Callable[[int], None] | None:
    """Makes an engine forget where one page is, with which Unicorn's interface forgets all.

    Args:
        engine: its address.
        target: how the library's functions of its architecture end.

    Returns:
        What is called with an address of the page; None where the library has it not.
    """
    function, cpu = address_of(f"tlb_flush_page_{target}"), cpu_of(engine)
    if not function or not cpu:
        return None
    return partial(ctypes.PYFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64)(function), cpu)


class _Linkage(NamedTuple):
    """The dynamic section of the library: its base address, and where the tables are."""

    base: int
    strings: int
    symbols: int
    jumps: int
    strings_size: int
    jumps_size: int


@cache
def _linkage() -> _Linkage | None:
    """The tables of the library; None if it is laid out otherwise.

    A dlopen handle is the loader's link_map: base address, name, dynamic section.
    """
    base, _, dynamic = struct.unpack("=3Q", ctypes.string_at(vars(uclib)["_handle"], 24))
    tags: dict[int, int] = {}
    while True:
        tag, value = struct.unpack("=2Q", ctypes.string_at(dynamic, 16))
        if not tag:
            break
        tags[tag] = value
        dynamic += 16
    if not tags.keys() >= _NEEDED:
        return None
    strings, symbols, jumps = (
        tags[tag] if tags[tag] >= base else tags[tag] + base for tag in (_STRTAB, _SYMTAB, _JMPREL)
    )
    if not 0 < strings - symbols < _MOST:  # the symbols end where the strings begin
        return None
    return _Linkage(base, strings, symbols, jumps, tags[_STRSZ], tags[_PLTRELSZ])


def known(pieces: Iterable[tuple[int, int, int]]) -> int:
    """The address at which the library begins; 0 if its code is not the one that is known.

    Args:
        pieces: of the code: how far behind the beginning, bytes, and their CRC-32.
    """
    found = _linkage()
    if found is None:
        return 0
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)
    except OSError:
        return 0
    try:
        alike = all(
            zlib.crc32(os.pread(memory, size, found.base + at)) == checksum
            for at, size, checksum in pieces
        )
    except OSError:
        return 0
    finally:
        os.close(memory)
    return found.base if alike else 0


def code_checks(functions: Iterable[tuple[str, int]], target: str) -> str:
    """The CRC-32 of the code of functions, in hex, one after the other; "" if one is missing.

    Args:
        functions: name without its target, and bytes of each.
        target: how the library's functions of an architecture end.
    """
    found = [(address_of(f"{name}_{target}"), size) for name, size in functions]
    if not all(place for place, _ in found):
        return ""
    return "".join(f"{zlib.crc32(ctypes.string_at(place, size)):08x}" for place, size in found)


def tables() -> tuple[int, int] | None:
    """(address, size) of the read-only pages that hold the tables; None if they are not found.

    Source: the ELF header in memory, and the first PT_LOAD, which nothing else is in.
    """
    found = _linkage()
    if found is None:
        return None
    header = ctypes.string_at(found.base, _HEADER_SIZE)
    at, size, count = *struct.unpack_from("=Q", header, 32), *struct.unpack_from("=2H", header, 54)
    rows = ctypes.string_at(found.base + at, size * count)
    for row in range(0, len(rows), size):
        kind, flags, offset, address, _, _, length = struct.unpack_from("=2I5Q", rows, row)
        if (kind, flags, offset, address) == (_LOAD, _READABLE, 0, 0):
            inside = found.base <= found.symbols < found.jumps < found.base + length
            return (found.base, length & -mmap.PAGESIZE) if inside else None
    return None


def slots_of(names: tuple[bytes, ...]) -> list[int] | None:
    """Addresses of the words through which the library calls functions; None if one has none."""
    found = _linkage()
    if found is None:
        return None
    slots = [_bound_slot(found, name) for name in names]
    if not all(slots):  # the whole tables are four megabytes, which nobody else reads
        return _slots_by_name(found, names)
    return slots


def _bound_slot(found: _Linkage, name: bytes) -> int:
    """The slot that holds a function's address, if it is where its relocation says; 0 if not.

    The loader fills the slots in as it opens the library: they lie side by side.
    """
    count = found.jumps_size // _ENTRY
    start, last = (
        int.from_bytes(ctypes.string_at(found.jumps + at * _ENTRY, 8), "little")
        for at in (0, count - 1)
    )
    target = address_of(name.decode())
    if not target or last - start != 8 * (count - 1):
        return 0
    words = ctypes.string_at(found.base + start, 8 * count)
    at = words.find(target.to_bytes(8, "little"))
    if at < 0 or at % 8:
        return 0
    entry = ctypes.string_at(found.jumps + at // 8 * _ENTRY, _ENTRY)
    offset, kind, symbol = struct.unpack_from("=Q2I", entry)
    if offset != start + at or kind != _JUMP_SLOT:
        return 0
    (text,) = struct.unpack_from("=I", ctypes.string_at(found.symbols + symbol * _ENTRY, _ENTRY))
    if ctypes.string_at(found.strings + text, len(name) + 1) != name + b"\0":
        return 0
    return found.base + start + at


def _slots_by_name(found: _Linkage, names: tuple[bytes, ...]) -> list[int] | None:
    """The same by the tables alone."""
    strings = ctypes.string_at(found.strings, found.strings_size)
    symbols = ctypes.string_at(found.symbols, found.strings - found.symbols)
    relocations = ctypes.string_at(found.jumps, found.jumps_size)
    slots = []
    for name in names:
        symbol = _symbol(name, strings, symbols)
        at = _entry(relocations, 8, struct.pack("=2I", _JUMP_SLOT, symbol))
        if not symbol or at < 0:
            return None
        slots.append(found.base + int(struct.unpack_from("=Q", relocations, at)[0]))
    return slots


def _symbol(name: bytes, strings: bytes, symbols: bytes) -> int:
    """The number of a symbol; 0 for none. The end of a longer name may serve as a name."""
    place = strings.find(name + b"\0")
    while place >= 0:
        at = _entry(symbols, 0, struct.pack("=I", place))
        if at >= 0:
            return at // _ENTRY
        place = strings.find(name + b"\0", place + 1)
    return 0


def _entry(table: bytes, field: int, content: bytes) -> int:
    """The place of the entry with this in a field; -1 for none."""
    at = table.find(content)
    while at >= 0 and at % _ENTRY != field:
        at = table.find(content, at + 1)
    return at - field if at >= 0 else -1


class HostRecord(Struct, frozen=True):
    """Words that placed host code reads and writes.

    Attributes:
        words: the words themselves, unsigned, of 64 bits.
        at: their address.
        memory: that holds them.
    """

    words: "memoryview[int]"
    at: int
    memory: mmap.mmap


def record(count: int) -> HostRecord:
    """A record of so many words, all zero."""
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return HostRecord(memoryview(memory)[: 8 * count].cast("Q"), at, memory)


def redirect(slots: list[int], targets: list[int]) -> bool:
    """Write slots through the kernel, which refuses where a store would kill."""
    try:
        memory = os.open("/proc/self/mem", os.O_RDWR)
    except OSError:
        return False
    try:
        return all(
            os.pwrite(memory, struct.pack("=Q", target), slot) == 8
            for slot, target in zip(slots, targets, strict=True)
        )
    except (OSError, OverflowError):
        return False
    finally:
        os.close(memory)


def rewrite(codes: dict[int, bytes]) -> bool:
    """Change the library's code through the kernel, which refuses where a store would kill."""
    try:
        memory = os.open("/proc/self/mem", os.O_RDWR)
    except OSError:
        return False
    try:
        return all(os.pwrite(memory, code, at) == len(code) for at, code in codes.items())
    except (OSError, OverflowError):
        return False
    finally:
        os.close(memory)
