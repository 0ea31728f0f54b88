"""An architecture's part in calls that take the place of a uprobe's no-operation.

Linux 6.18 turns a uprobe on a no-operation of a call's size, once it has been hit, into a call of
a trampoline page in the program, which enters the kernel by a system call (`uprobe`) in place of
an exception.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

WORD: Final = 8
ENTRIES: Final = 256
"""Of a trampoline's table, by the lowest byte of a return address."""


class NopCalls(Struct, frozen=True):
    """An architecture's part in such calls.

    Attributes:
        size: bytes of the no-operation, and of the call.
        page: bytes of the pages of which the no-operation must not leave one.
        is_nop: whether Linux takes some bytes for such a no-operation.
        does_something: whether it is wrong about that.
        call: (place, target) to the call; None beyond its reach.
        code: the trampoline.
        syscall: offset of the system call in it.
        pushes: (offset behind it, register) of the instructions in front of that which push a
            register, in order.
        pops: (offset behind it, register) of those behind it which pop them.
        aside: offset of code of the engine's that a jump in the system call's place leads to: it
            goes on where a table has for the lowest byte of the return address.
        detour: that code, and behind it what pops the registers and ends with a breakpoint, in
            front of which the return address alone is left on the stack.
        slow: offset of that.
        jump: that jump.
        aside_pops: as `pops`.
        table: offset of the table, of `ENTRIES` addresses.
        stubs: offset of room for stubs, up to the end of the page.
        stub_size: bytes of one.
        stub_pops: as `pops`, from its beginning; last is "", for the return address.
        stub: (place, return address, elsewhere, code) to a stub that the table may lead to: it
            takes all off the stack and goes on to code where the call returns there; if it does
            not it goes elsewhere, in the same page. None where the code is beyond its reach.
        result: register of the system call's number, and of its result.
        leaves: register that a system call leaves the flags in, and the one that it leaves the
            program counter in.
        flags: register of the flags.
    """

    size: int
    page: int
    is_nop: Callable[[bytes], bool]
    does_something: Callable[[bytes], bool]
    call: Callable[[int, int], bytes | None]
    code: bytes
    syscall: int
    pushes: tuple[tuple[int, str], ...]
    pops: tuple[tuple[int, str], ...]
    aside: int
    detour: bytes
    slow: int
    jump: bytes
    aside_pops: tuple[tuple[int, str], ...]
    table: int
    stubs: int
    stub_size: int
    stub_pops: tuple[tuple[int, str], ...]
    stub: Callable[[int, int, int, int], bytes | None]
    result: str
    leaves: tuple[str, str]
    flags: str

    @property
    def behind(self) -> int:
        """Offset of the first instruction behind the system call."""
        return self.syscall + 2

    @property
    def overwritten(self) -> int:
        """Bytes below the program's stack pointer that a hit overwrites."""
        return WORD * (1 + len(self.pushes))

    def lost(self, used: tuple[int, int] | None) -> str:
        """Bytes that a hit overwrites and the program reads later, in words; "" for none.

        Args:
            used: lowest and highest offset from the stack pointer of what is read later.
        """
        if used is None or used[1] < -self.overwritten:
            return ""
        low = max(used[0], -self.overwritten)
        return f"{-low} to {-used[1]} bytes below the stack pointer"

    def pushed(self, offset: int) -> int:
        """Number of registers on the stack, above which the return address is, at an offset.

        -1 where that is off the stack, too.
        """
        pops = self.pops if offset < self.aside else self.aside_pops
        if offset >= self.stubs:
            return len(self.pushes) - sum(
                (offset - self.stubs) % self.stub_size >= end for end, _ in self.stub_pops
            )
        done = sum(offset >= end for end, _ in self.pushes)
        return done - sum(offset >= end for end, _ in pops)

    @property
    def trap(self) -> int:
        """Offset of the engine's breakpoint."""
        return self.aside_pops[-1][0]
