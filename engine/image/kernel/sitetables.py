"""The tables of a kernel image that name places in its text.

The linker script (include/asm-generic/vmlinux.lds.h) puts a pair of symbols around each, a
module has each as a section. Entries are laid out as the image's own BTF says, or as the
version's headers did.
"""

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from engine.arch.kernel import KernelView
from engine.arch.kernelsites import (
    Alternative,
    BugSite,
    ExceptionEntry,
    JumpLabel,
    ParavirtSite,
    StaticCall,
    TableAddress,
    TableShapes,
)
from engine.image.damage import Damage

_TABLES: Final[Mapping[str, TableAddress]] = {
    "ftrace": TableAddress(("__mcount_loc",), "__start_mcount_loc", "__stop_mcount_loc"),
    "patchable": TableAddress(("__patchable_function_entries",), "", ""),
    "jump_labels": TableAddress(("__jump_table",), "__start___jump_table", "__stop___jump_table"),
    "static_calls": TableAddress(
        (".static_call_sites",), "__start_static_call_sites", "__stop_static_call_sites"
    ),
    "exceptions": TableAddress(("__ex_table",), "__start___ex_table", "__stop___ex_table"),
    "bugs": TableAddress(("__bug_table",), "__start___bug_table", "__stop___bug_table"),
    "blacklist": TableAddress(
        ("_kprobe_blacklist",), "__start_kprobe_blacklist", "__stop_kprobe_blacklist"
    ),
    "alternatives": TableAddress(
        (".altinstructions",), "__alt_instructions", "__alt_instructions_end"
    ),
    "retpoline_sites": TableAddress(
        (".retpoline_sites",), "__retpoline_sites", "__retpoline_sites_end"
    ),
    "return_sites": TableAddress((".return_sites",), "__return_sites", "__return_sites_end"),
    "endbr_seal": TableAddress((".ibt_endbr_seal",), "__ibt_endbr_seal", "__ibt_endbr_seal_end"),
    "paravirt": TableAddress(
        (".parainstructions",), "__parainstructions", "__parainstructions_end"
    ),
    "smp_locks": TableAddress((".smp_locks",), "__smp_locks", "__smp_locks_end"),
}

_AREAS: Final = ("kprobes", "noinstr", "entry", "irqentry", "idmap", "hyp", "hyp_idmap")
"""Texts that the kernel forbids as a whole, in its order: __NAME_text_start to __NAME_text_end."""

_MODULE_AREAS: Final = (".kprobes.text", ".noinstr.text")

_RELATIVE_LABELS: Final = (4, 20, 0)
"""Since this version the entries of jump labels are distances."""

_TRIED: Final = 64
"""Entries by which one layout of several is told from the others."""
_FAR: Final = 1 << 30
_MOST: Final = 1 << 27
"""Bytes of a table: more than a kernel's whole image has."""


class SiteTables:
    """The tables of one image or module, each read when it is asked for.

    Entries that are cut off are left out, and told as damage.
    """

    def __init__(
        self,
        view: KernelView,
        starts: Sequence[int],
        damage: Damage,
        shapes: Callable[[KernelView], TableShapes] | None = None,
    ) -> None:
        """The tables of `view`.

        Args:
            view: the image or module.
            starts: addresses of all its symbols, sorted.
            damage: where broken tables are told.
            shapes: finds tables without names, where the architecture knows how.
        """
        self._view = view
        self._starts = starts
        self._damage = damage
        self._shapes = shapes(view) if shapes is not None else None
        self._tables: dict[str, tuple[int, bytes]] = {}

    def table(self, name: str) -> tuple[int, bytes]:
        """Address and bytes of a table; no bytes where there is none."""
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = self._read(name)
        return found

    @cached_property
    def ftrace(self) -> Sequence[int]:
        """Addresses of the instructions that ftrace patches, sorted."""
        sites: Sequence[int] = self._pointers("ftrace")
        if self._shapes is not None:
            # Elsewhere this section tells of the padding in front of functions.
            sites = self._shapes.ftrace_sites(sites or self._pointers("patchable"))
        return tuple(sorted(sites))

    @cached_property
    def jump_labels(self) -> Sequence[JumpLabel]:
        """Branches that follow static keys, sorted."""
        found = []
        if self._view.version >= _RELATIVE_LABELS:
            for at, (code, target, key) in self._entries("jump_labels", 16, "iiq"):
                key += at + 8
                found.append(_jump_label(at + code, at + 4 + target, key))
        else:
            for _, (code, target, key) in self._entries("jump_labels", 24, "QQQ"):
                found.append(_jump_label(code, target, key))
        found.sort()
        return tuple(found)

    @cached_property
    def static_calls(self) -> Sequence[StaticCall]:
        """Calls that follow a key, sorted."""
        found = []
        for at, (address, key) in self._entries("static_calls", 8, "ii"):
            key += at + 4
            found.append(StaticCall(at + address, key & ~3, bool(key & 1), bool(key & 2)))
        found.sort()
        return tuple(found)

    @cached_property
    def exceptions(self) -> Sequence[ExceptionEntry]:
        """Instructions that may fault, sorted."""
        at, data = self.table("exceptions")
        layout = self._chosen(at, data, "exception_table_entry", ("iiI", "ii"))
        size = struct.calcsize("=" + layout)
        found = []
        for at, values in self._entries("exceptions", size, layout):
            more = values[2] if len(values) > 2 else 0
            found.append(ExceptionEntry(at + values[0], at + 4 + values[1], more))
        found.sort()
        return tuple(found)

    @cached_property
    def bugs(self) -> Sequence[BugSite]:
        """Traps of BUG and WARN, sorted."""
        at, data = self.table("bugs")
        layout = self._chosen(at, data, "bug_entry", ("iiHH", "iiiHH", "iH2x", "iH"))
        size = struct.calcsize("=" + layout)
        verbose = layout.startswith("ii")
        found = []
        for at, values in self._entries("bugs", size, layout):
            if verbose:
                found.append(BugSite(at + values[0], at + 4 + values[1], values[-2], values[-1]))
            else:
                found.append(BugSite(at + values[0], 0, 0, values[-1]))
        found.sort()
        return tuple(found)

    @cached_property
    def blacklist(self) -> Sequence[int]:
        """Addresses of the functions that NOKPROBE_SYMBOL names, in the table's order."""
        return tuple(self._pointers("blacklist"))

    @cached_property
    def blacklist_ranges(self) -> Sequence[tuple[int, int]]:
        """Start and end of what kprobes are kept from, in the order of kprobes/blacklist.

        A range's name is that of the first symbol at its start. (kernel/kprobes.c,
        populate_kprobe_blacklist)
        """
        found = []
        for address in self.blacklist:
            bounds = self.bounds(address)
            if bounds is not None and self._is_text(address):
                found.append((address, address + bounds[1] - bounds[0]))
        for start, end in self._areas():
            at = start
            while at < end:
                bounds = self.bounds(at)
                if bounds is None:
                    break
                size = bounds[1] - bounds[0]
                found.append((at, at + size))
                at += size
        return tuple(found)

    @cached_property
    def forbidden(self) -> Sequence[tuple[int, int]]:
        """The same ranges, sorted and joined where they meet."""
        joined: list[tuple[int, int]] = []
        for start, end in sorted(self.blacklist_ranges):
            if joined and start <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(joined[-1][1], end))
            else:
                joined.append((start, end))
        return tuple(joined)

    @cached_property
    def alternatives(self) -> Sequence[Alternative]:
        """Instructions to be exchanged, in the table's order, which is that of the patching."""
        at, data = self.table("alternatives")
        layout = self._chosen(at, data, "alt_instr", ("iiHBB", "iiIBB", "iiHBBB"))
        size = struct.calcsize("=" + layout)
        return tuple(
            Alternative(at + v[0], at + 4 + v[1], v[2], v[3], v[4])
            for at, v in self._entries("alternatives", size, layout)
        )

    @cached_property
    def retpoline_sites(self) -> Sequence[int]:
        """Calls and jumps to the thunks of indirect branches, in the table's order."""
        return self._relative("retpoline_sites")

    @cached_property
    def return_sites(self) -> Sequence[int]:
        """Jumps to the thunk of returns, in the table's order."""
        return self._relative("return_sites")

    @cached_property
    def endbr_seal(self) -> Sequence[int]:
        """Marks of indirect branch targets that nobody branches to, in the table's order."""
        return self._relative("endbr_seal")

    @cached_property
    def paravirt(self) -> Sequence[ParavirtSite]:
        """Calls through the table of paravirtual operations, in the table's order."""
        at, data = self.table("paravirt")
        if len(data) % 16 == 12:  # until 5.x the last entry is not filled up
            self._tables["paravirt"] = at, data + bytes(4)
        return tuple(
            ParavirtSite(address, kind, size)
            for _, (address, kind, size) in self._entries("paravirt", 16, "QBB6x")
        )

    @cached_property
    def smp_locks(self) -> Sequence[int]:
        """Lock prefixes that a machine with one CPU can do without; empty entries left out."""
        at, data = self.table("smp_locks")
        values = memoryview(data)[: len(data) & ~3].cast("i")
        return tuple(at + 4 * i + value for i, value in enumerate(values) if value)

    def bounds(self, address: int) -> tuple[int, int] | None:
        """Start and end of the symbol that an address belongs to; None beyond the last one."""
        i = bisect_right(self._starts, address)
        if not i:
            return None
        start = self._starts[i - 1]
        while i < len(self._starts) and self._starts[i] == start:
            i += 1
        return (start, self._starts[i]) if i < len(self._starts) else None

    def _read(self, name: str) -> tuple[int, bytes]:
        """Address and bytes of a table; none where it is missing or broken."""
        wanted = _TABLES[name]
        start, end = self._view.symbol(wanted.start), self._view.symbol(wanted.end)
        if start is not None and end is not None:
            return self._between(name, start, end)
        for section in wanted.sections:
            held = self._view.section(section)
            if held is not None:
                return self._between(name, held[0], sum(held))
        if self._shapes is not None:
            shape = self._shapes.tables(self._starts).get(name)
            if shape is not None:
                return self._between(name, shape[0], sum(shape))
        return 0, b""

    def _between(self, name: str, start: int, end: int) -> tuple[int, bytes]:
        """The bytes between two addresses, as far as the image has them."""
        if not 0 <= end - start <= _MOST:
            self._damage.note(f"table {name}: it is said to be {end - start} bytes at {start:#x}")
            return start, b""
        data = self._view.read(start, end - start)
        if len(data) != end - start:
            self._damage.note(
                f"table {name} at {start:#x}: {len(data)} of its {end - start} bytes are there"
            )
        return start, data

    def _entries(self, name: str, size: int, layout: str) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Address and values of each whole entry of a table."""
        at, data = self.table(name)
        rest = len(data) % size
        if rest:
            self._damage.note(
                f"table {name} at {at:#x}: {len(data)} bytes are no multiple of {size}"
            )
            data = data[: len(data) - rest]
        values = struct.Struct("=" + layout).iter_unpack(data)
        return zip(range(at, at + len(data), size), values, strict=True)

    def _pointers(self, name: str) -> list[int]:
        """The addresses of a table that consists of such."""
        return [value for _, (value,) in self._entries(name, 8, "Q") if value]

    def _relative(self, name: str) -> Sequence[int]:
        """The addresses of a table of distances, each from its own place."""
        at, data = self.table(name)
        if len(data) % 4:
            self._damage.note(f"table {name} at {at:#x}: {len(data)} bytes are no multiple of 4")
        values = memoryview(data)[: len(data) & ~3].cast("i")
        return tuple(map(int.__add__, values, range(at, at + len(data), 4)))

    def _chosen(self, at: int, data: bytes, record: str, layouts: tuple[str, ...]) -> str:
        """The layout of a table's entries among those there have been.

        Where their first numbers lead tells them apart; where it does not, the size by the
        image's own types.
        """
        fits = [text for text in layouts if self._fit(at, data, text) == 1]
        if len(fits) == 1:
            return fits[0]
        layout = self._view.layout(record)
        sizes = {struct.calcsize("=" + text): text for text in layouts}
        if layout is not None and layout.get("", (0, 0))[1] in sizes:
            return sizes[layout[""][1]]
        return max(layouts, key=lambda text: self._fit(at, data, text))

    def _fit(self, at: int, data: bytes, layout: str) -> float:
        """The share of the first entries that lead on to places this image has: most rise."""
        size = struct.calcsize("=" + layout)
        if not data or len(data) % size:
            return 0
        good = last = 0
        places = range(0, min(len(data), _TRIED * size), size)
        for place in places:
            distance = int.from_bytes(data[place : place + 4], "little", signed=True)
            target = at + place + distance
            if abs(distance) < _FAR and target >= last and self._view.read(target, 1):
                good += 1
            last = target
        return good / len(places)

    def _areas(self) -> Iterator[tuple[int, int]]:
        """Start and end of the texts that are forbidden as a whole, in the kernel's order."""
        if self._view.is_module:
            for name in _MODULE_AREAS:
                held = self._view.section(name)
                if held is not None:
                    yield held[0], sum(held)
            return
        given: list[tuple[int, int]] = []
        for name in _AREAS:
            start = self._view.symbol(f"__{name}_text_start")
            end = self._view.symbol(f"__{name}_text_end")
            if start is None or end is None or start >= end:
                continue
            if not any(low <= start and end <= high for low, high in given):
                given.append((start, end))
                yield start, end

    def _is_text(self, address: int) -> bool:
        """True for text of the kernel at boot (core_kernel_text), and all of a module's."""
        for name in ("text", "inittext") if not self._view.is_module else ():
            start, end = (self._view.symbol(f"_{end}{name}") for end in "se")
            if start is not None and end is not None and start <= address < end:
                return True
        return self._view.is_module


def _jump_label(code: int, target: int, key: int) -> JumpLabel:
    """An entry, whose key has two marks in its low bits."""
    return JumpLabel(code, target, key & ~3, bool(key & 1), bool(key & 2))
