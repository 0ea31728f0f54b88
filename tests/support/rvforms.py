"""Each form of RV64GC that Capstone knows, and random cases of it: see `x86forms`.

A form is a mnemonic with its ordering bits (`amoadd.w.aqrl`). Left out are `ecall`, other control
and status registers than those of floating point, and instructions on gp, tp, t5 and t6, by which
the test's program finds its own.
"""

import random
import struct
from functools import cache

import capstone
from rvsnippets import RiscvCase
from snippets import CODE, STATE, double, single

_ENGINE = capstone.Cs(capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV64 | capstone.CS_MODE_RISCVC)
_BACK = 0x000F0067  # jr x30
_EBREAK = 0x00100073
SLOT = 32
_DATA = STATE + 768 + 128
_BASE = 29
_KEPT = frozenset({"gp", "tp", "t5", "t6"})
_NAMES = (
    *("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1"),
    *(f"a{at}" for at in range(8)),
    *(f"s{at}" for at in range(2, 12)),
    *("t3", "t4", "t5", "t6"),
)
_SYSTEM = 0x1C
_FIELDS = {
    0x0B: (range(128), (0, 7)),  # atomic: which, and how it is ordered
    **{opcode: (tuple(range(4, 8)), (8,)) for opcode in range(16, 20)},  # fused: the precision
    0x14: (range(128), (0, 1, 2, 3, 6, 8)),
}
"""By the opcode's field: values of bits 25 to 31, and of rs2, that make an instruction another."""
_FLOAT_REGISTERS = (1, 2, 3)
_CANONICAL = 0xFFFFFFFF_00000000
_BRANCHES = ("beq", "bne", "blt", "bge")
_PRIVILEGED = {
    "mret": 0x30200073,
    "sret": 0x10200073,
    "wfi": 0x10500073,
    "sfence.vma": 0x12000073,
    "ebreak": _EBREAK,
    "fence": 0x0FF0000F,
    "fence.i": 0x0000100F,
}


def _mnemonic(code: bytes) -> str:
    for _, size, name, _ in _ENGINE.disasm_lite(code, 0):
        return name if size == len(code) else ""
    return ""


@cache
def forms() -> dict[str, tuple[int, ...]]:
    """Encodings of each form, with registers and distances to be filled in."""
    found: dict[str, list[int]] = {}
    for opcode in range(32):
        if opcode == _SYSTEM:
            continue
        sevenths, seconds = _FIELDS.get(opcode, ((0, 1, 32, 33, 127), (0, 1, 7, 31)))
        for third in range(8):
            for seventh in sevenths:
                for second in seconds:
                    word = opcode << 2 | 3 | third << 12 | seventh << 25 | second << 20
                    name = _mnemonic(struct.pack("<I", word | 5 << 7 | 6 << 15))
                    if name:
                        found.setdefault(name, []).append(word)
    for register in _FLOAT_REGISTERS:
        for third in (1, 2, 3, 5, 6, 7):
            word = _SYSTEM << 2 | 3 | third << 12 | register << 20
            name = _mnemonic(struct.pack("<I", word | 5 << 7 | 6 << 15))
            found.setdefault(name, []).append(word)
    for name, word in _PRIVILEGED.items():
        found[name] = [word]
    for word in range(1 << 16):
        if word & 3 != 3:
            name = _mnemonic(struct.pack("<H", word))
            if name and name != "c.unimp":
                found.setdefault(name, []).append(word)
    return {name: tuple(words) for name, words in found.items() if name}


def _float(random_: random.Random, *, boxed: bool) -> int:
    """A floating-point register; `boxed`: only what is a single-precision number."""
    kind = random_.random()
    if boxed:
        return _CANONICAL | single(random_)
    if kind < 0.4:
        return double(random_)
    if kind < 0.9:
        return _CANONICAL | single(random_)
    return random_.getrandbits(64)


def _whole(random_: random.Random) -> int:
    return int(
        random_.choice(
            (
                *(random_.getrandbits(64), random_.getrandbits(32), random_.getrandbits(8)),
                *((1 << 63) - 1, 1 << 63, (1 << 64) - 1, 0, 1 << 31, random_.getrandbits(6)),
                *(double(random_), single(random_)),
            )
        )
    )


class RiscvCases:
    """Random cases of forms, all by one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def of(self, name: str, number: int) -> RiscvCase | None:
        """The case of that number in its file; None where none was found."""
        for _ in range(60):
            found = self._case(name, number)
            if found is not None:
                return found
        return None

    def _case(self, name: str, number: int) -> RiscvCase | None:
        random_ = self._random
        word = random_.choice(forms()[name])
        size = 4 if word & 3 == 3 else 2
        if size == 4 and name not in _PRIVILEGED:
            word = self._filled(name, word)
        code = struct.pack("<I", word)[:size]
        if _mnemonic(code) != name:
            return None
        text = next(f"{m} {o}" for _, _, m, o in _ENGINE.disasm_lite(code, 0))
        words = set(text.replace(",", " ").replace("(", " ").replace(")", " ").split()[1:])
        if words & _KEPT:
            return None
        general = [_whole(random_) for _ in range(32)]
        start = CODE + SLOT * number
        if not self._placed(name, text, general, start):
            return None
        state = struct.pack("<32Q", *general)
        mode = random_.choice((0, 0, 1, 2, 3, 4, 5, 7)) if random_.random() < 0.5 else 0
        state += struct.pack(
            "<3Q", start, 0, mode << 5 | random_.choice((0, random_.getrandbits(5)))
        )
        state = state.ljust(512, b"\0")
        boxed = name.endswith(".s") or ".s." in name
        state += struct.pack("<32Q", *(_float(random_, boxed=boxed) for _ in range(32)))
        return RiscvCase(code, text, state + random_.randbytes(256))

    def _filled(self, name: str, word: int) -> int:
        """Registers in the places of registers, and distances that lead somewhere."""
        random_ = self._random
        opcode = word >> 2 & 31
        first, target = (random_.choice((*range(3), *range(5, 30))) for _ in range(2))
        if opcode in (0, 1, 8, 9, 11):
            first = _BASE
        word |= target << 7 | first << 15
        if opcode == 24:  # branches
            distance = random_.randrange(8, SLOT, 4)
            word = word & 0x01FFF07F | (distance >> 5) << 25 | (distance & 0x1E) << 7
        elif opcode == 27:
            word = word & 0xFFF | random_.randrange(8, SLOT, 4) << 20
        elif opcode in (0, 1):  # near: the upper bits of the distance are those of a sign
            word = word & 0x000FFFFF | random_.choice((random_.randrange(128), 0xFC0)) << 20
        elif opcode in (8, 9):
            word = word & 0x01FFFFFF | random_.choice((0, 1, 2, 0x7F)) << 25
        elif opcode == 25:
            word = word & 0x000FFFFF | random_.randrange(8) << 20
        return word

    def _placed(self, name: str, text: str, general: list[int], start: int) -> bool:
        """Give registers with addresses their places; tell whether there are any for them."""
        random_ = self._random
        if name in ("jalr", "c.jr", "c.jalr"):
            words = text.replace("(", " ").replace(",", " ").replace(")", " ").split()
            register = next((each for each in words[-2:] if each in _NAMES), "zero")
            if name == "jalr":
                register = next((each for each in words[2:] if each in _NAMES), "zero")
            general[_NAMES.index(register)] = start + random_.randrange(8, SLOT - 8, 4)
            return register != "zero"
        if name[:4] in ("c.j", "c.be", "c.bn"):
            distance = int(text.split()[-1], 0)
            return 6 <= distance < SLOT and distance % 4 == 0
        if name.startswith("c.") and "(" in text:
            register = text.partition("(")[2].rstrip(")")
            distance = int(text.partition("(")[0].split()[-1], 0)
            at = _DATA - 64 if random_.random() < 0.8 else _DATA - 64 + random_.randrange(16)
            general[_NAMES.index(register)] = at - distance + random_.choice((0, 8, 64))
            return True
        aligned = name.startswith(("lr.", "sc.", "amo")) and random_.random() < 0.85
        general[_BASE] = _DATA + (0 if aligned else random_.choice((0, 0, random_.randrange(16))))
        return True


def files(cases: list[RiscvCase]) -> tuple[bytes, bytes]:
    """The file of code and that of states."""
    slots = []
    for one in cases:
        code = one.code + struct.pack("<I", _BACK)
        code += b"\x01\x00" * (len(code) % 4 // 2)  # c.nop
        slots.append(code + struct.pack("<I", _EBREAK) * ((SLOT - len(code)) // 4))
    return b"".join(slots), b"".join(one.state for one in cases)


WORDS = {
    **{at: f"x{at}" for at in range(32)},
    **dict(enumerate(("pc", "signal", "fcsr", "why", "address"), 32)),
    **{64 + at: f"f{at}" for at in range(32)},
    **{96 + at: f"data+{8 * at}" for at in range(32)},
}
"""Names of the words of a state."""


_NOT_BOXED = _CANONICAL >> 32
_FUSED = ("fmadd", "fmsub", "fnmadd", "fnmsub")
_INVALID = 0x10


def known(name: str, found: dict[str, tuple[str, str]]) -> str:
    """Name the limit that a difference (ours, qemu's) is by; empty for any other."""
    single_ = ".s" in name or name == "fmv.w.x"
    registers = {key: pair for key, pair in found.items() if key[0] == "f" and key != "fcsr"}
    rest = set(found) - set(registers)
    if single_ and registers and not rest and all(map(_upper_alone, registers.values())):
        return "upper half of a single-precision result"
    if set(found) == {"address"}:
        return "address of a misaligned access"
    if name[:4] in ("fmin", "fmax") and rest <= {"fcsr"}:
        return "smaller and larger of signalling NaNs"
    if name.startswith(_FUSED) and rest == {"fcsr"}:
        ours, theirs = (int(each, 16) for each in found["fcsr"])
        if ours ^ theirs == _INVALID and all(map(_upper_alone, registers.values())):
            return "flag of a fused multiplication of infinity by zero"
    return ""


def _upper_alone(pair: tuple[str, str]) -> bool:
    ours, theirs = (int(each, 16) for each in pair)
    return (ours ^ theirs) & 0xFFFFFFFF == 0 and theirs >> 32 == _NOT_BOXED
