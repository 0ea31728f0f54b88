"""Definitions of perf probe in a program: `perf: [-x FILE] COMMAND` as lines of uprobe_events.

Such a line is none of tracefs', whose heads name an event behind the ':'.
"""

import os
from collections.abc import Iterator
from typing import Final

from engine.arch.base import Arch
from engine.arch.plan import Mode
from engine.errors import ProbeError
from engine.image.debuginfo import DebugInfo
from engine.session.program.libraries import Program, ProgramFile
from engine.trace.perfprobe.fetch_writer import Fetch
from engine.trace.perfprobe.perf_events import CommandEvents, CommandOutcome
from engine.trace.perfprobe.place_search import ProbedFile
from engine.trace.perfprobe.symbol_places import SymbolPlaces

FILE_OPTIONS: Final = ("-x", "--exec")
"""Words of a command in front of the file that the command is about."""


class PerfFile:
    """A file of a program as perf probe sees it.

    Attributes:
        file: the file of the program.
        symbols: its symbols.
        path: as events name it.
    """

    def __init__(self, file: ProgramFile, arch: Arch, path: str = "", root: str = "") -> None:
        """Read nothing yet.

        Args:
            file: the file.
            arch: its architecture.
            path: as events are to name it; "" for the guest's own.
            root: folder in front of the paths of source files.
        """
        self.file = file
        self.symbols = SymbolPlaces(file.image)
        self.path = path or file.path
        self._arch = arch
        self._root = root

    def probed(self) -> ProbedFile | None:
        """The file with its debug information; None where it has none.

        Raises:
            ImageError: a part of it is in a file that is missing.
        """
        image = self.file.image
        info = DebugInfo.of(image, None)
        if info is None:
            return None
        return ProbedFile(image, info, register_names(self._arch), self._root)

    def events(self, *, inlines: bool = True) -> CommandEvents:
        """The maker of the events of commands."""
        return CommandEvents(self.probed(), self.symbols, self.path, inlines=inlines)

    def offset_of(self, fetch: Fetch) -> int | None:
        """The offset that `@+OFFSET` of a uprobe takes for a static variable."""
        link = fetch.link
        if link is None and fetch.symbol:
            link = self.symbols.named(fetch.symbol)
        return None if link is None else link - self.symbols.text_bias


def register_names(arch: Arch) -> dict[int, str]:
    """Tracefs' names of registers, with '%', by their numbers in DWARF."""
    given = {name: word for word, name in arch.probes.fetch_registers.items()}
    return {
        register.dwarf: f"%{given[register.name]}"
        for register in arch.registers
        if register.dwarf is not None and register.name in given
    }


class PerfCommands:
    """Turns commands into lines of uprobe_events, and keeps what was read of the files."""

    def __init__(self, program: Program, arch: Arch, mode: Mode) -> None:
        """Set up."""
        self._program = program
        self._arch = arch
        self._mode = mode
        self._files: dict[str, PerfFile] = {}

    def lines(self, command: str) -> list[str]:
        """The lines that a command stands for.

        Raises:
            ProbeError: it is none, has no place, or names what the kernel could not read.
        """
        file, text = self._file_of(command)
        outcome = file.events().of(text)
        return list(self._placeable(file, outcome, text))

    def _placeable(self, file: PerfFile, outcome: CommandOutcome, text: str) -> Iterator[str]:
        for event, fetch in outcome.wrong:
            if fetch.bit is None and self._mode is Mode.STRICT:
                raise ProbeError(
                    f"{text}: {fetch.name} at {event.place}: perf probe would read "
                    f"{fetch.text()}, but {fetch.wrong}; "
                    "--mode kernel reads what perf would; -e 'p FILE:LINE NAME' finds more"
                )
        for event in outcome.events:
            for fetch in event.arguments:
                if fetch.symbol and file.offset_of(fetch) is None:
                    raise ProbeError(
                        f"{text}: the variable {fetch.symbol} is not defined in {file.path}"
                    )
            yield event.placeable(file.offset_of)

    def _file_of(self, command: str) -> tuple[PerfFile, str]:
        """The file that a command is about, and the command without it."""
        words = command.split(None, 2)
        if not words or words[0] not in FILE_OPTIONS:
            return self._known("", self._program.main), command
        if len(words) < 3:
            raise ProbeError(f"{command}: {words[0]} FILE is followed by a definition")
        name = words[1]
        if "/" in name:
            file = self._program.at_path(name)
        else:
            file = self._program.named(name) or self._program.later(name)
        if file is None:
            raise ProbeError(f"{command}: the guest has no file {name}")
        return self._known(name, file), words[2]

    def _known(self, name: str, file: ProgramFile) -> PerfFile:
        found = self._files.get(name)
        if found is None:
            found = self._files[name] = PerfFile(file, self._arch)
        return found


def host_root(root: str | None) -> str:
    """The folder that a guest's paths of source files begin in: "" for this machine's own."""
    return os.path.abspath(root).rstrip("/") if root is not None else ""
