"""Objects of a program that `uaddr()` names: where they are, and how large."""

from engine.image.symtab import Symbol
from engine.session.guest.session import Session
from engine.session.program.libraries import Program, ProgramFile
from engine.session.program.places import shows_file
from engine.session.tracing.script.places import PointError, ScriptPlaces


class ScriptSymbols:
    """Finds objects by name: in the file that a probe is of, else in the program's files."""

    def __init__(self, session: Session, places: ScriptPlaces, program: Program) -> None:
        """Take the guest.

        Args:
            session: the guest.
            places: finds files by what scripts call them.
            program: its files.
        """
        self._session = session
        self._places = places
        self._program = program

    def find(self, name: str, target: str) -> tuple[ProgramFile, Symbol] | None:
        """A symbol and its file; None if there is none.

        Args:
            name: of the symbol.
            target: the file of the probe that asks, as the script has it.
        """
        try:
            files = self._places.files(target) if target else ()
        except PointError:
            files = ()
        for file in (*files, *self._program.searched):
            found = [each for each in file.symbols.find_all(name) if each.kind != "tls"]
            if found:
                return file, found[0]
        return None

    def address(self, name: str, target: str) -> int:
        """The address of a symbol in the process that runs; 0 where its file is not mapped."""
        found = self.find(name, target)
        if found is None:
            return 0
        file, symbol = found
        space = self._session.seen
        main = space.modules.main
        if main is not None and main.image is file.image:
            return symbol.address + main.bias
        for mapping in space.memory.mappings:
            if shows_file(mapping, file.inode, file.paths):
                first = file.image.vaddr_of(mapping.offset)
                return 0 if first is None else mapping.start + symbol.address - first
        return 0
