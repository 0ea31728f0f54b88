"""Stacks of goroutines, as Go's runtime describes them.

The runtime of Go gives each goroutine a stack in its heap and copies it to another place when it
is too small or too large. Where a stack is, the goroutine's descriptor `g` says, whose address is
in a register.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.arch.base import Arch
from engine.cpu.base import Cpu
from engine.errors import GuestFaultError
from engine.guest.memory import Memory

STACK_LOW: Final = 0
"""Offset of `g.stack.lo`, the lowest address of a goroutine's stack (runtime2.go: "stack is the
first field"); debuggers and the linker's prologues rely on it."""
STACK_HIGH: Final = 8
"""Offset of `g.stack.hi`, the address behind it."""
STACK_LEAST: Final = 2048
"""Bytes of the smallest stack of a goroutine; all have a power of two (runtime/stack.go)."""
THREAD: Final = 48
"""Offset of `g.m`, the thread that runs a goroutine: behind the stack, two guards, `_panic` and
`_defer`."""
SCHEDULER: Final = 0
"""Offset of `m.g0`, the goroutine on whose stack a thread's scheduler runs ("g0 must come
first")."""
_WORD: Final = 8


class GoStack(Struct, frozen=True):
    """The stack of a goroutine.

    Attributes:
        low: lowest address.
        high: behind the highest one.
        scheduler: a thread's scheduler runs on it, and no goroutine of the program's.
    """

    low: int
    high: int
    scheduler: bool


class GoroutineStacks:
    """Finds the stacks of goroutines in one address space.

    Attributes:
        present: whether the program has Go's runtime; until then nothing is read.
    """

    def __init__(self, arch: Arch, cpu: Cpu, memory: Memory) -> None:
        """No runtime is known of."""
        self.present = False
        self._memory = memory
        self._registers = arch.abi.go
        self._latest: GoStack | None = None
        self._cpu, self._roles = cpu, arch.roles
        self._read: Callable[[], tuple[int, ...]] | None = None

    def forget(self) -> None:
        """A stack has come, gone or moved."""
        self._latest = None

    def stack_at(self, address: int) -> GoStack | None:
        """The running goroutine's stack, if an address lies on it."""
        if not self.present:
            return None
        known = self._latest
        if known is not None and known.low <= address < known.high:
            return known
        register, _, _, thread = self._values()
        found = self._stack(register, address)
        if found is None and self._registers is not None:
            distance = self._registers.thread_word
            if distance is not None:
                found = self._stack(self._word(thread + distance), address)
        self._latest = found
        return found

    def argument(self) -> tuple[int, int, int] | None:
        """At the entry of a function of the runtime whose first argument is a goroutine.

        Returns:
            Address of its descriptor and the bounds of its stack; None if it is none.
        """
        if self._registers is None:
            return None
        _, first, sp, _ = self._values()
        for descriptor in (first, self._word(sp + self._registers.stacked)):
            found = self.bounds(descriptor)
            if found is not None:
                return descriptor, *found
        return None

    def bounds(self, descriptor: int) -> tuple[int, int] | None:
        """The bounds of the stack of a goroutine that is none of the runtime's own.

        Args:
            descriptor: address of its `g`, or of anything else: then None.
        """
        if not descriptor:
            return None
        low, high = self._word(descriptor + STACK_LOW), self._word(descriptor + STACK_HIGH)
        size = high - low
        return (low, high) if size >= STACK_LEAST and not size & size - 1 else None

    def _stack(self, descriptor: int, address: int) -> GoStack | None:
        """The stack of a descriptor, if an address lies on it."""
        if not descriptor or descriptor % _WORD:
            return None
        low, high = self._word(descriptor + STACK_LOW), self._word(descriptor + STACK_HIGH)
        if not 0 < low <= address < high:
            return None
        scheduler = self._word(self._word(descriptor + THREAD) + SCHEDULER)
        return GoStack(low, high, scheduler == descriptor)

    def _word(self, address: int) -> int:
        """A word of memory; 0 where nothing is mapped."""
        try:
            return int.from_bytes(self._memory.read(address, _WORD), "little")
        except GuestFaultError:
            return 0

    def _values(self) -> tuple[int, ...]:
        """Values of the goroutine's register, the first argument's, stack pointer and thread's."""
        if self._read is None:
            assert self._registers is not None, "asked for where Go runs"
            names = (self._registers.goroutine, self._registers.first)
            tls = self._roles.tls if self._registers.thread_word is not None else None
            self._read = self._cpu.traps.reader((*names, self._roles.sp, tls or self._roles.sp))
        return self._read()
