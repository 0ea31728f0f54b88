"""The processes whose events a running kernel records: names of threads, and files in memory."""

import mmap
import os
import re
import struct
from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.errors import ImageError
from engine.guest.modules import Location, Module
from engine.image import ElfImage
from engine.session.live.eventlog import MemorySpot, SpotOf, memory_spot
from engine.session.live.kernel_symbols import FIRST, RunningSymbols
from engine.session.live.machine_files import DELETED, ProcessRoot
from engine.session.live.sideband import (
    ForkNotice,
    LiveRegion,
    MapNotice,
    MissedNotices,
    NameNotice,
    Notice,
)
from engine.trace.formats.base import Format, MappedFile, no_symbol
from engine.trace.formats.mapped import mapped_file
from engine.trace.rows import HEAD, TIME, whole

_MAPS: Final = re.compile(
    r"([0-9a-f]+)-([0-9a-f]+) ..(.). ([0-9a-f]+) \S+ \d+ *(.*)", re.ASCII | re.DOTALL
)
_NEVER: Final = 1 << 64
_PAGE: Final = mmap.PAGESIZE
_TIME_AND_PLACE: Final = struct.Struct("<QQ")
"""The beginning of a row behind its head."""
_STACK: Final = "[stack]"
_GROWN: Final = 8 << 20
"""Bytes that a stack is allowed to have, as a rule."""


class ProbedCode(Struct, frozen=True):
    """A place of an event in a file.

    Attributes:
        event: number of the event in rows.
        image: the file.
        paths: by which processes may have mapped it; the first is absolute.
        offset: of the place in the file.
    """

    event: int
    image: ElfImage
    paths: tuple[str, ...]
    offset: int


class LiveProcess(Struct):
    """One process, from its start, an exec or a change of what is at its addresses to the next.

    Attributes:
        pid: its id.
        since: time of its start.
        number: of the program that it is in, for formats.
        regions: of its memory, by address; they do not overlap.
        goes_on: it is the program before, in which other code has come to old addresses.
    """

    pid: int
    since: int
    number: int
    regions: list[LiveRegion] = field(default_factory=list)
    goes_on: bool = False

    def map(self, region: LiveRegion) -> None:
        """Memory comes, in place of what was there."""
        left: list[LiveRegion] = []
        for old in self.regions:
            if old.end <= region.start or region.end <= old.start:
                left.append(old)
                continue
            if old.start < region.start:
                left.append(replace(old, end=region.start))
            if region.end < old.end:
                cut = region.end - old.start
                left.append(replace(old, start=region.end, offset=old.offset + cut))
        insort(left, region)
        self.regions = left

    def spot(self, address: int) -> MemorySpot | None:
        """The place of an address; the kernel does not tell that the stack has grown."""
        region = self.find(address)
        if region is not None:
            return memory_spot(region.path, address - region.start + region.offset)
        index = bisect_right(self.regions, address, key=lambda one: one.start)
        above = self.regions[index] if index < len(self.regions) else None
        grown = above is not None and above.path == _STACK and above.start - address < _GROWN
        return memory_spot(_STACK, 0) if grown else None

    def find(self, address: int) -> LiveRegion | None:
        """The stretch that an address lies in."""
        index = bisect_right(self.regions, address, key=lambda region: region.start) - 1
        region = self.regions[index] if index >= 0 else None
        return region if region is not None and address < region.end else None


class LiveProcesses:
    """All of them, by what the kernel tells.

    What is told of a time holds for the rows behind it, whenever they are turned into text.

    Attributes:
        missed: records of the kernel's that are missing: names may be wrong.
    """

    def __init__(
        self,
        kernel: RunningSymbols | None = None,
        root: ProcessRoot | None = None,
        probed: Sequence[ProbedCode] = (),
    ) -> None:
        """None yet.

        Args:
            kernel: names the kernel's own addresses; the running one if None.
            root: the root directory of the processes; ours if None.
            probed: the code that has probes, whose hits tell where it is.
        """
        self.missed = 0
        self._root = root or ProcessRoot()
        self._kernel = kernel or RunningSymbols()
        self._processes: dict[int, list[LiveProcess]] = {}
        self._owners: dict[int, int] = {}
        self._comms: dict[int, list[tuple[int, bytes]]] = {}
        self._images: dict[str, ElfImage | None] = {
            path: one.image for one in probed for path in one.paths
        }
        self._modules: dict[tuple[str, int], Module] = {}
        self._numbers = 0
        self._shown: LiveProcess | None = None
        self._spots: dict[int, SpotOf] = {}
        self._now = 0
        self._until: dict[int, int] = {}
        self._old: list[LiveProcess] = []
        self._changed: list[LiveProcess] = []
        self._placed: set[tuple[int, int]] = set()
        self._probed: dict[int, list[ProbedCode]] = {}
        for one in probed:
            self._probed.setdefault(one.event, []).append(one)

    # -- what happens ----------------------------------------------------------------------

    def hear(self, notices: Iterable[Notice]) -> None:
        """Take what the kernel has told, by time."""
        self._forget()
        for notice in notices:
            if isinstance(notice, MapNotice):
                self._map(notice.pid, notice.time, notice.region)
            elif isinstance(notice, NameNotice):
                self._owners[notice.tid] = notice.pid
                if notice.executed:
                    self._begin(notice.pid, notice.time)
                self._comms.setdefault(notice.tid, []).append((notice.time, notice.comm))
            elif isinstance(notice, ForkNotice):
                self._forked(notice)
            else:
                assert isinstance(notice, MissedNotices), "there is no other kind"
                self.missed += notice.count
        self._until.clear()

    def look(self, pid: int) -> None:
        """Read what a process that runs already has in memory."""
        process = self._last(pid, 0)
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                self._owners[int(thread)] = pid
                self.comm(int(thread))
            with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as file:
                for line in file:
                    found = _MAPS.fullmatch(line.rstrip("\n"))
                    if found is not None:
                        start, end, offset = (int(found[n], 16) for n in (1, 2, 4))
                        path = self._root.inside(found[5].removesuffix(DELETED))
                        code = found[3] == "x"
                        process.map(LiveRegion(start, end, offset, path, code))

    def _forked(self, notice: ForkNotice) -> None:
        self._owners[notice.tid] = notice.pid
        comm = self._named(notice.parent, notice.time)
        if comm is not None:
            self._comms.setdefault(notice.tid, []).append((notice.time, comm))
        if notice.pid == notice.tid:
            before = self._processes.get(self.process(notice.parent))
            child = self._begin(notice.pid, notice.time)
            child.regions += before[-1].regions if before else []

    def _map(self, pid: int, time: int, region: LiveRegion) -> None:
        """Memory comes; what hides code that was there begins another state of the process."""
        process = self._last(pid, time)
        if any(map(region.hides, process.regions)):
            before = process
            process = self._begin(pid, time)
            process.regions, process.goes_on = before.regions.copy(), True
            self._changed.append(process)
        process.map(region)

    def _forget(self) -> None:
        """Drop states that no row will ask for: those that were over two times of hearing ago."""
        for process in self._old:
            states = self._processes[process.pid]
            index = next(at for at, one in enumerate(states) if one is process)
            if index and states[index - 1].goes_on:
                del states[index - 1]
        self._old, self._changed = self._changed, []

    def place(self, rows: bytes) -> None:
        """Learn from hits where probed code is: the kernel does not tell that mremap moves it.

        Args:
            rows: whole ones, which have been heard about.
        """
        position, seen = 0, self._placed
        while position < len(rows):
            event, size, thread = HEAD.unpack_from(rows, position)
            number, thread = whole(event, thread)
            probed = self._probed.get(number)
            if probed is not None:
                time, address = _TIME_AND_PLACE.unpack_from(rows, position + HEAD.size)
                process = self.turn_to(thread, time)
                key = process.number, address
                if key not in seen:
                    seen.add(key)
                    self._place(process, time, address, probed)
            position += size * 8

    def _place(
        self, process: LiveProcess, time: int, address: int, probed: Sequence[ProbedCode]
    ) -> None:
        region = process.find(address)
        if region is not None and region.is_file:
            return
        found = [one for one in probed if (one.offset - address) % _PAGE == 0]
        if len(found) != 1:
            return
        start, offset = address & -_PAGE, found[0].offset & -_PAGE
        self._map(
            process.pid, time, LiveRegion(start, start + _PAGE, offset, found[0].paths[0], True)
        )
        self._until.clear()

    def _begin(self, pid: int, time: int) -> LiveProcess:
        self._numbers += 1
        process = LiveProcess(pid, time, self._numbers)
        self._processes.setdefault(pid, []).append(process)
        self._owners.setdefault(pid, pid)
        return process

    def _last(self, pid: int, time: int) -> LiveProcess:
        found = self._processes.get(pid)
        return found[-1] if found else self._begin(pid, time)

    # -- rows ------------------------------------------------------------------------------

    def text(self, form: Format, rows: bytes) -> bytes:
        """The text of rows, each named by its own process at its time; a `TextOf`."""
        texts: list[bytes] = []
        start = position = 0
        until, owner = self._until, -1
        while position < len(rows):
            event, size, thread = HEAD.unpack_from(rows, position)
            _, thread = whole(event, thread)
            (time,) = TIME.unpack_from(rows, position + HEAD.size)
            if until.get(thread, -1) <= time or self._owners.get(thread, thread) != owner:
                if position > start:
                    texts.append(form.rows(rows[start:position]))
                    start = position
                before = self._named(thread, self._now)
                process = self.turn_to(thread, time)
                owner = process.pid
                form.program(process.number)
                if self._named(thread, time) != before:
                    form.renamed(thread)
            position += size * 8
        if position > start:
            texts.append(form.rows(rows[start:position]))
        return b"".join(texts)

    def turn_to(self, thread: int, time: int) -> LiveProcess:
        """From here on a thread is asked about, at a time."""
        pid = self.process(thread)
        if pid not in self._processes:
            self.look(pid)
        found = self._processes[pid]
        index = max(bisect_right(found, time, key=lambda process: process.since) - 1, 0)
        process = self._shown = found[index]
        changes = [one.since for one in found[index + 1 : index + 2]]
        changes += [at for at, _ in self._comms.get(thread, ()) if at > time]
        self._until[thread] = min(changes, default=_NEVER)
        self._now = time
        return process

    # -- names -----------------------------------------------------------------------------

    def spots(self, thread: int, time: int) -> SpotOf:
        """Names addresses of a thread's process as it was at a time."""
        process = self.turn_to(thread, time)
        return self._spots.setdefault(process.number, process.spot)

    def comm(self, thread: int) -> bytes | None:
        """The name of a thread at the time that is asked about."""
        found = self._named(thread, self._now)
        if found is None and thread not in self._comms:
            with suppress(OSError), open(f"/proc/{thread}/comm", "rb") as file:
                found = file.read().rstrip(b"\n")
                self._comms[thread] = [(0, found)]
        return found

    def _named(self, thread: int, time: int) -> bytes | None:
        """A thread's name at a time, as far as known; the first one before it has any."""
        known = self._comms.get(thread)
        if not known:
            return None
        index = bisect_right(known, time, key=lambda one: one[0]) - 1
        return known[max(index, 0)][1]

    def process(self, thread: int) -> int:
        """The process of a thread."""
        found = self._owners.get(thread)
        if found is None:
            found = thread
            with suppress(OSError, ValueError), open(f"/proc/{thread}/status", "rb") as file:
                for line in file:
                    if line.startswith(b"Tgid:"):
                        found = int(line.split()[1])
            self._owners[thread] = found
        return found

    def symbol(self, address: int) -> str:
        """An address in the process that is asked about, or the kernel's, as `%pS` prints it."""
        if address >= FIRST:
            return self._kernel.symbol(address)
        location = self.locate(self._shown, address)
        if location.symbol is None:
            return no_symbol(address)
        return f"{location.symbol.name}+{location.offset:#x}/{location.symbol.size:#x}"

    def file(self, address: int) -> MappedFile | None:
        """The file whose code is at an address there."""
        module = self.locate(self._shown, address).module
        return None if module is None else mapped_file(module, address)

    def line(self, address: int) -> tuple[str, int] | None:
        """Source file and line of an address there."""
        module = self.locate(self._shown, address).module
        return None if module is None else module.line_at(address)

    def locate(self, process: LiveProcess | None, address: int) -> Location:
        """Name an address of a process."""
        region = None if process is None else process.find(address)
        module = None if region is None else self._module(region)
        if module is None:
            return Location(address, None, None, 0)
        symbol = module.symbol_at(address)
        link = address - module.bias
        return Location(address, module, symbol, link - (symbol.address if symbol else 0))

    def _module(self, region: LiveRegion) -> Module | None:
        if not region.path.startswith("/"):
            return None
        if region.path not in self._images:
            try:
                path = self._root.host(region.path)
                self._images[region.path] = ElfImage.open(path, root=self._root.path)
            except ImageError:
                self._images[region.path] = None
        image = self._images[region.path]
        link = None if image is None else image.vaddr_of(region.offset)
        if image is None or link is None:
            return None
        key = region.path, region.start - link
        if key not in self._modules:
            self._modules[key] = Module(region.path, image, region.start - link)
        return self._modules[key]
