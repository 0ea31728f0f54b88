"""The past of a booted machine: any moment again, steps and runs backwards.

A machine has no other input than its console, and its time is counted: from a moment that was kept
it does the same again. What is changed by hand begins another history.
"""

from engine.machine.consolelog import ConsoleLog
from engine.machine.stepping import MachineMoment, SteppedMachine
from engine.session.machine.checkpoints import DEFAULT_BYTES, MachineCheckpoints


class MachinePast:
    """Moves a machine to and fro.

    Attributes:
        newest: the latest moment that the machine has come to.
    """

    def __init__(
        self, stepped: SteppedMachine, console: ConsoleLog, most: int = DEFAULT_BYTES
    ) -> None:
        """Begin where the machine stands.

        Args:
            stepped: the machine, without disks.
            console: its console.
            most: bytes of memory for the past.
        """
        self._stepped, self._console = stepped, console
        self._kept = MachineCheckpoints(stepped, console, most)
        self.newest = stepped.moment

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
            self.newest = max(self.newest, stepped.moment)
            if hit or stepped.end is not None or stepped.moment.blocks < until:
                return hit
            self._kept.keep()

    def step(self) -> None:
        """Execute one instruction."""
        self._stepped.step()
        self.newest = max(self.newest, self._stepped.moment)

    def changed(self) -> None:
        """The machine was changed by hand: nothing in front of this moment leads to it."""
        self._console.begin_again()
        self._kept.begin_again()
        self.newest = self._stepped.moment

    def seek(self, moment: MachineMoment) -> None:
        """Go to a moment between `oldest` and `newest`; an interrupt ends on the way."""
        stepped = self._stepped
        here = stepped.moment
        if stepped.end is not None or not self._kept.before(moment) <= here <= moment:
            self._kept.go_back(moment)
        while stepped.moment < moment:
            if not self._towards(moment, stops=False):
                return

    def step_back(self) -> bool:
        """Go back by one instruction; False at the beginning."""
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
        return True

    def go_back(self) -> bool:
        """Go back to the last place before this moment where the machine is to stop.

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
            while stepped.moment < end:
                if not self._towards(end, stops=True):
                    self.seek(here)
                    return False
                if stepped.moment < end and stepped.stopped_at:
                    found = stepped.moment
            if found is not None:
                self.seek(found)
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
        if before.blocks == moment.blocks or before.steps:
            stepped.step()
        elif stops:
            stepped.go(moment.blocks)
        else:
            stepped.run(moment.blocks)
        return stepped.moment != before


def _earlier(moment: MachineMoment) -> MachineMoment:
    """A moment before one that is no block later."""
    if moment.steps:
        return MachineMoment(moment.blocks, moment.steps - 1)
    return MachineMoment(moment.blocks - 1, 1 << 30)
