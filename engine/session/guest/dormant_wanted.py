"""Wishes for very many uprobes of one file that nobody has asked about yet, in columns.

A million of them are alike but for their offsets, and most are never hit. They wait for their
file without objects, and get their breakpoints without: see `engine.probes.dormant`.
"""

from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from engine.arch.plan import Mode
from engine.cpu.ram import EXECUTE
from engine.guest.memory import Mapping, Memory
from engine.probes.dormant import DormantUprobes
from engine.probes.manager import ProbeManager
from engine.probes.plain_insns import PlainRun
from engine.session.guest.guest_code import GuestCode
from engine.session.program.places import shows_file

if TYPE_CHECKING:
    from engine.session.guest.wanted_probes import Wanted

_AT_ONCE: Final = 4096
"""Uprobes whose breakpoints are planted together: what is only needed meanwhile stays small."""
_FEW: Final = 64
"""Uprobes that may as well have their objects."""


class DormantWanted:
    """Wanted probes by number; one that is asked for wakes, and is like any other from then on.

    Attributes:
        like: one that they are like, but for the place and the probe.
        offsets: their offsets in the file.
        woken: told of one that has woken, and its number.
    """

    def __init__(self, like: "Wanted", make: "Callable[[int], Wanted]") -> None:
        """There are none yet.

        Args:
            like: see the class; prepared when it is hit.
            make: makes the one with a number.
        """
        assert like.late, "nobody is there to prepare them"
        self.like = like
        self.offsets = array("Q")
        self.woken: Callable[[int, Wanted], None] = lambda number, wanted: None
        self._make = make
        self._made: dict[int, Wanted] = {}

    def __len__(self) -> int:
        return len(self.offsets)

    def is_awake(self, number: int) -> bool:
        """True if it has been asked for."""
        return number in self._made

    def wanted(self, number: int) -> "Wanted":
        """The one with a number."""
        found = self._made.get(number)
        if found is None:
            found = self._made[number] = self._make(number)
            self.woken(number, found)
        return found

    def all(self) -> "list[Wanted]":
        """The wanted probes, in their order; each of them wakes."""
        return [self.wanted(number) for number in range(len(self.offsets))]


class DormantArming:
    """Plants the breakpoints of dormant uprobes in one address space."""

    def __init__(
        self,
        memory: Memory,
        manager: ProbeManager,
        code: GuestCode,
        run: Callable[[int], PlainRun],
        place: "Callable[[Wanted, int], None]",
    ) -> None:
        """Start with none armed.

        Args:
            memory: of the address space.
            manager: of the probes there.
            code: of the guest.
            run: the plain instructions of the function around an address.
            place: given a probe that wakes and its address: makes it ready to be registered.
        """
        self._memory, self._manager, self._code = memory, manager, code
        self._run, self._place = run, place

    def arm(self, rows: DormantWanted) -> "list[Wanted] | None":
        """Plant breakpoints once a file is mapped executable.

        Returns:
            Those that have to be placed like any other probe, which may be all; None while the
            file is not mapped so.
        """
        around = rows.like.place.around
        shown = [
            mapping
            for mapping in self._memory.mappings
            if mapping.perms & EXECUTE and shows_file(mapping, around.inode, around.paths)
        ]
        if not shown:
            return None
        if len(rows) <= _FEW or len(shown) > 1 or not self._may_sleep(rows, shown[0]):
            return rows.all()
        return self._plant(rows, shown[0].start - shown[0].offset)

    def _may_sleep(self, rows: DormantWanted, mapping: Mapping) -> bool:
        """True if breakpoints are all that the uprobes need, and the mapping has all of them."""
        manager, mode = self._manager, rows.like.probe.mode
        strict = (mode or manager.mode) is Mode.STRICT
        low, high = min(rows.offsets), max(rows.offsets)
        inside = mapping.offset <= low and high < mapping.offset + mapping.size
        return strict and inside and not manager.techniques.at_once

    def _plant(self, rows: DormantWanted, distance: int) -> "list[Wanted]":
        """Plant breakpoints at offsets to which a distance is added; those that are not plain."""
        points, offsets, place = self._manager.points, rows.offsets, self._place

        def wake(number: int) -> None:
            rows.wanted(number)

        dormant = DormantUprobes(wake)

        def woken(number: int, wanted: "Wanted") -> None:
            raw = dormant.wakes(offsets[number] + distance, number)
            if raw is not None:
                place(wanted, offsets[number] + distance)
                self._manager.awaken(wanted.probe, raw)

        rows.woken = woken
        closer: list[int] = []
        before = -1
        order = in_order(offsets)
        for first in range(0, len(order), _AT_ONCE):
            insns: dict[int, bytes] = {}
            with self._code.settled():
                run: PlainRun | None = None
                for number in order[first : first + _AT_ONCE]:
                    at = offsets[number] + distance
                    known = at == before or at in points or rows.is_awake(number)
                    before = at
                    if not known and (run is None or not run.low <= at < run.high):
                        run = self._run(at)
                    insn = None if known or run is None else run.insn(at)
                    if insn is None:
                        closer.append(number)
                    else:
                        insns[at] = insn.raw
                        dormant.add(at, number, insn.raw)
            points.lay(dormant, insns)
            self._manager.arm_dormant(insns)
        return [rows.wanted(number) for number in sorted(closer)]


def in_order(offsets: Sequence[int]) -> Sequence[int]:
    """Numbers of offsets, the lowest offset first; of equal ones the first one first."""
    rising = all(offsets[at] < offsets[at + 1] for at in range(len(offsets) - 1))
    numbers = range(len(offsets))
    return numbers if rising else sorted(numbers, key=offsets.__getitem__)
