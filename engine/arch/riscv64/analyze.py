"""Plans for probes on RISC-V instructions.

KERNEL does as Linux 6.18 (arch/riscv/kernel/probes/decode-insn.c, with the compressed
instructions: CONFIG_RISCV_ISA_C), read, not asked: hence `proven` is False everywhere.

Linux steps whatever it does not know. STRICT refuses what that spoils: a load-reserved, its
store-conditional and the places in between (`exclusive`), and undefined instructions. It also
refuses what Linux takes for a branch or a jump and then cannot simulate: there the guest would
hit the same breakpoint for ever.

Linux has no booster on RISC-V. Here a copy that neither depends on pc nor talks to the system
may be followed by a jump back, under kprobe rules.
"""

from typing import Final

from msgspec import Struct

from engine.arch.plan import Fixup, InsnPlan, Mode, Rules, Verdict
from engine.arch.riscv64.decode import (
    BRANCH,
    C_EBREAK,
    MISC_MEM,
    InsnKind,
    classify,
    length,
    word_of,
)
from engine.arch.riscv64.exclusive import inside_pair
from engine.arch.riscv64.operations import EMULATED, operation

_C_EBREAK: Final = C_EBREAK.to_bytes(2, "little")
_C_JR_ZERO: Final = b"\x02\x80"
_SHORT: Final = (_C_EBREAK, b"\xff\xff")
_ALONE: Final = "the reservation does not survive the trap"


class _Objection(Struct, frozen=True):
    """Why a kind is not probed; `strict`: only in that mode."""

    rule: str
    why: str
    strict: bool = False
    atomic: bool = False


_EXCEPTION = "would raise its exception from the slot"
_REFUSED: Final = {
    InsnKind.ECALL: _Objection("riscv.system", _EXCEPTION),
    InsnKind.EBREAK: _Objection("riscv.system", _EXCEPTION),
    InsnKind.CSR: _Objection("riscv.system", "Linux refuses all system instructions"),
    InsnKind.SYSTEM: _Objection("riscv.system", "leaves the program's level"),
    InsnKind.FENCE: _Objection("riscv.fence", "Linux refuses all fences"),
    InsnKind.FENCE_I: _Objection("riscv.fence", "Linux refuses all fences"),
    InsnKind.MISC_MEM: _Objection("riscv.fence", "Linux takes it for a fence"),
    InsnKind.LOAD_RESERVED: _Objection("riscv.exclusive", _ALONE, strict=True, atomic=True),
    InsnKind.STORE_CONDITIONAL: _Objection("riscv.exclusive", _ALONE, strict=True, atomic=True),
    InsnKind.UNDEFINED: _Objection("riscv.undefined", "there is nothing to step", strict=True),
}


def _rejected(
    address: int, raw: bytes, rule: str, reason: str, errno: str = "EINVAL", atomic: bool = False
) -> InsnPlan:
    return InsnPlan(
        address,
        raw,
        Verdict.REJECTED,
        reason,
        errno=errno,
        rule=rule,
        proven=False,
        atomic=atomic,
    )


def analyze(raw: bytes, address: int, rules: Rules, mode: Mode, before: bytes) -> InsnPlan:
    """Plan the step over one instruction.

    Args:
        raw: original bytes from the address on; the first two or four count.
        address: where they stand.
        rules: kprobe: arch_prepare_kprobe; uprobe: prepare_uprobe and arch_uprobe_analyze_insn.
        mode: KERNEL or STRICT.
        before: original bytes of the same function before the address.

    Returns:
        The plan; what cannot be probed is REJECTED, never an exception.
    """
    size = length(raw)
    kprobe = rules is Rules.KPROBE
    if address & 1:
        errno = "EILSEQ" if kprobe else "EINVAL"
        return _rejected(
            address, raw[:2], "riscv.unaligned", "not at a multiple of two bytes", errno
        )
    if not size:
        reason = "no whole instruction is mapped there"
        return _rejected(address, raw, "riscv.truncated", reason)
    raw = raw[:size]
    word = word_of(raw)
    kind = classify(word)
    strict = mode is Mode.STRICT
    objection = _REFUSED.get(kind)
    if objection is not None and (strict or not objection.strict or _seems_known(raw, kind)):
        own_trap = raw == _C_EBREAK and not kprobe
        errno = "ENOTSUPP" if own_trap else "EINVAL"
        reason = f"{kind.value}: {objection.why}"
        return _rejected(address, raw, objection.rule, reason, errno, objection.atomic)
    if strict and before and inside_pair(before):
        return _rejected(
            address,
            raw,
            "riscv.exclusive-pair",
            "between a load-reserved and its store-conditional: the trap makes the store fail",
            atomic=True,
        )
    bits = _SHORT if size == 2 else None
    if kind in EMULATED:
        done = operation(word, address, size, kind)
        return InsnPlan(
            address,
            raw,
            Verdict.EMULATED,
            done.text,
            rule="riscv.emulated",
            proven=False,
            operation=done,
            bits=bits,
        )
    if objection is not None:
        reason = f"{kind.value}: stepped as on Linux, although {objection.why}"
    else:
        reason = "runs in its slot, then pc moves behind the original"
    return InsnPlan(
        address,
        raw,
        Verdict.XOL,
        reason,
        rule="riscv.stepped",
        proven=False,
        copy=raw,
        fixups=(Fixup.IP,),
        boostable=objection is None and kprobe,
        atomic=objection is not None and objection.atomic,
        bits=bits,
    )


def anywhere(raw: bytes, rules: Rules, mode: Mode) -> InsnPlan | None:
    """The plan at address 0 of an instruction that is the same wherever it stands."""
    if length(raw) and classify(word_of(raw)) in EMULATED:
        return None
    return analyze(raw, 0, rules, mode, b"")


def _seems_known(raw: bytes, kind: InsnKind) -> bool:
    """Tell whether Linux handles an undefined word by its opcode alone.

    A fence is refused. A branch and a c.jr without a register are simulated, which then fails: pc
    stays and the breakpoint is hit again, for ever.
    """
    known = raw == _C_JR_ZERO or raw[0] & 0x7F in (BRANCH, MISC_MEM)
    return kind is InsnKind.UNDEFINED and known
