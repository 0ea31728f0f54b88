"""Plans for probes on AArch64 instructions.

KERNEL does as Linux 6.18 (arch/arm64/kernel/probes/decode-insn.c), read, not asked: hence
`proven` is False everywhere. 6.12 differs in two things: it steps nop in place of simulating it,
and its backward scan knows the exclusives less well (`exclusive.linux_scan`).

Linux steps what it does not know, which is wrong for some instructions that depend on pc: SIMD
literal loads, and branches that are younger than its tables. STRICT refuses these, undefined
words, and under uprobe rules places inside an exclusive pair, which Linux checks for kprobes only.

Linux has no booster on arm64. Here a copy that neither depends on pc nor talks to the system may
be followed by a branch back, under kprobe rules.
"""

from enum import Enum, auto
from typing import Final

from msgspec import Struct

from engine.arch.aarch64.decode import Kind, classify, hint_name
from engine.arch.aarch64.exclusive import inside_pair, linux_scan
from engine.arch.aarch64.operations import EMULATED, operation
from engine.arch.plan import Fixup, InsnPlan, Mode, Rules, Verdict


class _Linux(Enum):
    """Treatment of a kind of instruction by Linux."""

    SIMULATES = auto()
    SIMULATES_KPROBE = auto()
    """Simulated for kprobes, refused for uprobes."""
    STEPS = auto()
    STRAYS = auto()
    """Stepped, although that is wrong: refused by STRICT."""
    REFUSES = auto()


class _Treatment(Struct, frozen=True):
    linux: _Linux
    rule: str = ""
    why: str = ""
    boostable: bool = False
    atomic: bool = False


_EXCEPTION = "would raise its exception from the slot"
_STRAY_BRANCH = "Linux does not know this branch: it steps it and loses the way"
_ALONE = "the exclusive monitor does not survive the trap"
_PC = "in a slot it sees the slot's address"
_LEAVES = "leaves the program's level"

_SIMULATED = _Treatment(_Linux.SIMULATES, "arm64.emulated")
_STEPPED = _Treatment(_Linux.STEPS, "arm64.stepped", boostable=True)
_STEPPED_SYSTEM = _Treatment(_Linux.STEPS, "arm64.stepped")


def _refused(rule: str, why: str, *, atomic: bool = False) -> _Treatment:
    return _Treatment(_Linux.REFUSES, rule, why, atomic=atomic)


def _astray(rule: str, why: str, *, atomic: bool = False) -> _Treatment:
    return _Treatment(_Linux.STRAYS, rule, why, atomic=atomic)


_TREATMENTS: Final = {
    **dict.fromkeys(EMULATED, _SIMULATED),
    **dict.fromkeys((Kind.OTHER, Kind.PAC, Kind.BTI), _STEPPED),
    **dict.fromkeys(
        (Kind.MRS, Kind.SYSTEM, Kind.CLREX, Kind.BARRIER, Kind.TIMED_WAIT), _STEPPED_SYSTEM
    ),
    Kind.LDR_LITERAL: _Treatment(_Linux.SIMULATES_KPROBE, "arm64.literal", _PC),
    Kind.LDRSW_LITERAL: _Treatment(_Linux.SIMULATES_KPROBE, "arm64.literal", _PC),
    Kind.PRFM_LITERAL: _refused("arm64.literal", _PC),
    Kind.LITERAL_SIMD: _astray("arm64.literal-simd", "Linux steps it: it loads from elsewhere"),
    Kind.SIGN_PC: _astray("arm64.pc-relative", _PC),
    Kind.BC_COND: _astray("arm64.branch-unknown", _STRAY_BRANCH),
    Kind.CMP_BRANCH: _astray("arm64.branch-unknown", _STRAY_BRANCH),
    Kind.RET_AUTH_PC: _astray("arm64.branch-unknown", _STRAY_BRANCH),
    Kind.BRANCH_AUTH: _refused(
        "arm64.branch-auth", "its target is authenticated, which Linux does not simulate"
    ),
    Kind.ERET: _refused("arm64.eret", _LEAVES),
    Kind.DRPS: _astray("arm64.drps", _LEAVES),
    Kind.LOAD_EXCLUSIVE: _refused("arm64.exclusive", _ALONE, atomic=True),
    Kind.STORE_EXCLUSIVE: _refused("arm64.exclusive", _ALONE, atomic=True),
    Kind.EXCLUSIVE_UNPRIVILEGED: _astray("arm64.exclusive", _ALONE, atomic=True),
    Kind.CAS_PAIR: _refused("arm64.casp", "Linux takes it for a load- or store-exclusive"),
    Kind.MOPS: _refused("arm64.mops", "belongs to three instructions that must stay together"),
    Kind.SVC: _refused("arm64.svc", _EXCEPTION),
    Kind.HVC: _refused("arm64.hvc", _EXCEPTION),
    Kind.SMC: _refused("arm64.smc", _EXCEPTION),
    Kind.BRK: _refused("arm64.brk", _EXCEPTION),
    Kind.HLT: _refused("arm64.hlt", _EXCEPTION),
    Kind.DCPS: _refused("arm64.dcps", _EXCEPTION),
    Kind.EXCEPTION_OTHER: _refused("arm64.exception", _EXCEPTION),
    Kind.MSR_IMMEDIATE: _refused("arm64.msr", "may change how the step itself runs"),
    Kind.MSR: _refused("arm64.msr", "may change how the step itself runs"),
    Kind.MRS_DAIF: _refused("arm64.mrs-daif", "during a step it reads the step's own mask"),
    Kind.HINT: _refused("arm64.hint", "Linux steps only nop, bti, pac* and xpaclri"),
    Kind.UNKNOWN_SYSTEM: _astray("arm64.undefined", "may be a branch that nobody knows yet"),
    Kind.UNDEFINED: _astray("arm64.undefined", "there is nothing to step"),
}

_BY_ADDRESS: Final = (_Linux.SIMULATES, _Linux.SIMULATES_KPROBE)
_UPROBE_BRK: Final = 0xD42000A0
_WORDS: Final = {  # which hint it is matters to people
    Kind.HINT: hint_name,
    Kind.BTI: hint_name,
    Kind.PAC: hint_name,
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
        raw: original bytes from the address on; the first four count.
        address: where they stand.
        rules: kprobe: arch_prepare_kprobe; uprobe: prepare_uprobe and arch_uprobe_analyze_insn.
        mode: KERNEL or STRICT.
        before: original bytes of the same function before the address.

    Returns:
        The plan; what cannot be probed is REJECTED, never an exception.
    """
    raw = raw[:4]
    if address & 3:
        return _rejected(address, raw, "arm64.unaligned", "not at a multiple of four bytes")
    if len(raw) < 4:
        return _rejected(address, raw, "arm64.truncated", "no whole instruction is mapped there")
    word = int.from_bytes(raw, "little")
    kind = classify(word)
    treatment = _TREATMENTS[kind]
    linux = treatment.linux
    strict = mode is Mode.STRICT
    kprobe = rules is Rules.KPROBE
    if (
        linux is _Linux.REFUSES
        or (linux is _Linux.SIMULATES_KPROBE and not kprobe)
        or (linux is _Linux.STRAYS and strict)
    ):
        name = _WORDS[kind](word) if kind in _WORDS else kind.value
        own_trap = word == _UPROBE_BRK and not kprobe
        return _rejected(
            address,
            raw,
            treatment.rule,
            f"{name}: {treatment.why}",
            "ENOTSUPP" if own_trap else "EINVAL",
            treatment.atomic,
        )
    if before and ((kprobe and linux_scan(before)) or (strict and inside_pair(before))):
        return _rejected(
            address,
            raw,
            "arm64.exclusive-pair",
            "between a load-exclusive and its store-exclusive: the trap makes the store fail",
            atomic=True,
        )
    if linux is _Linux.SIMULATES or linux is _Linux.SIMULATES_KPROBE:
        done = operation(word, address, kind)
        return InsnPlan(
            address,
            raw,
            Verdict.EMULATED,
            done.text,
            rule="arm64.emulated",
            proven=False,
            operation=done,
        )
    if linux is _Linux.STRAYS:
        reason = f"{kind.value}: stepped as on Linux, although {treatment.why}"
    else:
        reason = "runs in its slot, then pc moves behind the original"
    return InsnPlan(
        address,
        raw,
        Verdict.XOL,
        reason,
        rule=treatment.rule,
        proven=False,
        copy=raw,
        fixups=(Fixup.IP,),
        boostable=treatment.boostable and kprobe,
        atomic=treatment.atomic,
    )


def anywhere(raw: bytes, rules: Rules, mode: Mode) -> InsnPlan | None:
    """The plan at address 0 of an instruction that is the same wherever it stands."""
    if _TREATMENTS[classify(int.from_bytes(raw[:4], "little"))].linux in _BY_ADDRESS:
        return None
    return analyze(raw, 0, rules, mode, b"")
