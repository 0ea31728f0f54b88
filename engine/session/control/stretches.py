"""Stretches of a guest's past that are lived through again, to see what happens in them."""

from collections.abc import Callable, Iterator
from typing import Final

from engine.cpu.base import StopKind
from engine.history.journal import EntryCause
from engine.history.timeline import Moment, Timeline
from engine.session.guest.past import PastSession
from engine.session.guest.watchpoints import Watch, WatchEvent

_NARROWEST: Final = 16
"""Ticks of the first stretch back; each next one is four times as wide."""
_FRUITLESS: Final = 1 << 20
"""Steps that lead to no later moment before nobody waits any longer for one."""


class PastStretches:
    """Runs a guest of the past over stretches of its run.

    Attributes:
        timeline: its moments.
    """

    def __init__(self, session: PastSession, timeline: Timeline) -> None:
        """Nothing is lived through yet."""
        self._session = session
        self._kernel = session.kernel
        self.timeline = timeline

    def back(
        self, before: Moment, widest: int, floor: Moment | None = None
    ) -> Iterator[tuple[Moment, Moment]]:
        """Stretches in front of a moment, the newest first: begin and end; it stands at the begin.

        Args:
            before: where the newest ends.
            widest: ticks of a stretch, at the most.
            floor: where the oldest begins; None for the first instruction.
        """
        timeline, end, width = self.timeline, before, _NARROWEST
        lowest = 0 if floor is None else floor.clock
        while True:
            clock = end.clock - width
            if clock > lowest:
                timeline.seek_clock(clock)
            elif floor is None:
                timeline.start()
            else:
                timeline.seek(floor)
            start = timeline.now()
            if start < end:
                yield start, end
                end = start
            if clock <= lowest:
                return
            width = min(4 * width, widest)

    def steps(self, end: Moment, cut: Callable[[], bool]) -> Iterator[Moment]:
        """Go on instruction by instruction up to a moment: each moment behind another one."""
        timeline, fruitless = self.timeline, 0
        now = timeline.now()
        while now < end and not timeline.ended and fruitless < _FRUITLESS and not cut():
            self._kernel.step()
            following = timeline.now()
            fruitless = 0 if following > now else fruitless + 1
            now = following
            yield now

    def ticks(self, clock: int, cut: Callable[[], bool]) -> Iterator[int]:
        """Go on tick by tick up to the begin of one: each tick that begins."""
        kernel, cpu = self._kernel, self._session.cpu
        quantum, fruitless = StopKind.QUANTUM, 0
        clear, at = 0, -1  # the tick of the entry that comes next, where nothing else is to do
        try:
            while (now := cpu.coming()) < clock and not self.timeline.ended and not cut():
                if now < clear and kernel.at == at:
                    stop = cpu.run(1)
                    if stop.kind is not quantum:
                        at = -1
                        kernel.handle(stop)
                else:
                    before = kernel.at
                    kernel.limit = now
                    kernel.resume()
                    entry = kernel.next
                    at = before if kernel.at == before else -1  # else it is to be got ready
                    clear = 0 if entry is None else entry.clock
                following = cpu.coming()
                if following > now:
                    fruitless = 0
                    yield following
                    continue
                fruitless += 1
                if fruitless >= _FRUITLESS:
                    return
        finally:
            kernel.limit = None

    def run(self, watch: Watch, end: Moment, until: Callable[[], bool]) -> None:
        """Go on to a moment while bytes are watched.

        Args:
            watch: the bytes.
            end: the moment.
            until: asked between two stretches of the journal's, and in the last tick between two
                instructions: True ends it.
        """
        watchpoints, timeline = self._session.watchpoints, self.timeline
        watchpoints.add([watch])
        try:
            timeline.run_to_tick(end.at, end.clock, until=until)
            if not until() and timeline.now().clock == end.clock:
                for _ in self.steps(end, until):
                    pass
        finally:
            watchpoints.remove([watch])

    def moment_of(self, event: WatchEvent) -> Moment:
        """The moment in front of what has just accessed watched bytes."""
        if event.by:
            return self.of_entry()
        session, pc = self._session, event.pc
        cpu = session.cpu
        insn = next(iter(session.disassembler.decode(pc, session.code_at(pc))), None)
        behind = pc + insn.size if insn is not None else pc
        clock = cpu.blocks()
        if cpu.read_register(session.arch.roles.pc) != behind:  # a call: that may be counted yet
            clock = cpu.coming() - 1
        return Moment(self._kernel.at, clock, pc)

    def of_entry(self) -> Moment:
        """The moment in front of what has led to the last entry of the journal's."""
        kernel, linux = self._kernel, self._session.arch.linux
        entry = kernel.journal[kernel.at - 1]
        pc = entry.pc
        if entry.cause == EntryCause.SYSCALL:
            before = linux.syscall_before
            pc = pc - linux.syscall_size if before is None else before(pc)
        return Moment(kernel.at - 1, entry.clock, pc)
