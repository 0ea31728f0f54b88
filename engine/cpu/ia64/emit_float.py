"""Source of floating-point instructions: formats F1 to F14, and setf, getf."""

from typing import Final

from engine.arch.ia64.decode import SlotInsn
from engine.cpu.ia64.emitter import Emit, Emitter, compare
from engine.cpu.ia64.insns_integer import name

_FORMS: Final = {(8, 0): "", (8, 1): "s", (9, 0): "d"}


def f1(e: Emitter, insn: SlotInsn) -> None:
    """`fma`, fms, fnma and their parallel forms."""
    major, x = insn.word >> 37, insn.word >> 36 & 1
    sf = insn.word >> 34 & 3
    signs = (0, 2, 1)[(major - 8) // 2]
    low = major & 1
    target, product = insn.field("f1"), insn.field("f2") == 0
    x3, y4, z2 = (f"f[{insn.field(part)}]" for part in ("f3", "f4", "f2"))
    if not e.check_float_target(target):
        return
    if low and x:
        e.put_float(target, f"parallel_fma({x3}, {y4}, {z2}, {sf}, {signs}, {product})")
    else:
        form = _FORMS[8 + low, x]
        e.put_float(target, f"fma({x3}, {y4}, {z2}, {sf}, {form!r}, {signs}, {product})")
    e.after_traps()


def f2(e: Emitter, insn: SlotInsn) -> None:
    """`xma`."""
    x3, y4, z2 = (f"f[{insn.field(part)}]" for part in ("f3", "f4", "f2"))
    e.put_float(insn.field("f1"), f"xma({x3}, {y4}, {z2}, {insn.word >> 34 & 3})")


def f3(e: Emitter, insn: SlotInsn) -> None:
    """`fselect`."""
    x3, y4, z2 = (f"f[{insn.field(part)}]" for part in ("f3", "f4", "f2"))
    e.put_float(insn.field("f1"), f"fselect({x3}, {y4}, {z2})")


_RELATIONS: Final = ("eq", "le", "lt", "unord")


def _decided(e: Emitter, insn: SlotInsn, call: str, unc: bool) -> None:
    """A relation that is None where an operand is a NaTVal: both predicates become 0."""
    first, second = insn.field("p1"), insn.field("p2")
    if first == second:
        compare(e, insn, "0", "1", "unc" if unc else "", "")
        return
    targets = [at for at in (first, second) if at]
    clear = " = ".join(f"p[{at}]" for at in targets)
    with e.predicated(insn.qp):
        e.line(f"t = {call}")
        if first:
            e.line(f"p[{first}] = t is True")
        if second:
            e.line(f"p[{second}] = t is False")
    if unc and insn.qp and targets:
        e.line(f"else: {clear} = 0")


def f4(e: Emitter, insn: SlotInsn) -> None:
    """`fcmp`."""
    word = insn.word
    relation = _RELATIONS[(word >> 36 & 1) << 1 | word >> 33 & 1]
    left, right = insn.field("f2"), insn.field("f3")
    call = f"fcmp(f[{left}], f[{right}], {word >> 34 & 3}, {relation!r})"
    _decided(e, insn, call, bool(word >> 12 & 1))


def f5(e: Emitter, insn: SlotInsn) -> None:
    """fclass: NaTVal is a class of its own."""
    call = f"fclass(f[{insn.field('f2')}], {insn.immediate('fclass9')})"
    _decided(e, insn, call, bool(insn.word >> 12 & 1))


def f6(e: Emitter, insn: SlotInsn) -> None:
    """`frcpa`, frsqrta and their parallel forms: p2 becomes 0 where qp is false."""
    word = insn.word
    target, p2 = insn.field("f1"), insn.field("p2")
    parallel, sf = "parallel_" if word >> 37 else "", word >> 34 & 3
    if insn.format == "F6":
        call = f"{parallel}frcpa(f[{insn.field('f2')}], f[{insn.field('f3')}], {sf})"
    else:
        call = f"{parallel}frsqrta(f[{insn.field('f3')}], {sf})"
    with e.predicated(insn.qp):
        if e.check_float_target(target):
            e.line(f"f[{target}], t = {call}")
            if p2:
                e.line(f"p[{p2}] = t")
            e.mark(target)
            e.after_traps()
    if insn.qp and p2:
        e.line(f"else: p[{p2}] = 0")


def two(e: Emitter, insn: SlotInsn) -> None:
    """Everything with two sources and without rounding."""
    left, right = insn.field("f2"), insn.field("f3")
    which = name(insn).removesuffix(f".s{insn.word >> 34 & 3}") if insn.format == "F8" else ""
    if insn.format == "F8":
        call = f"TWO[{which!r}](f[{left}], f[{right}], {insn.word >> 34 & 3})"
    else:
        key = (insn.word >> 37, insn.word >> 27 & 63)
        call = f"MERGE[{key!r}](f[{left}], f[{right}])"
    e.put_float(insn.field("f1"), call)


def convert(e: Emitter, insn: SlotInsn) -> None:
    """`fcvt`, fpcvt."""
    word = insn.word
    source, target = insn.field("f2"), insn.field("f1")
    if insn.format == "F11":
        e.put_float(target, f"from_integer(f[{source}])")
        return
    unsigned, truncate = bool(word >> 27 & 1), bool(word >> 28 & 1)
    which = "parallel_to_integer" if word >> 37 else "to_integer"
    if e.check_float_target(target):
        e.put_float(target, f"{which}(f[{source}], {word >> 34 & 3}, {unsigned}, {truncate})")
        e.after_traps()


def status(e: Emitter, insn: SlotInsn) -> None:
    """`fsetc`, fclrf, fchkf."""
    sf = insn.word >> 34 & 3
    if insn.format == "F12":
        e.line(f"fsetc({sf}, {insn.immediate('amask')}, {insn.immediate('omask')})")
    elif insn.format == "F13":
        e.line(f"A[40] &= {~(63 << 13 + 13 * sf)}")
    else:
        with e.block(f"if fchkf({sf}):"):
            e.leave(str(insn.target(e.ip)))


def setf(e: Emitter, insn: SlotInsn) -> None:
    """`setf`: a NaT becomes a NaTVal."""
    r2, target = insn.field("r2"), insn.field("f1")
    value = e.gr(r2)
    which = insn.word >> 30 & 3
    text = (
        f"integer({value})",
        f"({value} >> 17 & 1, {value} & 0x1FFFF, 0x8000000000000000)",
        f"from_single({value} & 0xFFFFFFFF)",
        f"from_double({value})",
    )[which]
    if e.nats and r2:
        text = f"NATVAL if n[{r2}] else {text}"
    e.put_float(target, text)


def getf(e: Emitter, insn: SlotInsn) -> None:
    """`getf`: a NaTVal becomes a NaT."""
    r1, source = insn.field("r1"), f"f[{insn.field('f2')}]"
    text = (f"{source}[2]", f"{source}[0] << 17 | {source}[1]", f"to_single({source})",
            f"to_double({source})")[insn.word >> 30 & 3]  # fmt: skip
    if not e.check_target(r1):
        return
    if not e.nats:
        e.line(f"if {source} == NATVAL: raise NatAppears")
    e.put(r1, text, nat=f"int({source} == NATVAL)")


EMIT: Final[dict[str, Emit]] = {
    "F1": f1,
    "F2": f2,
    "F3": f3,
    "F4": f4,
    "F5": f5,
    "F6": f6,
    "F7": f6,
    "F8": two,
    "F9": two,
    "F10": convert,
    "F11": convert,
    "F12": status,
    "F13": status,
    "F14": status,
    "M18": setf,
    "M19": getf,
}
