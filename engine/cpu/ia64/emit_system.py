"""Source of moves to and from other registers and of system instructions."""

from typing import Final

from engine.arch.ia64.decode import SlotInsn
from engine.cpu.ia64.emitter import Emit, Emitter
from engine.cpu.ia64.python_value import MASK

_KERNEL: Final = range(8)
_RSC, _BSP, _BSPSTORE, _RNAT, _FPSR, _ITC, _RUC = 16, 17, 18, 19, 40, 44, 45
_PLAIN: Final = frozenset((21, 24, 25, 26, 27, 28, 29, 30, 32, 36))
_INTEGER: Final = {64: "0xC3F0003FFFFFFFFF", 65: MASK, 66: "63"}
_IGNORED: Final = frozenset((*range(48, 64), *range(112, 128)))


def _known(insn: SlotInsn, number: int) -> bool:
    """True if the unit reaches this application register."""
    if number in _IGNORED:
        return True
    if insn.unit == "I":
        return number in _INTEGER
    return number in _PLAIN or number < 8 or number in (16, 17, 18, 19, 40, 44, 45)


def to_application(e: Emitter, insn: SlotInsn) -> None:
    """`mov` ar=."""
    number = insn.field("r3")
    if insn.format in ("I27", "M30"):
        value = hex(insn.immediate("imm8") & 0xFFFFFFFFFFFFFFFF)
    else:
        e.consume(insn.field("r2"))
        value = e.gr(insn.field("r2"))
    if not _known(insn, number) or number == _BSP:
        e.illegal("this application register cannot be written")
    elif number in _KERNEL or number in (_ITC, _RUC):
        e.line("raise Privileged")
    elif number in (_RSC, _FPSR):
        e.line(f"A[{number}] = {'stack_control' if number == _RSC else 'float_status'}({value})")
    elif number == _BSPSTORE:
        e.line(f"S.set_bspstore({value})")
    elif number == _RNAT:
        e.line("if A[16] & 3: raise Illegal('ar.rnat while ar.rsc.mode is not 0')")
        e.line(f"S.rnat = {value}")
    elif number in _INTEGER:
        mask = _INTEGER[number]
        e.line(f"A[{number}] = {value}" + (f" & {mask}" if mask != MASK else ""))
    elif number not in _IGNORED:
        e.line(f"A[{number}] = {value}")


def from_application(e: Emitter, insn: SlotInsn) -> None:
    """`mov` r1=ar."""
    number, r1 = insn.field("r3"), insn.field("r1")
    if not _known(insn, number):
        e.illegal("a reserved application register")
    elif number == _BSP:
        e.put(r1, "S.bsp")
    elif number in (_BSPSTORE, _RNAT):
        e.line("if A[16] & 3: raise Illegal('ar.rsc.mode is not 0')")
        e.put(r1, "S.bspstore" if number == _BSPSTORE else "S.rnat")
    elif number in (_ITC, _RUC):
        e.put(r1, "counter()")
    else:
        e.put(r1, f"A[{number}]")


def to_branch(e: Emitter, insn: SlotInsn) -> None:
    """`mov` b1=."""
    e.consume(insn.field("r2"))
    e.line(f"b[{insn.field('b1')}] = {e.gr(insn.field('r2'))}")


def from_branch(e: Emitter, insn: SlotInsn) -> None:
    """`mov` r1=b2."""
    e.put(insn.field("r1"), f"b[{insn.field('b2')}]")


def to_predicates(e: Emitter, insn: SlotInsn) -> None:
    """`mov` pr=, mov pr.rot=."""
    if insn.format == "I24":
        value = insn.immediate("imm44") & 0xFFFFFFFFFFFFFFFF
        e.line(f"S.set_predicates({value:#x}, 0xFFFFFFFFFFFF0000)")
        return
    e.consume(insn.field("r2"))
    mask = insn.immediate("imm17") & 0xFFFFFFFFFFFFFFFF
    e.line(f"S.set_predicates({e.gr(insn.field('r2'))}, {mask:#x})")


def i25(e: Emitter, insn: SlotInsn) -> None:
    """`mov` r1=ip, mov r1=pr."""
    if insn.word >> 27 & 63 == 0x30:
        e.put(insn.field("r1"), hex(e.ip))
    else:
        e.put(insn.field("r1"), "S.predicates()")


def alloc(e: Emitter, insn: SlotInsn) -> None:
    """`alloc`: the first register is named in the new frame."""
    sof, sol, sor = (insn.immediate(name) for name in ("sof", "sol", "sor"))
    if insn.word & 63 or sof > 96 or sol > sof or sor > sof:
        e.illegal("alloc with a predicate, or with sizes that do not fit")
        return
    r1 = insn.field("r1")
    if r1 == 0 or r1 - 31 > sof:
        e.illegal("the target of alloc")
        return
    e.line(f"g[{r1}] = S.alloc({sof}, {sol}, {sor})")
    if e.nats:
        e.line(f"n[{r1}] = 0")
    e.set_frame(sof)


def m24(e: Emitter, insn: SlotInsn) -> None:
    """`invala`, fences and serialisation."""
    if insn.word >> 31 & 3 == 1:
        e.line("L.clear()")


def m25(e: Emitter, insn: SlotInsn) -> None:
    """`flushrs`, loadrs."""
    if insn.word & 63:
        e.illegal("a predicate where none may be")
    else:
        e.line("S.flush()" if insn.word >> 27 & 15 == 12 else "S.loadrs()")


def flush_cache(e: Emitter, insn: SlotInsn) -> None:
    """`fc`: translations are kept right anyway."""
    r3 = insn.field("r3")
    e.consume(r3)
    e.line(f"a = {e.gr(r3)}")
    e.line("R1[a >> 12]")


def user_mask(e: Emitter, insn: SlotInsn) -> None:
    """`mov` psr.um=, mov r1=psr.um, sum, rum; the rest of psr is privileged."""
    x6 = insn.word >> 27 & 63
    if insn.format == "M44":
        which, value = insn.word >> 27 & 15, insn.immediate("imm24")
        if which >= 6:
            e.line("raise Privileged")
        elif value & ~0x3E or (which == 4 and value & 2):
            e.illegal("reserved bits of the user mask, or big-endian data")
        else:
            e.line(f"U[0] |= {value}" if which == 4 else f"U[0] &= {~value}")
            e.forget_marks()
    elif insn.format == "M36" and x6 == 0x21:
        e.put(insn.field("r1"), "U[0]")
    elif insn.format == "M35" and x6 == 0x29:
        r2 = insn.field("r2")
        e.consume(r2)
        e.line(f"if {e.gr(r2)} & ~0x3C: raise Illegal('reserved bits of the user mask')")
        e.line(f"U[0] = {e.gr(r2)}")
        e.forget_marks()
    else:
        e.line("raise Privileged")


def probe(e: Emitter, insn: SlotInsn) -> None:
    """`probe`: whether an access would be allowed."""
    r3, x6 = insn.field("r3"), insn.word >> 27 & 63
    if insn.format == "M40":
        e.consume(r3)
        e.line(f"a = {e.gr(r3)}")
        if x6 != 0x33:
            e.line("R1[a >> 12]")
        if x6 != 0x32:
            e.line("W1[a >> 12]")
        return
    e.consume(r3)
    e.put(insn.field("r1"), f"int(allowed({e.gr(r3)}, {bool(x6 & 1)}))")


def indirect(e: Emitter, insn: SlotInsn) -> None:
    """Moves from register files: cpuid and pmd are for users."""
    x6, r1, r3 = insn.word >> 27 & 63, insn.field("r1"), insn.field("r3")
    if x6 == 0x17:
        e.consume(r3)
        e.put(r1, f"cpuid({e.gr(r3)})")
    elif x6 == 0x15:
        e.consume(r3)
        e.put(r1, "0")
    elif x6 == 0x20:
        e.illegal("this processor has no data access hint registers")
    else:
        e.line("raise Privileged")


def privileged(e: Emitter, insn: SlotInsn) -> None:
    """Everything that only a kernel may do."""
    e.line("raise Privileged")


EMIT: Final[dict[str, Emit]] = {
    "I21": to_branch,
    "I22": from_branch,
    "I23": to_predicates,
    "I24": to_predicates,
    "I25": i25,
    "I26": to_application,
    "I27": to_application,
    "I28": from_application,
    "M24": m24,
    "M25": m25,
    "M28": flush_cache,
    "M29": to_application,
    "M30": to_application,
    "M31": from_application,
    "M34": alloc,
    "M35": user_mask,
    "M36": user_mask,
    "M38": probe,
    "M39": probe,
    "M40": probe,
    "M43": indirect,
    "M44": user_mask,
    **dict.fromkeys(("M32", "M33", "M41", "M42", "M45", "M46", "M47"), privileged),
}
