"""Which instructions may be probed: Linux's rules for kprobes and uprobes, and the strict ones.

Sources: arch/x86/kernel/uprobes.c, arch/x86/kernel/kprobes/core.c, arch/x86/lib/insn.c and
arch/x86/lib/x86-opcode-map.txt of Linux 6.18. Linux looks opcodes of VEX, EVEX and XOP
instructions up as if they were one-byte opcodes, and of two-byte opcodes only the escape 0f,
which always passes. Where its decoder takes a prefix for the opcode (`misread`) the verdict on
a uprobe is Linux's; else, and in strict mode, the processor's reading is used.
"""

from typing import Final

from msgspec import Struct

from engine.arch.x86_64.decode import (
    ADDRESS_SIZE,
    CS,
    DS,
    ES,
    EVEX,
    LEGACY,
    LOCK,
    OPERAND_SIZE,
    PREFIX_BYTES,
    SS,
    VEX,
    Decoded,
    has_modrm,
    mapped,
    opcodes,
)

Refusal = tuple[str, str, str]
"""Name of the error, id of the rule, reason in words."""

_BAD_FOR_UPROBES: Final = frozenset(
    opcodes(
        "06 07 0e 16 17 1e 1f 27 2f 37 3f 60-62 6c-6f 82 9a cc-cf d4-d6 e4-e7 ea ec-ef f1 f4 fa fb"
    )
)
_BAD_PREFIXES: Final = ES | CS | SS | DS | LOCK
_PREFIX_BITS: Final = {byte: bit for bit, byte in PREFIX_BYTES.items()}
_PREFIXES_MAX: Final = 4
_REX: Final = 0x40
_VEX2: Final = 0xC5
_LONG_FORMS: Final = (0x62, 0x8F, 0xC4, 0xC5)
NOT_BOOSTABLE: Final = frozenset(opcodes("62 70-7f 9a cc-ce d6 d8-df e0-e3 e8 e9 eb f0-f4"))
BOOSTABLE_0F: Final = frozenset(
    opcodes(
        "02 03 06 08 09 1f-23 31 40-4f 60-6b 6e 6f 74-77 7e-a1 a3-a5 a8 a9 ab-ad af-b7 bb-c1 c8-cf"
        " d1-d3 d5 d8 d9 db-dd df e1 e2 e5 e8 e9 eb-ed ef f1-f3 f5 f8-fa fc-fe"
    )
) - frozenset(opcodes("80-8f"))
_EMULATE_PREFIXES: Final = (bytes.fromhex("0f0b78656e"), bytes.fromhex("0f0b6b766d"))
_FAR_BY_NUMBER: Final = (0x9A, 0xEA)
_MASKS: Final = "mov ss holds exceptions back: not stepped"
_BRANCH_66: Final = "branch with operand-size prefix 66: Intel and AMD execute it differently"
_JUMP: Final = 5
_SLOT: Final = 16

# Opcodes of 0f, 0f 38 and 0f 3a that Linux knows with VEX or EVEX only, by the last prefix.
_VEX_OPCODES: Final = {
    0: ("", "50 51 b0 d2 d3 f2 f5 f7", "26 27 56 57 66 67 c2"),
    0x66: (
        "78-7b",
        "0c-0f 11-13 16 18-1b 1f 26 27 2c-2f 36 42-47 4c-4f 54 55 58-5b 62-66 70-73 75-7f 83 88-93"
        " 96-a3 a6-b1 b6-bf c4 c8 ca-cd d2 d3 f2 f7",
        "00-06 18-1b 1d-1f 23 25-27 30-33 38-3b 3e 3f 43 46 4a 4b 50 51 54-57 66 67 70-73",
    ),
    0xF2: ("6f 78-7b 7f", "50-53 68 72 9a 9b aa ab b0 cb-cd da f2 f5-f7", "f0"),
    0xF3: ("78-7b", "10-15 20-2a 30-35 38-3a 4b 50-52 b0 b1 d2 d3 da f2 f5 f7", "c2"),
}
_MUST_VEX: Final = {
    prefix: frozenset(
        number << 8 | opcode for number, text in enumerate(texts, 1) for opcode in opcodes(text)
    )
    for prefix, texts in _VEX_OPCODES.items()
}
_OF_VEX: Final = frozenset().union(*_MUST_VEX.values())
# Opcodes that Linux knows with VEX and with EVEX, by map and pp; W and L do not matter to it.
_VEX_TEXTS: Final = {
    (1, 0): "10-17 28 29 2b 2e 2f 41 42 44-47 4a 4b 50-5f 77-79 90-93 98 99 c2 c6",
    (1, 1): "10-17 28 29 2b 2e 2f 41 42 44-47 4a 4b 50 51 54-70 74-76 7c-7f 90-93 98 99 c2"
    " c4-c6 d0-ef f1-fe",
    (1, 2): "10-12 16 2a 2c 2d 51-53 58-5f 6f 70 7e 7f c2 e6",
    (1, 3): "10-12 2a 2c 2d 51 58-5a 5c-5f 70 7c 7d 92 93 c2 d0 e6 f0",
    (2, 0): "49 50 51 5e 6c b0 d2 d3 da f2 f5 f7",
    (2, 1): "00-10 13-1a 1c-1e 20-25 28-41 45-47 49 4b 50-53 58-5a 5e 6c 78 79 8c 8e 90-93 96-9f"
    " a6-b1 b4-bf cf d2 d3 da-ef f7",
    (2, 2): "4b 50 51 5c 5e 72 b0 b1 d2 d3 da f5 f7",
    (2, 3): "49 4b 50 51 5c 5e b0 cb-cd da f5-f7",
    (3, 0): "08 0a",
    (3, 1): "00-02 04-06 08-0f 14-19 1d 20-22 30-33 38 39 40-42 44 46 4a-4c 60-63 ce cf de df",
    (3, 3): "f0",
}
_EVEX_TEXTS: Final = {
    (1, 0): "10-17 28 29 2b 2e 2f 41 42 44-47 4a 4b 50-5f 77-79 90-93 98 99 c2 c6",
    (1, 1): "10-17 28 29 2b 2e 2f 41 42 44-47 4a 4b 50 51 54-70 74-76 78-7f 90-93 98 99 c2"
    " c4-c6 d0-ef f1-fe",
    (1, 2): "10-12 16 2a 2c 2d 51-53 58-5f 6f 70 78-7b 7e 7f c2 e6",
    (1, 3): "10-12 2a 2c 2d 51 58-5a 5c-5f 6f 70 78-7d 7f 92 93 c2 d0 e6 f0",
    (2, 0): "49 50 51 5e 6c b0 d2 d3 da f2 f5 f7",
    (2, 1): "00-47 49 4b-55 58-5b 5e 62-66 6c 70-73 75-7f 83 88-93 96-a3 a6-b1 b4-bf c4 c8 ca-cd"
    " cf d2 d3 da-ef f7",
    (2, 2): "10-15 20-2a 30-35 38-3a 4b 50-52 5c 5e 72 b0 b1 d2 d3 da f5 f7",
    (2, 3): "49 4b 50-53 5c 5e 68 72 9a 9b aa ab b0 cb-cd da f5-f7",
    (3, 0): "08 0a 26 27 56 57 66 67 c2",
    (3, 1): "00-06 08-0f 14-1b 1d-23 25-27 30-33 38-3b 3e-44 46 4a-4c 50 51 54-57 60-63 66 67"
    " 70-73 ce cf de df",
    (3, 2): "c2",
    (3, 3): "f0",
    (5, 0): "1d 2e 2f 51 58-5f 78 79 7c 7d",
    (5, 1): "1d 5a 5b 6e 78-7e",
    (5, 2): "10 11 2a 2c 2d 51 58-5f 78 79 7b 7d",
    (5, 3): "5a 7a 7d",
    (6, 0): "13",
    (6, 1): "13 2c 2d 42 43 4c-4f 96-9f a6-af b6-bf",
    (6, 2): "56 57 d6 d7",
    (6, 3): "56 57 d6 d7",
}
_LONG_KNOWN: Final = {
    encoding: {key: frozenset(opcodes(text)) for key, text in texts.items()}
    for encoding, texts in ((VEX, _VEX_TEXTS), (EVEX, _EVEX_TEXTS))
}
_VEX_GROUPS: Final = {
    # Members that are known, by map, opcode and VEX.pp.
    (1, 0x71, 1): (2, 4, 6),
    (1, 0x72, 1): (0, 1, 2, 4, 6),
    (1, 0x73, 1): (2, 3, 6, 7),
    (1, 0xAE, 0): (2, 3),
    **{(2, 0xF3, prefix): (1, 2, 3) for prefix in range(4)},
    (2, 0xC6, 1): (1, 2, 5, 6),
    (2, 0xC7, 1): (1, 2, 5, 6),
}

# What the strict rules look at twice; all else passes them at once.
_NEAR_BRANCHES: Final = frozenset(
    (*opcodes("70-7f c2 c3 e0-e3 e8 e9 eb"), *(0x180 | condition for condition in range(16)))
)
_GROUPS: Final = {
    # Members that exist, bit N for ModRM.reg = N: (memory, register).
    0x8C: (0b00111111, 0b00111111),
    0x8D: (0xFF, 0),
    0x8E: (0b00111101, 0b00111101),
    0x8F: (1, 1),
    0xC6: (1, 1),
    0xC7: (1, 1),
    0xFE: (3, 3),
    0xFF: (0b01111111, 0b01010111),
    0x1BA: (0xF0, 0xF0),
    0x1C7: (0b11111010, 0b11000000),
    0x1B2: (0xFF, 0),
    0x1B4: (0xFF, 0),
    0x1B5: (0xFF, 0),
}
_FAR: Final = frozenset({0x9A, 0xEA, 0xCA, 0xCB, 0xCF})
_ENTRIES: Final = {
    0x134: "sysenter",
    0x135: "sysexit",
    0x107: "sysret",
    0x1AA: "rsm",
}
_UD: Final = {0x10B: "ud2", 0x1B9: "ud1", 0x1FF: "ud0"}
_CLOSER_LOOK: Final = (
    _NEAR_BRANCHES | frozenset(_GROUPS) | _FAR | frozenset(_ENTRIES) | frozenset(_UD)
)


def _vex_prefix(raw: bytes, insn: Decoded) -> int:
    """VEX.pp: the mandatory prefix that a VEX prefix stands for."""
    at = insn.extension_at
    return raw[at + (1 if raw[at] == _VEX2 else 2)] & 3


def undecodable(raw: bytes, uprobe: bool) -> Refusal:
    """The refusal of bytes that are no instruction."""
    shown = raw[:4].hex(" ") or "nothing"
    return (
        "ENOEXEC" if uprobe else "EILSEQ",
        "x86.undecodable",
        f"no instruction begins with {shown}",
    )


def _linux_cannot_decode(insn: Decoded, raw: bytes) -> bool:
    """True if Linux's decoder gives up: the opcode needs a VEX prefix, or must not have one.

    Of the legacy prefixes the very last one decides between the forms of an opcode
    (insn_last_prefix_id), and where no form is known it knows nothing of VEX either.
    """
    if insn.encoding in _LONG_KNOWN:
        opcode, prefix = insn.key & 0xFF, _vex_prefix(raw, insn)
        members = _VEX_GROUPS.get((insn.key >> 8, opcode, prefix))
        if members is not None:
            return insn.reg not in members
        return opcode not in _LONG_KNOWN[insn.encoding].get((insn.key >> 8, prefix), ())
    if insn.encoding != LEGACY:
        return not mapped(insn)
    last = 0
    for byte in raw:
        if byte not in _PREFIX_BITS:
            break
        last = byte
    return insn.key in _MUST_VEX.get(last, _MUST_VEX[0])


def _masks_exceptions(insn: Decoded) -> bool:
    """True if Linux takes it for `mov ss`; pop ss does not exist at 64 bits."""
    return (insn.first == 0x8E and insn.reg == 2) or insn.first == 0x1F


def misread(raw: bytes) -> tuple[int, int] | None:
    """A prefix that Linux takes for the opcode of an instruction (insn_get_prefixes).

    It reads up to four different legacy prefixes, one REX, and then an opcode, whatever it is:
    a fifth prefix, or behind a REX a legacy prefix, another REX, or one of VEX, EVEX and XOP.

    Returns:
        The legacy prefixes in front of it, and that byte; None where there is none.
    """
    prefixes = at = 0
    seen: list[int] = []
    while at < len(raw) and (bit := _PREFIX_BITS.get(raw[at])):
        if raw[at] not in seen:
            if len(seen) == _PREFIXES_MAX:
                return prefixes, raw[at]
            seen.append(raw[at])
        prefixes |= bit
        at += 1
    if at + 1 >= len(raw) or raw[at] & 0xF0 != _REX:
        return None
    follower = raw[at + 1]
    if follower in _PREFIX_BITS or follower & 0xF0 == _REX or follower in _LONG_FORMS:
        return prefixes, follower
    return None


def misread_refusal(prefixes: int, opcode: int) -> Refusal | None:
    """Refusal of a uprobe by Linux for what `misread` has found."""
    if prefixes & _BAD_PREFIXES:
        return _bad_prefix(prefixes)
    if opcode in _BAD_FOR_UPROBES:
        text = f"opcode {opcode:02x} is on the list that uprobes refuse (a prefix behind a REX)"
        return "ENOTSUPP", "x86.uprobe-opcode", text
    return None


class Rex2(Struct, frozen=True):
    """An instruction with REX2 as Linux reads it (insn_get_prefixes, insn_get_opcode).

    It knows the prefix whatever the processor, and judges the byte behind it as a one-byte
    opcode, also where bit 7 of the prefix's second byte means the map of 0f.

    Attributes:
        prefixes: bits of the legacy prefixes in front of it.
        opcode: the byte behind it.
        wide: REX2.W.
        modrm: the ModRM byte, -1 without.
    """

    prefixes: int
    opcode: int
    wide: bool
    modrm: int


def rex2(raw: bytes) -> Rex2 | None:
    """REX2 at the front of some bytes, behind up to four different legacy prefixes."""
    if 0xD5 not in raw:  # nearly always, at no cost
        return None
    prefixes = at = 0
    while at < len(raw) and (bit := _PREFIX_BITS.get(raw[at])):
        prefixes |= bit
        at += 1
    if raw[at : at + 1] != b"\xd5" or len(raw) < at + 4 or prefixes.bit_count() > _PREFIXES_MAX:
        return None
    payload, opcode = raw[at + 1], raw[at + 2]
    modrm = raw[at + 3] if has_modrm(payload >> 7, opcode) else -1
    return Rex2(prefixes, opcode, bool(payload & 8), modrm)


def rex2_refusal(insn: Rex2, raw: bytes, uprobe: bool) -> Refusal | None:
    """Refusal by Linux of an instruction that begins with REX2."""
    opcode, reg = insn.opcode, insn.modrm >> 3 & 7 if insn.modrm >= 0 else 0
    if opcode in _FAR_BY_NUMBER and insn.wide:
        return undecodable(raw, uprobe)
    mov_ss = opcode == 0x8E and reg == 2
    if uprobe:
        if insn.prefixes & _BAD_PREFIXES:
            return _bad_prefix(insn.prefixes)
        if opcode in _BAD_FOR_UPROBES:
            text = f"opcode {opcode:02x} is on the list that uprobes refuse"
            return "ENOTSUPP", "x86.uprobe-opcode", text
        if mov_ss:
            return "ENOTSUPP", "x86.mask-exceptions", _MASKS
        branch = opcode in (0xE8, 0xE9, 0xEB) or 0x70 <= opcode <= 0x7F
        if branch and insn.prefixes & OPERAND_SIZE:
            return "ENOTSUPP", "x86.branch-66", _BRANCH_66
        return None
    if 0xCC <= opcode <= 0xCE or opcode == 0xF1:
        return "EILSEQ", "x86.exception", "software interrupt: never probed"
    if mov_ss or opcode == 0x1F:
        return "EINVAL", "x86.mask-exceptions", _MASKS
    if opcode in _FAR_BY_NUMBER or opcode == 0xCF or (opcode == 0xFF and reg in (3, 5)):
        return "EOPNOTSUPP", "x86.far", "far transfer or iret: kprobes do not emulate it"
    if opcode == 0xFF and reg in (2, 4):
        if insn.prefixes & ADDRESS_SIZE:
            return "EOPNOTSUPP", "x86.address-size", "indirect branch with prefix 67: refused"
        if insn.modrm < 0xC0:
            text = "call or jump through memory: kprobes do not emulate it"
            return "EOPNOTSUPP", "x86.branch-memory", text
    return None


def uprobe_refusal(insn: Decoded, raw: bytes) -> Refusal | None:
    """Refusal of a uprobe by Linux (uprobe_init_insn, branch_setup_xol_ops)."""
    if (
        not insn.known or insn.key in _OF_VEX or insn.encoding in _LONG_KNOWN
    ) and _linux_cannot_decode(insn, raw):
        return undecodable(raw, True)
    if insn.prefixes & _BAD_PREFIXES:
        return _bad_prefix(insn.prefixes)
    first = insn.first
    if first in _BAD_FOR_UPROBES:
        return (
            "ENOTSUPP",
            "x86.uprobe-opcode",
            f"opcode {first:02x} is on the list that uprobes refuse"
            + ("" if insn.encoding == LEGACY else " (taken for the one-byte opcode)"),
        )
    if first == 0x8E and insn.reg == 2:
        return "ENOTSUPP", "x86.mask-exceptions", _MASKS
    if insn.prefixes & OPERAND_SIZE and _uprobe_branch(insn):
        return (
            "ENOTSUPP",
            "x86.branch-66",
            _BRANCH_66,
        )
    return None


def _bad_prefix(prefixes: int) -> Refusal:
    bit = next(bit for bit in (LOCK, CS, SS, DS, ES) if prefixes & bit)
    kind = "lock" if bit == LOCK else "segment-override"
    text = f"{kind} prefix {PREFIX_BYTES[bit]:02x}: uprobes refuse it"
    return "ENOTSUPP", "x86.uprobe-prefix", text


def _uprobe_branch(insn: Decoded) -> bool:
    """True if uprobes emulate it as a branch; VEX instructions go by their last opcode byte."""
    if insn.encoding == LEGACY and insn.key >= 0x100:
        return 0x180 <= insn.key <= 0x18F
    return insn.first in (0xE8, 0xE9, 0xEB) or 0x70 <= insn.first <= 0x7F


def kprobe_refusal(insn: Decoded, raw: bytes) -> Refusal | None:
    """Refusal of a kprobe by Linux (can_probe, __copy_instruction, prepare_emulation)."""
    first, key = insn.first, insn.key
    if first == 0x0F:
        if key in _UD:
            return "EILSEQ", "x86.exception", f"{_UD[key]} raises an exception: never probed"
        if insn.known:
            if key == 0x101 and insn.modrm >= 0xC0 and not insn.reg:
                return "EOPNOTSUPP", "x86.vm-extension", "virtual-machine instruction: not copied"
            return None
    if not insn.known and _linux_cannot_decode(insn, raw):
        return undecodable(raw, False)
    if 0xCC <= first <= 0xCE or first == 0xF1:
        return "EILSEQ", "x86.exception", "software interrupt: never probed"
    if _masks_exceptions(insn):
        return "EINVAL", "x86.mask-exceptions", _MASKS
    if first in _FAR_BY_NUMBER or first == 0xCF:
        return "EOPNOTSUPP", "x86.far", "far transfer or iret: kprobes do not emulate it"
    if first == 0xFF and 2 <= insn.reg <= 5:
        if insn.reg & 1:
            return "EOPNOTSUPP", "x86.far", "far call or jump: kprobes do not emulate it"
        if insn.prefixes & ADDRESS_SIZE:
            return "EOPNOTSUPP", "x86.address-size", "indirect branch with prefix 67: refused"
        if insn.memory:
            return (
                "EOPNOTSUPP",
                "x86.branch-memory",
                "call or jump through memory: kprobes do not emulate it",
            )
    return None


def forced_emulation(raw: bytes) -> bool:
    """True if bytes begin with Xen's or KVM's forced-emulation prefix."""
    return raw[:5] in _EMULATE_PREFIXES


def boostable(insn: Decoded) -> bool:
    """True if a kprobe's copy may be followed by a jump back (can_boost, prepare_singlestep)."""
    if insn.size + _JUMP > _SLOT:
        return False
    key = insn.key
    if insn.encoding == LEGACY and key >= 0x100:
        return key < 0x200 and key & 0xFF in BOOSTABLE_0F
    if insn.prefixes & (CS | ADDRESS_SIZE):
        return False
    first = insn.first
    if first in NOT_BOOSTABLE:
        return False
    if first in (0xC0, 0xC1, 0xD0, 0xD1, 0xD2, 0xD3):
        return insn.reg != 6
    if first in (0xF6, 0xF7):
        return insn.reg != 1
    if first == 0xFE:
        return insn.reg < 2
    if first == 0xFF:
        return insn.reg in (0, 1, 4)
    return True


def strict_refusal(insn: Decoded) -> tuple[str, str] | None:
    """The rule and reason of what only the strict mode refuses."""
    if not insn.known:
        return "x86.undefined", "undefined encoding: what it does differs between processors"
    if insn.encoding != LEGACY or insn.key not in _CLOSER_LOOK:
        return None
    key = insn.key
    if key in _NEAR_BRANCHES:
        return _operand_size(insn)
    if key in _FAR:
        return "x86.far", "far transfer: it would leave the slot by a segment"
    if key in _ENTRIES:
        return "x86.kernel-entry", f"{_ENTRIES[key]}: enters or leaves the kernel by address"
    if key in _UD:
        return "x86.undefined", f"{_UD[key]} does nothing but raise an exception"
    if key == 0xC7 and insn.modrm == 0xF8:
        return "x86.xbegin", "xbegin: an abort would go on in the slot"
    if key == 0xC6 and insn.modrm == 0xF8:
        return None
    if key == 0xFF and 2 <= insn.reg <= 5:
        if insn.reg & 1:
            return "x86.far", "far transfer: it would leave the slot by a segment"
        return _operand_size(insn)
    members = _GROUPS[key][0 if insn.memory else 1]
    if not members >> insn.reg & 1:
        return (
            "x86.undefined",
            f"undefined member {insn.reg} of the group of opcode {key & 0xFF:02x}",
        )
    return None


def _operand_size(insn: Decoded) -> tuple[str, str] | None:
    if insn.prefixes & OPERAND_SIZE and not insn.wide:
        return (
            "x86.branch-66",
            _BRANCH_66,
        )
    return None
