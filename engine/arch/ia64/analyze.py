"""Plans for probes on IA-64 instructions.

The rules are those of Linux 6.1 (arch/ia64/kernel/kprobes.c), the last series but one that had
the architecture; read, not run: `proven` is False everywhere. Linux copies the whole bundle,
steps one slot of the copy and puts pc and the link register right, but not all that needs it.

KERNEL does the same: what Linux refuses is refused, what it leaves wrong goes wrong here too
(the targets of brl and chk, links in b1 to b5). STRICT puts all of it right, and so has no need
to refuse chk.s.i, mov r=ip and brp. A break raises its own exception where it stands, in both.

Linux had no uprobes on IA-64. Kernel mode refuses them; strict mode takes them under the rules
of kprobes.
"""

from typing import Final

from msgspec.structs import replace

from engine.arch.ia64.breaks import BREAK
from engine.arch.ia64.bundle import SIZE, SLOT_MASK, Bundle, next_slot, unpack
from engine.arch.ia64.decode import SlotInsn, decode_at
from engine.arch.ia64.outofline import astray, fixups, is_break, linux_fixups, no_boost
from engine.arch.ia64.text import parts
from engine.arch.plan import Fixup, InsnPlan, Mode, Operation, Rules, Verdict

_QP: Final = 63
_PATCH_AT: Final = (5, 64, 87)  # lowest bit that a probe changes in each slot
_UPPER: Final = 18
"""Bits of slot 1 in the bundle's first word: they stay, so that one store arms a probe."""


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
    known = insn if insn is not None and insn.form is not None else None
    why = None if strict else _unsupported(unit, word)
    if why:
        return _refused(address, raw, *why)
    if known is None and strict:
        what = "reserved encoding" if insn is not None else f"template {bundle.template:#x}"
        return _refused(address, raw, "ia64.undefined", f"{what}: there is nothing to step")
    acts, qp = _acts_while_false(unit, word), word & _QP
    ignores = _without_predicate(known) if known is not None and not acts else ""
    if strict:
        acts = acts or ignores
    if acts and slot == 1 and qp:
        return _refused(
            address,
            raw,
            "ia64.slot-1-predicate",
            f"{acts} acts even while p{qp} is false, but a probe of slot 1 "
            f"leaves the bits there that make its break depend on p{qp}",
        )
    lost = ""
    if ignores and qp and not strict:
        lost = f"passes its break over while p{qp} is false, and {ignores} with it"
    hit = "" if lost else _hit_when(qp, acts)
    plan = InsnPlan(
        address,
        raw,
        Verdict.EMULATED,
        "",
        proven=False,
        step=next_slot(address, bundle) - address,
        bits=patch(bundle, slot, 0 if acts else qp),
        predicate=f"p{qp}" if qp and not acts else "",
    )
    text = "an undefined instruction"
    if known is not None:
        text = " ".join(filter(None, parts(known, address & -SIZE)))
        if is_break(known):
            return replace(
                plan,
                reason="; ".join(filter(None, (f"{text}: raises its exception in place", hit))),
                rule="ia64.break",
                operation=Operation(text, lambda cpu: cpu.execute(address, raw)),
            )
    done, link = fixups(known) if strict else linux_fixups(unit, word)
    wrong = "" if strict else astray(known, unit, word) or lost
    alone = no_boost(bundle, slot, strict=strict)
    return replace(
        plan,
        verdict=Verdict.XOL,
        reason="; ".join(
            filter(
                None,
                (
                    f"{text}: slot {slot} of a copy of its bundle is stepped",
                    f"Linux {wrong}" if wrong else _put_right(done, link),
                    hit,
                    f"no boost: {alone}" if alone else "",
                ),
            )
        ),
        rule="ia64.astray" if wrong else "ia64.stepped",
        wrong=wrong,
        copy=raw,
        entry=slot,
        fixups=done,
        link=link,
        boostable=not alone and rules is Rules.KPROBE,
        boosted_next=0 if alone else address - slot + SIZE,
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
    """Name of a compare that acts while its predicate is false (is_cmp_ctype_unc_inst), or ""."""
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


def _without_predicate(insn: SlotInsn) -> str:
    """Name of an instruction that bits 5:0 do not predicate: br.wtop, cover, brp; or ""."""
    assert insn.form is not None
    loop = insn.format == "B1" and insn.field("btype") != 0
    return insn.form.mnemonic.split("{")[0] if loop or not insn.form.predicated else ""


def _hit_when(qp: int, acts: str) -> str:
    """Condition of the break, in words, if it is worth saying.

    Args:
        qp: predicate in the instruction's word.
        acts: what does not depend on it, and its break neither; "" for all else.
    """
    if not qp:
        return ""
    if acts:
        return f"its break does not depend on p{qp}, as {acts} does not"
    return f"its break depends on p{qp}: nothing is hit while that is false"


def _put_right(done: tuple[Fixup, ...], link: str) -> str:
    """Fixups besides that of pc, in words."""
    if Fixup.CALL in done:
        return f"{link} becomes the original's return address"
    return f"{link} becomes the original's address" if Fixup.VALUE in done else ""
