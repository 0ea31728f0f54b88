"""The places that probes of a script name, in the files that the guest sees.

As bpftrace takes them (docs/language.md of its sources, "Probes"): `uprobe:BINARY:FUNC+OFF`,
`usdt:BINARY:PROVIDER:NAME`, `tracepoint:GROUP:NAME`, each with globs. A BINARY without a slash is
a library by its short name (`libc`), or a program that is found as the shell finds one.
"""

import fnmatch
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from msgspec import Struct

from engine.arch.plan import Rules
from engine.errors import ImageError, ProbeError
from engine.image.mangling import spellings
from engine.session.guest.session import Session
from engine.session.program.libraries import Program, ProgramFile
from engine.session.program.markers import Marker, Markers
from engine.session.program.places import Place, Places, near_names
from engine.trace import sched, syscalls
from engine.trace.bpftrace.tree import AttachPoint
from engine.trace.marker_syntax import MarkerName
from engine.trace.place_syntax import SourceLine, SymbolPlace

USERS: Final = frozenset({"uprobe", "uretprobe"})
KERNELS: Final = frozenset({"kprobe", "kretprobe", "fentry", "fexit"})
CODE: Final = USERS | KERNELS
"""Providers whose probes stand in code."""
RETURNS: Final = frozenset({"uretprobe", "kretprobe", "fexit"})
TIMERS: Final = frozenset({"interval", "profile"})
WATCHES: Final = frozenset({"watchpoint", "asyncwatchpoint"})
RAW: Final = "raw_syscalls"
RAW_EVENTS: Final = ("sys_enter", "sys_exit")
SIGNALS: Final = ("SIGUSR1",)
UNITS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3}
"""Nanoseconds of the units of timers."""
NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]+|\d+", re.ASCII)
_OFFSET: Final = re.compile(r"(.+)\+(0[xX][0-9a-fA-F]+|\d+)", re.DOTALL | re.ASCII)
_SOURCE: Final = re.compile(r"([^@]+?):?@:?([^:]+):(\d+)(?::\d+)?", re.DOTALL | re.ASCII)
_PLAIN: Final = re.compile(r"[\w.$*?\[\]!+@-]*", re.ASCII)
_FOLDERS: Final = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_CPP: Final = "cpp"
_WATCH_SIZES: Final = (1, 2, 4, 8)


class ScriptPlace(Struct, frozen=True):
    """One place where a probe of a script runs.

    Attributes:
        point: the probe's place as it is written, with globs expanded.
        place: in code; None where it is none.
        marker: the marker there; None for none.
    """

    point: AttachPoint
    place: Place | None = None
    marker: Marker | None = None


class PointError(ProbeError):
    """A place of a script that makes no sense for this guest; its text says why."""


def is_pattern(text: str) -> bool:
    """True if a part of a place has globs."""
    return any(sign in text for sign in "*?[")


def number(text: str) -> int:
    """A number as places have them."""
    return int(text, 0) if text[:2] in ("0x", "0X") else int(text)


def period(point: AttachPoint) -> int:
    """Nanoseconds between two runs of a timer.

    Raises:
        PointError: it names no time.
    """
    unit, text = point.parts if len(point.parts) == 2 else ("ns", "".join(point.parts))
    if not NUMBER.fullmatch(text):
        raise PointError(f"Invalid rate of {point.provider} probe: {text}")
    if unit == "hz":
        return max(10**9 // max(number(text), 1), 1)
    if unit == "ns":
        return number(text)
    if unit not in UNITS:
        raise PointError(f"{unit} is not an accepted unit of time")
    return number(text) * UNITS[unit]


class ScriptPlaces:
    """Finds the places of a guest."""

    def __init__(self, session: Session, places: Places, program: Program) -> None:
        """Nothing is read before the first question.

        Args:
            session: the guest.
            places: finds code.
            program: its files.
        """
        self._session = session
        self._arch = session.arch
        self._places = places
        self._program = program
        self._markers = Markers(session.arch, program)
        self._named = lru_cache(maxsize=256)(self._files)

    # -- files ----------------------------------------------------------------------------

    def files(self, target: str) -> tuple[ProgramFile, ...]:
        """The files that a BINARY means: several for a pattern, none where nothing is.

        Raises:
            PointError: a file that is no program.
        """
        return self._named(target)

    def _files(self, target: str) -> tuple[ProgramFile, ...]:
        program = self._program
        if is_pattern(target):
            wanted = re.compile(fnmatch.translate(target)).match
            return tuple(
                file
                for file in program.files
                if target == "*" or any(wanted(path) for path in (file.path, *sorted(file.paths)))
            )
        try:
            if "/" in target:
                found = program.at_path(target)
            else:
                found = program.named(target) or self._in_folders(target)
                found = found or program.later(target)
        except ImageError as error:
            raise PointError(f"{target}: {error}") from error
        return () if found is None else (found,)

    def _in_folders(self, name: str) -> ProgramFile | None:
        for folder in _FOLDERS:
            found = self._program.at_path(f"{folder}/{name}")
            if found is not None:
                return found
        return None

    # -- places with globs ----------------------------------------------------------------

    def expanded(self, point: AttachPoint) -> list[AttachPoint]:
        """The places that one with globs means; those of others in full.

        Empty where there is none.

        Raises:
            PointError: the place makes no sense.
        """
        provider = point.provider
        if provider in USERS:
            return self._in_files(point)
        if provider in KERNELS:
            return [
                _point(point, *point.parts[:-1], name)
                for name in self._kernel_functions(point.parts[-1])
            ]
        if provider == "usdt":
            return self._of_markers(point)
        if provider in ("tracepoint", "rawtracepoint"):
            return [_point(point, *each) for each in self.tracepoints(*_group(point))]
        return [point]

    def _in_files(self, point: AttachPoint) -> list[AttachPoint]:
        target, language, function = _user_parts(point)
        files = self.files(target)
        if not files and not is_pattern(target):
            raise PointError(
                f"{point.provider} target file '{target}' does not exist or is not executable"
            )
        source = _SOURCE.fullmatch(":".join(point.parts))
        if source is not None or NUMBER.fullmatch(function):
            return [_point(point, files[0].path, *point.parts[1:])]
        found: list[AttachPoint] = []
        for file in files:
            if language:
                pairs = self._cpp_functions(file, function)
                found += [_cpp_point(point, file.path, name, plain) for name, plain in pairs]
            elif is_pattern(function):
                names = self._functions(file, function)
                found += [_point(point, file.path, name) for name in names]
            else:
                name, _ = split_offset(function)
                if file.symbols.find(name) is not None or self._is_inlined(file, name):
                    found.append(_point(point, file.path, function))
        return found

    def _is_inlined(self, file: ProgramFile, name: str) -> bool:
        from engine.session.program.functions import inlined_sites  # few functions are

        return inlined_sites(name, (file,)) is not None

    @staticmethod
    def _functions(file: ProgramFile, pattern: str) -> Iterator[str]:
        """The names of functions that match, each address once."""
        wanted = re.compile(fnmatch.translate(pattern)).match
        seen: set[int] = set()
        for symbol in file.symbols.functions():
            if symbol.address not in seen and wanted(symbol.name):
                seen.add(symbol.address)
                yield symbol.name

    @staticmethod
    def _cpp_functions(file: ProgramFile, pattern: str) -> Iterator[tuple[str, str]]:
        """(name, name in the source) of C++ functions that match, overloads included."""
        wanted = re.compile(fnmatch.translate(pattern)).match
        seen: set[int] = set()
        for symbol in file.symbols.functions():
            plain = symbol.demangled
            forms: Iterable[str] = (plain, *spellings(plain)) if plain != symbol.name else (plain,)
            if symbol.address not in seen and any(
                form == pattern or wanted(form) for form in forms
            ):
                seen.add(symbol.address)
                yield symbol.name, plain

    def _kernel_functions(self, pattern: str) -> Iterator[str]:
        if is_pattern(pattern):
            yield from self._functions(self._program.main, pattern)
            return
        name, _ = split_offset(pattern)
        if NUMBER.fullmatch(name) or self._program.main.symbols.find(name) is not None:
            yield pattern

    def _of_markers(self, point: AttachPoint) -> list[AttachPoint]:
        target, provider, name = marker_parts(point)
        if not name:
            raise PointError("usdt probe must have a target function or wildcard")
        files = self.files(target)
        if not files and not is_pattern(target):
            raise PointError(f"usdt target file '{target}' does not exist or is not executable")
        found: dict[tuple[str, str, str], None] = {}
        for marker in self._in(files, provider, name):
            found[marker.file.path, marker.probe.provider, marker.probe.name] = None
        return [_point(point, *key) for key in found]

    def _in(self, files: Iterable[ProgramFile], provider: str, name: str) -> Iterator[Marker]:
        wanted = MarkerName(name, provider, name)
        for marker in self._markers.within(files):
            if wanted.fits(marker.probe.provider, marker.probe.name):
                yield marker

    def tracepoints(self, group: str = "*", name: str = "*") -> Iterator[tuple[str, str]]:
        """(group, name) of the tracepoints that match, in the order of the groups."""
        if fnmatch.fnmatchcase(RAW, group):
            yield from ((RAW, each) for each in RAW_EVENTS if fnmatch.fnmatchcase(each, name))
        if fnmatch.fnmatchcase(sched.GROUP, group):
            matching = (one for one in sched.BY_NAME if fnmatch.fnmatchcase(one, name))
            yield from ((sched.GROUP, one) for one in matching)
        if fnmatch.fnmatchcase(syscalls.GROUP, group):
            linux = self._arch.linux
            for call in sorted(set(linux.syscalls.values())):
                if syscalls.arguments(call, linux.clone_backwards) is None:
                    continue
                for prefix in (syscalls.ENTER, syscalls.EXIT):
                    full = prefix + syscalls.event_name(call)
                    if fnmatch.fnmatchcase(full, name):
                        yield syscalls.GROUP, full

    # -- places without globs -------------------------------------------------------------

    def resolved(self, point: AttachPoint) -> tuple[ScriptPlace, ...]:
        """Where in the guest a place is: several places for a line, a marker, an inlined function.

        Raises:
            ProbeError: it is nowhere.
        """
        if point.provider in USERS:
            return tuple(ScriptPlace(point, place) for place in self._in_code(point))
        if point.provider in KERNELS:
            name, offset = split_offset(point.parts[-1])
            if NUMBER.fullmatch(name):
                places = self._places.resolve(name)
            else:
                target = SymbolPlace(name, offset)
                places = self._places.of_target(target, point.parts[-1], Rules.KPROBE)
            return tuple(ScriptPlace(point, place) for place in places)
        if point.provider == "usdt":
            return tuple(self._at_markers(point))
        return (ScriptPlace(point),)

    def _in_code(self, point: AttachPoint) -> tuple[Place, ...]:
        target, language, function = _user_parts(point)
        files = self.files(target)
        if not files:
            raise PointError(
                f"{point.provider} target file '{target}' does not exist or is not executable"
            )
        file, text = files[0], ":".join(point.parts)
        source = _SOURCE.fullmatch(text)
        if source is not None:
            line = SourceLine(source[2], int(source[3]))
            found = self._places.of_target(line, f"{source[2]}:{source[3]}", Rules.UPROBE)
            return tuple(place for place in found if place.image is file.image)
        if NUMBER.fullmatch(function):
            return (self._places.at(file, number(function), Rules.UPROBE, text),)
        del language
        name, offset = split_offset(function)
        if offset and point.provider in RETURNS:
            raise PointError("uretprobes can not be attached to a function offset")
        module = file.path if "/" in file.path else ""
        return self._places.of_target(SymbolPlace(name, offset, module), text, Rules.UPROBE)

    def _at_markers(self, point: AttachPoint) -> Iterator[ScriptPlace]:
        target, provider, name = marker_parts(point)
        for marker in self._in(self.files(target), provider, name):
            if marker.problem:
                raise PointError(f"{marker.event} in {marker.file.path}: {marker.problem}")
            where = self._places.at(marker.file, marker.probe.address, Rules.UPROBE, point.text)
            yield ScriptPlace(point, where, marker)

    def markers(self, point: AttachPoint) -> list[Marker]:
        """The sites of a marker."""
        target, provider, name = marker_parts(point)
        return list(self._in(self.files(target), provider, name))

    # -- what there is --------------------------------------------------------------------

    def listed(self, point: AttachPoint) -> list[AttachPoint]:
        """The places that a pattern of a listing means; none where it makes no sense."""
        try:
            return self.expanded(point)
        except ProbeError:
            return []

    def similar(self, point: AttachPoint) -> list[str]:
        """Up to three functions with names like the one that is not there."""
        if point.provider not in USERS or is_pattern(point.parts[0]):
            return []
        target, _, function = _user_parts(point)
        name, _ = split_offset(function)
        return near_names(name, self.files(target)) if not is_pattern(name) else []


def split_offset(text: str) -> tuple[str, int]:
    """A function's name and the offset behind it: `f+0x10`."""
    match = _OFFSET.fullmatch(text)
    return (text, 0) if match is None else (match[1], number(match[2]))


def marker_parts(point: AttachPoint) -> tuple[str, str, str]:
    """File, provider and name of a marker."""
    parts = point.parts
    if len(parts) == 2:
        return parts[0], "*", parts[1]
    target, provider, name = (*parts, "", "", "")[:3]
    return target, provider or "*", name


def function_of(point: AttachPoint) -> str:
    """The name of the function that a place in code is given by; "" where it is none."""
    name, _ = split_offset(point.parts[-1]) if point.parts else ("", 0)
    return "" if NUMBER.fullmatch(name) or _SOURCE.fullmatch(":".join(point.parts)) else name


def watched(point: AttachPoint) -> tuple[int, int]:
    """Address and length of a watchpoint.

    Raises:
        PointError: it has none, or asks for more than stores.
    """
    parts = point.parts
    if len(parts) != 3 or not NUMBER.fullmatch(parts[0]) or not number(parts[0]):
        raise PointError("watchpoint must be attached to a non-zero address")
    if not NUMBER.fullmatch(parts[1]) or number(parts[1]) not in _WATCH_SIZES:
        raise PointError("watchpoint length must be one of (1,2,4,8)")
    if parts[2] != "w":
        raise PointError(f"invalid watchpoint mode: {parts[2]}: stores are watched here: w")
    return number(parts[0]), number(parts[1])


def _user_parts(point: AttachPoint) -> tuple[str, str, str]:
    """File, language and function of a uprobe.

    Raises:
        PointError: it has not got them.
    """
    parts = point.parts
    if "@" in "".join(parts):
        target = ":".join(parts).partition("@")[0].rstrip(":")
        return target, "", parts[-1]
    if len(parts) == 3 and parts[1] == _CPP:
        return parts[0], _CPP, parts[2]
    if len(parts) == 3:
        raise PointError(f"unsupported language type: {parts[1]}")
    if len(parts) != 2 or not parts[1]:
        raise PointError(f"{point.provider} should have a target and a function")
    return parts[0], "", parts[1]


def _group(point: AttachPoint) -> tuple[str, str]:
    """Group and name of a tracepoint; a pattern alone is one of names."""
    return ("*", point.parts[0]) if len(point.parts) == 1 else (point.parts[0], point.parts[1])


def _quoted(part: str) -> str:
    return part if _PLAIN.fullmatch(part.replace("/", "")) else f'"{part}"'


def _point(point: AttachPoint, *parts: str) -> AttachPoint:
    text = ":".join((point.provider, *map(_quoted, parts)))
    return AttachPoint(point.span, text, point.provider, tuple(parts))


def _cpp_point(point: AttachPoint, path: str, name: str, plain: str) -> AttachPoint:
    text = ":".join((point.provider, path, _CPP, _quoted(plain)))
    return AttachPoint(point.span, text, point.provider, (path, _CPP, name))
