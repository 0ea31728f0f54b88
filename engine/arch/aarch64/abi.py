"""The ABI of AArch64: calls (AAPCS64) and linkage stubs (ELF for the Arm 64-bit Architecture)."""

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from engine.arch.abi import CallConvention, ElfAbi, GoRegisters, LinkageStubs

if TYPE_CHECKING:
    from engine.arch.abivalues import RegisterPart, ResultPlaces, ValueShape

_BTI_C: Final = 0xD503245F


def _stubs(code: bytes, address: int) -> Iterator[tuple[int, int]]:
    """Yield (offset of the stub, GOT slot) of `adrp x16; ldr x17, [x16, #n]` forms."""
    words = struct.unpack(f"<{len(code) // 4}I", code[: len(code) // 4 * 4])
    for index in range(len(words) - 1):
        adrp, load = words[index], words[index + 1]
        if adrp & 0x9F00001F != 0x90000010 or load & 0xFFC003FF != 0xF9400211:
            continue
        pages = (adrp >> 5 & 0x7FFFF) << 2 | adrp >> 29 & 3
        pages -= (pages & 1 << 20) << 1
        page = (address + 4 * index & ~0xFFF) + (pages << 12)
        slot = page + (load >> 10 & 0xFFF) * 8
        start = index - 1 if index and words[index - 1] == _BTI_C else index
        yield 4 * start, slot


def _divide(shape: "ValueShape") -> "tuple[RegisterPart, ...] | None":
    from engine.arch.aarch64.results import divide  # few sessions look at values of calls

    return divide(shape)


def _results() -> "ResultPlaces":
    from engine.arch.aarch64.results import RESULTS  # likewise

    return RESULTS


ABI: Final = ElfAbi(
    go=GoRegisters(
        "x28",
        tuple(f"x{number}" for number in range(16)),
        tuple(f"v{number}" for number in range(16)),
    ),
    thread_block=16,
    thread_vector=0,
    calls=CallConvention(  # AAPCS64, 6.8.2
        general=tuple(range(8)),
        vectors=tuple(range(64, 72)),
        stack=(31, 0),
        hidden_result=False,
        by_reference=True,
        divide=_divide,
        skips=True,
        evens=True,
        aligns_unnamed=True,  # 10.1.8.3
    ),
    stubs=LinkageStubs(glob_dat=1025, jump_slot=1026, irelative=1032, find=_stubs),
    mapping_symbols=True,
    quads=True,
    divide=_divide,
    results=_results,
)
