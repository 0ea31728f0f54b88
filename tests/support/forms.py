"""Instruction forms that real programs use, and random states to run them from.

A form is one instruction of each shape: mnemonic, kinds and sizes of operands, prefixes, ModRM
class. `tests/data/forms` keeps one to three of each, from libc, libcrypto, Python, gdb and others
as Debian builds them; `collect` takes more from programs of this machine.
"""

import random
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import capstone
from probekit import CODE, DATA, DATA_SIZE, SP, STACK_SIZE
from sysroot import SysrootUnavailable, sysroot

from engine.arch.riscv64.decode import FLOAT_NAMES, word_of
from engine.arch.riscv64.decode import NAMES as NAMES_RISCV
from engine.arch.x86_64.decode import decode
from engine.arch.x86_64.operations import NAMES
from engine.image import ElfImage

FORMS = Path(__file__).resolve().parents[1] / "data" / "forms"
MIDDLE = DATA + DATA_SIZE // 2
_U64 = (1 << 64) - 1
_CAPSTONE = {
    "x86_64": (capstone.CS_ARCH_X86, capstone.CS_MODE_64),
    "aarch64": (capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN),
    "riscv64": (capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV64 | capstone.CS_MODE_RISCVC),
}
_SCALABLE = re.compile(r"\b(z\d+|p\d+|za\w*|vg)\b")
_PROGRAMS = (
    "usr/lib/*/libc.so.6",
    "usr/lib/*/libm.so.6",
    "usr/lib/*/libcrypto.so.3",
    "usr/lib/*/libstdc++.so.6",
    "usr/lib/*/libgcc_s.so.1",
    "usr/bin/python3.11",
    "usr/bin/busybox",
    "usr/bin/perl",
)

# Where Debian's cross compiler keeps its libraries: there is no sysroot of this architecture.
_CROSS = {"riscv64": Path("/usr/riscv64-linux-gnu/lib")}
_CROSS_LIBRARIES = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libasan.so.8")

# What compilers do not emit, or only in places where a random sample would miss it.
EXTRA = {
    "x86_64": """
        c3 c20800 cb ca0800 f3c3 ff10 ff13 ff5308 ff1500000000 ff2500000000 ff20 ff24c5 ffd0 ffe3
        41ffd2 41ff23 ff5424f8 ff642410 ff1424 ff542408 e2f0 e110 e010 e310 67e310 67e2f0 48e2f0
        9c 9d 669c 669d e800010000 e900010000 eb20 7510 0f8400010000 54 5c 4154 415c 6a05
        6800100000 ff33 8f03 ff3424 8f0424 ff742408 8f442408 a4 aa a5 48a5 f3a4 f348ab f3a6 f2ae
        f3a6 f348a5 66f3ab 67f3a4 c9 c8100000 90 f390 0f1f00 660f1f440000 f30f1efa 488b0500000000
        488d3500000000 48893d00000000 890500000000 0fb03500000000 480fc70d00000000 c5fa7e0500000000
        c4e2f9180500000000 480fb11500000000 833d0000000001 c7050000000001000000 d900 dd1b d9c0 dec1
        9b d93b dbe3 0fae5424f8 0fae1c24 f7f3 48f7fb f6f3 99 4899 0fa2 0f05 cd80 0f31 0fc7f0 0fc7f8
        64488b042500000000 65488b0b d7 0fa3d8 480fa303 48ab fd fc f5 f8 f9 9e 9f ec ee f4 fa fb
    """,
    "aarch64": """
        c0035fd6 a0035fd6 40001fd6 40003fd6 c0033fd6 00020014 00020094 40000054 41000054 400000b4
        60000035 41003036 41003037 00000010 00000090 40000058 40000018 40000098 4000005c 4000009c
        400000d8 1f2003d5 3f2003d5 bf2303d5 3f2303d5 5f2403d5 9f3b03d5 bf3b03d5 207c5fc8 207c00c8
        010000d4 000020d4 40d03bd5 00423bd5 20423bd5 007ce0a8 6040c0da fd7bbfa9 fd7bc1a8
    """,
    "riscv64": """
        73000000 73001000 0290 73251000 73102500 0f00f00f 0f100000 0f00300c 2fb50510 2f350510
        2fb6a518 2f36a518 01a0 01c1 01e1 8280 8290 67800000 e7800000 67000500 e7000502 e7800000
        ef008000 6f008000 ef020000 63045500 63145500 63445500 63545500 63645500 63745500 63040000
        17050000 97000000 17000000 13000000 0100 0505 0145 8545 8141 7d15 3961 0800 0000 37050000
        17f5ffff 33855502 3b855502 5375a502 d3758502 2fa5b500 2fb5b540 2fb5b5e0 3b05b540 0d89 8d8d
        9d8d 058e 0000000b 57000000 07050000 2705b500 53f5c520 c3f5c520 53850520 0000 ffff ffffffff
    """,
}


def forms(arch: str) -> list[bytes]:
    """The kept forms and the extra ones."""
    text = (FORMS / f"{arch}.txt").read_text()
    return [bytes.fromhex(word) for word in (*EXTRA[arch].split(), *text.split())]


def collect(arch: str) -> tuple[list[bytes], dict[str, int]]:
    """Forms of the programs in the architecture's sysroot, one instruction of each.

    Returns:
        The instructions, and how many forms each program has (many have the same ones).

    Raises:
        SysrootUnavailable: there is no sysroot, or a program is not in it.
    """
    disassembler = capstone.Cs(*_CAPSTONE[arch])
    disassembler.skipdata = True
    found: dict[tuple[object, ...], bytes] = {}
    counts = {}
    for name, text in _texts(arch):
        here = set()
        for at, size, mnemonic, operands in disassembler.disasm_lite(text, 0):
            raw = text[at : at + size]
            if mnemonic == ".byte":
                continue
            if arch == "riscv64" and mnemonic.startswith(("c.unimp", "unimp")):
                continue
            if arch == "aarch64" and _SCALABLE.search(operands):
                continue  # SVE and SME: off in the emulated processor, mostly data
            key = _shape(arch, mnemonic, operands, raw)
            here.add(key)
            found.setdefault(key, raw)
        counts[name] = len(here)
    return sorted(set(found.values())), counts


def _texts(arch: str) -> Iterator[tuple[str, bytes]]:
    """Names of the programs and what they may execute; of AArch64 each word once."""
    if arch in _CROSS:
        yield from _cross_texts(_CROSS[arch])
        return
    tree = sysroot(arch)
    for pattern in _PROGRAMS:
        path = next(iter(sorted(tree.glob(pattern))), None)
        if path is None:
            raise SysrootUnavailable(f"no {pattern} below {tree}")
        image = ElfImage.open(path)
        text = b"".join(
            bytes(image.buffer[segment.offset : segment.offset + segment.filesz])
            for segment in image.load_segments
            if segment.flags & 1
        )
        if arch == "aarch64":
            words = array("I", text[: len(text) & -4])
            text = array("I", dict.fromkeys(words)).tobytes()
        yield path.name, text


def _cross_texts(folder: Path) -> Iterator[tuple[str, bytes]]:
    for name in _CROSS_LIBRARIES:
        path = folder / name
        if not path.exists():
            raise SysrootUnavailable(f"no {path}")
        image = ElfImage.open(path)
        section = image.section(".text")
        assert section is not None
        yield name, bytes(image.section_data(section))


def _shape(arch: str, mnemonic: str, operands: str, raw: bytes) -> tuple[object, ...]:
    text = re.sub(r"#?-?\b0x[0-9a-f]+|#?-?\b\d+(\.\d+)?", "#", operands)
    if arch == "aarch64":
        return mnemonic, re.sub(r"\b([xwvqdshb])\d+", r"\1", text)
    if arch == "riscv64":
        negative = "-" in operands
        names = list(dict.fromkeys(re.findall(r"\bf?[ast]\d+\b", operands)))
        for name in names:  # which of them are the same
            text = re.sub(rf"\b{name}\b", f"{name[0] == 'f'}{names.index(name)}", text)
        return mnemonic, len(raw), negative, text
    insn = decode(raw)
    if insn is None:
        return (mnemonic,)
    modrm = (insn.modrm >> 6, insn.modrm & 7 in (4, 5)) if insn.modrm >= 0 else None
    return mnemonic, insn.prefixes, insn.encoding, insn.key, insn.wide, modrm, insn.size


def aimed(arch: str, raw: bytes, site: int) -> bytes:
    """The instruction with what is relative to pc pointing into the data or near code."""
    if arch == "x86_64":
        insn = decode(raw)
        if insn is None:
            return raw
        out = bytearray(raw)
        if insn.rip_relative:
            at, value = insn.displacement_at, MIDDLE - site - insn.size
            out[at : at + 4] = value.to_bytes(4, "little", signed=True)
        branch = insn.key in (0xE8, 0xE9) or 0x180 <= insn.key < 0x190
        if not insn.encoding and branch and insn.immediate_size == 4:
            at = insn.immediate_at
            out[at : at + 4] = (0x100).to_bytes(4, "little")
        return bytes(out)
    if arch == "riscv64":
        return _aimed_riscv(raw)
    word = int.from_bytes(raw, "little")
    if word & 0x7C000000 == 0x14000000:
        word = word & ~0x3FFFFFF | 0x40
    elif word & 0x7E000000 == 0x34000000 or word & 0xFF000000 == 0x54000000:
        word = word & ~(0x7FFFF << 5) | 0x40 << 5
    elif word & 0x7E000000 == 0x36000000:
        word = word & ~(0x3FFF << 5) | 0x40 << 5
    elif word & 0x3B000000 == 0x18000000:
        word = word & ~(0x7FFFF << 5) | (MIDDLE - site) // 4 << 5
    return word.to_bytes(4, "little")


def _aimed_riscv(raw: bytes) -> bytes:
    """Jumps and branches 0x40 bytes on, whatever they compare."""
    value = int.from_bytes(raw, "little")
    if len(raw) == 2:
        if value & 0xE003 == 0xA001:
            value = value & 0xE003 | 1 << 7  # offset[6] is bit 7
        elif value & 0xE003 in (0xC001, 0xE001):
            value = value & ~0x1C7C | 1 << 5  # offset[6] is bit 5
        return value.to_bytes(2, "little")
    if value & 0x7F == 0x63:
        value = value & ~0xFE000F80 | 2 << 25
    elif value & 0x7F == 0x6F:
        value = value & 0xFFF | 0x20 << 21
    return value.to_bytes(4, "little")


@dataclass(frozen=True)
class State:
    """Registers by name and the bytes of data and stack."""

    registers: dict[str, int]
    data: bytes
    stack: bytes


def state(arch: str, raw: bytes, rng: random.Random) -> State:
    """A random state in which the instruction's operands usually point somewhere."""
    wild = rng.random() < 0.15
    if arch == "riscv64":
        registers = _riscv(raw, rng, wild)
    else:
        registers = _x86(raw, rng, wild) if arch == "x86_64" else _arm(rng, wild)
    return State(registers, _words(rng, DATA_SIZE), _words(rng, STACK_SIZE))


_POOL = random.Random(5).randbytes(1 << 17)
_ADDRESSES = b"".join(
    (CODE + 0x2000 + at % 0x800 * 4).to_bytes(8, "little") for at in range(0, DATA_SIZE, 8)
)


def _words(rng: random.Random, size: int) -> bytes:
    """Random bytes with addresses of code every few words."""
    start = rng.randrange(0, len(_POOL) - size) & -8
    out = bytearray(_POOL[start : start + size])
    for offset in range(8):
        out[offset::24] = _ADDRESSES[offset:size:24]
    return bytes(out)


def _value(rng: random.Random) -> int:
    kind = rng.randrange(8)
    if kind == 0:
        return rng.getrandbits(64)
    if kind == 1:
        return rng.randrange(-4, 5) & _U64
    if kind == 2:
        # Not just behind the probe: enter reads below rbp, and would read the breakpoint.
        return CODE + 0x2200 + rng.randrange(64) * 4
    return MIDDLE + rng.randrange(-32, 32) * 16


def _x86(raw: bytes, rng: random.Random, wild: bool) -> dict[str, int]:
    found = {name: _value(rng) for name in NAMES}
    insn = decode(raw)
    if insn is not None and insn.memory and not wild:
        displacement = 0
        if insn.displacement_size:
            at = insn.displacement_at
            field = raw[at : at + insn.displacement_size]
            displacement = int.from_bytes(field, "little", signed=True)
        base = insn.modrm & 7 | insn.base_high << 3
        if insn.modrm & 7 == 4:
            index = insn.sib >> 3 & 7 | insn.index_high << 3
            base = insn.sib & 7 | insn.base_high << 3
            if insn.modrm >> 6 == 0 and insn.sib & 7 == 5:
                base = -1
                found[NAMES[index]] = (MIDDLE - displacement >> (insn.sib >> 6)) & _U64
            else:
                found[NAMES[index]] = rng.randrange(8)
        if base >= 0:
            found[NAMES[base]] = MIDDLE + rng.randrange(16) * 64 - displacement & _U64
    found["rcx"] = rng.randrange(6) if rng.random() < 0.4 else found["rcx"]
    if raw[:1] in (b"\xf2", b"\xf3") and insn is not None and 0xA4 <= insn.key <= 0xAF:
        found["rcx"] = rng.randrange(6)
    found["rsp"] = SP + rng.randrange(-8, 8) * 8
    if wild and rng.random() < 0.4:
        found["rsp"] = rng.choice((0x10000, 1 << 63, SP + 0x1000 - 4, SP - 0x1000))
    found["eflags"] = 2 | rng.getrandbits(12) & 0x8D5 | rng.choice((0, 0, 0, 0x400))
    found["fs_base"] = found["gs_base"] = MIDDLE
    for number in range(16):
        found[f"xmm{number}"] = rng.getrandbits(128)
    return found


def _arm(rng: random.Random, wild: bool) -> dict[str, int]:
    found = {f"x{number}": _value(rng) for number in range(31)}
    if not wild:
        for number in range(31):
            if rng.random() < 0.5:
                found[f"x{number}"] = MIDDLE + rng.randrange(-8, 8) * 16
    found["sp"] = SP + rng.randrange(-8, 8) * 16
    found["cpsr"] = rng.getrandbits(4) << 28 | rng.getrandbits(2) << 10
    found |= {f"v{number}": rng.getrandbits(128) for number in range(32)}
    return found


def _riscv(raw: bytes, rng: random.Random, wild: bool) -> dict[str, int]:
    found = {name: _value(rng) for name in NAMES_RISCV[1:]}
    if not wild:
        for name in NAMES_RISCV[1:]:
            if rng.random() < 0.5:
                found[name] = MIDDLE + rng.randrange(-8, 8) * 16
        word = word_of(raw)
        if word & 0x7F == 0x2F:  # what is there together or not at all is aligned
            found[NAMES_RISCV[word >> 15 & 31]] = MIDDLE + rng.randrange(-8, 8) * 8
    found.pop("zero", None)
    found["sp"] = SP + rng.randrange(-8, 8) * 16
    found["fcsr"] = rng.getrandbits(5) | rng.randrange(5) << 5
    found |= {name: rng.getrandbits(64) for name in FLOAT_NAMES}
    return found
