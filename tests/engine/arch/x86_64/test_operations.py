"""What software carries out equals what the emulator does in place."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from barecpu import CODE, DATA, BareCpu

from engine.arch.plan import Operation
from engine.arch.x86_64.decode import decode
from engine.arch.x86_64.operations import (
    CONDITIONS,
    NAMES,
    do_nothing,
    holds,
    is_nop,
    operation,
    push_register,
)
from engine.cpu.base import StopKind
from engine.cpu.ram import PAGE
from engine.errors import GuestFaultError

STATE = (*NAMES, "eflags", "fs_base", "gs_base", "cs")
WRITABLE = STATE[:-1]
SIZE = 4 * PAGE
# What eflags may hold between instructions: CF PF AF ZF SF DF OF AC; IF and bit 1 always set.
# RF is for one instruction only, TF would trap.
FLAGS = 0x40CD5
# NT and ID: popf sets them in the emulator, but a register write keeps them out.
NOT_WRITTEN = 0x204000


@dataclass
class Model:
    """Registers in a dictionary and memory in a byte array, with the emulator's mappings."""

    registers: dict[str, int]
    code: bytes
    data: bytearray
    written: set[str] = field(default_factory=set)

    def read_register(self, name: str) -> int:
        return self.registers[name]

    def write_register(self, name: str, value: int) -> None:
        assert 0 <= value < 1 << 64
        self.registers[name] = value
        self.written.add(name)

    def load(self, address: int, size: int) -> bytes:
        for start, memory in ((CODE, self.code), (DATA, self.data)):
            if start <= address and address + size <= start + SIZE:
                return bytes(memory[address - start : address - start + size])
        raise GuestFaultError(self._first_bad(address, size), "read")

    def store(self, address: int, data: bytes) -> None:
        if not (address >= DATA and address + len(data) <= DATA + SIZE):
            raise GuestFaultError(self._first_bad(address, len(data)), "write")
        self.data[address - DATA : address - DATA + len(data)] = data

    def execute(self, address: int, raw: bytes) -> int:
        raise AssertionError("no operation is left to the processor")

    @staticmethod
    def _first_bad(address: int, size: int) -> int:
        return next(at for at in range(address, address + size) if not DATA <= at < DATA + SIZE)


def build(raw: bytes, address: int) -> Operation:
    """The operation of an instruction, whatever rules ask for it."""
    insn = decode(raw)
    assert insn is not None
    assert insn.size == len(raw), raw.hex()
    if is_nop(insn):
        return do_nothing(insn, address)
    if 0x50 <= insn.key <= 0x57:
        return push_register(insn, address)
    found = operation(insn, raw, address)
    assert found is not None, raw.hex()
    return found


class Bench:
    """One emulator for many comparisons."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cpu = BareCpu("x86_64")
        self.cs = self.cpu.read_register("cs")
        self.taken = self.faults = 0

    def state(self) -> dict[str, int]:
        """Registers that point into the data, are small or anything; a stack in the data."""
        rng = self.rng
        state: dict[str, int] = {}
        for name in NAMES:
            kind = rng.randrange(5)
            if kind < 2:
                state[name] = DATA + rng.randrange(PAGE, 3 * PAGE)
            elif kind == 2:
                state[name] = rng.choice((0, 1, 2, 8, 1 << 32, (1 << 32) + 1, (1 << 64) - 1))
            elif kind == 3:
                state[name] = CODE + rng.randrange(SIZE)
            else:
                state[name] = rng.getrandbits(64)
        state["rsp"] = DATA + rng.randrange(PAGE, 3 * PAGE)
        state["eflags"] = rng.getrandbits(32) & FLAGS | 0x202
        state["fs_base"] = rng.choice((0, 16, DATA))
        state["gs_base"] = rng.choice((0, 24, (1 << 64) - 32))
        state["cs"] = self.cs
        return state

    def compare(self, raw: bytes, state: dict[str, int], data: bytes, address: int) -> int:
        """Run both ways; returns the next pc, or the address itself after a fault."""
        cpu = self.cpu
        cpu.patch(address, raw)
        cpu.write(DATA, data)
        for name in WRITABLE:
            cpu.write_register(name, state[name])
        cpu.write_register("rip", address)
        model = Model(dict(state), cpu.read(CODE, SIZE), bytearray(data))
        done = build(raw, address)
        stop = cpu.step()
        where = f"{raw.hex()} at {address:#x}: {done.text}"
        if stop is not None and cpu.pc == address:
            before = dict(state), bytes(model.data)
            with pytest.raises(GuestFaultError) as fault:
                done.run(model)
            assert (model.registers, bytes(model.data)) == before, where
            assert stop.kind is StopKind.FAULT, where
            at = stop.address, stop.access
            assert (fault.value.address, fault.value.access) == at, where
            self.faults += 1
            expected = address
        else:
            expected = done.run(model)
            low = model.registers["rsp"]
            assert state["rsp"] - low <= done.pushes or low > state["rsp"], where
            assert cpu.pc == expected, where
        real = {name: cpu.read_register(name) for name in STATE}
        if raw[-1] == 0x9D:
            model.registers["eflags"] &= ~NOT_WRITTEN
            real["eflags"] &= ~NOT_WRITTEN
        assert model.registers == real, where
        assert bytes(model.data) == cpu.read(DATA, SIZE), where
        self.taken += expected not in (address, address + len(raw))
        return expected

    def random(self, raw: bytes, **given: int) -> int:
        """Compare from a random state but for some registers, at a random address."""
        state = self.state() | given
        address = CODE + self.rng.randrange(SIZE - 16)
        return self.compare(raw, state, self.rng.randbytes(SIZE), address)


def relative(rng: random.Random, size: int) -> bytes:
    """Displacements of branches: near ones, the extremes, anything."""
    near = rng.choice((0, 1, 5, 0x40, 0x7F, -1, -2, -0x80))
    value = near if size == 1 or rng.random() < 0.5 else rng.randrange(-(1 << 31), 1 << 31)
    return value.to_bytes(size, "little", signed=True)


@pytest.mark.parametrize("condition", range(16), ids=CONDITIONS)
def test_conditional_jumps_for_all_flags(condition: int) -> None:
    bench = Bench(condition)
    state = bench.state()
    outcomes = set()
    for bits in range(64):
        flags = 0x202 | sum(
            flag for index, flag in enumerate((1, 4, 0x10, 0x40, 0x80, 0x800)) if bits >> index & 1
        )
        state["eflags"] = flags
        for raw in (bytes((0x70 | condition, 0x20)), bytes((0x0F, 0x80 | condition, 0, 8, 0, 0))):
            address = CODE + PAGE
            after = bench.compare(raw, state, bytes(SIZE), address)
            assert (after != address + len(raw)) == holds(condition, flags)
            outcomes.add(after != address + len(raw))
    assert outcomes == {True, False}


def loops() -> Iterator[bytes]:
    for opcode in range(0xE0, 0xE4):
        yield bytes((opcode,))
        yield bytes((0x67, opcode))


@pytest.mark.parametrize("lead", [*loops()], ids=bytes.hex)
def test_loops_count_before_they_look(lead: bytes) -> None:
    bench = Bench(lead[-1] + len(lead))
    for count in (0, 1, 2, 1 << 32, (1 << 32) + 1, (1 << 64) - 1):
        for _ in range(6):
            bench.random(lead + relative(bench.rng, 1), rcx=count)
    assert bench.taken


@pytest.mark.parametrize("opcode", [0xEB, 0xE9, 0xE8], ids=["jmp8", "jmp32", "call"])
@pytest.mark.parametrize("prefix", [b"", b"\x48", b"\xf2", b"\x64"], ids=bytes.hex)
def test_relative_jumps_and_calls(opcode: int, prefix: bytes) -> None:
    bench = Bench(opcode)
    size = 1 if opcode == 0xEB else 4
    for _ in range(20):
        bench.random(prefix + bytes((opcode,)) + relative(bench.rng, size))
    assert bench.taken


@pytest.mark.parametrize(
    "text",
    ["c3", "f3c3", "f2c3", "48c3", "66c3", "c20800", "c2fe7f", "66c21000", "6648c3"],
)
def test_returns(text: str) -> None:
    bench = Bench(len(text))
    for _ in range(15):
        bench.random(bytes.fromhex(text))
    assert bench.taken


def test_return_drops_an_unsigned_number_of_bytes() -> None:
    """SDM: imm16 counts bytes. The emulator takes 0x8000 and more for negative."""
    state = dict.fromkeys(STATE, 0) | {"rsp": DATA}
    model = Model(state, bytes(SIZE), bytearray(SIZE))
    assert build(bytes.fromhex("c2feff"), CODE).run(model) == 0
    assert model.registers["rsp"] == DATA + 8 + 0xFFFE


@pytest.mark.parametrize("text", ["cb", "48cb", "ca1000", "48ff1c24", "ff2c24"])
def test_far_transfers_fault_in_place(text: str) -> None:
    """Which is why a copy in a slot is enough for them."""
    raw = bytes.fromhex(text)
    bench = Bench(1)
    cpu = bench.cpu
    cpu.patch(CODE, raw)
    cpu.write_register("rsp", DATA)
    cpu.write(DATA, (CODE + 16).to_bytes(8, "little") + bench.cs.to_bytes(8, "little"))
    assert cpu.step() is not None
    assert cpu.pc == CODE
    insn = decode(raw)
    assert insn is not None
    assert operation(insn, raw, CODE) is None


@pytest.mark.parametrize("member", [2, 4], ids=["call", "jmp"])
@pytest.mark.parametrize("prefix", [b"", b"\x66", b"\x3e", b"\xf2"], ids=bytes.hex)
def test_branches_through_registers(member: int, prefix: bytes) -> None:
    bench = Bench(member)
    for number in range(16):
        rex = b"\x41" if number > 7 else b""
        raw = prefix + rex + bytes((0xFF, 0xC0 | member << 3 | number & 7))
        for _ in range(3):
            bench.random(raw)
    assert bench.taken


def operands(rng: random.Random) -> bytes:
    """ModRM /0, SIB and displacement: every mode with small displacements."""
    mod, rm = rng.randrange(3), rng.randrange(8)
    raw = bytes((mod << 6 | rm,))
    base = rm
    if rm == 4:
        sib = rng.randrange(256)
        raw += bytes((sib,))
        base = sib & 7
    displacement = rng.randrange(-64, 64)
    if mod == 1:
        return raw + displacement.to_bytes(1, "little", signed=True)
    if mod == 2:
        return raw + displacement.to_bytes(4, "little", signed=True)
    if base != 5:
        return raw
    place = DATA if rm == 4 else DATA - CODE  # absolute, or relative to rip
    return raw + (place + rng.randrange(PAGE, 2 * PAGE)).to_bytes(4, "little")


@pytest.mark.parametrize("member", [2, 4], ids=["call", "jmp"])
@pytest.mark.parametrize(
    "prefix", [b"", b"\x67", b"\x64", b"\x65", b"\x64\x67", b"\x3e", b"\x66"], ids=bytes.hex
)
def test_branches_through_memory(member: int, prefix: bytes) -> None:
    bench = Bench(member * 100 + sum(prefix))
    for _ in range(120):
        rex = bench.rng.choice((b"", b"\x41", b"\x42", b"\x43", b"\x48"))
        rest = operands(bench.rng)
        bench.random(prefix + rex + b"\xff" + bytes((rest[0] | member << 3,)) + rest[1:])
    assert bench.taken > 20
    assert bench.faults > 10


def pushes() -> Iterator[bytes]:
    for opcode in range(0x50, 0x58):
        yield bytes((opcode,))
        yield bytes((0x41, opcode))


@pytest.mark.parametrize("raw", [*pushes()], ids=bytes.hex)
def test_pushes(raw: bytes) -> None:
    bench = Bench(raw[-1])
    for _ in range(5):
        bench.random(raw)


@pytest.mark.parametrize("text", ["9c", "669c", "9d", "669d", "489d"])
def test_flags_on_the_stack(text: str) -> None:
    bench = Bench(len(text))
    for _ in range(60):
        bench.random(bytes.fromhex(text))
    assert not bench.faults


def test_popf_can_set_whatever_a_program_may() -> None:
    """NT and ID too, which the comparison above leaves out."""
    state = dict.fromkeys(STATE, 0) | {"rsp": DATA, "eflags": 0x202}
    model = Model(state, bytes(SIZE), bytearray(b"\xff" * SIZE))
    assert build(b"\x9d", CODE).run(model) == CODE + 1
    assert model.registers["eflags"] == 0x244FD7


@pytest.mark.parametrize(
    "text", ["90", "6690", "4890", "0f1f00", "0f1f4000", "660f1f440000", "0f1f8400000000ff"]
)
def test_no_operations(text: str) -> None:
    bench = Bench(1)
    for _ in range(3):
        bench.random(bytes.fromhex(text))
    assert not bench.taken


@pytest.mark.parametrize("rsp", [DATA, DATA + 4, DATA + SIZE, DATA + SIZE - 4, 0, 7])
@pytest.mark.parametrize(
    "text", ["50", "e800000000", "ffd0", "c3", "c20800", "9c", "9d", "ff1424"]
)
def test_stacks_that_end(text: str, rsp: int) -> None:
    """Pushes and pops across the end of the stack: the same fault, or the same result."""
    bench = Bench(rsp & 7)
    bench.random(bytes.fromhex(text), rsp=rsp)


@pytest.mark.parametrize("text", ["0f05", "90f3", "f390", "4190", "6a01", "0fa2", "f4", "fa"])
def test_the_rest_has_no_operation(text: str) -> None:
    raw = bytes.fromhex(text)
    insn = decode(raw)
    assert insn is not None
    assert operation(insn, raw, CODE) is None
    assert is_nop(insn) == (text == "90f3")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("e8fb0f0000", "push the return address 0x401005, jump to 0x402000"),
        ("7410", "jump to 0x401012 if the flags say e, else go on at 0x401002"),
        ("e1fe", "count rcx down, jump to 0x401000 if it is not 0 and ZF is set"),
        ("67e310", "jump to 0x401013 if ecx is 0, else go on at 0x401003"),
        ("c20800", "pop the return address, jump to it, drop 0x8 bytes"),
        ("ff15fa0f0000", "push the return address 0x401006, jump to the address in [0x402000]"),
        ("ff64c8f8", "jump to the address in [rax+rcx*8-0x8]"),
        ("64ff2500000000", "jump to the address in [fs_base+0x401007]"),
        ("41ffd4", "push the return address 0x401003, jump to r12"),
        ("4155", "push r13"),
    ],
)
def test_texts(text: str, words: str) -> None:
    assert build(bytes.fromhex(text), 0x401000).text.startswith(words)
