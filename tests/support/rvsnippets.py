"""Single instructions of RISC-V on general registers and memory: see `snippets`."""

import random
import struct
from dataclasses import dataclass

import capstone
from snippets import CODE, SIZE, STATE

_CAPSTONE = capstone.Cs(capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV64 | capstone.CS_MODE_RISCVC)
_BACK = 0x000F0067  # jr x30
_BASE = 29
"""The register that loads, stores and atomics are made by."""
_DATA = STATE + 768 + 128
_ADDRESSED = (0x03, 0x23, 0x2F)
_OPCODES = (0x13, 0x1B, 0x33, 0x33, 0x3B, 0x3B, 0x37, *_ADDRESSED)


@dataclass(frozen=True)
class RiscvCase:
    """One instruction, and the state that it finds as the guest reads it."""

    code: bytes
    name: str
    state: bytes


def _register(random_: random.Random) -> int:
    return int(random_.choice((0, *range(5, 29))))


def _code(random_: random.Random) -> tuple[bytes, str]:
    """Base, M and A, of 32 bits, and compressed sums (the unprivileged manual, chapter 34)."""
    while True:
        if random_.random() < 0.15:  # quadrants 1 and 2 without jumps and the stack
            word = random_.getrandbits(14) << 2 | random_.choice((1, 2))
            code = struct.pack("<H", word)
        else:
            opcode = random_.choice(_OPCODES)
            word = random_.getrandbits(32) & ~0x01FFFFFF | opcode | random_.getrandbits(3) << 12
            word |= _register(random_) << 7 | _register(random_) << 15
            word = word & ~(31 << 20) | _register(random_) << 20
            if opcode in (0x33, 0x3B):
                word = word & 0x01FFFFFF | random_.choice((0, 1, 1, 0x20)) << 25
            if opcode in _ADDRESSED:
                word = word & ~(31 << 15) | _BASE << 15
            if opcode in (0x03, 0x23):  # near: the upper bits of the distance are those of a sign
                word = word & 0x01FFFFFF | random_.choice((0, 1, 0x7F)) << 25
            code = struct.pack("<I", word)
        insn = next(_CAPSTONE.disasm(code, 0), None)
        if insn is None or insn.size != len(code) or insn.mnemonic in ("c.nop", "c.unimp"):
            continue
        name = f"{insn.mnemonic} {insn.op_str}"
        short = len(code) == 2
        if short and (insn.mnemonic[2:3] in "jb" or "(" in name or insn.mnemonic == "c.ebreak"):
            continue
        words = name.replace(",", " ").replace("(", " ").replace(")", " ").split()[1:]
        if {"ra", "sp", "gp", "tp", "t5", "t6"} & {*words} or (short and "t4" in words):
            continue
        return code, name


def case(random_: random.Random, number: int) -> RiscvCase:
    """The instruction of that number."""
    code, name = _code(random_)
    general = [
        random_.choice(
            (
                *(random_.getrandbits(64), random_.getrandbits(32), random_.getrandbits(8)),
                *((1 << 63) - 1, 1 << 63, (1 << 64) - 1, 0, 1 << 31, random_.getrandbits(6)),
            )
        )
        for _ in range(32)
    ]
    aligned = "lr." in name or "sc." in name or name.startswith("amo")
    general[_BASE] = _DATA + (0 if aligned else random_.choice((0, 0, random_.randrange(16))))
    state = struct.pack("<32Q2Q", *general, CODE + 8 * number, 0).ljust(512, b"\0")
    floats = struct.pack("<32Q", *(random_.getrandbits(64) for _ in range(32)))
    return RiscvCase(code, name, state + floats + random_.randbytes(256))


def files(cases: list[RiscvCase]) -> tuple[bytes, bytes]:
    """The file of code and that of states."""
    code = b"".join((one.code + struct.pack("<I", _BACK)).ljust(8, b"\0") for one in cases)
    return code, b"".join(one.state for one in cases)


def differences(
    cases: list[RiscvCase], ours: bytes, theirs: bytes
) -> list[tuple[RiscvCase, dict[int, tuple[str, str]]]]:
    """Cases that differ, each with the words of its state that do: (ours, theirs)."""
    assert len(ours) == len(theirs) == SIZE * len(cases)
    found = []
    for number, one in enumerate(cases):
        pair = [states[SIZE * number :][:SIZE] for states in (ours, theirs)]
        if pair[0] != pair[1]:
            words = [struct.unpack("<128Q", state) for state in pair]
            found.append(
                (
                    one,
                    {
                        at: (hex(mine), hex(other))
                        for at, (mine, other) in enumerate(zip(*words, strict=True))
                        if mine != other
                    },
                )
            )
    return found
