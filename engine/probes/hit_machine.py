"""Hits one visible phase at a time: phases, their records, machines that go through them."""

from collections.abc import Sequence
from enum import Enum
from typing import Final, Protocol

from msgspec import Struct

from engine.cpu.base import Stop, StopKind
from engine.errors import EngineError, GuestFaultError
from engine.probes.kretprobe import KretprobeInstance
from engine.probes.point import ProbePoint
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


class HitMachine(Protocol):
    """Carries one hit out, a phase at a time.

    Attributes:
        point: the point that is hit.
        next: the phase that `advance` carries out; None when the hit is over.
        stop: what is left for the guest's kernel, as from `HitDispatcher.handle`.
        calls: those whose return has led here, newest first.
    """

    point: ProbePoint
    next: Phase | None
    stop: Stop | None
    calls: Sequence[KretprobeInstance]

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

    def run(self) -> list[PhaseRecord]:
        """Carry out all phases that are left."""

    def advance(self) -> PhaseRecord:
        """Carry out one phase.

        Raises:
            EngineError: the hit is over, or it cannot be carried out (no slot is left, a
                second re-entry).
        """

    def act(self, phase: Phase) -> str:
        """Do what a phase does, set `next`; it in words."""

    def places(self) -> list[tuple[int, int]]:
        """(address, size) of what is looked at for changes, beside the stack."""

    def about(self, phase: Phase) -> int | None:
        """Address of the one of them that a phase is about, changed or not."""


class PhaseWatch:
    """Lets a hit advance and sees what its phases change."""

    def __init__(self, target: ProbeTarget) -> None:
        """Look at the registers and the memory of a guest."""
        self._target = target

    def run(self, hit: HitMachine) -> list[PhaseRecord]:
        """Carry out all phases of a hit that are left."""
        records = []
        while hit.next is not None:
            records.append(self.advance(hit))
        return records

    def advance(self, hit: HitMachine) -> PhaseRecord:
        """Carry out the next phase of a hit.

        Raises:
            EngineError: see `HitMachine.advance`.
        """
        phase = hit.next
        if phase is None:
            raise EngineError(f"the hit of {hit.point.address:#x} is over")
        before = self._registers()
        words = self._words(hit)
        text = hit.act(phase)
        after = self._registers()
        pc = self._target.arch.roles.pc
        words |= {key: value for key, value in self._words(hit).items() if key not in words}
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

    def _words(self, hit: HitMachine) -> dict[int, bytes]:
        """The places that are looked at, and the words around the top of the stack."""
        top = self._target.regs.sp & -WORD
        stack = [(top + offset * WORD, WORD) for offset in range(-2, 2)]
        found = {}
        for address, size in (*hit.places(), *stack):
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
