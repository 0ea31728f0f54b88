"""Effects of x86-64 instructions on flags, stack pointer and stack, for liveness.

Source: Intel SDM volume 1, appendix A (EFLAGS cross-reference), and volume 2. Where an
instruction leaves a flag undefined it counts as written: nobody may read it. What is not
known here counts as reading no flag, writing none, and changing the registers it names.
"""

from typing import Final

from engine.arch.x86_64.decode import (
    EVEX,
    LEGACY,
    OPERAND_SIZE,
    REP,
    REPNE,
    VEX,
    Decoded,
    opcodes,
)

CF, PF, AF, ZF, SF, OF = (1 << bit for bit in range(6))
ALL: Final = 63
FLAG_NAMES: Final = ((CF, "CF"), (PF, "PF"), (AF, "AF"), (ZF, "ZF"), (SF, "SF"), (OF, "OF"))
_CONDITIONS: Final = (OF, CF, ZF, CF | ZF, SF, PF, SF | OF, ZF | SF | OF)
"""Of condition codes in pairs: o, b, z, be, s, p, l, le (SDM volume 2, appendix B.1.4.7)."""

RSP, RBP = 4, 5

_CALLS: Final = frozenset({0xE8, 0x9A})
_CMC, _CLC, _STC = 0xF5, 0xF8, 0xF9
_ARITHMETIC: Final = frozenset(
    opcodes("00-05 08-0d 10-15 18-1d 20-25 28-2d 30-35 38-3d 69 6b 80-85 a8 a9 9d")
    + [0x100 | key for key in opcodes("2e 2f af b0 b1 bc bd c0 c1")]
    + [0x1B8, 0x217, 0x20E, 0x20F]
)
_WITH_CARRY: Final = frozenset(opcodes("10-15 18-1d"))
_STRINGS: Final = frozenset({0xA6, 0xA7, 0xAE, 0xAF})
_BIT_TESTS: Final = frozenset({0x1A3, 0x1AB, 0x1B3, 0x1BB, 0x1BA})
_LAHF_FLAGS: Final = SF | ZF | AF | PF | CF


def condition(code: int) -> int:
    """The flags that condition code `code` (0-15) looks at."""
    return _CONDITIONS[code >> 1 & 7]


def flags_read(insn: Decoded) -> int:
    """The status flags that an instruction looks at."""
    key = insn.key
    if insn.encoding != LEGACY:
        return 0
    if key >= 0x100:
        row = key & 0xFF0
        if row in (0x140, 0x180, 0x190):
            return condition(key & 15)
        if key == 0x2F6 and insn.prefixes & (OPERAND_SIZE | REP):  # adcx, adox
            return CF if insn.prefixes & OPERAND_SIZE else OF
        return 0
    if key & 0xF0 == 0x70:
        return condition(key & 15)
    if key in _WITH_CARRY or key == _CMC:
        return CF
    if 0x80 <= key <= 0x83:
        return CF if insn.reg in (2, 3) else 0
    if key in (0xC0, 0xC1, 0xD0, 0xD1, 0xD2, 0xD3):  # rcl, rcr
        return CF if insn.reg in (2, 3) else 0
    if key == 0x9C:
        return ALL
    if key == 0x9F:
        return _LAHF_FLAGS
    if key in (0xE0, 0xE1):
        return ZF
    if key in (0xDA, 0xDB) and insn.modrm >= 0xC0 and insn.reg < 4:  # fcmovcc
        return (CF, ZF, CF | ZF, PF)[insn.reg]
    return 0


def flags_written(insn: Decoded, raw: bytes) -> int:
    """The status flags whose old values are gone for certain afterwards."""
    if insn.encoding != LEGACY:
        return _long_flags_written(insn, raw)
    key = insn.key
    if key in _ARITHMETIC:
        return ALL
    if key in _STRINGS:  # with a count of zero nothing is compared
        return 0 if insn.prefixes & (REP | REPNE) else ALL
    if key in (0xFE, 0xFF):
        return ALL & ~CF if insn.reg < 2 else (ALL if insn.reg in (2, 3) else 0)
    if key in (0xF6, 0xF7):
        return 0 if insn.reg == 2 else ALL
    if key in (0xC0, 0xC1, 0x1A4, 0x1AC):
        count = raw[insn.immediate_at] & (0x3F if insn.wide else 0x1F)
        return _shift(insn) if count else 0
    if key in (0xD0, 0xD1):
        return _shift(insn)
    if key in _CALLS or key == 0x9E:
        return ALL if key != 0x9E else _LAHF_FLAGS
    if key in (_CMC, _CLC, _STC) or key in _BIT_TESTS:
        return CF
    if key == 0x2F6 and insn.prefixes & (OPERAND_SIZE | REP):
        return CF if insn.prefixes & OPERAND_SIZE else OF
    if key == 0x1C7:
        return ZF if insn.memory else ALL if insn.reg in (6, 7) else 0
    if key in (0xDB, 0xDF) and insn.modrm >= 0xC0 and insn.reg in (5, 6):  # fcomi family
        return ZF | PF | CF
    return 0


def _shift(insn: Decoded) -> int:
    if insn.key < 0x100 and insn.reg < 4:  # rotations
        return CF | OF
    return ALL


def _long_flags_written(insn: Decoded, raw: bytes) -> int:
    if insn.encoding not in (VEX, EVEX):
        return 0
    if insn.key in (0x12E, 0x12F, 0x217, 0x20E, 0x20F):
        return ALL
    if insn.encoding == VEX and insn.key in (0x198, 0x199) and insn.modrm >= 0xC0:  # kortest
        return ALL
    if insn.encoding == VEX and insn.key in (0x2F2, 0x2F3, 0x2F5, 0x2F7):
        # andn, blsr and so on, bzhi, bextr; with a prefix pdep, pext, shlx: no flags
        return ALL if insn.key in (0x2F2, 0x2F3) or not raw[insn.extension_at + 2] & 3 else 0
    return 0


# -- stack -----------------------------------------------------------------------------

_NO_GPR: Final = frozenset(
    0x100 | key for key in opcodes("0e 10-18 28-2b 2e 2f 51-6d 6f-76 7c 7d 7f c2 c6 d0-d6 d8-ff")
)
"""Two-byte opcodes whose ModRM names no general register (but as memory's base)."""
_TO_REG: Final = frozenset(
    [*opcodes("02 03 0a 0b 12 13 1a 1b 22 23 2a 2b 32 33 63 69 6b 8a 8b 8d")]
    + [0x100 | key for key in opcodes("02 03 40-4f af b6-b8 bc bd be bf 2c 2d 50 d7")]
)
_TO_RM: Final = frozenset(
    [*opcodes("00 01 08 09 10 11 18 19 20 21 28 29 30 31 88 89 c0 c1 c6 c7 d0-d3 8c 8f")]
    + [0x100 | key for key in opcodes("90-9f a4 a5 ab ac ad b3 bb 7e")]
)
_NOTHING: Final = frozenset(
    [*opcodes("38-3d 84 85 a8 a9 c2 c3 e8 e9 eb 70-7f 90 d8-df")]
    + [0x100 | key for key in opcodes("05 0b 0d 18-1f a3 80-8f ae")]
)


def written_registers(insn: Decoded) -> frozenset[int]:
    """Which of rsp and rbp an instruction changes, as far as its ModRM or opcode says.

    Implicit changes of push, pop, call, ret, leave, enter are not among them.
    """
    key = insn.key
    found: set[int] = set()
    reg = insn.reg if insn.modrm >= 0 and not _reg_high(insn) else -1
    rm = insn.modrm & 7 if insn.modrm >= 0xC0 and not insn.base_high else -1
    if insn.encoding != LEGACY:
        gpr = (key >> 8 == 2 and key & 0xFF >= 0xF0) or key == 0x3F0
        extract = key >> 8 == 3 and 0x14 <= key & 0xFF <= 0x17
        moves = key in (0x12C, 0x12D, 0x150, 0x17E, 0x1D7, 0x192, 0x193)
        if gpr or extract or moves:
            found = {reg, rm, insn.vvvv}
    elif key in _NOTHING or key in _NO_GPR or (key in (0xF6, 0xF7) and insn.reg < 2):
        pass
    elif key in _BYTE_OPS and not insn.rex and key not in (0x1B6, 0x1BE):
        pass  # ah, ch, dh, bh
    elif key == 0x1BA:
        found = {rm} if insn.reg > 4 else set()
    elif 0x80 <= key <= 0x83:
        found = {rm} if insn.reg != 7 else set()
    elif key in (0xF6, 0xF7):
        found = {rm} if insn.reg in (2, 3) else set()
    elif key in (0xFE, 0xFF):
        found = {rm} if insn.reg < 2 else set()
    elif key in _TO_REG:
        found = {reg}
    elif key in _TO_RM:
        found = {rm}
    elif 0xB0 <= key <= 0xBF or 0x91 <= key <= 0x97 or 0x1C8 <= key <= 0x1CF:
        found = {key & 7} if not insn.base_high else set()
    elif insn.modrm >= 0:
        found = {reg, rm}
    return frozenset(found & {RSP, RBP})


def _reg_high(insn: Decoded) -> bool:
    """True if ModRM.reg names r8 and above; the longer encodings are not asked for it."""
    return insn.encoding == LEGACY and bool(insn.rex & 4)


_STORES: Final = frozenset(
    [*opcodes("88 89 8c 8f c6 c7")]
    + [0x100 | key for key in opcodes("11 13 17 29 2b 7e 7f 90-9f c3 d6 e7")]
)
_MODIFIES: Final = frozenset(
    [*opcodes("00 01 08 09 10 11 18 19 20 21 28 29 30 31 86 87 c0 c1 d0-d3 fe")]
    + [0x100 | key for key in opcodes("a4 a5 ab ac ad b0 b1 b3 bb c0 c1 c7")]
)
_X87_STORES: Final = {
    0xD9: (2, 3, 6, 7),
    0xDB: (1, 2, 3, 7),
    0xDD: (1, 2, 3, 6, 7),
    0xDF: (1, 2, 3, 6, 7),
}
_NO_ACCESS: Final = frozenset({0x8D, 0x10D, *(0x100 | key for key in opcodes("18-1f"))})


def access(insn: Decoded) -> str:
    """Access to the memory operand: "read", "write", "both" or "none"."""
    key = insn.key
    if key in _NO_ACCESS:
        return "none"
    if key == 0x17E and insn.encoding == LEGACY and insn.prefixes & REP:  # movq to xmm
        return "read"
    if key == 0x2F1 and insn.encoding == LEGACY:  # movbe; with f2 crc32
        return "read" if insn.prefixes & REPNE else "write"
    if key == 0x1AE and insn.reg in (0, 3, 4, 6):  # fxsave, stmxcsr, xsave, xsaveopt
        return "write"
    if key in _STORES:
        return "write"
    if insn.encoding != LEGACY:
        return "write" if key in (0x319, 0x339) else "read"
    if key in _X87_STORES:
        return "write" if insn.reg in _X87_STORES[key] else "read"
    if key == 0x1BA:
        return "both" if insn.reg > 4 else "read"
    if key in _MODIFIES:
        return "both"
    if 0x80 <= key <= 0x83:
        return "read" if insn.reg == 7 else "both"
    if key in (0xF6, 0xF7):
        return "both" if insn.reg in (2, 3) else "read"
    if key == 0xFF:
        return "both" if insn.reg < 2 else "read"
    return "read"


_BYTE_OPS: Final = frozenset(
    [*opcodes("00 02 08 0a 10 12 18 1a 20 22 28 2a 30 32 38 3a 80 84 86 88 8a c0 c6 d0 d2 f6 fe")]
    + [0x100 | key for key in opcodes("90-9f b0 b6 be c0")]
)


def access_size(insn: Decoded) -> int:
    """Bytes of the memory operand; for vectors at most what is moved."""
    key = insn.key
    if insn.encoding != LEGACY:
        return 4 if key >> 8 == 2 and key & 0xFF >= 0xF0 and not insn.wide else 8
    if key in _BYTE_OPS:
        return 1
    if key in (0x1B7, 0x1BF, 0x8C, 0x8E):
        return 2
    if key in (0x63, 0x16E, 0x17E):
        return 8 if (insn.wide and key != 0x63) or insn.prefixes & REP else 4
    if 0xD8 <= key <= 0xDF:
        if key == 0xDB and insn.reg > 4:
            return 10
        return 4 if key in (0xD8, 0xD9, 0xDA, 0xDB) else 8
    if key in _NO_GPR:
        if insn.prefixes & REP:
            return 16 if key in (0x16F, 0x17F) else 4
        return 8 if insn.prefixes & REPNE or key in (0x112, 0x113, 0x116, 0x117, 0x1D6) else 16
    if insn.wide or (key == 0xFF and insn.reg > 1):
        return 8
    return 2 if insn.prefixes & OPERAND_SIZE else 4
