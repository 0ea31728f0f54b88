"""What software carries out equals what the emulator does in place."""

import random
import struct
from dataclasses import dataclass, field

import pytest
from barecpu import CODE, BareCpu

from engine.arch.riscv64.decode import MASK, NAMES, InsnKind, classify, expand, rd
from engine.arch.riscv64.operations import EMULATED, operation
from engine.cpu.base import StopKind
from engine.cpu.ram import PAGE

OPCODES = {
    InsnKind.JAL: 0x6F,
    InsnKind.JALR: 0x67,
    InsnKind.BRANCH: 0x63,
    InsnKind.AUIPC: 0x17,
}
SHORT = [half for half in range(1 << 16) if half & 3 != 3 and classify(expand(half)) in EMULATED]


@dataclass
class Model:
    """Registers in a dictionary; no operation touches memory."""

    registers: dict[str, int] = field(default_factory=dict)

    def read_register(self, name: str) -> int:
        return self.registers[name]

    def write_register(self, name: str, value: int) -> None:
        assert 0 <= value < 1 << 64
        assert name != "zero"
        self.registers[name] = value

    def load(self, address: int, size: int) -> bytes:
        raise AssertionError("no operation loads")

    def store(self, address: int, data: bytes) -> None:
        raise AssertionError("no operation stores")

    def execute(self, address: int, raw: bytes) -> int:
        raise AssertionError("no operation is left to the processor")


def _value(rng: random.Random) -> int:
    return rng.choice(
        (
            CODE + rng.randrange(4 * PAGE),
            rng.randrange(4),
            -rng.randrange(4) & MASK,
            1 << rng.randrange(64),
            ~(1 << rng.randrange(64)) & MASK,
            rng.getrandbits(64),
        )
    )


def words_of(kind: InsnKind, rng: random.Random, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        word = rng.getrandbits(32) & ~0x7F | OPCODES[kind]
        if kind is InsnKind.JALR:
            word &= ~0x7000
        if kind is InsnKind.BRANCH and rng.random() < 0.3:  # of a register with itself
            word = word & ~(31 << 20) | (word >> 15 & 31) << 20
        if classify(word) is kind:
            found.append(word)
    return found


def _compare(cpu: BareCpu, raw: bytes, rng: random.Random) -> int:
    """Run an instruction both ways from one random state; how far pc has moved."""
    word = int.from_bytes(raw, "little") if len(raw) == 4 else expand(raw[0] | raw[1] << 8)
    address = CODE + 2 * rng.randrange(4 * PAGE // 2 - 2)
    original = cpu.read(address, 4)
    cpu.patch(address, raw)
    before = {name: _value(rng) for name in NAMES[1:]} | {"zero": 0}
    for name, value in before.items():
        cpu.write_register(name, value)
    cpu.write_register("pc", address)
    model = Model(dict(before))
    next_pc = operation(word, address, len(raw), classify(word)).run(model)

    stop = cpu.step()

    if stop is not None:  # a jump to where nothing is has been carried out all the same
        assert (stop.kind, stop.address, stop.access) == (StopKind.FAULT, next_pc, "execute")
    assert {name: cpu.read_register(name) for name in NAMES} == model.registers
    assert cpu.pc == next_pc
    cpu.patch(address, original)
    return next_pc - address


@pytest.mark.parametrize("kind", sorted(EMULATED, key=str), ids=str)
def test_equals_execution_in_place(kind: InsnKind) -> None:
    rng = random.Random(kind.name)
    cpu = BareCpu("riscv64", struct.pack("<I", 0x13) * PAGE)
    steps = {_compare(cpu, struct.pack("<I", word), rng) for word in words_of(kind, rng, 400)}
    assert kind is not InsnKind.BRANCH or (4 in steps and len(steps) > 50)


def test_compressed_ones() -> None:
    rng = random.Random(21)
    cpu = BareCpu("riscv64", struct.pack("<I", 0x13) * PAGE)
    kinds = set()
    for half in rng.sample(SHORT, 800):
        _compare(cpu, struct.pack("<H", half), rng)
        word = expand(half)
        kinds.add((classify(word), bool(rd(word))))
    assert {kind for kind, _ in kinds} == {InsnKind.JAL, InsnKind.JALR, InsnKind.BRANCH}
    assert (InsnKind.JALR, True) in kinds


@pytest.mark.parametrize("funct3", [0, 1, 4, 5, 6, 7])
def test_conditions_at_the_edges(funct3: int) -> None:
    cpu = BareCpu("riscv64")
    edges = (0, 1, MASK, 1 << 63, (1 << 63) - 1)
    word = 2 << 25 | 11 << 20 | 10 << 15 | funct3 << 12 | 0x63  # a0, a1, .+0x40
    cpu.patch(CODE, struct.pack("<I", word))
    seen = set()
    for left in edges:
        for right in edges:
            cpu.write_register("a0", left)
            cpu.write_register("a1", right)
            cpu.write_register("pc", CODE)
            cpu.step()
            model = Model({"a0": left, "a1": right})
            assert operation(word, CODE, 4, InsnKind.BRANCH).run(model) == cpu.pc
            seen.add(cpu.pc)
    assert len(seen) == 2


@pytest.mark.parametrize("address", [0, 2, MASK - 1, MASK - 3, MASK - 0xFFF])
def test_addresses_wrap(address: int) -> None:
    rng = random.Random(22)
    model = Model(dict.fromkeys(NAMES, 0))
    for kind in EMULATED:
        for word in words_of(kind, rng, 30):
            assert 0 <= operation(word, address, 4, kind).run(model) <= MASK


@pytest.mark.parametrize(
    ("word", "size", "text"),
    [
        (0x0100006F, 4, "jump to 0x400010"),
        (0x010000EF, 4, "put the return address 0x400004 in ra, jump to 0x400010"),
        (expand(0xA801), 2, "jump to 0x400010"),
        (0x00008067, 4, "jump to the address in ra"),
        (0xFFC50067, 4, "jump to the address in a0 - 0x4"),
        (expand(0x9502), 2, "put the return address 0x400002 in ra, jump to the address in a0"),
        (0x020502E7, 4, "put the return address 0x400004 in t0, jump to the address in a0 + 0x20"),
        (0x00B50463, 4, "jump to 0x400008 if a0 equals a1"),
        (expand(0xC501), 2, "jump to 0x400008 if a0 equals zero"),
        (0x00B57463, 4, "jump to 0x400008 if a0 is not below a1"),
        (0x00001517, 4, "put 0x401000 in a0"),
        (0xFFFFF517, 4, "put 0x3ff000 in a0"),
    ],
)
def test_words(word: int, size: int, text: str) -> None:
    assert operation(word, 0x400000, size, classify(word)).text == text
