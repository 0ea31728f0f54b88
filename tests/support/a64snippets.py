"""Single floating-point and vector instructions of AArch64 on chosen states: see `snippets`."""

import random
import struct
from dataclasses import dataclass

import capstone
from snippets import CODE, SIZE, STATE, double, single

_CAPSTONE = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
_RETURN = 0xD65F03C0
_HALVES = (0, 0x8000, 0x3C00, 0x7C00, 0xFC00, 0x7E00, 0x7D01, 1, 0x3FF, 0x400, 0x7BFF)
_ELSEWHERE = ("mrs", "msr", "ld", "st", "b", "cb", "tb", "svc")
_NEWER = ("sudot", "usdot", "smmla", "ummla", "usmmla")
"""I8MM: neither AT_HWCAP2 offers it nor the processor has it."""
_KEPT = (*(f"{kind}{number}" for kind in "xw" for number in range(16, 31)), "sp")
_NAMES = ("nzcv", "fpcr", "fpsr", "signal", "pc", "why", "address")


@dataclass(frozen=True)
class Case:
    """One instruction, and the state that it finds as the guest reads it."""

    word: int
    name: str
    state: bytes


def _vector(random_: random.Random) -> bytes:
    kind = random_.randrange(4)
    if kind == 0:
        return struct.pack("<2Q", double(random_), double(random_))
    if kind == 1:
        return struct.pack("<4I", *(single(random_) for _ in range(4)))
    if kind == 2:
        chosen = (random_.choice((*_HALVES, random_.getrandbits(16))) for _ in range(8))
        return struct.pack("<8H", *chosen)
    return random_.randbytes(16)


def _word(random_: random.Random) -> tuple[int, str]:
    """Scalar and vector forms, at random (ARM ARM, C4.1.96)."""
    while True:
        word = random_.getrandbits(32)
        kind = random_.randrange(4)
        if kind == 0:
            word = word & 0xE0FFFFFF | 0x0E000000
        elif kind == 1:
            tops = (0x1E, 0x1F, 0x5E, 0x7E, 0x9E, 0x5F, 0x7F)
            word = word & 0x00FFFFFF | random_.choice(tops) << 24
        else:
            word = word & 0x9FFFFFFF | 0x0E200000
        insn = next(_CAPSTONE.disasm(struct.pack("<I", word), 0), None)
        if insn is None or insn.mnemonic.startswith(_ELSEWHERE) or insn.mnemonic in _NEWER:
            continue
        if not any(name in insn.op_str for name in _KEPT):
            return word, f"{insn.mnemonic} {insn.op_str}"


_LOADS = ("ld", "st", "cas", "swp")
_TAGS = (
    *("addg", "subg", "irg", "gmi", "subp", "subps"),
    *("stg", "st2g", "stzg", "stz2g", "stgp", "ldg", "stgm", "stzgm", "ldgm"),
)
"""Memory tagging, which is not offered either."""
_UNLIKE = ("ldapu", "stlu", "ldra")
"""Those that the emulator lets access what is not aligned; and what depends on keys."""
_BASE = 15
"""The register that loads and stores are made by."""


def _integer_word(random_: random.Random) -> tuple[int, str]:
    """Forms on general registers, and loads and stores of them and of vectors (C4.1)."""
    while True:
        word = random_.getrandbits(32) & ~(1 << 4 | 1 << 9 | 1 << 20)  # registers below 16
        kind = random_.randrange(4)
        if kind == 0:
            word = word & 0xE3FFFFFF | 0x10000000  # immediate
        elif kind == 1:
            word = word & 0xF1FFFFFF | 0x0A000000  # register
        else:
            word = word & 0xF7FFFFFF & ~(15 << 5) | 0x08000000 | _BASE << 5
            if random_.random() < 0.7:
                word |= 1 << 11 | 1 << 21 if random_.random() < 0.5 else 0
        insn = next(_CAPSTONE.disasm(struct.pack("<I", word), 0), None)
        if insn is None or insn.mnemonic.startswith(("adr", "b.", "prfm", "rprfm", "sys", "pac")):
            continue
        if insn.mnemonic in _TAGS or insn.mnemonic.startswith(_UNLIKE):
            continue
        moves = insn.mnemonic.startswith(_LOADS)
        if moves != (kind > 1) or (moves and "[x15" not in insn.op_str):
            continue
        if not any(name in insn.op_str for name in _KEPT):
            return word, f"{insn.mnemonic} {insn.op_str}"


def case(random_: random.Random, number: int, *, integers: bool = False) -> Case:
    """The instruction of that number: of floats and vectors, or of `integers` and memory."""
    word, name = (_integer_word if integers else _word)(random_)
    return Case(word, name, state(random_, word, name, CODE + 8 * number, integers=integers))


def state(
    random_: random.Random, word: int, name: str, start: int, *, integers: bool | None = None
) -> bytes:
    """A random state for an instruction at `start`.

    Args:
        random_: chance.
        word: the instruction.
        name: it as text.
        start: its address.
        integers: x15 is an address; None where the text says so.
    """
    if integers is None:
        integers = f"[x{_BASE}" in name or "[x" in name
    general = [
        random_.choice(
            (
                *(random_.getrandbits(64), random_.getrandbits(8), double(random_)),
                *(single(random_), (1 << 63) - 1, 1 << 63),
            )
        )
        for _ in range(16)
    ]
    if integers:
        if (
            f"[x{_BASE}, x" in name or "[x, x" in name
        ):  # an address with a tag is none to the emulator
            general[word >> 16 & 15] = random_.randrange(64)
        general[_BASE] = STATE + 576 + random_.choice((0, 0, 16, random_.randrange(16)))
    fpcr = 0  # rounding; FZ, DN, FZ16
    if random_.random() < 0.6:
        fpcr = random_.getrandbits(4) << 22 | random_.getrandbits(1) << 19
    found = struct.pack("<16Q", *general)
    fpsr = random_.choice((0, random_.getrandbits(8) & 0x9F))
    found += struct.pack("<5Q", random_.getrandbits(4) << 28, fpcr, fpsr, 0, start)
    return found.ljust(512, b"\0") + b"".join(_vector(random_) for _ in range(32))


def files(cases: list[Case]) -> tuple[bytes, bytes]:
    """The file of code and that of states."""
    code = b"".join(struct.pack("<2I", case.word, _RETURN) for case in cases)
    return code, b"".join(case.state for case in cases)


def differences(
    cases: list[Case], ours: bytes, theirs: bytes
) -> list[tuple[Case, dict[str, tuple[str, str]]]]:
    """Cases that differ, each with what: (ours, theirs)."""
    assert len(ours) == len(theirs) == SIZE * len(cases)
    found = []
    for number, one in enumerate(cases):
        pair = [states[SIZE * number :][:SIZE] for states in (ours, theirs)]
        if pair[0] != pair[1]:
            found.append((one, _difference(*pair)))
    return found


def _difference(ours: bytes, theirs: bytes) -> dict[str, tuple[str, str]]:
    places = {f"x{number}": (8 * number, 8) for number in range(16)}
    places |= {name: (128 + 8 * at, 8) for at, name in enumerate(_NAMES)}
    places |= {f"v{number}": (512 + 16 * number, 16) for number in range(32)}
    return {
        name: (ours[at : at + size][::-1].hex(), theirs[at : at + size][::-1].hex())
        for name, (at, size) in places.items()
        if ours[at : at + size] != theirs[at : at + size]
    }
