"""The architectures, as data: the one list to extend.

An architecture is a folder with a record; a line here; a row in the README's support matrix.
No third-party engine is imported below this package.
"""

from typing import Final

from engine.arch.aarch64 import AARCH64
from engine.arch.base import Arch
from engine.arch.ia64 import IA64
from engine.arch.riscv64 import RISCV64
from engine.arch.x86_64 import X86_64

ARCHES: Final[tuple[Arch, ...]] = (X86_64, AARCH64, RISCV64, IA64)


def by_name(name: str) -> Arch:
    """The architecture of that name; KeyError if there is none."""
    for arch in ARCHES:
        if arch.name == name:
            return arch
    raise KeyError(name)


def for_elf(machine: int, bits: int, byteorder: str) -> Arch | None:
    """The architecture of an ELF file's e_machine, class and byte order."""
    for arch in ARCHES:
        if (arch.elf_machine, arch.bits, arch.byteorder) == (machine, bits, byteorder):
            return arch
    return None
