"""Moments of a machine that it can go back to: its state, and what has changed in between.

Pages are compared with a copy of the memory, as nothing says which ones were written; a disk knows
which of its blocks were. A moment keeps those that differ from the one before. Where they take too
much, or are too many, every second moment is given up, and the distance between two doubles.
"""

import mmap
from typing import Any, Final, TypeAlias

from msgspec import Struct

from engine.cpu.unicorn_system import PAGE
from engine.history.pagestore import PageContent, PageStore
from engine.machine.clock import time_of
from engine.machine.consolelog import ConsoleLog
from engine.machine.pages import ComparedMemory
from engine.machine.stepping import MachineMoment, MachineStand, SteppedMachine

_DISTANCE: Final = 16 << 20
"""Blocks between two moments, to begin with: some half a second of the host's."""
_MOMENTS_MOST: Final = 128
_LEAST: Final = 2
DEFAULT_BYTES: Final = 512 << 20
"""Bytes that the pages of all moments take at the most."""
_NOTHING: Final = bytes(PAGE)
_Place: TypeAlias = int | tuple[int, int]
"""A page of the memory by its number, or a block of a disk by the disk's number and its own."""


class _KeptMoment(Struct, eq=False):
    """A moment.

    Attributes:
        stand: where the machine stands.
        state: of all but the memory.
        pages: and blocks that differ from those of the moment before.
        console: its place in the console's log.
    """

    stand: MachineStand
    state: dict[str, Any]
    pages: dict[_Place, PageContent]
    console: tuple[int, int]


class MachineCheckpoints:
    """The moments of one machine.

    Attributes:
        distance: blocks between two moments.
    """

    def __init__(
        self, stepped: SteppedMachine, console: ConsoleLog, most: int = DEFAULT_BYTES
    ) -> None:
        """Keep the moment at which the machine stands.

        Args:
            stepped: the machine.
            console: its console.
            most: bytes that pages take.

        Raises:
            ValueError: the processor has a state that is not kept.
        """
        self._stepped, self._console, self._most = stepped, console, most
        self._memory, self._disks = stepped.machine.cpu.memory, stepped.machine.disks
        self._copy = mmap.mmap(-1, len(self._memory))
        self._compared = ComparedMemory(self._memory, self._copy)
        self._store = PageStore()
        self._newest: dict[_Place, PageContent] = {}
        self._moments: list[_KeptMoment] = []
        self.distance = _DISTANCE
        self.keep()

    @property
    def latest(self) -> MachineMoment:
        """The latest moment."""
        return self._moments[-1].stand.moment

    @property
    def first(self) -> MachineMoment:
        """The first moment."""
        return self._moments[0].stand.moment

    @property
    def size(self) -> int:
        """Bytes that pages take, about."""
        return self._store.size

    def before(self, moment: MachineMoment) -> MachineMoment:
        """The latest moment that is not later than one; the first one where there is none."""
        return self._moments[self._place(moment)].stand.moment

    def before_time(self, time: int) -> MachineMoment:
        """The latest moment that is not later than a time in nanoseconds; or the first one."""
        found = self._moments[0]
        for moment in self._moments[1:]:
            if time_of(moment.state["devices"]["clock"]) > time:
                break
            found = moment
        return found.stand.moment

    def keep(self) -> None:
        """Keep the moment at which the machine stands, which is later than all others.

        Raises:
            ValueError: the processor has a state that is not kept.
        """
        state = self._stepped.machine.state()
        pages: dict[_Place, PageContent] = {}
        for page in list(self._compared.differing()):
            at = page * PAGE
            data = self._memory[at : at + PAGE]
            self._copy[at : at + PAGE] = data
            pages[page] = self._kept(page, data)
        for number, disk in enumerate(self._disks):
            for block in sorted(disk.touched):
                pages[number, block] = self._kept((number, block), disk.block(block))
            disk.touched.clear()
        made = _KeptMoment(self._stepped.stand, state, pages, self._console.position)
        self._moments.append(made)
        while len(self._moments) > _LEAST and (
            len(self._moments) > _MOMENTS_MOST or self._store.size > self._most
        ):
            self._thin_out()

    def _kept(self, place: _Place, data: bytes) -> PageContent:
        """The content of a page or a block, kept for one more moment."""
        before = self._newest.get(place)
        content = self._store.keep(b"" if data == _NOTHING else data, before)
        if content is before:
            content.users += 1
        self._newest[place] = content
        return content

    def begin_again(self) -> None:
        """Forget all moments, and keep the one at which the machine stands.

        Raises:
            ValueError: the processor has a state that is not kept.
        """
        self._moments.clear()
        self._newest.clear()
        self._store = PageStore()
        self._copy = mmap.mmap(-1, len(self._memory))
        self._compared = ComparedMemory(self._memory, self._copy)
        for disk in self._disks:
            disk.touched.update(disk.changes)
        self.keep()

    def go_back(self, moment: MachineMoment) -> None:
        """Put the machine to the latest moment that is not later than one."""
        place = self._place(moment)
        kept = self._moments[place]
        wanted: set[_Place] = set(self._compared.differing())
        for number, disk in enumerate(self._disks):
            wanted.update((number, block) for block in disk.touched)
        for later in self._moments[place + 1 :]:
            wanted.update(later.pages)
        for page in wanted:
            content = self._content(place, page)
            data = (self._store.bytes_of(content) if content is not None else b"") or _NOTHING
            if isinstance(page, int):
                self._memory[page * PAGE : (page + 1) * PAGE] = data
            else:
                disk = self._disks[page[0]]
                disk.put_back(page[1], data if content is not None else None)
                disk.touched.add(page[1])
        self._stepped.machine.restore(kept.state)
        self._stepped.stand = kept.stand
        self._console.position = kept.console

    def _place(self, moment: MachineMoment) -> int:
        for place in range(len(self._moments) - 1, 0, -1):
            if self._moments[place].stand.moment <= moment:
                return place
        return 0

    def _content(self, place: int, page: _Place) -> PageContent | None:
        for moment in reversed(self._moments[: place + 1]):
            content = moment.pages.get(page)
            if content is not None:
                return content
        return None

    def _thin_out(self) -> None:
        """Give up every second moment, but for the first and the latest."""
        kept = [self._moments[0]]
        for place, moment in enumerate(self._moments[1:-1], 1):
            if place % 2:
                self._merge(moment, self._moments[place + 1])
            else:
                kept.append(moment)
        kept.append(self._moments[-1])
        self._moments = kept
        self.distance *= 2

    def _merge(self, moment: _KeptMoment, following: _KeptMoment) -> None:
        for page, content in moment.pages.items():
            if page in following.pages:
                self._store.give_up(content)
            else:
                following.pages[page] = content
