"""The instruction formats: one table for decoder, core and probe analysis.

Each line of the tables names the format of the manual (volume 3, section 4.2 and on), the
major opcode, conditions on fields, and what objdump prints: a mnemonic with `{completers}`
and operands. Earlier lines win: spellings such as `mov` for `adds 0` stand first.
"""

import re
from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from engine.arch.ia64.opcodes_bf import BRANCH, FLOAT, LONG
from engine.arch.ia64.opcodes_i import ALU, INTEGER
from engine.arch.ia64.opcodes_m import MEMORY
from engine.arch.ia64.operands import FIELDS, completer


class Form(Struct, frozen=True):
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
        """True if a word is this form."""
        if word & self.mask != self.value:
            return False
        for low, other, width, differ in self.equal:
            if (word >> low ^ word >> other) & (1 << width) - 1 != differ:
                return False
        return all(completer(name, word) is not None for name in self.completers)


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
