"""Returns through a trampoline that any unwinder understands, after Keith Owens (2005).

What Linux does leaves every backtrace that is not told of it at the trampoline. Here the return
address stays in the stack frame of the hooked call, and the trampoline, with unwind data of its
own, is a function that has called the hooked one: it gives everything back and returns. Its
breakpoint only tells the engine. The architecture says how (`engine.arch.returns`).
"""

from engine.arch.returns import CarriedReturns
from engine.errors import GuestFaultError
from engine.probes.kretprobe import KretprobeInstance
from engine.probes.return_catcher import Owner
from engine.probes.trampoline import LinuxTrampoline


class OwensTrampoline(LinuxTrampoline):
    """Return addresses are replaced and kept in the program's stack."""

    def __init__(self, owner: Owner, start: int, way: CarriedReturns) -> None:
        """`start` is where the trampoline goes."""
        super().__init__(owner, start, way.trampoline, "its own code goes back to the caller")
        self._way = way

    def _replace(self, sp: int, made: list[KretprobeInstance]) -> bool:
        try:
            self._way.hook(self.owner.step, self.address)
        except GuestFaultError:
            return False
        lowered = self.frame()[0]
        for instance in made:
            instance.slot = lowered
        return True

    def _serve(self, frame: list[KretprobeInstance]) -> int:
        """Handlers see the stack as the caller will; the trampoline's code goes on."""
        owner, name = self.owner, self.owner.arch.roles.sp
        sp = owner.cpu.read_register(name)
        owner.cpu.write_register(name, sp + self._way.size)
        super()._serve(frame)
        owner.cpu.write_register(name, sp)
        return self.address + self.kind.step

    def holds(self, pc: int) -> bool:
        """Signals wait until the trampoline's code has gone back to the caller."""
        start, end = self.trampoline or (0, 0)
        return start <= pc < end

    def original_pc(self, address: int) -> int:
        """The trampoline is code like any other."""
        return address

    def resolve(self, address: int, slot: int) -> int | None:
        """Return addresses lead to the trampoline, whose unwind data lead on."""
        return None

    def unwind_info(self, pc: int) -> tuple[int, bytes] | None:
        """The trampoline's."""
        start = self.address - self.kind.entry
        return (start, self.kind.unwind) if self.holds(pc) else None
