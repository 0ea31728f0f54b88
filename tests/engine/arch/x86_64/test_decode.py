"""Fields and lengths against objdump on real programs and Capstone on random bytes."""

import random
from collections import Counter

import capstone
import pytest
from workcount import calls
from x86code import PROGRAMS, lines_of

from engine.arch.x86_64 import decode as codec
from engine.arch.x86_64.decode import Decoded, decode, length, starts, whole

# A prefix byte that objdump shows on a line of its own: data between functions.
_LONE_PREFIXES = frozenset(
    ("data16", "addr32", "lock", "repz", "repnz", "cs", "ss", "ds", "es", "fs", "gs")
)
# objdump joins a wait with the x87 instruction behind it.
_WAIT = 0x9B


def _is_data(text: str) -> bool:
    """What objdump itself does not take for an instruction."""
    words = text.split()
    if "(bad)" in words or words[0] == ".byte":
        return True
    return all(word in _LONE_PREFIXES or word.startswith("rex") for word in words)


@pytest.mark.parametrize("program", PROGRAMS)
def test_lengths_in_real_programs(program: str) -> None:
    rows = lines_of(program, 0x60000)
    compared = 0
    for address, raw, text in rows:
        if _is_data(text):
            continue
        if raw[0] == _WAIT and len(raw) > 1:
            assert length(raw) == 1
            continue
        assert length(raw) == len(raw), f"{address:#x}: {raw.hex()} {text}"
        compared += 1
    assert compared > 50_000


def _difference(insn: Decoded | None, size: int) -> str:
    """The class of a disagreement with Capstone, "" for one that nobody has explained."""
    if insn is None:
        return ""
    branch = 0x180 <= insn.key <= 0x18F or insn.key in (0xE8, 0xE9)
    if not size:
        if insn.prefixes & codec.LOCK:
            return "lock where it is not allowed"
        if insn.modrm >= 0:
            return "undefined member of a group, form or prefix of a known opcode"
        if insn.prefixes & (codec.OPERAND_SIZE | codec.REP | codec.REPNE):
            return "prefix that the opcode does not take"
    elif not insn.known:
        if insn.key in (0x1A6, 0x1A7):
            return "PadLock"
        if insn.encoding == codec.VEX and insn.key >> 8 == 3:
            return "FMA4"
        if insn.encoding != codec.LEGACY:
            return "66, f2, f3 or REX in front of VEX"
    elif insn.key in (0x1B9, 0x1FF):
        return "ud0 and ud1 have a ModRM byte"
    elif branch and insn.prefixes & codec.OPERAND_SIZE:
        return "66 shortens a branch on AMD processors only"
    return ""


def test_lengths_of_random_bytes() -> None:
    rng = random.Random(64)
    oracle = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    seen: Counter[str] = Counter()
    equal = 0
    for number in range(60_000):
        lead = (b"", b"\x0f", rng.choice((b"\x66", b"\x67", b"\xf2", b"\xf3", b"\x48", b"\x4f")))
        raw = (lead[number % 3] + rng.randbytes(15))[:15]
        found = next(oracle.disasm_lite(raw, 0), None)
        size = found[1] if found else 0
        if length(raw) == size:
            equal += 1
            continue
        cause = _difference(decode(raw), size)
        assert cause, f"{raw.hex()}: {length(raw)}, Capstone {found}"
        seen[cause] += 1
    assert equal > 54_000
    assert seen["ud0 and ud1 have a ModRM byte"]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("f30f1efa", 4),
        ("660f3a0f0510000000cc", 10),
        ("48b88877665544332211", 10),
        ("66b83412", 4),
        ("6648b88877665544332211", 11),
        ("67a188776655", 6),
        ("48a18877665544332211", 10),
        ("f6c301", 3),
        ("f6d3", 2),
        ("66f7c33412", 5),
        ("c8080000", 4),
        ("0f20c0", 3),
        ("0f2004", 3),  # mov from a control register ignores ModRM.mod
        ("660f78c00102", 6),
        ("f20f78c10203", 6),
        ("8fe978c2c1", 5),
        ("8fc0", 2),
        ("c5f877", 3),
        ("62f17548fe1540000000", 10),
        ("4866 90", 3),  # a REX in front of a legacy prefix is void
        ("c7f800000000", 6),
        ("66e800000000", 6),
    ],
)
def test_sizes(text: str, size: int) -> None:
    raw = bytes.fromhex(text)
    assert length(raw) == size
    assert length(raw + b"\x90" * 5) == size
    for end in range(len(raw)):
        assert length(raw[:end]) == 0


@pytest.mark.parametrize("text", ["", "06", "60", "82c000", "9a000000000000", "c4c090", "0f04"])
def test_what_does_not_exist(text: str) -> None:
    assert length(bytes.fromhex(text)) == 0


def test_longest() -> None:
    assert length(b"\x66" * 14 + b"\x90") == 15
    assert length(b"\x66" * 15 + b"\x90") == 0


def test_fields() -> None:
    insn = decode(bytes.fromhex("f2674c81bc8d78563412efbeadde"))
    assert insn is not None
    assert insn.prefixes == codec.REPNE | codec.ADDRESS_SIZE
    assert (insn.rex, insn.wide, insn.extension_at) == (0x4C, True, 2)
    assert (insn.key, insn.first, insn.modrm_at, insn.reg, insn.sib) == (0x81, 0x81, 4, 7, 0x8D)
    assert (insn.displacement_at, insn.displacement_size) == (6, 4)
    assert (insn.immediate_at, insn.immediate_size, insn.size) == (10, 4, 14)
    assert insn.memory
    assert not insn.rip_relative
    long = decode(bytes.fromhex("c4e263f60d10000000"))  # mulx ecx, ebx, [rip+0x10]
    assert long is not None
    assert (long.encoding, long.key, long.vvvv, long.reg) == (codec.VEX, 0x2F6, 3, 1)
    assert long.rip_relative
    assert long.first == 0xF6


def test_lengths_that_are_remembered() -> None:
    """Of instructions that begin alike, whole and cut off."""
    rng = random.Random(3)
    for _ in range(400):
        lead = rng.choice((b"", b"\x48", b"\x66", b"\x0f", b"\x66\x41", b"\xc5", b"\xf6"))
        front = (lead + rng.randbytes(4))[:4]
        for _ in range(8):
            raw = front + rng.randbytes(rng.choice((0, 1, 4, 11)))
            insn = decode(raw)
            wanted = insn.size if insn is not None and insn.known else 0
            assert length(raw) == wanted
            assert length(raw) == wanted, "the second time"
            assert decode(whole(raw)) == insn


def test_whole_libraries_can_be_walked() -> None:
    rng = random.Random(2)
    samples = [rng.randbytes(15) for _ in range(5000)]

    def walk() -> None:
        for raw in samples:
            decode(raw)

    calls(walk, at_most=8 * len(samples))


@pytest.mark.parametrize("seed", range(4))
def test_starts_are_those_of_one_length_after_the_other(seed: int) -> None:
    """Whatever is known of fronts already, and where the code is cut or is none."""
    chance = random.Random(seed)
    some = [bytes.fromhex(text) for text in _WHOLE]
    for _ in range(200):
        code = b"".join(chance.choices(some, k=20))
        if chance.random() < 0.5:
            at = chance.randrange(len(code))
            code = code[:at] + chance.randbytes(3) + code[at : chance.randrange(len(code))]
        at, found, bad = 0, list[int](), None
        while at < len(code):
            insn = decode(code[at : at + 15])
            if insn is None or not insn.known:
                bad = 0x1000 + at
                break
            found.append(0x1000 + at)
            at += insn.size
        assert starts(code, 0x1000) == (found, bad)
        for address in found:
            raw = code[address - 0x1000 :][:15]
            assert len(whole(raw)) in (len(raw), length(raw))


_WHOLE = (
    *("0f8410000000", "4889c7", "488b442418", "8b45f8", "85c0", "90", "e810000000", "c3"),
    *("488d3d10000000", "4181bc8478563412efbeadde", "f30f1efa", "66b83412", "b878563412"),
    *("48b88877665544332211", "660f6f442410", "c5f877", "f20f58c1"),
    *("41f6c301", "f7d8", "65488b042528000000", "0fb6c0", "c8080000"),
)
"""Instructions of all lengths of what decides about them."""
