"""Words that tell of files: the program's and its libraries', and those of the source."""

import os
from typing import Final

from engine.errors import CommandError, ImageError
from engine.guest.modules import Module
from engine.image import dies, headers
from engine.image.dies import Die
from engine.image.macros import has_macros
from engine.image.reader import DamagedError
from engine.language.languages import LANGUAGE_NAMES
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.looking import Looking

_AT_PRODUCER: Final = 0x25


class FileWords:
    """Tells of files."""

    def __init__(self, debugger: Debugger, looking: Looking) -> None:
        """Tell of a debugger's guest."""
        self._debugger = debugger
        self._looking = looking

    def info_files(self, rest: str) -> None:
        """The program and its libraries, and where their sections are."""
        debugger = self._debugger
        session, put = debugger.control.session, debugger.put
        main = debugger.frames.seen.modules.main
        if main is None:
            raise CommandError("There is no program.")
        put(f'Symbols from "{main.name}".')
        if debugger.started:
            put("Native process:")
            put(f"\tUsing the running image of child {debugger.threads.text()}.")
            put("\tWhile running this, GDB does not access memory from...")
        put("Local exec file:")
        kind = session.arch.elf_target or main.image.machine_name
        put(f"\t`{main.name}', file type {kind}.")
        put(f"\tEntry point: {main.image.entry + main.bias:#x}")
        self._sections(main, "")
        for module in debugger.files.modules() if debugger.started else ():
            if module is not main:
                self._sections(module, f" in {module.name}")

    def _sections(self, module: Module, where: str) -> None:
        digits = module.image.bits // 4
        for section in module.image.sections:
            if section.flags & headers.SHF_ALLOC and section.size:
                low = section.addr + module.bias
                high = low + section.size
                text = f"0x{low:0{digits}x} - 0x{high:0{digits}x} is {section.name}{where}"
                self._debugger.put(f"\t{text}")

    def info_source(self, rest: str) -> None:
        """The source file that is looked at."""
        debugger = self._debugger
        put, file = debugger.put, self._looking.listing.source_file
        if not file:
            put("No current source file.")
            return
        put(f"Current source file is {debugger.files.written(file)}")
        unit = self._unit(file)
        folder = unit.string(dies.AT_COMP_DIR) if unit is not None else None
        if folder:
            put(f"Compilation directory is {folder}")
        lines = debugger.frames.sources.lines(file)
        if lines is not None:
            put(f"Located in {os.path.abspath(file)}")
            put(f"Contains {len(lines)} line{'' if len(lines) == 1 else 's'}.")
        if unit is None:
            return
        number = unit.number(dies.AT_LANGUAGE) or 0
        put(f"Source language is {LANGUAGE_NAMES.get(number, 'unknown')}.")
        producer = unit.string(_AT_PRODUCER)
        if producer:
            put(f"Producer is {producer}.")
        put(f"Compiled with DWARF {unit.unit.version} debugging format.")
        told = "Includes" if has_macros(unit.unit) else "Does not include"
        put(f"{told} preprocessor macro info.")

    def _unit(self, file: str) -> Die | None:
        """The entry of the unit that has a source file's code; None if it is not found."""
        for module in self._debugger.files.modules():
            found = module.lines.statements_of(file) if module.lines.has_file(file) else {}
            info = self._debugger.files.variables(module).info
            try:
                for address in found.values() if info is not None else ():
                    for unit in info.containing(address) if info is not None else ():
                        return unit.root
            except (DamagedError, ImageError):
                continue
        return None
