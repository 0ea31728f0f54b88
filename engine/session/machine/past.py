"""The past of a booted machine: any moment again, steps and runs backwards.

A machine has no other input than its console, and its time is counted: from a moment that was kept
it does the same again. What is changed by hand begins another history.
"""

from collections.abc import Callable

from engine.cpu.unicorn_system import NEVER
from engine.cpu.unicorn_watches import DataAccess
from engine.machine.clock import NO_EVENT
from engine.machine.consolelog import ConsoleLog
from engine.machine.stepping import MachineMoment, SteppedMachine
from engine.session.machine.checkpoints import DEFAULT_BYTES, MachineCheckpoints


class MachinePast:
    """Moves a machine to and fro.

    Attributes:
        newest: the latest moment that the machine has come to.
        newest_time: the machine's time then, in nanoseconds.
    """

    def __init__(
        self, stepped: SteppedMachine, console: ConsoleLog, most: int = DEFAULT_BYTES
    ) -> None:
        """Begin where the machine stands.

        Args:
            stepped: the machine.
            console: its console.
            most: bytes of memory for the past.
        """
        self._stepped, self._console = stepped, console
        self._kept = MachineCheckpoints(stepped, console, most)
        self.newest = stepped.moment
        self.newest_time = stepped.machine.clock.now

    @property
    def whole(self) -> bool:
        """False where more was typed than is kept: the machine would not do the same again."""
        return self._console.whole

    @property
    def oldest(self) -> MachineMoment:
        """The first moment that there is a way back to."""
        return self._kept.first

    def go(self) -> bool:
        """Run on; see `SteppedMachine.go`."""
        stepped = self._stepped
        while True:
            until = self._kept.latest.blocks + self._kept.distance
            hit = stepped.go(until)
            self._come()
            if hit or stepped.end is not None or stepped.moment.blocks < until:
                return hit
            if stepped.machine.waits:  # somebody has interrupted it; what it waits for is not kept
                return hit
            self._kept.keep()

    def step(self) -> None:
        """Execute one instruction."""
        self._stepped.step()
        self._come()

    def changed(self) -> None:
        """The machine was changed by hand: nothing in front of this moment leads to it."""
        self._console.begin_again()
        self._kept.begin_again()
        self.newest = self._stepped.moment
        self.newest_time = self._stepped.machine.clock.now

    def seek(self, moment: MachineMoment) -> None:
        """Go to a moment between `oldest` and `newest`; an interrupt ends on the way."""
        stepped = self._stepped
        here = stepped.moment
        if stepped.end is not None or not self._kept.before(moment) <= here <= moment:
            self._kept.go_back(moment)
        while stepped.moment < moment:
            if not self._towards(moment, stops=False):
                return

    def run_to(self, moment: MachineMoment, goes_on: Callable[[], bool]) -> None:
        """Run on to a moment that may be a new one, whatever stops there are.

        Args:
            moment: the moment; or the end of the boot.
            goes_on: asked now and then; False ends the run.
        """
        stepped = self._stepped
        while stepped.moment < moment and stepped.end is None:
            self._run_on(moment.blocks)
            if not goes_on():
                return

    def run_to_time(self, time: int, goes_on: Callable[[], bool]) -> None:
        """Run on to a time that may be a new one; see `run_to`.

        Args:
            time: in nanoseconds since power-on.
            goes_on: asked now and then; False ends the run.
        """
        stepped, machine = self._stepped, self._stepped.machine
        machine.look_at(time, machine.pause)
        try:
            while machine.clock.now < time and stepped.end is None:
                self._run_on(NEVER)
                if not goes_on():
                    return
        finally:
            machine.look_at(NO_EVENT, lambda: None)

    def _run_on(self, until: int) -> None:
        """Run on for a while, and keep a moment where one is due."""
        stepped, due = self._stepped, self._kept.latest.blocks + self._kept.distance
        until = min(until, due)
        if stepped.moment.steps or stepped.moment.blocks >= until:
            stepped.step()
        else:
            stepped.run(until)
        self._come()
        if stepped.moment.blocks >= due and not stepped.machine.waits:
            self._kept.keep()

    def _come(self) -> None:
        """Note where the machine has come to."""
        if self._stepped.moment >= self.newest:
            self.newest = self._stepped.moment
            self.newest_time = self._stepped.machine.clock.now

    def seek_time(self, time: int) -> None:
        """Go to the front of the block in which a time comes; an interrupt ends on the way.

        Args:
            time: in nanoseconds since power-on; behind the newest moment that one is meant.
        """
        stepped, machine = self._stepped, self._stepped.machine
        start = self._kept.before_time(time - 1)
        if stepped.end is not None or not start <= stepped.moment or machine.clock.now >= time:
            self._kept.go_back(start)
        machine.look_at(time, machine.pause)
        try:
            while machine.clock.now < time and stepped.moment < self.newest:
                if not self._towards(self.newest, stops=False):
                    break
        finally:
            machine.look_at(NO_EVENT, lambda: None)

    def step_back(self) -> bool:
        """Go back by one instruction; False at the beginning.

        The machine stands in front of an access to watched data then, if the instruction made one.
        """
        stepped = self._stepped
        here = stepped.moment
        if here <= self.oldest:
            return False
        before = MachineMoment(here.blocks, here.steps - 1)
        if not here.steps:
            self.seek(max(self.oldest, MachineMoment(here.blocks - 1)))
            before = stepped.moment
            while stepped.moment < here:
                before = stepped.moment
                stepped.step()
        self.seek(before)
        if stepped.watches_data:
            stepped.step()
            self._stand_before(before, stepped.accessed)
        return True

    def go_back(self) -> bool:
        """Go back to the last place before this moment where the machine is to stop.

        From an access to watched data the machine stands in front of the instruction then: what
        it has stored is not there yet.

        Returns:
            False where there is none: the machine stands at the oldest moment then, or, where
            somebody has interrupted it, where it has stood.
        """
        stepped = self._stepped
        end = here = stepped.moment
        while end > self.oldest:
            start = self._kept.before(_earlier(end))
            self._kept.go_back(start)
            found = stepped.moment if stepped.stopped_at else None
            access: DataAccess | None = None
            while stepped.moment < end:
                before = stepped.moment
                if not self._towards(end, stops=True):
                    self.seek(here)
                    return False
                if stepped.accessed is not None and not stepped.stands_before:
                    found, access = before, stepped.accessed
                if stepped.moment < end and (stepped.stopped_at or stepped.stands_before):
                    found, access = stepped.moment, stepped.accessed
            if found is not None:
                self._stand_before(found, access)
                return True
            end = start
        self.seek(end)
        return False

    def _towards(self, moment: MachineMoment, *, stops: bool) -> bool:
        """Run towards a later moment; False if somebody has interrupted the machine.

        Args:
            moment: which is not passed.
            stops: stop where the machine is to stop; otherwise only at the moment's block.
        """
        stepped = self._stepped
        before = stepped.moment
        if before.blocks == moment.blocks or before.steps or (stops and stepped.stands_before):
            stepped.step()
        elif stops:
            stepped.go(moment.blocks, before=True)
            return stepped.moment != before or stepped.stands_before
        else:
            stepped.run(moment.blocks)
        return stepped.moment != before

    def _stand_before(self, moment: MachineMoment, access: DataAccess | None) -> None:
        """Go to a moment in front of an access, if there was one."""
        self.seek(moment)
        if self._stepped.moment == moment:
            self._stepped.accessed = access
            self._stepped.stands_before = access is not None


def _earlier(moment: MachineMoment) -> MachineMoment:
    """A moment before one that is no block later."""
    if moment.steps:
        return MachineMoment(moment.blocks, moment.steps - 1)
    return MachineMoment(moment.blocks - 1, 1 << 30)
