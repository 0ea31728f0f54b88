"""Facts of the processor's supplement of the ELF ABI: calls, linkage stubs, symbols.

`engine.image` finds parameters with it and names stubs and symbols.
"""

from collections.abc import Callable, Iterator
from enum import Enum, auto

from msgspec import Struct


class SmallRecords(Enum):
    """Ways to pass structures of up to two words by value."""

    BY_WORD = auto()
    """Each word in a register of the kind of what is in it (System V ABI, AMD64, 3.2.3)."""
    WHOLE = auto()
    """Up to four numbers of floating point in vector registers, all else in general ones
    (AAPCS64, 6.8.2)."""
    BY_FIELD = auto()
    """Up to two fields, one of them of floating point, each in a register of its kind; all else
    in general ones (RISC-V ELF psABI, 2.2)."""


class CallConvention(Struct, frozen=True):
    """A calling convention in numbers.

    Attributes:
        general: DWARF numbers of the argument registers.
        vectors: how many vector or floating-point registers take arguments.
        stack: (DWARF number of the stack pointer, distance to the first argument on it).
        hidden_result: a big result's address takes the first argument register.
        by_reference: structures of more than two words are passed by their address.
        records: how smaller ones are passed.
        straddles: what needs two registers and finds one is half in it and half on the stack.
        overflows: floating-point numbers take general registers when theirs are used up.
    """

    general: tuple[int, ...]
    vectors: int
    stack: tuple[int, int]
    hidden_result: bool
    by_reference: bool
    records: SmallRecords
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
        float_result: register that a function's floating-point result comes in, "" for not known.
        mapping_symbols: symbols without a type whose names begin with "$" tell code from data.
    """

    calls: CallConvention | None = None
    stubs: LinkageStubs | None = None
    mapping_symbols: bool = False
    float_result: str = ""
