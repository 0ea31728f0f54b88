"""Instructions moved elsewhere do what they do in place: all kept forms, random states."""

import random
from collections import Counter

import pytest
from forms import aimed, forms, state
from probekit import CODE, DATA, DATA_SIZE, NEAR, STACK, STACK_SIZE, ProbeGuest

from engine.arch.aarch64.encode import load_constant
from engine.arch.aarch64.relocate import names_scratch
from engine.arch.jump import Leaves, Movable
from engine.cpu.base import Stop
from engine.cpu.ram import PAGE
from engine.insn.disasm import Disassembler

SITE = CODE + 0x1000
MOVED = NEAR + 0x100
SAMPLE = 500
_BTYPE = 3 << 10
SCRATCH = {"x86_64": (), "aarch64": ("x16", "x17")}


class Bench:
    """Runs an instruction in place and its code at another place, from the same state."""

    def __init__(self, arch: str) -> None:
        self.guest = ProbeGuest(arch, near=16 * PAGE)
        self.guest.memory.commit(NEAR, PAGE)
        self.guest.memory.sync()
        self.clean = self.guest.cpu.save()

    def put(self, address: int, code: bytes) -> None:
        unit = self.guest.arch.breakpoint if self.guest.arch.name == "x86_64" else b"\0\0\x20\xd4"
        self.guest.memory.poke(address, unit * (64 // len(unit)))
        self.guest.memory.poke(address, code)

    def run(self, values: object, start: int, end: int) -> tuple[int, object, object]:
        """pc, what stopped it, and everything visible after the code from start to end."""
        guest = self.guest
        guest.cpu.restore(self.clean)
        for name, value in values.registers.items():  # type: ignore[attr-defined]
            guest.cpu.write_register(name, value)
        guest.memory.poke(DATA, values.data)  # type: ignore[attr-defined]
        guest.memory.poke(STACK, values.stack)  # type: ignore[attr-defined]
        guest.pc = start
        stop: Stop | None = None
        for _ in range(8):
            stop = guest.cpu.step()
            if stop is not None or not start <= guest.pc < end:
                break
        if stop is not None and stop.access == "execute" and not start <= guest.pc < end:
            stop = None
        shown = (stop.kind, stop.trap, stop.address, stop.access) if stop else None
        registers = guest.registers()
        for name in SCRATCH[guest.arch.name]:
            del registers[name]
        if "cpsr" in registers:
            registers["cpsr"] &= ~_BTYPE
        memory = guest.memory
        seen = (registers, memory.read(DATA, DATA_SIZE), memory.read(STACK, STACK_SIZE))
        return guest.pc, shown, seen


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_moved_code_does_what_it_does_in_place(arch: str) -> None:
    bench = Bench(arch)
    jumps = bench.guest.arch.jumps
    assert jumps is not None
    pool = forms(arch)
    rng = random.Random(11)
    front = pool[:150]
    pool = front + rng.sample(pool[150:], min(SAMPLE, len(pool) - 150))
    counts: Counter[str] = Counter()
    different: list[str] = []
    for raw in pool:
        raw = aimed(arch, raw, SITE)
        found = jumps.movable(raw, SITE)
        if isinstance(found, str):
            counts["not moved"] += 1
            continue
        if arch == "aarch64" and names_scratch(int.from_bytes(raw, "little")):
            counts["names a scratch register"] += 1
            continue
        size = bench.guest.arch.probes.length(raw)
        code = found.emit(MOVED)
        assert code is not None
        assert len(code) == found.size
        bench.put(SITE, raw)
        bench.put(MOVED, code)
        counts[f"moved, copied {found.copied}, leaves {found.leaves.name}"] += 1
        for _ in range(3):
            values = state(arch, raw, rng)
            wanted = bench.run(values, SITE, SITE + size)
            got = bench.run(values, MOVED, MOVED + len(code))
            where = got[0]
            if where == MOVED + len(code):
                where = SITE + size
            if wanted[1] is not None and MOVED <= where < MOVED + len(code):
                where = SITE  # the engine reports the instruction's own address
            if (where, *got[1:]) != wanted:
                different.append(f"{raw.hex()}: {wanted[0]:#x} {wanted[1]} {where:#x} {got[1]}")
                break
    print(arch, dict(counts))
    assert not different, "\n".join(different)
    assert counts["moved, copied True, leaves NEVER"] > 200


def test_branches_reach_as_far_as_they_say() -> None:
    guest = {arch: ProbeGuest(arch).arch.jumps for arch in ("x86_64", "aarch64")}
    for jumps in guest.values():
        assert jumps is not None
        place = 1 << 40
        assert jumps.jump(place, place + jumps.reach, jumps.least) is not None
        assert jumps.jump(place, place - jumps.reach, jumps.least) is not None
        assert jumps.jump(place, place + 2 * jumps.reach + (1 << 18), jumps.least) is None
    far = guest["x86_64"].movable(bytes.fromhex("488b0500000000"), 1 << 40)  # type: ignore[union-attr]
    assert isinstance(far, Movable)
    assert far.emit(1 << 41) is None


@pytest.mark.parametrize("size", range(5, 16))
def test_a_jump_takes_the_whole_window(size: int) -> None:
    """The emulator decodes it as one instruction of that size that goes there."""
    guest = ProbeGuest("x86_64")
    assert guest.arch.jumps is not None
    code = guest.arch.jumps.jump(CODE, CODE + 0x800, size)
    assert code is not None
    assert len(code) == size
    (insn,) = Disassembler(guest.arch).decode(CODE, code)
    assert insn.size == size
    guest.load(code)
    assert guest.cpu.step() is None
    assert guest.pc == CODE + 0x800


def test_constants_are_loaded() -> None:
    guest = ProbeGuest("aarch64")
    rng = random.Random(2)
    values = [0, 1, 0xFFFF, 1 << 16, (1 << 64) - 1, 0x7FFF_F810_0000]
    for value in values + [rng.getrandbits(rng.randrange(1, 65)) for _ in range(50)]:
        code = load_constant(3, value)
        guest.load(code)
        for _ in range(len(code) // 4):
            assert guest.cpu.step() is None
        assert guest["x3"] == value


def test_registers_that_detours_use_are_seen() -> None:
    """Whatever the disassembler prints with x16, w16, x17 or w17 counts as naming them."""
    decode = Disassembler(ProbeGuest("aarch64").arch).decode
    rng = random.Random(5)
    words = {"x16", "w16", "x17", "w17"}
    seen = 0
    for _ in range(60_000):
        value = rng.getrandbits(32)
        insn = next(iter(decode(0, value.to_bytes(4, "little"))), None)
        if insn is None:
            continue
        text = insn.operands.replace("[", " ").replace("]", " ").replace(",", " ")
        if words & set(text.replace("!", " ").replace("{", " ").replace("}", " ").split()):
            seen += 1
            assert names_scratch(value), f"{value:#x} {insn.text}"
    assert seen > 300


def test_what_leaves_is_said() -> None:
    jumps = ProbeGuest("x86_64").arch.jumps
    assert jumps is not None
    for text, leaves in (("c3", Leaves.ALWAYS), ("7410", Leaves.PERHAPS), ("90", Leaves.NEVER)):
        found = jumps.movable(bytes.fromhex(text), CODE)
        assert isinstance(found, Movable)
        assert found.leaves is leaves
    for text in ("0f05", "f3a4", "cc", "ff5308", "d9c0", "66e800000000"):
        assert isinstance(jumps.movable(bytes.fromhex(text), CODE), str)
