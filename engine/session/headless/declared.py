"""Changes that a way of catching returns makes by its nature, told from a probe's effect.

A trampoline's address stands wherever the program has, or copies, the return address of a hooked
call; Owens' trampoline also lowers the stack and empties ar.pfs' frame. Which values have been
replaced by which is noted at each call. Where the plain run has the one and the probed run the
other, that is no effect; anything that follows from it (another branch, another output) is one.
"""

import struct
from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from engine.session.guest.session import Session

_WORD: Final = 8

Read = Callable[[int, int], bytes]
"""(address, size) to memory as the program knows it."""


class DeclaredChanges(Struct):
    """The values that catching returns has replaced in one run.

    Attributes:
        pairs: (the program's own value, what stood in its place).
        lowered: bytes by which a hooked call has its stack lower; 0 = the stack stays.
        stacks: (start, end) of a lowered stack, to the end of what hooked calls have there.
    """

    pairs: set[tuple[int, int]] = field(default_factory=set)
    lowered: int = 0
    stacks: dict[tuple[int, int], int] = field(default_factory=dict)

    def note(self, session: Session) -> None:
        """From now on the calls of a session's guest are noted."""
        probing = session.probes()
        changes = probing.manager.returns.changes
        self.lowered = lowered = changes.stack

        def noted(sp: int, pairs: tuple[tuple[int, int], ...]) -> None:
            self.pairs.update(pairs)
            stack = probing.here.space.memory.find(sp - lowered) if lowered else None
            if stack is not None:
                key = stack.start, stack.end
                self.stacks[key] = max(sp + changes.scratch, self.stacks.get(key, 0))

        probing.note_returns(noted)

    def same(self, plain: int, probed: int) -> bool:
        """True if the values are equal, or differ by what was replaced."""
        return plain == probed or (plain, probed) in self.pairs or self._moved(plain, probed)

    def _moved(self, plain: int, probed: int) -> bool:
        """True for addresses of a stack that is lower by some calls."""
        distance = plain - probed
        if not self.lowered or distance <= 0 or distance % self.lowered:
            return False
        return any(start <= probed < plain <= end for start, end in self.stacks)

    def difference(self, start: int, plain: bytes, probed: bytes) -> int | None:
        """Address of the first word that differs by something else than was replaced, or None.

        Of a stack that was lowered nothing below the calls' frames is compared.

        Args:
            start: address of the bytes, a multiple of a word.
            plain: those of the plain run, whole words.
            probed: those of the probed run, as many.
        """
        words = f"<{len(plain) // _WORD}Q"
        pairs = zip(struct.unpack(words, plain), struct.unpack(words, probed), strict=True)
        for address, (left, right) in zip(
            range(start, start + len(plain), _WORD), pairs, strict=True
        ):
            if left == right or self.same(left, right) or self._partly(left, right):
                continue
            if not self._below(address):
                return address
        return None

    def _partly(self, plain: int, probed: int) -> bool:
        """True where bytes have been written over a part of a value that was replaced."""
        changed = plain ^ probed
        mask = sum(0xFF << at for at in range(0, 64, 8) if changed >> at & 0xFF)
        return any(
            not (plain ^ old) & mask and not (probed ^ new) & mask for old, new in self.pairs
        )

    def _below(self, address: int) -> bool:
        return any(start <= address < top for (start, _), top in self.stacks.items())
