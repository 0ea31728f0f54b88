"""Code that the hits of calls in a trampoline go to, each to that of its probe.

The trampoline looks the lowest byte of the return address up, and goes to a stub that compares all
of it, then perhaps to another one, and without any left to the engine's trap.
"""

import struct
from itertools import pairwise

from engine.arch.nop_call import ENTRIES, WORD, NopCalls
from engine.cpu.ram import PAGE
from engine.guest.memory import Memory


class TrampolineTable:
    """The table of one trampoline."""

    def __init__(self, memory: Memory, calls: NopCalls, start: int) -> None:
        """All hits are left to the engine.

        Args:
            memory: the guest's.
            calls: what the architecture gives.
            start: of the trampoline.
        """
        self._memory, self._calls, self._start = memory, calls, start
        room = (PAGE - calls.stubs) // calls.stub_size
        self._free = [start + calls.stubs + calls.stub_size * number for number in range(room)]
        self._slow = start + calls.slow
        self._led: dict[int, dict[int, tuple[int, int]]] = {}  # (stub, code) by byte and return
        memory.patch(start + calls.table, struct.pack("<Q", self._slow) * ENTRIES)

    def lead(self, returns: int, code: int) -> bool:
        """Have the hits of a call go to code, which finds the registers as they are at the probe.

        Args:
            returns: where the call returns to.
            code: guest address of the code.

        Returns:
            False without room for one more, or where the code is too far away.
        """
        self.leave(returns)
        if not self._free or self._calls.stub(self._free[-1], returns, self._slow, code) is None:
            return False
        self._led.setdefault(returns % ENTRIES, {})[returns] = self._free.pop(), code
        self._write(returns % ENTRIES)
        return True

    def leave(self, returns: int) -> None:
        """Leave the hits of a call to the engine."""
        found = self._led.get(returns % ENTRIES, {}).pop(returns, None)
        if found is not None:
            self._free.append(found[0])
            self._write(returns % ENTRIES)

    def _write(self, byte: int) -> None:
        chain, memory = self._led[byte], self._memory
        places = [*(stub for stub, _ in chain.values()), self._slow]
        for (returns, (stub, code)), (_, following) in zip(
            chain.items(), pairwise(places), strict=True
        ):
            raw = self._calls.stub(stub, returns, following, code)
            assert raw is not None, "asked before"
            memory.patch(stub, raw)
        entry = self._start + self._calls.table + WORD * byte
        memory.patch(entry, struct.pack("<Q", places[0]))
