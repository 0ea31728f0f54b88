"""What both ways of catching the return of a probed function have in common.

Linux writes the address of a trampoline over the return address: `trampoline`, in kernel mode.
Strict mode leaves the program's data alone: `return_sites`, which says why.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Protocol

from engine.arch.base import Arch
from engine.arch.plan import Mode, Rules
from engine.cpu.base import Cpu, TrapAction
from engine.guest.mapping import Mapping
from engine.guest.memory import Memory
from engine.guest.text import TextOverlay
from engine.probes.code_map import CodeMap
from engine.probes.djprobe import SafetyCheck
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe, KretprobeInstance, default_maxactive
from engine.probes.point import ProbePoint
from engine.probes.regs import PtRegs
from engine.probes.stepping import GuestStep


class Owner(Protocol):
    """What return probes ask of the manager of probes."""

    arch: Arch
    cpu: Cpu
    memory: Memory
    overlay: TextOverlay
    code_map: CodeMap
    regs: PtRegs
    step: GuestStep
    mode: Mode
    thread: Callable[[], int]
    kernel_maxactive: bool

    def watch(self, site: "ReturnSite") -> bool:
        """Plant the engine's own probe where a call returns to; False if it cannot be."""

    def unwatch(self, sites: "Sequence[ReturnSite]") -> None:
        """Take such probes out."""

    def replant(self, address: int) -> None:
        """What is to happen at a point has changed."""

    def reconsider(self, address: int) -> None:
        """The same, and a jump that stands there is given up."""


class SiteCalls(dict[int, KretprobeInstance]):
    """Calls that return to one place, by the stack pointer after the return.

    (Or by what tells activations apart, see `engine.arch.returns.FrameKeys`.)

    They are chains where several probes or a tail call share a frame, the newest first.
    """

    __slots__ = ()


class ReturnSite(Kprobe):
    """The engine's own probe on an address that watched calls return to.

    Attributes:
        pending: the calls.
        last: the probe whose call has returned there last.
        known: two words for the ends of the instructions that calls have returned by last, where
            code in the guest compares them.
    """

    __slots__ = ("known", "last", "pending")

    def __init__(self, address: int) -> None:
        super().__init__(addr=address, name=f"return to {address:#x}")
        self.pending = SiteCalls()
        self.last: Kretprobe | None = None
        self.known: memoryview[int] | None = None


def own(probe: Kprobe) -> bool:
    """Whether a probe is the machinery's own."""
    return isinstance(probe, ReturnSite | SafetyCheck)


class Returns:
    """What both ways of catching a return have in common.

    Attributes:
        told: what was done with the last call or return outside of the emulator, in words.
        trampoline: (where calls return to, end) of the code there, None if there is none.
    """

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.told = ""
        self.trampoline: tuple[int, int] | None = None
        self._serves = 0  # how many want returns to be seen to outside of the emulator
        roles, special = owner.arch.roles, owner.arch.returns
        self._stacked = roles.link is None
        self._word = owner.arch.bits // 8
        self._keys = keys = special.keys if special is not None else None
        entry = (roles.sp,) if keys is None else keys.entry
        self._names = entry if roles.link is None else (*entry, roles.link)
        # What a return leaves behind: the key of the call that it ends, from these registers.
        self.exit: tuple[str, ...] = (roles.sp,) if keys is None else keys.exit
        self.exit_key: Callable[[Sequence[int]], int]
        self.exit_key = itemgetter(0) if keys is None else keys.returned
        self._read: Callable[[], tuple[int, ...]] | None = None
        self._stack: Mapping | None = None  # the mapping that `_words` shows
        self._words = memoryview(b"")

    # -- registration ---------------------------------------------------------------------

    def admit(self, probe: Kretprobe) -> None:
        """A return probe is registered."""
        probe.limit = probe.maxactive or None
        if probe.limit is None and self.owner.kernel_maxactive and probe.rules is Rules.KPROBE:
            probe.limit = default_maxactive()
        probe.active = 0
        if probe.handler is not None:
            self.attend(1)

    def dismiss(self, probes: Iterable[Kretprobe]) -> None:
        """Return probes are gone; what is pending of them returns unseen, but by a tracker."""
        gone = set(probes)
        self._serves -= sum(probe.handler is not None for probe in gone)
        self._purge({probe for probe in gone if probe.tracker is None})

    def attend(self, more: int) -> None:
        """So many more (or fewer) want returns to be seen to outside of the emulator.

        Handlers do, and whoever stops the guest there.
        """
        self._serves += more

    def _purge(self, gone: set[Kretprobe]) -> None:
        raise NotImplementedError

    # -- a call ---------------------------------------------------------------------------

    @cached_property
    def _read_exit(self) -> Callable[[], tuple[int, ...]]:
        return self.owner.cpu.traps.reader(self.exit)

    def left_behind(self) -> int:
        """The stack pointer of a call that has just returned, or what stands for it."""
        return self.exit_key(self._read_exit())

    def sp_of(self, slot: int) -> int:
        """The stack pointer of a frame (see `KretprobeInstance.slot`)."""
        return slot if self._keys is None else slot >> self._keys.shift

    def lowest_at(self, sp: int) -> int:
        """Below what stands for a frame at this stack pointer, and above all below it."""
        return sp if self._keys is None else sp << self._keys.shift

    def frame(self) -> tuple[int, int]:
        """(stack pointer, return address) where a function begins.

        In place of the stack pointer is what tells activations apart, where that is more.

        Raises:
            GuestFaultError: the stack cannot be read.
        """
        if self._read is None:
            self._read = self.owner.cpu.traps.reader(self._names)
        values = self._read()
        if not self._stacked:
            keys = self._keys
            return values[0] if keys is None else keys.entered(values), values[-1]
        sp = values[0]
        memory = self.owner.memory
        stack = memory.find(sp)
        if stack is not self._stack or stack is None:
            memory.read(sp, self._word)
            assert stack is not None, "what can be read is mapped"
            self._stack, self._words = stack, memory.words(stack)
        if sp & self._word - 1:
            return sp, int.from_bytes(memory.read(sp, self._word), "little")
        return sp, self._words[sp - stack.start >> 3]

    def action(self, point: ProbePoint, go: TrapAction) -> TrapAction:
        """What happens at a probed function's entry inside the emulator."""
        raise NotImplementedError

    def enter(self, point: ProbePoint) -> None:
        """The same outside of it: entry handlers run."""
        raise NotImplementedError

    def make(self, probe: Kretprobe, ret_addr: int, slot: int) -> KretprobeInstance | None:
        """An instance for a call, if one is free and wanted."""
        if probe.limit is not None and probe.active >= probe.limit:
            self._sweep(probe)
            if probe.active >= probe.limit:
                probe.nmissed += 1
                return None
        instance = KretprobeInstance(probe, ret_addr, slot)
        if probe.entry_handler is not None and probe.entry_handler(instance, self.owner.regs):
            return None
        if probe.capture is not None:
            instance.entry = probe.capture()
        if probe.tracker is not None and not probe.tracker.entered(instance):
            return None
        probe.active += 1
        return instance

    def _sweep(self, probe: Kretprobe) -> None:
        """Find instances of calls that were left without a return."""

    def made(self, point: ProbePoint, ret_addr: int, slot: int) -> list[KretprobeInstance]:
        """Instances of all return probes of a point, in the order in which they are chained.

        A kretprobe has an instance for each probe, newest probe first; of a uprobe's consumers
        on one place the newest comes first on the return too.
        """
        found = []
        for probe in point.probes:
            if isinstance(probe, Kretprobe) and probe.enabled:
                probe.hits += 1
                instance = self.make(probe, ret_addr, slot)
                if instance is not None:
                    found.append(instance)
        if len(found) > 1 and found[0].rp.rules is Rules.UPROBE:
            found.reverse()
        return found

    # -- a return -------------------------------------------------------------------------

    def finish(self, instance: KretprobeInstance, ret_addr: int, thread: int) -> None:
        """A call has returned: what its probe does about it."""
        probe = instance.rp
        probe.active -= 1
        if probe.tracker is not None:
            probe.tracker.returned(instance)
        if probe.record_return is not None:
            if instance.entry is None:
                probe.record_return(thread, ret_addr)
            else:
                probe.record_return(thread, ret_addr, instance.entry)
        if probe.handler is not None:
            probe.handler(instance, self.owner.regs)

    def arriving(self, point: ProbePoint) -> tuple[KretprobeInstance, ...]:
        """The calls whose return has just come to a point, newest first; none elsewhere.

        For the moment in front of the handlers; nothing changes.
        """
        raise NotImplementedError

    def resolve(self, address: int, slot: int) -> int | None:
        """The real return address of a frame (see `KretprobeInstance.slot`); None if it is it."""
        return None

    def original_pc(self, address: int) -> int:
        """The program's own address for the trampoline's; others stay as they are."""
        return address

    def holds(self, pc: int) -> bool:
        """Whether the guest stands in the machinery of a return."""
        return self.original_pc(pc) != pc

    def unwind_info(self, pc: int) -> tuple[int, bytes] | None:
        """(start, unwind information) of code that is the machinery's own, None elsewhere."""
        return None

    def close(self) -> None:
        """No return probe is left."""
        raise NotImplementedError

    def pending(self, slot: int) -> tuple[KretprobeInstance, ...]:
        """The calls pending in a frame (see `KretprobeInstance.slot`), newest first."""
        raise NotImplementedError
