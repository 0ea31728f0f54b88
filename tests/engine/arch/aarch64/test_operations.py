"""What software carries out equals what the emulator does in place."""

import random
import struct
from dataclasses import dataclass, field

import pytest
from a64words import words_of
from barecpu import CODE, BareCpu

from engine.arch.aarch64.decode import Kind, classify
from engine.arch.aarch64.operations import EMULATED, holds, operation
from engine.cpu.base import StopKind
from engine.cpu.ram import PAGE
from engine.errors import GuestFaultError

GENERAL = tuple(f"x{number}" for number in range(31))
STATE = (*GENERAL, "sp", "cpsr")
_NZCV = 0xF0000000


@dataclass
class Model:
    """Registers in a dictionary; memory is the emulator's."""

    cpu: BareCpu
    registers: dict[str, int] = field(default_factory=dict)

    def read_register(self, name: str) -> int:
        return self.registers[name]

    def write_register(self, name: str, value: int) -> None:
        assert 0 <= value < 1 << 64
        self.registers[name] = value

    def load(self, address: int, size: int) -> bytes:
        return self.cpu.read(address, size)

    def store(self, address: int, data: bytes) -> None:
        raise AssertionError("no operation stores")

    def execute(self, address: int, raw: bytes) -> int:
        raise AssertionError("no operation is left to the processor")


def _value(rng: random.Random) -> int:
    """Register values: near the code, small, of one bit, tagged, or anything.

    All are multiples of four: the emulator does not check the alignment of pc.
    """
    value: int = rng.choice(
        (
            CODE + rng.randrange(4 * PAGE),
            rng.randrange(4),
            1 << rng.randrange(64),
            ~(1 << rng.randrange(64)) & (1 << 64) - 1,
            rng.getrandbits(8) << 56 | CODE,
            rng.getrandbits(32) << 32,
            rng.getrandbits(64),
        )
    )
    return value & ~3


def _cpu() -> BareCpu:
    """Data of either sign that are harmless instructions (movz), as they are translated, too."""
    rng = random.Random(5)
    words = (rng.choice((0x52800000, 0xD2800000)) | rng.getrandbits(21) for _ in range(PAGE))
    return BareCpu("aarch64", struct.pack(f"<{PAGE}I", *words))


def _compare(cpu: BareCpu, word: int, kind: Kind, rng: random.Random) -> int:
    """Run a word both ways from one random state; the next pc."""
    address = CODE + 4 * rng.randrange(4 * PAGE // 4)
    original = cpu.read(address, 4)
    cpu.patch(address, struct.pack("<I", word))
    before = {name: _value(rng) for name in (*GENERAL, "sp")}
    before["cpsr"] = rng.getrandbits(4) << 28
    for name, value in before.items():
        cpu.write_register(name, value)
    cpu.write_register("pc", address)
    model = Model(cpu, dict(before))
    try:
        next_pc = operation(word, address, kind).run(model)
        fault = None
    except GuestFaultError as error:
        next_pc, fault = address, error.address

    stop = cpu.step()

    # A branch to where nothing is has been taken all the same, and faults there.
    if fault is not None or (stop is not None and cpu.pc == address and stop.access == "read"):
        assert stop is not None
        assert (stop.kind, stop.address, stop.access) == (StopKind.FAULT, fault, "read")
        assert model.registers == before
    elif stop is not None:
        assert (stop.kind, stop.address, stop.access) == (StopKind.FAULT, next_pc, "execute")
    after = {name: cpu.read_register(name) for name in STATE}
    after["cpsr"] &= _NZCV  # br and blr set BTYPE, which nothing can write
    assert after == model.registers
    assert cpu.pc == next_pc
    cpu.patch(address, original)
    return next_pc - address


@pytest.mark.parametrize("kind", sorted(EMULATED, key=str), ids=str)
def test_equals_execution_in_place(kind: Kind) -> None:
    rng = random.Random(kind.name)
    cpu = _cpu()
    steps = {_compare(cpu, word, kind, rng) for word in words_of(kind, 7, 250)}
    conditional = kind in (Kind.B_COND, Kind.CBZ, Kind.TBZ)
    assert not conditional or (4 in steps and len(steps) > 50)


@pytest.mark.parametrize("kind", [Kind.LDR_LITERAL, Kind.LDRSW_LITERAL], ids=str)
def test_literals_that_are_there(kind: Kind) -> None:
    rng = random.Random(11)
    cpu = _cpu()
    for word in words_of(kind, 13, 200):
        near = rng.randrange(-2 * PAGE // 4, 2 * PAGE // 4) & 0x7FFFF
        assert _compare(cpu, word & ~(0x7FFFF << 5) | near << 5, kind, rng) in (0, 4)


@pytest.mark.parametrize(
    "word",
    [
        0xD63F03C0,  # blr x30
        0xD65F03C0,  # ret
        0xD61F03E0,  # br xzr
        0xB400005F,  # cbz xzr, .+8
        0x3500005F,  # cbnz wzr, .+8
        0xB6F8005F,  # tbz xzr, #63, .+8
        0x1000001F,  # adr xzr, .
        0x5800005F,  # ldr xzr, .+8
        0x98000021,  # ldrsw x1, .+4
        0x14000000,  # b .
        0x97FFFFFF,  # bl .-4
    ],
    ids=hex,
)
def test_corners(word: int) -> None:
    rng = random.Random(17)
    cpu = _cpu()
    for _ in range(20):
        _compare(cpu, word, classify(word), rng)


def test_every_condition_with_every_flags() -> None:
    cpu = _cpu()
    seen = set()
    for condition in range(16):
        cpu.patch(CODE, struct.pack("<I", 0x54000040 | condition))  # b.cond .+8
        for nzcv in range(16):
            cpu.write_register("cpsr", nzcv << 28)
            cpu.write_register("pc", CODE)
            assert cpu.step() is None
            taken = cpu.pc == CODE + 8
            assert holds(condition, nzcv << 28) == taken, (condition, nzcv)
            seen.add((condition, taken))
    assert len(seen) == 14 * 2 + 2  # al and nv always hold


@pytest.mark.parametrize("address", [0, 4, (1 << 64) - 4, (1 << 64) - 0x1000])
def test_addresses_wrap(address: int) -> None:
    model = Model(_cpu(), dict.fromkeys(STATE, 0))
    for kind in EMULATED - {Kind.LDR_LITERAL, Kind.LDRSW_LITERAL}:
        for word in words_of(kind, 19, 30):
            assert 0 <= operation(word, address, kind).run(model) < 1 << 64


@pytest.mark.parametrize(
    ("word", "kind", "text"),
    [
        (0x14000004, Kind.B, "jump to 0x400010"),
        (0x94000004, Kind.BL, "put the return address 0x400004 in x30, jump to 0x400010"),
        (0x54000041, Kind.B_COND, "jump to 0x400008 if the flags say ne"),
        (0x34000043, Kind.CBZ, "jump to 0x400008 if w3 is zero"),
        (0xB5000043, Kind.CBZ, "jump to 0x400008 if x3 is not zero"),
        (0xB7080041, Kind.TBZ, "jump to 0x400008 if bit 33 of x1 is set"),
        (0x36080041, Kind.TBZ, "jump to 0x400008 if bit 1 of w1 is clear"),
        (0xD65F03C0, Kind.RET, "return to the address in x30"),
        (0xD61F0200, Kind.BR, "jump to the address in x16"),
        (
            0xD63F0000,
            Kind.BLR,
            "put the return address 0x400004 in x30, jump to the address in x0",
        ),
        (0xB0000001, Kind.ADRP, "put 0x401000 in x1"),
        (0x30000001, Kind.ADR, "put 0x400001 in x1"),
        (0x58000041, Kind.LDR_LITERAL, "load the 8 bytes at 0x400008 into x1"),
        (0x18000041, Kind.LDR_LITERAL, "load the 4 bytes at 0x400008 into w1"),
        (
            0x98000041,
            Kind.LDRSW_LITERAL,
            "load the 4 bytes at 0x400008 with their sign into x1",
        ),
        (0xD503201F, Kind.NOP, "do nothing"),
    ],
)
def test_words(word: int, kind: Kind, text: str) -> None:
    assert operation(word, 0x400000, kind).text == text
