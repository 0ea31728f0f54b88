"""LLVM text of the ALAT: advanced loads, their checks, and stores that overlap them.

Entries lie in words (`jit_words`), which functions of `jit_runtime` see to; a filter tells most
stores that none is theirs.
"""

from typing import Final

from engine.arch.ia64.decode import SlotInsn
from engine.cpu.ia64.jit_code import Emit, JitCode
from engine.cpu.ia64.jit_value import number
from engine.cpu.ia64.jit_words import (
    ALAT_COUNT,
    ALAT_FILTER,
    ALAT_INSERT,
    ALAT_STORED,
    ALAT_TAKE,
    FLOAT_KEY,
    RRB_FR_WORD,
    RRB_GR_WORD,
    SOR_WORD,
    TOP,
)


def general_key(c: JitCode, register: int) -> str:
    """The number of a general register that no other frame's has."""
    if register < 32:
        return str(register)
    at, sor = str(register - 32), c.load(SOR_WORD)
    turned = c.binary("add", c.load(RRB_GR_WORD), at)
    wrapped = c.binary("sub", turned, sor)
    turned = c.choose(c.test("ult", turned, sor), turned, wrapped)
    place = c.choose(c.test("ult", at, sor), turned, at)
    return c.binary("add", c.binary("lshr", c.load(TOP), "3"), place)


def float_key(c: JitCode, register: int) -> str:
    """The number of a floating-point register that rotation does not change."""
    if register < 32:
        return str(register | FLOAT_KEY)
    turned = c.binary("add", c.load(RRB_FR_WORD), str(register - 32))
    wrapped = c.binary("sub", turned, "96")
    turned = c.choose(c.test("ult", turned, "96"), turned, wrapped)
    return c.binary("add", turned, number(FLOAT_KEY + 32))


def insert(c: JitCode, key: str, address: str, size: int) -> None:
    """An advanced load has been made."""
    function = c.op(f"load ptr, ptr {c.word(ALAT_INSERT)}")
    end = c.binary("add", address, str(size))
    c.emit(f"call void {function}(ptr %s, i64 {key}, i64 {address}, i64 {end})")


def take(c: JitCode, key: str, clear: bool) -> str:
    """Condition that a register has an entry, which goes if `clear`."""
    function = c.op(f"load ptr, ptr {c.word(ALAT_TAKE)}")
    held = c.op(f"call i64 {function}(ptr %s, i64 {key}, i64 {int(clear)})")
    return c.test("ne", held, "0")


def stored(c: JitCode, address: str, size: int) -> None:
    """An aligned store has been made."""
    bits = c.op(f"load volatile i64, ptr {c.word(ALAT_FILTER)}")
    found = c.binary("lshr", bits, c.masked(c.binary("lshr", address, "3"), 63))
    hit, on = c.name("overlap"), c.name("on")
    none = c.test("eq", c.masked(found, 3 if size > 8 else 1), "0")
    c.emit(f"br i1 {none}, label %{on}, label %{hit}")
    c.label(hit)
    function = c.op(f"load ptr, ptr {c.word(ALAT_STORED)}")
    end = c.binary("add", address, str(size))
    c.emit(f"call void {function}(ptr %s, i64 {address}, i64 {end})")
    c.emit(f"br label %{on}")
    c.label(on)


def forget_all(c: JitCode) -> None:
    """`invala`."""
    for word in (ALAT_COUNT, ALAT_FILTER):
        c.emit(f"store volatile i64 0, ptr {c.word(word)}")


def invalidate(c: JitCode, insn: SlotInsn) -> None:
    """`invala`.e."""
    if insn.format == "M26":
        take(c, general_key(c, insn.field("r1")), True)
    else:
        take(c, float_key(c, insn.field("f1")), True)


EMIT: Final[dict[str, Emit]] = {"M26": invalidate, "M27": invalidate}
