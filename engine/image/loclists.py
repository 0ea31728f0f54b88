"""Location lists: which expression holds at an address (DWARF 5, 2.6.2 and 7.7.3)."""

from collections.abc import Iterator

from engine.image import dies, forms
from engine.image.dies import Die, Unit
from engine.image.reader import DamagedError, Reader


def entry_at(die: Die, attribute: int, value: int, pc: int) -> bytes | None:
    """The expression of a location list that holds at an address; None for none.

    Args:
        die: the entry whose list it is.
        attribute: that refers to the list.
        value: of the attribute: an offset or an index.
        pc: link address.

    Raises:
        DamagedError: the list is damaged.
    """
    for low, high, code in entries_of(die, attribute, value):
        if low <= pc < high:
            return code
    return None


def entries_of(
    die: Die, attribute: int, value: int, bases: list[int] | None = None
) -> Iterator[tuple[int, int, bytes]]:
    """(start, end, expression) of a location list; a default location comes last.

    Args:
        die: the entry whose list it is.
        attribute: that refers to the list.
        value: of the attribute: an offset or an index.
        bases: gets the base addresses that a list of DWARF 5 has, before the entries behind them.

    Raises:
        DamagedError: the list is damaged.
    """
    unit = die.unit
    if unit.version < 5:
        yield from _list_2(unit, value)
        return
    info, width = unit.info, unit.widths.address
    data = info.section(".debug_loclists")
    if die.form(attribute) == forms.LOCLISTX:
        header = 12 if unit.widths.offset == 4 else 20
        split = unit.skeleton is not None
        base = header if split else unit.base(dies.AT_LOCLISTS_BASE, header)
        value = base + info.number(".debug_loclists", base, value, unit.widths.offset)
    reader = Reader(data, value, len(data), info.order)
    base = unit.low_pc
    default: bytes | None = None
    while kind := reader.u8():
        low = high = 0
        if kind == 1:
            base = unit.address(reader.uleb())
            if bases is not None:
                bases.append(base)
            continue
        if kind == 6:
            base = reader.uint(width)
            if bases is not None:
                bases.append(base)
            continue
        if kind == 9:  # DW_LLE_GNU_view_pair
            reader.uleb()
            reader.uleb()
            continue
        if kind == 5:
            default = reader.block(reader.uleb())
            continue
        if kind == 2:
            low, high = unit.address(reader.uleb()), unit.address(reader.uleb())
        elif kind == 3:
            low = unit.address(reader.uleb())
            high = low + reader.uleb()
        elif kind == 4:
            low, high = base + reader.uleb(), base + reader.uleb()
        elif kind == 7:
            low, high = reader.uint(width), reader.uint(width)
        elif kind == 8:
            low = reader.uint(width)
            high = low + reader.uleb()
        else:
            raise DamagedError(f".debug_loclists: an entry of kind {kind}")
        yield low, high, reader.block(reader.uleb())
    if default is not None:
        yield 0, 1 << 8 * width, default


def _list_2(unit: Unit, value: int) -> Iterator[tuple[int, int, bytes]]:
    """DWARF 2 to 4, 2.6.2: .debug_loc."""
    info, width = unit.info, unit.widths.address
    data = info.section(".debug_loc")
    reader = Reader(data, value, len(data), info.order)
    if unit.skeleton is not None:
        yield from _list_gnu(reader, unit)
        return
    base, top = unit.low_pc, (1 << 8 * width) - 1
    while True:
        low, high = reader.uint(width), reader.uint(width)
        if low == high == 0:
            return
        if low == top:
            base = high
            continue
        yield base + low, base + high, reader.block(reader.uint(2))


def _list_gnu(reader: Reader, unit: Unit) -> Iterator[tuple[int, int, bytes]]:
    """.debug_loc.dwo before DWARF 5: addresses by index (gcc.gnu.org/wiki/DebugFission)."""
    base = unit.low_pc
    while kind := reader.u8():
        if kind == 1:
            base = unit.address(reader.uleb())
            continue
        if kind == 2:
            low, high = unit.address(reader.uleb()), unit.address(reader.uleb())
        elif kind == 3:
            low = unit.address(reader.uleb())
            high = low + reader.uint(4)
        elif kind == 4:
            low, high = base + reader.uint(4), base + reader.uint(4)
        else:
            raise DamagedError(f".debug_loc.dwo: an entry of kind {kind}")
        yield low, high, reader.block(reader.uint(2))
