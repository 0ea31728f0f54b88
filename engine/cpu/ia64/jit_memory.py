"""LLVM text of loads, stores and semaphores to plain memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from engine.arch.ia64.decode import SlotInsn
from engine.arch.ia64.floatformats import BIAS, INTEGER_EXPONENT, NAN_EXPONENT
from engine.cpu.ia64.jit_alat import float_key, general_key, insert, stored, take
from engine.cpu.ia64.jit_code import Emit, JitCode
from engine.cpu.ia64.jit_value import Unsupported, number
from engine.cpu.ia64.jit_words import (
    APPLICATION,
    ENTRIES,
    FILL_READ,
    FILL_WRITE,
    READ_TABLE,
    WRITE_TABLE,
)
from engine.cpu.ia64.state import CCV, NATVAL, UNAT

_PLAIN, _S, _A, _SA, _BIAS, _ACQ, _FILL = range(7)
_CLR, _NC, _CLR_ACQ = 8, 9, 10
_CHECKS: Final = (_CLR, _NC, _CLR_ACQ)
_INSERTS: Final = (_A, _SA, _NC)
_KINDS: Final = (*range(7), *_CHECKS)
_FLOAT_KINDS: Final = (_PLAIN, _S, _A, _SA, _FILL, _CLR, _NC)
_FRACTION: Final = (1 << 52) - 1


def pointer(c: JitCode, address: str, size: int, write: bool) -> str:
    """The host's pointer to guest memory; Python sees to what is unaligned or refused."""
    if size > 1:
        c.leave_if(c.test("ne", c.masked(address, size - 1), "0"))
    page = c.binary("lshr", address, "12")
    mixed = c.binary("xor", page, c.binary("lshr", address, "55"))
    at = c.masked(mixed, ENTRIES - 1)
    table = c.word(WRITE_TABLE if write else READ_TABLE)
    entry = c.op(f"getelementptr [2 x i64], ptr {table}, i64 {at}")
    second = c.op(f"getelementptr i64, ptr {entry}, i64 1")
    tag = c.op(f"load i64, ptr {entry}")
    found = c.op(f"load i64, ptr {second}")
    known = c.test("eq", tag, page)
    begin, fill, filled = c.name("look"), c.name("fill"), c.name("filled")
    c.emit(f"br label %{begin}")
    c.label(begin)
    c.emit(f"br i1 {known}, label %{filled}, label %{fill}")
    with c.aside(fill):
        function = c.op(f"load ptr, ptr {c.word(FILL_WRITE if write else FILL_READ)}")
        made = c.op(f"call i64 {function}(i64 {page})")
        c.leave_if(c.test("eq", made, "0"))
        last = c.name("made")
        c.emit(f"br label %{last}")
        c.label(last)
        c.emit(f"br label %{filled}")
    c.label(filled)
    delta = c.op(f"phi i64 [ {found}, %{begin} ], [ {made}, %{last} ]")
    host = c.binary("add", address, delta)
    return c.op(f"inttoptr i64 {host} to ptr")


def read(c: JitCode, where: str, size: int) -> str:
    """A load, zero-extended."""
    kind = f"i{8 * size}"
    value = c.op(f"load {kind}, ptr {where}, align 1")
    return value if size == 8 else c.op(f"zext {kind} {value} to i64")


def write(c: JitCode, where: str, size: int, value: str) -> None:
    """A store."""
    kind = f"i{8 * size}"
    if size < 8:
        value = c.op(f"trunc i64 {value} to {kind}")
    c.emit(f"store {kind} {value}, ptr {where}, align 1")


def _increment(c: JitCode, insn: SlotInsn, address: str, immediate: str) -> None:
    """The base register of the post-increment forms, which has been checked."""
    r3 = insn.field("r3")
    c.put(r3, c.binary("add", address, number(insn.immediate(immediate))))


def _check_increment(c: JitCode, r1: int, r3: int) -> None:
    if r1 == r3:
        raise Unsupported
    c.check_target(r3)


@contextmanager
def _unless_held(
    c: JitCode, kind: int, key: Callable[[JitCode, int], str], register: int
) -> Iterator[None]:
    """The load itself, emitted inside: a check load with an entry does nothing."""
    if kind not in _CHECKS:
        yield
        return
    held = take(c, key(c, register), kind != _NC)
    with c.when(c.op(f"xor i1 {held}, true")):
        yield


def load(c: JitCode, insn: SlotInsn) -> None:
    """`ld1` to ld8: plain, speculative, advanced, checks, and with a NaT bit."""
    word = insn.word
    r1, r3 = insn.field("r1"), insn.field("r3")
    kind, size = word >> 32 & 15, 1 << (word >> 30 & 3)
    if kind not in _KINDS or (insn.format == "M1" and word >> 27 & 1):
        raise Unsupported
    c.check_target(r1)
    updates = insn.format in ("M2", "M3")
    if updates:
        _check_increment(c, r1, r3)
    address = c.gr(r3)
    by = c.gr(insn.field("r2")) if insn.format == "M2" else ""
    with _unless_held(c, kind, general_key, r1):
        where = pointer(c, address, size, False)
        bit = "0"
        if kind == _FILL:
            nats = c.load(APPLICATION[UNAT])
            bit = c.masked(c.binary("lshr", nats, _slot(c, address)), 1)
            if not c.nats:
                c.leave_if(c.test("ne", bit, "0"))
        c.put(r1, read(c, where, size), bit)
        if kind in _INSERTS:
            insert(c, general_key(c, r1), address, size)
    if insn.format == "M3":
        _increment(c, insn, address, "imm9b")
    elif updates:
        c.put(r3, c.binary("add", address, by))


def _slot(c: JitCode, address: str) -> str:
    """Which bit of ar.unat belongs to an address."""
    return c.masked(c.binary("lshr", address, "3"), 63)


def store(c: JitCode, insn: SlotInsn) -> None:
    """`st1` to st8, st8.spill."""
    word = insn.word
    r3, size = insn.field("r3"), 1 << (word >> 30 & 3)
    if insn.format == "M4" and word >> 27 & 1:
        raise Unsupported
    if insn.format == "M5":
        c.check_target(r3)
    spills, r2 = word >> 30 & 63 == 0x3B, insn.field("r2")
    address, value = c.gr(r3), c.value(r2) if spills else c.gr(r2)
    write(c, pointer(c, address, size, True), size, value)
    stored(c, address, size)
    if spills:
        slot = _slot(c, address)
        bit = c.binary("xor", c.binary("shl", "1", slot), "-1")
        cleared = c.binary("and", c.load(APPLICATION[UNAT]), bit)
        c.store(APPLICATION[UNAT], c.binary("or", cleared, c.binary("shl", c.nat(r2), slot)))
    if insn.format == "M5":
        _increment(c, insn, address, "imm9a")


def semaphore(c: JitCode, insn: SlotInsn) -> None:
    """`cmpxchg`, xchg, fetchadd."""
    word = insn.word
    x6, r1 = word >> 30 & 63, insn.field("r1")
    size = 1 << (x6 & 3)
    if insn.format == "M16" and x6 >= 0x20:
        raise Unsupported
    c.check_target(r1)
    address = c.gr(insn.field("r3"))
    if insn.format == "M17":
        size = 4 if x6 & 3 == 2 else 8
    value = c.gr(insn.field("r2")) if insn.format == "M16" else ""
    pointer(c, address, size, False)
    where = pointer(c, address, size, True)
    old = read(c, where, size)
    if insn.format == "M17":
        write(c, where, size, c.binary("add", old, number(insn.immediate("inc3"))))
        stored(c, address, size)
    elif x6 >> 2 == 2:
        write(c, where, size, value)
        stored(c, address, size)
    else:
        with c.when(c.test("eq", old, c.load(APPLICATION[CCV]))):
            write(c, where, size, value)
            stored(c, address, size)
    c.put(r1, old)


def prefetch(c: JitCode, insn: SlotInsn) -> None:
    """`lfetch`: only .fault forms can fault."""
    r3 = insn.field("r3")
    if insn.format != "M13":
        c.check_target(r3)
    address = c.gr(r3)
    if insn.word >> 31 & 1:
        pointer(c, address, 1, False)
    if insn.format == "M15":
        _increment(c, insn, address, "imm9b")
    elif insn.format == "M14":
        c.put(r3, c.binary("add", address, c.gr(insn.field("r2"))))


# -- floating point -------------------------------------------------------------------------


def from_memory(c: JitCode, bits: str, double: bool) -> tuple[str, str]:
    """A single or double to the format of registers."""
    size, width, bias = (64, 11, 1023) if double else (32, 8, 127)
    fraction_bits = size - 1 - width
    most = (1 << width) - 1
    sign = c.masked(c.binary("lshr", bits, str(size - 18)), 1 << 17)
    exponent = c.masked(c.binary("lshr", bits, str(fraction_bits)), most)
    fraction = c.binary("shl", bits, str(64 - fraction_bits))
    significand = c.binary("lshr", fraction, "1")
    zero = c.test("eq", exponent, "0")
    leading = c.choose(zero, "0", number(1 << 63))
    full = c.binary("or", significand, leading)
    usual = c.binary("add", exponent, number(BIAS - bias))
    nan = c.choose(c.test("eq", exponent, str(most)), number(NAN_EXPONENT), usual)
    nothing = c.test("eq", fraction, "0")
    small = c.choose(nothing, "0", number(BIAS - bias + 1))
    return full, c.binary("or", sign, c.choose(zero, small, nan))


def to_memory(c: JitCode, significand: str, exponent: str, double: bool) -> str:
    """The bits that are stored, without rounding."""
    width, fraction_bits = (11, 52) if double else (8, 23)
    high, low = (6, 0x3FF) if double else (9, 0x7F)
    sign = c.masked(c.binary("shl", exponent, str(width + fraction_bits - 17)),
                    1 << width + fraction_bits)  # fmt: skip
    top = c.masked(c.binary("lshr", exponent, str(high)), low + 1)
    usual = c.binary("or", top, c.masked(exponent, low))
    nan = c.test("eq", c.masked(exponent, NAN_EXPONENT), number(NAN_EXPONENT))
    unusual = c.choose(nan, number(2 * low + 1), "0")
    field = c.choose(c.test("slt", significand, "0"), usual, unusual)
    shifted = c.binary("lshr", significand, str(63 - fraction_bits))
    fraction = c.masked(shifted, (1 << fraction_bits) - 1)
    whole = c.binary("or", c.binary("shl", field, str(fraction_bits)), fraction)
    return c.binary("or", sign, whole)


def is_natval(c: JitCode, significand: str, exponent: str) -> str:
    """Condition that a floating-point register is a NaTVal."""
    there = c.test("eq", exponent, number(NATVAL[1]))
    return c.op(f"and i1 {there}, {c.test('eq', significand, '0')}")


def load_float(c: JitCode, insn: SlotInsn) -> None:
    """`ldfs`, ldfd, ldf8 of all kinds, and ldf.fill."""
    word = insn.word
    f1, r3 = insn.field("f1"), insn.field("r3")
    kind, which = word >> 32 & 15, word >> 30 & 3
    if f1 < 2 or kind not in _FLOAT_KINDS or (kind != _FILL and not which):
        raise Unsupported
    if insn.format != "M6":
        c.check_target(r3)
    address = c.gr(r3)
    by = c.gr(insn.field("r2")) if insn.format == "M7" else ""
    with _unless_held(c, kind, float_key, f1):
        if kind == _FILL:
            where = pointer(c, address, 16, False)
            second = c.op(f"getelementptr i8, ptr {where}, i64 8")
            significand = read(c, where, 8)
            exponent = c.masked(read(c, second, 8), 0x3FFFF)
        else:
            size = 4 if which == 2 else 8
            bits = read(c, pointer(c, address, size, False), size)
            if which == 1:
                significand, exponent = bits, number(INTEGER_EXPONENT)
            else:
                significand, exponent = from_memory(c, bits, which == 3)
        c.put_float(f1, significand, exponent)
        if kind in _INSERTS:
            insert(c, float_key(c, f1), address, size)
    if kind in _CHECKS:
        c.written_half(f1)
    if insn.format == "M8":
        _increment(c, insn, address, "imm9b")
    elif insn.format == "M7":
        c.put(r3, c.binary("add", address, by))


def store_float(c: JitCode, insn: SlotInsn) -> None:
    """`stfs`, stfd, stf8 and stf.spill."""
    word = insn.word
    r3, which = insn.field("r3"), word >> 30 & 3
    spill = word >> 30 & 63 == 0x3B
    if not spill and not which:
        raise Unsupported
    if insn.format == "M10":
        c.check_target(r3)
    address = c.gr(r3)
    significand, exponent = c.fr(insn.field("f2"))
    if spill:
        where = pointer(c, address, 16, True)
        write(c, where, 8, significand)
        write(c, c.op(f"getelementptr i8, ptr {where}, i64 8"), 8, exponent)
        stored(c, address, 16)
    else:
        c.leave_if(is_natval(c, significand, exponent))
        size = 4 if which == 2 else 8
        where = pointer(c, address, size, True)
        value = significand if which == 1 else to_memory(c, significand, exponent, which == 3)
        write(c, where, size, value)
        stored(c, address, size)
    if insn.format == "M10":
        _increment(c, insn, address, "imm9a")


EMIT: Final[dict[str, Emit]] = {
    "M1": load,
    "M2": load,
    "M3": load,
    "M4": store,
    "M5": store,
    "M6": load_float,
    "M7": load_float,
    "M8": load_float,
    "M9": store_float,
    "M10": store_float,
    "M13": prefetch,
    "M14": prefetch,
    "M15": prefetch,
    "M16": semaphore,
    "M17": semaphore,
}
