"""Slots to Python functions.

A block runs from an entry through conditional branches that are not taken up to an
unconditional one; its function returns the address to go on at. Faults are exceptions: the
line that raised tells the slot, and every slot checks before it changes anything.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from msgspec import Struct

from engine.arch.ia64.bundle import SIZE, next_slot
from engine.arch.ia64.decode import SlotInsn, decode_raw
from engine.cpu.ia64 import (
    emit_branch,
    emit_float,
    emit_memory,
    emit_system,
)
from engine.cpu.ia64.emitter import Emit, Emitter
from engine.cpu.ia64.insns_integer import COMPARES, RESULTS
from engine.cpu.ia64.memory import SHIFT, Ia64Memory
from engine.cpu.ia64.stops import OutOfMemory, PageFault
from engine.cpu.ia64.value import IllegalInsn
from engine.cpu.ram import PAGE

FIRST_LINE: Final = 3
LONGEST: Final = 48
"""Slots of a block at the most."""
_EMIT: Final[dict[str, Emit]] = {
    **{name: partial(Emitter.result, how=how) for name, how in RESULTS.items()},
    **COMPARES,
    **emit_branch.EMIT,
    **emit_float.EMIT,
    **emit_memory.EMIT,
    **emit_system.EMIT,
}
_SELF_PREDICATED: Final = frozenset(
    ("F4", "F5", "F6", "F7", "M25", "M34", *COMPARES, *emit_branch.UNPREDICATED)
)
"""Formats that see to their predicate themselves, or that have none."""
_NAMES: Final = "g=g, n=n, p=p, f=f, b=b, A=A, F=F, U=U"

Block = Callable[[], int]


class Translation(Struct, frozen=True):
    """A block.

    Attributes:
        run: executes it; returns the next address.
        places: slot addresses by line of its source, from line FIRST_LINE on.
        pages: virtual pages that it was read from.
        slots: how many it has.
    """

    run: Block
    places: tuple[int, ...]
    pages: tuple[int, ...]
    slots: int


class Translator:
    """Makes blocks from guest memory."""

    def __init__(self, memory: Ia64Memory, namespace: dict[str, Any]) -> None:
        self._memory = memory
        self._namespace = namespace

    def translate(
        self, entry: int, nats: bool, clocked: bool, longest: int, loops: bool
    ) -> Translation:
        """The block that begins at a slot; `loops` says if it may go round inside its function.

        Raises:
            PageFault: the entry cannot be fetched.
            OutOfMemory: its page may not be touched any more.
        """
        loops = loops and not nats and not clocked and longest > 1
        emitter = Emitter(nats, clocked, entry if loops else -1)
        pages: dict[int, bytes] = {}
        at, count = entry, 0
        while count < longest and not emitter.ends:
            page = at >> SHIFT
            if page not in pages:
                try:
                    offset, pages[page] = self._memory.fetch(page)
                except (PageFault, OutOfMemory):
                    if at == entry:
                        raise
                    break
                self._memory.protect(offset)
            offset = at & PAGE - 1 & ~15
            at = self._slot(emitter, pages[page][offset : offset + SIZE], at)
            count += 1
        self._end(emitter, at)
        return self._build(emitter, entry, tuple(pages), count)

    def apart(self, entry: int, raw: bytes, nats: bool) -> Translation:
        """One slot of a bundle that need not be in memory."""
        emitter = Emitter(nats, False, -1)
        self._end(emitter, self._slot(emitter, raw, entry))
        return self._build(emitter, entry, (), 1)

    def _end(self, emitter: Emitter, at: int) -> None:
        """Behind the last slot: on to the next."""
        emitter.slot = at
        if not emitter.ends:
            emitter.behind = at
            emitter.leave(str(at))

    def _slot(self, emitter: Emitter, raw: bytes, at: int) -> int:
        """Emit one slot of a bundle; the address behind it."""
        bundle, insns = decode_raw(raw)
        emitter.ip, emitter.slot = at & ~15, at
        emitter.behind = next_slot(at, bundle)
        insn = insns[at & 3]
        if insn is None:
            reserved = not any(insns)
            what = "a reserved template" if reserved else "the second half of a long instruction"
            emitter.illegal(what)
            emitter.ends = True
        else:
            emit(emitter, insn)
        return emitter.behind

    def _build(
        self, emitter: Emitter, entry: int, pages: tuple[int, ...], count: int
    ) -> Translation:
        lines, places = emitter.lines, emitter.places
        if emitter.required:
            narrow, guard = f"F[0] < {emitter.required}", "raise NarrowFrame"
            if count == 1:
                guard = "raise Illegal('a register beyond the frame is written')"
                if emitter.required_if:
                    narrow = f"p[{emitter.required_if}] and {narrow}"
            lines.insert(0, f"        if {narrow}: {guard}")
            places.insert(0, entry)
        head = "while True" if emitter.loops else "if True"
        # Code objects are equal if their names and bodies are: the name tells blocks apart.
        name = f"block_{entry:x}"
        source = f"def {name}({_NAMES}):\n    {head}:\n" + "\n".join(lines)
        local: dict[str, Any] = {}
        exec(compile(source, f"<ia64 {entry:#x}>", "exec"), self._namespace, local)
        return Translation(local[name], tuple(places), pages, count)


def emit(emitter: Emitter, insn: SlotInsn) -> None:
    """Source of one instruction."""
    if insn.form is None:
        emitter.illegal("a reserved encoding")
        emitter.ends = True
        return
    kind = insn.form.format
    how, qp = _EMIT[kind], insn.qp
    own = kind in _SELF_PREDICATED or (kind == "B1" and insn.field("btype"))
    emitter.sources.clear()
    try:
        if own or not qp:
            how(emitter, insn)
        else:
            with emitter.predicated(qp):
                how(emitter, insn)
    except IllegalInsn as why:
        with emitter.predicated(qp):
            emitter.illegal(str(why))
