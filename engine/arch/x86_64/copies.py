"""The copies that instructions of x86-64 make (SDM volume 2).

Told are moves between registers and memory, with and without extension, of the vector registers
too, the stack's, exchanges, string moves, and conditional moves by their condition.
"""

import re
from typing import Final

from msgspec.structs import replace

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
from engine.arch.x86_64.operations import CONDITIONS, NAMES, holds
from engine.arch.x86_64.slices import SLICES

_SIZES: Final = {
    "byte": 1,
    "word": 2,
    "dword": 4,
    "qword": 8,
    "xword": 10,
    "xmmword": 16,
    "ymmword": 32,
}
_MEMORY: Final = re.compile(r"(?:(\w+) ptr )?(?:\w\w:)?\[(.*)\]$")
_LOW_BYTE: Final = re.compile(r"r\d+b$")
_XMM: Final = re.compile(r"xmm\d+$")
_YMM: Final = re.compile(r"y(mm\d+)$")
_WHOLE: Final = frozenset(
    (
        *("movaps", "movups", "movapd", "movupd", "movdqa", "movdqu", "lddqu", "movntdq"),
        *("movntps", "movntpd", "movntdqa"),
    )
)
_WHOLE_AVX: Final = frozenset(f"v{name}" for name in _WHOLE)
_CLEARS_AVX: Final = frozenset(("vpxor", "vxorps", "vxorpd", "vpsubb", "vpsubd", "vpsubq"))
_SCALARS_AVX: Final = frozenset(("vmovd", "vmovq", "vmovss", "vmovsd"))
_GENERAL: Final = frozenset(("mov", "movabs", "movnti"))
_CLEARS: Final = frozenset(("xor", "sub", "pxor", "xorps", "xorpd", "psubb", "psubd", "psubq"))
_STRING: Final = re.compile(r"(?:rep\w* )?(movs|stos|lods)([bwdq])$")
_ALIASES: Final = {
    "cmovc": "b",
    "cmovnc": "ae",
    "cmovz": "e",
    "cmovnz": "ne",
    "cmovna": "be",
    "cmovnbe": "a",
    "cmovnl": "ge",
    "cmovng": "le",
    "cmovnge": "l",
    "cmovnle": "g",
    "cmovpe": "p",
    "cmovpo": "np",
    "cmovnae": "b",
    "cmovnb": "ae",
}


def _part(text: str, size: int) -> ValuePart | None:
    """The bytes that an operand names; an immediate has `size` of them."""
    if _LOW_BYTE.match(text):  # gdb's r13l
        text = f"{text[:-1]}l"
    if text in SLICES:
        return register(*SLICES[text])
    if text in NAMES:
        return register(text)
    if _XMM.match(text):
        return register(text, 0, 16)
    found = _MEMORY.match(text)
    if found is not None:
        return memory(0, _SIZES.get(found[1], 0))
    value = number(text)
    return None if value is None else constant(value, size)


def _to(target: ValuePart, source: ValuePart) -> ValueCopy:
    """A move to a register of 32 bits clears what is above it."""
    cleared = target.kind == "register" and target.size == 4 and target.name in NAMES
    return copied(target, source, 4 if cleared else 0)


def _move(insn: Insn, registers: RegisterFile) -> InsnCopies:
    texts = split(insn.operands)
    first = _part(texts[0], 8)
    if first is None:
        return NO_COPIES
    second = _part(texts[1], first.size)
    if second is None:
        return NO_COPIES
    return made((_to(first, second),), keeps=first.size < 4)


def _extend(insn: Insn, registers: RegisterFile) -> InsnCopies:
    texts = split(insn.operands)
    first, second = _part(texts[0], 8), _part(texts[1], 0)
    if first is None or second is None or first.kind != "register":
        return NO_COPIES
    size = second.size
    sign = insn.mnemonic != "movzx"
    clears = first.size == 4 and not (sign and size < 4)
    wider = (8 if clears else first.size) - size
    low = register(first.name, 0, size)
    return made((copied(low, second, wider, "sign" if sign else "zero"),), keeps=first.size < 4)


def _push(insn: Insn, registers: RegisterFile) -> InsnCopies:
    source = _part(insn.operands, 8)
    return NO_COPIES if source is None else made((copied(memory(), source),), keeps=True)


def _pop(insn: Insn, registers: RegisterFile) -> InsnCopies:
    target = _part(insn.operands, 8)
    return NO_COPIES if target is None else made((copied(target, memory()),))


def _exchange(insn: Insn, registers: RegisterFile) -> InsnCopies:
    first, second = (_part(text, 0) for text in split(insn.operands))
    if first is None or second is None:
        return NO_COPIES
    return made((_to(first, second), _to(second, first)), keeps=first.size < 4)


def _compared(insn: Insn, registers: RegisterFile) -> InsnCopies:
    """Cmpxchg and xadd: what comes of a compare is seen by the values."""
    first, second = (_part(text, 0) for text in split(insn.operands))
    if first is None or second is None or first.kind != "memory":
        return NO_COPIES
    if insn.mnemonic.endswith("xadd"):
        return made((_to(second, first),))
    return made((copied(first, second), _to(register("rax", 0, second.size), first)))


def _leave(insn: Insn, registers: RegisterFile) -> InsnCopies:
    return made((copied(register("rsp"), register("rbp")), copied(register("rbp"), memory(0, 8))))


def _call(insn: Insn, registers: RegisterFile) -> InsnCopies:
    """The address behind it; one that is called through memory loads another one first."""
    return made((copied(memory(), constant(insn.address + insn.size, 8)),), keeps=True)


def _condition(insn: Insn, registers: RegisterFile) -> InsnCopies:
    word = _ALIASES.get(insn.mnemonic, insn.mnemonic.removeprefix("cmov"))
    if word not in CONDITIONS:
        return NO_COPIES
    if not holds(CONDITIONS.index(word), registers.read_register("eflags")):
        return InsnCopies(idle=True)
    return _move(insn, registers)


def _lea(insn: Insn, registers: RegisterFile) -> InsnCopies:
    texts = split(insn.operands)
    target, found = _part(texts[0], 8), _MEMORY.match(texts[1])
    if target is None or found is None:
        return NO_COPIES
    if found[2] in NAMES and target.size == 8:
        return made((copied(target, register(found[2])),))
    base, _, rest = found[2].partition(" ")
    offset = number(rest.replace(" ", "")) if rest else 0
    if base == "rip" and offset is not None:
        return made((copied(target, constant(insn.address + insn.size + offset, 8)),))
    return NO_COPIES


def _clear(insn: Insn, registers: RegisterFile) -> InsnCopies:
    """An operation on a register and itself of which 0 comes whatever was in it."""
    first, second = split(insn.operands)
    target = _part(first, 0)
    if first != second or target is None or target.kind != "register":
        return NO_COPIES
    return made((_to(target, constant(0, target.size)),), keeps=target.size < 4)


def _string(insn: Insn, registers: RegisterFile) -> InsnCopies:
    found = _STRING.match(insn.mnemonic)
    assert found is not None
    size = {"b": 1, "w": 2, "d": 4, "q": 8}[found[2]]
    if found[1] == "movs":
        return made((copied(memory(0, size), memory(0, size)),))
    if found[1] == "stos":
        return made((copied(memory(0, size), register("rax", 0, size)),))
    return made((_to(register("rax", 0, size), memory(0, size)),), keeps=size < 4)


def _vector(insn: Insn, registers: RegisterFile) -> InsnCopies:
    """Movd, movq, movss, movsd: what goes to a vector register from elsewhere clears the rest."""
    texts = split(insn.operands)
    size = 4 if insn.mnemonic in ("movd", "movss") else 8
    first, second = _part(texts[0], 0), _part(texts[1], 0)
    if first is None or second is None:
        return NO_COPIES
    if second.kind == "register" and second.size in (4, 8):
        size = second.size  # movq by its operand's width
    if first.kind == "memory" or first.name in NAMES:
        target = first if first.kind == "memory" else register(first.name, 0, first.size)
        return made((_to(target, _low(second, size)),))
    keeps = insn.mnemonic in ("movss", "movsd") and second.kind == "register"
    source = _low(second, size)
    return made((copied(_low(first, size), source, 0 if keeps else 16 - size),), keeps=keeps)


def _avx(insn: Insn, registers: RegisterFile) -> InsnCopies:
    """Moves of whole vectors, by halves: what goes to a lower half alone clears the upper one."""
    texts = split(insn.operands)
    first, second = (_vector_half(text, upper=False) for text in texts)
    if first is None or second is None:
        return NO_COPIES
    moves = [copied(first, second)]
    if any(_YMM.match(text) or "ymmword" in text for text in texts):
        above, other = (_vector_half(text, upper=True) for text in texts)
        assert above is not None, "of what has a lower half"
        assert other is not None, "of what has a lower half"
        moves.append(copied(above, other))
    elif first.kind == "register":
        moves.append(_cleared(first.name))
    return made(moves)


def _vector_half(text: str, *, upper: bool) -> ValuePart | None:
    """Half of an operand that is a whole vector of 256 bits, or its lower half's of 128."""
    found = _YMM.match(text)
    if found is not None:
        return register(f"y{found[1]}h" if upper else f"x{found[1]}", 0, 16)
    if _MEMORY.match(text):
        return memory(16 if upper else 0, 16)
    return _part(text, 16)


def _cleared(name: str) -> ValueCopy:
    """The upper half of a vector register becomes 0."""
    return copied(register(f"y{name[1:]}h", 0, 16), constant(0, 16))


def _avx_scalar(insn: Insn, registers: RegisterFile) -> InsnCopies:
    """The forms of `_vector` with two operands; with three, a register is put together of two."""
    texts = split(insn.operands)
    if len(texts) != 2:
        return NO_COPIES
    plain = replace(insn, mnemonic=insn.mnemonic.removeprefix("v"))
    found = _vector(plain, registers)
    clears = [_cleared(texts[0])] if found.copies and _XMM.match(texts[0]) else []
    return made((*found.copies, *clears), keeps=found.keeps)


def _avx_clear(insn: Insn, registers: RegisterFile) -> InsnCopies:
    """Of two registers that are the same comes 0 in all of a third."""
    texts = split(insn.operands)
    if len(texts) != 3 or texts[1] != texts[2]:
        return NO_COPIES
    target = _vector_half(texts[0], upper=False)
    if target is None or target.kind != "register":
        return NO_COPIES
    return made((copied(target, constant(0, 16)), _cleared(target.name)))


def _low(part: ValuePart, size: int) -> ValuePart:
    return ValuePart(part.kind, part.name, part.first, size)


def _half(insn: Insn, registers: RegisterFile) -> InsnCopies:
    """Moves of one half of a vector register; its other half stays."""
    texts = split(insn.operands)
    name = insn.mnemonic
    first, second = _part(texts[0], 0), _part(texts[1], 0)
    if first is None or second is None:
        return NO_COPIES
    to = 8 if name in ("movlhps", "punpcklqdq", "movhps", "movhpd") else 0
    of = 8 if name == "movhlps" else 0
    if first.kind == "memory":
        return made((copied(memory(0, 8), register(second.name, to, 8)),))
    source = memory(0, 8) if second.kind == "memory" else register(second.name, of, 8)
    return made((copied(register(first.name, to, 8), source),), keeps=True)


def _widen(insn: Insn, registers: RegisterFile) -> InsnCopies:
    size = {"cbw": 1, "cwde": 2, "cdqe": 4}[insn.mnemonic]
    low = register("rax", 0, size)
    return made((copied(low, low, size, "sign"),), keeps=size == 1)


_HALVES: Final = (*("movhps", "movhpd", "movlps", "movlpd", "movhlps", "movlhps", "punpcklqdq"),)


def copies(insn: Insn, registers: RegisterFile) -> InsnCopies:
    """The copies of an instruction; see `engine.arch.dataflow.DataFlow`."""
    name, operands = insn.mnemonic.removeprefix("lock "), insn.operands
    maker = None
    if _STRING.match(name) and "xmm" not in operands:
        maker = _string
    elif name in _GENERAL or name in _WHOLE:
        maker = _move
    elif name.startswith("cmov"):
        maker = _condition
    elif name in _CLEARS and "," in operands:
        maker = _clear
    elif name in _WHOLE_AVX:
        maker = _avx
    elif name in _CLEARS_AVX:
        maker = _avx_clear
    elif name in _SCALARS_AVX:
        maker = _avx_scalar
    else:
        maker = _MAKERS.get(name)
    return NO_COPIES if maker is None else maker(insn, registers)


_MAKERS: Final = {
    **dict.fromkeys(("movzx", "movsx", "movsxd"), _extend),
    **dict.fromkeys(("movd", "movq", "movss", "movsd"), _vector),
    **dict.fromkeys(_HALVES, _half),
    **dict.fromkeys(("cbw", "cwde", "cdqe"), _widen),
    "push": _push,
    "pop": _pop,
    "xchg": _exchange,
    "leave": _leave,
    "call": _call,
    "lea": _lea,
    "cmpxchg": _compared,
    "xadd": _compared,
}

DATA_FLOW: Final = DataFlow(copies)
