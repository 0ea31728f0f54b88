"""The architectures, as data: the one list to extend.

An architecture is a folder with a record; a line here; a column in the table of the chapter
`architectures`, which README.md repeats. Its vDSO, if it has one, is `vdso.so`, which
`make -C engine/arch` builds from the `vdso.S` beside it.
No third-party engine is imported below this package, and no record before it is wanted.
"""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.arch.base import Arch


class ListedArch(Struct, frozen=True):
    """An architecture before its record is imported: what tells its ELF files from others.

    Attributes:
        name: as in messages and options; in upper case it is the record's in its package.
        elf_machine: e_machine.
        bits: of the ELF class.
        byteorder: of the ELF file.
        package: below this one, where that is not the name: of a family of records.
    """

    name: str
    elf_machine: int
    bits: int = 64
    byteorder: str = "little"
    package: str = ""

    @property
    def record(self) -> "Arch":
        """The record, imported at the first use.

        Raises:
            EngineError: it is incomplete, or not the one that is listed.
        """
        module = import_module(f"{__name__}.{self.package or self.name}")
        arch: Arch = getattr(module, self.name.upper())
        listed = self.name, self.elf_machine, self.bits, self.byteorder
        if (arch.name, arch.elf_machine, arch.bits, arch.byteorder) != listed:
            raise EngineError(f"the record of {arch.name} is not that of the list's {self.name}")
        return arch


ARCHES: Final[tuple[ListedArch, ...]] = (
    ListedArch("x86_64", 62),
    ListedArch("aarch64", 183),
    ListedArch("riscv64", 243),
    ListedArch("ia64", 50),
)


def names() -> tuple[str, ...]:
    """The names of all, in order."""
    return tuple(arch.name for arch in ARCHES)


def records() -> Iterator["Arch"]:
    """All records, in order; each is imported when it is reached."""
    return (arch.record for arch in ARCHES)


def by_name(name: str) -> "Arch":
    """The architecture of that name, of a later model for NAME-MODEL; KeyError for none."""
    front, _, model = name.partition("-")
    for arch in ARCHES:
        if arch.name == front:
            return of_model(arch.record, model) if model else arch.record
    raise KeyError(name)


@cache
def _of_model(name: str, model: str) -> "Arch":
    record = by_name(name)
    return record.models[model](record)


def of_model(arch: "Arch", model: str) -> "Arch":
    """The record of a later processor of an architecture; KeyError if there is none."""
    return _of_model(arch.name, model)


def for_elf(machine: int, bits: int, byteorder: str) -> "Arch | None":
    """The architecture of an ELF file's e_machine, class and byte order."""
    for arch in ARCHES:
        if (arch.elf_machine, arch.bits, arch.byteorder) == (machine, bits, byteorder):
            return arch.record
    return None


def classes_of(machine: int) -> frozenset[int]:
    """The ELF classes, in bits, that an e_machine may have here; empty for an unknown one."""
    return frozenset(arch.bits for arch in ARCHES if arch.elf_machine == machine)
