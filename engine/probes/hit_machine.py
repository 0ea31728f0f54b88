"""Hits one visible phase at a time: phases, their records, machines that go through them."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final, Literal, Protocol

from msgspec import Struct

from engine.cpu.base import Stop, StopKind
from engine.errors import EngineError, GuestFaultError
from engine.probes.kretprobe import KretprobeInstance
from engine.probes.point import ProbePoint
from engine.probes.point_state import Replacement
from engine.probes.target import ProbeTarget

WORD: Final = 8


class Phase(Enum):
    """A stage of a hit; the value is what people read."""

    ARMED = "armed"
    TRAP = "trap"
    PRE = "pre-handlers"
    SLOT = "out of line"
    EMULATED = "emulated"
    FIXUP = "fix-up"
    POST = "post-handlers"
    RESUME = "resume"
    JUMP = "jump"
    SAVE = "save"
    RECORD = "record"
    RESTORE = "restore"
    DISPLACED = "displaced"
    BACK = "jump back"
    CALL = "call"
    SYSCALL = "syscall"
    RETURN = "return"


class PhaseRecord(Struct, frozen=True):
    """Record of one phase.

    Attributes:
        phase: which.
        point: address of the point.
        before: pc in front of it.
        after: pc behind it.
        registers: registers that changed, pc left out: name to (old, new).
        memory: (address, old bytes, new bytes) of words of the site, the slot and the stack that
            changed, or that the phase is about (old and new are the same then).
        text: the phase in words.
        stop: what the phase ended with for the guest's kernel, None for nothing.
    """

    phase: Phase
    point: int
    before: int
    after: int
    registers: dict[str, tuple[int, int]]
    memory: tuple[tuple[int, bytes, bytes], ...]
    text: str
    stop: Stop | None = None


class BufferPart(Struct, frozen=True):
    """A part of the code that a hit is led through.

    Attributes:
        phase: in which it is executed.
        start: guest address.
        end: one past its last byte.
        original: address of the instruction that it stands for; None for the engine's own code.
    """

    phase: Phase
    start: int
    end: int
    original: int | None = None


class BufferedReplacement(Replacement, Protocol):
    """A replacement whose hits are led through code of the engine's in the guest."""

    @property
    def address(self) -> int:
        """Guest address of the probe."""

    @property
    def original(self) -> bytes:
        """The program's bytes that it stands in place of."""

    @property
    def jump(self) -> bytes:
        """The bytes there that lead to the buffer; none where a breakpoint does."""

    @property
    def start(self) -> int:
        """Guest address of the buffer, which is its `code`."""


class HitBuffer(Struct, frozen=True):
    """The code of the engine's in the guest that a hit is led through instead of a trap.

    Attributes:
        what: how hits come there: "detour" for a jump, "called" for a call.
        replacement: has the code.
        parts: what its bytes do, in their order.
    """

    what: Literal["detour", "called"]
    replacement: BufferedReplacement
    parts: tuple[BufferPart, ...]


class HitMachine(Protocol):
    """Carries one hit out, a phase at a time.

    Attributes:
        target: the guest.
        point: the point that is hit.
        phases: what each of its phases does, which sets `next`; it in words.
        next: the phase that it stands in front of; None when the hit is over.
        stop: what is left for the guest's kernel, as from `HitDispatcher.handle`.
        calls: those whose return has led here, newest first.
        buffer: the code that it leads through; None for a breakpoint's.
    """

    target: ProbeTarget
    point: ProbePoint
    phases: Mapping[Phase, Callable[[], str]]
    next: Phase | None
    stop: Stop | None
    calls: Sequence[KretprobeInstance]
    buffer: HitBuffer | None

    @property
    def slot(self) -> int | None:
        """Address of the slot of this hit; None while it has none, and where there is none."""

    @property
    def began(self) -> int | None:
        """The program's own place all the while; None where it moves on during the hit."""

    @property
    def ahead(self) -> tuple[Phase, ...]:
        """The phases from the next one on, if nothing goes wrong."""

    @property
    def own(self) -> dict[str, int]:
        """Registers that hold something of the machinery's, and what the program would see."""

    def places(self) -> list[tuple[int, int]]:
        """(address, size) of what is looked at for changes, beside the stack."""

    def about(self, phase: Phase) -> int | None:
        """Address of the one of them that a phase is about, changed or not."""


class PhaseWatch:
    """Carries a hit out, and sees what its phases change."""

    def __init__(self, hit: HitMachine) -> None:
        """Stand in front of the phase that is the hit's next one."""
        self._hit, self._target = hit, hit.target

    def run(self) -> list[PhaseRecord]:
        """Carry out all phases that are left."""
        records = []
        while self._hit.next is not None:
            records.append(self.advance())
        return records

    def advance(self) -> PhaseRecord:
        """Carry out the next phase.

        Raises:
            EngineError: the hit is over, or it cannot be carried out (no slot is left, a
                second re-entry).
        """
        hit = self._hit
        phase = hit.next
        if phase is None:
            raise EngineError(f"the hit of {hit.point.address:#x} is over")
        before = self._registers()
        words = self._words()
        text = hit.phases[phase]()
        after = self._registers()
        pc = self._target.arch.roles.pc
        words |= {key: value for key, value in self._words().items() if key not in words}
        return PhaseRecord(
            phase,
            hit.point.address,
            before[pc],
            after[pc],
            {
                name: (value, after[name])
                for name, value in before.items()
                if name != pc and value != after[name]
            },
            tuple(self._changes(words, hit.about(phase))),
            text,
            None if hit.next is not None else hit.stop,
        )

    def _registers(self) -> dict[str, int]:
        cpu = self._target.cpu
        return {item.name: cpu.read_register(item.name) for item in self._target.arch.registers}

    def _words(self) -> dict[int, bytes]:
        """The places that are looked at, and the words around the top of the stack."""
        top = self._target.regs.sp & -WORD
        stack = [(top + offset * WORD, WORD) for offset in range(-2, 2)]
        found = {}
        for address, size in (*self._hit.places(), *stack):
            try:
                found[address] = self._target.memory.read(address, size)
            except GuestFaultError:
                continue
        return found

    def _changes(
        self, words: dict[int, bytes], about: int | None
    ) -> list[tuple[int, bytes, bytes]]:
        changes = []
        for address, old in words.items():
            try:
                new = self._target.memory.read(address, len(old))
            except GuestFaultError:
                continue
            if new != old or address == about:
                changes.append((address, old, new))
        return changes


def stop_name(stop: Stop) -> str:
    """A stop in words."""
    kind = stop.trap if stop.kind is StopKind.TRAP else stop.kind
    return kind.name.lower().replace("_", " ")
