"""The engine's recording code in a guest: detours that jumps, or breakpoints, lead to.

A hit goes through the same code whoever leads the guest there: `jump` writes a jump,
`recorded_breakpoints` has the trap of a breakpoint lead on. What they share is here.
"""

from collections.abc import Callable, Sequence

from engine.arch.jump import ArchJumps
from engine.arch.recorder.templates import RecorderTemplates
from engine.arch.recording import NotCompilableError, Recorder, Work
from engine.cpu.base import SharesTime
from engine.probes.detourhits import DetourHits
from engine.probes.detourmap import DetourMap, LiveDetour
from engine.probes.detourmemory import DetourMemory, SharedMemory
from engine.probes.detourroom import DetourRoom, RowMemory
from engine.probes.detours import Detour
from engine.probes.detourwork import counted, work
from engine.probes.guestcalls import GuestCalls
from engine.probes.kprobe import Kprobe
from engine.probes.pending_calls import ReturnSite
from engine.probes.point import ProbePoint
from engine.probes.return_catcher import ReturnCatcher
from engine.probes.target import ProbeTarget


class DetourKeeper:
    """All detours of one guest; a `engine.probes.technique.RecordingCode`.

    Attributes:
        jumps: what the architecture gives.
        locate: the code around a guest address.
        memory: of detours, and what they share.
        map: the detours that there are.
        running: sees to the guest in them.
        calls: keeps the calls that code records; None where it may not.
        records: code in the guest can write rows of a trace.
    """

    records = True

    def __init__(
        self, target: ProbeTarget, returns: ReturnCatcher, jumps: ArchJumps, room: DetourRoom
    ) -> None:
        """There are none.

        Args:
            target: the guest, whose processor shares its clock (`engine.cpu.base.SharesTime`).
            returns: the catcher of returns.
            jumps: what the architecture gives.
            room: where they may be.
        """
        assert isinstance(target.cpu, SharesTime), "asked before"
        self._target = target
        self.jumps, self.locate = jumps, room.locate
        self.memory = DetourMemory(target.memory, room, target.cpu.time_page)
        self.map = DetourMap()
        self.running = DetourHits(target, returns, self.memory, self.map)
        entries = returns.in_guest
        self.calls: GuestCalls | None = entries.calls if entries is not None else None
        self._templates = RecorderTemplates(jumps.encoder)
        self._led_templates = RecorderTemplates(jumps.led_encoder)
        self._of: dict[ProbePoint, LiveDetour] = {}
        self.holds, self.enter = self.memory.holds, self.memory.enter
        self.displaces = self.running.displaces
        self.resume, self.stopped = self.running.resume, self.running.stopped
        self.name, self.show_thread = self.running.name, self.running.show_thread

    @property
    def ready(self) -> bool:
        """True while something is traced."""
        return self.memory.sink is not None

    def shared(self) -> SharedMemory | None:
        """The memory that detours share; None, and `memory.broken` says why, if there is none."""
        return self.memory.open(self._target.thread())

    # -- detours --------------------------------------------------------------------------

    def only_returns(self, probes: Sequence[Kprobe]) -> bool:
        """True if all there is to do at a place is about calls that return to it.

        What work that is can only be told once some have.
        """
        return self.calls is not None and all(isinstance(probe, ReturnSite) for probe in probes)

    def work(self, probes: Sequence[Kprobe]) -> Work | str:
        """The work of code in the guest for probes of one place, or why it takes the engine."""
        return work(probes, self.calls)

    def recorder(
        self, point: ProbePoint, probes: tuple[Kprobe, ...], raw: bytes, *, led: bool = False
    ) -> Recorder | None:
        """Code that records for all of them, each with a counter; None where a trap has to.

        Args:
            point: theirs; the detour that it has is given up.
            probes: in the order of `detourwork.in_parts`.
            raw: the displaced instructions.
            led: a breakpoint leads there, not a jump.
        """
        templates = self._led_templates if led else self._templates
        if point in self._of:
            self.close(self._of[point])
        found, shared, calls = self.work(probes), self.memory.shared, self.calls
        if isinstance(found, str) or shared is None:
            return None
        counters = [self.memory.counter(probe) for probe in probes]
        words = [counter for counter in counters if counter is not None]
        try:
            if len(words) == len(probes):
                made = templates.record(counted(found, words), shared.places, raw)
                if not isinstance(found, tuple) and calls:
                    calls.begin(shared.calls)
                return made
        except NotCompilableError:
            pass
        self.memory.give_back(probes)
        return None

    def open(self, point: ProbePoint, detour: Detour, probes: tuple[Kprobe, ...]) -> LiveDetour:
        """Write the code of a detour; the guest may come there from now on."""
        self._target.memory.patch(detour.start, detour.code)
        live = self._of[point] = self.map.add(point, detour, probes)
        self.running.open(live)
        return live

    def close(self, live: LiveDetour) -> None:
        """Nothing leads to a detour any more: `DetourHits.reap` frees it once nobody is in it."""
        del self._of[live.point]
        self.map.retire(live.detour)
        self.memory.give_back(live.probes)
        self.map.wait(live, ())

    # -- the guest in them ----------------------------------------------------------------

    def trapped(self, address: int) -> ProbePoint | bool:
        """See to a trap in a detour."""
        live = self.running.trapped(address)
        if live is None:
            return self.running.late(address)
        return True if live.zombie else live.point

    def original_pc(self, address: int) -> int | None:
        """The program's own address for a place in a detour; None elsewhere."""
        live = self.map.at(address)
        return live.detour.original_pc(address) if live is not None else None

    # -- traces ---------------------------------------------------------------------------

    def attach(self, sink: RowMemory, comm: Callable[[], bytes]) -> None:
        """A trace begins: where its rows go, and the running thread's name."""
        self.memory.sink = sink
        self.running.comm = comm

    def collect(self) -> None:
        """Bring the probes' counts of hits up to date, and what is known of calls."""
        if self.calls is not None:
            self.calls.sync()
        self.memory.collect()


def detour_keeper(
    target: ProbeTarget, returns: ReturnCatcher, room: DetourRoom | None
) -> DetourKeeper | None:
    """The detours of a guest; None where its architecture, or its processor, has none."""
    jumps = target.arch.jumps
    if jumps is None or room is None or not isinstance(target.cpu, SharesTime):
        return None
    return DetourKeeper(target, returns, jumps, room)
