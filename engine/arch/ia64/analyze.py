"""What a probe does with an instruction of IA-64.

The rules are those of Linux 6.1 (arch/ia64/kernel/kprobes.c), the last series but one that had
the architecture; read, not run: `proven` is False everywhere. Linux copies the whole bundle,
executes one slot of the copy and puts pc and the link register right. The core here is the
engine's own and can be given a slot apart from memory: it carries the instruction out at its
own address, and nothing is left to put right. That makes right what Linux got wrong: brl.cond,
brl.call, chk.a, chk.s.m and fchkf go where they should, and calls may use any link register.

Linux had no uprobes on IA-64. Kernel mode refuses them; strict mode takes them under the rules
of kprobes.
"""

from typing import Final

from engine.arch.ia64.bundle import SIZE, SLOT_MASK, Bundle, next_slot, unpack
from engine.arch.ia64.decode import SlotInsn, decode_at
from engine.arch.ia64.probes import BREAK
from engine.arch.ia64.text import parts
from engine.arch.plan import InsnPlan, Mode, Operation, Rules, Verdict

_QP: Final = 63
_PATCH_AT: Final = (5, 64, 87)  # lowest bit that a probe changes in each slot
_UPPER: Final = 18
"""Bits of slot 1 in the bundle's first word: they stay, so that one store arms a probe."""

_TESTS_WHILE_FALSE: Final = frozenset(("B1",))
_ASTRAY: Final = frozenset(("X3", "X4", "M20", "M21", "M22", "M23", "F14"))


def _refused(address: int, raw: bytes, rule: str, reason: str, errno: str = "EINVAL") -> InsnPlan:
    return InsnPlan(address, raw, Verdict.REJECTED, reason, errno=errno, rule=rule, proven=False)


def analyze(raw: bytes, address: int, rules: Rules, mode: Mode, before: bytes) -> InsnPlan:
    """Plan the step over the instruction in one slot.

    Args:
        raw: original bytes from the bundle on; the first 16 count.
        address: of the bundle plus the number of the slot.
        rules: of kprobes (valid_kprobe_addr, unsupported_inst); Linux had no uprobes.
        mode: KERNEL or STRICT.
        before: not looked at.

    Returns:
        The plan; what cannot be probed is REJECTED, never an exception.
    """
    raw, slot = raw[:SIZE], address % SIZE
    strict = mode is Mode.STRICT
    if slot > 2:
        return _refused(address, raw, "ia64.slot", f"a bundle has slots 0 to 2, not {slot}")
    if len(raw) < SIZE:
        return _refused(address, raw, "ia64.truncated", "no whole bundle is mapped there")
    if rules is Rules.UPROBE and not strict:
        return _refused(address, raw, "ia64.uprobe", "Linux has no uprobes on IA-64", "EOPNOTSUPP")
    bundle = unpack(raw)
    if bundle.long and slot == 2:
        return _refused(
            address, raw, "ia64.slot", "slots 1 and 2 are one long instruction, which is slot 1"
        )
    unit = bundle.units[slot] if bundle.units else ""
    word = bundle.slots[2 if unit == "L" else slot]
    insn = decode_at(raw, slot)
    why = _unsupported(unit, word)
    if why:
        return _refused(address, raw, *why)
    unconditional = _acts_while_false(unit, word)
    if unconditional and slot == 1 and word & _QP:
        return _refused(
            address,
            raw,
            "ia64.slot-1-predicate",
            f"{unconditional} acts even while p{word & _QP} is false, but a probe of slot 1 "
            f"leaves the bits there that make its break depend on p{word & _QP}",
        )
    if insn is None or insn.form is None:
        if strict:
            what = "reserved encoding" if insn is not None else f"template {bundle.template:#x}"
            return _refused(address, raw, "ia64.undefined", f"{what}: there is nothing to step")
        text, always = "an undefined instruction", False
    else:
        text = " ".join(filter(None, parts(insn, address & -SIZE)))
        always = bool(unconditional) or _loops_while_false(insn)
    qp = 0 if always else word & _QP
    return InsnPlan(
        address,
        raw,
        Verdict.EMULATED,
        _reason(insn, text, word, always),
        rule="ia64.apart",
        proven=False,
        operation=Operation(text, lambda cpu: cpu.execute(address, raw)),
        step=next_slot(address, bundle) - address,
        bits=patch(bundle, slot, qp),
        predicate=f"p{qp}" if qp else "",
    )


def patch(bundle: Bundle, slot: int, qp: int) -> tuple[bytes, bytes]:
    """(value, mask) of the bits that Linux changes in a bundle for a probe.

    A long instruction gets its break in the X slot. Of slot 1 only the bits in the second word
    change: its predicate and the low bits of the immediate stay those of the original.
    """
    slot = 2 if bundle.long and slot else slot
    low = _UPPER if slot == 1 else 0
    mask = SLOT_MASK >> low << _PATCH_AT[slot]
    value = (BREAK | qp) >> low << _PATCH_AT[slot]
    return value.to_bytes(SIZE, "little"), mask.to_bytes(SIZE, "little")


def _unsupported(unit: str, word: int) -> tuple[str, str] | None:
    """(rule, reason) of what Linux refuses in any slot (unsupported_inst)."""
    major = word >> 37
    if unit == "I" and major == 0:
        if word >> 33 & 7 == 1:
            return "ia64.chk", "chk.s.i: its target is relative to the copy's address"
        if word >> 33 & 7 == 0 and word >> 27 & 63 == 0x30:
            return "ia64.mov-ip", "mov r=ip: in a copy it reads the copy's address"
    if unit == "B":
        if major == 7:
            return "ia64.predict", "brp: its target is relative to the copy's address"
        if major == 2 and word >> 27 & 63 in (0x10, 0x11):
            return "ia64.predict", "brp: it predicts for the copy's address"
    return None


def _acts_while_false(unit: str, word: int) -> str:
    """What writes predicates even while its own is false (is_cmp_ctype_unc_inst); "" for none."""
    major, ctype = word >> 37, word >> 12 & 1
    if unit in ("M", "I") and major in (0xC, 0xD, 0xE):
        register = word >> 34 & 3 < 2
        plain = not word >> 33 & 1 and not (register and word >> 36 & 1)
        return "cmp.unc" if plain and ctype else ""
    if unit == "I" and major == 5 and not word >> 33 & 15:
        return "tbit.unc" if ctype else ""
    if unit == "F" and major in (4, 5):
        return "fcmp.unc" if ctype else ""
    if unit == "F" and major in (0, 1) and word >> 33 & 1:
        return "a reciprocal approximation"
    return ""


def _loops_while_false(insn: SlotInsn) -> bool:
    """Whether bits 5:0 are no condition of the whole instruction: br.wtop, cover, ...

    Linux does not know: its break is passed over while that predicate is false, and the
    instruction with it.
    """
    assert insn.form is not None
    loop = insn.format in _TESTS_WHILE_FALSE and insn.field("btype") != 0
    return loop or not insn.form.predicated


def _reason(insn: SlotInsn | None, text: str, word: int, always: bool) -> str:
    found = [f"{text}: carried out by the processor at its own address"]
    if insn is not None and insn.format in _ASTRAY:
        found.append("Linux leaves its target relative to the copy of the bundle")
    qp = word & _QP
    if qp and always:
        found.append(f"its break does not depend on p{qp}, as the instruction does not")
    elif qp:
        found.append(f"its break depends on p{qp}: nothing is hit while that is false")
    return "; ".join(found)
