"""Addresses of units, functions and scopes: .debug_aranges, .debug_ranges, .debug_rnglists.

DWARF 5, 2.17.3, 6.1.2 and 7.25; DWARF 4, 2.17.3.
"""

import struct
from collections.abc import Iterator
from typing import Final

from engine.image import dies, forms
from engine.image.dies import Die, Unit
from engine.image.reader import DamagedError, Reader

_MAX_RANGES: Final = 1 << 20
_SUBPROGRAM: Final = 0x2E


def read_aranges(data: bytes, order: str) -> Iterator[list[tuple[int, int, int]]]:
    """(start, end, unit) of .debug_aranges, as they stand, one set after the other.

    Raises:
        DamagedError: where it is damaged.
    """
    reader = Reader(data, 0, len(data), order)
    while reader.place < reader.end:
        start = reader.place
        length, width = reader.initial_length()
        end = reader.take(length) + length
        one = Reader(data, end - length, end, order)
        version, unit = one.uint(2), one.uint(width)
        size, segment = one.u8(), one.u8()
        if version != 2 or size not in (4, 8) or segment:
            continue
        one.take(-(one.place - start) % (2 * size))
        form = struct.Struct(order + ("QQ" if size == 8 else "II"))
        block = one.block((end - one.place) // form.size * form.size)
        yield [(low, low + count, unit) for low, count in form.iter_unpack(block) if count]


def read_ranges(die: Die) -> list[tuple[int, int]]:
    """(start, end) link addresses of an entry; empty if it has none."""
    if not die.has(dies.AT_RANGES):
        if not die.has(dies.AT_LOW_PC):
            return []  # as most entries of a unit: none of their attributes has to be read
        low = die.address(dies.AT_LOW_PC)
        high = die.number(dies.AT_HIGH_PC)
        if low is None or high is None:
            return []
        is_address = die.form(dies.AT_HIGH_PC) in forms.ADDRESS_INDEXES | {forms.ADDR}
        end = die.address(dies.AT_HIGH_PC) if is_address else low + high
        return [(low, end)] if end is not None and end > low else []
    value = die.number(dies.AT_RANGES)
    if value is None:
        return []
    unit = die.unit
    found: list[tuple[int, int]] = []
    lists = _lists_5 if unit.version >= 5 else _lists_2
    for low, high in lists(unit, die, value):
        if low < high:
            found.append((low, high))
        if len(found) > _MAX_RANGES:
            raise DamagedError(f"entry {die.offset:#x}: too many ranges")
    return found


def read_functions(unit: Unit) -> list[tuple[int, int, int]]:
    """(start, end, index) of the code of a unit's functions, sorted; read once."""
    if unit.functions is None:
        shape = unit.shape
        unit.functions = sorted(
            (low, high, index)
            for index, tag in enumerate(shape.tags)
            if tag == _SUBPROGRAM
            for low, high in read_ranges(Die(unit, shape.offsets[index]))
        )
    return unit.functions


def _lists_2(unit: Unit, die: Die, offset: int) -> list[tuple[int, int]]:
    home = unit.skeleton or unit
    if unit.skeleton is not None:
        offset += unit.base(dies.AT_GNU_RANGES_BASE, 0)
    data = home.info.section(".debug_ranges")
    reader = Reader(data, offset, len(data), home.info.order)
    width = unit.widths.address
    base, top = unit.low_pc, (1 << 8 * width) - 1
    found: list[tuple[int, int]] = []
    while True:
        low, high = reader.uint(width), reader.uint(width)
        if low == high == 0:
            return found
        if low == top:
            base = high
        else:
            found.append((base + low, base + high))


def _lists_5(unit: Unit, die: Die, value: int) -> list[tuple[int, int]]:
    """DWARF 5, 7.25: a list of DW_RLE_* entries."""
    info = unit.info
    data = info.section(".debug_rnglists")
    if die.form(dies.AT_RANGES) == forms.RNGLISTX:
        header = 12 if unit.widths.offset == 4 else 20
        base = header if unit.skeleton is not None else unit.base(dies.AT_RNGLISTS_BASE, header)
        value = base + info.number(".debug_rnglists", base, value, unit.widths.offset)
    reader = Reader(data, value, len(data), info.order)
    width = unit.widths.address
    base = unit.low_pc
    found: list[tuple[int, int]] = []
    while True:
        kind = reader.u8()
        if kind == 0:
            return found
        if kind == 1:
            base = unit.address(reader.uleb())
        elif kind == 2:
            found.append((unit.address(reader.uleb()), unit.address(reader.uleb())))
        elif kind == 3:
            low = unit.address(reader.uleb())
            found.append((low, low + reader.uleb()))
        elif kind == 4:
            found.append((base + reader.uleb(), base + reader.uleb()))
        elif kind == 5:
            base = reader.uint(width)
        elif kind == 6:
            found.append((reader.uint(width), reader.uint(width)))
        elif kind == 7:
            low = reader.uint(width)
            found.append((low, low + reader.uleb()))
        else:
            raise DamagedError(f".debug_rnglists: an entry of kind {kind}")
