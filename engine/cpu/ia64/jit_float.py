"""LLVM text of floating-point instructions; what is not ordinary numbers goes to Python."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from engine.arch.ia64.decode import SlotInsn
from engine.arch.ia64.floatformats import BIAS, INTEGER_EXPONENT, NAN_EXPONENT
from engine.cpu.ia64.jit_code import Emit, JitCode
from engine.cpu.ia64.jit_memory import from_memory, is_natval, to_memory
from engine.cpu.ia64.jit_value import Unsupported, number
from engine.cpu.ia64.jit_words import APPLICATION, FUSED, PR
from engine.cpu.ia64.state import FPSR, NATVAL

_FPSR = APPLICATION[FPSR]
Pair = tuple[str, str]
"""Significand; sign and exponent."""


@contextmanager
def ordinary(c: JitCode, condition: str) -> Iterator[None]:
    """Code for ordinary operands, emitted inside; Python executes others' instruction."""
    usual, unusual, after = c.name("usual"), c.name("unusual"), c.name("after")
    c.emit(f"br i1 {condition}, label %{usual}, label %{unusual}")
    with c.aside(unusual):
        c.assist()
        c.emit(f"br label %{after}")
    c.label(usual)
    yield
    c.emit(f"br label %{after}")
    c.label(after)


def _all(c: JitCode, *conditions: str) -> str:
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = c.op(f"and i1 {whole}, {condition}")
    return whole


def _exponent(c: JitCode, value: Pair) -> str:
    return c.masked(value[1], NAN_EXPONENT)


def _sign(c: JitCode, value: Pair) -> str:
    return c.binary("lshr", value[1], "17")


def _normal(c: JitCode, value: Pair) -> str:
    """A number with its integer bit set, and an exponent that says its power itself."""
    less = c.binary("sub", _exponent(c, value), "1")
    finite = c.test("ult", less, number(NAN_EXPONENT - 1))
    return _all(c, finite, c.test("slt", value[0], "0"))


def _number(c: JitCode, value: Pair) -> str:
    """A number that is normal or a plain zero."""
    bits = c.binary("or", value[0], _exponent(c, value))
    return c.op(f"or i1 {_normal(c, value)}, {c.test('eq', bits, '0')}")


def _no_natvals(c: JitCode, *values: Pair) -> str:
    found = [c.op(f"xor i1 {is_natval(c, *value)}, true") for value in values]
    return _all(c, *found)


def fused(c: JitCode, insn: SlotInsn) -> None:
    """`fma`, fms, fnma; Python does the parallel forms."""
    major, x = insn.word >> 37, insn.word >> 36 & 1
    f1 = insn.field("f1")
    if f1 < 2 or (major & 1 and x):
        raise Unsupported
    form = 2 if major & 1 else x
    signs, sf = (0, 2, 1)[(major - 8) // 2], insn.word >> 34 & 3
    what = form | signs << 2 | (insn.field("f2") == 0) << 4 | sf << 5
    x3, y4, z2 = (c.fr(insn.field(part)) for part in ("f3", "f4", "f2"))
    function = c.op(f"load ptr, ptr {c.word(FUSED)}")
    operands = ", ".join(f"i64 {word}" for value in (x3, y4, z2) for word in value)
    made = c.op(f"call {{i64, i64, i64}} {function}({operands}, i64 {c.load(_FPSR)}, i64 {what})")
    parts = [c.op(f"extractvalue {{i64, i64, i64}} {made}, {at}") for at in range(3)]
    with ordinary(c, c.test("ne", parts[2], "-1")):
        c.put_float(f1, parts[0], parts[1])
        c.store(_FPSR, parts[2])


def multiply(c: JitCode, insn: SlotInsn) -> None:
    """`xma`."""
    which = insn.word >> 34 & 3
    if insn.field("f1") < 2 or which == 1:
        raise Unsupported
    x, y, z = (c.fr(insn.field(part)) for part in ("f3", "f4", "f2"))
    with ordinary(c, _no_natvals(c, x, y, z)):
        if which == 0:
            total = c.binary("add", c.binary("mul", x[0], y[0]), z[0])
        else:
            how = "sext" if which == 3 else "zext"
            left = c.op(f"{how} i64 {x[0]} to i128")
            right = c.op(f"{how} i64 {y[0]} to i128")
            product = c.op(f"mul i128 {left}, {right}")
            wide = c.op(f"add i128 {product}, {c.op(f'zext i64 {z[0]} to i128')}")
            total = c.op(f"trunc i128 {c.op(f'lshr i128 {wide}, 64')} to i64")
        c.put_float(insn.field("f1"), total, number(INTEGER_EXPONENT))


def merge(c: JitCode, insn: SlotInsn) -> None:
    """`fmerge`: moves, absolute values and the like; Python does the others."""
    x6, f1 = insn.word >> 27 & 63, insn.field("f1")
    if insn.word >> 37 or x6 not in (0x10, 0x11, 0x12) or f1 < 2:
        raise Unsupported
    x, y = c.fr(insn.field("f2")), c.fr(insn.field("f3"))
    with ordinary(c, _no_natvals(c, x, y)):
        if x6 == 0x12:
            high = x[1]
        else:
            sign = c.masked(x[1], 1 << 17)
            if x6 == 0x11:
                sign = c.binary("xor", sign, number(1 << 17))
            high = c.binary("or", sign, c.masked(y[1], NAN_EXPONENT))
        c.put_float(f1, y[0], high)


def compare(c: JitCode, insn: SlotInsn) -> None:
    """`fcmp`."""
    word, first, second = insn.word, insn.field("p1"), insn.field("p2")
    if first == second:
        raise Unsupported
    relation = ("eq", "sle", "slt", "")[(word >> 36 & 1) << 1 | word >> 33 & 1]
    x, y = c.fr(insn.field("f2")), c.fr(insn.field("f3"))
    with ordinary(c, _all(c, _number(c, x), _number(c, y))):
        keys = []
        for value in (x, y):
            high = c.op(f"zext i64 {_exponent(c, value)} to i128")
            low = c.op(f"zext i64 {value[0]} to i128")
            key = c.op(f"or i128 {c.op(f'shl i128 {high}, 64')}, {low}")
            negative = c.test("ne", _sign(c, value), "0")
            opposite = c.op(f"sub i128 0, {key}")
            keys.append(c.op(f"select i1 {negative}, i128 {opposite}, i128 {key}"))
        found = c.op(f"icmp {relation} i128 {keys[0]}, {keys[1]}") if relation else "false"
        one, two = (1 << first) & ~1, (1 << second) & ~1
        old = c.load(PR)
        cleared = c.masked(old, ~(one | two))
        new = c.binary("or", cleared, c.choose(found, number(one), number(two)))
        if insn.qp:
            new = c.choose(c.predicate(insn.qp), new, cleared if word >> 12 & 1 else old)
        c.store(PR, new)


def reciprocal(c: JitCode, insn: SlotInsn) -> None:
    """`frcpa`."""
    f1, p2 = insn.field("f1"), insn.field("p2")
    if insn.word >> 37 or f1 < 2:
        raise Unsupported
    x, y = c.fr(insn.field("f2")), c.fr(insn.field("f3"))
    exponent = c.binary("sub", number(2 * BIAS - 1), _exponent(c, y))
    fits = c.test("sgt", exponent, "0")
    active = c.predicate(insn.qp)
    with ordinary(c, _all(c, _normal(c, x), _normal(c, y), fits, active)):
        index = c.masked(c.binary("lshr", y[0], "55"), 255)
        by = c.binary("add", c.binary("shl", index, "1"), "513")
        above = c.binary("add", by, str(1 << 21))
        quotient = c.binary("udiv", above, c.binary("shl", by, "1"))
        sign = c.masked(y[1], 1 << 17)
        c.put_float(f1, c.binary("shl", quotient, "53"), c.binary("or", sign, exponent))
        if p2:
            c.store(PR, c.binary("or", c.load(PR), number(1 << p2)))


def from_integer(c: JitCode, insn: SlotInsn) -> None:
    """`fcvt`.xf."""
    f1, x = insn.field("f1"), c.fr(insn.field("f2"))
    if f1 < 2:
        raise Unsupported
    with ordinary(c, _no_natvals(c, x)):
        negative = c.test("slt", x[0], "0")
        value = c.choose(negative, c.binary("sub", "0", x[0]), x[0])
        zero = c.test("eq", value, "0")
        shift = c.intrinsic("llvm.ctlz.i64", "i64", ("i64", value), ("i1", "false"))
        shift = c.masked(shift, 63)
        exponent = c.binary("sub", number(INTEGER_EXPONENT), shift)
        exponent = c.choose(zero, "0", exponent)
        sign = c.choose(negative, number(1 << 17), "0")
        c.put_float(f1, c.binary("shl", value, shift), c.binary("or", sign, exponent))


def to_integer(c: JitCode, insn: SlotInsn) -> None:
    """`fcvt`.fx.trunc and fcvt.fxu.trunc of what fits; Python does the others."""
    word, f1 = insn.word, insn.field("f1")
    unsigned, truncates, sf = word >> 27 & 1, word >> 28 & 1, word >> 34 & 3
    if word >> 37 or not truncates or f1 < 2:
        raise Unsupported
    x = c.fr(insn.field("f2"))
    power = c.binary("sub", _exponent(c, x), number(BIAS))
    fpsr = c.load(_FPSR)
    small = c.test("slt", power, "0")
    kept = c.binary("lshr", x[0], c.masked(c.binary("sub", "63", power), 63))
    rest = c.binary("shl", c.binary("shl", x[0], c.masked(power, 63)), "1")
    whole = c.choose(small, "0", kept)
    rest = c.choose(small, x[0], rest)
    bit = 1 << 5 + 13 + 13 * sf
    inexact = c.test("ne", rest, "0")
    masked = c.test("ne", c.masked(fpsr, 32), "0")
    recorded = c.op(f"or i1 {masked}, {c.test('eq', rest, '0')}")
    fits = c.test("slt", power, "64" if unsigned else "63")
    negative = c.test("ne", _sign(c, x), "0")
    if unsigned:
        fits = _all(c, fits, c.op(f"xor i1 {negative}, true"))
    else:
        least = c.binary("xor", number(1 << 63), x[0])
        least = c.test("eq", c.binary("or", least, c.binary("xor", power, "63")), "0")
        fits = c.op(f"or i1 {fits}, {_all(c, negative, least)}")
    conditions = [_number(c, x), fits, recorded]
    with ordinary(c, _all(c, *conditions)):
        opposite = c.binary("sub", "0", whole)
        c.put_float(f1, c.choose(negative, opposite, whole), number(INTEGER_EXPONENT))
        c.store(_FPSR, c.binary("or", fpsr, c.choose(inexact, number(bit), "0")))


def setf(c: JitCode, insn: SlotInsn) -> None:
    """`setf`: a NaT becomes a NaTVal."""
    value, which = c.value(insn.field("r2")), insn.word >> 30 & 3
    if which == 0:
        significand, exponent = value, number(INTEGER_EXPONENT)
    elif which == 1:
        significand, exponent = number(1 << 63), c.masked(value, 0x3FFFF)
    else:
        bits = c.masked(value, 0xFFFFFFFF) if which == 2 else value
        significand, exponent = from_memory(c, bits, which == 3)
    if c.nats and insn.field("r2"):
        known = c.test("eq", c.nat(insn.field("r2")), "0")
        significand = c.choose(known, significand, number(NATVAL[2]))
        exponent = c.choose(known, exponent, number(NATVAL[1]))
    c.put_float(insn.field("f1"), significand, exponent)


def getf(c: JitCode, insn: SlotInsn) -> None:
    """`getf`: a NaTVal becomes a NaT; Python makes the first one."""
    r1, which = insn.field("r1"), insn.word >> 30 & 3
    c.check_target(r1)
    significand, exponent = c.fr(insn.field("f2"))
    found = is_natval(c, significand, exponent)
    if not c.nats:
        c.leave_if(found)
    nat = c.op(f"zext i1 {found} to i64")
    if which == 0:
        c.put(r1, significand, nat)
    elif which == 1:
        c.put(r1, exponent, nat)
    else:
        c.put(r1, to_memory(c, significand, exponent, which == 3), nat)


EMIT: Final[dict[str, Emit]] = {
    "F1": fused,
    "F2": multiply,
    "F4": compare,
    "F6": reciprocal,
    "F9": merge,
    "F10": to_integer,
    "F11": from_integer,
    "M18": setf,
    "M19": getf,
}
