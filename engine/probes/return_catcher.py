"""Catchers of returns: ways to have the return of a probed function noticed.

Linux writes the address of a trampoline over the return address: `trampoline`, in kernel mode.
Strict mode leaves the program's data alone: `return_sites`, which says why. Which catchers there
are stands in `return_catchers`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from engine.arch.plan import Mode
from engine.cpu.base import Stop, TrapAction
from engine.probes.frame_reader import FrameReader
from engine.probes.instance_pool import InstancePool
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import CallWork, Kretprobe, KretprobeInstance
from engine.probes.pending_calls import ReturnSite
from engine.probes.point import ProbePoint

if TYPE_CHECKING:
    from engine.probes.return_probes import ReturnProbes
    from engine.probes.return_sites import ReturnSites


class ReturnChanges(Struct, frozen=True):
    """Changes that a catcher makes to the program's own at the entry of a function.

    Attributes:
        return_address: the program finds another return address where it was.
        registers: that change.
        stack: bytes of the stack that are taken for the time of the call.
        scratch: bytes above it, the function's own, that are written to.
    """

    return_address: bool = False
    registers: tuple[str, ...] = ()
    stack: int = 0
    scratch: int = 0


Noted = Callable[[int, tuple[tuple[int, int], ...]], None]
"""(stack pointer at the entry of a hooked call, (value, what it was replaced by)...)."""


class ReturnCatcher(Protocol):
    """A way to catch returns at work in one guest.

    Attributes:
        told: what was done with the last call or return outside of the emulator, in words.
        trampoline: (where calls return to, end) of the code there, None if there is none. At its
            pc the frame is gone: the canonical frame address is the stack pointer, and the return
            address is what `original_pc` says.
        changes: what it changes of the program's own.
        in_guest: what code in the guest may do about calls; None where it may not.
        damaged: calls lost, at least, as the program has written to what such code records.
        frames: reads the frames of calls.
        pool: gives instances to calls.
    """

    told: str
    trampoline: tuple[int, int] | None
    changes: ReturnChanges
    frames: FrameReader
    pool: InstancePool

    @property
    def in_guest(self) -> "ReturnSites | None":
        """See the class."""

    @property
    def damaged(self) -> int:
        """See the class."""

    # -- registration ---------------------------------------------------------------------

    def admit(self, probe: Kretprobe) -> None:
        """A return probe is registered."""

    def armed(self) -> None:
        """Return probes are armed, and the machinery may plant what it needs besides."""

    def dismiss(self, probes: Iterable[Kretprobe]) -> None:
        """Return probes are gone; what is pending of them returns unseen, but by a tracker."""

    def attend(self, more: int) -> None:
        """So many more (or fewer) want returns to be seen to outside of the emulator.

        Handlers do, and whoever stops the guest there.
        """

    def replace_call(self, probe: Kretprobe, call: CallWork | None) -> None:
        """Code in the guest is to do something else about a probe's calls; None: nothing."""

    def forget(self, address: int) -> None:
        """The code at an address is gone."""

    def close(self) -> None:
        """No return probe is left."""

    def follow(self, other: "ReturnCatcher", twins: Mapping[Kprobe, Kprobe]) -> None:
        """In a copy of another one's memory: the calls that are pending there return here, too.

        Args:
            other: of the same kind.
            twins: the probes that stand for its here; calls of others return unseen.
        """

    def lend(self, thread: int, child: int) -> None:
        """A thread of another process runs here, with the calls that are pending in a thread."""

    def over(self, thread: int, low: int, high: int) -> None:
        """A thread has ended in the middle of calls: none of them will return.

        Linux gives their instances back, too (kprobe_flush_task()).

        Args:
            thread: its id.
            low: bounds of its stack, on which another one may run now.
            high: see there.
        """

    def note(self, noted: Noted) -> None:
        """From now on somebody hears of each change that is made for a call."""

    # -- a call ---------------------------------------------------------------------------

    def action(self, point: ProbePoint, go: TrapAction) -> TrapAction:
        """The action of a probed function's entry inside the emulator."""

    def enter(self, point: ProbePoint) -> None:
        """The same outside of it: entry handlers run."""

    # -- a return -------------------------------------------------------------------------

    def arriving(self, point: ProbePoint) -> tuple[KretprobeInstance, ...]:
        """The calls whose return has just come to a point, newest first; none elsewhere.

        For the moment in front of the handlers; nothing changes.
        """

    def missed(self, site: ReturnSite) -> None:
        """A return came to a place while another probe's handlers ran."""

    # -- what others see ------------------------------------------------------------------

    def resolve(self, address: int, slot: int, met: int = 0) -> int | None:
        """The place that a call returns to if its return is caught, None if it is not.

        Args:
            address: its return address as it was found.
            slot: of its frame (see `KretprobeInstance.slot`). A function that keeps nothing on
                any stack shares that with the function it calls.
            met: caught calls of that slot among those that it has made.

        Returns:
            The real address; where the trampoline has unwind data, the trampoline's.
        """

    def original_pc(self, address: int) -> int:
        """The program's own address for the trampoline's; others stay as they are."""

    def holds(self, pc: int) -> bool:
        """True if the guest stands in the machinery of a return: signals wait."""

    def unwind_info(self, pc: int) -> tuple[int, bytes] | None:
        """(start, unwind information) of code that is the machinery's own, None elsewhere."""

    def replaced(self) -> tuple[int, ...]:
        """Real return addresses of the running thread's calls that return elsewhere, newest first.

        None where the program's own are left alone.
        """

    def opaque(self) -> list[Kretprobe]:
        """The probes whose pending calls no unwinder of the program gets past, newest first."""

    def name(self, address: int) -> str:
        """A place in the trampoline as a symbol, "" elsewhere."""

    def as_seen(self, point: ProbePoint, stop: Stop) -> Stop:
        """The stop that the program gets for one that a point's instruction has raised."""


class CatcherKind(Struct, frozen=True):
    """A way to catch returns.

    Attributes:
        name: as a user chooses it.
        usual_in: the strictness in which it is used if none is chosen; None for never.
        trampoline: it needs a page for a trampoline.
        build: given the host and that page, 0 without one, sets it up; CommandError where the
            architecture does not have it.
    """

    name: str
    usual_in: Mode | None
    trampoline: bool
    build: "Callable[[ReturnProbes, int], ReturnCatcher]"
