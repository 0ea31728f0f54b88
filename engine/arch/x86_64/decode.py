"""Fields of x86-64 instructions, from the encoding alone.

Sources: Intel SDM volume 2, chapter 2 (formats) and appendix A (opcode maps); AMD APM volume 3,
appendix A, for XOP and SSE4A. Branches have 32-bit displacements whatever their operand size,
as on Intel processors and in Linux's decoder.

Only lengths and places of fields are decided here, with one judgement: `known` is False where
the opcode maps have nothing. Members of opcode groups and mandatory prefixes are not checked.
"""

from functools import lru_cache
from typing import Final, NamedTuple

LONGEST: Final = 15
"""Bytes; a longer instruction faults."""

LEGACY, VEX, EVEX, XOP = range(4)
"""Encodings of an instruction."""

OPERAND_SIZE: Final = 1
ADDRESS_SIZE: Final = 2
LOCK: Final = 4
REPNE: Final = 8
REP: Final = 16
CS: Final = 32
SS: Final = 64
DS: Final = 128
ES: Final = 256
FS: Final = 512
GS: Final = 1024
"""Legacy prefixes in `Decoded.prefixes`."""

PREFIX_BYTES: Final = {
    OPERAND_SIZE: 0x66,
    ADDRESS_SIZE: 0x67,
    LOCK: 0xF0,
    REPNE: 0xF2,
    REP: 0xF3,
    CS: 0x2E,
    SS: 0x36,
    DS: 0x3E,
    ES: 0x26,
    FS: 0x64,
    GS: 0x65,
}
"""Their bytes."""


class Decoded(NamedTuple):
    """The fields of one instruction. Offsets count from its first byte; -1 = not there.

    Attributes:
        size: bytes.
        known: the opcode maps have something at this opcode.
        encoding: LEGACY, VEX, EVEX or XOP.
        key: opcode map (0, 1 = 0f, 2 = 0f 38, 3 = 0f 3a, 5, 6; XOP 8, 9, 10) << 8 | opcode.
        prefixes: bits of the legacy prefixes.
        rex: the REX byte, 0 without.
        wide: REX.W, or W of the longer encodings.
        base_high: REX.B, XORed out of the longer encodings' inverted bit.
        index_high: REX.X likewise.
        vvvv: the register in VEX.vvvv, 0 without.
        extension_at: offset of REX, or of the first byte of VEX, EVEX, XOP.
        modrm: the ModRM byte or -1.
        modrm_at: its offset.
        sib: the SIB byte or -1.
        displacement_at: offset of the displacement in a memory operand.
        displacement_size: its bytes.
        immediate_at: offset of the immediate (or of a branch's displacement).
        immediate_size: its bytes.
    """

    size: int
    known: bool
    encoding: int
    key: int
    prefixes: int
    rex: int
    wide: bool
    base_high: int
    index_high: int
    vvvv: int
    extension_at: int
    modrm: int
    modrm_at: int
    sib: int
    displacement_at: int
    displacement_size: int
    immediate_at: int
    immediate_size: int

    @property
    def opcode(self) -> int:
        """Last byte of the opcode."""
        return self.key & 0xFF

    @property
    def first(self) -> int:
        """First byte of the opcode as Linux counts: 0f for an escape, else the opcode itself."""
        if self.encoding == LEGACY and self.key >= 0x100:
            return 0x0F
        return self.key & 0xFF

    @property
    def reg(self) -> int:
        """ModRM.reg without extension; 0 without ModRM, as in Linux."""
        return self.modrm >> 3 & 7 if self.modrm >= 0 else 0

    @property
    def memory(self) -> bool:
        """True if ModRM names memory."""
        return 0 <= self.modrm < 0xC0

    @property
    def rip_relative(self) -> bool:
        """True if the memory operand is relative to the end of the instruction."""
        return self.modrm & 0xC7 == 5 and self.displacement_size == 4


_MODRM, _KNOWN, _REGISTERS_ONLY, _SPECIAL = 1, 2, 4, 8
_IMMEDIATE = 4  # the kind of immediate stands above the flags
(_NONE, _BYTE, _WORD, _SIZED, _FULL, _ENTER, _OFFSET, _DWORD, _FAR, _TWO_BYTES) = (
    kind << _IMMEDIATE for kind in range(10)
)


def opcodes(text: str) -> list[int]:
    """'00-03 1f' to the opcodes."""
    found: list[int] = []
    for word in text.split():
        first, _, last = word.partition("-")
        found.extend(range(int(first, 16), int(last or first, 16) + 1))
    return found


def _table(*entries: tuple[str, int], default: int) -> list[int]:
    table = [default] * 256
    for text, entry in entries:
        for opcode in opcodes(text):
            table[opcode] = entry
    return table


_ONE = _table(
    ("00-03 08-0b 10-13 18-1b 20-23 28-2b 30-33 38-3b 63 84-8f d0-d3 d8-df", _MODRM | _KNOWN),
    ("04 0c 14 1c 24 2c 34 3c 6a 70-7f a8 b0-b7 cd e0-e7 eb", _KNOWN | _BYTE),
    ("05 0d 15 1d 25 2d 35 3d 68 a9", _KNOWN | _SIZED),
    ("50-5f 6c-6f 90-99 9b-9f a4-a7 aa-af c3 c9 cb cc cf d7 ec-ef f1 f4 f5 f8-fd", _KNOWN),
    ("69 81 c7", _MODRM | _KNOWN | _SIZED),
    ("6b 80 83 c0 c1 c6", _MODRM | _KNOWN | _BYTE),
    ("82", _MODRM | _BYTE),
    ("d4 d5", _BYTE),
    ("9a ea", _FAR),
    ("a0-a3", _KNOWN | _OFFSET),
    ("b8-bf", _KNOWN | _FULL),
    ("c2 ca", _KNOWN | _WORD),
    ("c8", _KNOWN | _ENTER),
    ("e8 e9", _KNOWN | _DWORD),
    ("f6 f7", _MODRM | _KNOWN | _SPECIAL),
    ("fe ff", _MODRM | _KNOWN),
    default=0,
)
_TWO = _table(
    ("04 0a 0c 36 39 3b-3f", 0),
    ("24-27 7a 7b a6 a7", _MODRM),
    ("05-09 0b 0e 30-35 37 77 a0-a2 a8-aa c8-cf", _KNOWN),
    ("20-23", _MODRM | _KNOWN | _REGISTERS_ONLY),
    ("70-73 a4 ac ba c2 c4-c6", _MODRM | _KNOWN | _BYTE),
    ("0f", _MODRM | _KNOWN | _BYTE),
    ("78 b8", _MODRM | _KNOWN | _SPECIAL),
    ("80-8f", _KNOWN | _DWORD),
    default=_MODRM | _KNOWN,
)
_LEGACY_38: Final = (
    "00-0b 10 14 15 17 1c-1e 20-25 28-2b 30-35 37-41 80-82 c8-cd cf d8 db-df f0 f1 f5 f6 f8-fc"
)
_LEGACY_3A: Final = "08-0f 14-17 20-22 40-42 44 60-63 cc ce cf df f0"
_VEX_0F: Final = "10-17 28-2f 41 42 44-47 4a 4b 50-7f 90-93 98 99 ae c2 c4-c6 d0-fe"
_VEX_38: Final = (
    "00-47 49 4b-55 58-5c 5e 62-66 68 6c 70-73 75-7f 83 88-93 96-a3 a6-b1 b4-bf c4 c6-c8 ca-cd"
    " cf d2 d3 da-df e0-ef f2 f3 f5-f7"
)
_VEX_3A: Final = (
    "00-06 08-0f 14-1b 1d-23 25-27 30-33 38-3b 3e-44 46 4a-4c 50 51 54-57 60-63 66 67 70-73 c2"
    " ce cf de df f0"
)
_XOP_8: Final = "85-87 8e 8f 95-97 9e 9f a2 a3 a6 b6 c0-c3 cc-cf ec-ef"
_XOP_9: Final = "01 02 12 80-83 90-9b c1-c3 c6 c7 cb d1-d3 d6 d7 db e1-e3"
_LONG_0F = _table(
    (_VEX_0F, _MODRM | _KNOWN),
    ("70-73 c2 c4-c6", _MODRM | _KNOWN | _BYTE),
    default=_MODRM,
)
_TABLES: Final = {
    (LEGACY, 0): _ONE,
    (LEGACY, 1): _TWO,
    (LEGACY, 2): _table((_LEGACY_38, _MODRM | _KNOWN), default=_MODRM),
    (LEGACY, 3): _table((_LEGACY_3A, _MODRM | _KNOWN | _BYTE), default=_MODRM | _BYTE),
    (VEX, 1): [_KNOWN if opcode == 0x77 else entry for opcode, entry in enumerate(_LONG_0F)],
    (EVEX, 1): _LONG_0F,
    (VEX, 2): _table((_VEX_38, _MODRM | _KNOWN), default=_MODRM),
    (EVEX, 2): _table((_VEX_38, _MODRM | _KNOWN), default=_MODRM),
    (VEX, 3): _table((_VEX_3A, _MODRM | _KNOWN | _BYTE), default=_MODRM | _BYTE),
    (EVEX, 3): _table((_VEX_3A, _MODRM | _KNOWN | _BYTE), default=_MODRM | _BYTE),
    (EVEX, 5): [_MODRM | _KNOWN] * 256,
    (EVEX, 6): [_MODRM | _KNOWN] * 256,
    (XOP, 8): _table((_XOP_8, _MODRM | _KNOWN | _BYTE), default=_MODRM | _BYTE),
    (XOP, 9): _table((_XOP_9, _MODRM | _KNOWN), default=_MODRM),
    (XOP, 10): _table(("10 12", _MODRM | _KNOWN | _DWORD), default=_MODRM | _DWORD),
}

_REX = -1
_LEAD: Final = [0] * 256
for _bit, _byte in PREFIX_BYTES.items():
    _LEAD[_byte] = _bit
for _byte in range(0x40, 0x50):
    _LEAD[_byte] = _REX
_LONG_FORMS: Final = frozenset({0xC4, 0xC5, 0x62, 0x8F})


def _plain_size(opcode: int) -> int:
    """Bytes of an instruction that begins with an opcode that alone decides; 0 where more does."""
    entry = _ONE[opcode]
    if opcode in (0x0F, *_LONG_FORMS) or _LEAD[opcode] or not entry & _KNOWN:
        return 0
    if entry & (_MODRM | _SPECIAL):
        return 0
    return 1 + (_immediate(entry & -16, 0, wide=False) if entry >= _BYTE else 0)


_LEAST, _MIDDLE, _MOST = 2, 3, 4
"""Bytes that prefixes, opcode, ModRM and SIB of most instructions have."""
_KEPT: Final = 1 << 16
_sizes: Final[dict[bytes, int]] = {}
"""Lengths by these bytes, which decide about them: no such front is the begin of another one."""


@lru_cache(maxsize=1 << 12)
def decode(raw: bytes) -> Decoded | None:
    """The instruction at the front of some bytes; None if cut off, too long, or no encoding."""
    try:
        found = _decode(raw)
    except IndexError:
        return None
    if found is None or found.size > len(raw) or found.size > LONGEST:
        return None
    return found


def whole(raw: bytes) -> bytes:
    """The bytes of the instruction at the front of some, where its first ones tell; else all."""
    if not raw:
        return raw
    known = _sizes.get
    size = (
        _PLAIN_SIZES[raw[0]] or known(raw[:_LEAST]) or known(raw[:_MIDDLE]) or known(raw[:_MOST])
    )
    return raw[:size] if size else raw


def length(raw: bytes) -> int:
    """Length of the instruction at the front of some bytes, 0 if there is none that is known."""
    if not raw:
        return 0
    known = _sizes.get
    size = (
        _PLAIN_SIZES[raw[0]] or known(raw[:_LEAST]) or known(raw[:_MIDDLE]) or known(raw[:_MOST])
    )
    if size:
        return size if size <= len(raw) else 0
    insn = decode(raw)
    if insn is None or not insn.known:
        return 0
    front = max(insn.size - insn.displacement_size - insn.immediate_size, _LEAST)
    if front <= _MOST and front <= len(raw):
        if len(_sizes) >= _KEPT:
            _sizes.clear()
        _sizes[raw[:front]] = insn.size
    return insn.size


def starts(code: bytes, address: int) -> tuple[list[int], int | None]:
    """Addresses of instructions one after the other, and that of the first bytes that are none.

    Args:
        code: the bytes.
        address: of the first one.
    """
    plain, known = _PLAIN_SIZES, _sizes.get
    found: list[int] = []
    at, end = 0, len(code)
    while at < end:
        size = (
            plain[code[at]]
            or known(code[at : at + _LEAST], 0)
            or known(code[at : at + _MIDDLE], 0)
            or known(code[at : at + _MOST], 0)
        )
        if not size or at + size > end:
            size = length(code[at : at + LONGEST])
            if not size:
                return found, address + at
        found.append(address + at)
        at += size
    return found, None


def mapped(insn: Decoded) -> bool:
    """True if its opcode map has something, whatever prefixes stand before VEX, EVEX or XOP."""
    return bool(_TABLES[insn.encoding, insn.key >> 8][insn.key & 0xFF] & _KNOWN)


def has_modrm(opcode_map: int, opcode: int) -> bool:
    """True if an opcode of the maps of one byte (0) or of 0f (1) has a ModRM byte."""
    return bool((_TWO if opcode_map else _ONE)[opcode] & _MODRM)


def _decode(raw: bytes) -> Decoded | None:
    at = prefixes = rex = vvvv = 0
    while lead := _LEAD[raw[at]]:
        if lead > 0:  # a legacy prefix takes a REX before it out of force
            prefixes |= lead
            rex = 0
        else:
            rex = raw[at]
        at += 1
    extension_at = at - 1 if rex else -1
    encoding, opcode_map, known = LEGACY, 0, _KNOWN
    wide, base_high, index_high = bool(rex & 8), rex & 1, rex >> 1 & 1
    opcode = raw[at]
    if opcode == 0x0F:
        at += 1
        opcode, opcode_map = raw[at], 1
        if opcode == 0x38 or opcode == 0x3A:
            opcode_map = 2 if opcode == 0x38 else 3
            at += 1
            opcode = raw[at]
    elif opcode in _LONG_FORMS and (opcode != 0x8F or raw[at + 1] & 0x1F >= 8):
        first, second = raw[at + 1], raw[at + 2]
        if rex or prefixes & (OPERAND_SIZE | LOCK | REPNE | REP):
            known = 0
        extension_at = at
        encoding, opcode_map = VEX, first & 0x1F
        if opcode == 0xC5:
            opcode_map, second = 1, first & 0x7F
            base_high = index_high = 0
            at += 2
        else:
            base_high, index_high = ~first >> 5 & 1, ~first >> 6 & 1
            at += 3
            if opcode == 0x62:
                encoding, opcode_map = EVEX, first & 7
                at += 1
                if first & 8 or not second & 4:
                    known = 0
            elif opcode == 0x8F:
                encoding = XOP
        wide = bool(second & 0x80)
        vvvv = ~second >> 3 & 15
        opcode = raw[at]
    table = _TABLES.get((encoding, opcode_map))
    if table is None:
        return None
    entry = table[opcode]
    at += 1
    modrm = modrm_at = sib = displacement_at = immediate_at = -1
    displacement_size = immediate_size = 0
    if entry & _MODRM:
        modrm = raw[at]
        modrm_at = at
        at += 1
        if modrm < 0xC0 and not entry & _REGISTERS_ONLY:
            mod, base = modrm >> 6, modrm & 7
            if base == 4:
                sib = raw[at]
                at += 1
                base = sib & 7
            if mod == 1:
                displacement_size = 1
            elif mod == 2 or base == 5:
                displacement_size = 4
            if displacement_size:
                displacement_at = at
                at += displacement_size
    if entry >= _BYTE or entry & _SPECIAL:
        if entry & _SPECIAL:
            entry = _special(opcode_map << 8 | opcode, modrm, prefixes, entry)
        immediate_at = at
        immediate_size = _immediate(entry & -16, prefixes, wide)
        at += immediate_size
        if not immediate_size:
            immediate_at = -1
    return Decoded(
        at,
        bool(entry & known),
        encoding,
        opcode_map << 8 | opcode,
        prefixes,
        rex,
        wide,
        base_high,
        index_high,
        vvvv,
        extension_at,
        modrm,
        modrm_at,
        sib,
        displacement_at,
        displacement_size,
        immediate_at,
        immediate_size,
    )


def _special(key: int, modrm: int, prefixes: int, entry: int) -> int:
    """The entry of an opcode whose immediate or being depends on more than the opcode."""
    if key == 0xF6 or key == 0xF7:  # test has an immediate, the rest of the group has none
        if modrm >> 3 & 6:
            return entry
        return entry | (_BYTE if key == 0xF6 else _SIZED)
    if key == 0x178:  # extrq and insertq of SSE4A; vmread without a prefix
        return entry | _TWO_BYTES if prefixes & (OPERAND_SIZE | REPNE) else entry
    return entry if prefixes & REP else entry & ~_KNOWN  # 0f b8: popcnt; jmpe is no more


def _immediate(kind: int, prefixes: int, wide: bool) -> int:
    """Bytes of an immediate."""
    if kind == _BYTE:
        return 1
    if kind == _DWORD:
        return 4
    if kind == _SIZED:
        return 2 if prefixes & OPERAND_SIZE and not wide else 4
    if kind == _FULL:
        return 8 if wide else 2 if prefixes & OPERAND_SIZE else 4
    if kind in (_WORD, _TWO_BYTES):
        return 2
    if kind == _OFFSET:
        return 4 if prefixes & ADDRESS_SIZE else 8
    if kind == _ENTER:
        return 3
    if kind == _FAR:
        return 4 if prefixes & OPERAND_SIZE and not wide else 6
    return 0


_PLAIN_SIZES: Final = [_plain_size(opcode) for opcode in range(256)]
