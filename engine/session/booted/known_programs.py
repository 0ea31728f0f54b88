"""Programs and libraries of a booted system whose names, lines and variables are known.

The host knows them by the files of an initial ramdisk.
"""

from functools import lru_cache

from engine.arch.base import Arch
from engine.arch.plan import Mode
from engine.session.booted.files import BootFiles
from engine.session.program.libraries import Program, ProgramFile
from engine.session.program.lookup import ProgramLookup
from engine.session.program.places import Places


class KnownProgram:
    """A program or library of the system, in which names and variables are looked up.

    Attributes:
        program: the file with the libraries that it starts with.
        places: finds places in it.
        lookup: answers about its variables and symbols.
    """

    def __init__(self, arch: Arch, files: BootFiles, file: ProgramFile, mode: Mode) -> None:
        """Read the file at the first question.

        Args:
            arch: of the programs.
            files: of the system.
            file: the program or library.
            mode: strictness of definitions.
        """
        self.program = Program(file, arch, files.file, environment={})
        self.places = Places(arch, self.program)
        self.lookup = ProgramLookup(arch, self.program, self.places, mode)


class KnownPrograms:
    """The programs of one system, by their paths."""

    def __init__(self, arch: Arch, files: BootFiles, mode: Mode = Mode.STRICT) -> None:
        """Set up; see `KnownProgram`."""
        self._arch, self._files, self._mode = arch, files, mode
        self.at = lru_cache(maxsize=64)(self._at)

    def _at(self, path: str) -> KnownProgram | None:
        """The program or library at a path; None where no file is known.

        Raises:
            ImageError: it is no ELF file.
        """
        file = self._files.file(path)
        return None if file is None else KnownProgram(self._arch, self._files, file, self._mode)
