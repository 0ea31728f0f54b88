"""Instructions as objdump prints them."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from engine.arch.ia64.bundle import SIZE, unpack
from engine.arch.ia64.decode import SlotInsn, decode_bundle
from engine.arch.ia64.operands import (
    DISPLACEMENTS,
    IMMEDIATES,
    REGISTER_OPERANDS,
    completer,
    field,
)
from engine.arch.machine import Insn

APPLICATION_REGISTERS: Final[Mapping[int, str]] = {
    **{number: f"k{number}" for number in range(8)},
    16: "rsc",
    17: "bsp",
    18: "bspstore",
    19: "rnat",
    21: "fcr",
    24: "eflag",
    25: "csd",
    26: "ssd",
    27: "cflg",
    28: "fsr",
    29: "fir",
    30: "fdr",
    32: "ccv",
    36: "unat",
    40: "fpsr",
    44: "itc",
    45: "ruc",
    64: "pfs",
    65: "lc",
    66: "ec",
}

CONTROL_REGISTERS: Final[Mapping[int, str]] = {
    0: "dcr",
    1: "itm",
    2: "iva",
    8: "pta",
    16: "ipsr",
    17: "isr",
    19: "iip",
    20: "ifa",
    21: "itir",
    22: "iipa",
    23: "ifs",
    24: "iim",
    25: "iha",
    26: "iib0",
    27: "iib1",
    64: "lid",
    65: "ivr",
    66: "tpr",
    67: "eoi",
    **{68 + number: f"irr{number}" for number in range(4)},
    72: "itv",
    73: "pmv",
    74: "cmcv",
    80: "lrr0",
    81: "lrr1",
}

PERMUTATIONS: Final = {0: "@brcst", 8: "@mix", 9: "@shuf", 10: "@alt", 11: "@rev"}
_HEXADECIMAL: Final = frozenset(
    ("imm21", "imm62", "imm64", "imm17", "imm44", "imm24", "mht8", "fclass9", "amask", "omask")
)
_ADDRESS_MASK: Final = 0xFFFFFFFFFFFFFFFF
_NAMES: Final = re.compile(r"[a-z]+[a-z0-9]*")
_BLANKS: Final = re.compile(r"\{(\w+)\}")


def _application(number: int) -> str:
    name = APPLICATION_REGISTERS.get(number)
    return f"ar.{name}" if name else f"ar{number}"


def _control(number: int) -> str:
    name = CONTROL_REGISTERS.get(number)
    return f"cr.{name}" if name else f"cr{number}"


def _immediate(name: str) -> Callable[[int, int, int], str]:
    value = IMMEDIATES[name].read
    if name == "mbt4":
        return lambda word, extra, _: PERMUTATIONS.get(value(word, 0)) or hex(value(word, 0))
    if name == "dahrn":
        return lambda word, extra, _: f"dahr{value(word, 0)}"
    if name in _HEXADECIMAL:
        return lambda word, extra, _: hex(value(word, extra) & _ADDRESS_MASK)
    return lambda word, extra, _: str(value(word, extra))


def _place(name: str) -> Callable[[int, int, int], str]:
    displacement = DISPLACEMENTS[name].read
    return lambda word, extra, address: format(
        address + displacement(word, extra) & _ADDRESS_MASK, "x"
    )


def _register(name: str, spelling: str) -> Callable[[int, int, int], str]:
    return lambda word, extra, _: spelling.format(field(name, word))


_PRINTERS: Final[Mapping[str, Callable[[int, int, int], str]]] = {
    **{name: _register(name, spelling) for name, spelling in REGISTER_OPERANDS.items()},
    **{name: _immediate(name) for name in IMMEDIATES},
    "ar3": lambda word, extra, _: _application(field("r3", word)),
    "cr3": lambda word, extra, _: _control(field("r3", word)),
}


@lru_cache(maxsize=1 << 14)
def _mnemonic(template: str, word: int) -> str:
    return _BLANKS.sub(lambda found: completer(found[1], word) or "", template)


def operands(insn: SlotInsn, address: int, prefix: str) -> str:
    """The operands of an instruction, its bundle standing at `address`."""
    if insn.form is None:
        return ""

    def spell(found: re.Match[str]) -> str:
        name = found[0]
        if name in DISPLACEMENTS:
            return prefix + _place(name)(insn.word, insn.extra, address)
        printer = _PRINTERS.get(name)
        return printer(insn.word, insn.extra, address) if printer else name

    return _NAMES.sub(spell, insn.form.operands)


def parts(insn: SlotInsn, address: int, prefix: str = "0x") -> tuple[str, str]:
    """Mnemonic with its predicate, and operands; no stop.

    Args:
        insn: what to print.
        address: of the bundle.
        prefix: of addresses; objdump leaves it away where it knows symbols.
    """
    if insn.form is None:
        return "data8", f"0x{insn.word:09x}"
    mnemonic = _mnemonic(insn.form.mnemonic, insn.word)
    if insn.qp:
        mnemonic = f"(p{insn.qp:02d}) {mnemonic}"
    return mnemonic, operands(insn, address, prefix)


def bundle_insns(address: int, raw: bytes, prefix: str = "0x") -> tuple[Insn, ...]:
    """The instructions of the bundle at an address; raw words where the template is reserved."""
    bundle = unpack(raw)
    found = []
    for insn in decode_bundle(bundle):
        mnemonic, rest = parts(insn, address, prefix)
        last = 2 if insn.unit == "X" else insn.slot
        if bundle.stop_after(last) and insn.form is not None:
            if rest:
                rest += ";;"
            else:
                mnemonic += ";;"
        found.append(Insn(address + insn.slot, raw[:SIZE], mnemonic, rest))
    for slot, word in enumerate(bundle.slots if not found else ()):
        found.append(Insn(address + slot, raw[:SIZE], "data8", f"0x{word:09x}"))
    return tuple(found)
