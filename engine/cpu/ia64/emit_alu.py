"""Source of integer instructions: formats A and I."""

from collections.abc import Callable
from typing import Final

from engine.arch.ia64.decode import SlotInsn
from engine.arch.ia64.operands import completer
from engine.cpu.ia64.emitter import MASK, Emitter, compare
from engine.cpu.ia64.integers import mux1_known

Emit = Callable[[Emitter, SlotInsn], None]

_SIGN: Final = "0x8000000000000000"
_LOW: Final = "0xFFFFFFFF"


def name(insn: SlotInsn) -> str:
    """The mnemonic without spellings that mean the same."""
    assert insn.form is not None
    text = insn.form.mnemonic
    for blank in insn.form.completers:
        text = text.replace("{" + blank + "}", completer(blank, insn.word) or "")
    return text


def _fields(insn: SlotInsn) -> tuple[int, int, int]:
    return insn.field("r1"), insn.field("r2"), insn.field("r3")


def _logic(e: Emitter, r1: int, left: str, right: int, which: int, *sources: int) -> None:
    b = e.gr(right)
    value = (
        f"{left} & {b}",
        f"{left} & ~{b}",
        f"{left} | {b}",
        f"{left} ^ {b}",
    )[which]
    e.put(r1, value, *sources)


def a1(e: Emitter, insn: SlotInsn) -> None:
    """`add`, sub, addp4 and logic of two registers."""
    r1, r2, r3 = _fields(insn)
    x4, x2b = insn.word >> 29 & 15, insn.word >> 27 & 3
    a, b = e.gr(r2), e.gr(r3)
    if x4 == 0:
        if not x2b and not (r2 and r3):
            e.put(r1, a if r2 else b, r2, r3)
        else:
            e.put(r1, f"({a} + {b}{' + 1' if x2b else ''}) & {MASK}", r2, r3)
    elif x4 == 1:
        e.put(r1, f"({a} - {b}{'' if x2b else ' - 1'}) & {MASK}", r2, r3)
    elif x4 == 2 and not r3:
        e.put(r1, f"{a} & {_LOW}", r2)
    elif x4 == 2:
        e.put(r1, f"({a} + {b}) & {_LOW} | ({b} & 0xC0000000) << 31", r2, r3)
    else:
        _logic(e, r1, a, r3, x2b, r2, r3)


def a2(e: Emitter, insn: SlotInsn) -> None:
    """`shladd`, shladdp4."""
    r1, r2, r3 = _fields(insn)
    a, b, count = e.gr(r2), e.gr(r3), insn.immediate("count2")
    if insn.word >> 29 & 15 == 4:
        e.put(r1, f"({f'({a} << {count}) + {b}' if r3 else f'{a} << {count}'}) & {MASK}", r2, r3)
    else:
        e.put(r1, f"(({a} << {count}) + {b}) & {_LOW} | ({b} & 0xC0000000) << 31", r2, r3)


def a3(e: Emitter, insn: SlotInsn) -> None:
    """`sub` and logic with an immediate first operand."""
    r1, _, r3 = _fields(insn)
    value = insn.immediate("imm8")
    if insn.word >> 29 & 15 == 9:
        e.put(r1, f"({value} - {e.gr(r3)}) & {MASK}", r3)
    else:
        _logic(e, r1, hex(value & 0xFFFFFFFFFFFFFFFF), r3, insn.word >> 27 & 3, r3)


def _add_immediate(e: Emitter, r1: int, value: int, r3: int) -> None:
    if not r3:
        e.put(r1, hex(value & 0xFFFFFFFFFFFFFFFF))
    elif not value:
        e.put(r1, e.gr(r3), r3)
    else:
        e.put(r1, f"({e.gr(r3)} + {value}) & {MASK}", r3)


def a4(e: Emitter, insn: SlotInsn) -> None:
    """`adds`, addp4 immediate."""
    r1, _, r3 = _fields(insn)
    value, b = insn.immediate("imm14"), e.gr(r3)
    if insn.word >> 34 & 3 == 2:
        _add_immediate(e, r1, value, r3)
    else:
        e.put(r1, f"({value} + {b}) & {_LOW} | ({b} & 0xC0000000) << 31", r3)


def a5(e: Emitter, insn: SlotInsn) -> None:
    """`addl`."""
    _add_immediate(e, insn.field("r1"), insn.immediate("imm22"), insn.field("r3a"))


_KINDS: Final = {"c": "and", "d": "or", "e": "or.andcm"}
_OPPOSITE: Final = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _relation(e: Emitter, insn: SlotInsn, left: str, r3: int, relation: str, sign: bool) -> str:
    """`relation` has a blank for the operator."""
    b = e.gr(r3)
    if insn.word >> 34 & 1:  # four bytes
        if relation == "=" and left in ("0", "0x0"):
            return f"{b} & {_LOW} {{}} 0"
        if relation == "=":
            return f"({left} ^ {b}) & {_LOW} {{}} 0"
        if not sign:
            return f"{left} & {_LOW} {{}} {b} & {_LOW}"
        return f"({left} & {_LOW} ^ 0x80000000) {{}} ({b} & {_LOW} ^ 0x80000000)"
    if not sign or relation == "=":
        return f"{left} {{}} {b}"
    left = _SIGN if left == "0" else f"({left} ^ {_SIGN})"
    right = _SIGN if b == "0" else f"({b} ^ {_SIGN})"
    return f"{left} {{}} {right}"


def a6(e: Emitter, insn: SlotInsn) -> None:
    """All integer compares."""
    word = insn.word
    major = "cde"[(word >> 37) - 12]
    r3, c, ta = insn.field("r3"), word >> 12 & 1, word >> 33 & 1
    sources: tuple[int, ...] = (r3,)
    if insn.format == "A8":
        left = hex(insn.immediate("imm8") & 0xFFFFFFFFFFFFFFFF)
    elif insn.format == "A7":
        if insn.field("r2"):
            with e.predicated(insn.qp):
                e.illegal("a reserved field is not 0")
            return
        left = "0"
    else:
        left = e.gr(insn.field("r2"))
        sources = (insn.field("r2"), r3)
    if insn.format == "A7":
        operator = ((">", "<="), (">=", "<"))[ta][c]
        kind, text = _KINDS[major], _relation(e, insn, left, r3, "<", True)
    elif ta:
        operator = ("==", "!=")[c]
        kind, text = _KINDS[major], _relation(e, insn, left, r3, "=", False)
    else:
        operator = "==" if major == "e" else "<"
        kind = "unc" if c else ""
        text = _relation(e, insn, left, r3, "=" if major == "e" else "<", major == "c")
    compare(e, insn, text.format(operator), text.format(_OPPOSITE[operator]), kind, sources)


def parallel(e: Emitter, insn: SlotInsn) -> None:
    """Parallel operations of two registers."""
    r1, r2, r3 = _fields(insn)
    e.put(r1, f"PARALLEL[{name(insn)!r}]({e.gr(r2)}, {e.gr(r3)})", r2, r3)


def a10(e: Emitter, insn: SlotInsn) -> None:
    """`pshladd2`, pshradd2."""
    r1, r2, r3 = _fields(insn)
    count, left = insn.immediate("count2"), insn.word >> 29 & 15 == 4
    if count == 4:
        e.illegal("a reserved shift count")
        return
    e.put(r1, f"shift_add({e.gr(r2)}, {count}, {e.gr(r3)}, {left})", r2, r3)


def i1(e: Emitter, insn: SlotInsn) -> None:
    """`pmpyshr2`."""
    r1, r2, r3 = _fields(insn)
    count, unsigned = insn.immediate("count16"), insn.word >> 28 & 3 == 1
    e.put(r1, f"multiply_shift({e.gr(r2)}, {e.gr(r3)}, {count}, {unsigned})", r2, r3)


def i3(e: Emitter, insn: SlotInsn) -> None:
    """`mux1`."""
    kind, r2 = insn.immediate("mbt4"), insn.field("r2")
    if not mux1_known(kind):
        e.illegal("a reserved permutation")
        return
    e.put(insn.field("r1"), f"mux1({e.gr(r2)}, {kind})", r2)


def i4(e: Emitter, insn: SlotInsn) -> None:
    """`mux2`."""
    r2 = insn.field("r2")
    e.put(insn.field("r1"), f"mux2({e.gr(r2)}, {insn.immediate('mht8')})", r2)


def i5(e: Emitter, insn: SlotInsn) -> None:
    """`shr`, shr.u, shl and their parallel forms by a register."""
    r1, r2, r3 = _fields(insn)
    za, zb = insn.word >> 36 & 1, insn.word >> 33 & 1
    if insn.format == "I7":
        value, count, kind = e.gr(r2), e.gr(r3), "l"
    else:
        value, count = e.gr(r3), e.gr(r2)
        kind = "r" if insn.word >> 28 & 3 == 2 else "u"
    if not (za and zb):
        e.put(r1, f"parallel_shift({value}, {count}, {4 if za else 2}, {kind!r})", r2, r3)
    elif kind == "l":
        e.put(r1, f"{value} << c & {MASK} if (c := {count}) < 64 else 0", r2, r3)
    elif kind == "u":
        e.put(r1, f"{value} >> c if (c := {count}) < 64 else 0", r2, r3)
    else:
        signed = f"(({value} ^ {_SIGN}) - {_SIGN})"
        e.put(r1, f"{signed} >> (c if (c := {count}) < 64 else 63) & {MASK}", r2, r3)


def i6(e: Emitter, insn: SlotInsn) -> None:
    """Parallel shifts by an immediate."""
    r1, r2, r3 = _fields(insn)
    size = 4 if insn.word >> 36 & 1 else 2
    if insn.format == "I8":
        count = insn.immediate("ccount5")
        e.put(r1, f"parallel_shift({e.gr(r2)}, {count}, {size}, 'l')", r2)
        return
    kind = "r" if insn.word >> 28 & 3 == 3 else "u"
    e.put(r1, f"parallel_shift({e.gr(r3)}, {insn.immediate('count5')}, {size}, {kind!r})", r3)


def i9(e: Emitter, insn: SlotInsn) -> None:
    """`popcnt`, clz."""
    r1, _, r3 = _fields(insn)
    if insn.word >> 30 & 3 == 2:
        e.put(r1, f"({e.gr(r3)}).bit_count()", r3)
    else:
        e.put(r1, f"64 - ({e.gr(r3)}).bit_length()", r3)


def i10(e: Emitter, insn: SlotInsn) -> None:
    """`shrp`."""
    r1, r2, r3 = _fields(insn)
    count = insn.immediate("count6")
    e.put(r1, f"({e.gr(r2)} << 64 | {e.gr(r3)}) >> {count} & {MASK}", r2, r3)


def i11(e: Emitter, insn: SlotInsn) -> None:
    """`extr`, extr.u: bits that the field has beyond the register are signs or zeros."""
    r1, _, r3 = _fields(insn)
    at, length = insn.immediate("pos6"), insn.immediate("len6")
    length = min(length, 64 - at)
    mask = (1 << length) - 1
    value = f"{e.gr(r3)} >> {at}" if at else e.gr(r3)
    if at + length < 64:
        value = f"{value} & {mask:#x}"
    if insn.word >> 13 & 1 and length < 64:
        top = 1 << (length - 1)
        value = f"({value} ^ {top:#x}) - {top:#x} & {MASK}"
    e.put(r1, value, r3)


def _deposit(insn: SlotInsn, at: int, length: int) -> tuple[int, int]:
    """Position and mask of a deposit, not shifted."""
    return at, (1 << min(length, 64 - at)) - 1


def i12(e: Emitter, insn: SlotInsn) -> None:
    """`dep`.z."""
    at, mask = _deposit(insn, insn.immediate("cpos6c"), insn.immediate("len6"))
    r1, r2 = insn.field("r1"), insn.field("r2")
    if insn.format == "I13":
        e.put(r1, hex((insn.immediate("imm8") & mask) << at))
    elif at:
        e.put(r1, f"({e.gr(r2)} & {mask:#x}) << {at}", r2)
    else:
        e.put(r1, f"{e.gr(r2)} & {mask:#x}", r2)


def i14(e: Emitter, insn: SlotInsn) -> None:
    """`dep`."""
    r1, r2, r3 = _fields(insn)
    if insn.format == "I14":
        at, mask = _deposit(insn, insn.immediate("cpos6b"), insn.immediate("len6"))
        keep = ~(mask << at) & 0xFFFFFFFFFFFFFFFF
        bits = (insn.immediate("imm1") & mask) << at
        e.put(r1, f"{e.gr(r3)} & {keep:#x} | {bits:#x}", r3)
        return
    at, mask = _deposit(insn, insn.immediate("cpos6d"), insn.immediate("len4"))
    keep = ~(mask << at) & 0xFFFFFFFFFFFFFFFF
    e.put(r1, f"{e.gr(r3)} & {keep:#x} | ({e.gr(r2)} & {mask:#x}) << {at}", r2, r3)


def _test_kind(insn: SlotInsn) -> str:
    tb, ta, c = insn.word >> 36 & 1, insn.word >> 33 & 1, insn.word >> 12 & 1
    if not tb and not ta:
        return "unc" if c else ""
    return ("", "or", "and", "or.andcm")[tb << 1 | ta]


def i16(e: Emitter, insn: SlotInsn) -> None:
    """`tbit`, tnat, tf: the plain relation is "bit is zero", .nz its opposite."""
    r3, kind = insn.field("r3"), _test_kind(insn)
    sources: tuple[int, ...] = ()
    if insn.format == "I16":
        bit = f"{e.gr(r3)} >> {insn.immediate('pos6')} & 1"
        sources = (r3,)
    elif insn.format == "I17":
        bit = e.nat(r3) if e.nats else "0"
    else:
        bit = f"{0:d}"
    zero, one = f"({bit}) == 0", f"({bit}) != 0"
    if insn.word >> 12 & 1 and kind not in ("", "unc"):
        zero, one = one, zero
    compare(e, insn, zero, one, kind, sources)


def i29(e: Emitter, insn: SlotInsn) -> None:
    """Extensions and czx."""
    r1, _, r3 = _fields(insn)
    x6 = insn.word >> 27 & 63
    if x6 >= 0x18:
        size, left = (2 if x6 & 1 else 1), x6 < 0x1C
        e.put(r1, f"count_zero({e.gr(r3)}, {size}, {left})", r3)
        return
    bits = 8 << (x6 & 3)
    mask, top = (1 << bits) - 1, 1 << (bits - 1)
    value = f"{e.gr(r3)} & {mask:#x}"
    if x6 & 4:
        value = f"({value} ^ {top:#x}) - {top:#x} & {MASK}"
    e.put(r1, value, r3)


EMIT: Final[dict[str, Emit]] = {
    "A1": a1,
    "A2": a2,
    "A3": a3,
    "A4": a4,
    "A5": a5,
    "A6": a6,
    "A7": a6,
    "A8": a6,
    "A9": parallel,
    "A10": a10,
    "I1": i1,
    "I2": parallel,
    "I3": i3,
    "I4": i4,
    "I5": i5,
    "I6": i6,
    "I7": i5,
    "I8": i6,
    "I9": i9,
    "I10": i10,
    "I11": i11,
    "I12": i12,
    "I13": i12,
    "I14": i14,
    "I15": i14,
    "I16": i16,
    "I17": i16,
    "I30": i16,
    "I29": i29,
}
