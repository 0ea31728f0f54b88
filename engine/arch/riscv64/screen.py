"""Instructions of RISC-V that must not run in Unicorn as they stand.

- The counters (rdcycle, rdtime, rdinstret) would show the host's time: given the guest's
  deterministic one. Those of hardware events are refused, as Linux does for programs.
- Compressed instructions that RV64GC reserves: Unicorn passes over them without a word, though
  they are loads, stores and more in later extensions (Zcb). Refused where a program may hold one.
"""

from typing import Final

from engine.arch.base import Screened, Screening
from engine.arch.machine import ArchCpu, Insn
from engine.arch.riscv64.decode import NAMES, SYSTEM, rd, rs1

_COUNTERS: Final = range(0xC00, 0xC20)
_EVENTS: Final = 0xC03
"""The first counter of hardware events; cycle, time and instret stand in front of it."""

_LOADS_STORES: Final = frozenset(range(0x80, 0x90))
_ARITHMETIC: Final = frozenset(range(0x9C, 0xA0))


def _suspects(first: int) -> frozenset[int]:
    """Bytes that make an instruction to look at together with the one in front of them."""
    found: frozenset[int] = frozenset()
    if not first & 0x0F:  # upper half of csrr: a counter's number behind four bits that are 0
        found |= {0xC0, 0xC1}
    if first & 3 == 0:
        found |= _LOADS_STORES
    if first & 0x43 == 0x41:
        found |= _ARITHMETIC
    return found


SUSPECTS: Final = {first: _suspects(first) for first in range(256) if _suspects(first)}


def _counter(insn: Insn) -> int:
    """Which counter an instruction reads; 0 if none."""
    if insn.size != 4:
        return 0
    word = int.from_bytes(insn.raw, "little")
    reads = word & 0x7F == SYSTEM and word >> 12 & 3 in (2, 3) and not rs1(word)
    return word >> 20 if reads and word >> 20 in _COUNTERS else 0


def _is_reserved(raw: bytes) -> bool:
    """Tell whether bytes begin with one of the later extensions' instructions.

    The disassembler does not know them, so that all that follows may be one with them.
    """
    if len(raw) < 2:
        return False
    low, high = raw[:2]
    if low & 3 == 0:
        return high in _LOADS_STORES
    return low & 0x43 == 0x41 and high in _ARITHMETIC


def screen(insns: tuple[Insn, ...]) -> tuple[Screened, ...]:
    """The instructions among these that must not run as they stand."""
    found = []
    for insn in insns:
        if _is_reserved(insn.raw):
            found.append(Screened(insn.address, 2, Screening.REFUSE, "reserved instruction"))
            continue
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
