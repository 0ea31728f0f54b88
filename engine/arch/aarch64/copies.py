"""The copies that instructions of AArch64 make (Arm ARM, C6 and C7, by Capstone's aliases).

Told are moves between registers, loads and stores of one and of two registers, with and without
extension, exclusive and atomic ones, those of vectors that keep the order of bytes, and selects by
their condition.
"""

import re
from typing import Final

from msgspec.structs import replace

from engine.arch.aarch64.operations import CONDITIONS, holds
from engine.arch.dataflow import (
    NO_COPIES,
    DataFlow,
    InsnCopies,
    ValueCopy,
    ValuePart,
    constant,
    copied,
    made,
    memory,
    number,
    register,
    split,
)
from engine.arch.machine import Insn, RegisterFile

_GENERAL: Final = re.compile(r"([xw])(\d+)$")
_SCALAR: Final = re.compile(r"([bhsdq])(\d+)$")
_VECTOR: Final = re.compile(r"v(\d+)\.(8b|16b|4h|8h|2s|4s|1d|2d)$")
_ELEMENT: Final = re.compile(r"v(\d+)\.([bhsd])\[(\d+)\]$")
_BYTES: Final = {"b": 1, "h": 2, "s": 4, "d": 8, "q": 16}
_NARROW: Final = {"b": 1, "h": 2, "w": 4}
_LOAD: Final = re.compile(r"ld(?:u|t|a|ap|ap?u|x|ax)?r(s?)([bhw]?)$")
_STORE: Final = re.compile(r"st(?:u|t|l|lu)?r([bh]?)$")
_EXCLUSIVE: Final = re.compile(r"stl?xr([bh]?)$")
_PAIR: Final = re.compile(r"(ld|st)n?p(sw)?$")
_EXCLUSIVE_PAIR: Final = re.compile(r"(ld|st)[al]?xp$")
_SWAP: Final = re.compile(r"swpa?l?([bh]?)$")
_COMPARE: Final = re.compile(r"casa?l?([bh]?)$")
_FETCH: Final = re.compile(r"ld(?:add|clr|eor|set|smax|smin|umax|umin)a?l?([bh]?)$")


def _part(text: str) -> ValuePart | None:
    """The register that an operand names, or what is always 0."""
    if text in ("xzr", "wzr"):
        return constant(0, 8 if text == "xzr" else 4)
    if text in ("sp", "wsp"):
        return register("sp", 0, 8 if text == "sp" else 4)
    if found := _GENERAL.match(text):
        return register(f"x{found[2]}", 0, 8 if found[1] == "x" else 4)
    if found := _SCALAR.match(text):
        return register(f"v{found[2]}", 0, _BYTES[found[1]])
    if found := _VECTOR.match(text):
        return register(f"v{found[1]}", 0, 8 if found[2] in ("8b", "4h", "2s", "1d") else 16)
    if found := _ELEMENT.match(text):
        size = _BYTES[found[2]]
        return register(f"v{found[1]}", int(found[3]) * size, size)
    return None


def _whole(part: ValuePart) -> int:
    """Bytes of the register that a part is in."""
    return 16 if part.name.startswith("v") else 8


def _into(target: ValuePart, source: ValuePart, sign: str = "") -> ValueCopy:
    """A copy that fills the bytes above with 0, or for a signed load with its sign."""
    whole = _whole(target)
    size = min(one for one in (target.size, source.size) if one)
    low = ValuePart("register", target.name, target.first, size)
    wider = target.size - size if sign and target.size > size else whole - size
    return copied(low, source, wider, "sign" if sign else "zero")


def _move(insn: Insn, registers: RegisterFile) -> InsnCopies:
    texts = split(insn.operands)
    target, source = _part(texts[0]), _part(texts[1])
    if target is None or target.kind != "register" or len(texts) > 2:
        return NO_COPIES
    if source is None:
        value = number(texts[1])
        if value is None or target.name.startswith("v"):
            return NO_COPIES
        source = constant(value, target.size)
    if _ELEMENT.match(texts[0]):
        size = min(target.size, source.size)
        return made((copied(register(target.name, target.first, size), source),), keeps=True)
    return made((_into(target, source),))


def _constant(insn: Insn, registers: RegisterFile) -> InsnCopies:
    """Movz, adr, adrp: all of it is the instruction's own."""
    texts = split(insn.operands)
    target, value = _part(texts[0]), number(texts[1])
    if target is None or value is None or target.kind != "register" or len(texts) > 2:
        return NO_COPIES
    return made((_into(target, constant(value, target.size)),))


def _extend(insn: Insn, registers: RegisterFile) -> InsnCopies:
    texts = split(insn.operands)
    target, source = _part(texts[0]), _part(texts[1])
    if target is None or source is None or source.kind != "register" or target.kind != source.kind:
        return NO_COPIES
    low = ValuePart("register", source.name, 0, _NARROW[insn.mnemonic[3]])
    return made((_into(target, low, "s" if insn.mnemonic[0] == "s" else ""),))


def _loaded(insn: Insn, sign: str, size: str) -> InsnCopies:
    target = _part(split(insn.operands)[0])
    if target is None or target.kind != "register":
        return NO_COPIES
    return made((_into(target, memory(0, _NARROW.get(size, target.size)), sign),))


def _stored(part: ValuePart | None, size: int, first: int = 0) -> ValueCopy | None:
    if part is None:
        return None
    return copied(memory(first, size), replace(part, size=size))


def _several(copies: "list[ValueCopy | None]") -> InsnCopies:
    found = [one for one in copies if one is not None]
    return made(found) if len(found) == len(copies) else NO_COPIES


def _pair(texts: list[str], *, load: bool, sign: bool) -> InsnCopies:
    first, second = _part(texts[0]), _part(texts[1])
    if first is None or second is None:
        return NO_COPIES
    size = 4 if sign else first.size
    if not load:
        return _several([_stored(first, size), _stored(second, size, size)])
    return made(
        _into(part, memory(at, size), "s" if sign else "")
        for at, part in ((0, first), (size, second))
        if part.kind == "register"
    )


def _swap(texts: list[str], size: str) -> InsnCopies:
    source, target = _part(texts[0]), _part(texts[1])
    if source is None or target is None:
        return NO_COPIES
    count = _NARROW.get(size, target.size)
    copies = [_stored(source, count)]
    if target.kind == "register":
        copies.append(_into(target, memory(0, count)))
    return _several(copies)


def _compare(texts: list[str], size: str) -> InsnCopies:
    """A swap where the compare holds, which is seen by the values."""
    return _swap([texts[1], texts[0]], size)


def _fetch(texts: list[str], size: str) -> InsnCopies:
    target = _part(texts[1])
    if target is None or target.kind != "register":
        return NO_COPIES
    return made((_into(target, memory(0, _NARROW.get(size, target.size))),))


def _select(insn: Insn, registers: RegisterFile) -> InsnCopies:
    texts = split(insn.operands)
    if texts[-1] not in CONDITIONS:
        return NO_COPIES
    taken = holds(CONDITIONS.index(texts[-1]), registers.read_register("cpsr"))
    target, source = _part(texts[0]), _part(texts[1 if taken else 2])
    if target is None or source is None or target.kind != "register":
        return NO_COPIES
    return made((_into(target, source),))


def _structures(insn: Insn, registers: RegisterFile) -> InsnCopies:
    """Ld1 and st1 of whole registers keep the order of bytes."""
    texts = split(insn.operands)
    parts = [_part(text.strip()) for text in texts[0].strip("{}").split(",")]
    copies, at = [], 0
    for part in parts:
        if part is None or "[" in texts[0]:
            return NO_COPIES
        if insn.mnemonic == "ld1":
            copies.append(_into(part, memory(at, part.size)))
        else:
            copies.append(copied(memory(at, part.size), part))
        at += part.size
    return made(copies)


def _call(insn: Insn, registers: RegisterFile) -> InsnCopies:
    return made((copied(register("x30"), constant(insn.address + insn.size, 8)),))


_MAKERS: Final = {
    **dict.fromkeys(("mov", "fmov", "umov", "smov"), _move),
    **dict.fromkeys(("movz", "adr", "adrp"), _constant),
    **dict.fromkeys(("uxtb", "uxth", "uxtw", "sxtb", "sxth", "sxtw"), _extend),
    **dict.fromkeys(("csel", "fcsel"), _select),
    **dict.fromkeys(("ld1", "st1"), _structures),
    **dict.fromkeys(("bl", "blr"), _call),
}


def copies(insn: Insn, registers: RegisterFile) -> InsnCopies:
    """The copies of an instruction; see `engine.arch.dataflow.DataFlow`."""
    name, texts = insn.mnemonic, split(insn.operands)
    maker = _MAKERS.get(name)
    if maker is not None:
        return maker(insn, registers)
    if found := _LOAD.match(name):
        return _loaded(insn, found[1], found[2])
    if found := _STORE.match(name):
        part = _part(texts[0])
        return _several([_stored(part, _NARROW.get(found[1], part.size if part else 0))])
    if found := _EXCLUSIVE.match(name):
        part = _part(texts[1])
        return _several([_stored(part, _NARROW.get(found[1], part.size if part else 0))])
    if found := _PAIR.match(name):
        return _pair(texts, load=found[1] == "ld", sign=bool(found[2]))
    if found := _EXCLUSIVE_PAIR.match(name):
        load = found[1] == "ld"
        return _pair(texts if load else texts[1:], load=load, sign=False)
    for form, make in ((_SWAP, _swap), (_COMPARE, _compare), (_FETCH, _fetch)):
        if found := form.match(name):
            return make(texts, found[1])
    return NO_COPIES


DATA_FLOW: Final = DataFlow(copies)
