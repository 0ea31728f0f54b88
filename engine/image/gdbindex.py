"""The addresses of units in .gdb_index, which gdb and linkers write.

The GDB manual, "The gdb_index section": little-endian on all machines. Its names are not used:
what is only inlined somewhere has none there.
"""

import struct
from collections.abc import Collection
from typing import Final

from engine.image.reader import DamagedError

_HEADER: Final = struct.Struct("<6I")
_UNIT: Final = struct.Struct("<QQ")
_ROW: Final = struct.Struct("<QQI")
_VERSIONS: Final = (7, 8, 9)
"""Older ones had errors, gdb does not read them either; 9 has one table more behind these."""


def read_addresses(data: bytes, units: Collection[int]) -> list[tuple[int, int, int]]:
    """(start, end, unit) of the code of units, as they stand.

    Args:
        data: the section.
        units: offsets of the units that there are.

    Returns:
        The rows; none for a version that is not known.

    Raises:
        DamagedError: they are none, or are of another file.
    """
    if len(data) < _HEADER.size:
        raise DamagedError(f"ends after {len(data)} bytes")
    version, lists, types, addresses, symbols, _ = _HEADER.unpack_from(data)
    if version not in _VERSIONS:
        return []
    if not _HEADER.size <= lists <= types <= addresses <= symbols <= len(data):
        raise DamagedError("its tables are not in order")
    if (types - lists) % _UNIT.size or (symbols - addresses) % _ROW.size:
        raise DamagedError("its tables do not end where others begin")
    offsets = [offset for offset, _ in _UNIT.iter_unpack(data[lists:types])]
    if not set(units).issuperset(offsets):
        raise DamagedError("it is of another file: there are no such units")
    found: list[tuple[int, int, int]] = []
    for low, high, number in _ROW.iter_unpack(data[addresses:symbols]):
        if number >= len(offsets):
            raise DamagedError(f"there is no unit {number}")
        if low < high:
            found.append((low, high, offsets[number]))
    return found
