"""Probed addresses: the physical side of probes, one point for any number of them."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar, overload

from engine.arch.plan import InsnPlan, Verdict
from engine.cpu.ram import PAGE
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe
from engine.probes.placement_rules import Check
from engine.probes.point_state import (
    DISARMED,
    NO_COPY,
    Candidacy,
    InsnCopy,
    PointState,
    Replacement,
    Stage,
)

if TYPE_CHECKING:
    from engine.probes.dormant import DormantUprobes

_Default = TypeVar("_Default")
_FRESH = Candidacy()


FIRST_HITS: Final = 4
"""Hits of a point before anything is made for it alone: that takes as long as five or six."""


class ProbePoint:
    """A code address with its instruction's plan, its slot and its probes (an aggregate kprobe).

    Attributes:
        address: guest address.
        state: what stands there.
        candidacy: what is known about something faster than a breakpoint there.
        copy: how the instruction is carried out of line.
        saved: the scratch register's own value during a step.
        guard: predicate that the instruction depends on, where its breakpoint does not: only the
            machinery's own probes are served while it is 0; "" = there is none.
        covered: a debugger inside has written over the instruction: nothing is planted there.
    """

    __slots__ = (
        "_again",
        "_plan",
        "_probes",
        "address",
        "candidacy",
        "copy",
        "covered",
        "guard",
        "saved",
        "state",
    )

    def __init__(
        self,
        address: int,
        plan: InsnPlan | None,
        again: Callable[[int], InsnPlan] | None = None,
    ) -> None:
        """The point is not armed.

        Args:
            address: guest address.
            plan: what is done with the instruction; None to have it made when it is needed.
            again: makes the same plan from the address; None where it has to be kept.
        """
        assert plan is not None or again is not None, "nobody knows what to do there"
        self.address = address
        self._plan = plan
        self._again = again
        self._probes: Kprobe | tuple[Kprobe, ...] = ()  # alone, as most of a million are
        self.state: PointState = DISARMED
        self.candidacy: Candidacy = _FRESH
        self.copy: InsnCopy = NO_COPY
        self.saved = 0
        self.guard = ""
        self.covered = False

    @property
    def probes(self) -> tuple[Kprobe, ...]:
        """The point's probes, newest first: the order in which pre-handlers run."""
        found = self._probes
        return found if isinstance(found, tuple) else (found,)

    @probes.setter
    def probes(self, probes: Sequence[Kprobe]) -> None:
        self._probes = probes[0] if len(probes) == 1 else tuple(probes)

    def add(self, probe: Kprobe, behind: int = 0) -> None:
        """Add a probe, newer than all but so many."""
        there = self.probes
        self.probes = (*there[:behind], probe, *there[behind:])

    def drop(self, probe: Kprobe) -> None:
        """A probe is there no longer."""
        self.probes = tuple(one for one in self.probes if one is not probe)

    @property
    def plan(self) -> InsnPlan:
        """The plan for its instruction."""
        if self._plan is None:
            assert self._again is not None, "it was not forgotten else"
            self._plan = self._again(self.address)
        return self._plan

    @plan.setter
    def plan(self, plan: InsnPlan) -> None:
        self._plan, self._again = plan, None

    @property
    def planned(self) -> bool:
        """True while the plan is at hand."""
        return self._plan is not None

    def forget_plan(self) -> None:
        """Keep the plan no longer, if it can be made again: most points are never hit."""
        if self._again is not None:
            self._plan = None

    @property
    def armed(self) -> bool:
        """True while something of ours stands there."""
        return self.state.stage is not Stage.DISARMED

    @property
    def replacement(self) -> Replacement | None:
        """The thing in the breakpoint's place, or waiting behind it."""
        return self.state.replacement

    @property
    def technique(self) -> str:
        """Name for people of what stands there: "breakpoint", or the kind of its replacement."""
        return self.state.technique

    @property
    def why(self) -> Check | None:
        """The condition of something faster that it does not meet, as far as is known."""
        return self.candidacy.why

    @property
    def slot(self) -> int | None:
        """Address of its own slot, None without one."""
        return self.copy.slot

    @property
    def boosted(self) -> bool:
        """True where the copy in its slot jumps back by itself."""
        return self.copy.boosted

    @property
    def how(self) -> str:
        """The way in which the instruction is carried out: "emulated", "boosted" or "xol"."""
        if self.plan.verdict is Verdict.EMULATED:
            return "emulated"
        return "boosted" if self.copy.boosted else "xol"

    @property
    def follow(self) -> int:
        """Address of the program's next instruction, if this one does not lead elsewhere."""
        plan = self.plan
        return plan.boosted_next if self.copy.boosted and plan.boosted_next else plan.next

    @property
    def copy_size(self) -> int:
        """Bytes of the instruction's copy."""
        return len(self.plan.scratch_copy if self.copy.scratch else self.plan.copy)

    def enabled(self) -> list[Kprobe]:
        """The point's probes whose handlers run."""
        return [probe for probe in self.probes if probe.enabled]

    def count(self) -> None:
        """Take note of as many hits as were waited for (`Candidacy.counted`)."""
        self.candidacy = self.candidacy.counted()

    def wants_post(self) -> bool:
        """True if anything is to run after the step: then the slot cannot be boosted."""
        return any(probe.post_handler is not None for probe in self.probes if probe.enabled)

    def wants_return(self) -> bool:
        """True if the return of the call that is made here is to be caught."""
        return any(isinstance(probe, Kretprobe) for probe in self.probes if probe.enabled)

    def wants_engine(self) -> bool:
        """True if a handler may do what the emulator's callback does not allow."""
        return any(needs_engine(probe) for probe in self.probes if probe.enabled)

    def wants_stop(self) -> bool:
        """True if a debugger wants to stop the guest there."""
        return any(probe.stops for probe in self.probes if probe.enabled)


class ProbePoints(dict[int, ProbePoint]):
    """The points of a guest by address; to ask for that of a dormant uprobe makes it.

    Like a `defaultdict` it has the points that were made. An address of a dormant uprobe is `in`
    it all the same.

    Attributes:
        dormant: armed uprobes without points, by page.
    """

    def __init__(self) -> None:
        """Start without points."""
        self.dormant: dict[int, list[DormantUprobes]] = {}

    def lay(self, dormant: "DormantUprobes", addresses: Iterable[int]) -> None:
        """Include dormant uprobes at some addresses of theirs."""
        for page in {address // PAGE for address in addresses}:
            there = self.dormant.setdefault(page, [])
            if dormant not in there:
                there.append(dormant)

    def wake_all(self) -> None:
        """Make the points of all dormant uprobes, for one who goes through all points."""
        for dormant in dict.fromkeys(one for there in self.dormant.values() for one in there):
            dormant.wake_all()
        self.dormant.clear()

    def __missing__(self, address: int) -> ProbePoint:
        for dormant in self.dormant.get(address // PAGE, ()):
            if dormant.wake(address):
                return self[address]
        raise KeyError(address)

    @overload
    def get(self, address: int, default: None = None, /) -> ProbePoint | None: ...

    @overload
    def get(self, address: int, default: ProbePoint, /) -> ProbePoint: ...

    @overload
    def get(self, address: int, default: _Default, /) -> ProbePoint | _Default: ...

    def get(self, address: int, default: object = None, /) -> object:
        """The point at an address, made if need be."""
        found = super().get(address)
        if found is None and self.dormant and address in self:
            found = self[address]
        return default if found is None else found

    def __contains__(self, address: object) -> bool:
        if super().__contains__(address):
            return True
        if not self.dormant or not isinstance(address, int):
            return False
        return any(address in one for one in self.dormant.get(address // PAGE, ()))


def needs_engine(probe: Kprobe) -> bool:
    """True if a probe has handlers that run outside the emulator when it is hit."""
    if isinstance(probe, Kretprobe):
        return probe.entry_handler is not None
    return (
        probe.pre_handler is not None
        or probe.post_handler is not None
        or getattr(probe, "handler", None) is not None
    )


def missed(probes: Iterable[Kprobe]) -> None:
    """Count a hit that could not be served."""
    for probe in probes:
        probe.hits += 1
        probe.nmissed += 1
