"""The last writes to memory: instructions, calls, signals."""

from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from engine.cpu.ram import PAGE
from engine.errors import CommandError
from engine.guest.watched import WatchedRange
from engine.history.timeline import Moment
from engine.session.control.stretches import PastStretches
from engine.session.guest.past import PastSession
from engine.session.guest.watchpoints import Watch, WatchEvent

_BUSY: Final = 1 << 14
"""Ticks of the widest stretch that is lived through from close by before checkpoints are looked
at: memory that is written again and again stops the program at each time."""


class MemoryWrites:
    """Finds what has written to memory, by living through stretches with it watched.

    Close by first, in ever wider stretches; farther back from checkpoint to checkpoint, but for
    those between which its pages have not changed.
    """

    def __init__(
        self, session: PastSession, stretches: PastStretches, cut: Callable[[], bool]
    ) -> None:
        """Nothing is looked for yet.

        Args:
            session: the guest of the past.
            stretches: of its run.
            cut: asked now and then: True ends a search.
        """
        self._session = session
        self._stretches = stretches
        self._timeline = stretches.timeline
        self._cut = cut

    def last(self, address: int, size: int, now: Moment) -> tuple[Moment, str] | None:
        """The last write before now: its moment, and what has written, "" for an instruction.

        The guest stands anywhere then. What is found by a search that was cut may not be the last.

        Raises:
            CommandError: there is no memory.
        """
        timeline = self._timeline
        pages = self._pages(address, size)
        taken = timeline.checkpoints.taken
        behind = now
        for start, end in self._stretches.back(now, _BUSY):
            found = self._between(address, size, end)
            if found or self._cut():
                return found[-1] if found else None
            behind = start
            if end.clock - start.clock >= _BUSY:
                break
        newest = behind
        index = bisect_left([(one.at, one.clock) for one in taken], (newest.at, newest.clock))
        for number in range(min(index, len(taken) - 1), -1, -1):
            begin = taken[number]
            if (begin.at, begin.clock) >= (behind.at, behind.clock) and number:
                continue
            last = number + 1 == len(taken) or behind == newest
            if last or pages.intersection(taken[number + 1].pages):
                timeline.checkpoints.restore(number)
                start = timeline.now()
                found = self._between(address, size, behind)
                if found or self._cut():
                    return found[-1] if found else None
                behind = start
            else:
                behind = Moment(begin.at, begin.coming, begin.pc)
            if self._cut():
                break
        return None

    def _pages(self, address: int, size: int) -> set[int]:
        """Numbers of the pages of the arena behind an address now."""
        found = set()
        for at in range(address & -PAGE, address + size, PAGE):
            mapping = self._session.seen.memory.find(at)
            if mapping is None or mapping.physical is None:
                raise CommandError(f"Cannot access memory at address {at:#x}")
            found.add((mapping.physical + at - mapping.start) // PAGE)
        return found

    def _between(self, address: int, size: int, end: Moment) -> list[tuple[Moment, str]]:
        """Run on to a moment: the instructions that write to memory meanwhile, and what did."""
        found: list[tuple[Moment, str]] = []

        def told(event: WatchEvent) -> None:
            if event.hit.written is None:
                return
            moment = self._stretches.moment_of(event)
            if moment < end:
                found.append((moment, event.by))

        watch = Watch(told, [WatchedRange(address, size)])
        self._stretches.run(watch, end, self._cut)
        return found
