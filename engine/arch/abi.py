"""Facts of the processor's supplement of the ELF ABI: calls, linkage stubs, symbols.

`engine.image` finds parameters with it and names stubs and symbols.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from engine.arch.abivalues import Divide, ResultPlaces


class CallConvention(Struct, frozen=True):
    """A calling convention in numbers.

    Attributes:
        general: DWARF numbers of the argument registers.
        vectors: DWARF numbers of the vector or floating-point registers that take arguments.
        stack: (DWARF number of the stack pointer, distance to the first argument on it).
        hidden_result: a big result's address takes the first argument register.
        by_reference: what is in memory is passed by its address, not on the stack.
        divide: divides values into parts of registers.
        skips: what finds too few general registers takes the last ones away from the rest.
        evens: what is aligned to two words begins at an even general register.
        straddles: what needs two registers and finds one is half in it and half on the stack.
        overflows: floating-point numbers take general registers when theirs are used up.
        aligns_unnamed: bitfields without a name align structures.
        slots: all arguments take words of one row, floating-point ones too; the row goes on on
            the stack.
        own_format: floating-point registers hold numbers in a format of their own.
    """

    general: tuple[int, ...]
    vectors: tuple[int, ...]
    stack: tuple[int, int]
    hidden_result: bool
    by_reference: bool
    divide: "Divide"
    skips: bool = False
    evens: bool = False
    straddles: bool = False
    overflows: bool = False
    aligns_unnamed: bool = False
    slots: bool = False
    own_format: bool = False


class LinkageStubs(Struct, frozen=True):
    """Bytes of the stubs through which calls leave an image.

    Attributes:
        glob_dat: relocation that fills a slot with a symbol's address.
        jump_slot: relocation that fills a slot of a stub.
        irelative: relocation that fills a slot with what a resolver returns.
        find: (code, its address) to (offset of a stub, address of the slot that it jumps
            through) of all that it holds.
    """

    glob_dat: int
    jump_slot: int
    irelative: int
    find: Callable[[bytes, int], Iterator[tuple[int, int]]]


class GoRegisters(Struct, frozen=True):
    """An architecture's registers as Go uses them.

    Source: "Go internal ABI specification" (cmd/compile/abi-internal.md) and the runtime's
    assembly of each architecture (runtime/asm_*.s, tls_*.s). Before the register ABI (Go 1.17 on
    x86-64, 1.18 on AArch64, 1.19 on RISC-V) and in functions of ABI0 arguments are above the
    stack pointer.

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


class ElfAbi(Struct, frozen=True):
    """Facts of an architecture about ELF files and calls.

    Attributes:
        calls: the calling convention; None where nobody needs it.
        stubs: of the procedure linkage table; None where they are not recognised.
        divide: divides values into parts of registers; None where nobody needs it.
        results: gives the registers of a function's result, with `divide`.
        quads: long double is IEEE's format of 128 bits.
        mapping_symbols: symbols without a type whose names begin with "$" tell code from data.
        go: registers that Go's runtime gives a meaning; None where Go does not run.
        thread_block: bytes from the thread pointer to the program's block of thread-local
            variables behind it; None where that is in front (ELF Handling For TLS, 3).
        thread_vector: bytes from the thread pointer to the address of the vector of blocks in
            glibc's tcbhead_t; None where libraries' variables are not found.
    """

    calls: CallConvention | None = None
    stubs: LinkageStubs | None = None
    mapping_symbols: bool = False
    quads: bool = False
    divide: "Divide | None" = None
    results: "Callable[[], ResultPlaces] | None" = None
    go: GoRegisters | None = None
    thread_block: int | None = None
    thread_vector: int | None = None
