"""The places that probes of a script name, in the files that the guest sees.

As bpftrace takes them (docs/language.md of its sources, "Probes"): `uprobe:BINARY:FUNC+OFF`,
`usdt:BINARY:PROVIDER:NAME`, `tracepoint:GROUP:NAME`, each with globs. A BINARY without a slash is
a library by its short name (`libc`), or a program that is found as the shell finds one.
"""

import fnmatch
import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.arch.base import Arch
from engine.arch.plan import Rules
from engine.errors import ImageError, ProbeError
from engine.image.mangling import spellings
from engine.session.program.libraries import Program, ProgramFile
from engine.session.program.places import Place, PlaceError, Places, near_names
from engine.trace import sched, syscalls
from engine.trace.bpftrace.attach_points import has_glob
from engine.trace.bpftrace.tree import AttachPoint
from engine.trace.place_syntax import SourceLine, SymbolPlace

if TYPE_CHECKING:
    from engine.session.program.markers import Marker, Markers

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
_FOLDERS: Final = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


class AttachedPlace(Struct, frozen=True):
    """One place where a probe of a script runs.

    Attributes:
        point: the probe's place as it is written, with globs expanded.
        place: in code; None where it is none.
        marker: the marker there; None for none.
        of_pattern: a glob has found it.
    """

    point: AttachPoint
    place: Place | None = None
    marker: "Marker | None" = None
    of_pattern: bool = False


class PointError(ProbeError):
    """A place of a script that makes no sense for this guest; its text says why."""


def period(point: AttachPoint) -> int:
    """Nanoseconds between two runs of a timer."""
    if point.target == "hz":
        return max(10**9 // max(point.rate, 1), 1)
    return max(point.rate, 1) * UNITS[point.target]


class ScriptPlaces:
    """Finds the places of a guest."""

    def __init__(self, arch: Arch, places: Places, program: Program) -> None:
        """Set up; files are read when somebody asks.

        Args:
            arch: the guest's.
            places: finds code.
            program: its files.
        """
        self._arch = arch
        self._places = places
        self._program = program
        self._named = lru_cache(maxsize=256)(self._files)
        self._typed: dict[tuple[str, str], str] = {}
        """Paths of files that patterns have found, as one would type them; by pattern and file."""
        self._found: dict[tuple[str, str], list[int]] = {}
        """Link addresses of functions that globs have found, by file and name."""

    @cached_property
    def _markers(self) -> "Markers":
        """The static probes of the program's files."""
        from engine.session.program.markers import Markers  # few scripts have a usdt probe

        return Markers(self._arch, self._program)

    # -- files ----------------------------------------------------------------------------

    def files(self, target: str) -> tuple[ProgramFile, ...]:
        """The files that a BINARY means: several for a pattern, none where nothing is.

        Raises:
            PointError: a file that is no program.
        """
        return self._named(target)

    def _files(self, target: str) -> tuple[ProgramFile, ...]:
        program = self._program
        if has_glob(target):
            return tuple(self._matching(target))
        try:
            if "/" in target:
                found = program.at_path(target)
            else:
                found = program.named(target) or self._in_folders(target)
                found = found or program.later(target)
        except ImageError as error:
            raise PointError(str(error)) from error
        return () if found is None else (found,)

    def _matching(self, pattern: str) -> Iterator[ProgramFile]:
        """The files that a pattern means: the program's own, and those that lie in the guest.

        A pattern without a slash means short names of the program's files, and names of programs
        as the shell finds them.
        """
        program = self._program
        if pattern == "*":
            yield from program.files
            return
        wanted = re.compile(fnmatch.translate(pattern)).match
        if "/" in pattern:
            lying = list(program.matching(pattern))
            own = [one for one in program.files if any(map(wanted, (one.path, *one.paths)))]
        else:
            own = [one for one in program.files if any(map(wanted, one.names))]
            lying = [one for folder in _FOLDERS for one in program.matching(f"{folder}/{pattern}")]
            yield from own
        for typed, file in lying:
            if "/" in pattern or file not in own:
                self._typed[pattern, file.path] = typed
                yield file
        if "/" in pattern:
            found = [file for _, file in lying]
            yield from (file for file in own if file not in found)

    def _shown(self, point: AttachPoint, file: ProgramFile) -> str:
        """The path of a file as the name of a place has it: as it was typed, if it was."""
        if "/" in point.target and not has_glob(point.target):
            return point.target
        return self._typed.get((point.target, file.path), file.path)

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
            found = self._kernel_functions(point)
            return [_at(point, point.target, name) for name in found]
        if provider == "usdt":
            return self._of_markers(point)
        if provider in ("tracepoint", "rawtracepoint"):
            found_events = self.tracepoints(point.target, point.function)
            return [_at(point, *each) for each in found_events]
        if provider in WATCHES:
            _check_watch(point)
        return [point]

    def is_found(self, point: AttachPoint) -> bool:
        """True if a glob has found the function."""
        return (point.target, point.function) in self._found

    def _in_files(self, point: AttachPoint) -> list[AttachPoint]:
        files = self.files(point.target)
        if not files:
            raise _no_file(point)
        function = point.function
        if not function:
            return [_at(point, self._shown(point, file), "") for file in files]
        found: list[AttachPoint] = []
        for file in files:
            where = self._shown(point, file)
            if point.language:
                pairs = self._cpp_functions(file, function)
                found += [_at(point, where, name, plain) for name, plain in pairs]
            elif has_glob(function):
                names = self._functions(file, where, function)
                found += [_at(point, where, name) for name in names]
            elif symbol := file.symbols.find(function):
                if point.offset and point.offset >= symbol.size:
                    size = f"('{function}' size is {symbol.size})"
                    raise PointError(f"Offset outside the function bounds {size}")
                found.append(_at(point, where, function))
            elif self._is_inlined(file, function):
                found.append(_at(point, where, function))
        return found

    def _is_inlined(self, file: ProgramFile, name: str) -> bool:
        from engine.session.program.functions import inlined_sites  # few functions are

        return inlined_sites(name, (file,)) is not None

    def _functions(self, file: ProgramFile, where: str, pattern: str) -> Iterator[str]:
        """The names of functions that match, each address once; `where` names the file."""
        wanted = re.compile(fnmatch.translate(pattern)).match
        last = -1
        found: dict[str, list[int]] = {}
        for symbol in file.symbols.functions():
            at = symbol.address
            if at != last and symbol.kind != "ifunc" and wanted(symbol.name):
                last = at
                found.setdefault(symbol.name, []).append(at)
        self._found.update(((where, name), links) for name, links in found.items())
        return iter(found)

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

    def _kernel_functions(self, point: AttachPoint) -> Iterator[str]:
        main, function = self._program.main, point.function
        if has_glob(function):
            yield from self._functions(main, main.path, function)
        elif not function or main.symbols.find(function) is not None:
            yield function

    def _of_markers(self, point: AttachPoint) -> list[AttachPoint]:
        files = self.files(point.target)
        if not files:
            raise _no_file(point)
        found: dict[tuple[str, str, str], None] = {}
        for marker in self._in(files, point.namespace or "*", point.function):
            where = self._shown(point, marker.file)
            found[where, marker.probe.name, marker.probe.provider] = None
        return [_at(point, path, name, namespace=provider) for path, name, provider in found]

    def _in(self, files: Iterable[ProgramFile], provider: str, name: str) -> "Iterator[Marker]":
        from engine.trace.marker_syntax import MarkerName

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

    def resolved(self, point: AttachPoint) -> tuple[AttachedPlace, ...]:
        """Find a place in the guest: several places for a line, a marker, an inlined function.

        Raises:
            ProbeError: it is nowhere.
        """
        if point.provider in USERS:
            links = self._found.get((point.target, point.function), ())
            if links and not point.offset:
                file = self.files(point.target)[0]
                places = [self._places.at(file, at, Rules.UPROBE, point.text) for at in links]
                return tuple(AttachedPlace(point, one, of_pattern=True) for one in places)
            return tuple(AttachedPlace(point, place) for place in self._in_code(point))
        if point.provider in KERNELS:
            if point.address is not None:
                found = self._places.resolve(f"{point.address:#x}")
            else:
                target = SymbolPlace(point.function, point.offset)
                found = self._places.of_target(target, point.text, Rules.KPROBE)
            of_pattern = (self._program.main.path, point.function) in self._found
            return tuple(AttachedPlace(point, one, of_pattern=of_pattern) for one in found)
        if point.provider == "usdt":
            return tuple(self._at_markers(point))
        return (AttachedPlace(point),)

    def _in_code(self, point: AttachPoint) -> tuple[Place, ...]:
        files = self.files(point.target)
        if not files:
            raise _no_file(point)
        file = files[0]
        if point.line:
            line = SourceLine(point.file, point.line)
            places = self._places.of_target(line, f"{point.file}:{point.line}", Rules.UPROBE)
            return tuple(place for place in places if place.image is file.image)
        if point.address is not None:
            if file.symbols.at(point.address) is None:
                raise PointError(f"Could not resolve address: {point.target}:{point.address:#x}")
            return (self._places.at(file, point.address, Rules.UPROBE, point.text),)
        target = SymbolPlace(point.function, point.offset, file.path)
        try:
            return self._places.of_target(target, point.text, Rules.UPROBE)
        except PlaceError as error:
            if error.code != "NON_UNIQ_SYMBOL":
                raise
        links = {one.address for one in file.symbols.find_all(point.function)}
        return tuple(
            self._places.at(file, at + point.offset, Rules.UPROBE, point.text)
            for at in sorted(links)
        )

    def _at_markers(self, point: AttachPoint) -> Iterator[AttachedPlace]:
        for marker in self.markers(point):
            if marker.problem:
                raise PointError(f"{marker.event} in {marker.file.path}: {marker.problem}")
            where = self._places.at(marker.file, marker.probe.address, Rules.UPROBE, point.text)
            yield AttachedPlace(point, where, marker)

    def markers(self, point: AttachPoint) -> "list[Marker]":
        """The sites of a marker."""
        files = self.files(point.target)
        return list(self._in(files, point.namespace or "*", point.function))

    # -- what there is --------------------------------------------------------------------

    def listed(self, point: AttachPoint) -> list[AttachPoint]:
        """The places that a pattern of a listing means; none where it makes no sense."""
        try:
            return self.expanded(point)
        except ProbeError:
            return []

    def similar(self, point: AttachPoint) -> list[str]:
        """Up to three functions with names like the one that is not there."""
        if point.provider not in USERS or has_glob(point.target) or has_glob(point.function):
            return []
        return near_names(point.function, self.files(point.target))


def _no_file(point: AttachPoint) -> PointError:
    return PointError(
        f"{point.provider} target file '{point.target}' does not exist or is not executable"
    )


def _check_watch(point: AttachPoint) -> None:
    """Refuse a watchpoint that cannot be had.

    Raises:
        PointError: it asks for more than stores, or for what a function is given.
    """
    if point.address is None:
        raise PointError("watchpoints of functions are not part of bpftrace any more: ADDRESS is")
    if point.mode != "w":
        raise PointError(f"invalid watchpoint mode: {point.mode}; stores are watched here: w")


def _at(
    point: AttachPoint, target: str, function: str, shown: str = "", namespace: str = ""
) -> AttachPoint:
    """A place with its globs replaced; `shown` is the function's name in the source."""
    text = point.text
    if text == _name(point):
        text = _name(point.elsewhere("", target, shown or function, namespace))
    return point.elsewhere(text, target, function, namespace)


def _name(point: AttachPoint) -> str:
    """The whole name of a place, as `probe` gives it."""
    function = point.function + (f"+{point.offset}" if point.function and point.offset else "")
    numbers = (point.address or 0, point.rate, point.length)
    shown = [point.target, point.language, point.namespace, function]
    shown += [*(str(one) for one in numbers if one), point.mode]
    return ":".join((point.provider, *filter(None, shown)))
