"""Probes in a machine's kernel: what is called where its code comes to a place, or returns.

The processor tells of the places (`engine.cpu.unicorn_places`), so nothing is planted: the text
and the return addresses of the kernel stay as they are, whatever it does with them itself, and a
hit takes none of its time. A return is known by where it leads and by the stack pointer behind it.
Several calls that share a frame, as behind a tail call, return at once, the newest first, as
Linux's return probes do.
"""

import struct
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from msgspec import Struct

from engine.cpu.unicorn_places import LOWEST
from engine.cpu.unicorn_system import SystemCpu
from engine.errors import GuestFaultError
from engine.machine.addresses import KernelAddresses

WORD: Final = struct.Struct("<Q")
_KEPT: Final = 1 << 12
"""Places of returns that nothing waits for and that are still told."""
PENDING_MOST: Final = 1 << 16
"""Calls that are followed at a time, of all probes: no kernel has stacks for so many, but code has
that is led to a function again and again, with another stack pointer each time."""


class ReturnProbe(Struct, eq=False):
    """A return probe of a function.

    Attributes:
        capture: reads at the entry what the return records; None for nothing.
        returned: called at the return, with the address returned to and what `capture` gave.
        limit: calls that may be pending at a time; None for any number.
        hits: calls of the function.
        missed: those that were not followed, as so many were pending.
        pending: calls that have not returned yet.
    """

    capture: Callable[[], Any] | None
    returned: Callable[..., None]
    limit: int | None = None
    hits: int = 0
    missed: int = 0
    pending: int = 0


class _Followed(Struct, eq=False):
    """A call that is followed."""

    probe: ReturnProbe
    task: int
    leads_to: int
    entry: Any


class MachineProbes:
    """The probes of one machine."""

    def __init__(
        self,
        cpu: SystemCpu,
        addresses: KernelAddresses,
        task: Callable[[], int],
        trampolines: Collection[int] = (),
    ) -> None:
        """None yet.

        Args:
            cpu: the processor.
            addresses: the memory as its kernel sees it.
            task: tells tasks apart: a number for the one that runs. A call of one that is gone
                never returns, and its stack is another's then.
            trampolines: places that the kernel writes over return addresses itself.
        """
        self._addresses = addresses
        self._cpu, self._task, self._trampolines = cpu, task, trampolines
        self._load = addresses.reader(WORD)
        self._stack = cpu.reader(("rsp",))
        self._hits: dict[tuple[int, bool], list[Callable[[], None]]] = {}
        self._calls: dict[int, list[_Followed]] = {}  # by the address of the return address
        self._waiting: dict[int, int] = {}  # by the place of the return
        self._pending = 0

    def add(
        self, address: int, hit: Callable[[], None], *, begins: bool, last: bool = False
    ) -> None:
        """Have something called in front of an instruction that has not been executed yet.

        Of several at a place the newest is called first, as Linux does.

        Args:
            address: of the instruction.
            hit: called at each of its executions.
            begins: every way to the instruction is a jump, a call or a return: it is never
                fallen into from the one in front.
            last: call it behind those that are there already.
        """
        hits = self._hits.get((address, begins))
        if hits is not None:
            hits.insert(len(hits) if last else 0, hit)
            return
        found = self._hits[address, begins] = [hit]
        if not begins:
            self._cpu.places.tell_instruction(address, lambda: self._hit(found))
        elif address in self._waiting:
            self._cpu.places.tell_block(address, lambda: self._came(address, found))
        else:
            self._cpu.places.tell_block(address, lambda: self._hit(found))

    def remove(self, address: int, hit: Callable[[], None], *, begins: bool) -> None:
        """Call something no longer that was given to `add` in the same way."""
        hits = self._hits[address, begins]
        hits.remove(hit)
        if begins and not hits and address not in self._waiting:
            del self._hits[address, begins]
            self._cpu.places.forget_block(address)

    def entry_of(self, probe: ReturnProbe) -> Callable[[], None]:
        """Return a function for `add` that follows the calls of what is entered there.

        Args:
            probe: what is done at its returns.
        """
        return lambda: self._entered(probe)

    def add_return(self, address: int, probe: ReturnProbe, *, begins: bool) -> None:
        """Follow the calls of a function that has not been executed yet.

        Args:
            address: of the function.
            probe: what is done at its returns.
            begins: see `add`.
        """
        self.add(address, self.entry_of(probe), begins=begins)

    @property
    def unreturned(self) -> int:
        """Calls that have not returned."""
        return self._pending

    def _hit(self, hits: Sequence[Callable[[], None]]) -> None:
        self._addresses.forget()
        for hit in hits:
            hit()

    def _entered(self, probe: ReturnProbe) -> None:
        probe.hits += 1
        if probe.limit is not None and probe.pending >= probe.limit:
            self._forget_gone()
            if probe.pending >= probe.limit:
                probe.missed += 1
                return
        if self._pending >= PENDING_MOST:
            self._make_room()
        (slot,) = self._stack()
        try:
            (leads_to,) = self._load(slot)
        except GuestFaultError:  # without a stack it cannot return
            leads_to = 0
        if leads_to < LOWEST:
            probe.missed += 1
            return
        task = self._task()
        before = self._calls.get(slot)
        if before is not None and leads_to in self._trampolines:  # a tail call of one it follows
            leads_to = before[0].leads_to
        if before is not None and (before[0].task, before[0].leads_to) != (task, leads_to):
            self._drop(slot)  # they never returned, and the stack is used anew
            before = None
        entry = probe.capture() if probe.capture is not None else None
        call = _Followed(probe, task, leads_to, entry)
        probe.pending += 1
        self._pending += 1
        if before is not None:
            before.insert(0, call)
            return
        self._calls[slot] = [call]
        count = self._waiting.get(leads_to)
        if count is None:
            hits = self._hits.get((leads_to, True), ())
            self._cpu.places.tell_block(leads_to, lambda: self._came(leads_to, hits))
        self._waiting[leads_to] = (count or 0) + 1

    def _came(self, leads_to: int, hits: Sequence[Callable[[], None]]) -> None:
        """The code has come to where some call returns to, and may be probed itself."""
        self._addresses.forget()
        self._return(leads_to)
        for hit in hits:
            hit()

    def _return(self, leads_to: int) -> None:
        (sp,) = self._stack()
        calls = self._calls.get(sp - WORD.size)
        if calls is None or calls[0].leads_to != leads_to:
            return
        if calls[0].task != self._task():
            return
        self._drop(sp - WORD.size)
        for call in calls:
            probe = call.probe
            if probe.capture is None:
                probe.returned(leads_to)
            else:
                probe.returned(leads_to, call.entry)

    def _drop(self, slot: int) -> None:
        calls = self._calls.pop(slot)
        self._pending -= len(calls)
        for call in calls:
            call.probe.pending -= 1
        leads_to = calls[0].leads_to
        self._waiting[leads_to] -= 1
        if not self._waiting[leads_to] and len(self._waiting) > _KEPT:
            idle = [place for place, count in self._waiting.items() if not count]
            for place in idle:
                if (place, True) not in self._hits:
                    del self._waiting[place]
                    self._cpu.places.forget_block(place)

    def _make_room(self) -> None:
        """Follow the older half of the calls no longer: their probes have missed them."""
        self._forget_gone()
        for slot, calls in list(self._calls.items()):
            if self._pending <= PENDING_MOST // 2:
                return
            for call in calls:
                call.probe.missed += 1
            self._drop(slot)

    def _forget_gone(self) -> None:
        """Forget calls whose frames are gone: their return addresses are no longer there."""
        for slot, calls in list(self._calls.items()):
            try:
                (word,) = self._load(slot)
            except GuestFaultError:
                word = 0
            if word != calls[0].leads_to and word not in self._trampolines:
                self._drop(slot)
