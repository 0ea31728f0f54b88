"""Source of loads, stores, semaphores and speculation: formats M1 to M27."""

from typing import Final

from engine.arch.ia64.decode import SlotInsn
from engine.cpu.ia64.emitter import Emit, Emitter
from engine.cpu.ia64.python_value import MASK

_PLAIN, _S, _A, _SA, _BIAS, _ACQ, _FILL = range(7)
_CLR, _NC, _CLR_ACQ = 8, 9, 10


def _base(e: Emitter, r3: int) -> None:
    """The address of an access that faults on a NaT."""
    e.consume(r3)
    e.line(f"a = {e.gr(r3)}")


def _load(e: Emitter, size: int) -> str:
    """An expression for what stands at `a`."""
    if size == 1:
        return "R1[a >> 12][a & 4095]"
    shift = size.bit_length() - 1
    return (
        f"R{size}[a >> 12][i >> {shift}] if not (i := a & 4095) & {size - 1} else load(a, {size})"
    )


def _increment(e: Emitter, insn: SlotInsn, immediate: str, implied: int = 0) -> None:
    """The base register of the post-increment forms."""
    r3 = insn.field("r3")
    if immediate:
        e.put(r3, f"(a + {insn.immediate(immediate)}) & {MASK}", r3)
    elif implied:
        e.put(r3, f"(a + {implied}) & {MASK}", r3)
    elif r2 := insn.field("r2"):
        e.put(r3, f"(a + o) & {MASK}", nat=f"n[{r3}] | q")
    else:
        e.put(r3, "a", r3, r2)


def _keep_increment(e: Emitter, insn: SlotInsn) -> None:
    """Read the register to increment by, which the load itself may write."""
    if insn.format in ("M2", "M7", "M14") and (r2 := insn.field("r2")):
        e.line(f"o = g[{r2}]")
        if e.nats:
            e.line(f"q = n[{r2}]")


def _check_increment(e: Emitter, r1: int, r3: int) -> bool:
    if r3 == 0 or r1 == r3:
        e.illegal("the base register of a post-increment is the target, or r0")
        return False
    return e.check_target(r3)


def load(e: Emitter, insn: SlotInsn) -> None:
    """`ld1` to ld8 in all kinds, ld8.fill, ld16."""
    word = insn.word
    r1, r3 = insn.field("r1"), insn.field("r3")
    kind, size = word >> 32 & 15, 1 << (word >> 30 & 3)
    updates = insn.format in ("M2", "M3")
    if not e.check_target(r1) or (updates and not _check_increment(e, r1, r3)):
        return
    _keep_increment(e, insn)
    if insn.format == "M1" and word >> 27 & 1:
        _base(e, r3)
        e.line(f"g[{r1}], A[25] = load16(a)")
        if e.nats:
            e.line(f"n[{r1}] = 0")
        return
    if kind in (_S, _SA):
        _speculative(e, r1, r3, size, kind == _SA)
    else:
        _base(e, r3)
        if kind == _FILL:
            e.line(f"v = {_load(e, 8)}")
            if e.nats:
                e.line(f"g[{r1}] = v")
                e.line(f"n[{r1}] = A[36] >> (a >> 3 & 63) & 1")
            else:
                e.line("if A[36] >> (a >> 3 & 63) & 1: raise NatAppears")
                e.line(f"g[{r1}] = v")
        elif kind in (_CLR, _NC, _CLR_ACQ):
            clear = kind != _NC
            with e.block(f"if not L.holds('r', S.physical({r1}), {clear}):"):
                e.line(f"g[{r1}] = {_load(e, size)}")
                if e.nats:
                    e.line(f"n[{r1}] = 0")
                if not clear:
                    e.line(f"L.insert('r', S.physical({r1}), a, {size})")
        else:
            e.line(f"g[{r1}] = {_load(e, size)}")
            if e.nats:
                e.line(f"n[{r1}] = 0")
            if kind == _A:
                e.line(f"L.insert('r', S.physical({r1}), a, {size})")
    if updates:
        _increment(e, insn, "imm9b" if insn.format == "M3" else "")


def _speculative(e: Emitter, r1: int, r3: int, size: int, advanced: bool) -> None:
    e.line(f"a = {e.gr(r3)}")
    if e.nats and r3:
        e.line(f"v = None if n[{r3}] else speculate(a, {size})")
    else:
        e.line(f"v = speculate(a, {size})")
    if e.nats:
        e.line(f"g[{r1}], n[{r1}] = (0, 1) if v is None else (v, 0)")
        if advanced:
            e.line(f"if v is None: L.pop(('r', S.physical({r1})), None)")
            e.line(f"else: L.insert('r', S.physical({r1}), a, {size})")
    else:
        e.line("if v is None: raise NatAppears")
        e.line(f"g[{r1}] = v")
        if advanced:
            e.line(f"L.insert('r', S.physical({r1}), a, {size})")


def store(e: Emitter, insn: SlotInsn) -> None:
    """st1 to st8, st8.spill, st16."""
    word = insn.word
    r2, r3 = insn.field("r2"), insn.field("r3")
    size = 1 << (word >> 30 & 3)
    if insn.format == "M5" and not _check_increment(e, -1, r3):
        return
    spill = word >> 30 & 63 == 0x3B
    if spill:
        _base(e, r3)
    else:
        e.consume(r2, r3)
        e.line(f"a = {e.gr(r3)}")
    if insn.format == "M4" and word >> 27 & 1:
        e.line(f"store16(a, {e.gr(r2)}, A[25])")
        e.line("if L: L.stored(a, 16)")
        return
    value = e.gr(r2)
    if size < 8 and r2:
        value += f" & {(1 << 8 * size) - 1:#x}"
    if size == 1:
        e.line(f"W1[a >> 12][a & 4095] = {value}")
    else:
        e.line("i = a & 4095")
        e.line(f"if i & {size - 1}: store_unaligned(a, {size}, {value})")
        e.line(f"else: W{size}[a >> 12][i >> {size.bit_length() - 1}] = {value}")
    e.line(f"if L: L.stored(a, {size})")
    if spill:
        e.line("i = 1 << (a >> 3 & 63)")
        if e.nats and r2:
            e.line(f"A[36] = A[36] | i if n[{r2}] else A[36] & ~i")
        else:
            e.line("A[36] &= ~i")
    if insn.format == "M5":
        _increment(e, insn, "imm9a")


_FLOAT_SIZES: Final = (16, 8, 4, 8)
_FLOAT_LOADS: Final = ("load_extended(a)", "integer({})", "from_single({})", "from_double({})")
_PAIR_LOADS: Final = ("", "integer({})", "from_single({})", "from_double({})")


def _float_value(e: Emitter, which: int, fill: bool) -> str:
    if fill:
        return "load_filled(a)"
    text = _FLOAT_LOADS[which]
    return text.format(_load(e, _FLOAT_SIZES[which])) if "{}" in text else text


def load_float(e: Emitter, insn: SlotInsn) -> None:
    """ldfs, ldfd, ldf8, ldfe and ldf.fill in all kinds."""
    word = insn.word
    f1, r3 = insn.field("f1"), insn.field("r3")
    kind, which = word >> 32 & 15, word >> 30 & 3
    updates = insn.format in ("M7", "M8")
    if not e.check_float_target(f1) or (updates and not _check_increment(e, -1, r3)):
        return
    _keep_increment(e, insn)
    size = 10 if which == 0 else _FLOAT_SIZES[which]
    entry = f"'f', S.physical_float({f1})"
    value = _float_value(e, which, kind == _FILL)
    if kind in (_S, _SA):
        e.line(f"a = {e.gr(r3)}")
        bad = f"not may_read(a, {_FLOAT_SIZES[which]})"
        if e.nats and r3:
            bad = f"n[{r3}] or {bad}"
        with e.block(f"if {bad}:"):
            e.line(f"f[{f1}] = NATVAL")
            if kind == _SA:
                e.line(f"L.pop(({entry}), None)")
        with e.block("else:"):
            e.line(f"f[{f1}] = {value}")
            if kind == _SA:
                e.line(f"L.insert({entry}, a, {size})")
        e.mark(f1)
    else:
        _base(e, r3)
        if kind in (_CLR, _NC):
            with e.block(f"if not L.holds({entry}, {kind == _CLR}):"):
                e.line(f"f[{f1}] = {value}")
                if kind == _NC:
                    e.line(f"L.insert({entry}, a, {size})")
            e.mark(f1)
        else:
            e.put_float(f1, value)
            if kind == _A:
                e.line(f"L.insert({entry}, a, {size})")
    if updates:
        _increment(e, insn, "imm9b" if insn.format == "M8" else "")


def load_pair(e: Emitter, insn: SlotInsn) -> None:
    """ldfps, ldfpd, ldfp8 in all kinds."""
    word = insn.word
    f1, f2, r3 = insn.field("f1"), insn.field("f2"), insn.field("r3")
    kind, which = word >> 32 & 15, word >> 30 & 3
    updates = insn.format == "M12"
    if not (e.check_float_target(f1) and e.check_float_target(f2)):
        return
    if updates and not _check_increment(e, -1, r3):
        return
    e.line(f"if not S.odd_and_even({f1}, {f2}): raise Illegal('a pair of two odd or even')")
    half = _FLOAT_SIZES[which]
    entry = f"'f', S.physical_float({f1})"
    text = _PAIR_LOADS[which]
    values = f"{text.format('v[0]')}, {text.format('v[1]')}"
    if kind in (_S, _SA):
        e.line(f"a = {e.gr(r3)}")
        bad = f"not may_read(a, {2 * half})"
        if e.nats and r3:
            bad = f"n[{r3}] or {bad}"
        with e.block(f"if {bad}:"):
            e.line(f"f[{f1}] = f[{f2}] = NATVAL")
            if kind == _SA:
                e.line(f"L.pop(({entry}), None)")
        with e.block("else:"):
            e.line(f"v = load_pair(a, {half})")
            e.line(f"f[{f1}], f[{f2}] = {values}")
            if kind == _SA:
                e.line(f"L.insert({entry}, a, {2 * half})")
    else:
        _base(e, r3)
        head = "if True:"
        if kind in (_CLR, _NC):
            head = f"if not L.holds({entry}, {kind == _CLR}):"
        with e.block(head):
            e.line(f"v = load_pair(a, {half})")
            e.line(f"f[{f1}], f[{f2}] = {values}")
            if kind in (_A, _NC):
                e.line(f"L.insert({entry}, a, {2 * half})")
    e.mark(f1)
    e.mark(f2)
    if updates:
        _increment(e, insn, "", 2 * half)


_FLOAT_STORES: Final = ("", "{}[2]", "to_single({})", "to_double({})")


def store_float(e: Emitter, insn: SlotInsn) -> None:
    """stfs, stfd, stf8, stfe, stf.spill."""
    word = insn.word
    f2, r3, which = insn.field("f2"), insn.field("r3"), word >> 30 & 3
    if insn.format == "M10" and not _check_increment(e, -1, r3):
        return
    _base(e, r3)
    if word >> 30 & 63 == 0x3B:
        e.line(f"store_spilled(a, f[{f2}])")
        size = 16
    else:
        e.line(f"if f[{f2}] == NATVAL: raise NatConsumption")
        if which == 0:
            e.line(f"store_extended(a, f[{f2}])")
            size = 10
        else:
            size = _FLOAT_SIZES[which]
            e.line(f"store(a, {size}, {_FLOAT_STORES[which].format(f'f[{f2}]')})")
    e.line(f"if L: L.stored(a, {size})")
    if insn.format == "M10":
        _increment(e, insn, "imm9a")


def prefetch(e: Emitter, insn: SlotInsn) -> None:
    """`lfetch`: only .fault forms can fault."""
    r3 = insn.field("r3")
    if insn.format != "M13" and not _check_increment(e, -1, r3):
        return
    _keep_increment(e, insn)
    if insn.word >> 31 & 1:
        e.consume(r3)
        e.line(f"a = {e.gr(r3)}")
        e.line("R1[a >> 12]")
    elif insn.format != "M13":
        e.line(f"a = {e.gr(r3)}")
    if insn.format != "M13":
        _increment(e, insn, "imm9b" if insn.format == "M15" else "")


def semaphore(e: Emitter, insn: SlotInsn) -> None:
    """`cmpxchg`, xchg, fetchadd, cmp8xchg16."""
    word = insn.word
    r1, r2, r3 = insn.field("r1"), insn.field("r2"), insn.field("r3")
    x6, size = word >> 30 & 63, 1 << (word >> 30 & 3)
    if not e.check_target(r1):
        return
    if insn.format == "M17":
        _base(e, r3)
        value = f"fetch_add(a, {4 if x6 & 3 == 2 else 8}, {insn.immediate('inc3')})"
    else:
        e.consume(r2, r3)
        e.line(f"a = {e.gr(r3)}")
        if x6 >= 0x20:
            value = f"compare_exchange_16(a, {e.gr(r2)})"
        elif x6 >> 2 == 2:
            value = f"exchange(a, {size}, {e.gr(r2)})"
        else:
            value = f"compare_exchange(a, {size}, {e.gr(r2)})"
    e.put(r1, value)


def check_advanced(e: Emitter, insn: SlotInsn) -> None:
    """`chk`.a."""
    clear = bool(insn.word >> 33 & 1)
    r1 = insn.field("r1")
    entry = f"'r', S.physical({r1})"
    if insn.format == "M23":
        entry = f"'f', S.physical_float({r1})"
    with e.block(f"if not L.holds({entry}, {clear}):"):
        e.leave(str(insn.target(e.ip)))


def check_speculation(e: Emitter, insn: SlotInsn) -> None:
    """`chk`.s."""
    r2 = insn.field("r2")
    target = str(insn.target(e.ip))
    if insn.format == "M21":
        with e.block(f"if f[{r2}] == NATVAL:"):
            e.leave(target)
    elif e.nats and r2:
        with e.block(f"if n[{r2}]:"):
            e.leave(target)


def invalidate(e: Emitter, insn: SlotInsn) -> None:
    """`invala`, invala.e."""
    if insn.format == "M26":
        e.line(f"L.pop(('r', S.physical({insn.field('r1')})), None)")
    else:
        e.line(f"L.pop(('f', S.physical_float({insn.field('f1')})), None)")


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
    "M11": load_pair,
    "M12": load_pair,
    "M13": prefetch,
    "M14": prefetch,
    "M15": prefetch,
    "M16": semaphore,
    "M17": semaphore,
    "M20": check_speculation,
    "M21": check_speculation,
    "I20": check_speculation,
    "M22": check_advanced,
    "M23": check_advanced,
    "M26": invalidate,
    "M27": invalidate,
}
