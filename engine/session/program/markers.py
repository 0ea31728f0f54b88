"""Static probes (USDT) of a program's files: found, listed, and made into lines of uprobes.

Several places of one marker are one event with several probes, as the kernel takes them, as long
as their arguments have the same types. A place whose arguments differ gets an event of its own,
NAME_1, NAME_2, ..., as perf probe names every further place. (bpftrace has one probe for all.)
"""

import re
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Final

from msgspec import Struct

from engine.arch.base import Arch
from engine.arch.marker_operands import MarkerOperand, operands
from engine.errors import ImageError, ProbeError
from engine.image.headers import PF_W, PF_X
from engine.image.sdt import StaticProbe, static_probes
from engine.session.program.libraries import Program, ProgramFile
from engine.trace.head_syntax import MAX_EVENT
from engine.trace.marker_syntax import GROUP, MarkerLine, MarkerName, marker_line, named_words
from engine.trace.marker_words import UnfetchableError, fetch_words

_MOST: Final = 10_000
"""Places that one definition may mean."""
_UNNAMEABLE: Final = re.compile(r"[^A-Za-z0-9_]", re.ASCII)
_UNWRITABLE: Final = re.compile(r"[\s#]")
_SHOWN: Final = 8


class Marker(Struct, frozen=True):
    """A static probe at one of its places.

    Attributes:
        file: that carries it.
        probe: as its note has it.
        operands: of its arguments.
    """

    file: ProgramFile
    probe: StaticProbe
    operands: tuple[MarkerOperand, ...]

    @property
    def event(self) -> str:
        """The event as perf calls it: sdt_PROVIDER:NAME."""
        return f"{GROUP}{self.probe.provider}:{self.probe.name}"

    @property
    def offset(self) -> int | None:
        """Offset in the file; None where no code is loaded from there."""
        image, address = self.file.image, self.probe.address
        segments = (one for one in image.load_segments if one.flags & PF_X)
        inside = any(one.vaddr <= address < one.vaddr + one.filesz for one in segments)
        return image.file_offset(address) if inside else None

    @property
    def counter(self) -> int | None:
        """Offset of its semaphore in the file, 0 for none; None where it is in no data."""
        image, address = self.file.image, self.probe.semaphore
        if not address:
            return 0
        segments = (one for one in image.load_segments if one.flags & PF_W)
        inside = any(one.vaddr <= address < one.vaddr + one.filesz - 1 for one in segments)
        return image.file_offset(address) if inside else None

    @property
    def problem(self) -> str:
        """Why nothing can be placed there; "" where it can."""
        if self.offset is None:
            return f"its address {self.probe.address:#x} is not in the file's code"
        if self.counter is None:
            return f"its semaphore {self.probe.semaphore:#x} is not in the file's data"
        if not self.counter and self.probe.semaphore:
            return "its semaphore is at the file's beginning"
        return ""

    @property
    def place(self) -> str:
        """The place as `uprobe_events` takes it."""
        counter = f"({self.counter:#x})" if self.counter else ""
        return f"{self.file.path}:{self.offset or 0:#x}{counter}"

    def fetch(self, number: int, arch: Arch) -> tuple[str, str]:
        """Body and type of an argument in a definition, counted from 1.

        Raises:
            UnfetchableError: it cannot be fetched, or there is none.
        """
        if not 1 <= number <= len(self.operands):
            many = f"{len(self.operands)} argument{'s' if len(self.operands) != 1 else ''}"
            raise UnfetchableError(f"it has {many}")
        return fetch_words(self.operands[number - 1], arch, self._symbol)

    def _symbol(self, name: str, absolute: bool) -> int:
        """A symbol's address, or what a fetch argument counts it as in the file."""
        image = self.file.image
        found = {one.address for one in self.file.symbols.find_all(name) if one.kind != "tls"}
        if len(found) != 1:
            why = "is not in the symbol table" if not found else "stands at several addresses"
            raise UnfetchableError(f"{name} {why}")
        if absolute and image.kind != "exec":
            raise UnfetchableError(f"{name} is an address that moves with the file")
        base = 0 if absolute else self.probe.address - (self.offset or 0)
        return found.pop() - base


class MarkerLines(Struct, frozen=True):
    """The lines that a definition stands for.

    Attributes:
        lines: of `uprobe_events`.
        remarks: what they leave out.
    """

    lines: tuple[str, ...]
    remarks: tuple[str, ...] = ()


class Markers:
    """The static probes of one program.

    Attributes:
        for_kernel: what no kernel can fetch is left out of arguments that come by themselves.
    """

    def __init__(self, arch: Arch, program: Program) -> None:
        """Nothing is read before the first question."""
        self.for_kernel = False
        self._arch = arch
        self._program = program

    def all(self) -> Iterator[Marker]:
        """Yield the markers of the program and of the libraries that it begins with."""
        return self.within(self._program.files)

    def named(self, name: MarkerName) -> tuple[Marker, ...]:
        """The markers that a name means.

        Raises:
            ProbeError: there are none.
        """
        files = (self._file(name),) if name.file else self._program.files
        found = tuple(
            one for one in self.within(files) if name.fits(one.probe.provider, one.probe.name)
        )
        if not found:
            raise ProbeError(self._why_none(name, files))
        if len(found) > _MOST:
            raise ProbeError(
                f"{name.text}: {len(found)} markers are more than {_MOST}: name fewer (E2BIG)"
            )
        return found

    def expanded(self, line: str) -> MarkerLines | None:
        """The lines of uprobes that a definition on markers stands for; None for any other line.

        Raises:
            ProbeError: there is no such marker, or nothing can be placed or fetched there.
        """
        read = marker_line(line)
        if read is None:
            return None
        lines: list[str] = []
        remarks: list[str] = []
        names: dict[tuple[str, str, tuple[str, ...]], str] = {}
        taken: set[tuple[str, str]] = set()
        usable = 0
        for marker in self.named(read.marker):
            if marker.problem:
                remarks.append(f"{marker.event} in {marker.file.path}: {marker.problem}")
                continue
            usable += 1
            args, left_out = self._arguments(marker, read)
            remarks += left_out
            group, event = _names(marker, read.head)
            types = tuple(_type_of(word) for word in args)
            key = group, event, types
            if key not in names:
                names[key] = _further(event, group, taken)
                taken.add((group, names[key]))
            lines.append(self._line(marker, read.head, group, names[key], args))
        if not usable:
            raise ProbeError(f"{read.marker.text}: {remarks[0]}")
        return MarkerLines(tuple(dict.fromkeys(lines)), tuple(dict.fromkeys(remarks)))

    def _arguments(self, marker: Marker, read: MarkerLine) -> tuple[tuple[str, ...], list[str]]:
        """A definition's arguments at a marker, and what is said about those that it lacks."""

        def wanted(number: int) -> tuple[str, str]:
            try:
                return marker.fetch(number, self._arch)
            except UnfetchableError as error:
                where = f"{marker.event} in {marker.file.path}"
                raise ProbeError(f"$arg{number}: {where}: {error} (EINVAL)") from None

        if read.args:
            return named_words(read.args, wanted, len(marker.operands)), []
        words: list[str] = []
        remarks = []
        for number, operand in enumerate(marker.operands, 1):
            try:
                body, kind = marker.fetch(number, self._arch)
                if self.for_kernel and operand.index:
                    raise UnfetchableError("no kernel fetches memory behind two registers")
            except UnfetchableError as error:
                text = operand.text if operand.text not in str(error) else ""
                why = f"{text}: {error}" if text else str(error)
                remarks.append(f"{marker.event}: arg{number} is not recorded: {why}")
                continue
            if operand.real:
                remarks.append(
                    f"{marker.event}: arg{number} is a floating number: its bits are recorded"
                )
            words.append(f"arg{number}={body}:{kind}")
        return tuple(words), remarks

    def _line(
        self, marker: Marker, head: str, group: str, event: str, args: tuple[str, ...]
    ) -> str:
        path = marker.file.path
        if _UNWRITABLE.search(path):
            raise ProbeError(
                f"{marker.event}: {path}: a definition cannot name a file whose path has"
                " blanks or '#' (EINVAL)"
            )
        letter = head.partition(":")[0]
        return " ".join((f"{letter}:{group}/{event}", marker.place, *args))

    def within(self, files: Iterable[ProgramFile]) -> Iterator[Marker]:
        """Yield the markers of files."""
        syntax = None if self._arch.markers is None else self._arch.markers()
        word = self._arch.bits // 8
        for file in files:
            for probe in static_probes(file.image):
                found: tuple[MarkerOperand, ...] = ()
                if syntax is not None:
                    found = operands(probe.arguments, syntax, word)
                elif probe.arguments:
                    why = f"operands of {self._arch.name} are not read"
                    found = (MarkerOperand(probe.arguments, problem=why),)
                yield Marker(file, probe, found)

    def _file(self, name: MarkerName) -> ProgramFile:
        try:
            if "/" in name.file:
                found = self._program.at_path(name.file)
            else:
                found = self._program.named(name.file) or self._program.later(name.file)
        except ImageError as error:
            raise ProbeError(f"{name.text}: {error}") from error
        if found is None:
            raise ProbeError(f"{name.text}: the guest sees no file {name.file} (ENOENT)")
        return found

    def _why_none(self, name: MarkerName, files: Iterable[ProgramFile]) -> str:
        files = tuple(files)
        where = files[0].path if name.file else "the guest and the libraries that it begins with"
        known = list(dict.fromkeys(one.event for one in self.within(files)))
        text = f"{name.text}: no such marker in {where} (ENOENT)"
        if known:
            shown = ", ".join(known[:_SHOWN])
            more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
            text += f"; there {'is' if len(known) == 1 else 'are'} {shown}{more}"
        else:
            text += ": there are no notes of static probes (USDT) at all"
        if not name.file:
            text += "; sdt:PATH:PROVIDER:NAME names a file that comes later"
        return text


def _names(marker: Marker, head: str) -> tuple[str, str]:
    """Group and event of a marker's event: the head's, where it has them."""
    _, colon, given = head.partition(":")
    group, slash, event = given.partition("/" if "/" in given else ".")
    if not slash:
        group, event = "", group
    if colon and not given:
        event = ""
    own = _identifier(GROUP + marker.probe.provider), _identifier(marker.probe.name)
    return group or own[0], event or own[1]


def _identifier(text: str) -> str:
    text = _UNNAMEABLE.sub("_", text)[:MAX_EVENT]
    return f"_{text}"[:MAX_EVENT] if text[:1].isdigit() else text


def _further(event: str, group: str, taken: set[tuple[str, str]]) -> str:
    """The name itself, or the first of NAME_1, NAME_2, ... that no other place has."""
    if (group, event) not in taken:
        return event
    for number in count(1):
        ending = f"_{number}"
        name = event[: MAX_EVENT - len(ending)] + ending
        if (group, name) not in taken:
            return name
    raise AssertionError("numbers do not end")


def _type_of(word: str) -> str:
    """An argument's name and type, which all places of an event must share."""
    name = word.partition("=")[0]
    return f"{name}:{word.rpartition(':')[2]}"
