"""Calls of x86-64 kernel functions: the System V convention, per-CPU data behind gs."""

from typing import Final

from engine.arch.kernelcalls import CallCpu, CalledMemory, KernelCalls
from engine.arch.kernelsites import ExceptionEntry

_SKIPPED: Final = (
    bytes.fromhex("fa"),  # cli
    bytes.fromhex("fb"),  # sti
    bytes.fromhex("0f01ca"),  # clac
    bytes.fromhex("0f01cb"),  # stac
)
_NAMES: Final = (
    *("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"),
    *(f"r{number}" for number in range(8, 16)),
)
_MASK: Final = (1 << 64) - 1
_PAGE_FAULT: Final = 14

# asm/extable_fixup_types.h
_FAULT, _COPY, _SAFE_FAULT, _IMM_REG, _UCOPY_LEN, _ZEROPAD = 2, 4, 15, 17, 19, 20
_CLEAR_AX, _CLEAR_DX = 1 << 12, 1 << 13


def _start(cpu: CallCpu, percpu: int, task: int) -> None:
    cpu.write_register("gs_base", percpu)


def _emulate(cpu: CallCpu, raw: bytes, task: int) -> int:
    return next((len(insn) for insn in _SKIPPED if raw.startswith(insn)), 0)


def _fix_up(cpu: CallCpu, memory: CalledMemory, entry: ExceptionEntry, address: int) -> None:
    """Carry out arch/x86/mm/extable.c, fixup_exception; before 5.16 only the fixup counts."""
    kind, register = entry.data & 0xFF, _NAMES[entry.data >> 8 & 15]
    number = (entry.data >> 16 ^ 0x8000) - 0x8000
    if entry.data & _CLEAR_AX:
        cpu.write_register("rax", 0)
    if entry.data & _CLEAR_DX:
        cpu.write_register("rdx", 0)
    if kind in (_FAULT, _COPY, _SAFE_FAULT):
        cpu.write_register("rax", _PAGE_FAULT)
    elif kind == _IMM_REG:
        cpu.write_register(register, number & _MASK)
    elif kind == _UCOPY_LEN:
        left = number * cpu.read_register("rcx") + cpu.read_register(register)
        cpu.write_register("rcx", left & _MASK)
    elif kind == _ZEROPAD:
        _zeropad(cpu, memory, entry.insn, address)
    cpu.write_register("rip", entry.fixup)


def _zeropad(cpu: CallCpu, memory: CalledMemory, insn: int, address: int) -> None:
    """A word that reaches into a page that is not there has zeros from there on."""
    code = memory.read(insn, 3)  # REX.W 8b /r: mov r64, m64
    word = int.from_bytes(memory.read(address & -8, 8), "little")
    cpu.write_register(_NAMES[code[2] >> 3 & 7 | code[0] << 1 & 8], word >> 8 * (address & 7))


CALLS: Final = KernelCalls(
    arguments=("rdi", "rsi", "rdx", "rcx", "r8", "r9"),
    results=("rax", "rdx"),
    large_result="rdi",
    large_by_address=False,
    link="",
    trap=b"\xcc",
    trapped_at=1,
    heap=0xFFFF_8880_0010_0000,
    user=0x2000_0000_0000,
    start=_start,
    emulate=_emulate,
    fix_up=_fix_up,
)
