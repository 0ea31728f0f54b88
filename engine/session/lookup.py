"""What a program can tell while one of its definitions is read: variables at the place."""

from engine.arch.base import Arch
from engine.arch.plan import Mode
from engine.fetch.variables import VariableError, VariableScope
from engine.session.libraries import Program
from engine.session.places import Place, PlaceError, Places
from engine.trace.definition import Definition, parse
from engine.trace.place import FileOffset, Lookup, Target
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

        return ScopeVariables(self._arch, spot)

    def at(self, place: Place) -> "ProgramLookup":
        """The same, asked at one of several places."""
        return ProgramLookup(self._arch, self._program, self._places, self._mode, place)

    def scope_at(self, place: Place) -> ScopeVariables:
        """The variables at a place: `listing` has their names, types and locations."""
        return ScopeVariables(self._arch, lambda: self._spot(place, False))

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
