"""Packages of split debug information (.dwp): the .dwo files of one program in a single file.

An index tells where the parts of each unit are in the sections (DWARF 5, 7.3.5; before that GNU's,
gcc.gnu.org/wiki/DebugFissionDWP). Units of types are not looked for.
"""

import os
import struct
from collections.abc import Callable, Mapping
from typing import Final

from engine.image.reader import DamagedError

_INDEX: Final = ".debug_cu_index"
_GNU: Final = 2
_SECTIONS: Final = {
    _GNU: ("", "info", "types", "abbrev", "line", "loc", "str_offsets", "macinfo", "macro"),
    5: ("", "info", "", "abbrev", "line", "loclists", "str_offsets", "macro", "rnglists"),
}
"""Sections that the columns of an index are about by their numbers, for each version."""
_MOST: Final = 1 << 20

Part = tuple[int, int]
"""Offset and size of a unit's part of a section."""


def package_places(folders: "tuple[str, ...]", name: str) -> list[str]:
    """Return the paths at which the package of a program may be.

    Args:
        folders: those of the program's files.
        name: of the program.
    """
    return [os.path.join(folder, f"{os.path.basename(name)}.dwp") for folder in folders]


def unit_reader(
    sections: Mapping[str, bytes], wanted: int, order: str
) -> Callable[[str], bytes] | None:
    """Make a reader of the sections of one unit, as of a .dwo file; None if it is not there.

    Args:
        sections: of the package, by name.
        wanted: the unit's identification.
        order: byte order as struct spells it.

    Raises:
        DamagedError: the index is damaged.
    """
    try:
        parts = _parts(sections.get(_INDEX, b""), wanted, order)
    except struct.error as error:
        raise DamagedError(f"{_INDEX}: {error}") from error
    if parts is None:
        return None

    def read(name: str) -> bytes:
        data = sections.get(f"{name}.dwo", b"")
        part = parts.get(name.removeprefix(".debug_"))
        return data if part is None else data[part[0] : part[0] + part[1]]

    return read


def _parts(index: bytes, wanted: int, order: str) -> dict[str, Part] | None:
    """Find the parts of a unit by the names of their sections; None if it is not in the index."""
    if not index:
        return None
    (version,) = struct.unpack_from(f"{order}H", index)
    if version not in _SECTIONS:
        (version,) = struct.unpack_from(f"{order}I", index)
    if version not in _SECTIONS:
        raise DamagedError(f"{_INDEX}: version {version}")
    columns, units, slots = struct.unpack_from(f"{order}3I", index, 4)
    if max(columns, units, slots) > _MOST:
        raise DamagedError(f"{_INDEX}: {columns} sections, {units} units, {slots} places")
    place = 16
    idents = struct.unpack_from(f"{order}{slots}Q", index, place)
    place += 8 * slots
    rows = struct.unpack_from(f"{order}{slots}I", index, place)
    place += 4 * slots
    row = next(
        (row for ident, row in zip(idents, rows, strict=True) if row and ident == wanted), 0
    )
    if not 0 < row <= units:
        return None
    numbers = struct.unpack_from(f"{order}{columns}I", index, place)
    line = f"{order}{columns}I"
    offsets = struct.unpack_from(line, index, place + 4 * columns * row)
    sizes = struct.unpack_from(line, index, place + 4 * columns * (units + row))
    known = _SECTIONS[version]
    names = [known[number] if number < len(known) else "" for number in numbers]
    return dict(zip(names, zip(offsets, sizes, strict=True), strict=True))
