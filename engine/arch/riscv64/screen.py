"""Instructions of RISC-V that must not run in Unicorn as they stand.

The counters (rdcycle, rdtime, rdinstret) would show the host's time: given the guest's
deterministic one. Those of hardware events are refused, as Linux does for programs.
"""

from typing import Final

from engine.arch.base import ArchCpu, Insn, Screened, Screening
from engine.arch.riscv64.decode import NAMES, SYSTEM, rd, rs1

_COUNTERS: Final = range(0xC00, 0xC20)
_EVENTS: Final = 0xC03
"""The first counter of hardware events; cycle, time and instret stand in front of it."""

SUSPECTS: Final = {low << 4: frozenset({0xC0, 0xC1}) for low in range(16)}
"""A counter's number is in the upper twelve bits of `csrr`, behind four bits that are 0."""


def _counter(insn: Insn) -> int:
    """Which counter an instruction reads; 0 if none."""
    if insn.size != 4:
        return 0
    word = int.from_bytes(insn.raw, "little")
    reads = word & 0x7F == SYSTEM and word >> 12 & 3 in (2, 3) and not rs1(word)
    return word >> 20 if reads and word >> 20 in _COUNTERS else 0


def screen(insns: tuple[Insn, ...]) -> tuple[Screened, ...]:
    """The instructions among these that must not run as they stand."""
    found = []
    for insn in insns:
        number = _counter(insn)
        if number:
            refused = number >= _EVENTS
            action = Screening.REFUSE if refused else Screening.EMULATE
            what = "counter of hardware events" if refused else "counter"
            found.append(Screened(insn.address, insn.size, action, what))
    return tuple(found)


def prepare(cpu: ArchCpu, insn: Insn) -> None:
    """Nothing runs in place here."""


def emulate(cpu: ArchCpu, insn: Insn) -> int:
    """A counter's value into its register; the address behind the instruction."""
    target = rd(int.from_bytes(insn.raw, "little"))
    if target:
        cpu.write_register(NAMES[target], cpu.counter())
    return insn.address + 4


def emulate_trapped(cpu: ArchCpu, raw: bytes, pc: int) -> int | None:
    """Linux carries no trapped instruction out."""
    return None
