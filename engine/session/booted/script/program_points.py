"""The places of a script's probes in programs of a booted system.

Names are those of files that an initial ramdisk brings: `uprobe:/bin/busybox:main`, and for short
`uprobe:busybox:main`, `uprobe:libc:malloc`.
"""

import fnmatch
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.base import Arch
from engine.arch.marker_operands import MarkerOperand, operands
from engine.arch.plan import Rules
from engine.errors import ImageError, ProbeError
from engine.fetch.variables import VariableError
from engine.image.datatypes import DataType
from engine.image.elf import ElfImage
from engine.image.expressions import VariableLocation, Where
from engine.image.mangling import spellings
from engine.image.sdt import StaticProbe, static_probes
from engine.image.symbols import SymbolTable
from engine.image.symtab import Symbol
from engine.session.booted.files import BootFiles
from engine.session.booted.known_programs import KnownPrograms
from engine.session.program.places import PlaceError
from engine.trace.bpftrace.attach_points import full_name, has_glob
from engine.trace.bpftrace.tree import AttachPoint
from engine.trace.marker_syntax import MarkerName
from engine.trace.place_syntax import SourceLine
from engine.trace.variables import ScopeVariables

USERS: Final = frozenset({"uprobe", "uretprobe"})
MARKERS: Final = "usdt"
PROGRAMS: Final = USERS | {MARKERS}
"""Providers whose probes stand in programs."""
ARGUMENT_REGISTERS: Final = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
"""The registers in which functions of x86-64 take `arg0` to `arg5`; others are on the stack."""
_WORD: Final = 8


class PointRefusedError(ProbeError):
    """A place of a script that makes no sense for this system; its text says why."""


class ProgramSite(Struct, frozen=True):
    """A place in a file.

    Attributes:
        path: of the file.
        offset: in it.
        link: the link address of the place.
        operands: arguments of a marker.
    """

    path: str
    offset: int
    link: int
    operands: tuple[MarkerOperand, ...] = ()


class ProgramPoints:
    """Finds the places of one system."""

    def __init__(self, arch: Arch, files: BootFiles) -> None:
        """Set up; files are read when somebody asks.

        Args:
            arch: of the programs.
            files: of the system, as far as they are known.
        """
        self._arch, self.files = arch, files
        self._programs = KnownPrograms(arch, files)

    # -- places with globs ----------------------------------------------------------------

    def expanded(self, point: AttachPoint) -> list[AttachPoint]:
        """The places that one with globs means; empty where there is none.

        Raises:
            PointRefusedError: the place makes no sense.
        """
        path = self._path(point)
        if point.line:
            return [point] if self._links_of_line(point, path) else []
        image, symbols = self._known(point, path)
        if point.provider == MARKERS:
            return [
                _at(point, each.name, each.provider)
                for each in dict.fromkeys(
                    _NamedMarker(one.provider, one.name) for one in self._markers(point, image)
                )
            ]
        function = point.function
        if point.language:
            pairs = self._cpp_functions(symbols, function)
            return [_at(point, name, shown=plain) for name, plain in pairs]
        if has_glob(function):
            wanted = re.compile(fnmatch.translate(function)).match
            names = (one.name for one in symbols.functions() if one.kind != "ifunc")
            return [_at(point, name) for name in dict.fromkeys(names) if wanted(name)]
        if not function:
            return [point]
        found = symbols.find(function)
        if found is None:
            return []
        if point.offset and point.offset >= found.size:
            size = f"('{function}' size is {found.size})"
            raise PointRefusedError(f"Offset outside the function bounds {size}")
        return [point]

    def _path(self, point: AttachPoint) -> str:
        target = point.target
        if not target:
            raise PointRefusedError(f"{point.provider}:PATH:FUNC: which program is not said")
        if has_glob(target):
            raise PointRefusedError(f"{target}: name one file of the booted system")
        if target.startswith("/"):
            return target
        try:
            found = self.files.named(target, self._arch.linux.machine)
        except ImageError as error:
            raise PointRefusedError(str(error)) from error
        if found is None:
            raise PointRefusedError(
                f"{target}: no initial ramdisk has a program or a library of that name"
            )
        return found

    def _known(self, point: AttachPoint, path: str) -> tuple[ElfImage, SymbolTable]:
        try:
            file = self.files.file(path)
        except ImageError as error:
            raise PointRefusedError(str(error)) from error
        if file is None:
            raise PointRefusedError(
                f"{point.provider} target file '{path}' is in no initial ramdisk (--initrd, "
                "--init): what a disk has is not read from outside; kprobe-tui trace --boot -e "
                f"'p {path}:OFFSET' takes any file"
            )
        return file.image, file.symbols

    @staticmethod
    def _cpp_functions(symbols: SymbolTable, pattern: str) -> Iterator[tuple[str, str]]:
        """(name, name in the source) of C++ functions that match, overloads included."""
        wanted = re.compile(fnmatch.translate(pattern)).match
        seen: set[int] = set()
        for symbol in symbols.functions():
            plain = symbol.demangled
            forms = (plain, *spellings(plain)) if plain != symbol.name else (plain,)
            fits = any(form == pattern or wanted(form) for form in forms)
            if fits and symbol.address not in seen:
                seen.add(symbol.address)
                yield symbol.name, plain

    @staticmethod
    def _markers(point: AttachPoint, image: ElfImage) -> Iterator[StaticProbe]:
        wanted = MarkerName(point.function, point.namespace or "*", point.function)
        for one in static_probes(image):
            if wanted.fits(one.provider, one.name):
                yield one

    # -- places without globs -------------------------------------------------------------

    def sites(self, point: AttachPoint) -> tuple[ProgramSite, ...]:
        """The sites of a place without globs.

        Raises:
            ProbeError: it is nowhere, or no probe may stand there.
        """
        path = self._path(point)
        image, symbols = self._known(point, path)
        if point.provider == MARKERS:
            return tuple(self._at_marker(path, image, one) for one in self._markers(point, image))
        if point.line:
            links = self._links_of_line(point, path)
        elif point.address is not None:
            if symbols.at(point.address) is None:
                text = f"Could not resolve address: {point.target}:{point.address:#x}"
                raise PointRefusedError(text)
            links = [point.address]
        else:
            found = {one.address for one in symbols.find_all(point.function)}
            links = [address + point.offset for address in sorted(found)]
        return tuple(_site(path, image, link) for link in links)

    def _at_marker(self, path: str, image: ElfImage, one: StaticProbe) -> ProgramSite:
        if one.semaphore:
            raise PointRefusedError(
                f"{one.provider}:{one.name} has a semaphore, a counter in the program's memory, "
                "and a booted system's memory is not changed: a uprobe on its address is hit"
            )
        syntax = self._arch.markers
        word = self._arch.bits // 8
        found = () if syntax is None else operands(one.arguments, syntax(), word)
        return replace(_site(path, image, one.address), operands=found)

    def operands(self, point: AttachPoint) -> tuple[MarkerOperand, ...] | None:
        """The arguments of a marker; None where it is not known."""
        try:
            found = self.sites(point)
        except ProbeError:
            return None
        return found[0].operands if found else None

    def _links_of_line(self, point: AttachPoint, path: str) -> list[int]:
        """Link addresses of the code of a line of source.

        Raises:
            PointRefusedError: the file is not known, or has no code there.
        """
        self._known(point, path)
        program = self._programs.at(path)
        assert program is not None, "its file is known"
        line = SourceLine(point.file, point.line)
        try:
            found = program.places.of_target(line, f"{point.file}:{point.line}", Rules.UPROBE)
        except (PlaceError, ImageError) as error:
            raise PointRefusedError(f"{path}: {error}") from error
        return [one.link for one in found if one.image is program.program.main.image]

    # -- types ----------------------------------------------------------------------------

    def arguments(self, point: AttachPoint) -> dict[str, tuple[DataType, int | None]] | None:
        """The parameters of a function by name; None where nothing tells them.

        Returns:
            Of each its type, and the number of the word that holds the value at the function's
            entry as `arg0` has them; None where no word of the convention does.
        """
        scope = self._scope(point)
        try:
            listed = None if scope is None else scope.entry_places()
        except VariableError:
            return None
        if listed is None:
            return None
        return {one.name: (one.type, self._number(one.type, at)) for one, at in listed}

    def result(self, point: AttachPoint) -> DataType | None:
        """The type of what a function returns; None where nothing tells that."""
        scope = self._scope(point)
        try:
            return None if scope is None else scope.result()[0]
        except VariableError:
            return None

    def _scope(self, point: AttachPoint) -> ScopeVariables | None:
        """The variables at a place without globs; None where none are known."""
        if has_glob(point.target + point.function) or point.provider not in USERS:
            return None
        try:
            site = next(iter(self.sites(point)), None)
            program = None if site is None else self._programs.at(site.path)
            if site is None or program is None:
                return None
            file = program.program.main
            place = program.places.at(file, site.link, Rules.UPROBE, point.text)
        except (ProbeError, ImageError):
            return None
        return program.lookup.scope_at(place)

    def _number(self, kind: DataType, where: VariableLocation) -> int | None:
        if kind.size is None or kind.size > _WORD:
            return None
        if where.where is Where.REGISTER:
            return self._numbers.get(where.register)
        term = where.term
        is_above = where.where is Where.MEMORY and term.register == self._sp and not term.derefs
        if not is_above or term.offset < _WORD or term.offset % _WORD:
            return None
        return len(self._numbers) + term.offset // _WORD - 1

    @cached_property
    def _numbers(self) -> dict[int, int]:
        """Numbers of arguments by the register that holds each, as DWARF counts registers."""
        numbers = {one.name: one.dwarf for one in self._arch.registers if one.dwarf is not None}
        return {numbers[name]: at for at, name in enumerate(ARGUMENT_REGISTERS)}

    @cached_property
    def _sp(self) -> int | None:
        sp = self._arch.roles.sp
        return next((one.dwarf for one in self._arch.registers if one.name == sp), None)

    # -- symbols --------------------------------------------------------------------------

    def symbol(self, target: str, name: str) -> tuple[str, ElfImage, Symbol] | None:
        """A symbol of the file that a probe is of; None where there is none."""
        path = (
            target
            if target.startswith("/")
            else self.files.named(target, self._arch.linux.machine) or ""
        )
        try:
            file = self.files.file(path)
        except ImageError:
            return None
        found = file.symbols.find(name) if file is not None else None
        return None if file is None or found is None else (path, file.image, found)


class _NamedMarker(Struct, frozen=True):
    """Provider and name of a marker, whatever places it has."""

    provider: str
    name: str


def _site(path: str, image: ElfImage, link: int) -> ProgramSite:
    offset = image.file_offset(link)
    if offset is None:
        raise PointRefusedError(f"{link:#x} is in no segment of {path}")
    return ProgramSite(path, offset, link)


def _at(point: AttachPoint, function: str, namespace: str = "", shown: str = "") -> AttachPoint:
    """A place with its globs replaced; `shown` is the function's name in the source."""
    found = replace(point, function=shown or function, namespace=namespace)
    return replace(found, text=full_name(found), function=function)
