"""Returns through a trampoline on IA-64, both ways, and marks that tell calls apart.

Linux put the trampoline's address into b0 (arch/ia64/kernel/kprobes.c). Keith Owens proposed in
2005 to keep the return address in the hooked call's stack frame and to describe the trampoline
by unwind data, so that every unwinder gets through it. Of his sketch are kept the place of what
is saved (the 16 bytes above sp that a function may use), the new sp below it and the empty frame
of the trampoline; different are:

- What was saved is found above the lowered sp, which goes up again at the end.
- br.ret enters slot 0, where a save that slot 0 makes is not in force yet: a bundle that is
  never executed stands in front and is the prologue.
- A function reads its ninth and later arguments from 16 bytes above sp: they are copied along.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from engine.arch.ia64.bundle import SIZE, unpack
from engine.arch.ia64.rse import CFM_MASK, MASK, locals_size, skip_up
from engine.arch.plan import InsnPlan, StepCpu
from engine.arch.returns import ArchReturns, CarriedReturns, FrameKeys, Trampoline
from engine.errors import GuestFaultError

ARGUMENTS: Final = 240
"""Bytes of arguments on the stack that a hooked function finds where it looks for them."""

_SCRATCH: Final = 16
_FRAME: Final = _SCRATCH + ARGUMENTS

_BREAK: Final = "01008040000000000002000000000400"  # break.m 0x81000; nop.i; nop.i

_CARRIED: Final = bytes.fromhex(
    "01000000010000000002000000000400"  # the prologue: nops
    f"{_BREAK}"
    "09782018022100013004420000000400"  # adds r15=264,r12; adds r16=256,r12
    "0978001e181000014030200000000400"  # ld8 r15=[r15]; ld8 r16=[r16]
    "0100000001000078048003000001aa00"  # mov b0=r15; mov.i ar.pfs=r16
    "11600018022100000002008008008400"  # adds r12=256,r12; br.ret.sptk.many b0
)
_LAST: Final = len(_CARRIED) - SIZE
"""Distance of the bundle with br.ret, which is its slot 2."""
_UNWIND: Final = bytes.fromhex(
    "02000000 00000100"  # version 1, two words
    "03 e00010"  # a prologue of 3 slots; the frame: 256 bytes
    "e600 e704"  # ar.pfs is saved at psp
    "e400 e502"  # rp at psp + 8
    "2f c002 00"  # a body of 15 slots; its epilogue begins with the third last
)
"""As gas writes .savepsp ar.pfs,0 and .savepsp rp,-8."""


def _entered(values: Sequence[int]) -> int:
    """Order calls by both stacks: the register stack grows upwards, the other one downwards."""
    return values[0] << 64 | values[1] ^ MASK


def _returned(values: Sequence[int]) -> int:
    """The callee's frame began behind the locals of its caller."""
    return values[0] << 64 | skip_up(values[1], locals_size(values[2])) ^ MASK


def _hook(cpu: StepCpu, trampoline: int) -> None:
    """Save what brings the function back, in its own part of the stack; lower sp.

    The trampoline has no registers of its own: br.ret gives it an empty frame, and its own
    br.ret the caller's.
    """
    sp = cpu.read_register("r12")
    pfs, link = cpu.read_register("pfs"), cpu.read_register("b0")
    saved = pfs.to_bytes(8, "little") + link.to_bytes(8, "little")
    cpu.store(sp - _FRAME + _SCRATCH, _arguments(cpu, sp + _SCRATCH) + saved)
    cpu.write_register("r12", sp - _FRAME)
    cpu.write_register("b0", trampoline)
    cpu.write_register("pfs", pfs & ~CFM_MASK)


def _give_back(cpu: StepCpu, trampoline: int) -> None:
    """Read what was saved, raise sp again, return."""
    sp = cpu.read_register("r12")
    saved = cpu.load(sp + _FRAME, _SCRATCH)
    cpu.write_register("pfs", int.from_bytes(saved[:8], "little"))
    cpu.write_register("b0", int.from_bytes(saved[8:], "little"))
    cpu.write_register("r12", sp + _FRAME & MASK)
    cpu.execute(trampoline + _LAST - SIZE + 2, _CARRIED[_LAST:])


def _arguments(cpu: StepCpu, address: int) -> bytes:
    """The arguments on the stack, if there are any; at the stack's very top there is less."""
    for size in range(ARGUMENTS, 0, -8):
        try:
            return cpu.load(address, size).ljust(ARGUMENTS, b"\0")
        except GuestFaultError:
            continue
    return bytes(ARGUMENTS)


def _unconditional(plan: InsnPlan) -> InsnPlan:
    if not plan.predicate:
        return plan
    from engine.arch.ia64.analyze import patch  # which needs the tables of instructions

    bits = patch(unpack(plan.raw), plan.address % SIZE, 0)
    return replace(plan, bits=bits, predicate="")


def _skipped(code: bytes) -> bool:
    """True if all calls of a bundle depend on predicates, or there are none."""
    bundle = unpack(code)
    for unit, word in zip(bundle.units, bundle.slots, strict=True):
        major = word >> 37
        if (unit == "B" and major in (1, 5)) or (unit == "L" and bundle.slots[2] >> 37 == 0xD):
            qp = (bundle.slots[2] if unit == "L" else word) & 63
            if not qp:
                return False
    return True


RETURNS: Final = ArchReturns(
    trampoline=Trampoline(bytes.fromhex(_BREAK), step=1),
    keys=FrameKeys(("r12", "bsp"), _entered, ("r12", "bsp", "cfm"), _returned, 64),
    carried=CarriedReturns(
        Trampoline(_CARRIED, entry=SIZE, step=1, unwind=_UNWIND),
        size=_FRAME,
        scratch=_SCRATCH,
        registers=("r12", "b0", "pfs"),
        hook=_hook,
        give_back=_give_back,
    ),
    skipped=_skipped,
    unconditional=_unconditional,
)
