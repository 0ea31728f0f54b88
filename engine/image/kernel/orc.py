"""ORC, the unwind tables of kernels: what the frame of each stretch of code looks like.

Sources: Documentation/arch/x86/orc-unwinder.rst, arch/x86/include/asm/orc_types.h. An entry holds
from its address to the next one's. Its fields have moved between releases: where they are is
asked of the file's own BTF, and only where it has none of its version.
"""

import re
import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from functools import cached_property
from itertools import islice, pairwise
from operator import add, le
from typing import Final

from msgspec import Struct

from engine.errors import ImageError
from engine.image.elf import ElfImage
from engine.image.reader import DamagedError

PLACES, ENTRIES, HEADER = ".orc_unwind_ip", ".orc_unwind", ".orc_header"
_SIZE: Final = 6
_ALL_BITS: Final = (1 << 64) - 1
_SPLIT_SINCE: Final = (6, 4)
"""The release that gave the end of a stack a type of its own."""
_STACK_IN_STACK: Final = (5, 12)
"""The release since when a stack pointer that lies in the stack is read before it is moved."""
_BANNER: Final = re.compile(rb"(?:Linux version |vermagic=)(\d+)\.(\d+)")


class OrcKind(Enum):
    """The kind of what a frame ends with."""

    UNKNOWN = auto()
    """The frame is not known: no code, or code that the kernel's checks leave out."""
    END = auto()
    """Nothing: there is no caller."""
    CALL = auto()
    """A return address."""
    REGS = auto()
    """All registers, as an entry from an interrupt or a tracer saves them."""
    PARTIAL = auto()
    """The frame is the registers that the processor itself saves at an interrupt."""


_OLD: Final = {0: OrcKind.CALL, 1: OrcKind.REGS, 2: OrcKind.PARTIAL}
_NEW: Final = {1: OrcKind.END, 2: OrcKind.CALL, 3: OrcKind.REGS, 4: OrcKind.PARTIAL}


class OrcEntry(Struct, frozen=True):
    """The frame from one address on.

    Attributes:
        kind: what stands where it ends.
        stack: number of what the stack pointer of the caller is found by, 0 for not at all.
        stack_offset: added to it.
        frame: number of what the frame pointer of the caller is found by, 0: it is unchanged.
        frame_offset: added to it.
        signal: the caller was interrupted: its pc is exact.
    """

    kind: OrcKind
    stack: int
    stack_offset: int
    frame: int
    frame_offset: int
    signal: bool


class OrcLayout(Struct, frozen=True):
    """Places of an entry's fields.

    Attributes:
        bits: (lowest bit, bits) of each field, by the kernel's name for it.
        split: the end of a stack has a type of its own.
    """

    bits: Mapping[str, tuple[int, int]]
    split: bool

    def entry(self, raw: int) -> OrcEntry:
        """An entry by its 48 bits."""
        kind = (_NEW if self.split else _OLD).get(self._field(raw, "type"), OrcKind.UNKNOWN)
        stack = self._field(raw, "sp_reg")
        if not self.split:
            if self._field(raw, "end"):
                kind = OrcKind.END
            elif not stack:
                kind = OrcKind.UNKNOWN
        interrupted = kind in (OrcKind.REGS, OrcKind.PARTIAL)
        return OrcEntry(
            kind,
            stack,
            self._signed(raw, "sp_offset"),
            self._field(raw, "bp_reg"),
            self._signed(raw, "bp_offset"),
            bool(self._field(raw, "signal")) if "signal" in self.bits else interrupted,
        )

    def _field(self, raw: int, name: str) -> int:
        at, bits = self.bits.get(name, (0, 0))
        return raw >> at & (1 << bits) - 1

    def _signed(self, raw: int, name: str) -> int:
        value, bits = self._field(raw, name), self.bits[name][1]
        return value - (1 << bits) if value >> bits - 1 else value


_COMMON: Final = {
    "sp_offset": (0, 16),
    "bp_offset": (16, 16),
    "sp_reg": (32, 4),
    "bp_reg": (36, 4),
}
_LAYOUT_OLD: Final = OrcLayout(_COMMON | {"type": (40, 2), "end": (42, 1)}, split=False)
_LAYOUT_NEW: Final = OrcLayout(_COMMON | {"type": (40, 3), "signal": (43, 1)}, split=True)


class OrcTable:
    """The entries of one kernel or module, by link address.

    Attributes:
        addresses: from which each entry holds, sorted.
        layout: of the entries.
    """

    def __init__(self, image: ElfImage) -> None:
        """Read the addresses; entries are read when they are asked for.

        Raises:
            ImageError: the tables are damaged.
        """
        self._image = image
        self._order: list[int] | None = None
        self.addresses = array("q")
        self._entries = b""
        self.layout = _LAYOUT_NEW
        places, entries = image.section(PLACES), image.section(ENTRIES)
        if places is None or entries is None:
            return
        raw = image.section_data(places)
        self._entries = image.section_data(entries)
        count = len(raw) // 4
        if len(raw) % 4 or len(self._entries) != count * _SIZE or places.size != len(raw):
            raise ImageError(
                f"{image.name}: {PLACES} of {len(raw)} bytes at {places.offset:#x} does not fit"
                f" {ENTRIES} of {len(self._entries)} at {entries.offset:#x}"
            )
        base = _signed(places.addr)
        offsets = array("i", struct.unpack(f"<{count}i", raw))
        addresses = array("q", map(add, offsets, range(base, base + 4 * count, 4)))
        self.layout = _layout_of(image)
        if not all(map(le, addresses, islice(addresses, 1, None))):
            # The kernel sorts modules when they come; of two at one address it takes the last
            # one, so that what ends a section stands in front of what begins there.
            ordered = sorted(addresses)
            shared = {low for low, high in pairwise(ordered) if low == high}
            self._order = sorted(
                range(count),
                key=lambda at: (
                    addresses[at],
                    addresses[at] in shared and not self._is_end(at),
                ),
            )
            addresses = array("q", [addresses[at] for at in self._order])
        self.addresses = addresses

    def __len__(self) -> int:
        """Number of entries."""
        return len(self.addresses)

    def _is_end(self, at: int) -> bool:
        return self._entry(at).kind is OrcKind.UNKNOWN

    def _entry(self, at: int) -> OrcEntry:
        raw = int.from_bytes(self._entries[at * _SIZE : at * _SIZE + _SIZE], "little")
        return self.layout.entry(raw)

    def at(self, address: int) -> OrcEntry | None:
        """The entry that holds at a link address; None in front of the first one."""
        place = bisect_right(self.addresses, _signed(address)) - 1
        if place < 0:
            return None
        return self._entry(place if self._order is None else self._order[place])

    def entries(self) -> Iterator[tuple[int, OrcEntry]]:
        """All entries, ascending, with the link address from which each holds."""
        known: dict[bytes, OrcEntry] = {}
        order = range(len(self)) if self._order is None else self._order
        for address, place in zip(self.addresses, order, strict=True):
            raw = self._entries[place * _SIZE : place * _SIZE + _SIZE]
            entry = known.get(raw)
            if entry is None:
                entry = known[raw] = self._entry(place)
            yield address & _ALL_BITS, entry

    @cached_property
    def reads_before_moving(self) -> bool:
        """True if a stack pointer kept on the stack is read first and moved afterwards."""
        version = _version(self._image)
        return version is None or version >= _STACK_IN_STACK


class LoadedOrc:
    """The entries of a module that a kernel has loaded: it has sorted them."""

    SIZE: Final = _SIZE
    """Bytes of an entry."""

    def __init__(self, base: int, places: bytes, entries: bytes, layout: OrcLayout) -> None:
        """Take entries out of a kernel's memory.

        Args:
            base: address of `places`.
            places: from where each entry holds, relative to the place of the number.
            entries: as many.
            layout: of the entries.
        """
        count = min(len(places) // 4, len(entries) // _SIZE)
        offsets = struct.unpack_from(f"<{count}i", places)
        first = _signed(base)
        self._addresses = [first + 4 * at + offset for at, offset in enumerate(offsets)]
        self._entries, self._layout = entries, layout

    def at(self, address: int) -> OrcEntry | None:
        """The entry that holds at an address; None in front of the first one."""
        place = bisect_right(self._addresses, _signed(address)) - 1
        if place < 0:
            return None
        raw = int.from_bytes(self._entries[place * _SIZE : place * _SIZE + _SIZE], "little")
        return self._layout.entry(raw)


def _signed(address: int) -> int:
    return address - (1 << 64) if address >> 63 else address


def _layout_of(image: ElfImage) -> OrcLayout:
    try:
        from engine.image.kernel.btffile import btf_of  # kernels alone have such tables

        types = btf_of(image)
        record = types.record("orc_entry") if types is not None else None
        if record is not None and record.size == _SIZE:
            bits: dict[str, tuple[int, int]] = {}
            for part in record.members:
                size = part.bit_size or 8 * (part.type.size or 0)
                bits[part.name or ""] = part.bit_offset if part.bit_size else 8 * part.offset, size
            if _COMMON.keys() | {"type"} <= bits.keys():
                return OrcLayout(bits, split=bits["type"][1] > 2)
    except (ImageError, DamagedError) as error:
        image.damage.note(str(error))
    if image.section(HEADER) is not None:
        return _LAYOUT_NEW
    version = _version(image)
    return _LAYOUT_OLD if version is not None and version < _SPLIT_SINCE else _LAYOUT_NEW


def _version(image: ElfImage) -> tuple[int, int] | None:
    for one in (image, image.kernel):
        found = _BANNER.search(one.buffer) if one is not None else None
        if found is not None:
            return int(found[1]), int(found[2])
    return None
