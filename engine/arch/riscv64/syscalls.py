"""System-call numbers of Linux/RISC-V."""

from typing import Final

from engine.arch.unistd import GENERIC

SYSCALLS: Final = {**GENERIC, 258: "riscv_hwprobe", 259: "riscv_flush_icache"}
