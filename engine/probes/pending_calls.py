"""Calls that have not returned yet, by where they return to and by their frames."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from engine.arch.machine import OUTSIDE
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe, KretprobeInstance

_WORD: Final = 8
"""Bytes of a word of the stacks that move."""


class SiteCalls(dict[int, KretprobeInstance]):
    """Calls that return to one place, by the stack pointer after the return.

    (Or by what tells activations apart, see `engine.arch.returns.FrameKeys`.)

    They are chains where several probes or a tail call share a frame, the newest first.
    """

    __slots__ = ()


class LiftedCall(Struct, frozen=True):
    """A frame's pending calls, taken from their place for a time.

    Attributes:
        pending: the calls that they belong to.
        key: of the frame.
        newest: the newest of them.
    """

    pending: SiteCalls
    key: int
    newest: KretprobeInstance


NOWHERE: Final = SiteCalls()
"""Of a place that cannot be watched."""


class ReturnSite(Kprobe):
    """The engine's own probe on an address that watched calls return to.

    Attributes:
        pending: the calls.
        last: the probe whose call has returned there last.
        known: two words for the ends of the instructions that calls have returned by last, where
            code in the guest compares them.
    """

    machinery = True

    __slots__ = ("known", "last", "pending")

    def __init__(self, address: int) -> None:
        super().__init__(addr=address, name=f"return to {address:#x}")
        self.pending = SiteCalls()
        self.last: Kretprobe | None = None
        self.known: memoryview[int] | None = None


def chain(instance: KretprobeInstance | None) -> Iterable[KretprobeInstance]:
    """The calls of one frame, the newest first."""
    while instance is not None:
        yield instance
        instance = instance.next


def drop(instance: KretprobeInstance | None) -> None:
    """The calls of a frame were left without a return."""
    while instance is not None:
        instance.rp.active -= 1
        instance.rp.left += 1
        instance.gone = True
        instance = instance.next


class PendingCalls:
    """The pending calls of `return_sites.ReturnSites`; their keys: see `SiteCalls`.

    Attributes:
        sites: the watched places, by address.
        by_return: the calls that return to an address; `NOWHERE` where none can be watched for.
        frames: where calls push, by key: the calls among which the frame's one is.
    """

    def __init__(self, left: Sequence[int], unit: int, behind: int, *, stacked: bool) -> None:
        """No call waits.

        Args:
            left: `engine.cpu.base.Cpu.last_branches`.
            unit: the architecture's `code_unit`.
            behind: what a key is above the stack pointer at the entry.
            stacked: whether calls push the return address.
        """
        self.sites: dict[int, ReturnSite] = {}
        self.by_return: dict[int, SiteCalls] = {}
        self.frames: dict[int, SiteCalls] = {}
        self._left = left
        self._unit = unit
        self._behind = behind
        self._stacked = stacked

    # -- places ---------------------------------------------------------------------------

    def add(self, site: ReturnSite) -> SiteCalls:
        """A place is watched."""
        address = site.addr or 0
        self.sites[address] = site
        self.by_return[address] = site.pending
        return site.pending

    def add_nowhere(self, address: int) -> SiteCalls:
        """A place cannot be watched."""
        self.by_return[address] = NOWHERE
        return NOWHERE

    def forget(self, address: int) -> None:
        """The code of a watched place is gone."""
        site = self.sites.pop(address, None)
        self.by_return.pop(address, None)
        if site is not None:
            for instance in site.pending.values():
                for call in chain(instance):
                    # It may return there once code is there again. A process that begins as a
                    # copy and unmaps all that has no use for its calls.
                    call.rp.unwatched += not call.copied
                drop(instance)
            site.pending.clear()

    def keep_pending(self) -> list[ReturnSite]:
        """Only places where calls wait stay; those that do not."""
        gone = [site for site in self.sites.values() if not site.pending]
        self.sites = {address: site for address, site in self.sites.items() if site.pending}
        self.by_return.clear()
        self.by_return.update((at, site.pending) for at, site in self.sites.items())
        if not self.sites:
            self.frames.clear()
        return gone

    # -- frames ---------------------------------------------------------------------------

    def clear(self, pending: SiteCalls, key: int, ret_addr: int) -> None:
        """A frame begins: what is pending in its place is gone, but for a tail call's caller."""
        older = pending.get(key)
        if older is not None and self.called(ret_addr):
            drop(pending.pop(key))
        if self._stacked:
            before = self.frames.get(key)
            if before is not pending:
                self.frames[key] = pending
                if before is not None:
                    drop(before.pop(key, None))

    def called(self, address: int) -> bool:
        """True if the guest has come by a call that returns to an address.

        Or the kernel, which has entered a handler.
        """
        one, two = self._left[0], self._left[1]
        unit = self._unit
        return address in (one + -one % unit, two + -two % unit) or two == OUTSIDE

    @property
    def came_from(self) -> int:
        """Address behind the last instruction from which control went elsewhere; 0: not known."""
        return self._left[0]

    @staticmethod
    def link(pending: SiteCalls, key: int, made: Iterable[KretprobeInstance]) -> None:
        """Calls begin in a frame, in the order in which they are chained."""
        older = pending.get(key)
        for instance in made:
            instance.next = older
            older = pending[key] = instance

    def sweep(self, lowest: int, here: int) -> None:
        """Frames between two keys are gone, the upper one included where calls push."""
        for site in self.sites.values():
            gone = [key for key in site.pending if lowest < key <= here]
            for key in gone:
                if key < here or self._stacked:
                    drop(site.pending.pop(key))

    # -- stacks that move -----------------------------------------------------------------

    def lift(self, low: int, high: int) -> list[LiftedCall]:
        """Take the calls of the frames on a stack from their places, until they are `put`.

        Args:
            low: bounds of the stack.
            high: see there.
        """
        found: list[LiftedCall] = []
        for site in self.sites.values():
            pending = site.pending
            for key in self._keys(pending, low, high):
                found.append(LiftedCall(pending, key, pending.pop(key)))
                if self._stacked:
                    self.frames.pop(key, None)
        return found

    def put(self, lifted: Iterable[LiftedCall], distance: int) -> None:
        """Put calls back, in frames that are so much higher now."""
        for one in lifted:
            key = one.key + distance
            drop(one.pending.get(key))
            one.pending[key] = one.newest
            if self._stacked:
                self.frames[key] = one.pending
            for call in chain(one.newest):
                call.slot += distance

    def drop(self, low: int, high: int) -> int:
        """The calls of the frames of a part of a stack were left; the number of frames."""
        lifted = self.lift(low, high)
        for one in lifted:
            drop(one.newest)
        return len(lifted)

    @staticmethod
    def _keys(pending: SiteCalls, low: int, high: int) -> list[int]:
        """Find the keys of calls on a part of a stack; frames are whole words of it."""
        if len(pending) * _WORD <= high - low:
            return [key for key in pending if low < key <= high]
        return [key for key in range(low + _WORD, high + 1, _WORD) if key in pending]

    def purge(self, probes: set[Kretprobe]) -> None:
        """Calls of some probes return unseen."""
        for site in self.sites.values():
            for key, instance in list(site.pending.items()):
                kept = [one for one in chain(instance) if one.rp not in probes]
                for one, after in zip(kept, [*kept[1:], None], strict=False):
                    one.next = after
                if kept:
                    site.pending[key] = kept[0]
                else:
                    del site.pending[key]

    def waits(self, address: int, slot: int) -> bool:
        """True if a call is pending in a frame that returns to an address."""
        site = self.sites.get(address)
        return site is not None and slot + self._behind in site.pending

    # -- what code in the guest has done --------------------------------------------------

    def places(self) -> dict[int, SiteCalls]:
        """The watched addresses and the calls pending there."""
        return {at: site.pending for at, site in self.sites.items()}

    def brought(self, instance: KretprobeInstance) -> bool:
        """A call was made; False if its return is not watched for."""
        pending = self.by_return.get(instance.ret_addr)
        if pending is None or pending is NOWHERE:
            return False
        key = instance.slot + self._behind
        instance.next = pending.get(key)
        pending[key] = instance
        if self._stacked:
            self.frames[key] = pending
        instance.rp.active += 1
        if instance.rp.tracker is not None:
            instance.rp.tracker.brought(instance)
        return True

    def ended(self, instance: KretprobeInstance) -> None:
        """Take note that a call has returned, and that this is recorded."""
        pending, key = self.by_return[instance.ret_addr], instance.slot + self._behind
        if instance.next is None:
            pending.pop(key, None)
        else:
            pending[key] = instance.next
        instance.rp.active -= 1
        if instance.rp.tracker is not None:
            instance.rp.tracker.ended(instance)

    def elsewhere(self, slot: int, address: int) -> bool:
        """True if a call is pending in a frame that returns to another address than this."""
        if self._stacked:
            return False
        key = slot + self._behind
        return any(key in site.pending for at, site in self.sites.items() if at != address)
