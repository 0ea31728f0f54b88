"""LLVM text of the register stack and of rotation."""

from typing import Final

from engine.arch.ia64.decode import SlotInsn
from engine.cpu.ia64.jit_code import JitCode
from engine.cpu.ia64.jit_value import Unsupported, number
from engine.cpu.ia64.jit_words import (
    APPLICATION,
    BOTTOM,
    LIMIT,
    LOW,
    NATS,
    PR,
    RRB_FR_WORD,
    RRB_GR_WORD,
    RRB_PR_WORD,
    SOF_WORD,
    SOL_WORD,
    SOR_WORD,
    TOP,
    TURN,
)
from engine.cpu.ia64.state import EC, PFM, PFS

_EC, _PFS = APPLICATION[EC], APPLICATION[PFS]
_ROTATING: Final = (1 << 48) - 1
_MOVE: Final = "declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)"
_SET: Final = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
_COPY: Final = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"


def rotate(c: JitCode) -> None:
    """One rotation of all views."""
    sor = c.load(SOR_WORD)
    with c.when(c.test("ne", sor, "0")):
        _turn_general(c, sor)
        _step(c, RRB_GR_WORD, sor)
    _turn_predicates(c, "1")
    for word, count in ((TURN, 96), (RRB_FR_WORD, 96), (RRB_PR_WORD, 48)):
        _step(c, word, str(count))


def _turn_general(c: JitCode, sor: str) -> None:
    """The last of the rotating registers becomes the first, the others move up."""
    c.helpers.add(_MOVE)
    last = c.binary("sub", sor, "1")
    size = c.binary("shl", last, "3")
    for kind in (0, NATS) if c.nats else (0,):
        first, second = c.stacked(32 + kind), c.stacked(33 + kind)
        at = c.op(f"getelementptr i64, ptr {first}, i64 {last}")
        moved = c.op(f"load i64, ptr {at}")
        c.emit(
            f"call void @llvm.memmove.p0.p0.i64(ptr align 8 {second}, ptr align 8 {first},"
            f" i64 {size}, i1 false)"
        )
        c.emit(f"store i64 {moved}, ptr {first}")


def _forget_nats(c: JitCode, top: str, first: int | str, size: int | str) -> None:
    """Words of a frame, from one on, say that no register is a NaT."""
    if c.nats:
        c.helpers.add(_SET)
        at = c.op(f"getelementptr i64, ptr {top}, i64 {NATS}")
        at = c.op(f"getelementptr i64, ptr {at}, i64 {first}")
        c.emit(f"call void @llvm.memset.p0.i64(ptr align 8 {at}, i8 0, i64 {size}, i1 false)")


def _step(c: JitCode, word: int, size: str) -> None:
    old = c.load(word)
    start = c.choose(c.test("eq", old, "0"), size, old)
    c.store(word, c.binary("sub", start, "1"))


def turned(c: JitCode, rotating: str, by: str) -> str:
    """48 bits rotated to the left."""
    up = c.binary("shl", rotating, by)
    down = c.binary("lshr", rotating, c.binary("sub", "48", by))
    return c.masked(c.binary("or", up, down), _ROTATING)


def _turn_predicates(c: JitCode, by: str) -> None:
    pr = c.load(PR)
    rotating = turned(c, c.binary("lshr", pr, "16"), by)
    c.store(PR, c.binary("or", c.masked(pr, 0xFFFF), c.binary("shl", rotating, "16")))


def rotated(c: JitCode) -> str:
    """Condition that any rename base is not 0."""
    bases = [c.load(word) for word in (RRB_GR_WORD, RRB_FR_WORD, RRB_PR_WORD)]
    any_two = c.binary("or", bases[0], bases[1])
    return c.test("ne", c.binary("or", any_two, bases[2]), "0")


def enter_frame(c: JitCode) -> None:
    """A taken call: the caller's locals go below, ar.pfs keeps its frame."""
    c.leave_if(rotated(c))
    top = c.op(f"load ptr, ptr {c.word(TOP)}")
    at = c.op(f"ptrtoint ptr {top} to i64")
    c.leave_if(c.test("ugt", at, c.load(LIMIT)))
    sof, sol, sor, ec = (c.load(word) for word in (SOF_WORD, SOL_WORD, SOR_WORD, _EC))
    frame = c.binary("or", sof, c.binary("shl", sol, "7"))
    frame = c.binary("or", frame, c.binary("shl", sor, "11"))
    frame = c.binary("or", frame, c.binary("shl", ec, "52"))
    c.store(_PFS, c.binary("or", frame, number(3 << 62)))
    size = c.binary("shl", sol, "3")
    # What is beyond the frame is undefined, but the same as in Python.
    c.helpers.add(_COPY)
    beyond = c.op(f"getelementptr i64, ptr {top}, i64 96")
    c.emit(
        f"call void @llvm.memcpy.p0.p0.i64(ptr align 8 {beyond}, ptr align 8 {top},"
        f" i64 {size}, i1 false)"
    )
    _forget_nats(c, top, 96, size)
    c.store(TOP, c.binary("add", at, size))
    c.store(SOF_WORD, c.binary("sub", sof, sol))
    c.store(SOL_WORD, "0")
    c.store(SOR_WORD, "0")


def leave_frame(c: JitCode) -> None:
    """A taken return: the caller's frame comes back from ar.pfs."""
    pfs = c.load(_PFS)
    sof, sol = c.masked(pfs, 127), c.masked(c.binary("lshr", pfs, "7"), 127)
    sor = c.masked(c.binary("lshr", pfs, "11"), 0x78)
    c.leave_if(c.test("ne", c.masked(pfs, PFM & ~0x3FFFF), "0"))
    c.leave_if(c.test("ugt", sof, "96"))
    c.leave_if(c.test("ugt", sol, sof))
    c.leave_if(c.test("ugt", sor, sof))
    top, size = c.load(TOP), c.binary("shl", sol, "3")
    below = c.binary("sub", top, size)
    c.leave_if(c.test("ult", below, c.load(BOTTOM)))
    with c.when(rotated(c)):
        settle(c)
    c.store(TOP, below)
    if c.nats:
        frame, rest = c.op(f"inttoptr i64 {below} to ptr"), c.binary("sub", "96", sof)
        _forget_nats(c, frame, sof, c.binary("shl", rest, "3"))
    low = c.load(LOW)
    c.store(LOW, c.choose(c.test("ult", below, low), below, low))
    c.store(SOF_WORD, sof)
    c.store(SOL_WORD, sol)
    c.store(SOR_WORD, sor)
    c.store(_EC, c.masked(c.binary("lshr", pfs, "52"), 63))


def settle(c: JitCode) -> None:
    """Undo the rotation of the views: turn each on until its rename base is 0."""
    _turn_predicates(c, c.load(RRB_PR_WORD))
    turn, base = c.load(TURN), c.load(RRB_FR_WORD)
    less = c.test("ult", turn, base)
    wrapped = c.choose(less, c.binary("add", turn, "96"), turn)
    c.store(TURN, c.binary("sub", wrapped, base))
    c.store(RRB_PR_WORD, "0")
    c.store(RRB_FR_WORD, "0")
    again, done, begin = c.name("again"), c.name("done"), c.name("turn")
    c.emit(f"br label %{begin}")
    c.label(begin)
    left = c.load(RRB_GR_WORD)
    c.emit(f"br i1 {c.test('eq', left, '0')}, label %{done}, label %{again}")
    c.label(again)
    _turn_general(c, c.load(SOR_WORD))
    c.store(RRB_GR_WORD, c.binary("sub", left, "1"))
    c.emit(f"br label %{begin}")
    c.label(done)


def alloc(c: JitCode, insn: SlotInsn) -> None:
    """`alloc`: registers that the frame grows by are 0."""
    sof, sol, sor = (insn.immediate(name) for name in ("sof", "sol", "sor"))
    r1 = insn.field("r1")
    if insn.word & 63 or sof > 96 or sol > sof or sor > sof or r1 == 0 or r1 - 31 > sof:
        raise Unsupported
    differs = c.test("ne", c.load(SOR_WORD), str(sor))
    c.leave_if(c.op(f"and i1 {differs}, {rotated(c)}"))
    old = c.load(SOF_WORD)
    for register in range(sof):
        fresh = c.test("ule", old, str(register))
        where = c.stacked(32 + register)
        value = c.op(f"load i64, ptr {where}")
        c.emit(f"store i64 {c.choose(fresh, '0', value)}, ptr {where}")
        if c.nats:
            where = c.stacked(32 + register + NATS)
            value = c.op(f"load i64, ptr {where}")
            c.emit(f"store i64 {c.choose(fresh, '0', value)}, ptr {where}")
    if sof < 96:
        _forget_nats(c, c.stacked(32), sof, 8 * (96 - sof))
    c.store(SOF_WORD, str(sof))
    c.store(SOL_WORD, str(sol))
    c.store(SOR_WORD, str(sor))
    c.frame = sof
    c.put(r1, c.load(_PFS))


def frame(c: JitCode, insn: SlotInsn) -> None:
    """`clrrrb`; Python does cover and the privileged ones."""
    x6 = insn.word >> 27 & 63
    if x6 == 0x10:  # epc
        return
    if x6 not in (4, 5) or insn.slot != 2:
        raise Unsupported
    if x6 == 5:
        _turn_predicates(c, c.load(RRB_PR_WORD))
        c.store(RRB_PR_WORD, "0")
        return
    with c.when(rotated(c)):
        settle(c)
