"""Calls that code in the guest records and ends, brought in line with `pending_calls`.

Detours on functions' entries and on the places that calls return to keep a stack of records in
memory that they share with the engine (`engine.arch.recording.CallWord`), as the kernel's
fgraph keeps its shadow stack. What they do without the engine is the plain case: a call whose
frame lies below all that are pending, on the same stack, and the return of the newest call. All
else traps. Where a place can have no detour the engine does the same at its breakpoint (`record`,
`take`). Before the engine looks at any pending call it takes over what has happened since
(`sync`): records that are new become instances, instances whose records are gone have returned.
Afterwards `entered` and `returned` bring the records in line with what the engine has done.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from engine.arch.recording import CALLS, CHAINED, LOWEST, SITE_SHIFT, SITES, CallEntry, CallWord
from engine.probes.callframes import CallFrame, CallFrames
from engine.probes.callnumbers import CallNumbers
from engine.probes.kretprobe import Kretprobe, KretprobeInstance
from engine.probes.pending_calls import PendingCalls

RECORDS: Final = 512
"""Records that there is room for, the lowest one not being a call's."""
_NEVER: Final = (1 << 63) - 1
_WORDS: Final = int(CallWord.SIZE)
_BYTES: Final = _WORDS * 8
_LAST: Final = (RECORDS - 1) * _BYTES
_NEWEST: Final = CALLS // 8
_LOWEST: Final = LOWEST // 8
_SAVED: Final = max(CALLS, LOWEST) + 8
_ALL: Final = (1 << 64) - 1
_BELOW: Final = struct.Struct("<QQ16xQ")
"""CallFrame, return and depth."""
_CALL: Final = struct.Struct("<6Q")
"""CallFrame, return, kind, time, depth and function."""


class CallMemory(Struct, frozen=True):
    """Memory that is shared with the guest.

    Attributes:
        save: words of the save area.
        records: words of the records.
        start: guest address of those.
        sites: words of the table of watched addresses.
    """

    save: "memoryview[int]"
    records: "memoryview[int]"
    start: int
    sites: "memoryview[int]"


class Newest(NamedTuple):
    """A call in a record.

    Attributes:
        probe: whose it is.
        time: when it began.
        depth: see `CallWord.DEPTH`.
        chained: whether the record below is of the same frame.
        offset: of the record.
    """

    probe: Kretprobe
    time: int
    depth: int
    chained: bool
    offset: int


class GuestCalls:
    """The calls of one guest's thread.

    Attributes:
        live: whether there is code in the guest that deals with calls.
        damaged: calls lost, at least, as the guest had written something there that cannot be.
        numbers: of the probes whose calls code may deal with.
    """

    def __init__(
        self, stack_at: Callable[[int], tuple[int, int] | None], pending: PendingCalls
    ) -> None:
        """No code deals with calls yet.

        Args:
            stack_at: see `engine.probes.target.ProbeTarget`.
            pending: the calls.
        """
        self.live = False
        self.damaged = 0
        self.numbers = CallNumbers()
        self._stack_at = stack_at
        self._pending = pending
        self._frames = CallFrames(pending.elsewhere)
        self._shared: CallMemory | None = None
        self._save = self._records = self._sites = memoryview(b"").cast("Q")
        self._start = 0
        self._stack = (0, 0)
        self._away: memoryview | None = None  # stands for the save area meanwhile

    def drop(self, probes: Iterable[Kretprobe]) -> None:
        """Probes are gone, and so are their calls."""
        self.numbers.drop(probes)
        self.reset()

    def begin(self, shared: CallMemory) -> None:
        """There is going to be code that deals with calls."""
        if self._shared is not None:
            return
        self._shared = shared
        self._save = shared.save if self._away is None else self._away
        self._records, self._sites = shared.records, shared.sites
        self._start = shared.start
        self.live = True
        for address in self._pending.places():
            self.watch(address)
        self.reset()

    def watch(self, address: int) -> None:
        """Returns to an address are caught from now on."""
        if self.live:
            self._sites[(address >> SITE_SHIFT) % SITES] = address

    def forget(self, address: int | None = None) -> None:
        """Forget the place of a call; None for all places."""
        if not self.live:
            return
        if address is None:
            for at in range(SITES):
                self._sites[at] = 0
        elif self._sites[at := (address >> SITE_SHIFT) % SITES] == address:
            self._sites[at] = 0

    # -- the plain case at a breakpoint -----------------------------------------------------

    def record(
        self, entry: CallEntry, slot: int, ret_addr: int, time: int, kept: Sequence[int]
    ) -> int | None:
        """Record a call as code would.

        Args:
            entry: what code would do.
            slot: frame of the call.
            ret_addr: where it returns to; that is watched.
            time: of the clock.
            kept: what is captured.

        Returns:
            Its depth, None where the engine has to look closer.
        """
        save, records = self._save, self._records
        offset = save[_NEWEST] - self._start
        if not 0 <= offset < _LAST or offset % _BYTES:
            return None
        frame, to, below = _BELOW.unpack_from(records, offset)
        kind = entry.number << 32 | entry.kind
        if not save[_LOWEST] <= slot < frame:
            if slot != frame or to != ret_addr or self._pending.called(ret_addr):
                return None
            kind |= CHAINED
        depth: int = below + entry.deeper & _ALL
        at = offset + _BYTES
        _CALL.pack_into(records, at, slot, ret_addr, kind, time, depth, entry.function)
        for index, value in enumerate(kept):
            records[(at >> 3) + CallWord.KEPT + index] = value
        save[_NEWEST] += _BYTES
        return depth

    def newest(self, slot: int, address: int) -> Newest | None:
        """The newest call, if these are its frame and return, and it is in a record only."""
        offset = self._save[_NEWEST] - self._start
        if not len(self._frames.window) * _BYTES < offset <= _LAST or offset % _BYTES:
            return None
        frame, to, kind, time, depth, _ = _CALL.unpack_from(self._records, offset)
        if frame != slot or to != address:
            return None
        probe = self.numbers.probe(kind)
        return Newest(probe, time, depth, bool(kind & CHAINED), offset) if probe else None

    def take(self, newest: Newest) -> tuple[int, ...]:
        """The newest call has returned: what was captured."""
        probe, offset = newest.probe, newest.offset
        self._save[_NEWEST] -= _BYTES
        count = len(probe.call.kept) if probe.call is not None else 0
        at = (offset >> 3) + CallWord.KEPT
        return tuple(self._records[at : at + count]) if count else ()

    # -- taking over ----------------------------------------------------------------------

    def sync(self) -> None:
        """Take over what code in the guest has done."""
        if not self.live:
            return
        offset = self._save[_NEWEST] - self._start
        count = offset // _BYTES
        if offset % _BYTES or not 0 <= count < RECORDS:
            self._damage(1)
            return
        window, records = self._frames.window, self._records
        same = min(count, len(window))
        while same and window[same - 1].time != records[same * _WORDS + CallWord.TIME]:
            same -= 1
        for frame in reversed(window[same:]):
            if frame.instance is not None:
                self._pending.ended(frame.instance)
        del window[same:]
        for number in range(same + 1, count + 1):
            if not self._bring(number):
                self._damage(count - number + 1)
                return

    def _bring(self, number: int) -> bool:
        """A new record becomes an instance; False if it cannot be one."""
        at = number * _WORDS
        record = self._records[at : at + _WORDS]
        kind, slot, time = (record[at] for at in (CallWord.KIND, CallWord.FRAME, CallWord.TIME))
        if not self.numbers.knows(kind) or not self._aligned(slot, number):
            return False
        probe = self.numbers.probe(kind)
        if probe is None or probe.call is None:  # it has gone while its detour ran
            self._frames.window.append(CallFrame(slot, time, None))
            return True
        instance = KretprobeInstance(probe, record[CallWord.RETURN], slot)
        if probe.tracker is not None:
            instance.data = time, record[CallWord.DEPTH]
        elif probe.capture is not None:
            kept = len(probe.call.kept)
            instance.entry = tuple(record[CallWord.KEPT : CallWord.KEPT + kept])
        self._frames.window.append(CallFrame(slot, time, instance))
        return self._pending.brought(instance)

    def _aligned(self, slot: int, number: int) -> bool:
        """True if a record's frame lies below the one before it, or is it, as code makes them."""
        before = self._records[(number - 1) * _WORDS + CallWord.FRAME]
        chained = self._records[number * _WORDS + CallWord.KIND] & CHAINED
        return slot < before or (slot == before and chained != 0)

    def _damage(self, lost: int) -> None:
        """The guest has written to the records: what they said is lost, and code rests."""
        self.damaged += lost
        self.live = False
        self._rest()

    # -- bringing the records in line -----------------------------------------------------

    def entered(
        self, slot: int, newest: KretprobeInstance | None = None, *, followed: bool = False
    ) -> None:
        """The engine has dealt with an entry in a frame.

        Args:
            slot: the frame.
            newest: the newest call that is pending there now.
            followed: a tracker follows the call although no return is waited for.
        """
        if not self.live:
            return
        frames = self._frames
        frames.enter(slot, newest.ret_addr if newest is not None else 0)
        bounds = self._look_at_stack(slot)
        if bounds is None:
            if newest is not None:
                frames.put_aside(slot)
            self._rest()
            return
        depth = bounds[2]
        if not frames.window:
            made = followed or _followed(newest)
            self._ground(slot, bounds, depth - made)
        if newest is not None or followed:
            self._push(newest, slot, depth - 1)
        self._publish(bounds)

    def returned(self, slot: int) -> None:
        """The engine has dealt with the return of the calls in a frame."""
        if not self.live:
            return
        self._frames.leave(slot)
        bounds = self._look_at_stack(slot)
        if bounds is None:
            self._rest()
            return
        if not self._frames.window:
            self._ground(slot, bounds, bounds[2])
        self._publish(bounds)

    def reset(self) -> None:
        """Any number of pending calls have come or gone: all are the engine's now."""
        if not self.live:
            return
        slots = {
            instance.slot
            for pending in self._pending.places().values()
            for instance in pending.values()
        }
        self._frames.reset(slots)
        self._rest()

    def leave_stack(self) -> None:
        """Leave the stack of a thread: code of the next one may not end its calls."""
        if self.live:
            self.sync()
            self._rest()

    def leave(self) -> None:
        """The processor leaves this address space; the save area serves another's code."""
        if self._away is None:
            self.leave_stack()
            self._away = self._save = memoryview(bytearray(_SAVED)).cast("Q")
            if self.live:
                self._rest()

    def enter(self) -> None:
        """The processor is in this address space again."""
        if self._away is not None:
            self._away = None
            if self._shared is not None:
                self._save = self._shared.save
            if self.live:
                self._rest()

    def _look_at_stack(self, slot: int) -> tuple[int, int, int] | None:
        """(start, end, depth) of the stack that a frame lies on; None where code must rest.

        Code may only end calls on the stack that the program runs on.
        """
        if self.numbers.tracker is not None:
            bounds = self.numbers.tracker.bounds(slot)
        else:
            stack = self._stack_at(slot)
            bounds = None if stack is None else (*stack, 0)
        if bounds is not None and bounds[:2] != self._stack:
            self._stack = bounds[:2]
            self._frames.spill()
        return bounds

    def _ground(self, slot: int, bounds: tuple[int, int, int], depth: int) -> None:
        """The lowest record, below all that are calls: where code has to stop."""
        self._records[CallWord.FRAME] = self._frames.above(slot, bounds[1])
        self._records[CallWord.DEPTH] = (depth - 1) & _ALL

    def _push(self, newest: KretprobeInstance | None, slot: int, depth: int) -> None:
        """A record for a frame that the engine has dealt with; code may end a single call."""
        window, words = self._frames.window, self._records
        if len(window) + 1 >= RECORDS:
            below = words[len(window) * _WORDS + CallWord.DEPTH]
            self._frames.spill()
            words[CallWord.FRAME], words[CallWord.DEPTH] = slot + 1, below
        at, time = (len(window) + 1) * _WORDS, 0
        words[at + CallWord.FRAME] = slot
        words[at + CallWord.DEPTH] = depth & _ALL
        words[at + CallWord.KIND] = words[at + CallWord.TIME] = 0
        if newest is not None and newest.next is None and not newest.gone:
            probe, kind = newest.rp, self.numbers.of(newest.rp)
            if kind and probe.call is not None:
                if probe.tracker is not None:
                    time = words[at + CallWord.TIME] = newest.data[0]
                else:
                    for index, value in enumerate(newest.entry or ()):
                        words[at + CallWord.KEPT + index] = value
                words[at + CallWord.RETURN] = newest.ret_addr
                words[at + CallWord.KIND] = kind
                words[at + CallWord.FUNCTION] = probe.call.function
        window.append(CallFrame(slot, time, newest))

    def _publish(self, bounds: tuple[int, int, int]) -> None:
        """Tell code how far it may go next."""
        top = len(self._frames.window) * _WORDS
        low = self._frames.below(self._records[top + CallWord.FRAME], bounds[0])
        self._save[_LOWEST] = low
        self._save[_NEWEST] = self._start + top * 8

    def _rest(self) -> None:
        """Code neither records nor ends a call."""
        self._frames.spill()
        self._stack = (0, 0)
        self._records[CallWord.FRAME] = self._records[CallWord.RETURN] = 0
        self._save[_LOWEST] = _NEVER
        self._save[_NEWEST] = self._start


def _followed(newest: KretprobeInstance | None) -> int:
    """Number of calls in a frame that a tracker follows."""
    count = 0
    while newest is not None:
        count += newest.rp.tracker is not None
        newest = newest.next
    return count
