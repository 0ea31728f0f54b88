"""Fields, operands and completers of instruction words, as data.

Bit numbers count from the word's lowest; those of the L slot are told apart by `EXTRA`.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

EXTRA: Final = 64
"""Added to bit numbers of the L slot of a long instruction."""

FIELDS: Final[Mapping[str, tuple[int, int]]] = {
    # name: (lowest bit, width)
    "qp": (0, 6),
    "r1": (6, 7),
    "r2": (13, 7),
    "r3": (20, 7),
    "f1": (6, 7),
    "f2": (13, 7),
    "f3": (20, 7),
    "f4": (27, 7),
    "p1": (6, 6),
    "p2": (27, 6),
    "b1": (6, 3),
    "b2": (13, 3),
    "c": (12, 1),
    "tb": (36, 1),
    "ta": (33, 1),
    "x2a": (34, 2),
    "x2": (34, 2),
    "x4": (29, 4),
    "x2b": (27, 2),
    "ve": (33, 1),
    "za": (36, 1),
    "zb": (33, 1),
    "ivx": (32, 1),
    "ix2b": (28, 2),
    "ix2c": (30, 2),
    "x": (33, 1),
    "x3": (33, 3),
    "x6": (27, 6),
    "ya": (26, 1),
    "yb": (13, 1),
    "yc": (19, 1),
    "ih": (23, 1),
    "wh9": (20, 2),
    "len6": (27, 6),
    "len4": (27, 4),
    "pos6": (14, 6),
    "cpos6c": (20, 6),
    "cpos6b": (14, 6),
    "cpos6d": (31, 6),
    "m": (36, 1),
    "mx6": (30, 6),
    "mrow": (32, 4),
    "mx": (27, 1),
    "hint": (28, 2),
    "mx4": (27, 4),
    "mx2": (31, 2),
    "y10": (10, 2),
    "i": (36, 1),
    "sf": (34, 2),
    "btype": (6, 3),
    "wh": (33, 2),
    "wh3": (32, 3),
    "d": (35, 1),
    "r3a": (20, 2),
    "vc": (20, 1),
    "fx": (36, 1),
    "mps": (30, 2),
    "x6h": (30, 3),
    "ret": (22, 1),
}


class Immediate(Struct, frozen=True):
    """A number in an instruction: base + factor * field, or an entry of a table.

    Attributes:
        parts: (lowest bit, width) of its pieces, the highest first.
        signed: whether the field is two's complement.
        factor: what a unit of the field stands for.
        base: what a field of 0 stands for.
        table: what each value of the field stands for, in place of all that.
    """

    parts: tuple[tuple[int, int], ...]
    signed: bool = False
    factor: int = 1
    base: int = 0
    table: tuple[int, ...] = ()

    @property
    def bits(self) -> int:
        """Width of the field."""
        return sum(width for _, width in self.parts)

    def read(self, word: int, extra: int = 0) -> int:
        """The number in an instruction.

        Args:
            word: the 41 bits of its slot, the X slot for a long one.
            extra: those of the L slot.
        """
        both = word | extra << EXTRA
        value = 0
        for low, width in self.parts:
            value = value << width | both >> low & (1 << width) - 1
        if self.table:
            return self.table[value]
        if self.signed and value >> (self.bits - 1):
            value -= 1 << self.bits
        return self.base + self.factor * value

    def put(self, number: int, word: int, extra: int = 0) -> tuple[int, int]:
        """The instruction with another number in it: (word, L slot).

        Raises:
            ValueError: the field cannot hold the number.
        """
        if self.table:
            value = self.table.index(number)
        else:
            value, rest = divmod(number - self.base, self.factor)
            low = -(1 << (self.bits - 1)) if self.signed else 0
            if rest or not low <= value < low + (1 << self.bits):
                raise ValueError(f"{number:#x} does not fit its field")
        both = word | extra << EXTRA
        for low, width in reversed(self.parts):
            mask = (1 << width) - 1
            both = both & ~(mask << low) | (value & mask) << low
            value >>= width
        return both & (1 << EXTRA) - 1, both >> EXTRA


_IMM21: Final = ((36, 1), (6, 20))
_TARGET: Final = ((36, 1), (13, 20))
_CHECK: Final = ((36, 1), (20, 13), (6, 7))

IMMEDIATES: Final[Mapping[str, Immediate]] = {
    "imm8": Immediate(((36, 1), (13, 7)), signed=True),
    "imm14": Immediate(((36, 1), (27, 6), (13, 7)), signed=True),
    "imm22": Immediate(((36, 1), (22, 5), (27, 9), (13, 7)), signed=True),
    "count2": Immediate(((27, 2),), base=1),
    "count16": Immediate(((30, 2),), table=(0, 7, 15, 16)),
    "mbt4": Immediate(((20, 4),)),
    "mht8": Immediate(((20, 8),)),
    "count5": Immediate(((14, 5),)),
    "ccount5": Immediate(((20, 5),), factor=-1, base=31),
    "count6": Immediate(((27, 6),)),
    "pos6": Immediate(((14, 6),)),
    "len6": Immediate(((27, 6),), base=1),
    "cpos6c": Immediate(((20, 6),), factor=-1, base=63),
    "cpos6b": Immediate(((14, 6),), factor=-1, base=63),
    "cpos6d": Immediate(((31, 6),), factor=-1, base=63),
    "len4": Immediate(((27, 4),), base=1),
    "imm1": Immediate(((36, 1),), factor=-1),
    "imm5": Immediate(((14, 5),), base=32),
    "imm21": Immediate(_IMM21),
    "hintm": Immediate(((36, 1), (12, 14), (6, 4))),
    "imm17": Immediate(((36, 1), (24, 8), (6, 7)), signed=True, factor=2),
    "imm44": Immediate(((36, 1), (6, 27)), signed=True, factor=1 << 16),
    "imm9b": Immediate(((36, 1), (27, 1), (13, 7)), signed=True),
    "imm9a": Immediate(((36, 1), (27, 1), (6, 7)), signed=True),
    "inc3": Immediate(((13, 3),), table=(16, 8, 4, 1, -16, -8, -4, -1)),
    "count": Immediate(((6, 6),), base=1),
    "stride": Immediate(((13, 5),), signed=True, factor=64),
    "imm2": Immediate(((13, 2),)),
    "imm24": Immediate(((36, 1), (31, 2), (6, 21))),
    "imm16": Immediate(((36, 1), (12, 11), (6, 4))),
    "dahrn": Immediate(((23, 3),)),
    "sof": Immediate(((13, 7),)),
    "sol": Immediate(((20, 7),)),
    "sor": Immediate(((27, 4),), factor=8),
    "fclass9": Immediate(((20, 7), (33, 2))),
    "amask": Immediate(((13, 7),)),
    "omask": Immediate(((20, 7),)),
    "imm62": Immediate(((EXTRA, 41), *_IMM21)),
    "imm64": Immediate(((36, 1), (EXTRA, 41), (21, 1), (22, 5), (27, 9), (13, 7))),
}
"""Immediate operands as the processor uses them."""

DISPLACEMENTS: Final[Mapping[str, Immediate]] = {
    # relative to the bundle, in bytes
    "target25": Immediate(_TARGET, signed=True, factor=16),
    "target20": Immediate(_CHECK, signed=True, factor=16),
    "targeti": Immediate(_CHECK, signed=True, factor=16),
    "targetf": Immediate(_IMM21, signed=True, factor=16),
    "target64": Immediate(((36, 1), (EXTRA + 2, 39), (13, 20)), signed=True, factor=16),
    "tag9": Immediate(((24, 9),), signed=True, factor=16),
    "tag9b": Immediate(((33, 2), (6, 7)), signed=True, factor=16),
}
"""Operands that say where, seen from the instruction's bundle."""

TARGETS: Final = ("target25", "target20", "targeti", "targetf", "target64")
"""Operands that are an address at which the program may go on."""

REGISTER_OPERANDS: Final[Mapping[str, str]] = {
    # operand: what its number is put into; the fields have the same names
    **dict.fromkeys(("r1", "r2", "r3", "r3a"), "r{}"),
    **dict.fromkeys(("f1", "f2", "f3", "f4"), "f{}"),
    **dict.fromkeys(("p1", "p2"), "p{}"),
    **dict.fromkeys(("b1", "b2"), "b{}"),
}

COMPLETERS: Final[Mapping[str, tuple[tuple[int, ...], tuple[str | None, ...]]]] = {
    # name: (bits, the highest first; a spelling for each value, None where there is none)
    "w4": ((34,), ("", "4")),
    "unc": ((12,), ("", ".unc")),
    "eqne": ((12,), ("eq", "ne")),
    "gtle": ((12,), ("gt", "le")),
    "gelt": ((12,), ("ge", "lt")),
    "znz": ((12,), ("z", "nz")),
    "sz": ((36, 33), ("1", "2", "4", None)),
    "sz12": ((36, 33), ("1", "2", None, None)),
    "sz24": ((36, 33), (None, "2", "4", None)),
    "ret": ((22,), ("", ".ret")),
    "mwh": ((21, 20), (".sptk", "", ".dptk", None)),
    "imp": ((23,), ("", ".imp")),
    "size": ((31, 30), ("1", "2", "4", "8")),
    "fsz": ((31, 30), ("e", "8", "s", "d")),
    "psz": ((31, 30), (None, "8", "s", "d")),
    "gsz": ((31, 30), (".sig", ".exp", ".s", ".d")),
    "ldk": (
        (35, 34, 33, 32),
        (
            *("", ".s", ".a", ".sa", ".bias", ".acq", None, None),
            *(".c.clr", ".c.nc", ".c.clr.acq", *(None,) * 5),
        ),
    ),
    "fldk": (
        (35, 34, 33, 32),
        ("", ".s", ".a", ".sa", *(None,) * 4, ".c.clr", ".c.nc", *(None,) * 6),
    ),
    "rel": ((32,), ("", ".rel")),
    "acqrel": ((32,), (".acq", ".rel")),
    "acq": ((32,), ("", ".acq")),
    "exclfault": ((31, 30), ("", ".excl", ".fault", ".fault.excl")),
    "lh": ((29, 28), ("", ".nt1", None, ".nta")),
    "sh": ((29, 28), ("", None, None, ".nta")),
    "lhd": ((19, 29, 28), ("", ".nt1", ".d2", ".nta", ".d4", ".d5", ".d6", ".d7")),
    "shd": ((12, 29, 28), ("", ".d1", ".d2", ".nta", ".d4", ".d5", ".d6", ".d7")),
    "fh": ((12, 29, 28), ("", ".nt1", ".nt2", ".nta", ".d4", ".d5", ".d6", ".d7")),
    "sf": ((35, 34), (".s0", ".s1", ".s2", ".s3")),
    "frel": ((36, 33), ("eq", "le", "lt", "unord")),
    "prel": ((29, 28, 27), ("eq", "lt", "le", "unord", "neq", "nlt", "nle", "ord")),
    "wh": ((34, 33), (".sptk", ".spnt", ".dptk", ".dpnt")),
    "wh3": ((34, 33, 32), (None, ".sptk", None, ".spnt", None, ".dptk", None, ".dpnt")),
    "ph": ((12,), (".few", ".many")),
    "dh": ((35,), ("", ".clr")),
    "ipwh": ((4, 3), (".sptk", ".loop", ".dptk", ".exit")),
    "indwh": ((4, 3), (".sptk", None, ".dptk", None)),
    "ih": ((35,), ("", ".imp")),
}


def field(name: str, word: int) -> int:
    """A field of a slot's word, unsigned."""
    low, width = FIELDS[name]
    return word >> low & (1 << width) - 1


def completer(name: str, word: int) -> str | None:
    """Spelling of a completer in a word; None where the encoding is reserved."""
    bits, spellings = COMPLETERS[name]
    value = 0
    for bit in bits:
        value = value << 1 | word >> bit & 1
    return spellings[value]
