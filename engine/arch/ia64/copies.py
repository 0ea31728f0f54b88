"""The copies that instructions of IA-64 make, and how registers of the stack are renamed.

Read from the instructions' text. A stacked register is followed by its place in the backing store,
which it keeps while calls, `alloc` and rotation change its name (SDM volume 2, section 6).
"""

import re
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from engine.arch.dataflow import (
    NO_COPIES,
    DataFlow,
    InsnCopies,
    ValuePart,
    constant,
    copied,
    made,
    memory,
    number,
    register,
    split,
)
from engine.arch.ia64.rse import frame_size, skip_up
from engine.arch.machine import Insn, RegisterFile

_PREDICATED: Final = re.compile(r"\(p(\d+)\) ")
_GENERAL: Final = re.compile(r"(r\d+|b\d)$")
_FLOAT: Final = re.compile(r"f\d+$")
_APPLICATION: Final = re.compile(r"ar\.(\w+)$")
_PREDICATE: Final = re.compile(r"p\d+$")
_LOAD: Final = re.compile(r"ld([1248])(?:\.(?!c\.)[\w.]+)?$")
_CHECK: Final = re.compile(r"ld[1248]\.c\.")
_STORE: Final = re.compile(r"st([1248])(?:\.[\w.]+)?$")
_FLOAT_LOAD: Final = re.compile(r"ldf(8|\.fill)(?:\.[\w.]+)?$")
_FLOAT_STORE: Final = re.compile(r"stf(8|\.spill)(?:\.[\w.]+)?$")
_EXTEND: Final = re.compile(r"([sz])xt([124])$")
_SIZES: Final = {"8": 8, ".fill": 11, ".spill": 11}
_STACKED: Final = 32
_RENAMES: Final = (
    *("br.call", "brl.call", "br.ret", "alloc", "cover", "clrrrb", "br.ctop", "br.cexit"),
    *("br.wtop", "br.wexit", "rfi", "loadrs"),
)


def _spelled(insn: Insn) -> tuple[int, str, str]:
    """Number of the predicate, the mnemonic, and the operands without the stop behind them."""
    found = _PREDICATED.match(insn.mnemonic)
    name = insn.mnemonic[found.end() :] if found else insn.mnemonic
    return int(found[1]) if found else 0, name.removesuffix(";;"), insn.operands.removesuffix(";;")


def _part(text: str) -> ValuePart | None:
    if text == "r0":
        return constant(0, 8)
    if _GENERAL.match(text):
        return register(text)
    if found := _APPLICATION.match(text):
        return register(found[1])
    if _FLOAT.match(text):
        return register(text, 0, 11) if text not in ("f0", "f1") else None
    value = number(text)
    return None if value is None else constant(value, 8)


def copies(insn: Insn, registers: RegisterFile) -> InsnCopies:
    """The copies of an instruction; see `engine.arch.dataflow.DataFlow`."""
    predicate, name, operands = _spelled(insn)
    if predicate and not registers.read_register("pr") >> predicate & 1:
        return InsnCopies(idle=True)
    left, _, right = operands.partition("=")
    if name.startswith(("br.call", "brl.call")):
        behind = (insn.address & -16) + 16
        return made((copied(register(left), constant(behind, 8)),))
    if name.startswith("alloc"):
        return made((copied(register(left), register("pfs")),))
    sources, targets = split(right), split(left)
    if len(sources) == 0 or len(targets) == 0:
        return NO_COPIES
    if name.startswith("xchg") and len(sources) == 2:
        return _exchange(int(name[4]), targets[0], sources[1])
    if name.startswith(("st", "ld")):
        return _memory(name, targets, sources)
    return _registers(name, targets[0], sources[0])


def _exchange(size: int, left: str, right: str) -> InsnCopies:
    target, source = _part(left), _part(right)
    if target is None or source is None:
        return NO_COPIES
    return made(
        (
            copied(_low(target, size), memory(0, size), 8 - size),
            copied(memory(0, size), _low(source, size)),
        )
    )


def _memory(name: str, targets: list[str], sources: list[str]) -> InsnCopies:
    target, source = _part(targets[0]), _part(sources[0])
    if found := _STORE.match(name):
        size = int(found[1])
        if source is None:
            return NO_COPIES
        return made((copied(memory(0, size), _low(source, size)),))
    if found := _FLOAT_STORE.match(name):
        return (
            NO_COPIES
            if source is None
            else made((copied(memory(), _low(source, _SIZES[found[1]])),))
        )
    if target is None or target.kind != "register":
        return NO_COPIES
    if found := _LOAD.match(name):
        size = int(found[1])
        if _CHECK.match(name):
            return NO_COPIES
        return made((copied(_low(target, size), memory(0, size), 8 - size),))
    if found := _FLOAT_LOAD.match(name):
        size = _SIZES[found[1]]
        return made((copied(_low(target, size), memory(0, size)),))
    return NO_COPIES


def _low(part: ValuePart, size: int) -> ValuePart:
    return replace(part, size=size)


def _registers(name: str, left: str, right: str) -> InsnCopies:
    target, source = _part(left), _part(right)
    if target is None or source is None or target.kind != "register":
        return NO_COPIES
    if name in ("mov", "mov.i", "mov.m", "movl") or name.startswith("mov.ret"):
        if "pr" in (left, right):
            return NO_COPIES
        return made((copied(target, source),))
    if found := _EXTEND.match(name):
        size = int(found[2])
        filled = "sign" if found[1] == "s" else "zero"
        return made((copied(_low(target, size), _low(source, size), 8 - size, filled),))
    if name in ("getf.sig", "setf.sig"):
        return made((copied(_low(target, 8), _low(source, 8)),))
    return NO_COPIES


def _names(text: str) -> frozenset[str]:
    """The registers in a text."""
    found = set()
    for word in re.findall(r"ar\.\w+|\b[rbfp]\d+\b|\bpr\b", text):
        if _PREDICATE.match(word):
            found.add("pr")
        else:
            found.add(word.removeprefix("ar."))
    return frozenset(found) - {"r0", "f0", "f1"}


def accessed(insn: Insn) -> tuple[frozenset[str], frozenset[str]]:
    """The registers that an instruction reads and writes."""
    predicate, name, operands = _spelled(insn)
    left, equals, right = operands.partition("=")
    if not equals:
        left, right = "", operands
    read, written = _names(right), frozenset[str]()
    for text in split(left):
        if text.startswith("["):
            read |= _names(text)
        else:
            written |= _names(text)
    address = next((text for text in split(left) + split(right) if text.startswith("[")), "")
    last = (split(right) or [""])[-1]
    if address and not last.startswith("[") and name.startswith(("ld", "st", "lfetch")):
        stores = left.startswith("[")
        if not stores or len(split(right)) > 1:
            written |= _names(address)  # the address is moved on
    if name.startswith(("br.call", "brl.call")):
        written |= {"pfs"}
    if name.startswith(("br.cloop", "br.ctop", "br.cexit")):
        written |= {"lc"}
    if name.startswith(("br.ctop", "br.cexit", "br.wtop", "br.wexit")):
        written |= {"ec", "pr"}
    return read | (frozenset(("pr",)) if predicate else frozenset()), frozenset(written)


def renamed(registers: RegisterFile, name: str) -> Callable[[RegisterFile], str]:
    """The name of a register of the current frame at other moments."""
    if not (name[0] == "r" and name[1:].isdigit() and int(name[1:]) >= _STACKED):
        return lambda then: name
    cfm = registers.read_register("cfm")
    slot = skip_up(registers.read_register("bsp"), _physical(int(name[1:]) - _STACKED, cfm))

    def then(registers: RegisterFile) -> str:
        bsp = registers.read_register("bsp")
        if not bsp <= slot < bsp + 8 * 98:
            return ""
        words = slot - bsp >> 3
        index = words - ((bsp >> 3 & 63) + words) // 64
        marker = registers.read_register("cfm")
        if not 0 <= index < frame_size(marker):
            return ""
        return f"r{_STACKED + _logical(index, marker)}"

    return then


def _rotation(cfm: int) -> tuple[int, int]:
    """Rotating registers of a frame, and by how much they have."""
    return 8 * (cfm >> 14 & 15), cfm >> 18 & 127


def _physical(index: int, cfm: int) -> int:
    size, by = _rotation(cfm)
    return (index + by) % size if index < size else index


def _logical(index: int, cfm: int) -> int:
    size, by = _rotation(cfm)
    return (index - by) % size if index < size else index


DATA_FLOW: Final = DataFlow(copies, accessed, renamed, _RENAMES)
