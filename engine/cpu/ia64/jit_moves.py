"""LLVM text of moves between registers of different kinds, and of what does nothing."""

from typing import Final

from engine.arch.ia64.decode import SlotInsn
from engine.cpu.ia64.emit_branch import UNPREDICATED
from engine.cpu.ia64.jit_alat import forget_all
from engine.cpu.ia64.jit_code import Emit, JitCode
from engine.cpu.ia64.jit_stack import alloc, frame, turned
from engine.cpu.ia64.jit_value import Unsupported, number
from engine.cpu.ia64.jit_words import APPLICATION, BRANCH, PR, RRB_PR_WORD, UM
from engine.cpu.ia64.state import EC, LC, PFS


def to_branch(c: JitCode, insn: SlotInsn) -> None:
    """`mov` b1=."""
    c.store(BRANCH + insn.field("b1"), c.gr(insn.field("r2")))


def from_branch(c: JitCode, insn: SlotInsn) -> None:
    """`mov` r1=b2."""
    c.check_target(insn.field("r1"))
    c.put(insn.field("r1"), c.load(BRANCH + insn.field("b2")))


def _with_rotating(c: JitCode, pr: str, by: str) -> str:
    """All predicates with the rotating ones turned."""
    rotating = turned(c, c.binary("lshr", pr, "16"), by)
    return c.binary("or", c.masked(pr, 0xFFFF), c.binary("shl", rotating, "16"))


def from_predicates(c: JitCode, insn: SlotInsn) -> None:
    """`mov` r1=ip, mov r1=pr: not rotated."""
    r1 = insn.field("r1")
    c.check_target(r1)
    if insn.word >> 27 & 63 == 0x30:
        c.put(r1, number(c.slot & ~15))
        return
    pr = c.load(PR)
    c.put(r1, _with_rotating(c, pr, c.load(RRB_PR_WORD)))


def to_predicates(c: JitCode, insn: SlotInsn) -> None:
    """`mov` pr=, mov pr.rot=: not rotated."""
    if insn.format == "I24":
        value, mask = number(insn.immediate("imm44")), ~0xFFFF
    else:
        value, mask = c.gr(insn.field("r2")), insn.immediate("imm17") & ~1
    mask &= (1 << 64) - 2
    base, pr = c.load(RRB_PR_WORD), c.load(PR)
    back = c.binary("sub", "48", base)
    plain = _with_rotating(c, pr, base)
    kept, bits = c.masked(plain, ~mask), c.masked(value, mask)
    c.store(PR, _with_rotating(c, c.binary("or", kept, bits), back))


_IN_I: Final = {LC: -1, EC: 63, PFS: 0xC3F0003FFFFFFFFF}
_IN_M: Final = frozenset((25, 32, 36))


def to_application(c: JitCode, insn: SlotInsn) -> None:
    """`mov` ar= of those that mean nothing to the core itself."""
    at = insn.field("r3")
    mask = _mask(insn, at)
    if insn.format in ("I27", "M30"):
        value = number(insn.immediate("imm8"))
    else:
        value = c.gr(insn.field("r2"))
    c.store(APPLICATION[at], c.masked(value, mask))


def from_application(c: JitCode, insn: SlotInsn) -> None:
    """`mov` r1=ar of the same, and of ar.fpsr."""
    at = insn.field("r3")
    if at != 40 or insn.unit == "I":
        _mask(insn, at)
    c.check_target(insn.field("r1"))
    c.put(insn.field("r1"), c.load(APPLICATION[at]))


def _mask(insn: SlotInsn, number_: int) -> int:
    if insn.unit == "I" and number_ in _IN_I:
        return _IN_I[number_]
    if insn.unit == "M" and number_ in _IN_M:
        return -1
    raise Unsupported


def user_mask(c: JitCode, insn: SlotInsn) -> None:
    """`mov` r1=psr.um."""
    if insn.format != "M36" or insn.word >> 27 & 63 != 0x21:
        raise Unsupported
    c.check_target(insn.field("r1"))
    c.put(insn.field("r1"), c.load(UM))


def fence(c: JitCode, insn: SlotInsn) -> None:
    """`mf` and the like, invala."""
    if insn.word >> 31 & 3 == 1:
        forget_all(c)


def nothing(c: JitCode, insn: SlotInsn) -> None:
    """nop, hint, brp."""


def nop_of_branch(c: JitCode, insn: SlotInsn) -> None:
    """`nop`.b, hint.b; not break.b."""
    if insn.word >> 37 == 0:
        raise Unsupported


EMIT: Final[dict[str, Emit]] = {
    "B6": nothing,
    "B7": nothing,
    "B8": frame,
    "B9": nop_of_branch,
    "I18": nothing,
    "I21": to_branch,
    "I22": from_branch,
    "I23": to_predicates,
    "I24": to_predicates,
    "I25": from_predicates,
    "I26": to_application,
    "I27": to_application,
    "I28": from_application,
    "F16": nothing,
    "M24": fence,
    "M29": to_application,
    "M30": to_application,
    "M31": from_application,
    "M34": alloc,
    "M36": user_mask,
    "M48": nothing,
    "M51": nothing,
    "X5": nothing,
}
NOT_PREDICATED: Final = UNPREDICATED | {"M34"}
