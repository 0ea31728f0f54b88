"""Wanted probes: a place, the probe that goes there, and the probes that stand for it."""

import copy
from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Map
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe
from engine.session.program.places import Place

if TYPE_CHECKING:
    from engine.session.guest.probed_space import ProbedSpace


class Ready(Protocol):
    """Prepares a probe once its address in an address space is known, before it is armed.

    It may have a method `once(probe, space)` besides, which gives what records a hit of a probe
    that is not prepared, or None.
    """

    def __call__(self, probe: Kprobe, space: "ProbedSpace", place: Place) -> None:
        """Prepare it."""


def unprepared(probe: Kprobe, space: "ProbedSpace", place: Place) -> None:
    """Leave a probe as it is: a `Ready` of probes that need no preparation."""


class Fate(Struct, frozen=True):
    """The history of a wanted probe in one address space.

    Attributes:
        again: its file was mapped before.
        left: where its code was before the program moved it or took it away; None else.
        dropped: its breakpoint went with the page; the code is still there.
    """

    again: bool = False
    left: int | None = None
    dropped: bool = False


UNTOUCHED: Final = Fate()
"""The history of a probe to which nothing has happened."""


class Wanted(Struct):
    """A probe that somebody wants, and what has become of it in one address space.

    There may be a million of them.

    Attributes:
        place: where it goes.
        probe: the probe.
        ready: prepares it.
        anywhere: what that gives it does not depend on the address space that it is in.
        late: it is enough to prepare it when it is hit.
        traces: it traces a function, by uprobes' rules where kprobes' refuse: the call of
            __fentry__ through memory at the entry (gcc -pg -mfentry) is nothing to a uprobe.
        fate: what has become of it.
    """

    place: Place
    probe: Kprobe
    ready: Ready = unprepared
    anywhere: bool = False
    late: bool = False
    traces: bool = False
    fate: Fate = UNTOUCHED

    @property
    def text(self) -> str:
        """The place, for messages."""
        return self.place.text

    def of(self, probe: Kprobe, *, again: bool = False) -> "Wanted":
        """The same for the probe that stands for it in another address space.

        Args:
            probe: that one.
            again: the file was mapped before there.
        """
        fate = Fate(again=True) if again else UNTOUCHED
        return replace(self, probe=probe, fate=fate)


def twin_of(probe: Kprobe) -> Kprobe:
    """A probe that does the same in another address space, and has not been hit."""
    made = copy.copy(probe)
    made.part_from_twin()
    made.origin = probe.origin or probe
    made.hits = made.nmissed = 0
    if isinstance(made, Kretprobe):
        made.active = made.unwatched = made.left = 0
    return made


class FurtherProbes:
    """The probes that stand for others in further mappings of one address space.

    The kernel plants a uprobe in each mapping of its inode (kernel/events/uprobes.c, uprobe_mmap):
    dlmopen maps a library once for each namespace, and a program may map a file by hand. The first
    mapping has the probe itself; in each further one a probe stands for it.

    Attributes:
        stand_for: by such a probe: the one that it stands for.
    """

    def __init__(self) -> None:
        """There are none."""
        self.stand_for: dict[Kprobe, Kprobe] = {}

    def __contains__(self, probe: object) -> bool:
        """True if a probe stands for another one."""
        return probe in self.stand_for

    def __len__(self) -> int:
        """Number of probes that stand for others."""
        return len(self.stand_for)

    def __iter__(self) -> Iterator[Kprobe]:
        """The probes that stand for others, in the order in which they were added."""
        return iter(self.stand_for)

    def add(self, made: Kprobe, probe: Kprobe) -> None:
        """One stands for another from now on."""
        self.stand_for[made] = probe

    def drop(self, made: Kprobe) -> bool:
        """One is gone; False if it stood for none."""
        return self.stand_for.pop(made, None) is not None

    def of(self, probes: Iterable[Kprobe]) -> list[Kprobe]:
        """The probes that stand for some probes in further mappings."""
        if not self.stand_for:
            return []
        asked = {id(probe) for probe in probes}
        return [made for made, probe in self.stand_for.items() if id(probe) in asked]

    def addresses(self, probe: Kprobe) -> set[int]:
        """Addresses of those that stand for a probe."""
        return {made.addr or 0 for made in self.of((probe,))}

    def follow(self, other: "FurtherProbes", pairs: Map[Kprobe, Kprobe]) -> None:
        """A copy of the address space has its own ones: `pairs` has who stands for whom there."""
        for made, probe in other.stand_for.items():
            if made in pairs and probe in pairs:
                self.stand_for[pairs[made]] = pairs[probe]
