"""LLVM text of branches: where control goes, and how it gets to other regions."""

from typing import Final

from engine.arch.ia64.decode import SlotInsn
from engine.cpu.ia64.jit_alat import float_key, general_key, take
from engine.cpu.ia64.jit_code import PARAMETERS, Emit, JitCode
from engine.cpu.ia64.jit_memory import is_natval
from engine.cpu.ia64.jit_stack import enter_frame, leave_frame, rotate
from engine.cpu.ia64.jit_value import Unsupported, number
from engine.cpu.ia64.jit_words import APPLICATION, BRANCH, PLACE_TABLE, PLACES, PR
from engine.cpu.ia64.state import EC, LC

_LC, _EC = APPLICATION[LC], APPLICATION[EC]


# -- going elsewhere ---------------------------------------------------------------------------


def go(c: JitCode, target: int) -> None:
    """Control goes to a known place."""
    if c.inside(target):
        if target != c.behind:
            c.tick(number(target))
        if target <= c.slot:
            c.poll(number(target))
        c.emit(f"br label %at_{target:x}")
        return
    go_far(c, target)


def go_far(c: JitCode, target: int) -> None:
    """The same to another region, or with another frame."""
    function = c.op(f"load ptr, ptr {c.word(c.cell(target))}")
    _enter(c, function, number(target), target != c.behind)


def go_through(c: JitCode, register: str) -> None:
    """Control goes where a branch register says."""
    target = c.masked(register, ~15)
    folded = c.binary("xor", c.binary("lshr", target, "4"), c.binary("lshr", target, "16"))
    at = c.masked(folded, PLACES - 1)
    entry = c.op(f"getelementptr [2 x i64], ptr {c.word(PLACE_TABLE)}, i64 {at}")
    place = c.op(f"load i64, ptr {entry}")
    second = c.op(f"getelementptr i64, ptr {entry}, i64 1")
    found = c.op(f"load ptr, ptr {second}")
    same = c.test("eq", place, target)
    function = c.op(f"select i1 {same}, ptr {found}, ptr null")
    _enter(c, function, target, True)


def _enter(c: JitCode, function: str, target: str, ticks: bool) -> None:
    """Go on in another region; in Python, which sees to the clock, if there is none."""
    none = c.op(f"icmp eq ptr {function}, null")
    stop, on = c.name("none"), c.name("on")
    c.emit(f"br i1 {none}, label %{stop}, label %{on}")
    with c.aside(stop):
        c.arrive(target, number(c.behind))
    c.label(on)
    if ticks and c.clocked:
        with c.when(c.test("ne", target, number(c.behind))):
            c.tick(target)
    c.poll(target)
    value = c.op(f"musttail call i64 {function}({PARAMETERS})")
    c.emit(f"ret i64 {value}")


def _branch_if(c: JitCode, condition: str, target: int) -> None:
    """Go to a known place where a condition holds."""
    if condition == "true":
        go(c, target)
        c.ends = True
        return
    taken, after = c.name("taken"), c.name("after")
    c.emit(f"br i1 {condition}, label %{taken}, label %{after}")
    c.label(taken)
    go(c, target)
    c.label(after)


def _known_target(c: JitCode, insn: SlotInsn) -> int:
    target = insn.target(c.slot & ~15)
    if target is None:
        raise Unsupported
    return target


def branch(c: JitCode, insn: SlotInsn) -> None:
    """`br`.cond, br.wexit, br.wtop and brl.cond."""
    btype = insn.field("btype")
    target = _known_target(c, insn)
    if insn.format != "B1" or not btype:
        _branch_if(c, c.predicate(insn.qp), target)
        return
    if insn.slot != 2:
        raise Unsupported
    more = c.predicate(insn.word & 63)
    _branch_if(c, _loop(c, more, "0", btype == 2), target)


def _loop(c: JitCode, more: str, bit: str, leaves: bool) -> str:
    """Rotate; whether the branch of a pipelined loop is taken."""
    ec = c.load(_EC)
    left = c.test("ne", ec, "0")
    turns = c.op(f"or i1 {more}, {left}")
    fewer = c.binary("sub", ec, c.op(f"zext i1 {left} to i64"))
    c.store(_EC, c.choose(more, ec, fewer))
    pr = c.masked(c.load(PR), (1 << 63) - 1)
    c.store(PR, c.binary("or", pr, c.binary("shl", bit, "63")))
    goes_on = c.op(f"or i1 {more}, {c.test('ugt', ec, '1')}")
    with c.when(turns):
        rotate(c)
    return c.op(f"xor i1 {goes_on}, true") if leaves else goes_on


def loop(c: JitCode, insn: SlotInsn) -> None:
    """`br`.cloop, br.cexit, br.ctop."""
    if insn.slot != 2 or insn.word & 63:
        raise Unsupported
    btype, target = insn.field("btype"), _known_target(c, insn)
    lc = c.load(_LC)
    more = c.test("ne", lc, "0")
    bit = c.op(f"zext i1 {more} to i64")
    c.store(_LC, c.binary("sub", lc, bit))
    if btype == 5:
        _branch_if(c, more, target)
    else:
        _branch_if(c, _loop(c, more, bit, btype == 6), target)


def call(c: JitCode, insn: SlotInsn) -> None:
    """`br`.call, brl.call."""
    after = _skip_unless(c, c.predicate(insn.qp))
    through = c.load(BRANCH + insn.field("b2")) if insn.format == "B5" else ""
    enter_frame(c)
    c.store(BRANCH + insn.field("b1"), number((c.slot & ~15) + 16))
    if through:
        go_through(c, through)
    else:
        go_far(c, _known_target(c, insn))
    _resume(c, after)


def _skip_unless(c: JitCode, condition: str) -> str:
    """Begin what a predicate guards and ends in leaving; the label behind, "" for none."""
    if condition == "true":
        c.ends = True
        return ""
    taken, after = c.name("taken"), c.name("after")
    c.emit(f"br i1 {condition}, label %{taken}, label %{after}")
    c.label(taken)
    return after


def _resume(c: JitCode, after: str) -> None:
    if after:
        c.label(after)


def through_register(c: JitCode, insn: SlotInsn) -> None:
    """`br`.cond and br.ret to a branch register."""
    btype = insn.field("btype")
    if btype == 1:
        raise Unsupported
    after = _skip_unless(c, c.predicate(insn.qp))
    target = c.load(BRANCH + insn.field("b2"))
    if btype == 4:
        leave_frame(c)
    go_through(c, target)
    _resume(c, after)


def check_speculation(c: JitCode, insn: SlotInsn) -> None:
    """`chk`.s."""
    if insn.format == "M21":
        bad = is_natval(c, *c.fr(insn.field("f2")))
    elif c.nats:
        bad = c.test("ne", c.nat(insn.field("r2")), "0")
    else:
        return
    if insn.qp:
        bad = c.op(f"and i1 {bad}, {c.predicate(insn.qp)}")
    _branch_if(c, bad, _known_target(c, insn))


def check_advanced(c: JitCode, insn: SlotInsn) -> None:
    """`chk`.a."""
    target, clear = _known_target(c, insn), bool(insn.word >> 33 & 1)
    key = general_key if insn.format == "M22" else float_key
    with c.when(c.predicate(insn.qp)):
        held = take(c, key(c, insn.field("r1")), clear)
        _branch_if(c, c.op(f"xor i1 {held}, true"), target)


EMIT: Final[dict[str, Emit]] = {
    "B1": branch,
    "B2": loop,
    "B3": call,
    "B4": through_register,
    "B5": call,
    "X3": branch,
    "X4": call,
    "I20": check_speculation,
    "M20": check_speculation,
    "M21": check_speculation,
    "M22": check_advanced,
    "M23": check_advanced,
}
"""All of them see to their predicate themselves."""
