"""LLVM text of operations on the elements of general registers."""

from collections.abc import Sequence
from typing import Final

from engine.arch.ia64.decode import SlotInsn
from engine.cpu.ia64.integers import mux1_known, mux1_places
from engine.cpu.ia64.jit_alu import Emit, put
from engine.cpu.ia64.jit_code import JitCode, Unsupported


def _lanes(c: JitCode, value: str, size: int) -> str:
    return c.op(f"bitcast i64 {value} to <{8 // size} x i{8 * size}>")


def _whole(c: JitCode, value: str, size: int) -> str:
    return c.op(f"bitcast <{8 // size} x i{8 * size}> {value} to i64")


def a9(c: JitCode, insn: SlotInsn) -> None:
    """`padd`, psub without saturation, pcmp; Python does the others."""
    word = insn.word
    size = 4 if word >> 36 & 1 else 1 + (word >> 33 & 1)
    x4, x2b = word >> 29 & 15, word >> 27 & 3
    kind = f"<{8 // size} x i{8 * size}>"
    if (x4, x2b) not in ((0, 0), (1, 0), (9, 0), (9, 1)):
        raise Unsupported

    def value() -> str:
        left = _lanes(c, c.gr(insn.field("r2")), size)
        right = _lanes(c, c.gr(insn.field("r3")), size)
        if x4 < 2:
            return _whole(c, c.op(f"{('add', 'sub')[x4]} {kind} {left}, {right}"), size)
        found = c.op(f"icmp {('eq', 'sgt')[x2b]} {kind} {left}, {right}")
        return _whole(c, c.op(f"sext <{8 // size} x i1> {found} to {kind}"), size)

    put(c, insn, value)


def i6(c: JitCode, insn: SlotInsn) -> None:
    """Parallel shifts by an immediate."""
    size = 4 if insn.word >> 36 & 1 else 2
    bits = 8 * size
    left = insn.format == "I8"
    count = insn.immediate("ccount5" if left else "count5")
    signed = not left and insn.word >> 28 & 3 == 3

    def value() -> str:
        operand = c.gr(insn.field("r2" if left else "r3"))
        if count >= bits and not signed:
            return "0"
        lanes = ", ".join([f"i{bits} {min(count, bits - 1)}"] * (8 // size))
        how = "shl" if left else "ashr" if signed else "lshr"
        shifted = c.op(f"{how} <{8 // size} x i{bits}> {_lanes(c, operand, size)}, <{lanes}>")
        return _whole(c, shifted, size)

    put(c, insn, value)


def _chosen(c: JitCode, first: str, second: str, size: int, places: Sequence[int]) -> str:
    """Elements of two registers, numbered from the lowest of the first one."""
    count = 8 // size
    kind = f"<{count} x i{8 * size}>"
    left, right = _lanes(c, first, size), _lanes(c, second, size)
    order = ", ".join(f"i32 {place}" for place in places)
    picked = c.op(f"shufflevector {kind} {left}, {kind} {right}, <{count} x i32> <{order}>")
    return _whole(c, picked, size)


def i2(c: JitCode, insn: SlotInsn) -> None:
    """`mix` and unpack; Python does the others."""
    word = insn.word
    x2a, x2b, x2c = word >> 34 & 3, word >> 28 & 3, word >> 30 & 3
    if x2a != 2 or (x2b, x2c) not in ((0, 2), (2, 2), (0, 1), (2, 1)):
        raise Unsupported
    size = 4 if word >> 36 & 1 else 1 + (word >> 33 & 1)
    count = 8 // size
    if x2c == 2:
        starts = range(int(x2b == 2), count, 2)
    else:
        starts = range(0 if x2b == 2 else count // 2, count if x2b == 0 else count // 2)
    places = [place for at in starts for place in (count + at, at)]
    put(
        c,
        insn,
        lambda: _chosen(c, c.gr(insn.field("r2")), c.gr(insn.field("r3")), size, places),
    )


def i3(c: JitCode, insn: SlotInsn) -> None:
    """`mux1`."""
    kind = insn.immediate("mbt4")
    if not mux1_known(kind):
        raise Unsupported
    put(c, insn, lambda: _chosen(c, r2 := c.gr(insn.field("r2")), r2, 1, mux1_places(kind)))


def i4(c: JitCode, insn: SlotInsn) -> None:
    """`mux2`."""
    kind = insn.immediate("mht8")
    places = [kind >> 2 * at & 3 for at in range(4)]
    put(c, insn, lambda: _chosen(c, r2 := c.gr(insn.field("r2")), r2, 2, places))


def _first_zero(c: JitCode, value: str, size: int, left: bool) -> str:
    """Index of the first element that is 0, from the highest one if `left`, else their number."""
    count = 8 // size
    what = "ctlz" if left else "cttz"
    c.helpers.add(f"declare i{count} @llvm.{what}.i{count}(i{count}, i1)")
    kind = f"<{count} x i{8 * size}>"
    found = c.op(f"icmp eq {kind} {_lanes(c, value, size)}, zeroinitializer")
    bits = c.op(f"bitcast <{count} x i1> {found} to i{count}")
    index = c.op(f"call i{count} @llvm.{what}.i{count}(i{count} {bits}, i1 false)")
    return c.op(f"zext i{count} {index} to i64")


def i29(c: JitCode, insn: SlotInsn) -> None:
    """Extensions; where the first zero element is."""
    x6 = insn.word >> 27 & 63
    bits = 8 << (x6 & 3)
    if x6 >= 0x18:
        put(c, insn, lambda: _first_zero(c, c.gr(insn.field("r3")), bits // 8, x6 < 0x1C))
        return

    def value() -> str:
        narrow = c.op(f"trunc i64 {c.gr(insn.field('r3'))} to i{bits}")
        return c.op(f"{'sext' if x6 & 4 else 'zext'} i{bits} {narrow} to i64")

    put(c, insn, value)


EMIT: Final[dict[str, Emit]] = {
    "A9": a9,
    "I2": i2,
    "I3": i3,
    "I4": i4,
    "I6": i6,
    "I8": i6,
    "I29": i29,
}
