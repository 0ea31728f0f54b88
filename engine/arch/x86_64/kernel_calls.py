"""Calls of x86-64 kernel functions: the System V convention, per-CPU data behind gs."""

from typing import Final

from engine.arch.kernelcalls import CallCpu, KernelCalls

_SKIPPED: Final = (
    bytes.fromhex("fa"),  # cli
    bytes.fromhex("fb"),  # sti
    bytes.fromhex("0f01ca"),  # clac
    bytes.fromhex("0f01cb"),  # stac
)


def _start(cpu: CallCpu, percpu: int, task: int) -> None:
    cpu.write_register("gs_base", percpu)


def _emulate(cpu: CallCpu, raw: bytes, task: int) -> int:
    return next((len(insn) for insn in _SKIPPED if raw.startswith(insn)), 0)


CALLS: Final = KernelCalls(
    arguments=("rdi", "rsi", "rdx", "rcx", "r8", "r9"),
    result="rax",
    link="",
    trap=b"\xcc",
    trapped_at=1,
    start=_start,
    emulate=_emulate,
)
