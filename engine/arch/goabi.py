"""Registers that Go's runtime gives a meaning: the running goroutine, a function's first argument.

Source: "Go internal ABI specification" (cmd/compile/abi-internal.md) and the runtime's assembly of
each architecture (runtime/asm_*.s, tls_*.s). Before the register ABI (Go 1.17 on x86-64, 1.18 on
AArch64, 1.19 on RISC-V) and in functions of ABI0 arguments are above the stack pointer.
"""

from typing import Final

from msgspec import Struct


class GoRegisters(Struct, frozen=True):
    """An architecture's registers as Go uses them.

    Attributes:
        goroutine: holds the address of the running goroutine's descriptor (`g`).
        general: take integers and pointers, arguments and results, in this order.
        real: the same for floating-point numbers.
        room: bytes in front of a call's arguments on the stack, for a callee's link register.
        stacked: distance from the stack pointer at the entry of a function of ABI0 to its
            first argument.
        thread_word: distance from the thread register to a word with the goroutine's address,
            where functions of ABI0 may use the register; None where they may not.
    """

    goroutine: str
    general: tuple[str, ...]
    real: tuple[str, ...]
    room: int = 8
    stacked: int = 8
    thread_word: int | None = None

    @property
    def first(self) -> str:
        """The register of a function's first integer argument."""
        return self.general[0]


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
