"""The engine's own code in the guest: slots, the code of techniques, the return trampoline."""

from msgspec.structs import replace

from engine.cpu.base import Stop, StopKind
from engine.probes.arbitration import Arbitration
from engine.probes.breakpoint_actions import Breakpoints
from engine.probes.point import ProbePoint
from engine.probes.return_catcher import ReturnCatcher
from engine.probes.slots import InsnSlots
from engine.probes.target import ProbeTarget


class EngineCode:
    """Tells the engine's code in the guest from the program's own."""

    def __init__(
        self,
        target: ProbeTarget,
        slots: tuple[InsnSlots, ...],
        breakpoints: Breakpoints,
        techniques: Arbitration,
        returns: ReturnCatcher,
        slots_of: dict[int, ProbePoint],
    ) -> None:
        """Look at what there is.

        Args:
            target: the guest.
            slots: of kprobes.
            breakpoints: with the area of uprobes' slots.
            techniques: with code of their own.
            returns: the catcher of returns.
            slots_of: by address, whose slot it is; kept by who arms points.
        """
        self._target = target
        self._slots = slots
        self._area = breakpoints.area
        self._breakpoints = breakpoints
        self._techniques = techniques
        self._returns = returns
        self._slots_of = slots_of

    def slot_around(self, address: int) -> int:
        """The slot that an address lies in."""
        size = self._target.arch.probes.kprobe_slot
        if self._area.contains(address):
            size = self._area.slot_size
        return address - (address - self._area.page) % size

    def step_of(self, address: int) -> ProbePoint | None:
        """The point whose slot an address lies in."""
        if not self.inside(address):
            return None
        slot = self.slot_around(address)
        return self._breakpoints.stepping.get(slot) or self._slots_of.get(slot)

    def inside(self, address: int) -> bool:
        """True if an address lies in the pages of the slots, or where a technique's code is."""
        if self._area.contains(address):
            return True
        for slots in self._slots:  # asked at each stop: a generator takes twice the time
            if slots.window.start <= address < slots.window.end:
                return True
        return self._techniques.holder(address) is not None

    def original_pc(self, address: int) -> int:
        """The program's own address for a place in our code; others stay as they are."""
        found = self._techniques.original_pc(address)
        if found is not None:
            return found
        point = self.step_of(address)
        if point is None:
            return self._returns.original_pc(address)
        offset = address - self.slot_around(address)
        if point.plan.bits is not None and offset < len(point.plan.copy):
            return point.plan.base + offset
        return point.address if not offset else point.follow

    def as_original(self, stop: Stop) -> Stop:
        """A stop that names a place in our code names the program's own."""
        if stop.kind is StopKind.TRAP and stop.address and self.inside(stop.address):
            return replace(stop, address=self.original_pc(stop.address))
        return stop

    def name(self, address: int) -> str:
        """A place in our code as a symbol: whose slot, how far in; "" elsewhere."""
        found = self._returns.name(address)
        if found or not self.inside(address):
            return found
        holder = self._techniques.holder(address)
        if holder is not None:
            return holder.name(address)
        slot = self.slot_around(address)
        kind = "xol_slot" if self._area.contains(address) else "kprobe_insn_slot"
        point = self.step_of(address)
        whose = f"{point.address:#x}" if point is not None else "free"
        return f"{kind}[{whose}]+{address - slot:#x}"

    def busy(self) -> bool:
        """True if the guest stands in our code: signals wait until it has left."""
        self._techniques.resume()
        pc = self._target.cpu.read_register(self._target.arch.roles.pc)
        return self.inside(pc) or self._returns.holds(pc)
