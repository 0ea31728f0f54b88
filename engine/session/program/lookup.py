"""Answers of a program while one of its definitions is read: files, places, variables there."""

from collections.abc import Iterator
from contextlib import contextmanager

from engine.arch.base import Arch
from engine.arch.plan import Mode
from engine.arch.program import Base, Source
from engine.fetch.variables import VariableError, VariableScope
from engine.session.program.libraries import Program
from engine.session.program.places import Place, PlaceError, Places
from engine.trace.definition import Definition, parse
from engine.trace.place_syntax import (
    Address,
    FileOffset,
    KprobeTarget,
    Lookup,
    SymbolPlace,
    Target,
)
from engine.trace.variables import ScopeVariables, Spot


class ProgramLookup(Lookup):
    """Answers from a program's files."""

    def __init__(
        self, arch: Arch, program: Program, places: Places, mode: Mode, place: Place | None = None
    ) -> None:
        """Nothing is read before the first question.

        Args:
            arch: of the program.
            program: its files.
            places: finds places in it.
            mode: in kernel mode uprobes know no variables, as in the kernel.
            place: the one to ask at, for definitions that mean several; None = the first.
        """
        self._arch = arch
        self._program = program
        self._places = places
        self._mode = mode
        self._place = place
        self._why = ""
        self._settled: dict[str, str] | None = None
        self._resolved: tuple[Target, str, tuple[Place, ...]] | None = None

    @contextmanager
    def settled(self) -> Iterator[None]:
        """No file of the guest comes or goes meanwhile: each is looked for once."""
        self._settled = {}
        try:
            yield
        finally:
            self._settled = None

    def file(self, path: str) -> str:
        """Id of the error for a file of a uprobe, "" for none."""
        self._resolved = None  # another definition is read: files may have come and gone
        known = self._settled.get(path) if self._settled is not None else None
        found = self._program.problem(path) if known is None else known
        if self._settled is not None:
            self._settled[path] = found
        self._why = {
            "FILE_NOT_FOUND": f"the guest sees no file {path}",
            "NO_REGULAR_FILE": f"{path} is no regular file",
        }.get(found, "")
        return found

    def place(self, place: KprobeTarget, text: str, is_return: bool) -> str:
        """Id of the error for a symbol's place, "" for none.

        Numbers, and what a return probe asks for, are judged later.
        """
        if isinstance(place, Address) or self._place is not None:
            return ""
        self._resolved = None  # see `file`
        try:
            self._places_of(place, text)
        except PlaceError as error:
            self._why = str(error)
            return error.code
        return ""

    def why(self) -> str:
        """The cause of the last error for a file or a place, in words."""
        return self._why

    def entry(self, place: Target, text: str) -> bool:
        """True if a place is a function's entry (a landing pad may be in front of it)."""
        if not isinstance(place, SymbolPlace):
            return False
        if not place.offset:
            return True
        try:
            return all(map(self._at_entry, self._places_of(place, text)))
        except PlaceError:
            return False

    def _places_of(self, target: Target, text: str) -> tuple[Place, ...]:
        if self._resolved is None or self._resolved[:2] != (target, text):
            self._resolved = target, text, self._places.of_target(target, text)
        return self._resolved[2]

    def places_read(self, target: Target, text: str) -> tuple[Place, ...]:
        """The places of the definition that was just read: they are looked up once.

        Args:
            target: its place as read.
            text: its place as written, for messages.

        Raises:
            PlaceError: as `Places.of_target`.
            ImageError: as `Places.of_target`.
        """
        found = self._places_of(target, text)
        self._resolved = None
        return found

    def _at_entry(self, place: Place) -> bool:
        if place.function is None:
            return False
        start = place.function[0]
        code = place.image.read_vaddr(start, self._arch.insn_max)
        return place.link in (start, start + self._arch.probes.landing_pad(code))

    def symbol(self, name: str, target: Target, text: str) -> Base | None:
        """The base of a symbol; relative to the probe if that is in the same file."""
        found = self._places.symbol(name)
        if found is None:
            return None
        file, link = found
        try:
            place = self._place or self._places_of(target, text)[0]
        except PlaceError:
            return None
        if place.image is file.image:
            base = place.link - (place.file_offset or 0)
            return Base(Source.IMAGE, value=link - base)
        return Base(Source.SYMBOL, text=name.encode(errors="surrogateescape"))

    def variables(self, target: Target, text: str, is_return: bool) -> VariableScope | None:
        """The variables that are known at a place; None where the kernel knows none."""
        if self._mode is Mode.KERNEL and isinstance(target, FileOffset):
            return None

        def spot() -> Spot:
            try:
                place = self._place or self._places.of_target(target, text)[0]
            except PlaceError as error:
                raise VariableError(error.code, 0, str(error), at_place=True) from error
            return self._spot(place, is_return)

        return ScopeVariables(self._arch, spot, floats=self._mode is Mode.STRICT)

    def at(self, place: Place) -> "ProgramLookup":
        """The same, asked at one of several places."""
        return ProgramLookup(self._arch, self._program, self._places, self._mode, place)

    def scope_at(self, place: Place) -> ScopeVariables:
        """The variables at a place: `listing` has their names, types and locations."""
        floats = self._mode is Mode.STRICT
        return ScopeVariables(self._arch, lambda: self._spot(place, False), floats=floats)

    def definition_at(self, definition: Definition, place: Place) -> Definition:
        """A definition that means several places, with the arguments that hold at one of them.

        Raises:
            ProbeSyntaxError: a variable cannot be fetched there.
        """
        bang = "!" if definition.strict_override else ""
        found = parse(
            bang + definition.command, self._arch, mode=self._mode, lookup=self.at(place)
        )
        assert isinstance(found, Definition), "it was read as one before"
        return found

    def _spot(self, place: Place, is_return: bool) -> Spot:
        file = next((f for f in self._program.files if f.image is place.image), None)
        file = file or self._program.at_path(place.path)
        if file is None:
            raise VariableError("NOSUP_BTFARG", 0, f"{place.path} cannot be read")
        start = place.function[0] if place.function else place.link
        image = place.image
        symbols = file.symbols

        def address(name: str) -> int | None:
            found = [s for s in symbols.find_all(name) if s.kind not in ("tls", "ifunc")]
            return found[0].address if found else None

        return Spot(
            variables=file.variables,
            link=place.link,
            image_base=place.link - (place.file_offset or 0),
            is_return=is_return,
            symbol=place.symbol or "",
            pad=self._arch.probes.landing_pad(image.read_vaddr(start, self._arch.insn_max)),
            address=address,
            prologue_end=file.lines.prologue_end,
        )
