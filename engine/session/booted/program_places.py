"""Definitions of probes in the programs of a booted system: lines of `uprobe_events`.

What the host knows of a file, because an initial ramdisk brings it, is judged as the kernel judges
it; any other file may come to be while the system runs.
"""

import stat
from collections.abc import Iterator
from typing import Final

from engine.arch.base import Arch
from engine.arch.plan import Mode, Rules, Verdict
from engine.arch.program import FetchArg, Source
from engine.errors import ImageError, ProbeError
from engine.fetch.compile import PLACE, split_offset
from engine.insn.disasm import Disassembler
from engine.session.booted.files import BootFiles
from engine.session.protocol.report import Report
from engine.trace.definition import Definition, Deletion, compatible, matches, parse
from engine.trace.head_syntax import HEAD
from engine.trace.place_syntax import FileOffset, Lookup, path_symbol

_UNKNOWN: Final = (Source.CURRENT, Source.PER_CPU)
_EXECUTABLE: Final = 1
"""PF_X."""
_LONGEST: Final = 15
_BACK_MOST: Final = 1 << 16
"""Bytes of a function in which an instruction's start is looked for."""


def is_of_program(line: str) -> bool:
    """True if a line defines a probe in a file."""
    words = line.lstrip("! \t").split()
    return len(words) > 1 and "/" in words[1] and words[0][:1] in ("p", "r")


class _KnownFiles(Lookup):
    """Answers about files while a definition is read."""

    def __init__(self, files: BootFiles) -> None:
        self._files = files

    def file(self, path: str) -> str:
        mode = self._files.mode(path)
        return "NO_REGULAR_FILE" if mode is not None and not stat.S_ISREG(mode) else ""


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
        self._lookup = _KnownFiles(files)
        self._disassembler = Disassembler(arch)

    def take(self, line: str) -> Definition:
        """Define an event.

        Raises:
            ProbeError: the line is not accepted, with the kernel's own words.
        """
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
        known = self._files.symbols(path)
        if known is None or parts is None:
            raise ProbeError(
                f"{line.strip()}: no initial ramdisk has {path}: PATH:OFFSET names a place in it"
            )
        symbols = {one.address for one in known[1].find_all(parts[0])}
        if len(symbols) != 1:
            why = "is not unique" if symbols else "is not there"
            stripped = not symbols and known[0].section(".symtab") is None
            hint = ": the file is stripped of its symbols" if stripped else ""
            raise ProbeError(f"{line.strip()}: the symbol {parts[0]} {why} in {path}{hint}")
        offset = known[0].file_offset(symbols.pop())
        if offset is None:
            raise ProbeError(f"{line.strip()}: {parts[0]} is no code of {path}")
        words[at] = f"{path}:{offset + parts[1]:#x}{percent}{suffix}"
        return " ".join(words)

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
        known = self._files.symbols(target.path)
        symbol = known[1].at(link) if known is not None else None
        if known is None or symbol is None or not 0 < link - symbol.address < _BACK_MOST:
            return
        size = link - symbol.address + _LONGEST
        code = known[0].read_vaddr(symbol.address, size)
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
