"""Kinds of AArch64 instructions, as far as a probe cares, from the 32 bits alone.

Source: Arm Architecture Reference Manual for A-profile (DDI 0487), chapter C4, "A64 instruction
set encoding". Everything without a pattern here neither reads nor writes pc, waits for nothing
and asks nothing of the kernel; whether such a word is allocated is not looked at, apart from the
groups that are unallocated as a whole and the group of branches and system instructions.
"""

from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple


class Kind(Enum):
    """Kinds of instructions that are treated differently; the value is their name in words."""

    OTHER = "instruction"
    B = "b"
    BL = "bl"
    B_COND = "b.cond"
    BC_COND = "bc.cond"
    CBZ = "cbz/cbnz"
    TBZ = "tbz/tbnz"
    CMP_BRANCH = "compare and branch"
    BR = "br"
    BLR = "blr"
    RET = "ret"
    BRANCH_AUTH = "branch that authenticates its target"
    RET_AUTH_PC = "return that authenticates with pc"
    ERET = "eret"
    DRPS = "drps"
    ADR = "adr"
    ADRP = "adrp"
    SIGN_PC = "signing or authentication with pc"
    LDR_LITERAL = "ldr (literal)"
    LDRSW_LITERAL = "ldrsw (literal)"
    PRFM_LITERAL = "prfm (literal)"
    LITERAL_SIMD = "SIMD ldr (literal)"
    LOAD_EXCLUSIVE = "load-exclusive"
    STORE_EXCLUSIVE = "store-exclusive"
    CAS_PAIR = "casp"
    EXCLUSIVE_UNPRIVILEGED = "unprivileged exclusive"
    MOPS = "memory copy or set"
    SVC = "svc"
    HVC = "hvc"
    SMC = "smc"
    BRK = "brk"
    HLT = "hlt"
    DCPS = "dcps"
    EXCEPTION_OTHER = "exception generation"
    MSR_IMMEDIATE = "msr (immediate)"
    MSR = "msr"
    MRS = "mrs"
    MRS_DAIF = "mrs daif"
    SYSTEM = "system instruction"
    NOP = "nop"
    BTI = "bti"
    PAC = "pointer signing hint"
    HINT = "hint"
    TIMED_WAIT = "wait with timeout"
    CLREX = "clrex"
    BARRIER = "barrier"
    UNKNOWN_SYSTEM = "unallocated branch or system instruction"
    UNDEFINED = "undefined instruction"


class Pattern(NamedTuple):
    """Words with `word & mask == value` are of `kind`."""

    mask: int
    value: int
    kind: Kind


def _hint(number: int, kind: Kind) -> Pattern:
    return Pattern(0xFFFFFFFF, 0xD503201F | number << 5, kind)


# The first match counts.
PATTERNS: Final = (
    # branches (C4.1.66 and following)
    Pattern(0xFC000000, 0x14000000, Kind.B),
    Pattern(0xFC000000, 0x94000000, Kind.BL),
    Pattern(0xFF000010, 0x54000000, Kind.B_COND),
    Pattern(0xFF000010, 0x54000010, Kind.BC_COND),
    Pattern(0x7E000000, 0x34000000, Kind.CBZ),
    Pattern(0x7E000000, 0x36000000, Kind.TBZ),
    Pattern(0x7E000000, 0x74000000, Kind.CMP_BRANCH),
    Pattern(0xFFFFFC1F, 0xD61F0000, Kind.BR),
    Pattern(0xFFFFFC1F, 0xD63F0000, Kind.BLR),
    Pattern(0xFFFFFC1F, 0xD65F0000, Kind.RET),
    Pattern(0xFEFFF800, 0xD61F0800, Kind.BRANCH_AUTH),  # braa, braaz, brab, brabz
    Pattern(0xFEFFF800, 0xD63F0800, Kind.BRANCH_AUTH),  # blraa, blraaz, blrab, blrabz
    Pattern(0xFFFFFBFF, 0xD65F0BFF, Kind.BRANCH_AUTH),  # retaa, retab
    Pattern(0xFFFFFBE0, 0xD65F0BE0, Kind.RET_AUTH_PC),  # retaasppcr, retabsppcr
    Pattern(0xFFC0001F, 0x5500001F, Kind.RET_AUTH_PC),  # retaasppc, retabsppc
    Pattern(0xFFFFFFFF, 0xD69F03E0, Kind.ERET),
    Pattern(0xFFFFFBFF, 0xD69F0BFF, Kind.ERET),  # eretaa, eretab
    Pattern(0xFFFFFFFF, 0xD6BF03E0, Kind.DRPS),
    # exception generation
    Pattern(0xFFE0001F, 0xD4000001, Kind.SVC),
    Pattern(0xFFE0001F, 0xD4000002, Kind.HVC),
    Pattern(0xFFE0001F, 0xD4000003, Kind.SMC),
    Pattern(0xFFE0001F, 0xD4200000, Kind.BRK),
    Pattern(0xFFE0001F, 0xD4400000, Kind.HLT),
    Pattern(0xFFE0001F, 0xD4A00001, Kind.DCPS),
    Pattern(0xFFE0001E, 0xD4A00002, Kind.DCPS),
    Pattern(0xFF000000, 0xD4000000, Kind.EXCEPTION_OTHER),
    # hints
    _hint(0, Kind.NOP),
    _hint(7, Kind.PAC),  # xpaclri
    _hint(8, Kind.PAC),  # pacia1716
    _hint(10, Kind.PAC),  # pacib1716
    Pattern(0xFFFFFF9F, 0xD503231F, Kind.PAC),  # paciaz, paciasp, pacibz, pacibsp
    Pattern(0xFFFFFF3F, 0xD503241F, Kind.BTI),
    Pattern(0xFFFFF01F, 0xD503201F, Kind.HINT),
    # system
    Pattern(0xFFFFFFC0, 0xD5031000, Kind.TIMED_WAIT),  # wfet, wfit
    Pattern(0xFFFFF0FF, 0xD503305F, Kind.CLREX),
    Pattern(0xFFFFF0FF, 0xD503309F, Kind.BARRIER),  # dsb
    Pattern(0xFFFFF3FF, 0xD503323F, Kind.BARRIER),  # dsb nXS
    Pattern(0xFFFFF0FF, 0xD50330BF, Kind.BARRIER),  # dmb
    Pattern(0xFFFFF0FF, 0xD50330DF, Kind.BARRIER),  # isb
    Pattern(0xFFFFF0FF, 0xD50330FF, Kind.BARRIER),  # sb
    Pattern(0xFFF8F01F, 0xD500401F, Kind.MSR_IMMEDIATE),  # with cfinv, xaflag, axflag
    Pattern(0xFFD80000, 0xD5080000, Kind.SYSTEM),  # sys, sysl: at, cfp, dc, gcs*, ic, tlbi
    Pattern(0xFFF00000, 0xD5100000, Kind.MSR),
    Pattern(0xFFFFFFE0, 0xD53B4220, Kind.MRS_DAIF),
    Pattern(0xFFF00000, 0xD5300000, Kind.MRS),
    Pattern(0x1C000000, 0x14000000, Kind.UNKNOWN_SYSTEM),
    # pc as an operand
    Pattern(0x9F000000, 0x10000000, Kind.ADR),
    Pattern(0x9F000000, 0x90000000, Kind.ADRP),
    Pattern(0xFFC0001F, 0xF380001F, Kind.SIGN_PC),  # autiasppc, autibsppc
    Pattern(0xFFFFDBFF, 0xDAC183FE, Kind.SIGN_PC),  # paciasppc, pacibsppc, pacnb..sppc
    # loads and stores
    Pattern(0xBF000000, 0x18000000, Kind.LDR_LITERAL),
    Pattern(0xFF000000, 0x98000000, Kind.LDRSW_LITERAL),
    Pattern(0xFF000000, 0xD8000000, Kind.PRFM_LITERAL),
    Pattern(0x3F000000, 0x1C000000, Kind.LITERAL_SIMD),
    Pattern(0xBFA00000, 0x08200000, Kind.CAS_PAIR),
    Pattern(0x3FC00000, 0x08000000, Kind.STORE_EXCLUSIVE),
    Pattern(0x3FC00000, 0x08400000, Kind.LOAD_EXCLUSIVE),
    Pattern(0xBFA00000, 0x89000000, Kind.EXCLUSIVE_UNPRIVILEGED),  # ldtxr, sttxr, ldatxr, ..
    Pattern(0x3B200C00, 0x19000400, Kind.MOPS),
    # groups unallocated as a whole (C4.1); bit 31 set with the first one is SME
    Pattern(0x9E000000, 0x00000000, Kind.UNDEFINED),
    Pattern(0x1E000000, 0x02000000, Kind.UNDEFINED),
    Pattern(0x1E000000, 0x06000000, Kind.UNDEFINED),
)

_HINTS: Final = {
    0: "nop", 1: "yield", 2: "wfe", 3: "wfi", 4: "sev", 5: "sevl", 6: "dgh", 7: "xpaclri",
    8: "pacia1716", 10: "pacib1716", 12: "autia1716", 14: "autib1716", 16: "esb",
    17: "psb csync", 18: "tsb csync", 19: "gcsb dsync", 20: "csdb", 22: "clrbhb",
    24: "paciaz", 25: "paciasp", 26: "pacibz", 27: "pacibsp",
    28: "autiaz", 29: "autiasp", 30: "autibz", 31: "autibsp",
    32: "bti", 34: "bti c", 36: "bti j", 38: "bti jc", 39: "pacm", 40: "chkfeat",
}  # fmt: skip

_LANDING_PADS: Final = frozenset({25, 27, 34, 36, 38})


@lru_cache(maxsize=256)
def _candidates(top: int) -> tuple[Pattern, ...]:
    """Patterns that a word with this most significant byte can match."""
    return tuple(
        pattern for pattern in PATTERNS if top & pattern.mask >> 24 == pattern.value >> 24
    )


def classify(word: int) -> Kind:
    """Say what a word is."""
    for mask, value, kind in _candidates(word >> 24):
        if word & mask == value:
            return kind
    return Kind.OTHER


def hint_name(word: int) -> str:
    """Name a word of kind HINT, NOP, BTI or PAC; `hint #N` where it has none."""
    number = word >> 5 & 127
    return _HINTS.get(number, f"hint #{number}")


def is_landing_pad(word: int) -> bool:
    """True if an indirect branch may arrive here under BTI: bti c/j/jc, paciasp, pacibsp."""
    return word & 0xFFFFF01F == 0xD503201F and word >> 5 & 127 in _LANDING_PADS


def signed(word: int, low: int, bits: int) -> int:
    """Return a signed field of a word."""
    value = word >> low & (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


# Field with the displacement in words: lowest bit and width.
_DISPLACEMENTS: Final = {
    Kind.B: (0, 26),
    Kind.BL: (0, 26),
    Kind.B_COND: (5, 19),
    Kind.BC_COND: (5, 19),
    Kind.CBZ: (5, 19),
    Kind.TBZ: (5, 14),
    Kind.CMP_BRANCH: (5, 9),
}


def branch_target(word: int, kind: Kind, address: int) -> int | None:
    """Return where a direct branch goes when taken; None for anything else."""
    field = _DISPLACEMENTS.get(kind)
    if field is None:
        return None
    return address + 4 * signed(word, *field) & 0xFFFF_FFFF_FFFF_FFFF
