"""Places between a load-exclusive and its store-exclusive.

A trap there clears the exclusive monitor on its way back (DDI 0487, B2.12.5), so the store
fails, the program tries again and traps again, for ever.
"""

import re
import struct
from typing import Final

from engine.arch.aarch64.decode import Kind, branch_target, classify

WINDOW: Final = 32
"""Instructions looked back at: the 128 bytes within which the manual promises progress, and what
Linux takes (MAX_ATOMIC_CONTEXT_SIZE in arch/arm64/kernel/probes/decode-insn.h)."""

# The top byte of every exclusive, of no branch and of few others.
_TOP_BYTES: Final = re.compile(rb"[\x08\x48\x88\xc8]")

# Behind these control does not go on, or not with the monitor armed.
_LEAVES: Final = frozenset(
    {
        *(Kind.B, Kind.BR, Kind.RET, Kind.BRANCH_AUTH, Kind.RET_AUTH_PC, Kind.ERET),
        *(Kind.CLREX, Kind.SVC, Kind.UNDEFINED),
    }
)


def _words(before: bytes) -> tuple[int, ...]:
    """The last instructions in front of the place, in memory order."""
    count = min(len(before) // 4, WINDOW)
    return struct.unpack_from(f"<{count}I", before, len(before) - 4 * count)


def may_pair(code: bytes) -> bool:
    """True if there may be an exclusive in some code."""
    return bool(_TOP_BYTES.search(code[3::4]))


def _none(before: bytes) -> bool:
    return not _TOP_BYTES.search(before[-1 : -4 * WINDOW - 1 : -4])


EXCLUSIVES: Final = 0x3F800000
"""Mask of exclusives since Linux 6.15 (include/asm/insn.h: load_ex, store_ex), casp with them."""

EARLIER_EXCLUSIVES: Final = 0x3F000000
"""The mask before, which took ldar for a load-exclusive, too, and stlr and cas for stores."""


def linux_scan(before: bytes, mask: int = EXCLUSIVES) -> bool:
    """Linux's scan, which it does for kprobes only: the nearest exclusive behind is a load.

    Args:
        before: the original bytes of the same function before the place.
        mask: what is taken for an exclusive.
    """
    if _none(before):
        return False
    for word in reversed(_words(before)):
        if word & mask == 0x08000000:
            return word & 0x00400000 != 0
    return False


def inside_pair(before: bytes) -> bool:
    """True if the place can be reached from a load-exclusive before its store-exclusive.

    Args:
        before: the original bytes of the same function before the place.

    Linux's scan put right in both directions: only true exclusives count, clrex and system
    calls end a sequence as well, and the place counts only if control gets there: falling
    through or by a branch that lies in between. What it cannot see: sequences of more than
    32 instructions; parts of a sequence that are laid out in front of its load or behind its
    store and are reached by a branch (a place behind the store counts as left, as the exit
    of a compare-and-swap loop must); loads that are never followed by a store, as in a wait
    with wfe, are taken for the start of a sequence; data between instructions is read as
    instructions.
    """
    if _none(before):
        return False
    words = _words(before)
    kinds = [classify(word) for word in words]
    for start in range(len(kinds) - 1, -1, -1):
        if kinds[start] is Kind.STORE_EXCLUSIVE:
            return False
        if kinds[start] is Kind.LOAD_EXCLUSIVE and _flows(words[start:], kinds[start:]):
            return True
    return False


def _flows(words: tuple[int, ...], kinds: list[Kind]) -> bool:
    """True if control gets from the first instruction to the place behind the last."""
    reached = [False] * len(words)
    waiting = [0]
    while waiting:
        at = waiting.pop()
        if at == len(words):
            return True
        if not 0 <= at < len(words) or reached[at]:
            continue
        reached[at] = True
        kind = kinds[at]
        if kind not in _LEAVES:
            waiting.append(at + 1)
        if kind is not Kind.BL and (target := branch_target(words[at], kind, 0)) is not None:
            waiting.append(at + (target - (1 << 64) if target >> 63 else target) // 4)
    return False
