"""The copy of a bundle in a slot: what is stepped in it, put right behind it, run on in it.

As arch/ia64/kernel/kprobes.c of Linux 6.1 does it, the whole bundle is copied as it is, one slot
of the copy is executed with psr.ss set (`prepare_ss`), and pc and the link register are put right
(`resume_execution`). A copy with nothing in the way is boosted: from its slot on it runs at full
speed into a second bundle that jumps behind the original (`can_boost`, `set_brl_inst`).

`linux_fixups` is what the kernel puts right, `fixups` all that a copy needs.
"""

from collections.abc import Callable
from typing import Final

from engine.arch.ia64.bundle import Bundle
from engine.arch.ia64.decode import SlotInsn, decode_bundle
from engine.arch.plan import Fixup

BREAKS: Final = frozenset(("M37", "I19", "F15", "B9", "X1"))
_RELATIVE: Final = frozenset(
    ("B1", "B2", "B3", "X3", "X4", "M20", "M21", "M22", "M23", "I20", "F14")
)
_CALLS: Final = frozenset(("B3", "B5", "X4"))
_READS_IP: Final = ("I25", 0x30)
_LINUX_LINKS: Final = (0, 6, 7)
"""Branch registers that resume_execution knows."""
_INDIRECT_CALL, _RELATIVE_BRANCH, _RELATIVE_CALL, _PREDICT, _LONG_CALL = 1, 4, 5, 7, 0xD

Fixups = tuple[tuple[Fixup, ...], str]
"""Fixups, and the register that CALL and VALUE mean."""


def is_break(insn: SlotInsn) -> bool:
    """True if an instruction raises an exception of its own."""
    return insn.format in BREAKS and not (insn.format == "B9" and insn.word >> 37)


def reads_ip(insn: SlotInsn) -> bool:
    """True if it is `mov r=ip`."""
    return insn.format == _READS_IP[0] and insn.field("x6") == _READS_IP[1]


def fixups(insn: SlotInsn | None) -> Fixups:
    """All that must be put right behind a copy."""
    if insn is None or insn.form is None:
        return (Fixup.IP,), ""
    if insn.format in _CALLS:
        pc = Fixup.IP if insn.format in _RELATIVE else Fixup.NOT_TAKEN
        return (pc, Fixup.CALL), f"b{insn.field('b1')}"
    if insn.format == "B4":
        return (Fixup.NOT_TAKEN,), ""
    if reads_ip(insn):
        return (Fixup.IP, Fixup.VALUE), f"r{insn.field('r1')}"
    return (Fixup.IP,), ""


def linux_fixups(unit: str, word: int) -> Fixups:
    """Fixups by Linux behind a copy (update_kprobe_inst_flag, resume_execution).

    Args:
        unit: of the slot; "X" or "L" for a long instruction.
        word: of the slot, the X slot of a long one.
    """
    major, register = word >> 37, word >> 6 & 7
    link = f"b{register}" if register in _LINUX_LINKS else ""
    if unit == "B" and major in (_RELATIVE_BRANCH, _PREDICT):
        return (Fixup.IP,), ""
    if unit == "B" and major == _RELATIVE_CALL:
        return (Fixup.IP, Fixup.CALL)[: 2 if link else 1], link
    if (unit == "B" and major == _INDIRECT_CALL) or (unit in ("L", "X") and major == _LONG_CALL):
        return (Fixup.CALL,) if link else (), link
    return (Fixup.NOT_TAKEN,), ""


def astray(insn: SlotInsn | None, unit: str, word: int) -> str:
    """Error that Linux leaves behind a copy, in words that follow "Linux"; "" for none."""
    if insn is None or insn.form is None:
        return ""
    wanted, link = fixups(insn)
    done, known = linux_fixups(unit, word)
    found = []
    if insn.format in _RELATIVE and Fixup.IP not in done:
        found.append("its target relative to the copy of the bundle")
    if Fixup.CALL in wanted and link != known:
        found.append(f"{link} as the copy's return address")
    if Fixup.VALUE in wanted:
        found.append(f"{link} as the copy's address")
    return f"leaves {' and '.join(found)}" if found else ""


def no_boost(bundle: Bundle, slot: int, *, strict: bool) -> str:
    """Why the rest of a copied bundle cannot run on in its slot, in words; "" if it can.

    Linux looks for breaks and for branches, and overlooks checks and `mov r=ip`.

    Args:
        bundle: the original.
        slot: the first one that runs.
        strict: whether what Linux overlooks counts too.
    """
    units = bundle.units
    if not units:
        return "its template is reserved"
    if "B" in units or bundle.long:
        return f"its bundle is {units}"
    for insn in decode_bundle(bundle)[slot:]:
        for where, what in _IN_THE_WAY:
            if where(insn) and (strict or where is is_break):
                return f"{what} in slot {insn.slot}"
    return ""


_IN_THE_WAY: Final[tuple[tuple[Callable[[SlotInsn], bool], str], ...]] = (
    (is_break, "there is a break"),
    (lambda insn: insn.format in _RELATIVE, "there is a check"),
    (reads_ip, "pc is read"),
)
