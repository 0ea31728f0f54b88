"""The x86-64 instructions as a kernel's rules for probes see them, found by their first bytes.

Millions of instructions are asked about, and of most two or three bytes decide: prefixes, opcode
and ModRM. Displacements and immediates never do.

Sources: as for `kernel_probes`.
"""

import re
from typing import Final

from msgspec import Struct

from engine.arch.plan import Mode, Rules, Verdict
from engine.arch.x86_64.analyze import analyze
from engine.arch.x86_64.decode import (
    ADDRESS_SIZE,
    CS,
    LEGACY,
    LONGEST,
    PREFIX_BYTES,
    Decoded,
    decode,
    has_modrm,
)
from engine.arch.x86_64.verdicts import NOT_BOOSTABLE

TRAP: Final = "kernel.trap"
INT3: Final = "kernel.int3"

_TRAPS: Final = frozenset((0xCC, 0xCD, 0xCE, 0xF1, 0x10B, 0x1B9, 0x1FF))
_INT3: Final = 0xCC
_SHIFTS: Final = frozenset((0xC0, 0xC1, 0xD0, 0xD1, 0xD2, 0xD3))
_CFI_CHECKS: Final = {0xBA: 12, 0x03: 6}
"""Instructions of a check before an indirect call (mov, add), to the distance of its trap."""
_LOOPS: Final = frozenset((0xE0, 0xE1, 0xE2, 0xE3, 0xE9, 0xEB))
_FILL: Final = re.compile(rb"\xcc+")
_LONG: Final = 5
"""Bytes that are looked at where the first ones do not decide."""
_KEPT: Final = 1 << 16


def _width(first: int) -> int:
    """Bytes that decide about most instructions that begin with one."""
    if first in PREFIX_BYTES.values():
        return _LONG
    if first & 0xF0 == 0x40 or first in (0x0F, 0xC5):
        return 3
    return 2 if has_modrm(0, first) else 1


_WIDTHS: Final = bytes(map(_width, range(256)))


class InsnShape(Struct, frozen=True, gc=False):
    """The facts about one instruction, whatever its displacement and immediate.

    Attributes:
        size: bytes.
        rule: by which a probe is refused wherever it stands; "" for none.
        boosted: its copy may be followed by a jump (can_boost).
        branch_at: offset of the displacement of a relative jump.
        branch_size: its bytes; 0 for what is no relative jump.
        jumps: a jump, relative or indirect.
        trap_behind: distance of the trap of the check of CFI that it may be a part of; 0 for
            other instructions.
    """

    size: int
    rule: str
    boosted: bool
    branch_at: int
    branch_size: int
    jumps: bool
    trap_behind: int


class InsnShapes:
    """The instructions as the rules of one version see them."""

    def __init__(self, *, traps: bool, groups: bool, boosted_0f: frozenset[int]) -> None:
        """Know no shape yet.

        Args:
            traps: traps are places.
            groups: shifts and inc, dec and not are boosted.
            boosted_0f: opcodes behind 0f that are boosted.
        """
        self._traps = traps
        self._groups = groups
        self._boosted_0f = boosted_0f
        self._short: dict[bytes, InsnShape] = {}
        self._long: dict[bytes, InsnShape] = {}
        self._known: dict[bytes, InsnShape] = {}
        insn = decode(bytes((_INT3,)))
        assert insn is not None
        self._int3 = self._shape(insn, bytes((_INT3,)))

    def decoded(
        self, code: bytes, start: int, size: int
    ) -> tuple[list[int], list[InsnShape | None], list[int]]:
        """Addresses and shapes of the instructions of some code, and the numbers of its jumps.

        What cannot be decoded is the last one, without a shape.

        Args:
            code: the bytes.
            start: their address.
            size: how many of them are asked about, perhaps more than there are.
        """
        starts: list[int] = []
        jumps: list[int] = []
        shapes: list[InsnShape | None] = []
        short, widths, learn = self._short.get, _WIDTHS, self._learned
        int3 = self._int3
        present = len(code)
        at = 0
        while at < size:
            starts.append(start + at)
            if at >= present:
                shapes.append(None)
                break
            found = short(code[at : at + widths[code[at]]])
            if found is None:
                if code[at] == _INT3:  # megabytes of them fill gaps
                    last = at + 1
                    if run := _FILL.match(code, at, size):
                        last = run.end()
                    starts.extend(range(start + at + 1, start + last))
                    shapes.extend([int3] * (last - at))
                    at = last
                    continue
                found = learn(code, at)
            if found is None or at + found.size > present:
                shapes.append(None)
                break
            if found.jumps:
                jumps.append(len(shapes))
            shapes.append(found)
            at += found.size
        return starts, shapes, jumps

    def _learned(self, code: bytes, at: int) -> InsnShape | None:
        """The shape of an instruction whose first bytes are not known, or do not decide."""
        front = code[at : at + _LONG]
        found = self._long.get(front)
        if found is not None:
            return found
        insn = decode(code[at : at + LONGEST])
        if insn is None:
            return None
        # An index byte behind a displacement's mode says nothing about the size.
        deciding = insn.size - insn.displacement_size - insn.immediate_size
        if insn.sib >= 0 and insn.modrm >= 0x40:
            deciding = insn.modrm_at + 1
        raw = code[at : at + insn.size]
        found = self._known.get(raw[:deciding])
        if found is None:
            found = self._known[raw[:deciding]] = self._shape(insn, raw)
        width = _WIDTHS[front[0]]
        if deciding <= width:
            self._short[front[:width]] = found
        elif deciding <= _LONG:
            if len(self._long) >= _KEPT:
                self._long.clear()
            self._long[front] = found
        return found

    def _shape(self, insn: Decoded, raw: bytes) -> InsnShape:
        key = insn.key
        legacy = insn.encoding == LEGACY
        relative = legacy and (
            key in _LOOPS or (key & 0xF0 == 0x70 and key < 0x100) or key & 0xFF0 == 0x180
        )
        return InsnShape(
            insn.size,
            self._rule(insn, raw),
            self._boosted(insn),
            insn.immediate_at,
            insn.immediate_size if relative else 0,
            relative or (legacy and (key == 0xEA or (key == 0xFF and insn.reg & 6 == 4))),
            _CFI_CHECKS.get(key, 0) if legacy else 0,
        )

    def _rule(self, insn: Decoded, raw: bytes) -> str:
        """The rule by which a probe is refused wherever it stands."""
        if insn.encoding == LEGACY and insn.key in _TRAPS:
            if not self._traps:
                return TRAP
            return INT3 if insn.key == _INT3 else ""
        found = refused(raw)
        return found[0] if found is not None else ""

    def _boosted(self, insn: Decoded) -> bool:
        """True if its copy may be followed by a jump (can_boost)."""
        key = insn.key
        if insn.encoding == LEGACY and key >= 0x100:
            return key < 0x200 and key & 0xFF in self._boosted_0f
        if insn.prefixes & (CS | ADDRESS_SIZE):
            return False
        code = key & 0xFF
        if code in NOT_BOOSTABLE:
            return False
        if code in _SHIFTS:
            return self._groups and insn.reg != 6
        if code in (0xF6, 0xF7):
            return self._groups and insn.reg != 1
        if code == 0xFE:
            return self._groups and insn.reg < 2
        if code == 0xFF:
            return insn.reg == 4 or (self._groups and insn.reg < 2)
        return True


def refused(raw: bytes) -> tuple[str, str, str] | None:
    """Rule, reason and error by which an instruction is refused wherever it stands."""
    plan = analyze(raw, 0, Rules.KPROBE, Mode.KERNEL, b"")
    if plan.verdict is not Verdict.REJECTED:
        return None
    return plan.rule, plan.reason, plan.errno
