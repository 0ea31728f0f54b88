"""Plans for probes on x86-64 instructions: from bytes to an `InsnPlan`.

Linux emulates under uprobes no-operations, relative jumps and calls and pushes of registers
(branch_setup_xol_ops, push_setup_xol_ops), under kprobes whatever changes the instruction
pointer or the interrupt flag (prepare_emulation); it steps a copy of the rest. Some things it
gets wrong are done right here: kprobes ignore the immediate of `ret`, take a far return for a
near one and test rcx before a loop counts it down. Instructions that uprobes take for others
by their opcode byte (`mistakes`) are refused by the strict mode and go as wrong in kernel mode.
"""

import re
from typing import TYPE_CHECKING, Final

from engine.arch.plan import Fixup, InsnPlan, Mode, Operation, Rules, Verdict
from engine.arch.x86_64.decode import LEGACY, REP, REPNE, VEX, Decoded, decode, whole
from engine.arch.x86_64.operations import do_nothing, is_nop, operation, push_register
from engine.arch.x86_64.verdicts import (
    boostable,
    forced_emulation,
    kprobe_refusal,
    misread,
    misread_refusal,
    rex2,
    rex2_refusal,
    strict_refusal,
    undecodable,
    uprobe_refusal,
)

if TYPE_CHECKING:
    from engine.arch.x86_64.mistakes import Mistake

_NOP, _PUSHF, _POPF, _SYSCALL = 0x90, 0x9C, 0x9D, 0x105
_LOOPS: Final = frozenset({0xE0, 0xE1, 0xE2, 0xE3})
_RETURNS: Final = frozenset({0xC2, 0xC3, 0xCA, 0xCB})
_EMULATED_BRANCHES: Final = frozenset((0xE8, 0xE9, 0xEB, *range(0x70, 0x80), *range(0x180, 0x190)))
_FLOW: Final = _EMULATED_BRANCHES | _LOOPS | _RETURNS | {0xFF}
_STRINGS: Final = frozenset((*range(0xA4, 0xA8), *range(0xAA, 0xB0), *range(0x6C, 0x70)))
_SCRATCH: Final = {6: "rsi", 7: "rdi", 3: "rbx"}
_STEP: Final = (Fixup.IP,)
_ELSEWHERE: Final = re.compile(rb"[\x70-\x7f\xe8\xe9\xeb]|\x0f[\x0b\x80-\x8f]", re.DOTALL)
"""The front of branches, which name an address, and of ud2: what follows that may count."""
_PLACELESS: Final = frozenset({_PUSHF, _POPF, 0x90, 0x11F, *_RETURNS, *range(0x50, 0x58)})
"""Opcodes of what is emulated without an address in its reason."""
_REX2: Final = "REX2 prefix, which the emulated CPU does not have: no instruction"


def analyze(raw: bytes, address: int, rules: Rules, mode: Mode, before: bytes) -> InsnPlan:
    """The plan for the instruction at the front of some bytes.

    Args:
        raw: up to 15 bytes from the address on.
        address: where it stands.
        rules: whose verdict: kprobes' or uprobes'.
        mode: as Linux does, or stricter.
        before: not needed on x86.
    """
    uprobe = rules is Rules.UPROBE
    if not uprobe and forced_emulation(raw):
        reason = "forced-emulation prefix of a hypervisor: not copied"
        return _rejected(raw[:5], address, uprobe, ("EINVAL", "x86.forced-emulation", reason))
    extended = rex2(raw)
    if extended is not None:
        refusal = rex2_refusal(extended, raw, uprobe)
        if refusal is None and mode is Mode.STRICT:
            refusal = ("ENOTSUPP" if uprobe else "EOPNOTSUPP", "x86.undefined", _REX2)
        if refusal is not None:
            return _rejected(raw[:4], address, uprobe, refusal)
        from engine.arch.x86_64.mistakes import mistaken_rex2  # few programs have need of it

        mistaken = mistaken_rex2(extended, raw, address) if uprobe else None
        if mistaken is not None:
            return _mistaken(raw[: mistaken.size], address, mistaken)
        return _uncertain(raw, address, uprobe)
    insn = decode(whole(raw))  # as others ask, who know where it ends
    taken = misread(raw) if uprobe else None
    refusal = misread_refusal(*taken) if taken is not None else None
    if insn is None and refusal is not None:
        return _rejected(raw[:1], address, uprobe, refusal)
    if insn is None and taken is not None and mode is Mode.KERNEL:
        return _uncertain(raw, address, True)
    if insn is None:
        return _rejected(raw[:1], address, uprobe, undecodable(raw, uprobe))
    raw = raw[: insn.size]
    if taken is None or (refusal is None and mode is Mode.STRICT):
        refusal = uprobe_refusal(insn, raw) if uprobe else kprobe_refusal(insn, raw)
    if refusal is not None:
        return _rejected(raw, address, uprobe and insn.encoding == LEGACY, refusal)
    if mode is Mode.STRICT:
        stricter = strict_refusal(insn)
        if stricter is not None:
            errno = "ENOTSUPP" if uprobe else "EOPNOTSUPP"
            return _rejected(raw, address, uprobe, (errno, *stricter))
    if not uprobe:
        return _kprobe(insn, raw, address)
    if taken is not None or (insn.encoding == LEGACY and insn.key != _NOP):
        return _uprobe(insn, raw, address, mode)
    from engine.arch.x86_64.mistakes import mistake  # few programs have need of it

    mistaken = mistake(insn, raw, address)
    strict = mode is Mode.STRICT
    if mistaken is None or (strict and not mistaken.refused):
        return _uprobe(insn, raw, address, mode)
    if strict:
        rule = mistaken.fault.rule
        reason = f"{rule}: under a uprobe Linux {mistaken.wrong}"
        return _rejected(raw, address, True, ("ENOTSUPP", rule, reason))
    return _mistaken(raw, address, mistaken)


def anywhere(raw: bytes, rules: Rules, mode: Mode) -> InsnPlan | None:
    """The plan at address 0 of a whole instruction that is the same wherever it stands."""
    if _ELSEWHERE.match(raw) or 0xD5 in raw:
        return None
    plan = analyze(raw, 0, rules, mode, b"")
    if plan.operation is None:
        return plan
    insn = decode(raw)
    return plan if insn is not None and insn.key in _PLACELESS else None


def _rejected(raw: bytes, address: int, proven: bool, refusal: tuple[str, str, str]) -> InsnPlan:
    errno, rule, reason = refusal
    return InsnPlan(address, raw, Verdict.REJECTED, reason, errno=errno, rule=rule, proven=proven)


def _uncertain(raw: bytes, address: int, proven: bool) -> InsnPlan:
    """The plan for bytes that only Linux takes for an instruction: a copy of them faults."""
    reason = "copied with what follows: no instruction here, but Linux takes it for one"
    return InsnPlan(
        address,
        raw,
        Verdict.XOL,
        reason,
        rule="x86.copy",
        proven=proven,
        copy=raw,
        fixups=_STEP,
    )


def _emulated(raw: bytes, address: int, done: Operation, reason: str, proven: bool) -> InsnPlan:
    return InsnPlan(
        address,
        raw,
        Verdict.EMULATED,
        reason,
        rule="x86.emulated",
        proven=proven,
        operation=done,
    )


def _mistaken(raw: bytes, address: int, mistaken: "Mistake") -> InsnPlan:
    """The plan of kernel mode for an instruction that Linux takes for another one."""
    emulated = mistaken.operation is not None
    return InsnPlan(
        address,
        raw,
        Verdict.EMULATED if emulated else Verdict.XOL,
        f"{'emulated' if emulated else 'copied'}: Linux {mistaken.wrong}",
        rule=mistaken.fault.rule,
        copy=b"" if emulated else raw,
        fixups=mistaken.fixups,
        operation=mistaken.operation,
        wrong=mistaken.wrong,
    )


def _kprobe(insn: Decoded, raw: bytes, address: int) -> InsnPlan:
    done = operation(insn, raw, address)
    if done is not None:
        return _emulated(raw, address, done, f"emulated: {done.text}", False)
    repeats = _repeats(insn)
    boosted = boostable(insn) and not repeats
    displacement, scratch, scratch_copy = None, None, b""
    rule, reason = "x86.copy", "copied as it is"
    if insn.modrm & 0xC7 == 5:
        displacement = insn.displacement_at
        scratch, scratch_copy = _with_scratch(insn, raw)
        rule, reason = "x86.rip-relative", "copied; displacement rebased"
    elif insn.key in _SPECIAL and insn.encoding == LEGACY:
        rule, reason = _SPECIAL[insn.key]
    return InsnPlan(
        address,
        raw,
        Verdict.XOL,
        reason,
        rule=rule,
        proven=False,
        copy=raw,
        displacement=displacement,
        scratch=scratch,
        scratch_copy=scratch_copy,
        fixups=_STEP,
        boostable=boosted,
        repeats=repeats,
    )


_FAR_RETURN: Final = ("x86.far", "copied; a far return faults in the slot as it does in place")
_SPECIAL: Final = {
    0xCA: _FAR_RETURN,
    0xCB: _FAR_RETURN,
    _SYSCALL: ("x86.syscall", "copied; the address it leaves in rcx becomes the original's"),
    0xFA: ("x86.privileged", "copied; at user level cli faults in the slot"),
    0xFB: ("x86.privileged", "copied; at user level sti faults in the slot"),
}


def _uprobe(insn: Decoded, raw: bytes, address: int, mode: Mode) -> InsnPlan:
    key = insn.key
    done: Operation | None = None
    fixups: tuple[Fixup, ...] = _STEP
    rule, reason, wrong = "x86.copy", "copied as it is", ""
    if insn.encoding == LEGACY:
        if is_nop(insn):
            text = "no-operation: emulated"
            return _emulated(raw, address, do_nothing(insn, address), text, True)
        if 0x50 <= key <= 0x57 and (insn.size == 1 or (insn.size == 2 and insn.rex == 0x41)):
            done = push_register(insn, address)
            return _emulated(raw, address, done, f"emulated: {done.text}", True)
        if key in _FLOW:
            done = operation(insn, raw, address)
            if done is not None and key in _EMULATED_BRANCHES:
                return _emulated(raw, address, done, f"emulated: {done.text}", True)
            if key in _RETURNS:
                rule, reason = _SPECIAL.get(
                    key, ("x86.return", "copied; a return leaves the slot by itself")
                )
                fixups = ()
            elif key in _LOOPS:
                rule, reason = "x86.loop", "copied; ip moves by original minus slot"
            elif 2 <= insn.reg <= 5:
                rule, reason, fixups = _INDIRECT[insn.reg & 6]
        elif key == _PUSHF:
            rule, reason, fixups = _PUSHF_PLANS[mode]
            wrong = _PUSHF_WRONG if mode is Mode.KERNEL else ""
        elif key == _POPF:
            rule, reason = "x86.popf", "copied; what it leaves in TF stays"
            fixups = (Fixup.IP, Fixup.FLAGS)
        elif key in _SPECIAL:
            rule, reason = _SPECIAL[key]
    displacement, scratch, scratch_copy = None, None, b""
    if insn.rip_relative:
        displacement = insn.displacement_at
        scratch, scratch_copy = _with_scratch(insn, raw)
        fixups = (*fixups, Fixup.SCRATCH)
        if done is None:
            rule, reason = "x86.rip-relative", f"copied; {scratch} stands in for rip"
        else:
            reason += f"; {scratch} stands in for rip"
    return InsnPlan(
        address,
        raw,
        Verdict.XOL,
        reason,
        rule=rule,
        copy=raw,
        displacement=displacement,
        scratch=scratch,
        scratch_copy=scratch_copy,
        fixups=fixups,
        operation=done,
        repeats=_repeats(insn),
        wrong=wrong,
    )


_INDIRECT: Final[dict[int, tuple[str, str, tuple[Fixup, ...]]]] = {
    2: (
        "x86.indirect-call",
        "copied; the return address it pushes becomes the original's",
        (Fixup.CALL,),
    ),
    4: ("x86.indirect-jump", "copied; the jump leaves the slot by itself", ()),
}
_PUSHF_WRONG: Final = "has the pushed flags show TF of its single step"
_PUSHF_PLANS: Final[dict[Mode, tuple[str, str, tuple[Fixup, ...]]]] = {
    Mode.KERNEL: (
        "x86.pushf",
        "copied; as under Linux the pushed flags show TF of the single step",
        (Fixup.IP, Fixup.TRACE_FLAG),
    ),
    Mode.STRICT: (
        "x86.pushf",
        "copied; a trap ends the step here, not TF, so the pushed flags are the program's",
        _STEP,
    ),
}


def _repeats(insn: Decoded) -> bool:
    """True if it is a string instruction with a repeat prefix."""
    if not insn.prefixes & (REP | REPNE) or insn.encoding != LEGACY:
        return False
    return insn.key in _STRINGS


def _with_scratch(insn: Decoded, raw: bytes) -> tuple[str, bytes]:
    """A RIP-relative instruction with a register in place of rip (riprel_analyze).

    The register is rsi, rdi or rbx: the first that is neither ModRM.reg nor VEX.vvvv. No
    instruction with a RIP-relative operand uses rsi or rdi without naming it there, and
    cmpxchg8b and cmpxchg16b, which use rbx, get rsi: their ModRM.reg is 1.
    """
    used = (insn.reg, insn.vvvv & 7 if insn.encoding != LEGACY else 0)
    number = 6 if 6 not in used else 7 if 7 not in used else 3
    copy = bytearray(raw)
    if insn.rex:
        copy[insn.extension_at] &= 0xFE  # REX.B would make it r8 to r15
    elif insn.encoding != LEGACY and not (insn.encoding == VEX and raw[insn.extension_at] == 0xC5):
        copy[insn.extension_at + 1] |= 0x60  # B and X, inverted
    copy[insn.modrm_at] = 0x80 | insn.reg << 3 | number
    return _SCRATCH[number], bytes(copy)
