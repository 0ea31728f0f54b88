"""Source of branches, long instructions, breaks and no-operations."""

from typing import Final

from engine.arch.ia64.decode import SlotInsn
from engine.cpu.ia64.emitter import Emit, Emitter

SYSCALL: Final = 0x100000
"""Immediate of the break that calls the kernel."""
_BUNDLE: Final = "-16"


def _target(e: Emitter, insn: SlotInsn) -> str:
    """The target of a branch, as an expression."""
    where = insn.target(e.ip)
    return str(where) if where is not None else f"b[{insn.field('b2')}] & {_BUNDLE}"


def _next_bundle(e: Emitter) -> int:
    return e.ip + 16 & 0xFFFFFFFFFFFFFFFF


def _always(e: Emitter) -> None:
    """Nothing behind an unconditional branch is reached: the block ends."""
    if not e.conditional:
        e.ends = True


def branch(e: Emitter, insn: SlotInsn) -> None:
    """`br`.cond, br.wexit, br.wtop, brl.cond, br and br.ia."""
    btype = insn.field("btype")
    if insn.format == "B4" and btype == 1:
        e.illegal("br.ia: there is no IA-32 execution")
    elif insn.format == "B1" and btype:
        if insn.slot != 2:
            e.illegal("a loop branch outside of slot 2")
            return
        sense = "not " if btype == 2 else ""
        with e.block(f"if {sense}S.while_loop({insn.word & 63}):"):
            e.leave(_target(e, insn))
    else:
        e.leave(_target(e, insn))
        _always(e)


def loop(e: Emitter, insn: SlotInsn) -> None:
    """`br`.cloop, br.cexit, br.ctop."""
    if insn.slot != 2 or insn.word & 63:
        e.illegal("a loop branch outside of slot 2, or with a predicate")
        return
    btype = insn.field("btype")
    if btype == 5:
        with e.block("if A[65]:"):
            e.line("A[65] -= 1")
            e.leave(_target(e, insn))
        return
    with e.block(f"if {'not ' if btype == 6 else ''}S.counted():"):
        e.leave(_target(e, insn))


def call(e: Emitter, insn: SlotInsn) -> None:
    """`br`.call, brl.call."""
    e.line(f"t = {_target(e, insn)}")
    e.line("A[64] = S.call()")
    e.line(f"b[{insn.field('b1')}] = {_next_bundle(e)}")
    e.leave("t")
    _always(e)


def ret(e: Emitter, insn: SlotInsn) -> None:
    """`br`.cond and br.ret to a branch register."""
    if insn.field("btype") == 4:
        e.line(f"t = {_target(e, insn)}")
        e.line("S.leave()")
        e.leave("t")
        _always(e)
    else:
        branch(e, insn)


def frame(e: Emitter, insn: SlotInsn) -> None:
    """`cover`, clrrrb, and the privileged ones."""
    x6 = insn.word >> 27 & 63
    if x6 in (2, 4, 5, 8) and insn.slot != 2:
        e.illegal("this must stand in slot 2")
    elif x6 == 2:
        e.line("S.cover()")
        e.set_frame(0)
    elif x6 in (4, 5):
        e.line(f"S.clear_rrb({x6 == 5})")
    elif x6 != 0x10:  # epc on a page that promotes nothing does nothing
        e.line("raise Privileged")


def stop(e: Emitter, insn: SlotInsn) -> None:
    """`break`: that of the B unit reports 0; an action may deal with it."""
    value = 0
    if insn.format != "B9":
        value = insn.immediate("imm62" if insn.format == "X1" else "imm21")
    if value != SYSCALL:
        e.line(f"t = hit({e.slot})")
        e.line("if t >= 0: return t")
    e.line(f"raise BreakInterruption({value})")
    if not e.conditional:
        e.ends = True


def b9(e: Emitter, insn: SlotInsn) -> None:
    """`break`.b, nop.b, hint.b."""
    if insn.word >> 37 == 0:
        stop(e, insn)


def nothing(e: Emitter, insn: SlotInsn) -> None:
    """nop, hint, brp."""


EMIT: Final[dict[str, Emit]] = {
    "B1": branch,
    "B2": loop,
    "B3": call,
    "B4": ret,
    "B5": call,
    "B6": nothing,
    "B7": nothing,
    "B8": frame,
    "B9": b9,
    "I18": nothing,
    "I19": stop,
    "M37": stop,
    "M48": nothing,
    "M51": nothing,
    "F15": stop,
    "F16": nothing,
    "X1": stop,
    "X3": branch,
    "X4": call,
    "X5": nothing,
}

UNPREDICATED: Final = frozenset(("B2", "B6", "B7", "B8"))
"""Formats whose qp field is not a predicate."""
