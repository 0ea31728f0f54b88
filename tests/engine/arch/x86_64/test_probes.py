"""What else the architecture gives to probes: targets, jumps, landing pads, registers."""

import random
import re

import pytest
from barecpu import BareCpu
from x86code import lines_of

from engine.arch.x86_64.decode import LEGACY, decode
from engine.arch.x86_64.operations import relative_target
from engine.arch.x86_64.probes import PROBES

_BRANCH = re.compile(r"(?:bnd )?(?:j\w+|loop\w*|call)(?:,p[nt])? +([0-9a-f]+)(?: <.*>)?")


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("eb10", 0x401012),
        ("e9fbffffff", 0x401000),
        ("e800000000", 0x401005),
        ("7480", 0x400F82),
        ("0f8500010000", 0x401106),
        ("e2fe", 0x401000),
        ("67e300", 0x401003),
        ("c7f810000000", 0x401016),
        ("c3", None),
        ("ffe0", None),
        ("4889c3", None),
        ("c5f871c100", None),
        ("e9", None),
    ],
)
def test_targets(text: str, target: int | None) -> None:
    assert PROBES.target(bytes.fromhex(text), 0x401000) == target


@pytest.mark.parametrize("program", ["libc"])
def test_targets_in_real_programs(program: str) -> None:
    compared = 0
    for address, raw, text in lines_of(program, 0x20000):
        found = _BRANCH.fullmatch(text)
        if found:
            assert PROBES.target(raw, address) == int(found[1], 16), text
            compared += 1
    assert compared > 3000


def test_targets_of_random_bytes() -> None:
    """What the first bytes say is what the decoder says."""
    rng = random.Random(4)
    relative = {*range(0x70, 0x80), *range(0xE0, 0xE4), 0xE8, 0xE9, 0xEB, *range(0x180, 0x190)}
    found = 0
    for number in range(20_000):
        lead = (b"", b"\x0f", bytes((rng.randrange(0x60, 0x80),)), bytes((rng.randrange(256),)))
        raw = (lead[number % 4] + rng.randbytes(15))[: rng.choice((1, 2, 3, 5, 6, 15, 15, 15))]
        insn = decode(raw)
        target = None
        legacy = insn is not None and insn.encoding == LEGACY
        if insn and legacy and (insn.key in relative or (insn.key, insn.modrm) == (0xC7, 0xF8)):
            target = relative_target(insn, raw, 0x401000)
        assert PROBES.target(raw, 0x401000) == target, raw.hex()
        found += target is not None
    assert found > 2000


@pytest.mark.parametrize("distance", [0, 5, -5, (1 << 31) + 4, -(1 << 31) + 5])
def test_jumps_reach(distance: int) -> None:
    place = 0x7FFF00000000
    code = PROBES.jump(place, place + distance)
    assert code is not None
    assert len(code) == 5
    assert PROBES.target(code, place) == place + distance


def test_jumps_beyond_their_reach() -> None:
    assert PROBES.jump(0x7FFF00000000, 0x7FFF00000000 + (1 << 31) + 5) is None
    assert PROBES.jump(0x7FFF00000000, 0x401000) is None


def test_landing_pads_and_registers() -> None:
    assert PROBES.landing_pad(bytes.fromhex("f30f1efa55")) == 4
    assert PROBES.landing_pad(bytes.fromhex("f30f1efb")) == 4
    assert PROBES.landing_pad(bytes.fromhex("f30f1ef8")) == 0
    assert PROBES.landing_pad(b"\x55") == 0
    cpu = BareCpu("x86_64")
    for name in PROBES.fetch_registers.values():
        cpu.read_register(name)
    assert len(PROBES.fetch_registers) == 20
    assert PROBES.fixed_registers == {"orig_ax": 2**64 - 1}  # no system call is under way
    for insn in (PROBES.kprobe, PROBES.nop):
        found = decode(insn)
        assert found is not None
        assert (found.size, found.encoding) == (1, LEGACY)
