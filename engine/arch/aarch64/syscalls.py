"""System-call numbers of Linux/AArch64."""

from typing import Final

from engine.arch.unistd import GENERIC

SYSCALLS: Final = {**GENERIC, 38: "renameat", 244: "arch_specific_syscall"}
