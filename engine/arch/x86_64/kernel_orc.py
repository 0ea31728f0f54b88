"""The numbers that ORC, the kernel's unwind format, has for registers and frames here.

Sources: arch/x86/include/asm/orc_types.h, arch/x86/include/asm/ptrace.h.
"""

from typing import Final

from engine.arch.frames import OrcNumbers, OrcSource

_SAVED: Final = (
    *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8"),
    *("rax", "rcx", "rdx", "rsi", "rdi"),
)
_IP, _FLAGS, _SP = 128, 144, 152

ORC: Final = OrcNumbers(
    stack={
        2: OrcSource("rdx", moved=False),
        3: OrcSource("rdi", moved=False),
        4: OrcSource("rbp"),
        5: OrcSource("rsp"),
        6: OrcSource("r10", moved=False),
        7: OrcSource("r13", moved=False),
        8: OrcSource("rbp", indirect=True),
        9: OrcSource("rsp", indirect=True, behind=True),
    },
    in_frame=1,
    by_pointer=4,
    saved={name: 8 * at for at, name in enumerate(_SAVED)}
    | {"rip": _IP, "eflags": _FLAGS, "rsp": _SP},
    partial={"rip": 0, "eflags": _FLAGS - _IP, "rsp": _SP - _IP},
    thunks=("__x86_indirect_",),
)
