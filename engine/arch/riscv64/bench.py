"""The guest that `bench` measures RISC-V on."""

import struct
from typing import Final

from engine.arch.bench import BenchGuest
from engine.arch.riscv64.decode import (
    LUI,
    NAMES,
    OP,
    OP_IMM,
    OP_IMM_32,
    RA,
    ZERO,
    branch,
    i_type,
    jal,
    r_type,
    signed,
)

_A0, _A1, _A2, _A3, _A5, _A7, _COUNT = (
    NAMES.index(name) for name in ("a0", "a1", "a2", "a3", "a5", "a7", "s1")
)
_ECALL, _RET = 0x00000073, 0x00008067


def _constant(register: int, value: int) -> tuple[int, ...]:
    """`lui` and `addiw` of a number of at most 31 bits."""
    low = signed(value, 12)
    return (
        (value - low & 0xFFFFF000) | register << 7 | LUI,
        i_type(OP_IMM_32, 0, register, register, low),
    )


def _move(target: int, source: int, offset: int = 0) -> int:
    return i_type(OP_IMM, 0, target, source, offset)


def _main(start: int, calls: int, text: int, function: int) -> bytes:
    """The program, at its address."""
    before = _constant(_COUNT, calls)
    body = [
        _move(_A0, _COUNT),
        _move(_A1, _COUNT, 1),
        *_constant(_A2, text),
        _move(_A3, _COUNT),
    ]
    body.append(jal(RA, function - start - 4 * (len(before) + len(body))))
    body.append(_move(_COUNT, _COUNT, -1))
    body.append(branch(1, _COUNT, -4 * len(body)))
    end = (_move(_A0, ZERO), _move(_A7, ZERO, 93), _ECALL)
    code = (*before, *body, *end)
    return struct.pack(f"<{len(code)}I", *code)


BENCH: Final = BenchGuest(
    main=_main,
    work=struct.pack("<3I", r_type(OP, 0, 0, _A5, _A0, _A1), _move(_A0, _A5), _RET),
    fetches=("%a0", "%a1", "%a2", "%a3", "%a4", "%a6", "%a7", "%t0"),
)
