"""A hit one visible phase at a time: what a phase is, and what all hits have in common."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from engine.arch.base import Arch
from engine.cpu.base import Cpu, Stop, StopKind
from engine.errors import EngineError, GuestFaultError
from engine.guest.memory import Memory
from engine.probes.kretprobe import KretprobeInstance
from engine.probes.point import ProbePoint
from engine.probes.regs import PtRegs

WORD: Final = 8


class Phase(Enum):
    """Where a hit stands; the value is what people read."""

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


@dataclass(frozen=True, slots=True)
class PhaseRecord:
    """What one phase did.

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


class Machinery(Protocol):
    """What is asked of the manager of probes."""

    arch: Arch
    cpu: Cpu
    memory: Memory
    regs: PtRegs


class HitMachine:
    """Carries one hit out, a phase at a time.

    Attributes:
        point: the point that is hit.
        next: the phase that `advance` carries out; None when the hit is over.
        stop: what is left for the guest's kernel, as from `ProbeManager.handle`.
        calls: those whose return has led here, newest first.
    """

    def __init__(self, machinery: Machinery, point: ProbePoint, first: Phase) -> None:
        self._cpu = machinery.cpu
        self._arch = machinery.arch
        self._memory = machinery.memory
        self._regs = machinery.regs
        self.point = point
        self.next: Phase | None = first
        self.stop: Stop | None = None
        self.calls: Sequence[KretprobeInstance] = ()

    @property
    def slot(self) -> int | None:
        """Address of the slot of this hit; None while it has none, and where there is none."""
        return None

    def run(self) -> list[PhaseRecord]:
        """Carry out all phases that are left."""
        records = []
        while self.next is not None:
            records.append(self.advance())
        return records

    def advance(self) -> PhaseRecord:
        """Carry out one phase.

        Raises:
            EngineError: the hit is over, or it cannot be carried out (no slot is left, a
                second re-entry).
        """
        phase = self.next
        if phase is None:
            raise EngineError(f"the hit of {self.point.address:#x} is over")
        before = self._registers()
        words = self._words()
        text = self._does[phase]()
        after = self._registers()
        pc = self._arch.roles.pc
        words |= {key: value for key, value in self._words().items() if key not in words}
        return PhaseRecord(
            phase,
            self.point.address,
            before[pc],
            after[pc],
            {
                name: (value, after[name])
                for name, value in before.items()
                if name != pc and value != after[name]
            },
            tuple(self._changes(words, self._about(phase))),
            text,
            None if self.next is not None else self.stop,
        )

    @property
    def ahead(self) -> tuple[Phase, ...]:
        """The phases from the next one on, if nothing goes wrong."""
        raise NotImplementedError

    @property
    def own(self) -> dict[str, int]:
        """Registers that hold something of the machinery's, and what the program would see."""
        return {}

    @property
    def _does(self) -> Mapping[Phase, Callable[[], str]]:
        """What carries each phase out; returns it in words."""
        raise NotImplementedError

    def _places(self) -> list[tuple[int, int]]:
        """(address, size) of what is looked at for changes, beside the stack."""
        raise NotImplementedError

    def _about(self, phase: Phase) -> int | None:
        """Which of them a phase is about, changed or not."""
        return self.point.plan.base if phase in (Phase.ARMED, Phase.TRAP) else None

    def _registers(self) -> dict[str, int]:
        return {item.name: self._cpu.read_register(item.name) for item in self._arch.registers}

    def _words(self) -> dict[int, bytes]:
        """What is looked at, and the words around the top of the stack."""
        top = self._regs.sp & -WORD
        stack = [(top + offset * WORD, WORD) for offset in range(-2, 2)]
        found = {}
        for address, size in (*self._places(), *stack):
            try:
                found[address] = self._memory.read(address, size)
            except GuestFaultError:
                continue
        return found

    def _changes(
        self, words: dict[int, bytes], about: int | None
    ) -> list[tuple[int, bytes, bytes]]:
        changes = []
        for address, old in words.items():
            try:
                new = self._memory.read(address, len(old))
            except GuestFaultError:
                continue
            if new != old or address == about:
                changes.append((address, old, new))
        return changes


def stop_name(stop: Stop) -> str:
    """A stop in words."""
    kind = stop.trap if stop.kind is StopKind.TRAP else stop.kind
    return kind.name.lower().replace("_", " ")
