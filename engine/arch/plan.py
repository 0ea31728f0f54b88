"""Plans for displaced instructions, and an architecture's part in breakpoint probes.

An `InsnPlan` is the only truth about a step. `ArchProbes.analyze` makes it from the
instruction's bytes alone; the executors, the placement rules and the machinery view read it.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, Protocol

from msgspec import Struct, field

from engine.arch.drawing import DrawnHit, UnitDrawing
from engine.arch.flow import CodeFlow
from engine.arch.machine import RegisterFile

RETURN_ADDRESS: Final = "return address"
TRAMPOLINE_ADDRESS: Final = "trampoline"
"""Words of `ArchProbes.pushes` that are no registers."""


class Rules(Enum):
    """Whose rules decide: the kernel's two mechanisms refuse different instructions."""

    KPROBE = "kprobe"
    UPROBE = "uprobe"


class Mode(Enum):
    """KERNEL accepts and refuses as Linux does; STRICT also refuses what would corrupt."""

    KERNEL = "kernel"
    STRICT = "strict"


class Verdict(Enum):
    """Ways to carry out the displaced instruction."""

    REJECTED = "rejected"
    EMULATED = "emulated"
    XOL = "xol"


class Fixup(Enum):
    """Corrections after the copy has run in its slot."""

    IP = "ip"
    """pc moves from behind the copy to behind the original."""
    CALL = "call"
    """The pushed (or linked) return address becomes the original's."""
    NOT_TAKEN = "not-taken"
    """pc moves to behind the original if it is in the copy still, or right behind it."""
    VALUE = "value"
    """A register that was given the copy's address gets the original's."""
    SCRATCH = "scratch"
    """A register that stood in for pc in the copy gets its own value back."""
    FLAGS = "flags"
    """The instruction itself sets the flags: what it left in TF stays."""
    TRACE_FLAG = "trace-flag"
    """TF of the single step shows in the pushed flags, as under Linux's uprobes."""
    STEP_FLAG = "step-flag"
    """TF of the single step stays set, where Linux takes an instruction for popf."""
    STRANDED = "stranded"
    """pc stays behind the copy, where Linux takes an instruction for a return."""


class StepCpu(RegisterFile, Protocol):
    """Registers, and memory as the program itself could touch it, for an operation."""

    def load(self, address: int, size: int) -> bytes:
        """Read as the program would; GuestFaultError where it would fault."""

    def store(self, address: int, data: bytes) -> None:
        """Write as the program would; GuestFaultError, nothing written, where it would fault."""

    def execute(self, address: int, raw: bytes) -> int:
        """Let the processor carry one instruction out as if it stood at an address.

        Only processors of our own can do that.

        Args:
            address: of the instruction; what is planted there does not matter.
            raw: its original bytes; those of all its bundle where several share one.

        Returns:
            The next pc.

        Raises:
            StepStopError: it did something that the engine or the guest's kernel sees to.
        """


class Operation(Struct, frozen=True):
    """An instruction carried out in software.

    Attributes:
        text: what it does, in words ("push the return address 0x401156, jump to 0x401020").
        run: does it with the instruction's own address as pc; returns the next pc. Raises
            GuestFaultError with nothing changed where the instruction itself would fault,
            and what `StepCpu.execute` raises.
        pushes: bytes it stores below sp at the most (0 = leaves the stack alone).
        machinery: it is the engine's, and no instruction of the program's.
    """

    text: str
    run: Callable[[StepCpu], int]
    pushes: int = 0
    machinery: bool = False


class InsnPlan(Struct, frozen=True):
    """Plan for one instruction at one address.

    Attributes:
        address: where the original stands.
        raw: its bytes.
        verdict: how it is carried out.
        errno: name of the kernel's error for a refusal ("EILSEQ", "EOPNOTSUPP", "EINVAL",
            "ENOEXEC", "ENOTSUPP"), "" otherwise.
        rule: id of the rule that decided ("x86.uprobe-prefix", ...), for `check`.
        reason: the decision in words, for people; always given.
        proven: False where the verdict comes from the kernel's sources alone, not from a run.
        copy: what stands in the slot; for XOL.
        displacement: offset in `copy` of a signed 32-bit displacement that is relative to the
            end of the copy: it is rebased by original minus slot where it reaches.
        scratch: register that stands in for pc in `scratch_copy`; its value during the step
            is the address behind the original.
        scratch_copy: the copy with that register as the base; used under uprobe rules and
            wherever a displacement cannot be rebased.
        fixups: what is put right afterwards, in order.
        boostable: the copy may be followed by a jump back in place of a trap.
        operation: how software carries it out; for EMULATED always, for XOL where the copy
            leaves its slot (calls, returns, jumps): the fast executor uses it.
        repeats: a string instruction with a repeat prefix.
        atomic: one that must not be separated from its neighbours (exclusive pair).
        step: distance to the next instruction where that is not all of `raw`.
        bits: (value, mask) of what a probe plants over `raw`, where that is not the
            architecture's breakpoint at the address: `raw` is then a whole bundle.
        predicate: register that is 0 while the breakpoint is passed over; "" = it always traps.
        entry: distance from the start of the copy to the instruction in it that is stepped.
        link: register that CALL and VALUE put right; "" = where calls leave their return address.
        wrong: what Linux does wrong there, and kernel mode with it, in words that follow "Linux".
        boosted_next: where a boosted copy goes on, if it runs past `next`; 0 = there.
    """

    address: int
    raw: bytes
    verdict: Verdict
    reason: str
    errno: str = ""
    rule: str = ""
    proven: bool = True
    copy: bytes = b""
    displacement: int | None = None
    scratch: str | None = None
    scratch_copy: bytes = b""
    fixups: tuple[Fixup, ...] = ()
    boostable: bool = False
    operation: Operation | None = None
    repeats: bool = False
    atomic: bool = False
    step: int = 0
    bits: tuple[bytes, bytes] | None = None
    predicate: str = ""
    entry: int = 0
    link: str = ""
    wrong: str = ""
    boosted_next: int = 0

    @property
    def size(self) -> int:
        """Distance to the next instruction in bytes."""
        return self.step or len(self.raw)

    @property
    def next(self) -> int:
        """The address behind it."""
        return self.address + self.size

    @property
    def base(self) -> int:
        """Address of `raw`: the instruction's, or that of the bundle that it is in."""
        return self.address if self.bits is None else self.address - self.address % len(self.raw)


class ArchProbes(Struct, frozen=True):
    """An architecture's part in breakpoint probes.

    Attributes:
        kprobe: bytes planted for a kprobe.
        uprobe: bytes planted for a uprobe.
        after: bytes behind a copy that end its step; none where the processor's own single step
            does (`engine.cpu.base.SingleSteps`).
        kprobe_slot: bytes of a kprobe's slot.
        uprobe_slot: bytes of a slot of the XOL area.
        reach: how far a boosted slot may be from its probe, in bytes.
        analyze: (up to `insn_max` original bytes from the unit around the address, address,
            rules, mode, original bytes of the same function before the address) to a plan.
        length: length of the instruction at the front of some bytes; 0 if there is none.
        starts: (code, its address) to the addresses of its instructions, and that of the first
            bytes that are none (None if all are): as `length` one after the other, but quicker;
            None where that has to do.
        steps: distances from each instruction of a unit (`Arch.code_unit`) to the next, none
            if it holds no code; None where an instruction is a unit of its own.
        jump: (place, target) to code that goes there and changes nothing else, None beyond
            the reach.
        target: (raw, address) to the target of a direct branch, None for anything else.
        landing_pad: length of the landing pad that some bytes begin with (endbr64, bti), 0
            if none.
        fetch_registers: names in the kernel's fetch arguments to register names.
        arguments: registers of a function's first arguments.
        retval: register of its result.
        nop: a no-operation as the kernel pads with.
        skips_landing_pad: whether a kprobe on a function's entry goes behind its landing pad,
            as on x86 (arch_adjust_kprobe_addr); elsewhere the trap itself is a valid pad.
        flow: (bytes of a function, its address) to what is in use at its places; None where
            nobody says.
        returns: (bytes) to the sizes of return instructions that they may end with.
        draw: (plan, what stands where) to the units of code of a hit; None where bytes say enough.
        fixed_registers: names in the kernel's fetch arguments of what is no register: they
            have the same value at every probe.
        pushes: words that Linux's return trampoline has below the stack pointer while return
            events are recorded, the uppermost first: registers, numbers, RETURN_ADDRESS,
            TRAMPOLINE_ADDRESS.
        looks_back: bytes of the function before the address that `analyze` looks at.
        ties: (bytes of a function) to whether what stands before an instruction may matter in it.
        long_breakpoint: another breakpoint than `kprobe`, which Linux's uprobes take for a
            shorter one (`engine.arch.uprobe_faults.INT3`); none where there is no such.
        anywhere: (an instruction's bytes, rules, mode) to its plan at address 0 if verdict, reason
            and `boostable` of it are the same at every address and whatever follows; else None.
    """

    kprobe: bytes
    uprobe: bytes
    after: bytes
    kprobe_slot: int
    uprobe_slot: int
    reach: int
    analyze: Callable[[bytes, int, Rules, Mode, bytes], InsnPlan]
    length: Callable[[bytes], int]
    jump: Callable[[int, int], bytes | None]
    target: Callable[[bytes, int], int | None]
    landing_pad: Callable[[bytes], int]
    fetch_registers: Mapping[str, str]
    arguments: tuple[str, ...]
    retval: str
    nop: bytes
    skips_landing_pad: bool = False
    flow: Callable[[bytes, int], CodeFlow] | None = None
    returns: Callable[[bytes], tuple[int, ...]] = lambda code: ()
    fixed_registers: Mapping[str, int] = field(default_factory=dict)
    steps: Callable[[bytes], tuple[int, ...]] | None = None
    starts: Callable[[bytes, int], tuple[list[int], int | None]] | None = None
    draw: Callable[[InsnPlan, DrawnHit], tuple[UnitDrawing, ...]] | None = None
    pushes: Mapping[Rules, tuple[str | int, ...]] = field(default_factory=dict)
    looks_back: int = 0
    ties: Callable[[bytes], bool] = lambda code: False
    long_breakpoint: bytes = b""
    anywhere: Callable[[bytes, Rules, Mode], InsnPlan | None] = lambda raw, rules, mode: None
