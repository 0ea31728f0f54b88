"""The compilation units of a program: which addresses they cover, where their lines are.

pyelftools reads the DIEs; it is imported with the first question. It gets our own copies
of the sections, so that damage elsewhere in the file is no concern of it.
"""

import io
import struct
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeVar

from engine.image.elf import ElfImage
from engine.image.reader import DamagedError, Reader
from engine.image.sections import debug_bytes

_TYPE_UNITS: Final = (2, 6)  # DW_UT_type, DW_UT_split_type
_SECTIONS: Final = (
    *("abbrev", "str", "line_str", "str_offsets", "addr", "ranges", "rnglists", "info"),
)
_ALL_SECTIONS: Final = (
    *("debug_info", "debug_aranges", "debug_abbrev", "debug_frame", "eh_frame", "debug_str"),
    *("debug_loc", "debug_ranges", "debug_line", "debug_pubtypes", "debug_pubnames"),
    *("debug_addr", "debug_str_offsets", "debug_line_str", "debug_loclists", "debug_rnglists"),
    *("debug_sup", "gnu_debugaltlink", "debug_types"),
)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Unit:
    """What lines need of a unit's top DIE.

    Attributes:
        offset: of the unit in .debug_info.
        line_offset: of its program in .debug_line; None without.
        folder: DW_AT_comp_dir, "" when absent.
        ranges: (start, end) link addresses.
    """

    offset: int
    line_offset: int | None
    folder: str
    ranges: tuple[tuple[int, int], ...]


class Units:
    """The units of one file with debug information, each read when it is asked for."""

    def __init__(self, image: ElfImage, problems: list[str]) -> None:
        """Look at `image`; what cannot be read is told in `problems`."""
        self._image = image
        self._problems = problems
        self._units: dict[int, Unit | None] = {}
        self._is_complete = False
        self._sorted: list[tuple[int, int, int]] | None = None

    def containing(self, address: int) -> list[Unit]:
        """Units whose ranges hold a link address, by .debug_aranges if it says so."""
        found = self._covering(self._aranges, address)
        if not found:
            found = self._covering(self._top_ranges, address)
        return [unit for offset in found if (unit := self.unit(offset)) is not None]

    def _covering(self, rows: list[tuple[int, int, int]], address: int) -> list[int]:
        at = bisect_right(rows, address, key=lambda row: row[0]) - 1
        return [rows[at][2]] if at >= 0 and address < rows[at][1] else []

    def all(self) -> list[Unit]:
        """Every unit that can be read."""
        found = (self.unit(offset) for offset in self._offsets)
        return [unit for unit in found if unit is not None]

    def unit(self, offset: int) -> Unit | None:
        """The unit at an offset into .debug_info; None when it is damaged."""
        if offset not in self._units:
            self._units[offset] = self._guard(lambda: self._read(offset), f"unit {offset:#x}")
        return self._units[offset]

    # -- headers and address tables, read by ourselves ----------------------------

    @cached_property
    def _sections(self) -> dict[str, bytes]:
        return {n: debug_bytes(self._image, f".debug_{n}", self._problems) for n in _SECTIONS}

    @cached_property
    def _offsets(self) -> list[int]:
        """Offsets of the compilation units, by walking the unit headers."""
        info = self._sections["info"]
        found: list[int] = []
        reader = Reader(info, 0, len(info), self._image.layout.order)
        try:
            while reader.place < reader.end:
                start = reader.place
                length, _ = reader.initial_length()
                body = reader.take(length)
                head = Reader(info, body, reader.place, reader.order)
                if head.uint(2) < 5 or head.u8() not in _TYPE_UNITS:
                    found.append(start)
        except DamagedError as error:
            self._problems.append(f"{self._image.name}: .debug_info: {error}")
        return found

    @cached_property
    def _aranges(self) -> list[tuple[int, int, int]]:
        """(start, end, unit offset) of .debug_aranges (DWARF 5, 6.1.2), sorted."""
        data = debug_bytes(self._image, ".debug_aranges", self._problems)
        order = self._image.layout.order
        rows: list[tuple[int, int, int]] = []
        reader = Reader(data, 0, len(data), order)
        try:
            while reader.place < reader.end:
                start = reader.place
                length, width = reader.initial_length()
                end = reader.take(length) + length
                rows += _arange_set(Reader(data, end - length, end, order), start, width)
        except DamagedError as error:
            self._problems.append(f"{self._image.name}: .debug_aranges: {error}")
        rows.sort()
        return rows

    @cached_property
    def _top_ranges(self) -> list[tuple[int, int, int]]:
        """The same from the top DIEs of the units that .debug_aranges does not list."""
        listed = {row[2] for row in self._aranges}
        units = [u for o in self._offsets if o not in listed and (u := self.unit(o)) is not None]
        return sorted((low, high, unit.offset) for unit in units for low, high in unit.ranges)

    # -- DIEs, read by pyelftools -------------------------------------------------

    @cached_property
    def _dwarf(self) -> Any:
        from elftools.dwarf.dwarfinfo import DebugSectionDescriptor, DwarfConfig, DWARFInfo

        given: dict[str, Any] = {f"{name}_sec": None for name in _ALL_SECTIONS}
        for name, data in self._sections.items():
            if data:
                stream = io.BytesIO(data)
                section = DebugSectionDescriptor(stream, f".debug_{name}", 0, len(data), 0)
                given[f"debug_{name}_sec"] = section
        config = DwarfConfig(
            little_endian=self._image.byteorder == "little",
            machine_arch=self._image.machine_name,
            default_address_size=self._image.bits // 8,
        )
        return DWARFInfo(config=config, **given)

    def _read(self, offset: int) -> Unit:
        unit = self._dwarf.get_CU_at(offset)
        top = unit.get_top_DIE().attributes
        line = top.get("DW_AT_stmt_list")
        folder = top["DW_AT_comp_dir"].value if "DW_AT_comp_dir" in top else b""
        return Unit(
            offset=offset,
            line_offset=int(line.value) if line is not None else None,
            # With dwz the value may be a reference into a file that we do not have.
            folder=folder.decode("utf-8", "backslashreplace") if isinstance(folder, bytes) else "",
            ranges=tuple(self._guard(lambda: self._ranges(unit, top), f"unit {offset:#x}") or ()),
        )

    def _ranges(self, unit: Any, top: dict[str, Any]) -> list[tuple[int, int]]:
        base = int(top["DW_AT_low_pc"].value) if "DW_AT_low_pc" in top else 0
        if "DW_AT_ranges" not in top:
            if "DW_AT_high_pc" not in top:
                return []
            high = int(top["DW_AT_high_pc"].value)
            is_address = top["DW_AT_high_pc"].form in ("DW_FORM_addr", "DW_FORM_addrx")
            return [(base, high if is_address else base + high)]
        found: list[tuple[int, int]] = []
        lists = self._dwarf.range_lists()
        for entry in lists.get_range_list_at_offset(int(top["DW_AT_ranges"].value), unit):
            if not hasattr(entry, "begin_offset"):
                base = int(entry.base_address)
                continue
            skip = 0 if entry.is_absolute else base
            if entry.begin_offset < entry.end_offset:
                found.append((skip + entry.begin_offset, skip + entry.end_offset))
        return found

    def _guard(self, read: Callable[[], _T], what: str) -> _T | None:
        """Run pyelftools code; whatever it raises means "no information"."""
        try:
            return read()
        except Exception as error:  # KeyError, AssertionError, RecursionError, ...: seen, all
            reason = f"{type(error).__name__}: {error}"[:200]
            self._problems.append(f"{self._image.name}: debug information, {what}: {reason}")
            return None


def _arange_set(reader: Reader, start: int, width: int) -> list[tuple[int, int, int]]:
    """Read one set; tuples are aligned to twice the address size from the set's start."""
    version, unit = reader.uint(2), reader.uint(width)
    size, segment = reader.u8(), reader.u8()
    if version != 2 or size not in (4, 8) or segment:
        return []
    reader.take(-(reader.place - start) % (2 * size))
    form = struct.Struct(reader.order + ("QQ" if size == 8 else "II"))
    data = reader.block((reader.end - reader.place) // form.size * form.size)
    return [(low, low + count, unit) for low, count in form.iter_unpack(data) if count]
