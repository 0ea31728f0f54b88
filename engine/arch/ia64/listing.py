"""Bundles as a list of instructions for those above."""

from msgspec.structs import replace

from engine.arch.ia64.bundle import SIZE
from engine.arch.machine import Insn


def decode(address: int, raw: bytes) -> tuple[Insn, ...]:
    """The instructions from an address on.

    Args:
        address: of a bundle plus the number of a slot.
        raw: bytes from the bundle on; one that is cut off is left out.
    """
    from engine.arch.ia64.text import bundle_insns  # tables that other guests do not need

    base = address & -SIZE
    found: list[Insn] = []
    for at in range(0, len(raw) - SIZE + 1, SIZE):
        insns = bundle_insns(base + at, raw[at : at + SIZE])
        ends = *(insn.address for insn in insns[1:]), base + at + SIZE
        for insn, end in zip(insns, ends, strict=True):
            found.append(replace(insn, step=end - insn.address))
    return tuple(insn for insn in found if insn.address >= address)
