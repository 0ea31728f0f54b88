"""A machine that is stopped and stepped: places and data where it stops, instructions, moments.

Where a machine stands changes nothing of what it does: a block that was entered and left in the
middle is counted once, and what is due comes at the block where it would have come anyway.
"""

from collections.abc import Callable, Collection
from typing import Final

from msgspec import Struct

from engine.cpu.unicorn_system import NEVER
from engine.cpu.unicorn_watches import WRITE, DataAccess, DataRange, WatchedData
from engine.machine.machine import BareMachine, BootEnd, MachineEnd

STOPS_MOST: Final = 1 << 12
"""Places that a machine can have been told to stop at: each is a hook for good."""


class MachineMoment(Struct, frozen=True, order=True):
    """A moment of a boot: two boots alike are alike at each.

    Attributes:
        blocks: that are complete.
        steps: instructions of the next one that are complete.
    """

    blocks: int
    steps: int = 0


class MachineStand(Struct, frozen=True):
    """The place and the moment at which a machine stands.

    Attributes:
        moment: when.
        bounds: of the block that it stands in or in front of: address, and the one behind its end.
    """

    moment: MachineMoment
    bounds: tuple[int, int]


class SteppedMachine:
    """A machine that stands, moves, and stands again.

    Attributes:
        machine: the machine, which nobody else runs.
        end: how the boot has ended; None while it has not.
        accessed: the access to watched data that the last motion came upon: the last instruction
            has made it, or the next one will where `stands_before` is true; None for none.
        stands_before: the machine stands in front of that access.
    """

    def __init__(self, machine: BareMachine, count: Callable[[int, int], int]) -> None:
        """Stand where the machine stands, which has not run or was paused by `until`.

        Args:
            machine: the machine.
            count: number of instructions between two addresses of code.
        """
        self.machine = machine
        self.end: MachineEnd | None = None
        self._count = count
        self._hook = machine.cpu.stop_places(self._told)
        self._hooked: set[int] = set()
        self._stops: set[int] = set()
        self._watches = False
        self._data: WatchedData | None = None
        self._ranges: tuple[DataRange, ...] = ()
        self.accessed: DataAccess | None = None
        self.stands_before = self._steps_on = self._is_untold = False
        self._left = 0, 0
        self._hit = False
        self._steps = 0
        self._bounds = 0, 0
        self.settle()

    @property
    def moment(self) -> MachineMoment:
        """The moment at which the machine stands."""
        return MachineMoment(self.machine.cpu.record.blocks - bool(self._steps), self._steps)

    @property
    def stopped_at(self) -> bool:
        """True if the machine stands at a place where it was to stop."""
        return self.machine.cpu["rip"] in self._stops

    @property
    def stand(self) -> MachineStand:
        """The place at which the machine stands; set after it was put to another moment."""
        return MachineStand(self.moment, self._bounds)

    @stand.setter
    def stand(self, stand: MachineStand) -> None:
        self.end, self._steps, self._bounds = None, stand.moment.steps, stand.bounds
        self._forget_access()

    @property
    def watches_data(self) -> bool:
        """True while there is watched data."""
        return bool(self._ranges)

    def stop_at(self, addresses: set[int]) -> None:
        """Stop in front of these instructions from now on, and of no others.

        Raises:
            ValueError: these would be more than `STOPS_MOST` in the machine's life.
        """
        fresh = addresses - self._hooked
        if len(self._hooked) + len(fresh) > STOPS_MOST:
            raise ValueError(f"a machine stops at {STOPS_MOST} places at the most")
        for address in sorted(fresh):
            self._hook(address)
        self._hooked |= fresh
        self._stops = set(addresses)

    def watch(self, ranges: Collection[DataRange]) -> None:
        """Stop at accesses to these data from now on, and to no others.

        Raises:
            ValueError: these are too many.
            CommandError: this host, or this build of Unicorn, watches none.
        """
        if self._data is None:
            if not ranges:
                return
            self._data = self.machine.cpu.watch_data(self._told_of_data)
        wanted = tuple(sorted(ranges))
        self._data.put(wanted)
        self._ranges = wanted

    def settle(self) -> None:
        """Find the bounds of the block in front of which the machine stands."""
        self._steps = 0
        self.run(self.machine.cpu.record.blocks)

    def moved(self) -> None:
        """The machine was led elsewhere by hand: a block begins there."""
        self.machine.cpu.record.blocks -= bool(self._steps)
        self.settle()

    def step(self) -> None:
        """Execute one instruction; an interrupt that is due is delivered instead."""
        if self.end is not None:
            return
        self._forget_access()
        self._steps_on = True
        self._tell_data(on=True)
        try:
            self._step()
        finally:
            self._steps_on = False
            self._tell_data(on=False)

    def _step(self) -> None:
        machine, record = self.machine, self.machine.cpu.record
        before, within = machine.cpu["rip"], self._steps > 0
        complete = record.blocks - within
        bounds = self._bounds
        end = machine.step(within=within)
        if end.reason is BootEnd.PAUSED and record.blocks == complete:  # interrupted in front
            record.blocks += within
            return
        steps = self._steps + 1 if before < machine.cpu["rip"] < bounds[1] else 0
        if not steps or end.reason is not BootEnd.HALTED:  # by a number of blocks: behind this one
            self._take_end(end)
        self._steps = steps
        if steps:
            self._bounds = bounds

    def go(self, until: int = NEVER, *, before: bool = False) -> bool:
        """Run to the next place, or access to watched data, where the machine is to stop.

        Args:
            until: number of complete blocks to stop at in any case; no less than there are.
            before: stop in front of an access, not behind it.

        Returns:
            True at such a place or access; False where the number is reached, somebody has
            interrupted the machine, or the boot has ended.
        """
        while self.end is None:
            if not self._steps:
                if not self._run_on(until):
                    return False
                if before or not self.stands_before:
                    return True
            moment = self.moment
            self.step()
            if self.end is None and (self.stopped_at or self.accessed is not None):
                return True
            if moment == self.moment:
                return False
        return False

    def _run_on(self, until: int) -> bool:
        """Run from the front of a block to the next place, or in front of the next access."""
        machine, record = self.machine, self.machine.cpu.record
        is_untold = self._is_untold
        self._forget_access()
        if is_untold:
            self._left = 0, 0
        else:
            self._left = record.blocks + 1, machine.cpu["rip"]
        self._hit, self._watches = False, True
        self._tell_data(on=True)
        try:
            self._take_end(machine.run(until))
        finally:
            self._watches = False
            self._tell_data(on=False)
        self._is_untold = not self._hit  # nobody was told of a place at which it stands
        if self._hit:
            self.end = None  # of a number of blocks, which is reached behind this one
            at = machine.cpu["rip"]
            begin = self._bounds[0]
            if at == begin:
                record.blocks -= 1
            else:
                self._steps = self._count(begin, at)
        return self._hit

    def run(self, until: int) -> None:
        """Run from the front of a block until so many are complete, whatever stops there are."""
        self._is_untold = False
        self._take_end(self.machine.run(until))

    def _told(self, address: int) -> bool:
        if not self._watches or address not in self._stops:
            return False
        if self._left == (self.machine.cpu.record.blocks, address):
            return False
        self._hit = True
        self.machine.pause()
        return True

    def _told_of_data(self, access: DataAccess) -> bool:
        if not any(access.meets(one) for one in self._ranges):
            return False
        if self._steps_on:  # it is made: a store says more than the load in front of it
            if self.accessed is None or access.kinds & WRITE:
                self.accessed = access
            return False
        self.accessed, self.stands_before = access, True
        self._hit = True
        self.machine.pause()
        return True

    def _tell_data(self, *, on: bool) -> None:
        if self._data is not None:
            self._data.tell(on)

    def _forget_access(self) -> None:
        self.accessed, self.stands_before = None, False
        self._is_untold = False

    def _take_end(self, end: MachineEnd) -> None:
        record = self.machine.cpu.record
        self._bounds = record.begin, record.begin + record.size
        self.end = end if end.reason is not BootEnd.PAUSED else None
