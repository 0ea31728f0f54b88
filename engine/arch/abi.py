"""Facts of the processor's supplement of the ELF ABI: calls, linkage stubs, symbols.

`engine.image` finds parameters with it and names stubs and symbols.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from engine.arch.goabi import GoRegisters

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
    """

    calls: CallConvention | None = None
    stubs: LinkageStubs | None = None
    mapping_symbols: bool = False
    quads: bool = False
    divide: "Divide | None" = None
    results: "Callable[[], ResultPlaces] | None" = None
    go: GoRegisters | None = None
    thread_block: int | None = None
