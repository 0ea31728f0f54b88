"""A kernel image or module: one ELF file, the kernel's names, its version."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.errors import ImageError
from engine.image.elf import ElfImage
from engine.image.kernel.btf import Btf
from engine.image.kernel.btffile import btf_of
from engine.image.kernel.imagecache import KeptKernel
from engine.image.kernel.recognition import ADDRESSES, LETTERS, MODULE_SECTION, ORDER

if TYPE_CHECKING:
    from engine.image.kernel.givennames import GivenNames

_NAME_PIECE: Final = 48
_BANNER: Final = re.compile(rb"Linux version (\d+)\.(\d+)(?:\.(\d+))?([^\s\0]*)([^\0\n]{0,400})")
_EXACT: Final = re.compile(rb"\s(\d+)\.(\d+)\.(\d+)[-~\s]")
_MAGIC: Final = re.compile(rb"vermagic=(\d+)\.(\d+)(?:\.(\d+))?([^\s\0]*)")
_NAME: Final = re.compile(rb"(?:^|\0)name=([^\0]+)")


class KernelRelease(Struct, frozen=True):
    """The version of a kernel.

    Attributes:
        release: as uname -r prints it.
        version: as numbers, the stable release where a distribution's text has it.
    """

    release: str
    version: tuple[int, int, int]


class NamedRange(Struct, frozen=True):
    """The name that the kernel finds for an address, and its [start, end)."""

    name: str
    start: int
    end: int


def vermagic(modinfo: bytes) -> KernelRelease | None:
    """The kernel that a module was built for, by its .modinfo; None where it does not say."""
    match = _MAGIC.search(modinfo)
    if match is None:
        return None
    major, minor, patch, rest = match.groups()
    text = b".".join(filter(None, (major, minor, patch))) + rest
    return KernelRelease(
        text.decode("utf-8", "replace"), (int(major), int(minor), int(patch or 0))
    )


class KernelNames:
    """The names of an image, looked up as the kernel does (kernel/kallsyms.c).

    Of several names of one address the first one counts; a name reaches to the next address that
    has one.

    Attributes:
        addresses: of all names, in order.
        types: letters as nm(1) has them, a byte each.
    """

    def __init__(self, image: ElfImage) -> None:
        """Read the columns of the table of symbols that the image was made with."""
        view = memoryview(image.buffer)

        def part(name: str) -> memoryview:
            section = image.section(name)
            if section is None:
                raise ImageError(f"{image.name}: the image has no names")
            return view[section.offset : section.offset + section.size]

        self.addresses = part(ADDRESSES).cast("Q")
        self.types = part(LETTERS).tobytes()
        # A row of the symbol table has six words, the first of which is the name's place.
        self._rows = part(".symtab").cast("I")
        self._strings = part(".strtab")
        self._order = part(ORDER).cast("I")
        counts = {len(self._rows) // 6 - 1, len(self._order), len(self.types)}
        if counts != {len(self.addresses)}:
            raise ImageError(f"{image.name}: the image's names do not fit each other")
        self._found: dict[str, tuple[int, ...]] = {}

    def __len__(self) -> int:
        """Number of names."""
        return len(self.addresses)

    def _raw(self, number: int) -> bytes:
        start = self._rows[6 * number + 6]
        # Few names are longer than one piece.
        size = _NAME_PIECE
        while True:
            text, end, _ = self._strings[start : start + size].tobytes().partition(b"\0")
            if end or start + size >= len(self._strings):
                return text
            size *= 4

    def name(self, number: int) -> str:
        """The name with a number in /proc/kallsyms."""
        return self._raw(number).decode("utf-8", "replace")

    @cached_property
    def names(self) -> list[str]:
        """All names, in order."""
        return str(self._strings, "utf-8", "replace").split("\0")[1 : len(self) + 1]

    def all_of(self, name: str) -> tuple[int, ...]:
        """The addresses of all symbols of that name, in order."""
        found = self._found.get(name)
        if found is None:
            wanted = name.encode("utf-8", "replace")
            first = bisect_left(self._order, wanted, key=self._raw)
            numbers = []
            for at in range(first, len(self._order)):
                if self._raw(self._order[at]) != wanted:
                    break
                numbers.append(self._order[at])
            found = tuple(self.addresses[number] for number in numbers)
            self._found[name] = found
        return found

    def find(self, name: str) -> int | None:
        """The address of the first symbol of that name."""
        found = self.all_of(name)
        return found[0] if found else None

    def count(self, name: str) -> int:
        """Number of symbols that have that name."""
        return len(self.all_of(name))

    def letter(self, number: int) -> str:
        """The type letter of the name with a number."""
        return chr(self.types[number])

    def at(self, address: int) -> NamedRange | None:
        """The name that the kernel has for an address; None in front of the first name."""
        addresses = self.addresses
        after = bisect_right(addresses, address)
        if not after:
            return None
        start = addresses[after - 1]
        end = addresses[after] if after < len(addresses) else start + 1
        first = after - 1
        while first and addresses[first - 1] == start:
            first -= 1
        return NamedRange(self.name(first), start, end)

    def lines(self) -> Iterator[str]:
        """The lines of /proc/kallsyms, without modules."""
        for address, letter, name in zip(self.addresses, self.types, self.names, strict=True):
            yield f"{address:016x} {letter:c} {name}"


class KernelImage:
    """A kernel or a module that is laid out, as rules and tables ask it (a `KernelView`).

    Attributes:
        elf: the same as a file; addresses are those of a kernel started with nokaslr.
        is_module: True for a loadable module.
        kernel: of a module: the image whose names and types it uses, if it is known.
        unresolved: imports of a module that nobody exports, and that are stubs.
        kept: where what is derived of it is kept; None = nowhere.
    """

    def __init__(
        self,
        elf: ElfImage,
        kernel: "KernelImage | None" = None,
        unresolved: tuple[str, ...] = (),
        kept: KeptKernel | None = None,
        given: "GivenNames | None" = None,
    ) -> None:
        """Nothing is read before the first question.

        Args:
            elf: made by `open_kernel` or `laid_out_module`.
            kernel: the one that a module was laid out for.
            unresolved: imports of a module that nobody exports.
            kept: where what is derived of it is kept.
            given: names that come with it and that its own table may not have.
        """
        self._given = given
        self.kept = elf.kept = kept
        self.unresolved = unresolved
        self.elf = elf
        self.kernel = kernel
        if kernel is not None:
            elf.kernel = kernel.elf
        self.is_module = elf.section(MODULE_SECTION) is not None
        self._segments = [(s.vaddr, s.vaddr + s.memsz) for s in elf.load_segments]

    @cached_property
    def names(self) -> KernelNames:
        """The kernel's own names."""
        return KernelNames(self.elf)

    @cached_property
    def release(self) -> KernelRelease:
        """The kernel's version, from its banner; a module's from what it was built for.

        Raises:
            ImageError: it does not say.
        """
        return (None if self.is_module else self._banner()) or self._vermagic() or self._none()

    def _none(self) -> KernelRelease:
        raise ImageError(f"{self.elf.name}: no text in it says which version of Linux this is")

    def _banner(self) -> KernelRelease | None:
        match = None
        address = self.symbol("linux_banner")
        if address is not None:
            match = _BANNER.match(self.read(address, 512))
        match = match or _BANNER.search(self.elf.buffer)
        if match is None:
            return None
        major, minor, patch, rest, more = match.groups()
        version = int(major), int(minor), int(patch or 0)
        text = b".".join(filter(None, (major, minor, patch))) + rest
        # A distribution's release stays at .0; its banner ends with the version in full.
        for exact in _EXACT.findall(more):
            if exact[:2] == (major, minor):
                version = version[0], version[1], int(exact[2])
        return KernelRelease(text.decode("utf-8", "replace"), version)

    def _vermagic(self) -> KernelRelease | None:
        section = self.elf.section(".modinfo")
        found = vermagic(self.elf.section_data(section)) if section is not None else None
        if found is None or self.kernel is None:
            return found
        if self.kernel.release.version[:2] != found.version[:2]:
            return found
        return KernelRelease(found.release, self.kernel.release.version)

    @property
    def version(self) -> tuple[int, int, int]:
        """The kernel's version as numbers."""
        return self.release.version

    @cached_property
    def module(self) -> str:
        """Name of a module, "" of a kernel."""
        section = self.elf.section(".modinfo") if self.is_module else None
        match = _NAME.search(self.elf.section_data(section)) if section is not None else None
        return "" if match is None else match[1].decode("utf-8", "replace")

    @property
    def btf(self) -> Btf | None:
        """The kernel's types; None where it has none, or they are damaged, which is told."""
        try:
            types = btf_of(self.elf)
        except ImageError as error:
            self.elf.damage.note(str(error))
            return None
        return None if types is None else types.btf

    def read(self, address: int, size: int) -> bytes:
        """Bytes as the file has them, relocated; fewer where the image ends; zeros of bss.

        Segments that follow each other are read as one.
        """
        found = self.elf.read_vaddr(address, size)
        while found and len(found) < size:
            more = self.elf.read_vaddr(address + len(found), size - len(found))
            if not more:
                break
            found += more
        return found

    def holds(self, address: int) -> bool:
        """True if the image has an address."""
        return any(low <= address < high for low, high in self._segments)

    def symbol(self, name: str) -> int | None:
        """Address of the first symbol of that name; a module's kernel is not asked."""
        found = self.names.find(name)
        return self._given.find(name) if found is None and self._given is not None else found

    def section(self, name: str) -> tuple[int, int] | None:
        """Address and bytes of a section that is loaded."""
        found = self.elf.section(name)
        return None if found is None or not found.flags & 2 else (found.addr, found.size)

    def layout(self, record: str) -> Mapping[str, tuple[int, int]] | None:
        """Members of a structure by the image's own BTF; its size stands under ""."""
        if self.btf is None:
            return None
        types = btf_of(self.elf)
        try:
            return None if types is None else types.layout(record)
        except ImageError as error:
            self.elf.damage.note(str(error))
            return None
