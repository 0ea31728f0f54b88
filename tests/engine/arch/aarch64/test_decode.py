"""Classification against Capstone, over real code and random words."""

import re
import struct
from typing import Final

import capstone
import pytest
from a64words import words, words_of
from sysroot import SysrootUnavailable, sysroot

from engine.arch.aarch64.decode import (
    PATTERNS,
    Kind,
    branch_target,
    classify,
    hint_name,
    is_landing_pad,
)
from engine.image.elf import ElfImage

_CAPSTONE = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN)

# What Capstone calls each kind; a regular expression over "mnemonic operands".
_NAMES: Final = {
    Kind.B: r"b ",
    Kind.BL: r"bl ",
    Kind.B_COND: r"b\.",
    Kind.BC_COND: r"bc\.",
    Kind.CBZ: r"cbn?z ",
    Kind.TBZ: r"tbn?z ",
    Kind.BR: r"br ",
    Kind.BLR: r"blr ",
    Kind.RET: r"ret$|ret ",
    Kind.BRANCH_AUTH: r"(br|blr)a[ab]z? |reta[ab]$",
    Kind.ERET: r"eret(a[ab])?$",
    Kind.DRPS: r"drps$",
    Kind.ADR: r"adr x",  # SVE has one, too
    Kind.ADRP: r"adrp ",
    Kind.LDR_LITERAL: r"ldr [xw]\w+, #",
    Kind.LDRSW_LITERAL: r"ldrsw \w+, #",
    Kind.PRFM_LITERAL: r"prfm #?\w*, #",
    Kind.LITERAL_SIMD: r"ldr [sdq]\d+, #",
    Kind.LOAD_EXCLUSIVE: r"lda?x[rp][bh]? ",
    Kind.STORE_EXCLUSIVE: r"stl?x[rp][bh]? ",
    Kind.CAS_PAIR: r"caspa?l? ",
    Kind.MOPS: r"(cpyf?|setg?)[pme]",
    Kind.SVC: r"svc ",
    Kind.HVC: r"hvc ",
    Kind.SMC: r"smc ",
    Kind.BRK: r"brk ",
    Kind.HLT: r"hlt ",
    Kind.DCPS: r"dcps[123]",
    Kind.EXCEPTION_OTHER: r"tcancel ",
    Kind.MSR_IMMEDIATE: r"msr |smst(art|op)|cfinv|[ax]{1,2}flag",
    Kind.MSR: r"msr ",
    Kind.MRS: r"mrs ",
    Kind.MRS_DAIF: r"mrs \w+, daif$",
    Kind.SYSTEM: r"(sysl?|at|cfp|cpp|dvp|dc|ic|tlbi) |tlbi|brb",
    Kind.NOP: r"nop$",
    Kind.BTI: r"bti",
    Kind.PAC: r"xpaclri$|paci[ab](1716|z|sp)$",
    Kind.HINT: r"(hint|yield|wfe|wfi|sevl?|dgh|esb|psb|tsb|csdb|clrbhb|auti[ab](1716|z|sp))( |$)",
    Kind.TIMED_WAIT: r"wf[ei]t ",
    Kind.CLREX: r"clrex",
    Kind.BARRIER: r"(dsb|dmb|isb|sb|ssbb|pssbb|dfb)( |$)",
    Kind.UNDEFINED: r"udf ",
    # Capstone prints every unallocated system word as the move of a register without a name,
    # and knows the transactions that Arm withdrew.
    Kind.UNKNOWN_SYSTEM: r"ms?rs? |tcommit|tstart|ttest",
}
_PATTERNS = {kind: re.compile(text) for kind, text in _NAMES.items()}
_SPECIAL = re.compile(
    "|".join(text for kind, text in _NAMES.items() if kind is not Kind.UNKNOWN_SYSTEM)
)

# What Capstone may not decode at all although it has a kind here, and why.
_NOT_IN_CAPSTONE: Final = {
    Kind.OTHER: "unallocated, or an extension that it does not know",
    Kind.UNDEFINED: "unallocated",
    Kind.UNKNOWN_SYSTEM: "unallocated",
    Kind.EXCEPTION_OTHER: "unallocated",
    Kind.CMP_BRANCH: "younger (FEAT_CMPBR)",
    Kind.RET_AUTH_PC: "younger (FEAT_PAuth_LR)",
    Kind.SIGN_PC: "younger (FEAT_PAuth_LR)",
    Kind.EXCLUSIVE_UNPRIVILEGED: "younger (FEAT_LSUI)",
    Kind.LOAD_EXCLUSIVE: "fields that should be ones are not; the mask is Linux's",
    Kind.CAS_PAIR: "fields that must be ones are not; Linux's mask takes them all",
    Kind.MOPS: "size or operands unallocated; Linux's mask takes them all",
    Kind.LITERAL_SIMD: "opc 11, unallocated",
    Kind.BRANCH_AUTH: "braaz and the like with a modifier that is not 31; the mask is Linux's",
    Kind.MSR_IMMEDIATE: "axflag with CRm that is not zero; the mask is Linux's",
    Kind.BARRIER: "sb with CRm that should be zero",
}


def _capstone(word: int) -> str | None:
    for _, _, mnemonic, operands in _CAPSTONE.disasm_lite(struct.pack("<I", word), 0x400000):
        return f"{mnemonic} {operands}".rstrip() if operands else str(mnemonic)
    return None


def _agrees(word: int) -> bool:
    kind, text = classify(word), _capstone(word)
    if text is None:
        return kind in _NOT_IN_CAPSTONE
    if kind is Kind.OTHER:
        return not _SPECIAL.match(text)
    return kind in _PATTERNS and bool(_PATTERNS[kind].match(text))


def test_patterns_are_consistent() -> None:
    assert all(pattern.value & ~pattern.mask == 0 for pattern in PATTERNS)
    for kind in set(Kind) - {Kind.OTHER}:
        assert any(classify(word) is kind for word in words_of(kind, 1, 50)), kind


def test_random_words() -> None:
    assert [
        hex(word) for word in words(2, per_pattern=150, uniform=40_000) if not _agrees(word)
    ] == []


@pytest.mark.sysroot
@pytest.mark.slow
def test_real_code() -> None:
    try:
        root = sysroot("aarch64")
    except SysrootUnavailable as error:
        pytest.skip(str(error))
    image = ElfImage.open(root / "usr/lib/aarch64-linux-gnu/libc.so.6")
    section = image.section(".text")
    assert section is not None
    text = image.section_data(section)
    seen = set(struct.unpack(f"<{len(text) // 4}I", text[: len(text) // 4 * 4]))

    assert len(seen) > 50_000
    assert [hex(word) for word in seen if not _agrees(word)] == []


@pytest.mark.parametrize(
    "kind", [Kind.B, Kind.BL, Kind.B_COND, Kind.BC_COND, Kind.CBZ, Kind.TBZ], ids=str
)
def test_branch_targets(kind: Kind) -> None:
    for word in words_of(kind, 3, 200):
        text = _capstone(word)
        assert text is not None
        printed = int(text.rpartition("#")[2], 0)
        assert branch_target(word, kind, 0x400000) == printed % (1 << 64)


def test_hints() -> None:
    for number in range(128):
        word = 0xD503201F | number << 5
        text = _capstone(word)
        assert text is not None
        name = hint_name(word)
        if not text.startswith("hint"):
            assert name == text
        assert is_landing_pad(word) == (name in ("bti c", "bti j", "bti jc", "paciasp", "pacibsp"))
        steppable = text.startswith(("nop", "bti", "pac", "xpac"))
        # Hint 32 and its neighbours: `bti` is decoded with any operand, allocated ones only here.
        assert (classify(word) in (Kind.NOP, Kind.BTI, Kind.PAC)) == steppable, text
