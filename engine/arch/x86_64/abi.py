"""The System V ABI's AMD64 supplement: calls and linkage stubs."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from engine.arch.abi import CallConvention, ElfAbi, GoRegisters, LinkageStubs

if TYPE_CHECKING:
    from engine.arch.abivalues import RegisterPart, ResultPlaces, ValueShape

_STUB: Final = re.compile(rb"(?:\xf3\x0f\x1e\xfa)?\xf2?\xff\x25(....)", re.DOTALL)


def _stubs(code: bytes, address: int) -> Iterator[tuple[int, int]]:
    """Yield (offset of the stub, GOT slot) of `jmp *slot(%rip)` forms."""
    for match in _STUB.finditer(code):
        displacement = int.from_bytes(match[1], "little", signed=True)
        yield match.start(), address + match.end() + displacement


def _divide(shape: "ValueShape") -> "tuple[RegisterPart, ...] | None":
    from engine.arch.x86_64.results import divide  # few sessions look at values of calls

    return divide(shape)


def _results() -> "ResultPlaces":
    from engine.arch.x86_64.results import RESULTS  # likewise

    return RESULTS


ABI: Final = ElfAbi(
    # The linker puts the word of static programs there; r14 is anybody's in functions of ABI0.
    go=GoRegisters(
        "r14",
        ("rax", "rbx", "rcx", "rdi", "rsi", "r8", "r9", "r10", "r11"),
        tuple(f"xmm{number}" for number in range(15)),
        room=0,
        thread_word=-8,
    ),
    thread_vector=8,
    divide=_divide,
    results=_results,
    calls=CallConvention(  # 3.2.3; DWARF numbers of figure 3.36
        general=(5, 4, 1, 2, 8, 9),
        vectors=tuple(range(17, 25)),
        stack=(7, 8),
        hidden_result=True,
        by_reference=False,
        divide=_divide,
    ),
    stubs=LinkageStubs(glob_dat=6, jump_slot=7, irelative=37, find=_stubs),  # table 4.9
)
