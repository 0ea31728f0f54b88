"""Descriptions of integer instructions: formats A and I without moves from other registers.

A description is a function that says once what an instruction does, with the values and operations
of a writer. There are two: `Emitter` writes the source of a Python function, `JitCode` the text of
an LLVM one. Descriptions are checked against both: an operation that one of them lacks is a type
error.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from engine.arch.ia64.decode import SlotInsn
from engine.arch.ia64.operands import completer
from engine.cpu.ia64.emitter import Emitter
from engine.cpu.ia64.integers import mux1_known
from engine.cpu.ia64.jit_code import JitCode
from engine.cpu.ia64.jit_value import JitValue
from engine.cpu.ia64.python_value import PythonValue
from engine.cpu.ia64.value import IllegalInsn

Writer: TypeAlias = Emitter | JitCode
Value: TypeAlias = PythonValue | JitValue

_LOW: Final = 0xFFFFFFFF


def name(insn: SlotInsn) -> str:
    """The mnemonic without spellings that mean the same."""
    assert insn.form is not None
    text = insn.form.mnemonic
    for blank in insn.form.completers:
        text = text.replace("{" + blank + "}", completer(blank, insn.word) or "")
    return text


def _two(w: Writer, insn: SlotInsn) -> tuple[Value, Value]:
    return w.general(insn.field("r2")), w.general(insn.field("r3"))


def _pointer(total: Value, base: Value) -> Value:
    """The 4-byte pointer forms: bits 31:30 of the base become bits 62:61."""
    return total & _LOW | (base & 0xC0000000) << 31


def _logic(left: Value, right: Value, which: int) -> Value:
    if which < 2:
        return left & (~right if which else right)
    return left | right if which == 2 else left ^ right


def a1(w: Writer, insn: SlotInsn) -> Value:
    """`add`, sub, addp4 and logic of two registers."""
    a, b = _two(w, insn)
    x4, x2b = insn.word >> 29 & 15, insn.word >> 27 & 3
    if x4 == 0:
        return a + b + x2b
    if x4 == 1:
        return a - b - (1 - x2b)
    return _pointer(a + b, b) if x4 == 2 else _logic(a, b, x2b)


def a2(w: Writer, insn: SlotInsn) -> Value:
    """`shladd`, shladdp4."""
    a, b = _two(w, insn)
    total = (a << insn.immediate("count2")) + b
    return total if insn.word >> 29 & 15 == 4 else _pointer(total, b)


def a3(w: Writer, insn: SlotInsn) -> Value:
    """`sub` and logic with an immediate first operand."""
    left, right = w.number(insn.immediate("imm8")), w.general(insn.field("r3"))
    if insn.word >> 29 & 15 == 9:
        return left - right
    return _logic(left, right, insn.word >> 27 & 3)


def a4(w: Writer, insn: SlotInsn) -> Value:
    """`adds`, addp4 immediate."""
    base = w.general(insn.field("r3"))
    total = base + insn.immediate("imm14")
    return total if insn.word >> 34 & 3 == 2 else _pointer(total, base)


def a5(w: Writer, insn: SlotInsn) -> Value:
    """`addl`."""
    return w.general(insn.field("r3a")) + insn.immediate("imm22")


_KINDS: Final = {12: "and", 13: "or", 14: "or.andcm"}


def a6(w: Writer, insn: SlotInsn) -> None:
    """`cmp`, cmp4."""
    word = insn.word
    major, c, ta = word >> 37, word >> 12 & 1, word >> 33 & 1
    kind = _KINDS[major]
    if insn.format == "A7":
        if insn.field("r2"):
            raise IllegalInsn("a reserved field is not 0")
        what = (("sgt", "sle"), ("sge", "slt"))[ta][c]
    elif ta:
        what = ("eq", "ne")[c]
    else:
        what, kind = ("slt", "ult", "eq")[major - 12], "unc" if c else ""
    if insn.format == "A8":
        left, right = w.number(insn.immediate("imm8")), w.general(insn.field("r3"))
    else:
        left, right = _two(w, insn)
    bits = 32 if word >> 34 & 1 else 64
    w.compare(insn, w.relation(what, left, right, bits), kind)


def pairwise(w: Writer, insn: SlotInsn) -> Value:
    """Parallel operations of two registers."""
    return w.pairwise(name(insn), *_two(w, insn))


def a10(w: Writer, insn: SlotInsn) -> Value:
    """`pshladd2`, pshradd2."""
    count = insn.immediate("count2")
    if count == 4:
        raise IllegalInsn("a reserved shift count")
    a, b = _two(w, insn)
    return w.call("shift_add", a, count, b, insn.word >> 29 & 15 == 4)


def i1(w: Writer, insn: SlotInsn) -> Value:
    """`pmpyshr2`."""
    unsigned = insn.word >> 28 & 3 == 1
    return w.call("multiply_shift", *_two(w, insn), insn.immediate("count16"), unsigned)


def i3(w: Writer, insn: SlotInsn) -> Value:
    """`mux1`."""
    kind = insn.immediate("mbt4")
    if not mux1_known(kind):
        raise IllegalInsn("a reserved permutation")
    return w.call("mux1", w.general(insn.field("r2")), kind)


def i4(w: Writer, insn: SlotInsn) -> Value:
    """`mux2`."""
    return w.call("mux2", w.general(insn.field("r2")), insn.immediate("mht8"))


def i5(w: Writer, insn: SlotInsn) -> Value:
    """`shr`, shr.u, shl and their parallel forms by a register."""
    za, zb = insn.word >> 36 & 1, insn.word >> 33 & 1
    count, value = _two(w, insn)
    kind = "r" if insn.word >> 28 & 3 == 2 else "u"
    if insn.format == "I7":
        value, count, kind = count, value, "l"
    if za and zb:
        return w.shift(kind, value, count)
    return w.call("parallel_shift", value, count, 4 if za else 2, kind)


def i6(w: Writer, insn: SlotInsn) -> Value:
    """Parallel shifts by an immediate."""
    size = 4 if insn.word >> 36 & 1 else 2
    if insn.format == "I8":
        value, count, kind = w.general(insn.field("r2")), insn.immediate("ccount5"), "l"
    else:
        value, count = w.general(insn.field("r3")), insn.immediate("count5")
        kind = "r" if insn.word >> 28 & 3 == 3 else "u"
    return w.call("parallel_shift", value, count, size, kind)


def i9(w: Writer, insn: SlotInsn) -> Value:
    """`popcnt`, clz."""
    value = w.general(insn.field("r3"))
    return value.ones() if insn.word >> 30 & 3 == 2 else value.leading_zeros()


def i10(w: Writer, insn: SlotInsn) -> Value:
    """`shrp`."""
    return w.funnel(*_two(w, insn), insn.immediate("count6"))


def i11(w: Writer, insn: SlotInsn) -> Value:
    """`extr`, extr.u: bits that the field has beyond the register are signs or zeros."""
    at = insn.immediate("pos6")
    length = min(insn.immediate("len6"), 64 - at)
    return w.general(insn.field("r3")).cut(at, length, bool(insn.word >> 13 & 1))


_DEPOSITS: Final = {
    "I12": ("cpos6c", "len6", ""),
    "I13": ("cpos6c", "len6", "imm8"),
    "I14": ("cpos6b", "len6", "imm1"),
    "I15": ("cpos6d", "len4", ""),
}


def dep(w: Writer, insn: SlotInsn) -> Value:
    """`dep` and dep.z: bits of a register or an immediate among those of r3 or among zeros."""
    position, size, immediate = _DEPOSITS[insn.format]
    at = insn.immediate(position)
    mask = (1 << min(insn.immediate(size), 64 - at)) - 1
    if immediate:
        bits = w.number((insn.immediate(immediate) & mask) << at)
    else:
        bits = (w.general(insn.field("r2")) & mask) << at
    if insn.format in ("I12", "I13"):
        return bits
    return w.general(insn.field("r3")) & ~(mask << at) | bits


def i16(w: Writer, insn: SlotInsn) -> None:
    """`tbit`, tnat, tf: the plain relation is "bit is zero", .nz its opposite."""
    tb, ta, c = insn.word >> 36 & 1, insn.word >> 33 & 1, insn.word >> 12 & 1
    kind = ("", "or", "and", "or.andcm")[tb << 1 | ta]
    what = "ne" if kind and c else "eq"
    if insn.format == "I16":
        bit = w.general(insn.field("r3")) & 1 << insn.immediate("pos6")
    else:
        bit = w.nat_of(insn.field("r3")) if insn.format == "I17" else w.number(0)
    w.compare(insn, w.relation(what, bit, 0), kind or ("unc" if c else ""))


def i29(w: Writer, insn: SlotInsn) -> Value:
    """Extensions and czx."""
    value, x6 = w.general(insn.field("r3")), insn.word >> 27 & 63
    if x6 >= 0x18:
        return w.call("count_zero", value, 2 if x6 & 1 else 1, x6 < 0x1C)
    return value.cut(0, 8 << (x6 & 3), bool(x6 & 4))


def x2(w: Writer, insn: SlotInsn) -> Value:
    """`movl`."""
    return w.number(insn.immediate("imm64"))


RESULTS: Final[dict[str, Callable[[Writer, SlotInsn], Value]]] = {
    "A1": a1,
    "A2": a2,
    "A3": a3,
    "A4": a4,
    "A5": a5,
    "A9": pairwise,
    "A10": a10,
    "I1": i1,
    "I2": pairwise,
    "I3": i3,
    "I4": i4,
    "I5": i5,
    "I6": i6,
    "I7": i5,
    "I8": i6,
    "I9": i9,
    "I10": i10,
    "I11": i11,
    "I12": dep,
    "I13": dep,
    "I14": dep,
    "I15": dep,
    "I29": i29,
    "X2": x2,
}
"""Instructions that only write a general register, by format."""
COMPARES: Final[dict[str, Callable[[Writer, SlotInsn], None]]] = {
    "A6": a6,
    "A7": a6,
    "A8": a6,
    "I16": i16,
    "I17": i16,
    "I30": i16,
}
"""Instructions that only write predicates, by format."""
