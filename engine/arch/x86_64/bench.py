"""The guest that `bench` measures on."""

import struct
from typing import Final

from engine.arch.bench import BenchGuest

_LOOP: Final = 7
"""Offset of the loop, behind `mov rbx, COUNT`."""


def _main(address: int, count: int, text: int, work: int) -> bytes:
    code = (
        b"\x48\xc7\xc3"  # mov rbx, COUNT
        + struct.pack("<i", count)
        + bytes.fromhex(
            "4889df"  # mov rdi, rbx
            "488d7301"  # lea rsi, [rbx + 1]
            "48c7c2"  # mov rdx, TEXT
        )
        + struct.pack("<i", text)
        + bytes.fromhex(
            "4889d9"  # mov rcx, rbx
            "4989d8"  # mov r8, rbx
            "4989d9"  # mov r9, rbx
        )
    )
    code += b"\xe8" + struct.pack("<i", work - (address + len(code) + 5))  # call WORK
    code += bytes.fromhex("48ffcb")  # dec rbx
    code += b"\x75" + struct.pack("<b", _LOOP - (len(code) + 2))  # jne LOOP
    return code + bytes.fromhex(
        "b83c000000"  # mov eax, 60: exit
        "31ff"  # xor edi, edi
        "0f05"  # syscall
    )


BENCH: Final = BenchGuest(
    main=_main,
    work=bytes.fromhex("4889f8 4801f0 c3"),  # mov rax, rdi; add rax, rsi; ret
    fetches=("%di", "%si", "%dx", "%cx", "%r8", "%r9", "%bp", "%bx"),
    nop=bytes.fromhex("0f1f440000"),
)
