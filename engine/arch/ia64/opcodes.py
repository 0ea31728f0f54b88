"""The instruction formats: one table for decoder, core and probe analysis.

Each line of the tables names the format of the manual (volume 3, section 4.2 and on), the
major opcode, conditions on fields, and what objdump prints: a mnemonic with `{completers}`
and operands. Earlier lines win: spellings such as `mov` for `adds 0` stand first.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from engine.arch.ia64.opcodes_bf import BRANCH, FLOAT, LONG
from engine.arch.ia64.opcodes_i import ALU, INTEGER
from engine.arch.ia64.opcodes_m import MEMORY

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


def _pieces(word: int, *parts: tuple[int, int]) -> int:
    """Concatenate (lowest bit, width) parts, the highest first."""
    value = 0
    for low, width in parts:
        value = value << width | word >> low & (1 << width) - 1
    return value


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


Getter = Callable[[int, int], int]
"""Value of an operand from the slot's word and the word of the L slot."""

_MOVE_COUNTS: Final = (0, 7, 15, 16)
_INCREMENTS: Final = (16, 8, 4, 1)

IMMEDIATES: Final[Mapping[str, Getter]] = {
    "imm8": lambda w, _: _signed(_pieces(w, (36, 1), (13, 7)), 8),
    "imm14": lambda w, _: _signed(_pieces(w, (36, 1), (27, 6), (13, 7)), 14),
    "imm22": lambda w, _: _signed(_pieces(w, (36, 1), (22, 5), (27, 9), (13, 7)), 22),
    "count2": lambda w, _: (w >> 27 & 3) + 1,
    "count16": lambda w, _: _MOVE_COUNTS[w >> 30 & 3],
    "mbt4": lambda w, _: w >> 20 & 15,
    "mht8": lambda w, _: w >> 20 & 255,
    "count5": lambda w, _: w >> 14 & 31,
    "ccount5": lambda w, _: 31 - (w >> 20 & 31),
    "count6": lambda w, _: w >> 27 & 63,
    "pos6": lambda w, _: w >> 14 & 63,
    "len6": lambda w, _: (w >> 27 & 63) + 1,
    "cpos6c": lambda w, _: 63 - (w >> 20 & 63),
    "cpos6b": lambda w, _: 63 - (w >> 14 & 63),
    "cpos6d": lambda w, _: 63 - (w >> 31 & 63),
    "len4": lambda w, _: (w >> 27 & 15) + 1,
    "imm1": lambda w, _: -(w >> 36 & 1),
    "imm5": lambda w, _: (w >> 14 & 31) + 32,
    "imm21": lambda w, _: _pieces(w, (36, 1), (6, 20)),
    "hintm": lambda w, _: _pieces(w, (36, 1), (12, 14), (6, 4)),
    "imm17": lambda w, _: _signed(_pieces(w, (36, 1), (24, 8), (6, 7)) << 1, 17),
    "imm44": lambda w, _: _signed(_pieces(w, (36, 1), (6, 27)) << 16, 44),
    "imm9b": lambda w, _: _signed(_pieces(w, (36, 1), (27, 1), (13, 7)), 9),
    "imm9a": lambda w, _: _signed(_pieces(w, (36, 1), (27, 1), (6, 7)), 9),
    "inc3": lambda w, _: (-1 if w >> 15 & 1 else 1) * _INCREMENTS[w >> 13 & 3],
    "count": lambda w, _: (w >> 6 & 63) + 1,
    "stride": lambda w, _: 64 * _signed(w >> 13 & 31, 5),
    "imm2": lambda w, _: w >> 13 & 3,
    "imm24": lambda w, _: _pieces(w, (36, 1), (31, 2), (6, 21)),
    "imm16": lambda w, _: _pieces(w, (36, 1), (12, 11), (6, 4)),
    "dahrn": lambda w, _: w >> 23 & 7,
    "sof": lambda w, _: w >> 13 & 127,
    "sol": lambda w, _: w >> 20 & 127,
    "sor": lambda w, _: (w >> 27 & 15) * 8,
    "fclass9": lambda w, _: _pieces(w, (20, 7), (33, 2)),
    "amask": lambda w, _: w >> 13 & 127,
    "omask": lambda w, _: w >> 20 & 127,
    "imm62": lambda w, x: x << 21 | _pieces(w, (36, 1), (6, 20)),
    "imm64": lambda w, x: (
        (w >> 36 & 1) << 63 | x << 22 | _pieces(w, (21, 1), (22, 5), (27, 9), (13, 7))
    ),
}
"""Immediate operands as the processor uses them."""

DISPLACEMENTS: Final[Mapping[str, Getter]] = {
    # relative to the bundle, in bytes
    "target25": lambda w, _: 16 * _signed(_pieces(w, (36, 1), (13, 20)), 21),
    "target20": lambda w, _: 16 * _signed(_pieces(w, (36, 1), (20, 13), (6, 7)), 21),
    "targeti": lambda w, _: 16 * _signed(_pieces(w, (36, 1), (20, 13), (6, 7)), 21),
    "targetf": lambda w, _: 16 * _signed(_pieces(w, (36, 1), (6, 20)), 21),
    "target64": lambda w, x: (
        16 * _signed(_pieces(w, (36, 1)) << 59 | x >> 2 << 20 | _pieces(w, (13, 20)), 60)
    ),
    "tag9": lambda w, _: 16 * _signed(_pieces(w, (24, 9)), 9),
    "tag9b": lambda w, _: 16 * _signed(_pieces(w, (33, 2), (6, 7)), 9),
}

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


@dataclass(frozen=True, slots=True)
class Form:
    """One line of the table.

    Attributes:
        format: the manual's name ("A1", "M16").
        units: kinds of slots that it may stand in.
        mask: bits that are fixed.
        value: of these bits.
        equal: (bit, bit, width, bits that differ) of two fields that depend on each other in
            this spelling.
        mnemonic: with `{completers}`.
        operands: as printed, with names of operands in it.
        predicated: whether bits 5:0 name a predicate.
    """

    format: str
    units: str
    mask: int
    value: int
    equal: tuple[tuple[int, int, int, int], ...]
    mnemonic: str
    operands: str
    predicated: bool

    @property
    def completers(self) -> tuple[str, ...]:
        """Names of the completers in the mnemonic."""
        return tuple(re.findall(r"\{(\w+)\}", self.mnemonic))

    def matches(self, word: int) -> bool:
        """Whether a word is this form."""
        if word & self.mask != self.value:
            return False
        for low, other, width, differ in self.equal:
            if (word >> low ^ word >> other) & (1 << width) - 1 != differ:
                return False
        return all(completer(name, word) is not None for name in self.completers)


def field(name: str, word: int) -> int:
    """A field of a slot's word, unsigned."""
    low, width = FIELDS[name]
    return word >> low & (1 << width) - 1


def completer(name: str, word: int) -> str | None:
    """How a completer is spelled in a word; None where the encoding is reserved."""
    bits, spellings = COMPLETERS[name]
    value = 0
    for bit in bits:
        value = value << 1 | word >> bit & 1
    return spellings[value]


def _parse(line: str, units: str) -> Form:
    head, _, printed = line.partition("|")
    name, major, *conditions = head.split()
    mnemonic, _, operands = printed.strip().partition(" ")
    mask, value = 15 << 37, int(major, 16) << 37
    equal = []
    predicated = True
    for condition in conditions:
        if condition == "noqp":
            predicated = False
            continue
        left, _, right = condition.partition("=")
        low, width = FIELDS[left]
        if right.startswith("="):
            other, _ = FIELDS[right.lstrip("=~")]
            equal.append((low, other, width, (1 << width) - 1 if "~" in right else 0))
            continue
        mask |= ((1 << width) - 1) << low
        value |= int(right, 16) << low
    return Form(name, units, mask, value, tuple(equal), mnemonic, operands.strip(), predicated)


def _forms(table: str, units: str) -> list[Form]:
    return [
        _parse(line, units)
        for line in table.splitlines()
        if line.strip() and not line.startswith("#")
    ]


@cache
def forms() -> tuple[Form, ...]:
    """The whole table."""
    return tuple(
        _forms(ALU, "MI")
        + _forms(INTEGER, "I")
        + _forms(MEMORY, "M")
        + _forms(FLOAT, "F")
        + _forms(BRANCH, "B")
        + _forms(LONG, "X")
    )


@cache
def _index() -> Mapping[tuple[str, int], tuple[Form, ...]]:
    found: dict[tuple[str, int], list[Form]] = {}
    for form in forms():
        for unit in form.units:
            found.setdefault((unit, form.value >> 37), []).append(form)
    return {key: tuple(value) for key, value in found.items()}


def find(unit: str, word: int) -> Form | None:
    """The form of a word in a slot of a unit; None if it is no instruction there."""
    for form in _index().get((unit, word >> 37), ()):
        if form.matches(word):
            return form
    return None
