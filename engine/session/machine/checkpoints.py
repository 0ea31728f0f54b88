"""Moments of a machine that it can go back to: its state, and the pages that have changed.

Pages are compared with a copy of the memory, as nothing says which ones were written; a moment
keeps those that differ from the one before. Where they take too much, or are too many, every
second moment is given up, and the distance between two doubles.
"""

import mmap
from typing import Any, Final

from msgspec import Struct

from engine.cpu.unicorn_system import PAGE
from engine.history.pagestore import PageContent, PageStore
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


class _KeptMoment(Struct, eq=False):
    """A moment.

    Attributes:
        stand: where the machine stands.
        state: of all but the memory.
        pages: that differ from those of the moment before.
        console: its place in the console's log.
    """

    stand: MachineStand
    state: dict[str, Any]
    pages: dict[int, PageContent]
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
            stepped: the machine, without disks.
            console: its console.
            most: bytes that pages take.

        Raises:
            ValueError: the processor has a state that is not kept.
        """
        self._stepped, self._console, self._most = stepped, console, most
        self._memory = stepped.machine.cpu.memory
        self._copy = mmap.mmap(-1, len(self._memory))
        self._compared = ComparedMemory(self._memory, self._copy)
        self._store = PageStore()
        self._newest: dict[int, PageContent] = {}
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

    def keep(self) -> None:
        """Keep the moment at which the machine stands, which is later than all others.

        Raises:
            ValueError: the processor has a state that is not kept.
        """
        state = self._stepped.machine.state()
        pages: dict[int, PageContent] = {}
        for page in list(self._compared.differing()):
            at = page * PAGE
            data = self._memory[at : at + PAGE]
            self._copy[at : at + PAGE] = data
            before = self._newest.get(page)
            content = self._store.keep(b"" if data == _NOTHING else data, before)
            if content is before:
                content.users += 1
            self._newest[page] = pages[page] = content
        made = _KeptMoment(self._stepped.stand, state, pages, self._console.position)
        self._moments.append(made)
        while len(self._moments) > _LEAST and (
            len(self._moments) > _MOMENTS_MOST or self._store.size > self._most
        ):
            self._thin_out()

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
        self.keep()

    def go_back(self, moment: MachineMoment) -> None:
        """Put the machine to the latest moment that is not later than one."""
        place = self._place(moment)
        kept = self._moments[place]
        wanted = set(self._compared.differing())
        for later in self._moments[place + 1 :]:
            wanted.update(later.pages)
        for page in wanted:
            content = self._content(place, page)
            data = (self._store.bytes_of(content) if content is not None else b"") or _NOTHING
            self._memory[page * PAGE : (page + 1) * PAGE] = data
        self._stepped.machine.restore(kept.state)
        self._stepped.stand = kept.stand
        self._console.position = kept.console

    def _place(self, moment: MachineMoment) -> int:
        for place in range(len(self._moments) - 1, 0, -1):
            if self._moments[place].stand.moment <= moment:
                return place
        return 0

    def _content(self, place: int, page: int) -> PageContent | None:
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
