"""From what a user types to addresses in files: `SYM+OFF`, `PATH:SYM`, `PATH:OFFSET`, ...

Nothing has to run: a place is a link address in a file, and becomes a guest address when
that file is mapped executable.
"""

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.base import Arch
from engine.arch.plan import Rules
from engine.cpu.ram import EXECUTE
from engine.errors import ProbeError
from engine.guest.memory import Mapping, Memory
from engine.guest.modules import Modules
from engine.image import ElfImage, Symbol
from engine.image.mangling import spellings
from engine.image.symtab import shown_place
from engine.linux import vdso
from engine.session.program.functions import FunctionRanges, inlined_sites, is_code
from engine.session.program.libraries import Program, ProgramFile
from engine.trace.place_syntax import Address, FileOffset, SourceLine, Target, path_symbol

_NEAR_MAX: Final = 50_000
_KEPT: Final = 4096
_OFFSET: Final = re.compile(r"(.+?)\+(0[xX][0-9a-fA-F]+|\d+)$", re.DOTALL)
_LIBRARY: Final = re.compile(r"([^:]+):(?!:)(.+)$", re.DOTALL)
_MARKER: Final = re.compile(r"%|sdt_|u?sdt:|.*:%|.*\(0[xX][0-9a-fA-F]+\)$", re.DOTALL)
_NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]+|\d+")
_HEX: Final = re.compile(r"0[xX][0-9a-fA-F]+")
_ADDRESS_END: Final = 1 << 64
_NO_INODE: Final = (0, 0)
RESOLVER: Final = "@resolver"
"""Ends the name of an indirect function where its resolver is meant."""
_WILD: Final = frozenset("*?[")

Picked = Callable[["ProgramFile", Symbol], tuple["ProgramFile", int]]
"""Tells which code an indirect function stands for in this run: its file and link address.

It raises a `PlaceError` where that cannot be known.
"""


class PlaceError(ProbeError):
    """A place that does not exist.

    Attributes:
        code: id of the kernel's error in its error_log ("BAD_PROBE_ADDR").
        errno: name of the error the kernel gives.
    """

    def __init__(self, message: str, code: str, errno: str) -> None:
        super().__init__(message)
        self.code = code
        self.errno = errno


class Enclosing(Struct, frozen=True):
    """The function around a place, which all places in it share.

    Attributes:
        rules: of kprobes, or of uprobes for `PATH:OFFSET`.
        path: guest path of the file.
        image: the file.
        symbol: the name it was given by, or of the symbol that covers it; None without.
        start: link address that offsets are counted from.
        function: (start, size) of the function, None outside of all.
        paths: all guest paths of the file.
        inode: (device, inode) of the file; None where only paths are known.
    """

    rules: Rules
    path: str
    image: ElfImage
    symbol: str | None
    start: int
    function: tuple[int, int] | None
    paths: frozenset[str] = frozenset()
    inode: tuple[int, int] | None = None


class Place(Struct, frozen=True, gc=False):
    """An instruction that somebody wants to probe.

    Attributes:
        around: the function that it lies in, with its file.
        link: link address; behind the landing pad where a kprobe would be put there.
        typed: what was typed, "" for the plain `PATH:OFFSET`.
    """

    around: Enclosing
    link: int
    typed: str

    def at(self, link: int) -> "Place":
        """The place at another link address of the same symbol and function."""
        return Place(self.around, link, self.typed)

    def under(self, rules: Rules) -> "Place":
        """The same place, judged by other rules."""
        return Place(replace(self.around, rules=rules), self.link, self.typed)

    @property
    def rules(self) -> Rules:
        """The rules that decide."""
        return self.around.rules

    @property
    def path(self) -> str:
        """The guest path of the file."""
        return self.around.path

    @property
    def image(self) -> ElfImage:
        """The file."""
        return self.around.image

    @property
    def symbol(self) -> str | None:
        """The name it was given by, or of the symbol that covers it; None without."""
        return self.around.symbol

    @property
    def offset(self) -> int:
        """Offset in that symbol; from the function's start without a symbol."""
        return self.link - self.around.start

    @property
    def function(self) -> tuple[int, int] | None:
        """(start, size) of the function around it, None outside of all."""
        return self.around.function

    @property
    def paths(self) -> frozenset[str]:
        """All guest paths of the file."""
        return self.around.paths

    @property
    def inode(self) -> tuple[int, int] | None:
        """(device, inode) of the file; None where only paths are known."""
        return self.around.inode

    def is_in(self, mapping: Mapping) -> bool:
        """True if a mapping shows the file: whatever the path by which the program came to it.

        Linux goes by the inode (kernel/events/uprobes.c); paths count where none is known.
        """
        return shows_file(mapping, self.inode, self.paths)

    @property
    def text(self) -> str:
        """The place as it was typed."""
        offset = self.file_offset
        return self.typed or ("" if offset is None else f"{self.path}:{offset:#x}")

    @property
    def file_offset(self) -> int | None:
        """Offset in the file, as uprobes count; None where nothing is stored."""
        return self.image.file_offset(self.link)

    @property
    def name(self) -> str:
        """SYMBOL+OFF as kprobes print it, the plain address without a symbol."""
        return f"{self.link:#x}" if self.symbol is None else f"{self.symbol}+{self.offset:#x}"

    @property
    def shown(self) -> str:
        """The same for people: of a C++ function its name in the source."""
        return shown_place(self.name)


class Places:
    """Resolves the places of one program.

    Attributes:
        ranges: the functions of its files.
    """

    def __init__(self, arch: Arch, program: Program, picked: Picked | None = None) -> None:
        """Nothing is read before the first question.

        Args:
            arch: of the program.
            program: its files.
            picked: tells what indirect functions stand for; None where nothing runs: their
                names mean their resolvers then.
        """
        self._picked = picked
        self.ranges = FunctionRanges()
        self._enclosing = lru_cache(maxsize=_KEPT)(Enclosing)
        self._arch = arch
        self._program = program

    def resolve(self, text: str) -> tuple[Place, ...]:
        """The places that a PLACE means: one, or several for `FILE:LINE`.

        Raises:
            PlaceError: there is none, or the name is not unique.
            ImageError: a PATH is there but is no ELF file.
        """
        if _MARKER.match(text):
            from engine.session.program.marker_places import marker_places  # few are

            found = marker_places(self, self._arch, self._program, text)
            if found is not None:
                return found
        if "/" in text:
            path, _, digits = text.rpartition(":")
            if path and _NUMBER.fullmatch(digits):
                return (self._path_offset(text, path, _number(digits)),)
            named = path_symbol(text)
            if named is None:
                raise PlaceError(
                    f"{text}: not of the form PATH:OFFSET or PATH:SYMBOL",
                    "BAD_UPROBE_OFFS",
                    "EINVAL",
                )
            return self._named(text, named[1], 0, self._library(named[0], text))
        if _HEX.fullmatch(text):
            return (self._address(text, int(text, 16)),)
        match = _LIBRARY.match(text)
        if match is None:
            return self._named(text, text, 0, None)
        if match[2].isdecimal():
            return self._line(text, match[1], int(match[2]))
        file = self._library(match[1], text)
        return self._named(text, match[2], 0, file)

    def of_target(
        self, target: Target, text: str, rules: Rules | None = None
    ) -> tuple[Place, ...]:
        """The places of a definition that is read already.

        Args:
            target: the place as read.
            text: the place as written, for messages.
            rules: other rules than the target's own.

        Raises:
            PlaceError: there is none, or the name is not unique.
            ImageError: a path is there but is no ELF file.
        """
        kprobe = rules or Rules.KPROBE
        if isinstance(target, FileOffset):
            uprobe = rules or Rules.UPROBE
            return (self._path_offset(text, target.path, target.offset, uprobe),)
        if isinstance(target, Address):
            return (self._address(text, target.value, kprobe),)
        if isinstance(target, SourceLine):
            return self._line(text, target.file, target.line, kprobe)
        file = self._library(target.module, text) if target.module else None
        return self._named(text, target.name, target.offset, file, kprobe)

    def matching(self, glob: str, rules: Rules = Rules.KPROBE) -> Iterator[Place]:
        """The entries of all functions whose name matches GLOB, LIB:GLOB or PATH:GLOB.

        They come by address.

        Names are those of the linker or demangled ones (whole, without parameters, without
        template arguments), compared as by fnmatch with case.
        An indirect function (IFUNC) is where the implementation is that it stands for. Where
        nothing runs, its resolver is meant by its full name, and by no pattern.

        Raises:
            PlaceError: LIB is no library of the program.
        """
        match = _LIBRARY.match(glob)
        file = self._program.main
        if match is not None:
            file, pattern = self._library(match[1], glob), match[2]
        else:
            pattern = glob
        wanted = re.compile(fnmatch.translate(pattern)).match
        if "@" in pattern and not _WILD & set(pattern):  # SYM@VERSION, SYM@resolver
            if self._find(pattern.removesuffix(RESOLVER), (file,)):
                yield self._symbol(glob, pattern, 0, file, rules)
            return
        last = -1
        indirect: list[Symbol] = []
        seen: set[int] = set()
        for symbol in file.symbols.functions():
            if symbol.address == last and symbol.kind != "ifunc":
                continue
            if not _covers(file.image, symbol.address):  # a mark behind the code, as Go's etext
                continue
            if wanted(symbol.name) or any(
                form == pattern or wanted(form) for form in _plain_names(symbol)
            ):
                if symbol.kind == "ifunc":
                    indirect.append(symbol)
                    continue
                last = symbol.address
                seen.add(last)
                yield self._at(file, symbol.address, rules, glob, symbol)
        yield from self._implementations(file, indirect, pattern, glob, rules, seen)

    def _implementations(
        self,
        file: ProgramFile,
        indirect: list[Symbol],
        pattern: str,
        glob: str,
        rules: Rules,
        seen: set[int],
    ) -> Iterator[Place]:
        """The implementations of indirect functions that match a pattern, each place once."""
        exact = pattern in {symbol.name for symbol in indirect}
        if exact:
            found = self._find(pattern, (file,))  # of several versions the default one
            assert found is not None, "it is one of the file's"
            indirect = found[1][:1]
        elif self._picked is None:
            return
        for symbol in indirect:
            try:
                place = self._of(file, symbol, 0, rules, glob)
            except PlaceError:
                if exact:
                    raise
                continue  # as time() is the kernel's own: nobody has asked for it by name
            if place.image is not file.image or place.link not in seen:
                seen.add(place.link)
                yield place

    @property
    def paths(self) -> list[str]:
        """Guest paths of the program and of its libraries."""
        return [file.path for file in self._program.files]

    def symbol(self, name: str) -> tuple[ProgramFile, int] | None:
        """The file and the link address of a symbol of any kind: the first in load order."""
        for file in self._program.searched:
            found = [s for s in file.symbols.find_all(name) if s.kind != "tls"]
            if found:
                return file, next((s for s in found if s.default), found[0]).address
        return None

    def at(self, file: ProgramFile, link: int, rules: Rules, text: str) -> Place:
        """The place at a link address, named by the symbol that covers it."""
        return self._at(file, link, rules, text, None)

    # -- the forms of a place ----------------------------------------------------

    def _named(
        self,
        text: str,
        name: str,
        offset: int,
        file: ProgramFile | None,
        rules: Rules = Rules.KPROBE,
    ) -> tuple[Place, ...]:
        """A symbol's place; of a function without one, all places it was inlined at."""
        if file is not None and file.path == vdso.NAME and _HEX.fullmatch(name):
            return (self._path_offset(text, file.path, int(name, 16), Rules.UPROBE),)
        try:
            return (self._symbol(text, name, offset, file, rules),)
        except PlaceError as error:
            if error.code != "BAD_PROBE_ADDR" or offset:
                raise
            found = inlined_sites(name, self._program.files if file is None else (file,))
            if found is None:
                raise
        owner, links = found
        return tuple(self._at(owner, link, rules, text, None, exact=True) for link in links)

    def _symbol(
        self,
        text: str,
        rest: str,
        offset: int,
        file: ProgramFile | None,
        rules: Rules = Rules.KPROBE,
    ) -> Place:
        name = rest
        files = self._program.searched if file is None else (file,)
        found = self._find(name.removesuffix(RESOLVER), files)
        if found is None and (match := _OFFSET.match(rest)):
            name, offset = match[1], offset + _number(match[2])
            found = self._find(name.removesuffix(RESOLVER), files)
        if found is None:
            where = file.path if file else "the guest and its libraries"
            raise PlaceError(
                f"{text}: no symbol {name!r} in {where}{self._missing()}{self._near(name, files)}",
                "BAD_PROBE_ADDR",
                "ENOENT",
            )
        owner, symbols = found
        if len({symbol.address for symbol in symbols}) > 1:
            shown = ", ".join(sorted({f"{symbol.address:#x}" for symbol in symbols}))
            raise PlaceError(
                f"{text}: The symbol is not unique: {name} stands at {shown} of {owner.path}",
                "NON_UNIQ_SYMBOL",
                "EADDRNOTAVAIL",
            )
        symbol = symbols[0]
        if not name.endswith(RESOLVER):
            return self._of(owner, symbol, offset, rules, text)
        if symbol.kind != "ifunc":
            raise PlaceError(
                f"{text}: {symbol.name} is no indirect function: it has no resolver",
                "BAD_PROBE_ADDR",
                "ENOENT",
            )
        return self._at(owner, symbol.address + offset, rules, text, symbol)

    def _of(
        self, file: ProgramFile, symbol: Symbol, offset: int, rules: Rules, text: str
    ) -> Place:
        """A place in a function: of an indirect one in what it stands for."""
        if symbol.kind != "ifunc" or self._picked is None:
            return self._at(file, symbol.address + offset, rules, text, symbol)
        owner, link = self._picked(file, symbol)
        return self._at(owner, link + offset, rules, text, owner.symbols.at(link))

    def _find(
        self, name: str, files: tuple[ProgramFile, ...]
    ) -> tuple[ProgramFile, list[Symbol]] | None:
        """The first file with that name, and the symbols that are equally good there."""
        for file in files:
            found = [s for s in file.symbols.find_all(name) if s.kind != "tls"]
            if not found:
                continue
            code = [s for s in found if is_code(file.image, s)] or found
            # An old version (name@VER) is not what a program links to today.
            current = [s for s in code if s.default] or code
            functions = [s for s in current if s.is_function] or current
            return file, functions
        return None

    def _missing(self) -> str:
        missing = self._program.missing
        return f" (not found: {', '.join(missing)}; --root gives another tree)" if missing else ""

    def _near(self, name: str, files: tuple[ProgramFile, ...]) -> str:
        close = near_names(name, files)
        return f"; similar: {', '.join(close)}" if close else ""

    def _library(self, name: str, text: str) -> ProgramFile:
        if "/" in name:
            return self._at_path(name, text)
        file = self._program.named(name) or self._program.later(name)
        if file is not None:
            return file
        known = ", ".join(file.path.rsplit("/", 1)[-1] for file in self._program.files)
        raise PlaceError(
            f"{text}: no library {name!r} among the guest's ({known}){self._missing()}, nor where"
            " it could find one later: PATH:SYMBOL names one that it opens by its path",
            "BAD_PROBE_ADDR",
            "ENOENT",
        )

    def _at_path(self, path: str, text: str) -> ProgramFile:
        file = self._program.at_path(path)
        if file is None:
            raise PlaceError(
                f"{text}: Failed to find the given file: the guest sees no readable file {path}",
                "FILE_NOT_FOUND",
                "ENOENT",
            )
        return file

    def _address(self, text: str, link: int, rules: Rules = Rules.KPROBE) -> Place:
        file = self._program.main
        if link >= _ADDRESS_END or not _covers(file.image, link):
            raise PlaceError(
                f"{text}: outside all segments of {file.path} "
                f"({file.image.low:#x} to {file.image.high:#x})",
                "BAD_PROBE_ADDR",
                "EINVAL",
            )
        return self._at(file, link, rules, text, None)

    def _line(
        self, text: str, source: str, line: int, rules: Rules = Rules.KPROBE
    ) -> tuple[Place, ...]:
        for file in self._program.files:
            copy_at = file.variables.copy_at
            addresses = file.lines.addresses_of(source, line, copy_at) if line else []
            if addresses:
                return tuple(
                    self._at(file, link, rules, text, None, exact=True) for link in addresses
                )
        has_lines = any(file.lines.debug_image is not None for file in self._program.files)
        reason = (
            f"no code at or behind line {line} of a source file {source}"
            if has_lines
            else "no file of the program has line information"
        )
        raise PlaceError(f"{text}: {reason}", "BAD_PROBE_ADDR", "ENOENT")

    def _path_offset(
        self, text: str, path: str, offset: int, rules: Rules = Rules.UPROBE
    ) -> Place:
        file = self._at_path(path, text)
        if offset >= file.image.size:
            raise PlaceError(
                f"{text}: the file ends at offset {file.image.size:#x}",
                "BAD_UPROBE_OFFS",
                "EINVAL",
            )
        link = file.image.vaddr_of(offset)
        if link is None:
            raise PlaceError(
                f"{text}: offset {offset:#x} is in no segment of {file.path}",
                "BAD_UPROBE_OFFS",
                "EINVAL",
            )
        plain = text == f"{file.path}:{offset:#x}"
        return self._at(file, link, rules, "" if plain else text, None)

    # -- a place -----------------------------------------------------------------

    def _at(
        self,
        file: ProgramFile,
        link: int,
        rules: Rules,
        text: str,
        symbol: Symbol | None,
        *,
        exact: bool = False,
    ) -> Place:
        image = file.image
        if not _covers(image, link):
            raise PlaceError(
                f"{text}: {link:#x} is outside all segments of {file.path}",
                "BAD_PROBE_ADDR",
                "EINVAL",
            )
        near = self.ranges.near(file, link) if symbol is None else None
        if near is not None:
            symbol, function = near.symbol, near.function
        else:
            symbol, function = symbol or file.symbols.at(link), self.ranges.at(file, link)
        probes = self._arch.probes
        moves = rules is Rules.KPROBE and not exact and probes.skips_landing_pad
        if moves and function is not None:
            # The kernel puts a kprobe on a function's entry behind ENDBR
            # (arch/x86/kernel/kprobes/core.c, arch_adjust_kprobe_addr).
            pad = probes.landing_pad(image.read_vaddr(function[0], self._arch.insn_max))
            if pad and link in (function[0], function[0] + pad):
                link = function[0] + pad
        start = symbol.address if symbol else function[0] if function else link
        around = self._enclosing(
            rules,
            file.path,
            image,
            symbol.name if symbol else None,
            start,
            function,
            file.paths,
            inode=file.inode,
        )
        return Place(around, link, text)

    def neighbours(self, file: ProgramFile, link: int) -> tuple[Enclosing, int, int] | None:
        """The function around a place of `PATH:OFFSET`, and the [low, high) that is in it, too.

        None where a symbol alone does not say what the function is.
        """
        near = self.ranges.around(file, link) if _covers(file.image, link) else None
        if near is None:
            return None
        return self._at(file, link, Rules.UPROBE, "", None).around, near.low, near.high


def shows_file(mapping: Mapping, inode: tuple[int, int] | None, paths: frozenset[str]) -> bool:
    """True if a mapping shows the file of an inode; or of a path, where no inode is known."""
    if inode is not None and mapping.inode != _NO_INODE:
        return mapping.inode == inode
    return mapping.name in paths


def guest_address(place: Place, modules: Modules, memory: Memory) -> int | None:
    """The guest address of a place; None while its file is not mapped executable.

    The program is where it was loaded, unless it has moved its code.
    """
    main, offset = modules.main, place.file_offset
    if main is not None and main.image is place.image:
        address = place.link + main.bias
        here = memory.find(address)
        if offset is None or (
            here is not None and place.is_in(here) and address - here.start == offset - here.offset
        ):
            return address
    if offset is None:
        return None
    around = place.around
    inode, paths = around.inode, around.paths
    for mapping in memory.mappings:
        if (
            mapping.perms & EXECUTE
            and mapping.offset <= offset < mapping.offset + mapping.size
            and shows_file(mapping, inode, paths)
        ):
            return mapping.start + offset - mapping.offset
    return None


def near_names(name: str, files: Iterable[ProgramFile]) -> list[str]:
    """Up to three functions of files with names like this one.

    Files are left out from the first on with which there would be too many names.
    """
    names: set[str] = set()
    for file in files:
        if len(names) + len(file.symbols) > _NEAR_MAX:
            break
        names.update(symbol.name for symbol in file.symbols.functions())
        names.update(symbol.demangled.partition("(")[0] for symbol in file.symbols.functions())
    bare = name.split("::")[-1]
    import difflib  # for names that are wrong

    close = difflib.get_close_matches(name, names, n=3, cutoff=0.75)
    parts = sorted(n for n in names if len(bare) > 2 and bare in n and n not in close)
    return (close + sorted(parts, key=len))[:3]


def _number(digits: str) -> int:
    """A number as the kernel's kstrtoul with base 0 reads it."""
    if digits[:2] in ("0x", "0X"):
        return int(digits, 16)
    octal = len(digits) > 1 and digits[0] == "0" and digits.strip("01234567") == ""
    return int(digits, 8 if octal else 10)


def _plain_names(symbol: Symbol) -> frozenset[str]:
    """All the ways to write a mangled name; none of one that is not mangled."""
    plain = symbol.demangled
    return frozenset() if plain == symbol.name else spellings(plain)


def _covers(image: ElfImage, link: int) -> bool:
    return any(segment.covers(link) for segment in image.load_segments)
