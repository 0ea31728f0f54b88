"""The tree of debugging entries (DIEs), one unit at a time: DWARF 2 to 5, chapter 7.5.

Read here and not with pyelftools: its DIE iterator spends seconds on one unit of a big
program and follows whatever a damaged file says. A unit is first walked for its shape -
offsets, tags, parents - and attributes are read of the entries that somebody asks about.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, Literal, Protocol

from msgspec import Struct, field

from engine.image import forms
from engine.image.forms import Widths
from engine.image.headers import text
from engine.image.reader import DamagedError, Reader

MAX_CHAIN: Final = 64
"""Longest chain of references from entry to entry that is followed."""

TYPE_UNITS: Final = (2, 6)  # DW_UT_type, DW_UT_split_type
_SKELETON_UNITS: Final = (4, 5)  # DW_UT_skeleton, DW_UT_split_compile

AT_LOCATION, AT_NAME, AT_BYTE_SIZE, AT_BIT_OFFSET, AT_BIT_SIZE = 0x02, 0x03, 0x0B, 0x0C, 0x0D
AT_STMT_LIST, AT_LOW_PC, AT_HIGH_PC, AT_LANGUAGE, AT_COMP_DIR, AT_CONST_VALUE = (
    0x10,
    0x11,
    0x12,
    0x13,
    0x1B,
    0x1C,
)
AT_UPPER_BOUND, AT_ABSTRACT_ORIGIN = 0x2F, 0x31
AT_COUNT, AT_DATA_MEMBER_LOCATION, AT_DECLARATION, AT_ENCODING = 0x37, 0x38, 0x3C, 0x3E
AT_EXTERNAL, AT_FRAME_BASE, AT_SPECIFICATION, AT_TYPE = 0x3F, 0x40, 0x47, 0x49
AT_ENTRY_PC, AT_RANGES, AT_DATA_BIT_OFFSET, AT_LINKAGE_NAME = 0x52, 0x55, 0x6B, 0x6E
AT_STR_OFFSETS_BASE, AT_ADDR_BASE, AT_RNGLISTS_BASE = 0x72, 0x73, 0x74
AT_DWO_NAME, AT_ALIGNMENT, AT_LOCLISTS_BASE, AT_MIPS_LINKAGE_NAME = 0x76, 0x88, 0x8C, 0x2007
LINKAGE_NAMES: Final = (AT_LINKAGE_NAME, AT_MIPS_LINKAGE_NAME)
"""Attributes with the linker's name."""
AT_GNU_DWO_NAME, AT_GNU_DWO_ID, AT_GNU_RANGES_BASE, AT_GNU_ADDR_BASE = (
    0x2130,
    0x2131,
    0x2132,
    0x2133,
)

SPLIT_NAMES: Final = frozenset((AT_DWO_NAME, AT_GNU_DWO_NAME))
"""Attributes of a unit whose entries are in a file of their own."""


class Abbrev(Struct, frozen=True):
    """One entry of .debug_abbrev.

    Attributes:
        tag: DW_TAG_*.
        children: entries follow inside.
        attributes: (attribute, form, implicit value, step over it, see `forms.step`).
        names: the attributes alone.
        steps: over all of them.
    """

    tag: int
    children: bool
    attributes: tuple[tuple[int, int, int, int], ...]
    names: frozenset[int]
    steps: tuple[int, ...]


class Shape(Struct):
    """A unit's entries in the order of the file; a parent stands before its children.

    Attributes:
        offsets: in the section, ascending.
        tags: DW_TAG_*.
        parents: index of the entry around each; -1 for the unit's own.
        ends: index behind the last entry inside each.
    """

    offsets: list[int] = field(default_factory=list)
    tags: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def children(self, index: int) -> list[int]:
        """The entries directly inside one."""
        found = []
        at, end = index + 1, self.ends[index]
        while at < end:
            found.append(at)
            at = max(self.ends[at], at + 1)
        return found


class DebugFile(Protocol):
    """The file that units are in, as they and their entries see it.

    Attributes:
        definitions: its types by tag and name, as far as somebody has looked for them.
    """

    definitions: "dict[tuple[int, str], Die | None]"

    @property
    def name(self) -> str:
        """For messages."""

    @property
    def order(self) -> str:
        """Byte order as struct spells it."""

    @property
    def endian(self) -> Literal["little", "big"]:
        """Byte order as int spells it."""

    @property
    def quads(self) -> bool:
        """True if long doubles of 16 bytes are IEEE's, not the x87's of 80 bits."""

    @property
    def supplement(self) -> "DebugFile":
        """The file that dwz moved common entries to; ImageError if it is not there."""

    def section(self, name: str) -> bytes:
        """The unpacked contents of a section; b"" for none."""

    def string(self, section: str, offset: int) -> str:
        """A string of a section."""

    def number(self, section: str, base: int, index: int, width: int) -> int:
        """An entry of a table of numbers."""

    def abbrevs(self, offset: int, widths: Widths) -> Mapping[int, Abbrev]:
        """The table of .debug_abbrev at an offset."""

    def abbrev(self, offset: int, widths: Widths, code: int) -> Abbrev | None:
        """One row of the table of .debug_abbrev at an offset; None without such a code."""

    def units(self, section: str = "info") -> "Iterator[Unit]":
        """All units of .debug_info or .debug_types."""

    def naming(self, names: Sequence[str]) -> "Iterator[Unit]":
        """The units that may have an entry of one of the names; see `namedunits`."""

    def whole(self, unit: "Unit") -> "Unit":
        """The unit itself, or the one in a .dwo file that it is the skeleton of."""

    def die(self, offset: int) -> "Die":
        """An entry anywhere in .debug_info."""

    def signed_type(self, signature: int) -> "Die":
        """The type that a type unit defines."""


class Unit:
    """One unit of .debug_info or .debug_types.

    Attributes:
        info: the file it is in.
        section: "info" or "types".
        offset: of its header.
        end: first offset behind it.
        version: of DWARF.
        kind: DW_UT_*, 1 before DWARF 5.
        widths: of offsets and addresses.
        top: offset of its own entry.
        signature: of a type unit, or the id of a split one; 0 without.
        type_offset: of a type unit's type, in the section; 0 for others.
        skeleton: the unit in the program that a unit of a .dwo file belongs to.
        definitions: its types by tag and name, once somebody has looked for one.
        functions: (start, end, index) of its functions' code, once somebody has looked for it.
    """

    def __init__(self, info: DebugFile, section: str, offset: int) -> None:
        """Read the header at `offset`; DamagedError if it is none."""
        self.info = info
        self.section = section
        self.offset = offset
        self.data = info.section(f".debug_{section}")
        self.skeleton: Unit | None = None
        self.definitions: dict[tuple[int, str | None], Die] | None = None
        self.functions: list[tuple[int, int, int]] | None = None
        reader = Reader(self.data, offset, len(self.data), info.order)
        length, width = reader.initial_length()
        self.end = min(reader.place + length, len(self.data))
        self.next = reader.place + length
        self.version = reader.uint(2)
        if not 2 <= self.version <= 5:
            raise DamagedError(f"a unit of DWARF {self.version}")
        self.kind = 1
        self.signature = self.type_offset = 0
        if self.version >= 5:
            self.kind, address = reader.u8(), reader.u8()
            self._abbrev_offset = reader.uint(width)
        else:
            self._abbrev_offset, address = reader.uint(width), reader.u8()
            self.kind = 2 if section == "types" else 1
        if address not in (4, 8):
            raise DamagedError(f"addresses of {address} bytes")
        if self.kind in TYPE_UNITS:
            self.signature = reader.uint(8)
            self.type_offset = offset + reader.uint(width)
        elif self.kind in _SKELETON_UNITS:
            self.signature = reader.uint(8)
        self.widths = Widths(width, address, self.version)
        self.top = reader.place

    @cached_property
    def abbrevs(self) -> Mapping[int, Abbrev]:
        """The unit's abbreviations by code."""
        return self.info.abbrevs(self._abbrev_offset, self.widths)

    def abbrev(self, code: int) -> Abbrev | None:
        """One of the unit's abbreviations; None if there is no such code.

        The whole table is read when the entries are: who asks a thousand units for their own
        entries does not need it.
        """
        if "abbrevs" in self.__dict__:
            return self.abbrevs.get(code)
        return self.info.abbrev(self._abbrev_offset, self.widths, code)

    @cached_property
    def root(self) -> "Die":
        """The unit's own entry."""
        return Die(self, self.top)

    @property
    def root_attributes(self) -> frozenset[int]:
        """Which attributes the unit's own entry has, without reading any."""
        code = Reader(self.data, self.top, self.end, self.info.order).uleb()
        abbrev = self.abbrev(code)
        if abbrev is None:
            raise DamagedError(f"no entry at {self.top:#x}")
        return abbrev.names

    # -- bases of indexes: a skeleton's for addresses and ranges ----------------------

    def base(self, attribute: int, default: int) -> int:
        """A base offset that the unit, or its skeleton, gives."""
        unit = self
        value = unit.root.get(attribute)
        if value is None and self.skeleton is not None:
            value = self.skeleton.root.get(attribute)
        return value if isinstance(value, int) else default

    @cached_property
    def str_offsets_base(self) -> int:
        """Start of the unit's string offsets."""
        if self.version < 5:
            return 0
        return self.base(AT_STR_OFFSETS_BASE, 2 * self.widths.offset)

    @cached_property
    def addr_base(self) -> int:
        """Start of the unit's addresses in .debug_addr."""
        if self.version < 5:
            return self.base(AT_GNU_ADDR_BASE, 0)
        return self.base(AT_ADDR_BASE, 8)

    @cached_property
    def low_pc(self) -> int:
        """The base of ranges and location lists."""
        root = self.skeleton.root if self.skeleton is not None else self.root
        return root.address(AT_LOW_PC) or 0

    def address(self, index: int) -> int:
        """An entry of .debug_addr."""
        home = self.skeleton.info if self.skeleton is not None else self.info
        return home.number(".debug_addr", self.addr_base, index, self.widths.address)

    # -- the shape ---------------------------------------------------------------

    @cached_property
    def shape(self) -> Shape:
        """All entries; damage is reported when it is met, so an answer is never half a tree."""
        data, end, abbrevs = self.data, self.end, self.abbrevs
        shape = Shape()
        offsets, tags, parents, ends = shape.offsets, shape.tags, shape.parents, shape.ends
        reader = Reader(data, self.top, end, self.info.order)
        at, parent = self.top, -1
        try:
            while at < end:
                start = at
                code = data[at]
                at += 1
                if code >= 0x80:
                    reader.place = start
                    code, at = reader.uleb(), reader.place
                if code == 0:
                    if parent < 0:
                        break
                    ends[parent] = len(offsets)
                    parent = parents[parent]
                    if parent < 0:
                        break
                    continue
                abbrev = abbrevs[code]
                for step in abbrev.steps:
                    if step >= 0:
                        at += step
                    elif step == forms.LEB:
                        while data[at] >= 0x80:
                            at += 1
                        at += 1
                    else:
                        at = self._over(reader, at, step)
                parents.append(parent)
                offsets.append(start)
                tags.append(abbrev.tag)
                ends.append(len(offsets))
                if abbrev.children:
                    parent = len(offsets) - 1
                elif parent < 0:
                    break
        except (IndexError, KeyError) as error:
            raise DamagedError(f"entry at {start:#x}: {type(error).__name__} {error}") from error
        while parent >= 0:  # no terminators at the end: binutils accepts that too
            ends[parent] = len(offsets)
            parent = parents[parent]
        return shape

    def _over(self, reader: Reader, at: int, step: int) -> int:
        reader.place = at
        if step == forms.CSTRING:
            reader.cstring()
        elif step == forms.NESTED:
            forms.read(reader, forms.INDIRECT, self.widths, 0)
        else:
            width = forms.BLOCK_STEPS[step]
            reader.take(reader.uint(width) if width else reader.uleb())
        return reader.place

    def index(self, offset: int) -> int:
        """The index of the entry at an offset."""
        offsets = self.shape.offsets
        at = bisect_left(offsets, offset)
        if at == len(offsets) or offsets[at] != offset:
            raise DamagedError(f"no entry at {offset:#x}")
        return at


class Die:
    """One entry and its attributes, which are read when the first one is asked for.

    Attributes:
        unit: it is in.
        offset: in the unit's section.
        tag: DW_TAG_*.
    """

    __slots__ = ("_abbrev", "_known", "_place", "offset", "tag", "unit")

    def __init__(self, unit: Unit, offset: int) -> None:
        """Read the entry; DamagedError if none can be there."""
        self.unit = unit
        self.offset = offset
        if not unit.top <= offset < unit.end:
            raise DamagedError(f"no entry at {offset:#x}: outside the unit at {unit.offset:#x}")
        reader = Reader(unit.data, offset, unit.end, unit.info.order)
        code = reader.uleb()
        abbrev = unit.abbrev(code) if offset == unit.top else unit.abbrevs.get(code)
        if abbrev is None:
            raise DamagedError(f"no entry at {offset:#x}")
        self.tag = abbrev.tag
        self._abbrev = abbrev
        self._place = reader.place
        self._known: dict[int, tuple[int, int | bytes]] | None = None

    @property
    def _values(self) -> dict[int, tuple[int, int | bytes]]:
        """(form, value) of each attribute; DamagedError if they reach out of the unit."""
        if self._known is None:
            unit, at = self.unit, self._place
            data, order = unit.data, unit.info.endian
            known: dict[int, tuple[int, int | bytes]] = {}
            for name, form, implicit, step in self._abbrev.attributes:
                if step > 0:
                    known[name] = form, int.from_bytes(data[at : at + step], order)
                    at += step
                elif step == 0:
                    known[name] = form, implicit if form == forms.IMPLICIT_CONST else 1
                else:
                    reader = Reader(data, at, unit.end, unit.info.order)
                    known[name] = forms.read(reader, form, unit.widths, implicit)
                    at = reader.place
            if at > unit.end:
                raise DamagedError(f"entry at {self.offset:#x} reaches past the end of its unit")
            self._known = known
        return self._known

    @property
    def key(self) -> tuple[int, str, int]:
        """A key that tells entries apart."""
        return id(self.unit.info), self.unit.section, self.offset

    def has(self, attribute: int) -> bool:
        """True if an attribute is there."""
        return attribute in self._abbrev.names

    def get(self, attribute: int) -> int | bytes | None:
        """A value as stored; None without."""
        found = self._values.get(attribute)
        return None if found is None else found[1]

    def form(self, attribute: int) -> int:
        """The form of a value that is there."""
        return self._values[attribute][0]

    def number(self, attribute: int) -> int | None:
        """A constant; None without, or if it is something else."""
        value = self.get(attribute)
        return value if isinstance(value, int) else None

    def address(self, attribute: int) -> int | None:
        """An address, by itself or by index; None if it is none."""
        value = self.number(attribute)
        if value is None:
            return None
        form = self.form(attribute)
        if form in forms.ADDRESS_INDEXES:
            return self.unit.address(value)
        return value if form == forms.ADDR else None

    def string(self, attribute: int) -> str | None:
        """A string, wherever it is stored; None without."""
        found = self._values.get(attribute)
        if found is None:
            return None
        form, value = found
        if isinstance(value, bytes):
            return text(value)
        unit, info = self.unit, self.unit.info
        if form == forms.STRP:
            return info.string(".debug_str", value)
        if form == forms.LINE_STRP:
            return info.string(".debug_line_str", value)
        if form in (forms.STRP_SUP, forms.GNU_STRP_ALT):
            return info.supplement.string(".debug_str", value)
        if form in forms.STRING_INDEXES:
            width = unit.widths.offset
            offset = info.number(".debug_str_offsets", unit.str_offsets_base, value, width)
            return info.string(".debug_str", offset)
        return None

    def reference(self, attribute: int) -> "Die | None":
        """The entry that an attribute points at; None without."""
        found = self._values.get(attribute)
        if found is None:
            return None
        form, value = found
        if isinstance(value, bytes):
            return None
        unit, info = self.unit, self.unit.info
        if form in forms.UNIT_REFS:
            return Die(unit, unit.offset + value)
        if form == forms.REF_ADDR:
            return info.die(value)
        if form in forms.SUP_REFS:
            return info.supplement.die(value)
        if form == forms.REF_SIG8:
            return info.signed_type(value)
        raise DamagedError(f"entry {self.offset:#x}: a reference of form {form:#x}")

    # -- what an entry says itself or through its origin --------------------------

    def origins(self) -> "list[Die]":
        """The entry, its abstract origin, its declaration, ...; the first to ask first."""
        found = [self]
        while len(found) < MAX_CHAIN:
            last = found[-1]
            if not last.has(AT_ABSTRACT_ORIGIN) and not last.has(AT_SPECIFICATION):
                return found  # as most: their attributes need not be read
            origin = last.reference(AT_ABSTRACT_ORIGIN) or last.reference(AT_SPECIFICATION)
            if origin is None:
                return found
            found.append(origin)
        raise DamagedError(f"entry {self.offset:#x}: its origins never end")

    @property
    def name(self) -> str | None:
        """DW_AT_name, perhaps of its origin."""
        if AT_NAME in self._abbrev.names:
            return self.string(AT_NAME)
        for die in self.origins():
            if die.has(AT_NAME):
                return die.string(AT_NAME)
        return None

    @property
    def linkage_name(self) -> str | None:
        """The linker's name, where it differs."""
        for die in self.origins():
            for attribute in LINKAGE_NAMES:
                if die.has(attribute):
                    return die.string(attribute)
        return None

    @property
    def type(self) -> "Die | None":
        """The entry of its type; None is void."""
        for die in self.origins():
            if die.has(AT_TYPE):
                return die.reference(AT_TYPE)
        return None
