"""Lengths, expansions, kinds and targets: against the emulator, Capstone and binutils."""

import random
import re
import shutil
import struct
import subprocess
from pathlib import Path

import capstone
import pytest
from barecpu import CODE, DATA, BareCpu

from engine.arch.riscv64.decode import (
    FLOAT_NAMES,
    NAMES,
    InsnKind,
    branch,
    branch_target,
    classify,
    expand,
    i_immediate,
    i_type,
    jal,
    jal_offset,
    length,
    s_immediate,
    s_type,
    word_of,
)
from engine.cpu.ram import PAGE

LIBRARIES = Path("/usr/riscv64-linux-gnu/lib")
_CAPSTONE = capstone.Cs(capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV64 | capstone.CS_MODE_RISCVC)
MIDDLE = DATA + 2 * PAGE
_LEAVES = (InsnKind.JAL, InsnKind.JALR, InsnKind.BRANCH, InsnKind.EBREAK)
_UNDECODED_HINTS = re.compile(r"c\.(slli|srli|srai|lui|nop|li|mv|add|addi)\b")


def _capstone(raw: bytes) -> str:
    found = next(_CAPSTONE.disasm_lite(raw, 0x10000), None)
    return "" if found is None or found[1] != len(raw) else f"{found[2]} {found[3]}".rstrip()


def halves() -> list[int]:
    return [half for half in range(1 << 16) if half & 3 != 3]


def _state(rng: random.Random) -> dict[str, int]:
    values = {name: MIDDLE + 16 * rng.randrange(-4, 4) for name in NAMES[1:]}
    for name in rng.sample(NAMES[1:], 12):
        values[name] = rng.getrandbits(64)
    values["sp"] = MIDDLE - 0x200
    return values | {name: rng.getrandbits(64) for name in FLOAT_NAMES}


def _run(
    cpu: BareCpu, code: bytes, values: dict[str, int], data: bytes
) -> tuple[object, object, object, object]:
    cpu.patch(CODE, code)
    cpu.write(DATA, data)
    for name, value in values.items():
        cpu.write_register(name, value)
    cpu.write_register("pc", CODE)
    stop = cpu.step()
    after = {name: cpu.read_register(name) for name in (*NAMES, *FLOAT_NAMES)}
    shown = None if stop is None else (stop.kind, stop.trap, stop.address, stop.access)
    return cpu.pc - CODE, shown, after, cpu.read(DATA, 4 * PAGE)


def test_every_compressed_instruction_does_what_its_expansion_does() -> None:
    """A part of them, all in turn over the seeds; those that leave are compared as jumps."""
    rng = random.Random(16)
    cpu = BareCpu("riscv64")
    data = rng.randbytes(4 * PAGE)
    seen = set()
    for half in rng.sample(halves(), 2000):
        word = expand(half)
        values = _state(rng)
        short = _run(cpu, struct.pack("<H", half), values, data)
        if not word:
            # The emulator carries c.lui and c.addi16sp of 0 out, and passes over some that no
            # extension has taken yet; those that one has are screened.
            if half >> 13 != 3 and half & 0xF003 != 0x9000:
                assert short[1] is not None, hex(half)
            continue
        kind = classify(word)
        long = _run(cpu, struct.pack("<I", word), values, data)
        seen.add(word & 0x707F)
        if kind in _LEAVES:
            if kind is InsnKind.JALR and word >> 7 & 31:  # the link tells the lengths apart
                assert short[2]["ra"] + 2 == long[2]["ra"]  # type: ignore[index]
                short[2]["ra"] = long[2]["ra"]  # type: ignore[index]
            on = kind is InsnKind.BRANCH and long[0] == 4
            assert short[0] == (2 if on else long[0]), hex(half)
        elif short[1] is None:
            assert (short[0], long[0]) == (2, 4), hex(half)
        assert short[1:] == long[1:], hex(half)
    assert len(seen) > 20


def test_what_is_no_compressed_instruction_is_none_to_capstone_either() -> None:
    for half in halves():
        text = _capstone(struct.pack("<H", half))
        if expand(half):
            # Capstone leaves some hints out: shifts and loads of zero that change nothing.
            assert text or half & 3 in (1, 2), hex(half)
        else:
            known = text in ("c.unimp", "c.addi16sp sp, 0") or re.fullmatch(r"c.lui \w+, 0", text)
            assert not text or known, (hex(half), text)


@pytest.mark.parametrize("half", [0x8002, 0x0000, 0x6081 & ~0x7C | 0x80, 0x2001, 0x4002, 0x9C41])
def test_reserved_ones(half: int) -> None:
    assert expand(half) == 0


_KINDS = {
    InsnKind.JAL: r"c?\.?j(al)?$",
    InsnKind.JALR: r"(c\.)?(jr|jalr|ret)$",
    InsnKind.BRANCH: r"(c\.)?b(eq|ne|lt|ge|gt|le)u?z?$",
    InsnKind.AUIPC: r"auipc$",
    InsnKind.LOAD_RESERVED: r"lr\.[wd]",
    InsnKind.STORE_CONDITIONAL: r"sc\.[wd]",
    InsnKind.FENCE: r"fence(\.tso)?$|pause$",
    InsnKind.FENCE_I: r"fence\.i$",
    InsnKind.ECALL: r"ecall$",
    InsnKind.EBREAK: r"(c\.)?ebreak$",
    InsnKind.CSR: r"csr|rdcycle|rdtime|rdinstret|fs?(r|f)|fr|unimp",
    InsnKind.SYSTEM: r"[msud]ret$|wfi$|s?h?fence|sfence",
}
_SPECIAL = re.compile("|".join(f"(?:{text})" for text in _KINDS.values()))


def _agrees(raw: bytes) -> bool:
    kind, text = classify(word_of(raw)), _capstone(raw)
    mnemonic = text.partition(" ")[0]
    if not text:
        return kind not in (InsnKind.JAL, InsnKind.BRANCH, InsnKind.AUIPC, InsnKind.EBREAK)
    if kind in _KINDS:
        return bool(re.match(_KINDS[kind], mnemonic))
    return not re.match(
        r"(c\.)?(j|jal|jalr|jr|ret|b(eq|ne|lt|ge)u?z?|auipc|ecall|ebreak)$", mnemonic
    )


def test_kinds_of_random_words() -> None:
    rng = random.Random(17)
    opcodes = [0x63, 0x67, 0x6F, 0x73, 0x0F, 0x17, 0x2F, 0x03, 0x23, 0x13, 0x33, 0x53]
    for _ in range(40_000):
        word = rng.getrandbits(32) & ~0x7F | rng.choice(opcodes)
        if word & 0x7F == 0x73 and rng.random() < 0.5:
            word &= 0xFFF0_007F | 3 << 12
        assert _agrees(struct.pack("<I", word)), (hex(word), _capstone(struct.pack("<I", word)))


@pytest.mark.parametrize("name", ["libc.so.6", "libm.so.6", "ld-linux-riscv64-lp64d.so.1"])
@pytest.mark.slow
def test_real_code_as_binutils_reads_it(name: str) -> None:
    tool = shutil.which("riscv64-linux-gnu-objdump")
    path = LIBRARIES / name
    if tool is None or not path.exists():
        pytest.skip("no cross binutils and libraries of riscv64")
    text = subprocess.run(
        [tool, "-d", "-j", ".text", path], capture_output=True, text=True, check=True
    ).stdout
    rows = re.findall(r"^ +([0-9a-f]+):\t([0-9a-f]{4,8}) +\t(\S+)(?:\t(.*))?$", text, re.M)
    assert len(rows) > 10_000
    for place, digits, mnemonic, operands in rows:
        raw = int(digits, 16).to_bytes(len(digits) // 2, "little")
        assert length(raw + bytes(2)) == len(raw)
        word, address = word_of(raw), int(place, 16)
        kind = classify(word)
        target = branch_target(word, kind, address)
        direct = re.fullmatch(r"j|jal|b\w+", mnemonic)
        assert (target is not None) == bool(direct), (place, mnemonic)
        if direct:
            assert f"{target:x}" == operands.split(" ")[0].rpartition(",")[2], place
        assert (kind is InsnKind.JALR) == (mnemonic in ("jr", "jalr", "ret")), (place, mnemonic)
        assert (kind is InsnKind.LOAD_RESERVED) == mnemonic.startswith("lr."), place
        assert (kind is InsnKind.STORE_CONDITIONAL) == mnemonic.startswith("sc."), place
        assert (kind is InsnKind.AUIPC) == (mnemonic == "auipc"), place


def test_lengths() -> None:
    for raw, size in (
        (b"", 0),
        (b"\x01", 0),
        (b"\x01\x00", 2),
        (b"\x13\x00", 0),
        (b"\x13\x00\x00", 0),
        (b"\x13\x00\x00\x00", 4),
        (b"\x1f\x00\x00\x00\x00\x00", 4),  # of 48 bits: 32 to Linux
    ):
        assert length(raw) == size
        assert (word_of(raw) == 0) == (size == 0)


def test_what_is_put_together_is_taken_apart() -> None:
    rng = random.Random(18)
    for _ in range(500):
        offset = rng.randrange(-(1 << 20), 1 << 20, 2)
        assert jal_offset(jal(1, offset)) == offset
        near = rng.randrange(-(1 << 12), 1 << 12, 2)
        word = branch(1, 9, near)
        assert branch_target(word, classify(word), 1 << 20) == (1 << 20) + near
        immediate = rng.randrange(-2048, 2048)
        assert i_immediate(i_type(0x13, 0, 1, 2, immediate)) == immediate
        assert s_immediate(s_type(0x23, 3, 1, 2, immediate)) == immediate
