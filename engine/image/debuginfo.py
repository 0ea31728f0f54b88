"""The debug information of one file: its sections, its units, and what they point at.

Where it is: in the program itself, in the separate debug file that its build-id or
.gnu_debuglink names, in .dwo files beside it (split DWARF), and in the supplementary file
that dwz moves common entries to. What is missing is said in words.
"""

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Literal

from engine.arch import for_elf
from engine.errors import ImageError
from engine.image import dies, forms
from engine.image.damage import Damage
from engine.image.debugfiles import by_build_id, find_debug_file, is_moved, standard_dirs
from engine.image.dies import Abbrev, Die, Unit
from engine.image.elf import ElfImage
from engine.image.forms import Widths
from engine.image.headers import text
from engine.image.longwork import look_up
from engine.image.ranges import read_aranges, read_ranges
from engine.image.reader import DamagedError, Reader
from engine.image.sections import debug_bytes

if TYPE_CHECKING:
    from engine.image.knownunits import KnownUnits
    from engine.image.namedunits import NamedUnits

_MAX_ABBREVS: Final = 1 << 20


class DebugInfo:
    """One file's .debug_* sections.

    Attributes:
        name: for messages.
        order: "<" or ">" as struct spells it.
        endian: the same as int spells it.
        quads: long doubles of 16 bytes are IEEE's, not the x87's of 80 bits.
        damage: what cannot be read is noted there.
        definitions: its types by tag and name, as far as somebody has looked for them.
        holder: the file that has the sections; None for those that others refer to.
    """

    def __init__(
        self,
        name: str,
        order: str,
        read: Callable[[str], bytes],
        folders: Sequence[str] = (),
        debug_dirs: Sequence[str] = (),
        damage: Damage | None = None,
    ) -> None:
        """Nothing is read yet.

        Args:
            name: for messages.
            order: byte order as struct spells it.
            read: a section by its name; b"" for none.
            folders: where relative names of .dwo and supplementary files begin.
            debug_dirs: folders like /usr/lib/debug.
            damage: where to tell what cannot be read, None for nowhere.
        """
        self.damage = Damage() if damage is None else damage
        self.name = name
        self.order = order
        self.endian: Literal["little", "big"] = "little" if order == "<" else "big"
        self.quads = False
        self.holder: ElfImage | None = None
        self._read = read
        self._folders = tuple(folders)
        self._debug_dirs = tuple(debug_dirs)
        self._sections: dict[str, bytes] = {}
        self._units: dict[tuple[str, int], Unit] = {}
        self._tables: dict[tuple[int, Widths], dict[int, Abbrev]] = {}
        self._rows: dict[tuple[int, Widths, int], Abbrev | None] = {}
        self._split: dict[int, Unit] = {}
        self._packages: dict[str, dict[str, bytes] | None] = {}
        self._mentioned: dict[tuple[str, str], bool] = {}
        self.definitions: dict[tuple[int, str], Die | None] = {}

    @classmethod
    def of(cls, image: ElfImage, debug_dirs: Sequence[str] | None) -> "DebugInfo | None":
        """The debug information of a program; None if there is none.

        All who ask share it, so that no unit is walked twice.

        Args:
            image: the program or library.
            debug_dirs: folders to search for a separate debug file; None = the usual ones.
        """
        if _has_info(image):
            return cls.within(image, debug_dirs)
        holder = find_debug_file(image, debug_dirs)
        if holder is None or not _has_info(holder) or is_moved(image, holder):
            return None
        return cls._shared(image, holder, debug_dirs)

    @classmethod
    def within(cls, image: ElfImage, debug_dirs: Sequence[str] | None) -> "DebugInfo":
        """The debug information that a file itself holds.

        Args:
            image: the file.
            debug_dirs: folders like /usr/lib/debug; None = the usual ones.
        """
        return cls._shared(image, image, debug_dirs)

    @classmethod
    def _shared(
        cls, image: ElfImage, holder: ElfImage, debug_dirs: Sequence[str] | None
    ) -> "DebugInfo":
        """The debug information that a file holds for a program, made once for each."""
        dirs = standard_dirs() if debug_dirs is None else tuple(debug_dirs)
        known = image.once(_known_infos)
        key = id(holder), dirs
        if key not in known:
            files = dict.fromkeys(i.path for i in (image, holder) if i.path)
            folders = [os.path.dirname(os.path.abspath(path)) for path in files]
            read = partial(debug_bytes, holder)  # which keeps the holder, and its id
            made = cls(holder.name, holder.layout.order, read, folders, dirs, image.damage)
            made.quads = _has_quads(image)
            made.holder = holder
            known[key] = made
        return known[key]

    def section(self, name: str) -> bytes:
        """The unpacked contents of a section; b"" for none."""
        found = self._sections.get(name)
        if found is None:
            found = self._sections[name] = self._read(name)
        return found

    def string(self, section: str, offset: int) -> str:
        """A string of a section."""
        data = self.section(section)
        return text(Reader(data, offset, len(data), self.order).cstring())

    def number(self, section: str, base: int, index: int, width: int) -> int:
        """An entry of a table of numbers."""
        data = self.section(section)
        return Reader(data, base + index * width, len(data), self.order).uint(width)

    def abbrevs(self, offset: int, widths: Widths) -> Mapping[int, Abbrev]:
        """The table of .debug_abbrev at an offset; units share them."""
        found = self._tables.get((offset, widths))
        if found is None:
            data = self.section(".debug_abbrev")
            found = _abbrevs(Reader(data, offset, len(data), self.order), widths)
            self._tables[offset, widths] = found
        return found

    def abbrev(self, offset: int, widths: Widths, code: int) -> Abbrev | None:
        """One row of the table of .debug_abbrev at an offset; None if the table has no such code.

        Rows behind it are not read: a unit's own entry has one of the first rows nearly always,
        and a C library's tables have a quarter of a million numbers.
        """
        known = self._tables.get((offset, widths))
        if known is not None:
            return known.get(code)
        key = offset, widths, code
        if key not in self._rows:
            data = self.section(".debug_abbrev")
            rows = _abbrev_rows(Reader(data, offset, len(data), self.order), widths)
            self._rows[key] = next((row for found, row in rows if found == code), None)
        return self._rows[key]

    # -- units -------------------------------------------------------------------

    def offsets(self) -> list[int]:
        """Offsets of the units of .debug_info, by the lengths in their headers."""
        data = self.section(".debug_info")
        found: list[int] = []
        reader = Reader(data, 0, len(data), self.order)
        try:
            while reader.place < reader.end:
                start = reader.place
                reader.take(reader.initial_length()[0])
                found.append(start)
        except DamagedError as error:
            self.damage.note(f"{self.name}: .debug_info: {error}")
        return found

    def units(self, section: str = "info") -> Iterator[Unit]:
        """All units of .debug_info or .debug_types.

        Raises:
            DamagedError: at the first header that is none.
        """
        at, size = 0, len(self.section(f".debug_{section}"))
        while at < size:
            look_up(self.name, at, size)
            unit = self.unit(section, at)
            yield unit
            at = unit.next

    def naming(self, names: Sequence[str], *, instances: bool = False) -> Iterator[Unit]:
        """The units of .debug_info that may have an entry of one of the names; see `namedunits`.

        Type units are among them; skeletons of split units are given as they stand.

        Args:
            names: as the file has them, without the scopes around.
            instances: names with template arguments behind them are meant too.

        Raises:
            DamagedError: a unit's header is none.
        """
        return self._named.of(names, instances=instances)

    @cached_property
    def known(self) -> "KnownUnits":
        """Answers of former sessions to questions about names in the file.

        Of a file that refers to another one nothing is kept: that one may come, go or change.
        """
        from engine.image.knownunits import KnownUnits, cache_folder  # likewise

        holder = self.holder
        if holder is None or not holder.state or holder.section(".gnu_debugaltlink") is not None:
            return KnownUnits(None, "", "")
        return KnownUnits(cache_folder(), holder.build_id or "", holder.state)

    def naming_functions(self, name: str) -> Iterator[Unit]:
        """Units that may have code of a function of a name; see `NamedUnits.of_functions`."""
        return self._named.of_functions(name)

    def mentions(self, text: str, sections: tuple[str, ...]) -> bool:
        """True if a text is somewhere in some sections: a glance that saves reading them."""
        kind = " ".join(sections)
        if (kind, text) not in self._mentioned:
            kept = self.known.units(kind, text)
            if kept is None:
                raw = text.encode(errors="surrogateescape")
                kept = [0] if any(raw in self.section(section) for section in sections) else []
                self.keep(kind, text, kept)
            self._mentioned[kind, text] = bool(kept)
        return self._mentioned[kind, text]

    def keep(self, kind: str, name: str, units: Sequence[int]) -> None:
        """Keep an answer for the next session, unless the file may have more than can be read."""
        if not self.damage.found():
            self.known.add(kind, name, units)

    @cached_property
    def _named(self) -> "NamedUnits":
        from engine.image.namedunits import NamedUnits  # many commands ask for no name

        return NamedUnits(self)

    def unit(self, section: str, offset: int) -> Unit:
        """The unit whose header is at an offset."""
        found = self._units.get((section, offset))
        if found is None:
            found = self._units[section, offset] = Unit(self, section, offset)
        return found

    @cached_property
    def _starts(self) -> list[int]:
        return [unit.offset for unit in self.units()]

    def die(self, offset: int) -> Die:
        """An entry anywhere in .debug_info."""
        at = bisect_right(self._starts, offset) - 1
        if at < 0:
            raise DamagedError(f"no entry at {offset:#x}")
        return Die(self.unit("info", self._starts[at]), offset)

    def signed_type(self, signature: int) -> Die:
        """The type that a type unit defines."""
        unit = self._signed.get(signature)
        if unit is None:
            raise DamagedError(f"no type unit with signature {signature:#x}")
        return Die(unit, unit.type_offset)

    @cached_property
    def _signed(self) -> dict[int, Unit]:
        return {
            unit.signature: unit
            for section in ("types", "info")
            for unit in self.units(section)
            if unit.kind in dies.TYPE_UNITS
        }

    def containing(self, address: int) -> Iterator[Unit]:
        """Units that cover a link address; split units are given instead of their skeletons."""
        listed = covering(self.aranges, address)
        for offset in listed or covering(self._top_ranges, address):
            yield self.whole(self.unit("info", offset))

    @cached_property
    def aranges(self) -> list[tuple[int, int, int]]:
        """(start, end, unit) of .debug_aranges or .gdb_index, sorted; both may lack units."""
        rows: list[tuple[int, int, int]] = []
        try:
            for one in read_aranges(self.section(".debug_aranges"), self.order):
                rows += one
        except DamagedError as error:
            self.damage.note(f"{self.name}: .debug_aranges: {error}")
        return sorted(rows or self._indexed_ranges())

    def _indexed_ranges(self) -> list[tuple[int, int, int]]:
        """The same of .gdb_index, where LLVM has written no .debug_aranges."""
        data = self.section(".gdb_index")
        if not data:
            return []
        from engine.image.gdbindex import read_addresses  # few files have it

        try:
            return read_addresses(data, self.offsets())
        except DamagedError as error:
            self.damage.note(f"{self.name}: .gdb_index: {error}")
            return []

    @cached_property
    def _top_ranges(self) -> list[tuple[int, int, int]]:
        """(start, end, unit) of the units that .debug_aranges does not list."""
        listed = {row[2] for row in self.aranges}
        units = (u for u in self.units() if u.kind not in dies.TYPE_UNITS)
        return sorted(
            (low, high, unit.offset)
            for unit in units
            if unit.offset not in listed
            for low, high in read_ranges(unit.root)
        )

    # -- other files -------------------------------------------------------------

    def whole(self, unit: Unit) -> Unit:
        """The unit itself, or the one in a .dwo file that it is the skeleton of.

        Raises:
            ImageError: that file is missing or is not the right one.
        """
        if not unit.root_attributes & dies.SPLIT_NAMES:
            return unit
        root = unit.root
        name = root.string(dies.AT_DWO_NAME) or root.string(dies.AT_GNU_DWO_NAME)
        if not name:
            return unit
        found = self._split.get(unit.offset)
        if found is None:
            found = self._split[unit.offset] = self._open_split(unit, name)
        return found

    def _open_split(self, unit: Unit, name: str) -> Unit:
        folder = unit.root.string(dies.AT_COMP_DIR) or ""
        places = [os.path.join(folder, name)]
        places += [os.path.join(home, os.path.basename(name)) for home in self._folders]
        wanted = unit.signature or unit.root.number(dies.AT_GNU_DWO_ID)
        for path in places:
            split = _split_unit(_open_dwo(path, self.order, self.damage), wanted)
            if split is not None:
                split.skeleton = unit
                return split
        from engine.image.debugpackages import package_places  # few programs have one

        packages = package_places(self._folders, self.name)
        for path in packages:
            split = _split_unit(self._packed_unit(path, wanted), wanted)
            if split is not None:
                split.skeleton = unit
                return split
        raise ImageError(
            f"{self.name}: its debug information is split off into {name}, which is not"
            f" in {' or '.join(dict.fromkeys(os.path.dirname(p) or '.' for p in places))},"
            f" nor in a package {' or '.join(packages)}"
        )

    def _packed_unit(self, path: str, wanted: int | None) -> "DebugInfo | None":
        """The unit of that identification in a package, as if it had a file of its own."""
        from engine.image.debugpackages import unit_reader

        if path not in self._packages:
            self._packages[path] = _sections_of(path, self.damage)
        sections = self._packages[path]
        if sections is None or wanted is None:
            return None
        try:
            read = unit_reader(sections, wanted, self.order)
        except DamagedError as error:
            self.damage.note(f"{path}: {error}")
            return None
        return None if read is None else DebugInfo(path, self.order, read, damage=self.damage)

    @cached_property
    def supplement(self) -> "DebugInfo":
        """The file that dwz moved common entries to.

        Raises:
            ImageError: it is not there.
        """
        raw = self.section(".gnu_debugaltlink")
        name, _, ident = raw.partition(b"\0")
        path = os.fsdecode(name)
        ident_text = ident.hex()
        for folder in self._folders if path else ():
            try:
                place = os.path.join(folder, path)
                image = ElfImage.open(place, runnable=False, damage=self.damage)
            except ImageError:
                continue
            if image.build_id == ident_text:
                return self._supplement_of(image)
        found = by_build_id(ident_text, self._debug_dirs, self.damage)
        if found is not None:
            return self._supplement_of(found)
        what = f"the supplementary file {path}" if path else "an unnamed supplementary file"
        raise ImageError(f"{self.name}: its debug information refers to {what}, which is missing")

    def _supplement_of(self, image: ElfImage) -> "DebugInfo":
        read = partial(debug_bytes, image)
        made = DebugInfo(image.name, self.order, read, damage=self.damage)
        made.quads = self.quads
        return made


def covering(rows: list[tuple[int, int, int]], address: int) -> list[int]:
    """The unit of the (start, end, unit) that holds an address, if there is one."""
    at = bisect_right(rows, address, key=lambda row: row[0]) - 1
    return [rows[at][2]] if at >= 0 and address < rows[at][1] else []


def _known_infos(_: ElfImage) -> dict[tuple[int, tuple[str, ...]], DebugInfo]:
    return {}


def _has_quads(image: ElfImage) -> bool:
    arch = for_elf(image.machine, image.bits, image.byteorder)
    return arch is not None and arch.abi.quads


def _has_info(image: ElfImage) -> bool:
    found = image.section(".debug_info") or image.section(".zdebug_info")
    return found is not None and found.size > 0


def _split_unit(info: DebugInfo | None, wanted: int | None) -> Unit | None:
    """The unit of a file of split debug information that belongs to a skeleton."""
    for split in info.units() if info is not None else ():
        found = split.signature or split.root.number(dies.AT_GNU_DWO_ID)
        if split.kind not in dies.TYPE_UNITS and found == wanted:
            return split
    return None


def _open_dwo(path: str, order: str, damage: Damage) -> DebugInfo | None:
    """A .dwo file."""
    sections = _sections_of(path, damage)
    if sections is None:
        return None

    def read(name: str) -> bytes:
        # Addresses and what the skeleton holds are not in the file.
        return sections.get(name + ".dwo", b"")

    return DebugInfo(path, order, read, damage=damage)


def _sections_of(path: str, damage: Damage) -> dict[str, bytes] | None:
    """Sections of an object file, which is no image, so pyelftools finds them; None: no file."""
    if not os.path.isfile(path):  # the name is the guest's: it may be a FIFO or a device
        return None
    try:
        with open(path, "rb") as file:
            return _dwo_sections(file)
    except Exception as error:  # whatever pyelftools raises: it is no such file
        damage.note(f"{path}: split debug information: {error or type(error).__name__}")
        return None


def _dwo_sections(file: Any) -> dict[str, bytes]:
    from elftools.elf.elffile import ELFFile

    return {
        section.name: section.data()
        for section in ELFFile(file).iter_sections()
        if section.name.startswith(".debug_")
    }


def _abbrevs(reader: Reader, widths: Widths) -> dict[int, Abbrev]:
    found: dict[int, Abbrev] = {}
    for code, row in _abbrev_rows(reader, widths):
        if len(found) >= _MAX_ABBREVS:
            raise DamagedError(".debug_abbrev: a table without an end")
        found[code] = row
    return found


def _abbrev_rows(reader: Reader, widths: Widths) -> Iterator[tuple[int, Abbrev]]:
    while code := reader.uleb():
        tag, children = reader.uleb(), reader.u8() != 0
        attributes = []
        while True:
            name, form = reader.uleb(), reader.uleb()
            implicit = reader.sleb() if form == forms.IMPLICIT_CONST else 0
            if not name and not form:
                break
            attributes.append((name, form, implicit, forms.step(form, widths)))
        names = frozenset(row[0] for row in attributes)
        steps = _merged([row[3] for row in attributes])
        yield code, Abbrev(tag, children, tuple(attributes), names, steps)


def _merged(steps: list[int]) -> tuple[int, ...]:
    """Neighbours of a fixed size as one step."""
    merged: list[int] = []
    for step in steps:
        if step >= 0 and merged and merged[-1] >= 0:
            merged[-1] += step
        elif step:
            merged.append(step)
    return tuple(merged)
