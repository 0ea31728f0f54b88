"""The RISC-V ELF psABI (LP64D): calls, linkage stubs, symbols."""

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from engine.arch.abi import CallConvention, ElfAbi, GoRegisters, LinkageStubs

if TYPE_CHECKING:
    from engine.arch.abivalues import RegisterPart, ResultPlaces, ValueShape


def _stubs(code: bytes, address: int) -> Iterator[tuple[int, int]]:
    """Yield (offset of the stub, GOT slot) of `auipc t3, ...; ld t3, n(t3)` forms (8.4.5)."""
    words = struct.unpack(f"<{len(code) // 4}I", code[: len(code) // 4 * 4])
    for index in range(len(words) - 1):
        auipc, load = words[index], words[index + 1]
        if auipc & 0xFFF != 0xE17 or load & 0xFFFFF != 0xE3E03:
            continue
        high = (auipc & 0xFFFFF000) - ((auipc & 1 << 31) << 1)
        low = (load >> 20) - ((load >> 31) << 12)
        yield 4 * index, address + 4 * index + high + low


def _divide(shape: "ValueShape") -> "tuple[RegisterPart, ...] | None":
    from engine.arch.riscv64.results import divide  # few sessions look at values of calls

    return divide(shape)


def _results() -> "ResultPlaces":
    from engine.arch.riscv64.results import RESULTS  # likewise

    return RESULTS


ABI: Final = ElfAbi(
    go=GoRegisters(
        "s11",
        (*(f"a{n}" for n in range(8)), *(f"s{n}" for n in range(8))),
        (*(f"fa{n}" for n in range(8)), *(f"fs{n}" for n in range(8))),
    ),
    thread_block=0,
    calls=CallConvention(  # 2.1, 2.2; DWARF numbers of chapter 13
        general=tuple(range(10, 18)),
        vectors=tuple(range(42, 50)),
        stack=(2, 0),
        hidden_result=True,
        by_reference=True,
        divide=_divide,
        skips=True,
        straddles=True,
        overflows=True,
    ),
    stubs=LinkageStubs(glob_dat=2, jump_slot=5, irelative=58, find=_stubs),  # R_RISCV_64, ...
    mapping_symbols=True,
    quads=True,
    divide=_divide,
    results=_results,
)
