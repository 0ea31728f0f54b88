"""Copies do what the originals do: in the emulator, and as Capstone reads them."""

import random
import re

import capstone
import pytest
from barecpu import CODE, DATA, BareCpu
from x86code import PROGRAMS, lines_of

from engine.arch.plan import Mode, Rules, Verdict
from engine.arch.x86_64.analyze import analyze
from engine.arch.x86_64.operations import NAMES
from engine.cpu.base import StopKind
from engine.cpu.ram import PAGE


@pytest.mark.parametrize("program", PROGRAMS)
def test_scratch_copies_of_real_programs(program: str) -> None:
    """Capstone reads each as the original with the scratch register in place of rip."""
    oracle = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    compared = 0
    for address, raw, text in lines_of(program, 0x30000, 0x20000):
        if "(%rip)" not in text or raw[0] == 0x9B:
            continue
        found = analyze(raw, address, Rules.UPROBE, Mode.KERNEL, b"")
        if found.verdict is Verdict.REJECTED:
            continue
        before = next(oracle.disasm_lite(raw, 0), None)
        after = next(oracle.disasm_lite(found.scratch_copy, 0), None)
        assert found.scratch is not None
        if before is None:
            continue  # data between functions
        assert after is not None, found.scratch_copy.hex()
        swapped = re.sub(r"\b[re]?ip\b", found.scratch, before[3])
        assert (after[1], after[2], after[3]) == (before[1], before[2], swapped), raw.hex()
        compared += 1
    assert compared > 300


# Instructions with a RIP-relative operand; the reg field and REX are filled in. Without shld
# and shrd by an immediate: the emulator is one byte off in the address of their originals.
_OPCODES = (
    *(f"{8 * group + low:02x}" for group in range(8) for low in range(4)),
    *("63", "84", "85", "86", "87", "88", "89", "8a", "8b", "8d", "d0", "d1", "d2", "d3"),
    *("f6/2", "f6/3", "f7/2", "f7/3", "f7/4", "f7/5", "f7/6", "f7/7", "fe/0", "fe/1"),
    *("ff/0", "ff/1", "ff/6", "8f/0", "0fa3", "0fab", "0fb3", "0fbb", "0faf", "0fb0", "0fb1"),
    *("0fb6", "0fb7", "0fbe", "0fbf", "0fbc", "0fbd", "0fc0", "0fc1", "0fc7/1", "0f90", "0f9f"),
    *("0f40", "0f4f", "f30fb8", "0fa5", "0fad", "0f10", "0f11", "f20f58", "660f6e", "660f7e"),
    *("6b+1", "69+4", "80+1", "81+4", "83+1", "c0+1", "c1+1", "c6/0+1", "c7/0+4", "f6/0+1"),
    *(
        "f7/0+4",
        "0fba/4+1",
        "0fba/7+1",
        "0fc2+1",
        "0fc6+1",
        "660f70+1",
        "660f3a0f+1",
        "660f3a63+1",
        "67+8d",
        "67+8b",
        "64+8b",
        "64+01",
    ),
    *("f0+0fc1", "f0+0fc7/1"),
)


def _variants(rng: random.Random) -> list[bytes]:
    found = []
    for text in _OPCODES:
        lead, _, rest = text.partition("+")
        prefix = b""
        if len(rest) > 1:
            prefix, lead, rest = bytes.fromhex(lead), rest, ""
        opcode, _, member = lead.partition("/")
        code = bytes.fromhex(opcode)
        if code[0] in (0x66, 0xF2, 0xF3):
            prefix, code = prefix + code[:1], code[1:]
        fields = [int(member)] if member else range(8)
        for field in fields:
            rex = rng.choice((b"", bytes((0x40 | rng.randrange(16),))))
            where = (DATA - CODE + rng.randrange(PAGE, 2 * PAGE) & -16).to_bytes(4, "little")
            tail = rng.randbytes(int(rest or 0))
            found.append(prefix + rex + code + bytes((field << 3 | 5,)) + where + tail)
    for vex in ("c4e2{:02x}f7", "c4e2{:02x}f2", "c4e2{:02x}f6", "c4e2{:02x}f5"):
        for register in range(8):
            payload = 0x80 | (~register & 15) << 3 | 3  # W1, pp = f2
            if vex.endswith("f2"):
                payload &= ~3
            for field in range(8):
                where = (DATA - CODE + PAGE).to_bytes(4, "little")
                code = bytes.fromhex(vex.format(payload)) + bytes((field << 3 | 5,))
                found.append(code + where)
    return found


def _run(cpu: BareCpu, place: int, raw: bytes, state: dict[str, int], data: bytes) -> object:
    """One step from a state; what it left, or None after a fault."""
    cpu.patch(place, raw)
    cpu.write(DATA, data)
    for name, value in state.items():
        cpu.write_register(name, value)
    cpu.write_register("rip", place)
    stop = cpu.step()
    if stop is not None:
        assert stop.kind in (StopKind.TRAP, StopKind.FAULT)
        return None
    assert cpu.pc == place + len(raw)
    registers = {name: cpu.read_register(name) for name in state}
    return registers, cpu.read(DATA, 4 * PAGE)


@pytest.mark.slow
def test_copies_do_what_the_originals_do() -> None:
    """In the emulator: in place, in a slot rebased, in a slot with the scratch register."""
    rng = random.Random(12)
    cpu = BareCpu("x86_64")
    names = (*NAMES, "eflags", "xmm0", "xmm7")
    original, slot = CODE + 64, CODE + 3 * PAGE
    compared = faulted = 0
    for raw in _variants(rng):
        found = analyze(raw, original, Rules.KPROBE, Mode.STRICT, b"")
        assert found.verdict is Verdict.XOL, (raw.hex(), found.reason)
        assert found.displacement is not None
        assert found.scratch is not None
        state = {name: rng.getrandbits(64) >> rng.randrange(64) for name in NAMES}
        state |= {"rsp": DATA + PAGE, "eflags": 0x202 | rng.getrandbits(12) & 0x8D5}
        state |= {"xmm0": rng.getrandbits(127), "xmm7": rng.getrandbits(127)}
        data = rng.randbytes(4 * PAGE)
        expected = _run(cpu, original, raw, state, data)
        at = found.displacement
        old = int.from_bytes(raw[at : at + 4], "little", signed=True)
        rebased = (old + original - slot).to_bytes(4, "little", signed=True)
        assert _run(cpu, slot, raw[:at] + rebased + raw[at + 4 :], state, data) == expected
        before = state | {found.scratch: original + len(raw)}
        after = _run(cpu, slot, found.scratch_copy, before, data)
        if expected is None:
            assert after is None
            faulted += 1
            continue
        assert isinstance(after, tuple)
        registers, memory = after
        registers[found.scratch] = state[found.scratch]
        assert (registers, memory) == expected, f"{raw.hex()} {found.scratch_copy.hex()}"
        compared += 1
    assert set(state) == set(names)
    assert compared > 700
    assert faulted < 360  # 256 are BMI, which the emulated processor does not have
