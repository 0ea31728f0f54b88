"""Places between a load-reserved and its store-conditional, which a trap must not separate.

A trap there ends the reservation: Linux gives it up on its way back to the program, by a
store-conditional to the stack (kernel/entry.S). So the store fails, the program tries again and
traps again, for ever. Linux does not look for such places.
"""

import re
from typing import Final

from engine.arch.riscv64.decode import InsnKind, branch_target, classify, length, rd, word_of

WINDOW: Final = 128
"""Bytes looked back at: twice what the manual promises progress for (volume I, section 8.3:
sixteen instructions)."""

_LOAD_RESERVED: Final = re.compile(rb"[\x2f\xaf].[\x00-\x0f][\x10\x12\x14\x16]", re.DOTALL)

# Behind these control does not go on, or not with the reservation.
_LEAVES: Final = frozenset({InsnKind.ECALL, InsnKind.EBREAK, InsnKind.SYSTEM, InsnKind.UNDEFINED})


def inside_pair(before: bytes) -> bool:
    """Tell whether the place can be reached from a load-reserved before its store-conditional.

    Args:
        before: the original bytes of the same function before the place.

    The place counts only if control gets there: falling through or by a branch that lies in
    between. What it cannot see: longer sequences than `WINDOW`; parts of a sequence that are
    laid out in front of its load or behind its store and are reached by a branch (a place behind
    the store counts as left, as the exit of a compare-and-swap loop must); loads that no store
    ever follows are taken for the start of a sequence.
    """
    if not _LOAD_RESERVED.search(before, max(len(before) - WINDOW, 0)):
        return False
    insns = _insns(before)
    for start in reversed(range(len(insns))):
        kind = insns[start][2]
        if kind is InsnKind.STORE_CONDITIONAL:
            return False
        if kind is InsnKind.LOAD_RESERVED:
            return _flows(insns[start:], len(before))
    return False


def may_pair(code: bytes) -> bool:
    """True if there may be a load-reserved in some code."""
    return bool(_LOAD_RESERVED.search(code))


def _insns(before: bytes) -> list[tuple[int, int, InsnKind]]:
    """(offset, word, kind) of the last instructions in front of the place."""
    found = []
    at = 0
    while at < len(before):
        size = length(before[at : at + 4])
        if not size:
            break
        if at >= len(before) - WINDOW:
            word = word_of(before[at : at + size])
            found.append((at, word, classify(word)))
        at += size
    return found


def _flows(insns: list[tuple[int, int, InsnKind]], end: int) -> bool:
    """Tell whether control gets from the first instruction to the place behind the last."""
    places = [at for at, _, _ in insns] + [end]
    index = {at: number for number, at in enumerate(places)}
    reached: set[int] = set()
    waiting = [0]
    while waiting:
        number = waiting.pop()
        if number == len(insns):
            return True
        if number in reached:
            continue
        reached.add(number)
        at, word, kind = insns[number]
        jumps = kind in (InsnKind.JAL, InsnKind.JALR) and not rd(word)
        if kind not in _LEAVES and not jumps:
            waiting.append(number + 1)
        target = branch_target(word, kind, at)
        if target is not None and not (kind is InsnKind.JAL and rd(word)) and target in index:
            waiting.append(index[target])
    return False
