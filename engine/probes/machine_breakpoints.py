"""Breakpoints in the kernel of a booted machine: the trap, the copy in its slot, the way back.

What Linux does for a kprobe is done here from outside, by the same plans (`ArchProbes.analyze`
under the kernel's rules): a breakpoint in the text, the handlers, the displaced instruction in a
slot within reach of the text, with a jump behind it where Linux boosts and a breakpoint where it
does not. Control transfers, which Linux emulates, are the code that jump probes move them with
(`ArchJumps.movable`), so that the processor itself raises their faults.

The kernel may write over a probed instruction at any time: each hit compares the bytes with those
that the slot was made of. A breakpoint that the kernel has written there itself is delivered to it
behind the handlers. What the instruction raises is delivered at its own place, and the hit is
repeated when the kernel comes back to it. A repeated string instruction is hit at each turn.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.arch.base import Arch
from engine.arch.jump import Leaves
from engine.arch.plan import InsnPlan, Mode, Operation, Rules, Verdict
from engine.cpu.unicorn_planted import SLOT, WINDOW, PlantedCode
from engine.cpu.unicorn_system import SystemCpu
from engine.errors import CommandError, EngineError, GuestFaultError
from engine.image.elf import ElfImage
from engine.machine.addresses import KernelAddresses
from engine.probes.breakpoint_actions import rebased

WINDOW_PLACE: Final = 0xFFFF_FFFF_9000_0000
"""Address of the slots: of the 512 MB that a kernel's image has and none fills, 256 MB behind
their beginning (arch/x86/include/asm/page_64_types.h); modules are within reach, too."""
_BREAKPOINT: Final = 3
"""The exception's number."""
_LONGEST: Final = 15
_STI: Final = 0xFB


class _PlantedPlace(Struct, eq=False):
    """A probed place.

    Attributes:
        address: of the place.
        hits: what is called there.
        raw: the instruction that the slot was made of; none where there is no slot.
        slot: address of the slot; 0 where the instruction is the kernel's own breakpoint.
        end: one past the copy in the slot.
        resume: see `PlantedCode.lead_to`.
        repeats: the copy repeats itself.
        operation: carries the instruction out instead, unless it faults.
    """

    address: int
    hits: list[Callable[[], None]]
    raw: bytes = b""
    slot: int = 0
    end: int = 0
    resume: int = 0
    repeats: bool = False
    operation: Operation | None = None

    @property
    def next(self) -> int:
        """Address of the instruction behind it."""
        return self.address + len(self.raw)


class _KernelStep:
    """The kernel's registers and memory as an operation uses them (`StepCpu`)."""

    def __init__(self, cpu: SystemCpu, addresses: KernelAddresses) -> None:
        self.read_register, self.write_register = cpu.__getitem__, cpu.__setitem__
        self.load = addresses.read
        self._cpu, self._physical = cpu, addresses.physical

    def store(self, address: int, data: bytes) -> None:
        """Write, or raise `GuestFaultError` with nothing written."""
        pieces = []
        while data:
            at, left = self._physical(address)
            pieces.append((at, data[:left]))
            address, data = address + left, data[left:]
        for at, piece in pieces:
            self._cpu.store(at, piece)

    def execute(self, address: int, raw: bytes) -> int:
        """No operation of this processor asks for it: it executes what is in memory only."""
        raise EngineError("this processor carries out no single instruction")


class MachineBreakpoints:
    """The breakpoints of one machine.

    Attributes:
        unreached: places that lost their probe, as no slot is near enough.
    """

    def __init__(
        self, arch: Arch, cpu: SystemCpu, addresses: KernelAddresses, code: PlantedCode
    ) -> None:
        """None yet.

        Args:
            arch: of the kernel.
            cpu: the processor.
            addresses: the memory as the kernel sees it.
            code: plants.
        """
        self.unreached: list[int] = []
        self._arch, self._cpu, self._addresses, self._code = arch, cpu, addresses, code
        self._step = _KernelStep(cpu, addresses)
        self._points: dict[int, _PlantedPlace] = {}
        self._owners: dict[int, _PlantedPlace] = {}
        self._free, self._again = 0, False
        code.trapped, code.original = self._trapped, self.original

    def add(self, address: int, hit: Callable[[], None]) -> None:
        """Have something called in front of each execution of an instruction.

        Of several at a place the newest is called first.
        """
        point = self._points.get(address)
        if point is not None:
            point.hits.insert(0, hit)
            return
        self._points[address] = _PlantedPlace(address, [hit])
        self._code.plant(address)
        self._translate_again(address)

    def remove(self, address: int, hit: Callable[[], None]) -> None:
        """Call something no longer that was given to `add`."""
        point = self._points[address]
        point.hits.remove(hit)
        if not point.hits:
            del self._points[address]
            self._code.lift(address)
            self._translate_again(address)

    def original(self, address: int) -> int:
        """The place in the kernel that an address in a slot stands for; others as they are."""
        point = self._owner(address)
        if point is None:
            return address
        return point.next if address >= point.end else point.address

    def _translate_again(self, address: int) -> None:
        self._addresses.forget()
        try:
            at, _ = self._addresses.physical(address)
        except GuestFaultError:  # nothing was translated
            return
        self._cpu.translate_again(at)

    def _owner(self, address: int) -> _PlantedPlace | None:
        """The point whose slot an address is in."""
        return self._owners.get(address & -SLOT)

    # -- hits -----------------------------------------------------------------------------

    def _trapped(self, number: int) -> bool:
        """See `PlantedCode.trapped`."""
        trap = number == _BREAKPOINT
        address = self._code.returns_to - len(self._arch.probes.kprobe) if trap else 0
        if trap and address in self._points:
            self._cpu["rip"] = address
            return self._hit(self._points[address])
        address = address if trap else self._cpu["rip"]
        stepped = self._owner(address)
        return stepped is not None and self._leave(stepped, number, address)

    def _hit(self, point: _PlantedPlace) -> bool:
        """A breakpoint in the kernel was executed."""
        self._addresses.forget()
        for hit in tuple(point.hits):
            hit()
        return self._begin(point)

    def _leave(self, point: _PlantedPlace, number: int, address: int) -> bool:
        """The copy in a slot has come to the breakpoint behind it, or has raised something."""
        code = self._code
        done = number == _BREAKPOINT and address == point.end
        if not done:
            code.leave()
            if self._owner(code.returns_to) is point:
                code.returns_to = point.next
        self._cpu["rip"] = point.next if address >= point.end else point.address
        return done

    def _begin(self, point: _PlantedPlace) -> bool:
        """Carry the displaced instruction out; False if the exception is the kernel's own."""
        raw = self._read(point.address)
        if not point.raw or not raw.startswith(point.raw):
            self._prepare(point, raw)
        code, cpu = self._code, self._cpu
        if point.operation is not None:
            try:
                cpu["rip"] = point.operation.run(self._step)
            except GuestFaultError:  # the processor raises it
                pass
            else:
                code.leave()
                return True
        if not point.slot:
            return point.address not in self._points  # taken out, or the kernel's breakpoint
        cpu["rip"] = point.slot
        if point.repeats:
            code.lead_back(point.slot, point.address)
        else:
            code.lead_to(point.resume)
        return True

    # -- slots ----------------------------------------------------------------------------

    def _read(self, address: int) -> bytes:
        """The bytes of an instruction, and some behind it."""
        try:
            _, left = self._addresses.physical(address)
            found = self._addresses.read(address, min(left, _LONGEST))
        except GuestFaultError:
            return b""
        if len(found) < _LONGEST:
            try:
                found += self._addresses.read(address + len(found), _LONGEST - len(found))
            except GuestFaultError:
                pass
        return found

    def _prepare(self, point: _PlantedPlace, raw: bytes) -> None:
        """Make a slot of an instruction as it is now."""
        probes = self._arch.probes
        if self._owners.get(point.slot) is point:
            del self._owners[point.slot]
        point.raw, point.slot, point.repeats, point.operation = b"", 0, False, None
        if not raw or raw.startswith(probes.kprobe):
            return
        plan = probes.analyze(raw, point.address, Rules.KPROBE, Mode.KERNEL, b"")
        slot = self._take()
        content = self._moved(plan, slot) if plan.verdict is Verdict.EMULATED else None
        resume = 0
        if content is None:
            if plan.verdict is not Verdict.XOL:
                plan = self._otherwise(point, raw)
                point.operation = plan.operation
            copy = rebased(plan.copy or plan.raw, plan.displacement, plan.address - slot)
            if copy is None:
                self._give_up(point)
                return
            content, resume = copy, plan.next
        point.raw = plan.raw
        jump = probes.jump(slot + len(content), plan.next)
        fits = jump is not None and len(content) + len(jump) <= probes.kprobe_slot
        boosted = plan.boostable and fits and plan.raw[0] != _STI  # its shadow is for what follows
        point.slot, point.end, point.resume = slot, slot + len(content), resume
        point.repeats = plan.repeats
        self._owners[slot] = point
        self._code.fill(slot, content + (jump if boosted and jump else probes.after))

    def _otherwise(self, point: _PlantedPlace, raw: bytes) -> InsnPlan:
        """The plan of what cannot be moved, or of what the kernel would not probe now.

        Uprobes' rules know of calls through memory, and copy what changes flags. What they refuse
        is carried out as it stands.
        """
        probes = self._arch.probes
        plan = probes.analyze(raw, point.address, Rules.UPROBE, Mode.KERNEL, b"")
        if plan.verdict is not Verdict.REJECTED:
            return plan
        size = probes.length(raw) or len(raw)
        return InsnPlan(point.address, raw[:size], Verdict.XOL, plan.reason, copy=raw[:size])

    def _moved(self, plan: InsnPlan, slot: int) -> bytes | None:
        """A control transfer as code for a slot; None for what is none, or cannot be moved."""
        jumps = self._arch.jumps
        moved = jumps.movable(plan.raw, plan.address) if jumps is not None else ""
        if isinstance(moved, str) or moved.leaves is Leaves.NEVER:
            return None
        return moved.emit(slot)

    def _take(self) -> int:
        """A slot for a new copy. Nobody is in one: no interrupt comes there."""
        slot = self._code.window + self._free
        self._free = (self._free + SLOT) % WINDOW
        if slot in self._owners:
            self._owners.pop(slot).raw = b""
        if self._again:
            self._code.forget()  # it may have been translated
        self._again = self._again or not self._free
        return slot

    def _give_up(self, point: _PlantedPlace) -> None:
        """Take a point out that has no slot within reach of the code."""
        self.unreached.append(point.address)
        point.raw = b""
        del self._points[point.address]
        self._code.lift(point.address)
        self._translate_again(point.address)


def breakpoints_of(
    arch: Arch, kernel: ElfImage, cpu: SystemCpu, addresses: KernelAddresses
) -> MachineBreakpoints:
    """The breakpoints of a machine with a kernel, none yet; before it runs.

    Raises:
        CommandError: the kernel, this host or this build of Unicorn does not allow it.
    """
    if any(
        each.vaddr < WINDOW_PLACE + WINDOW and each.vaddr + each.memsz > WINDOW_PLACE
        for each in kernel.load_segments
    ):
        raise CommandError(f"{kernel.name}: the kernel leaves no room for slots")
    return MachineBreakpoints(arch, cpu, addresses, cpu.plant_at(WINDOW_PLACE))
