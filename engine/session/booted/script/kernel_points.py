"""The places of a script's probes in a booted kernel."""

import fnmatch
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.program import RecordLayout
from engine.session.booted.files import BootFiles
from engine.session.booted.kernel_events import EventCatalog
from engine.session.booted.probes import BootProbe, BootProbes, WaitingProbe
from engine.session.booted.script.program_points import (
    PROGRAMS,
    PointRefusedError,
    ProgramPoints,
    ProgramSite,
)
from engine.session.kernel.opened import OpenedKernel
from engine.trace import syscalls
from engine.trace.bpftrace.attach_points import full_name, has_glob
from engine.trace.bpftrace.tree import AttachPoint
from engine.trace.definition import BLANKS

CODE: Final = frozenset({"kprobe", "kretprobe", "fentry", "fexit"})
"""Providers whose probes stand in code."""
RETURNS: Final = frozenset({"kretprobe", "fexit", "uretprobe"})
TIMERS: Final = frozenset({"interval", "profile"})
GROUP: Final = "script"
KERNEL: Final = "vmlinux"
"""The name of the kernel itself in attach points."""


class KernelPoint(Struct, frozen=True):
    """One place where a probe of a script runs.

    Attributes:
        point: as it is written, with globs expanded.
        probe: in the kernel's code; None for one elsewhere.
        waiting: in the code of a module that is not loaded; None for one elsewhere.
        sites: in programs; none for one elsewhere.
    """

    point: AttachPoint
    probe: BootProbe | None = None
    waiting: WaitingProbe | None = None
    sites: tuple[ProgramSite, ...] = ()


class KernelPoints:
    """Finds the places of one kernel.

    Attributes:
        events: its own.
        programs: finds places in programs.
    """

    def __init__(self, opened: OpenedKernel, files: BootFiles | None = None) -> None:
        """Set up; files are read when somebody asks.

        Args:
            opened: the kernel.
            files: of the system, as far as they are known.
        """
        self.programs = ProgramPoints(opened.arch, files or BootFiles())
        self._opened = opened
        self.events = EventCatalog(opened)
        self._count = 0

    # -- places with globs ----------------------------------------------------------------

    def expanded(self, point: AttachPoint) -> list[AttachPoint]:
        """The places that one with globs means; empty where there is none.

        Raises:
            PointRefusedError: the place makes no sense.
        """
        if point.provider in CODE:
            return self._in_code(point)
        if point.provider in PROGRAMS:
            return self.programs.expanded(point)
        if point.provider == "tracepoint":
            return [_at(point, *each) for each in self.events.like(point.target, point.function)]
        if point.provider == "rawtracepoint":
            if point.target and not fnmatch.fnmatchcase(KERNEL, point.target):
                return []
            return [_at(point, *each) for each in self._raw(point.function)]
        return [point]

    def _in_code(self, point: AttachPoint) -> list[AttachPoint]:
        if point.target == "bpf":
            raise PointRefusedError("programs of BPF are not probed: the kernel's functions are")
        if point.address is not None or self._is_of_module(point):
            return [point]
        if has_glob(point.target) and not fnmatch.fnmatchcase(KERNEL, point.target):
            raise PointRefusedError(
                f"{point.target}: which modules the kernel will load nobody knows: name one"
            )
        if has_glob(point.function):
            return [_at(point, point.target, name) for name in self.functions_like(point.function)]
        if self._opened.names.find(point.function) is None:
            return []
        return [point]

    @staticmethod
    def _is_of_module(point: AttachPoint) -> bool:
        return point.target not in ("", "*", KERNEL) and not has_glob(point.target)

    def functions_like(self, pattern: str) -> Iterator[str]:
        """The names of functions that match and that may be probed, in the order of the text."""
        wanted = re.compile(fnmatch.translate(pattern)).match
        return (name for name in self._traced if wanted(name))

    @cached_property
    def _traced(self) -> list[str]:
        """Functions that ftrace knows, without those of kprobes/blacklist."""
        names, tables = self._opened.image.names, self._opened.tables
        allowed = (site for site in tables.ftrace if not _is_within(tables.forbidden, site))
        found = (names.at(site) for site in allowed)
        return list(dict.fromkeys(each.name for each in found if each is not None))

    def _raw(self, pattern: str) -> Iterator[tuple[str, str]]:
        """(the kernel, name) of events whose arguments scripts get as the tracepoint has them."""
        for group, name in sorted(self.events.known, key=lambda each: each[1]):
            if group != syscalls.GROUP and fnmatch.fnmatchcase(name, pattern):
                yield KERNEL, name

    def event(self, point: AttachPoint) -> tuple[str, str]:
        """Group and name of the event of a tracepoint."""
        if point.provider == "tracepoint":
            return point.target, point.function
        return next(
            each
            for each in self.events.known
            if each[1] == point.function and each[0] != syscalls.GROUP
        )

    # -- places without globs -------------------------------------------------------------

    def resolved(self, point: AttachPoint, probes: BootProbes) -> KernelPoint:
        """The place of a probe without globs.

        Args:
            point: without globs.
            probes: judge places by the kernel's rules.

        Raises:
            ProbeError: no probe may stand there.
        """
        if point.provider in PROGRAMS:
            return self._in_programs(point, probes)
        if point.provider not in CODE:
            return KernelPoint(point)
        is_return = point.provider in RETURNS
        if self._is_of_module(point):
            layout = RecordLayout.of((), is_return)
            event = "" if has_glob(point.function) else point.function
            names = point.target, point.function, point.offset, GROUP, event
            waiting = WaitingProbe(*names, layout, is_return, 0, point.text)
            return KernelPoint(point, waiting=waiting)
        place = point.function if point.address is None else f"{point.address:#x}"
        place += f"+{point.offset}" if point.offset else ""
        self._count += 1
        line = f"{'r' if is_return else 'p'}:{GROUP}/e{self._count} {place}"
        return KernelPoint(point, probes.probe(line))

    def _in_programs(self, point: AttachPoint, probes: BootProbes) -> KernelPoint:
        sites = self.programs.sites(point)
        for site in sites:
            self._count += 1
            place = f"{site.path}:{site.offset:#x}"
            if not BLANKS.search(place):
                probes.programs.take(f"p:{GROUP}/e{self._count} {place}")
        return KernelPoint(point, sites=sites)


def _is_within(ranges: Sequence[tuple[int, int]], address: int) -> bool:
    """True if sorted ranges have an address."""
    at = bisect_right(ranges, address, key=lambda one: one[0]) - 1
    return at >= 0 and address < ranges[at][1]


def _at(point: AttachPoint, target: str, function: str) -> AttachPoint:
    """A place with its globs replaced."""
    found = replace(point, target=target, function=function)
    return replace(found, text=full_name(found))
