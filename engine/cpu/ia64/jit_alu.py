"""LLVM text of integer instructions: formats A and I."""

from collections.abc import Callable
from typing import Final

from engine.arch.ia64.decode import SlotInsn
from engine.cpu.ia64.jit_code import JitCode, Unsupported, number
from engine.cpu.ia64.jit_words import PR

Emit = Callable[[JitCode, SlotInsn], None]
_LOW: Final = 0xFFFFFFFF


def put(c: JitCode, insn: SlotInsn, value: Callable[[], str]) -> None:
    """Write what `value` gives to the target register, which is checked first."""
    register = insn.field("r1")
    c.check_target(register)
    c.put(register, value())


def _pointer_add(c: JitCode, total: str, base: str) -> str:
    """The 4-byte pointer forms: bits 31:30 of the base become bits 62:61."""
    region = c.binary("shl", c.masked(base, 0xC0000000), "31")
    return c.binary("or", c.masked(total, _LOW), region)


def _logic(c: JitCode, left: str, right: str, which: int) -> str:
    if which == 1:
        return c.binary("and", left, c.binary("xor", right, "-1"))
    return c.binary(("and", "", "or", "xor")[which], left, right)


def a1(c: JitCode, insn: SlotInsn) -> None:
    """`add`, sub, addp4 and logic of two registers."""
    x4, x2b = insn.word >> 29 & 15, insn.word >> 27 & 3

    def value() -> str:
        a, b = c.gr(insn.field("r2")), c.gr(insn.field("r3"))
        if x4 == 0:
            total = c.binary("add", a, b)
            return c.binary("add", total, "1") if x2b else total
        if x4 == 1:
            total = c.binary("sub", a, b)
            return total if x2b else c.binary("sub", total, "1")
        if x4 == 2:
            return _pointer_add(c, c.binary("add", a, b), b)
        return _logic(c, a, b, x2b)

    put(c, insn, value)


def a2(c: JitCode, insn: SlotInsn) -> None:
    """`shladd`, shladdp4."""

    def value() -> str:
        b = c.gr(insn.field("r3"))
        shifted = c.binary("shl", c.gr(insn.field("r2")), str(insn.immediate("count2")))
        total = c.binary("add", shifted, b)
        return total if insn.word >> 29 & 15 == 4 else _pointer_add(c, total, b)

    put(c, insn, value)


def a3(c: JitCode, insn: SlotInsn) -> None:
    """`sub` and logic with an immediate first operand."""

    def value() -> str:
        left, right = number(insn.immediate("imm8")), c.gr(insn.field("r3"))
        if insn.word >> 29 & 15 == 9:
            return c.binary("sub", left, right)
        return _logic(c, left, right, insn.word >> 27 & 3)

    put(c, insn, value)


def a4(c: JitCode, insn: SlotInsn) -> None:
    """`adds`, addp4 immediate."""

    def value() -> str:
        b = c.gr(insn.field("r3"))
        total = c.binary("add", b, number(insn.immediate("imm14")))
        return total if insn.word >> 34 & 3 == 2 else _pointer_add(c, total, b)

    put(c, insn, value)


def a5(c: JitCode, insn: SlotInsn) -> None:
    """`addl`."""

    def value() -> str:
        return c.binary("add", c.gr(insn.field("r3a")), number(insn.immediate("imm22")))

    put(c, insn, value)


def compare(c: JitCode, insn: SlotInsn, condition: str, kind: str) -> None:
    """Write two predicates; `condition` is a bit, `kind` as `emitter.compare` has it.

    A NaT among what was compared clears both, or leaves both as they are.
    """
    first, second, qp = insn.field("p1"), insn.field("p2"), insn.qp
    if first == second:
        raise Unsupported
    one, two = (1 << first) & ~1, (1 << second) & ~1
    both = one | two
    old = c.load(PR)
    cleared = c.masked(old, ~both)
    if kind in ("", "unc"):
        bits = c.choose(condition, number(one), number(two))
        new = c.binary("or", cleared, bits)
        other = cleared if kind else old
    elif kind == "and":
        new, other = c.choose(condition, old, cleared), old
    elif kind == "or":
        new, other = c.choose(condition, c.binary("or", old, number(both)), old), old
    else:
        new, other = c.choose(condition, c.binary("or", cleared, number(one)), old), old
    if c.sources:
        nat = c.sources[0]
        for source in c.sources[1:]:
            nat = c.binary("or", nat, source)
        unknown = cleared if kind in ("", "unc", "and") else old
        new = c.choose(c.test("eq", nat, "0"), new, unknown)
    if qp:
        new = c.choose(c.predicate(qp), new, other)
    c.store(PR, new)


_KINDS: Final = {12: "and", 13: "or", 14: "or.andcm"}


def a6(c: JitCode, insn: SlotInsn) -> None:
    """All integer compares."""
    word = insn.word
    major, completer, ta = word >> 37, word >> 12 & 1, word >> 33 & 1
    kind = _KINDS[major]
    if insn.format == "A7":
        if insn.field("r2"):
            raise Unsupported
        left = "0"
        what = (("sgt", "sle"), ("sge", "slt"))[ta][completer]
    else:
        left = number(insn.immediate("imm8")) if insn.format == "A8" else c.gr(insn.field("r2"))
        if ta:
            what = ("eq", "ne")[completer]
        else:
            what = ("slt", "ult", "eq")[major - 12]
            kind = "unc" if completer else ""
    right = c.gr(insn.field("r3"))
    if word >> 34 & 1:
        left = c.op(f"trunc i64 {left} to i32")
        right = c.op(f"trunc i64 {right} to i32")
        condition = c.op(f"icmp {what} i32 {left}, {right}")
    else:
        condition = c.test(what, left, right)
    compare(c, insn, condition, kind)


def i5(c: JitCode, insn: SlotInsn) -> None:
    """`shr`, shr.u, shl by a register."""
    if not (insn.word >> 36 & 1 and insn.word >> 33 & 1):
        raise Unsupported

    def value() -> str:
        r2, r3 = c.gr(insn.field("r2")), c.gr(insn.field("r3"))
        operand, count = (r2, r3) if insn.format == "I7" else (r3, r2)
        few = c.test("ult", count, "64")
        low = c.masked(count, 63)
        if insn.format == "I7":
            return c.choose(few, c.binary("shl", operand, low), "0")
        if insn.word >> 28 & 3 == 2:
            return c.binary("ashr", operand, c.choose(few, low, "63"))
        return c.choose(few, c.binary("lshr", operand, low), "0")

    put(c, insn, value)


def i9(c: JitCode, insn: SlotInsn) -> None:
    """`popcnt`, clz."""

    def value() -> str:
        r3 = c.gr(insn.field("r3"))
        if insn.word >> 30 & 3 == 2:
            c.helpers.add("declare i64 @llvm.ctpop.i64(i64)")
            return c.op(f"call i64 @llvm.ctpop.i64(i64 {r3})")
        c.helpers.add("declare i64 @llvm.ctlz.i64(i64, i1)")
        return c.op(f"call i64 @llvm.ctlz.i64(i64 {r3}, i1 false)")

    put(c, insn, value)


def i10(c: JitCode, insn: SlotInsn) -> None:
    """`shrp`."""

    def value() -> str:
        high, low = c.gr(insn.field("r2")), c.gr(insn.field("r3"))
        c.helpers.add("declare i64 @llvm.fshr.i64(i64, i64, i64)")
        count = insn.immediate("count6")
        return c.op(f"call i64 @llvm.fshr.i64(i64 {high}, i64 {low}, i64 {count})")

    put(c, insn, value)


def i11(c: JitCode, insn: SlotInsn) -> None:
    """`extr`, extr.u."""
    at, length = insn.immediate("pos6"), insn.immediate("len6")
    length = min(length, 64 - at)

    def value() -> str:
        shifted = c.binary("shl", c.gr(insn.field("r3")), str(64 - at - length))
        how = "ashr" if insn.word >> 13 & 1 else "lshr"
        return c.binary(how, shifted, str(64 - length))

    put(c, insn, value)


def i12(c: JitCode, insn: SlotInsn) -> None:
    """`dep`.z."""
    at, length = insn.immediate("cpos6c"), insn.immediate("len6")
    mask = (1 << min(length, 64 - at)) - 1

    def value() -> str:
        if insn.format == "I13":
            return number((insn.immediate("imm8") & mask) << at)
        return c.binary("shl", c.masked(c.gr(insn.field("r2")), mask), str(at))

    put(c, insn, value)


def i14(c: JitCode, insn: SlotInsn) -> None:
    """`dep`."""
    if insn.format == "I14":
        at, length = insn.immediate("cpos6b"), insn.immediate("len6")
    else:
        at, length = insn.immediate("cpos6d"), insn.immediate("len4")
    mask = (1 << min(length, 64 - at)) - 1

    def value() -> str:
        kept = c.masked(c.gr(insn.field("r3")), ~(mask << at))
        if insn.format == "I14":
            return c.binary("or", kept, number((insn.immediate("imm1") & mask) << at))
        put = c.binary("shl", c.masked(c.gr(insn.field("r2")), mask), str(at))
        return c.binary("or", kept, put)

    put(c, insn, value)


def i16(c: JitCode, insn: SlotInsn) -> None:
    """`tbit`, tnat; tf of what is 0."""
    word = insn.word
    tb, ta, inverse = word >> 36 & 1, word >> 33 & 1, word >> 12 & 1
    kind = ("", "or", "and", "or.andcm")[tb << 1 | ta]
    zero = "true"
    if insn.format == "I17":
        zero = c.test("eq", c.nat(insn.field("r3")), "0")
    elif insn.format == "I16":
        bit = c.masked(c.gr(insn.field("r3")), 1 << insn.immediate("pos6"))
        zero = c.test("eq", bit, "0")
    if not kind:
        kind = "unc" if inverse else ""
    elif inverse:
        zero = c.op(f"xor i1 {zero}, true")
    compare(c, insn, zero, kind)


EMIT: Final[dict[str, Emit]] = {
    "A1": a1,
    "A2": a2,
    "A3": a3,
    "A4": a4,
    "A5": a5,
    "A6": a6,
    "A7": a6,
    "A8": a6,
    "I5": i5,
    "I7": i5,
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
}
