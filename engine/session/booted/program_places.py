"""Definitions of probes in the programs of a booted system: lines of `uprobe_events`.

What the host knows of a file, because an initial ramdisk brings it, is judged as the kernel judges
it; any other file may come to be while the system runs.
"""

import stat
from collections.abc import Iterator
from typing import Final

from engine.arch.base import Arch
from engine.arch.plan import Mode, Rules, Verdict
from engine.arch.program import Base, FetchArg, Source
from engine.errors import ImageError, ProbeError
from engine.fetch.compile import PLACE, split_offset
from engine.fetch.variables import VariableScope
from engine.insn.disasm import Disassembler
from engine.session.booted.files import BootFiles
from engine.session.booted.known_programs import KnownProgram, KnownPrograms
from engine.session.program.perf_commands import FILE_OPTIONS, PerfCommands
from engine.session.program.places import Place, PlaceError
from engine.session.protocol.report import Report
from engine.trace.definition import Definition, Deletion, compatible, matches, parse
from engine.trace.head_syntax import HEAD
from engine.trace.place_syntax import (
    FileOffset,
    Lookup,
    SymbolPlace,
    Target,
    path_symbol,
    perf_command,
)

_UNKNOWN: Final = (Source.CURRENT, Source.PER_CPU)
_EXECUTABLE: Final = 1
"""PF_X."""
_LONGEST: Final = 15
_BACK_MOST: Final = 1 << 16
"""Bytes of a function in which an instruction's start is looked for."""


def is_of_program(line: str) -> bool:
    """True if a line defines a probe in a file, by itself or as `perf: -x FILE COMMAND`."""
    command = perf_command(line, Mode.STRICT)
    if command is not None:
        return command.split(None, 1)[:1] in ([option] for option in FILE_OPTIONS)
    words = line.lstrip("! \t").split()
    return len(words) > 1 and "/" in words[1] and words[0][:1] in ("p", "r")


class _KnownFiles(Lookup):
    """Answers about files while a definition is read.

    Attributes:
        program: gives the program or library at a path, None where no file is known.
        entries: places that were named as functions: their parameters are known by `$argN`.
    """

    def __init__(self, arch: Arch, files: BootFiles, mode: Mode) -> None:
        self.entries: set[FileOffset] = set()
        self._files, self._mode = files, mode
        self.program = KnownPrograms(arch, files, mode).at

    def file(self, path: str) -> str:
        mode = self._files.mode(path)
        return "NO_REGULAR_FILE" if mode is not None and not stat.S_ISREG(mode) else ""

    def entry(self, place: Target, text: str) -> bool:
        return place in self.entries

    def symbol(self, name: str, target: Target, text: str) -> Base | None:
        found = self._seen(target)
        base = None if found is None else found.lookup.symbol(name, target, text)
        # The address of another file is not known before the program runs.
        return base if base is not None and base.source is Source.IMAGE else None

    def variables(self, target: Target, text: str, is_return: bool) -> VariableScope | None:
        found = self._seen(target)
        return None if found is None else found.lookup.variables(target, text, is_return)

    def _seen(self, target: Target) -> KnownProgram | None:
        """The program of a place, if names may be used there: an extension."""
        if self._mode is Mode.KERNEL or not isinstance(target, FileOffset):
            return None
        return self.program(target.path)


class ProgramDefinitions:
    """The definitions of one trace.

    Attributes:
        defined: those that were accepted, in order.
    """

    def __init__(self, arch: Arch, files: BootFiles, mode: Mode) -> None:
        """None yet.

        Args:
            arch: of the programs.
            files: that are known.
            mode: strictness.
        """
        self.defined: list[Definition] = []
        self._arch, self._files, self._mode = arch, files, mode
        self._lookup = _KnownFiles(arch, files, mode)
        self._disassembler = Disassembler(arch)

    def take(self, line: str) -> tuple[Definition, ...]:
        """Define an event, or those that a command of perf probe stands for.

        Raises:
            ProbeError: the line is not accepted, with the kernel's own words.
        """
        command = perf_command(line, self._mode)
        if command is None:
            return (self._take(line),)
        before = list(self.defined)
        try:
            return tuple([self._take(spelled) for spelled in self._perf_lines(command)])
        except ProbeError:
            self.defined[:] = before
            raise
        except ImageError as error:
            raise ProbeError(f"{line.strip()}: {error}") from error

    def _perf_lines(self, command: str) -> list[str]:
        """The lines that `-x FILE COMMAND` stands for."""
        words = command.split(None, 2)
        if len(words) < 3:
            raise ProbeError(f"{command}: {words[0]} FILE is followed by a definition")
        name, path = words[1], words[1]
        if "/" not in name:
            path = self._files.named(name, self._arch.linux.machine) or name
        known = self._lookup.program(path)
        if known is None:
            raise ProbeError(f"{command}: no initial ramdisk has {name}")
        return PerfCommands(known.program, self._arch, self._mode).lines(words[2])

    def _take(self, line: str) -> Definition:
        try:
            parsed = parse(self._by_offset(line), self._arch, mode=self._mode, lookup=self._lookup)
            assert isinstance(parsed, Definition), "such lines define"
            for one in self.defined:
                compatible(one, parsed)
            self._check(parsed)
        except ImageError as error:
            raise ProbeError(f"{line.strip()}: {error}") from error
        self.defined.append(parsed)
        return parsed

    def delete(self, deletion: Deletion) -> bool:
        """Take events out; False if the line means none."""
        kept = [one for one in self.defined if not matches(deletion, one)]
        found = len(kept) < len(self.defined)
        self.defined[:] = kept
        return found

    def named(self, group: str, event: str) -> Definition | None:
        """The first definition of an event."""
        for one in self.defined:
            if (one.group, one.event) == (group, event):
                return one
        return None

    def remarks(self) -> Iterator[Report]:
        """A remark on each file that the host does not know."""
        paths = dict.fromkeys(_target(one).path for one in self.defined)
        for path in paths:
            if self._files.mode(path) is None:
                yield Report((f"{path}: no initial ramdisk has it: its probes wait for it",))

    # -- places ---------------------------------------------------------------------------

    def _by_offset(self, line: str) -> str:
        """A line whose place is `PATH:SYM`, an extension, with the offset instead."""
        words = line.split()
        at = 2 if words[0] == "!" else PLACE
        found = path_symbol(words[at]) if self._mode is Mode.STRICT else None
        if found is None:
            return line
        path, name = found
        name, percent, suffix = name.partition("%")
        parts = split_offset(name, self._arch.bits)
        known = self._lookup.program(path)
        if known is None or parts is None:
            raise ProbeError(
                f"{line.strip()}: no initial ramdisk has {path}: PATH:OFFSET names a place in it"
            )
        try:
            places = known.places.of_target(SymbolPlace(*parts, path), words[at], Rules.UPROBE)
        except PlaceError as error:
            image = known.program.main.image
            stripped = error.errno == "ENOENT" and image.section(".symtab") is None
            hint = "; the file is stripped of its symbols" if stripped else ""
            raise ProbeError(f"{line.strip()}: {error}{hint}") from error
        place = self._only(line, path, places)
        offset = place.file_offset
        if offset is None:
            raise ProbeError(f"{line.strip()}: {parts[0]} is no code of {path}")
        if place.function is not None and place.link == place.function[0]:
            self._lookup.entries.add(FileOffset(path, offset))
        words[at] = f"{path}:{offset:#x}{percent}{suffix}"
        return " ".join(words)

    @staticmethod
    def _only(line: str, path: str, found: tuple[Place, ...]) -> Place:
        """The one place that a name stands for."""
        if len(found) > 1:
            where = ", ".join(f"{path}:{one.file_offset or 0:#x}" for one in found)
            raise ProbeError(
                f"{line.strip()}: the function is inlined at {len(found)} places: name one of "
                f"{where}"
            )
        return found[0]

    def _check(self, one: Definition) -> None:
        """Refuse what would not be carried out, and what the kernel refuses there."""
        target = _target(one)
        if target.reference:
            raise ProbeError(
                f"{one.command}: a counter of users is a word of the program's memory, and a "
                "booted system's memory is not changed"
            )
        unknown = next((arg for arg in one.args if _asks(arg)), None)
        if unknown is not None:
            raise ProbeError(f"{one.command}: {unknown.text}: this base is not carried out here")
        try:
            image = self._files.image(target.path)
        except ImageError:
            if self._mode is Mode.KERNEL:
                return
            raise
        if image is None:
            return
        at = len(one.place.rpartition(":")[0]) + 1
        if target.offset >= image.size:
            self._refuse(one, "BAD_UPROBE_OFFS", f"the file ends at offset {image.size:#x}", at)
        strict = self._mode is Mode.STRICT and not one.strict_override
        link = image.vaddr_of(target.offset)
        segment = next(
            (each for each in image.load_segments if link is not None and each.covers(link)),
            None,
        )
        if link is None or segment is None or not segment.flags & _EXECUTABLE:
            if strict:
                why = f"offset {target.offset:#x} is in no segment that is executed"
                self._refuse(one, "BAD_UPROBE_OFFS", f"{why} of {target.path}", at)
            return
        raw = image.data(target.offset, min(_LONGEST, image.size - target.offset))
        plan = self._arch.probes.analyze(raw, link, Rules.UPROBE, Mode.KERNEL, b"")
        if plan.verdict is Verdict.REJECTED:
            self._refuse(one, "FAIL_REG_PROBE", f"{plan.reason} ({plan.errno})")
        if strict:
            self._check_boundary(one, link)

    def _check_boundary(self, one: Definition, link: int) -> None:
        target = _target(one)
        file = self._files.file(target.path)
        symbol = file.symbols.at(link) if file is not None else None
        if file is None or symbol is None or not 0 < link - symbol.address < _BACK_MOST:
            return
        size = link - symbol.address + _LONGEST
        code = file.image.read_vaddr(symbol.address, size)
        starts = {insn.address for insn in self._disassembler.decode(symbol.address, code)}
        if link not in starts:
            place = f"{symbol.name}+{link - symbol.address:#x}"
            why = f"{place} is in the middle of an instruction (EILSEQ)"
            self._refuse(one, "BAD_INSN_BNDRY", why)

    @staticmethod
    def _refuse(one: Definition, code: str, why: str, offset: int = 0) -> None:
        error = one.error(code, PLACE, offset)
        error.explain(why)
        raise error


def clashing(one: Definition) -> ProbeError:
    """The error of an event whose name a probe in the kernel has."""
    return one.error("EVENT_EXIST", HEAD)


def _target(one: Definition) -> FileOffset:
    assert isinstance(one.target, FileOffset), "such lines name a file"
    return one.target


def _asks(arg: FetchArg) -> bool:
    base = arg.base
    inner = base.fetch is not None and base.fetch[0].source in _UNKNOWN
    return base.source in _UNKNOWN or inner
