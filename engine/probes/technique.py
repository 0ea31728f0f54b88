"""Techniques: ways to have hits noticed.

Every point begins as a breakpoint. A technique may put something faster in a breakpoint's place,
and has to put the breakpoint back when it is asked to. Who may replace what and when is decided
in `arbitration`; the techniques that there are stand in `techniques`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from engine.cpu.base import Stop
from engine.probes.admission import Blacklist
from engine.probes.detour_keeper import DetourKeeper
from engine.probes.detourroom import DetourRoom, RowMemory
from engine.probes.kprobe import Kprobe
from engine.probes.placement_rules import Check
from engine.probes.point import ProbePoint
from engine.probes.return_catcher import ReturnCatcher
from engine.probes.target import ProbeTarget

OTHER_PROBE: Final = "other-probe"
"""Rule of a point in whose way another one is: it may be met once that is gone."""


class TechniqueHost(Struct, frozen=True):
    """The surroundings that a technique works in.

    Attributes:
        target: the guest.
        points: all probed addresses.
        returns: the catcher of returns.
        blacklist: where nothing may be probed.
        room: where its code may stand; None where the guest has no room for any.
        detours: keeps recording code; None where there can be none.
        at_once: the user has asked for it by name: it need not pay.
        register: registers and arms a probe.
        unregister: takes one out.
        replant: what is to happen at an address has changed.
        planted: the bytes of the breakpoint that stands at a point.
    """

    target: ProbeTarget
    points: Mapping[int, ProbePoint]
    returns: ReturnCatcher
    blacklist: Blacklist
    room: DetourRoom | None
    detours: DetourKeeper | None
    at_once: bool
    register: Callable[[Kprobe], None]
    unregister: Callable[[Kprobe], None]
    replant: Callable[[int], None]
    planted: Callable[[ProbePoint], bytes]


class Refused(Struct, frozen=True):
    """Why a technique has not taken a breakpoint's place.

    Attributes:
        why: the condition that is not met.
        for_now: it may be met the next time.
    """

    why: Check
    for_now: bool = False


class Buffers(Struct, frozen=True):
    """Pieces of code that a technique keeps outside of the program's.

    Attributes:
        standing: how many are in use.
        waits: what keeps each of those that nobody needs any more.
        freed: how many have been freed so far.
    """

    standing: int = 0
    waits: tuple[str, ...] = ()
    freed: int = 0


class RecordingCode(Protocol):
    """Code of the engine's in the guest, to which hits lead.

    Attributes:
        records: it can write rows of a trace.
    """

    @property
    def records(self) -> bool:
        """See the class."""

    def trapped(self, address: int) -> ProbePoint | Stop | bool:
        """See to a breakpoint trap in it.

        Returns:
            The point whose hit is to be served there; True if that has been seen to, False if the
            trap is none of its own; what the guest's kernel is to make of it.
        """

    def holds(self, address: int) -> bool:
        """True if an address lies where it may be."""

    def displaces(self) -> bool:
        """True if the guest may come to an instruction that is carried out in it."""

    def stopped(self, stop: Stop, pc: int) -> Stop | None:
        """See to a stop in it; what is left of it for the guest's kernel."""

    def resume(self) -> None:
        """The guest is about to go on."""

    def enter(self) -> None:
        """The processor is in this address space again, after it was in another one."""

    def show_thread(self) -> None:
        """Something else runs here from now on, by id and name."""

    def original_pc(self, address: int) -> int | None:
        """The program's own address for a place in it; None elsewhere."""

    def name(self, address: int) -> str:
        """A place where it may be as a symbol."""

    def attach(self, sink: RowMemory, comm: Callable[[], bytes]) -> None:
        """A trace begins: where its rows go, and the running thread's name."""

    def collect(self) -> None:
        """Bring probes' counts of hits up to date."""


class Technique(Protocol):
    """A technique at work in one guest.

    Attributes:
        told: what it has seen at the last hit of a breakpoint, in words.
        code: what hits are led to.
        ready: it may take points now.
    """

    @property
    def told(self) -> str:
        """See the class."""

    @property
    def code(self) -> RecordingCode:
        """See the class."""

    @property
    def ready(self) -> bool:
        """See the class."""

    def promising(self, point: ProbePoint) -> bool:
        """True if hits of a breakpoint are worth counting, to `take` it after some."""

    def wants_hits(self, point: ProbePoint) -> bool:
        """True while every hit of a breakpoint has to come to the engine."""

    def hit(self, point: ProbePoint) -> None:
        """A breakpoint was hit, and the engine serves it."""

    def take(self, point: ProbePoint) -> Refused | None:
        """Put something in a breakpoint's place, or say why not.

        What it has put there may still wait behind the breakpoint (`Stage.CHECK`): the answer
        is what it waits for.
        """

    def fall_back(self, point: ProbePoint, *, gone: bool) -> None:
        """Put the breakpoint back; with `gone` the code there is no longer ours to write."""

    def displacing(self, address: int) -> ProbePoint | None:
        """The point whose replacement stands over an address behind its own."""

    def freed(self, address: int) -> Sequence[ProbePoint]:
        """Points that were refused for a breakpoint at an address that is gone now."""

    def vacated(self, address: int) -> None:
        """The breakpoint at an address is gone, and so is what stood in its place."""

    def follow(self, other: "Technique") -> None:
        """The memory is a copy of that of another one of the kind; nothing is probed here yet."""

    def buffers(self) -> Buffers:
        """The technique's code outside of the program's."""
