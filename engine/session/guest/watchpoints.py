"""Watched bytes of a guest: in its first program, and in the copies that fork makes of it.

A watch is a set of ranges of addresses. Each address space in which it holds has machinery of
its own (`engine.guest.watched`); a new process gets its parent's, as it does with probes. A new
program (exec) begins without: what stood at those addresses is gone.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct, field

from engine.guest.watched import WatchedMemory, WatchedRange, WatchHit
from engine.linux import signals as sig
from engine.linux.space import AddressSpace
from engine.linux.thread import Thread
from engine.session.guest.loading import LoadedGuest

_SMALL: Final = 4096


class WatchEvent(Struct, frozen=True):
    """An access to watched bytes, with who made it.

    Attributes:
        hit: what was accessed.
        pc: the program's own address of the instruction; of the one behind a call.
        thread: in which it happened.
        by: what made it where that was no instruction: "read(0, 0x4040, 8)", "delivery of
            SIGUSR1"; else "".
    """

    hit: WatchHit
    pc: int
    thread: Thread
    by: str


class Watch(Struct, eq=False):
    """Bytes that somebody watches.

    Attributes:
        told: called behind each access, in the order in which they happen.
        ranges: where they are.
    """

    told: Callable[[WatchEvent], None]
    ranges: list[WatchedRange] = field(default_factory=list)


class Watchpoints:
    """The watches of a guest.

    Attributes:
        lost: told of watches whose program has been replaced by another one.
    """

    def __init__(self, guest: LoadedGuest) -> None:
        """Nothing is watched yet, and nothing costs anything."""
        self._guest = guest
        self._follows = guest.config.follow
        self._spaces: dict[AddressSpace, WatchedMemory] = {}
        self._owners: dict[int, Watch] = {}
        self._wired = False
        self.lost: Callable[[Sequence[Watch]], None] = lambda watches: None

    def add(self, watches: Iterable[Watch]) -> None:
        """Watch in the address space of the thread that runs, and in its copies."""
        given = list(watches)
        if not self._wired:
            self._wire()
        ranges = [one for watch in given for one in watch.ranges]
        self._owners.update((id(one), watch) for watch in given for one in watch.ranges)
        self._of(self._guest.seen).add(ranges)

    def remove(self, watches: Iterable[Watch]) -> None:
        """Watch these no longer, in no address space."""
        ranges = [one for watch in watches for one in watch.ranges]
        for watched in self._spaces.values():
            watched.remove(ranges)
        for one in ranges:
            self._owners.pop(id(one), None)

    def move(self, watch: Watch, ranges: Sequence[WatchedRange]) -> None:
        """Let a watch be of other bytes from now on."""
        self.remove([watch])
        watch.ranges[:] = ranges
        self.add([watch])

    def _of(self, space: AddressSpace) -> WatchedMemory:
        found = self._spaces.get(space)
        if found is None:
            found = self._spaces[space] = space.watched_memory(self._guest.machine.current)
            found.listeners.append(partial(self._hit, space))
        return found

    # -- hits -----------------------------------------------------------------------------

    def _hit(self, space: AddressSpace, hits: list[WatchHit]) -> None:
        machine = self._guest.machine
        thread, by = machine.current, ""
        if machine.delivering:
            by = f"delivery of {sig.name(machine.delivering)}"
        elif machine.serving is not None:
            thread = machine.serving
            by = call_text(thread)
        for hit in hits:
            watch = self._owners.get(id(hit.range))
            if watch is not None:
                pc = space.hooks.original_pc(hit.pc)
                watch.told(WatchEvent(hit, pc, thread, by))

    # -- processes ------------------------------------------------------------------------

    def _wire(self) -> None:
        """Be told of address spaces, besides those who are already."""
        self._wired = True
        events = self._guest.machine.spaces
        copied, replaced, ended = events.copied, events.replaced, events.ended

        def copy_too(old: AddressSpace, new: AddressSpace) -> None:
            copied(old, new)
            there = self._spaces.get(old)
            if there is not None and self._follows:
                self._of(new).add(one for one in there.ranges if id(one) in self._owners)

        def replace_too(old: AddressSpace, new: AddressSpace) -> None:
            replaced(old, new)
            if not old.users:
                self._lose(self._spaces.pop(old, None))

        def end_too(space: AddressSpace) -> None:
            self._spaces.pop(space, None)
            ended(space)

        events.copied, events.replaced, events.ended = copy_too, replace_too, end_too

    def _lose(self, gone: WatchedMemory | None) -> None:
        """The program in an address space was replaced: tell of watches that were there alone."""
        if gone is None:
            return
        left = {id(one) for watched in self._spaces.values() for one in watched.ranges}
        lost: dict[int, Watch] = {}
        for one in gone.ranges:
            watch = self._owners.get(id(one))
            if watch is not None and id(one) not in left:
                lost[id(watch)] = watch
        if lost:
            self.lost(list(lost.values()))


def call_text(thread: Thread) -> str:
    """A system call with its arguments: small numbers are decimal, as descriptors and sizes."""
    call = thread.call
    shown = (str(each) if each < _SMALL else f"{each:#x}" for each in call.arguments)
    return f"{call.name}({', '.join(shown)})"
