"""The frames of pending calls, in the order that code in the guest relies on.

They are in three places: in the window, where code may end their calls; above it, in order, for
the engine alone; and aside: on other stacks, or left without a return. Between two frames of the
window, and below it down to where code may go, no frame is aside: so a new one there cannot stand
in the place of an old one.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable

from msgspec import Struct

from engine.probes.kretprobe import KretprobeInstance


class CallFrame(Struct, eq=False):
    """One that has a record.

    Attributes:
        slot: see `engine.probes.kretprobe.KretprobeInstance.slot`.
        time: of the record.
        instance: the newest of its calls; None: no return of it is waited for.
    """

    slot: int
    time: int
    instance: KretprobeInstance | None


class CallFrames:
    """The pending frames of a thread.

    Attributes:
        window: those that have records, the newest last.
        elsewhere: (frame, address): whether a call is pending there that returns to another one.
    """

    def __init__(self, elsewhere: Callable[[int, int], bool]) -> None:
        """None are pending."""
        self.window: list[CallFrame] = []
        self.elsewhere = elsewhere
        self._outer: list[int] = []
        self._aside: list[int] = []
        self._several: set[int] = set()  # frames of calls that return to different places

    def reset(self, slots: Iterable[int]) -> None:
        """These are pending; nothing is known of their order."""
        self.window, self._outer, self._aside = [], [], sorted(slots)
        self._several = set(self._aside)

    # -- frames come and go ---------------------------------------------------------------

    def leave_below(self, slot: int) -> None:
        """Frames below one are on another stack, or were left without a return."""
        while self.window and self.window[-1].slot < slot:
            frame = self.window.pop()
            if frame.instance is not None:
                self.put_aside(frame.slot)
        while not self.window and self._outer and self._outer[-1] < slot:
            self.put_aside(self._outer.pop())

    def enter(self, slot: int, address: int) -> None:
        """Calls that return to an address begin in a frame: what was known of it is not so now."""
        self.leave_below(slot)
        if self._take(slot):
            self._keep(slot, address)
        at = bisect_left(self._aside, slot)
        if self.window and at < len(self._aside) and self._aside[at] < self.window[-1].slot:
            self.spill()  # none may lie between two that code can end

    def leave(self, slot: int) -> None:
        """The calls of a frame have returned."""
        if not self._take(slot):
            self.leave_below(slot)
            self._take(slot)
        if slot in self._several:
            self._keep(slot, 0)

    def put_aside(self, slot: int) -> None:
        """A frame is pending, and has no place in the order."""
        if not self._is_aside(slot):
            insort(self._aside, slot)

    def spill(self) -> None:
        """The frames that code could end are the engine's alone."""
        for frame in self.window:
            if frame.instance is not None and frame.slot not in self._outer[-1:]:
                self._outer.append(frame.slot)
        self.window.clear()

    def _take(self, slot: int) -> bool:
        """Nothing is pending in a frame any more; whether anything was."""
        if self.window:
            found = False
            while self.window and self.window[-1].slot == slot:
                self.window.pop()
                found = True
            if found:
                return True
        elif self._outer and self._outer[-1] == slot:
            self._outer.pop()
            return True
        if self._is_aside(slot):
            del self._aside[bisect_left(self._aside, slot)]
            return True
        return False

    def _keep(self, slot: int, address: int) -> None:
        """Calls that return elsewhere may still be pending in a frame; never where calls push."""
        if not self.elsewhere(slot, address):
            self._several.discard(slot)
            return
        self._several.add(slot)
        self.put_aside(slot)

    def _is_aside(self, slot: int) -> bool:
        at = bisect_left(self._aside, slot)
        return at < len(self._aside) and self._aside[at] == slot

    # -- how far code may go --------------------------------------------------------------

    def above(self, slot: int, high: int) -> int:
        """The end of the free room around a frame that has none of the window above it.

        Args:
            slot: the frame.
            high: end of its stack.
        """
        if self._outer:
            high = min(high, self._outer[-1])
        at = bisect_left(self._aside, slot)
        return min(high, self._aside[at]) if at < len(self._aside) else high

    def below(self, slot: int, low: int) -> int:
        """The beginning of the free room below a frame; `low` is that of its stack."""
        at = bisect_left(self._aside, slot)
        return max(low, self._aside[at - 1] + 1) if at else low
