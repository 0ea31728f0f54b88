"""Names of the symbol versions that a library defines (gABI, GNU extension: .gnu.version_d).

Source: Linux Standard Base Core Specification, "Symbol Versioning": Elfxx_Verdef, Elfxx_Verdaux.
"""

import struct
from typing import Final

from engine.image.elf import ElfImage

_DT_STRTAB, _DT_STRSZ, _DT_VERDEF, _DT_VERDEFNUM = 5, 10, 0x6FFFFFFC, 0x6FFFFFFD
_VERDEF: Final = "HHHHIII"  # version, flags, index, auxiliary entries, hash, aux, next
_MAX_VERSIONS: Final = 0x7FFF
"""Indices have 15 bits (VERSYM_VERSION)."""
_MAX_NAME: Final = 4096


def version_names(image: ElfImage) -> dict[int, str]:
    """The versions that a file defines: index as in .gnu.version to name."""
    table, count = image.dynamic_value(_DT_VERDEF), image.dynamic_value(_DT_VERDEFNUM)
    strings, size = image.dynamic_value(_DT_STRTAB), image.dynamic_value(_DT_STRSZ)
    if not table or not count or not strings or not size:
        return {}
    form = struct.Struct(image.layout.order + _VERDEF)
    names: dict[int, str] = {}
    at = table
    for _ in range(min(count, _MAX_VERSIONS)):
        raw = image.read_vaddr(at, form.size)
        if len(raw) < form.size:
            break
        _, _, index, _, _, aux, following = form.unpack(raw)
        word = image.read_vaddr(at + aux, 4)  # vda_name of the first entry: the version's own
        if len(word) == 4:
            offset = struct.unpack(image.layout.order + "I", word)[0]
            if offset < size:
                text = image.read_vaddr(strings + offset, min(size - offset, _MAX_NAME))
                names[index] = text.partition(b"\0")[0].decode(errors="surrogateescape")
        if not following:
            break
        at += following
    return names
