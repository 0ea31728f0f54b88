"""Each form of AArch64 that Capstone knows, and random cases of it: see `x86forms`.

A form is a mnemonic with its kinds of operands. `tests/data/instructions/aarch64.txt` has a word
of each; others of the form are found by changing bits of it. `discover` makes that list. Left out
are what the tests' program needs (x16 to x30, sp), SVE and SME, system registers, memory tagging
and pointer authentication.
"""

import random
import re
import struct
from functools import cache
from pathlib import Path

import a64snippets
import capstone
from a64snippets import Case
from snippets import CODE, STATE

LIST = Path(__file__).resolve().parents[1] / "data" / "instructions" / "aarch64.txt"
SLOT = 32
_ENGINE = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
_BRK = 0xD4200000
_RETURN = 0xD65F03C0
_KEPT = re.compile(r"\b[xw](1[6-9]|2\d|30)\b|\bw?sp\b")
_REGISTER = re.compile(r"\b([xwvqdshb])\d+")
_NUMBER = re.compile(r"#?-?\b0x[0-9a-f]+|#-?\d+(\.\d+)?([eE][-+]?\d+)?")
_INDEX = re.compile(r"\[\d+\]")
_CONDITION = re.compile(r"\b(eq|ne|hs|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|al|nv)$")
_SCALABLE = re.compile(r"\b([zp]\d+|za\w*|vg|pn\d+)\b|\b[zp]\d+\.")
_LEFT = re.compile(
    r"(adrp?|mrs|msr|sysl?|svc|hvc|smc|hlt|dcps\d|eret\w*|drps|udf|brk|at|dc|ic|tlbi|cfp|cpp|dvp"
    r"|prfm|prfum|rprfm|ldg|stg|st2g|stzg|stz2g|stgp|ldgm|stgm|stzgm|addg|subg|irg|gmi|subps?"
    r"|cmpp|pac\w*|aut\w*|xpac\w*|bra[ab]z?|blra[ab]z?|reta[ab]|ldra[ab]|wfi|wfe|wfit|wfet|bti"
    r"|cfinv|axflag|xaflag|rmif|setf\d+|hint|nop|yield|sev|sevl|esb|psb|tsb|csdb|dgh|tcommit"
    r"|tstart|tcancel|ttest|tsb|clrbhb|gcs\w*|chkfeat|stshh|mrrs|msrr|smstart|smstop)$"
)
_ACCESSES = ("ld", "st", "cas", "swp", "cpy", "set")
_PAIRED = re.compile(r"\[x15")


def key_of(word: int) -> str:
    """The form of a word; empty if there is none or it is left out."""
    for _, _, mnemonic, operands in _ENGINE.disasm_lite(struct.pack("<I", word), 0):
        if _LEFT.match(mnemonic) or _KEPT.search(operands) or _SCALABLE.search(operands):
            return ""
        if mnemonic.startswith(_ACCESSES) and "[" in operands and not _PAIRED.search(operands):
            return ""
        shape = _CONDITION.sub("cc", _INDEX.sub("[]", _NUMBER.sub("#", operands)))
        name = "b.cc" if mnemonic.startswith("b.") else mnemonic
        return f"{name} {_REGISTER.sub(lambda found: found[1], shape)}".strip()
    return ""


def discover(seed: int, count: int) -> dict[str, int]:
    """A word of each form that random words have."""
    random_ = random.Random(seed)
    found: dict[str, int] = {}
    for _ in range(count):
        word = random_.getrandbits(32)
        group = random_.randrange(8)  # by bits 25 to 28 (ARM ARM, C4.1)
        if group < 2:
            word = word & ~(15 << 25) | random_.choice((7, 15)) << 25
        elif group < 5:
            word = word & ~(15 << 25) | random_.choice((4, 6, 12, 14)) << 25 | 0
            word = word & ~(31 << 5) | 15 << 5
        elif group == 5:
            word = word & ~(15 << 25) | random_.choice((8, 9)) << 25
        elif group == 6:
            word = word & ~(15 << 25) | random_.choice((5, 13)) << 25
        else:
            word = word & ~(15 << 25) | random_.choice((10, 11)) << 25
        if random_.random() < 0.7:
            word &= ~(1 << 4 | 1 << 9 | 1 << 20)
        if group == 7 and random_.random() < 0.3:
            word |= 31 << 16
        name = key_of(word)
        if name:
            found.setdefault(name, word)
    return found


@cache
def forms() -> dict[str, int]:
    """The list: a word of each form."""
    rows = (line.split(" ", 1) for line in LIST.read_text().splitlines())
    return {name: int(word, 16) for word, name in rows}


class ArmCases:
    """Random cases of forms, all by one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._words: dict[str, list[int]] = {}

    def of(self, name: str, number: int) -> Case:
        """The case of that number in its file."""
        word = self._word(name)
        random_ = self._random
        state = a64snippets.state(random_, word, name, CODE + SLOT * number)
        if name in ("br x", "blr x", "ret x", "ret"):
            target = struct.pack("<Q", CODE + SLOT * number + random_.randrange(8, SLOT, 4))
            at = 8 * (word >> 5 & 31)
            state = state[:at] + target + state[at + 8 :] if at < 128 else state
        return Case(word, _text(word), state)

    def _word(self, name: str) -> int:
        known = self._words.setdefault(name, [forms()[name]])
        random_ = self._random
        for _ in range(6):
            word = random_.choice(known)
            for _ in range(random_.randrange(1, 4)):
                low, size = random_.choice(((0, 5), (5, 5), (16, 5), (10, 6), (12, 4), (22, 2)))
                mask = (1 << size) - 1 << low
                word = word & ~mask | random_.getrandbits(32) & mask
            if random_.random() < 0.3:
                word ^= 1 << random_.randrange(32)
            word = _near(word)
            if key_of(word) == name:
                if len(known) < 100:
                    known.append(word)
                return word
        return _near(random_.choice(known))


def _near(word: int) -> int:
    """The word, if it branches or loads from where it stands to a place within its slot."""
    distance = 2 + word % 6
    if word & 0x7C000000 == 0x14000000:
        return word & ~0x3FFFFFF | distance
    if word & 0x7E000000 == 0x34000000 or word & 0xFF000000 == 0x54000000:
        return word & ~(0x7FFFF << 5) | distance << 5
    if word & 0x7E000000 == 0x36000000:
        return word & ~(0x3FFF << 5) | distance << 5
    if word & 0x3B000000 == 0x18000000:
        return word & ~(0x7FFFF << 5) | distance << 5
    return word


def _text(word: int) -> str:
    for _, _, mnemonic, operands in _ENGINE.disasm_lite(struct.pack("<I", word), 0):
        return f"{mnemonic} {operands}"
    return "?"


def files(cases: list[Case]) -> tuple[bytes, bytes]:
    """The file of code and that of states."""
    fill = [_BRK] * (SLOT // 4 - 2)
    code = b"".join(struct.pack("<8I", case.word, _RETURN, *fill) for case in cases)
    return code, b"".join(case.state for case in cases)


def write_list(seed: int, count: int) -> int:
    """Write the list anew; how many forms it has."""
    found = {
        name: word for word, name in ((_near(w), n) for n, w in discover(seed, count).items())
    }
    LIST.write_text("".join(f"{found[name]:08x} {name}\n" for name in sorted(found)))
    return len(found)


# -- what is known to differ ----------------------------------------------------------------------

_NOT_OFFERED = re.compile(
    r"(bf\w+|s[mu]dot|us\w*dot|sudot|[su]mmla|usmmla|st64bv0?|ld64b|bc\..*)$"
)
"""BF16, I8MM and later ones, which AT_HWCAP2 does not offer."""
_BFM = frozenset(("bfi", "bfc", "bfm", "bfxil"))
_UNALIGNED = ("ldapu", "stlu", "ldlar", "stllr")
_ILLEGAL, _BUS = "0000000000000004", "0000000000000007"


def known(name: str, found: dict[str, tuple[str, str]]) -> str:
    """Name the limit that a difference (ours, qemu's) is by; empty for any other."""
    mnemonic = name.split()[0]
    signals = found.get("signal", ("", ""))
    if _NOT_OFFERED.match(mnemonic) and mnemonic not in _BFM and signals[0] in ("", _ILLEGAL):
        return "not offered"
    if set(found) == {"why"}:
        return "qemu's code of SIGILL (ILL_ILLOPN, where Linux says ILL_ILLOPC)"
    if mnemonic.startswith(_UNALIGNED) and signals[1] == _BUS:
        return "alignment of ldapur, stlur and stllr"
    if mnemonic == "fcmla" and "v.h[]" in name and set(found) == {"fpsr"}:
        return "flags of fcmla by an element of halves"
    return ""


__all__ = ["STATE", "ArmCases", "discover", "files", "forms", "known", "write_list"]
