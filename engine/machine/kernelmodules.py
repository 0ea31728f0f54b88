"""The modules that a machine's kernel loads: their functions, from the moment before they begin.

A module is seen where `do_init_module` is entered, its code and symbols laid out and none of them
executed, and it is gone where `free_module` is entered (kernel/module/main.c). Where members lie
is what the kernel's BTF says. All that is read is the guest's to write: sizes are bounded.
"""

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final, Protocol

from msgspec import Struct

from engine.cpu.unicorn_system import SystemCpu
from engine.errors import GuestFaultError
from engine.image.kernel.btftypes import BtfTypes
from engine.image.kernel.kernelimage import KernelImage
from engine.machine.addresses import KernelAddresses
from engine.machine.probing import MachineProbes

_SYMBOL: Final = struct.Struct("<IBBHQQ")
_FUNCTION: Final = 2
"""STT_FUNC."""
_TYPE: Final = 15
_SYMBOLS_MOST: Final = 1 << 18
_NAME_MOST: Final = 512
"""KSYM_NAME_LEN."""
_FUNCTIONS_MOST: Final = 1 << 20
"""Functions of all modules that are known at a time; all of Debian's have half as many."""
_MODULES_MOST: Final = 1 << 12


class ModuleMembers(Struct, frozen=True):
    """The way from a `struct module` to its symbols.

    Attributes:
        modules: address of the kernel's list of modules.
        link: offset in a module of its link in that list.
        loaded: address of the function that is entered before a module begins.
        freed: of the one that is entered before its memory goes.
        name: offset in a module of its name.
        kallsyms: of the address of its symbols.
        symbols: offset there of the address of the ELF symbols.
        count: of their number, 32 bits.
        strings: of the address of their names.
    """

    modules: int
    link: int
    loaded: int
    freed: int
    name: int
    kallsyms: int
    symbols: int
    count: int
    strings: int


def module_members(image: KernelImage) -> ModuleMembers | None:
    """The way to a kernel's modules; None where the image does not tell."""
    if image.btf is None:
        return None
    types = BtfTypes(image.btf)
    module, table = types.layout("module") or {}, types.layout("mod_kallsyms") or {}
    find = image.names.find
    modules, loaded, freed = (find(name) for name in ("modules", "do_init_module", "free_module"))
    members = [module.get(each) for each in ("list", "name", "kallsyms")]
    members += [table.get(each) for each in ("symtab", "num_symtab", "strtab")]
    found = [member[0] for member in members if member is not None]
    if modules is None or loaded is None or freed is None or len(found) < len(members):
        return None
    return ModuleMembers(modules, found[0], loaded, freed, *found[1:])


class ModuleFunction(Struct, frozen=True):
    """A function of a module.

    Attributes:
        name: of the function.
        start: its address.
        end: that of whatever comes behind it.
    """

    name: str
    start: int
    end: int


class LoadedModule:
    """A module in a machine's kernel.

    Attributes:
        name: of the module.
        functions: by address.
        address: of its `struct module`.
    """

    def __init__(self, name: str, functions: list[ModuleFunction], address: int) -> None:
        """Take the functions of a module, in the order of their addresses."""
        self.name, self.address = name, address
        self.functions = functions
        self._starts = [one.start for one in functions]

    def at(self, address: int) -> ModuleFunction | None:
        """The function around an address; None where there is none."""
        index = bisect_right(self._starts, address) - 1
        found = self.functions[index] if index >= 0 else None
        return found if found is not None and address < found.end else None

    def find(self, name: str) -> ModuleFunction | None:
        """The first function of a name."""
        return next((one for one in self.functions if one.name == name), None)


class ModuleReader:
    """Reads the modules in a kernel's memory."""

    def __init__(self, addresses: KernelAddresses, members: ModuleMembers) -> None:
        """Read nothing yet.

        Args:
            addresses: the memory as its kernel sees it.
            members: the way to a module's symbols.
        """
        self._addresses, self._members = addresses, members
        self._word = addresses.reader(struct.Struct("<Q"))

    def listed(self) -> Iterator[LoadedModule]:
        """The modules in the kernel's list, the newest first; raises `GuestFaultError`."""
        head = self._members.modules
        (link,) = self._word(head)
        for _ in range(_MODULES_MOST):
            if link == head:
                return
            yield self.read(link - self._members.link)
            (link,) = self._word(link)

    def read(self, at: int) -> LoadedModule:
        """Read a module's name and functions.

        Raises:
            GuestFaultError: they are not where they should be.
        """
        members, addresses = self._members, self._addresses
        name = addresses.read_cstring(at + members.name, _NAME_MOST)
        (table,) = self._word(at + members.kallsyms)
        (symbols,) = self._word(table + members.symbols)
        count = self._word(table + members.count)[0] & 0xFFFF_FFFF
        (strings,) = self._word(table + members.strings)
        raw = addresses.read(symbols, _SYMBOL.size * min(count, _SYMBOLS_MOST))
        starts: set[int] = set()
        found: dict[int, tuple[str, int]] = {}
        for text, info, _, section, value, size in _SYMBOL.iter_unpack(raw):
            if not section or not text:
                continue
            starts.add(value)
            if info & _TYPE == _FUNCTION and value not in found:
                said = addresses.read_cstring(strings + text, _NAME_MOST)
                found[value] = said.decode("utf-8", "replace"), size
        order = sorted(starts)
        functions = []
        for start in sorted(found):
            behind = bisect_right(order, start)
            size = found[start][1]
            # As `%pS` has it, up to the next symbol, where that is not of another section.
            end = order[behind] if behind < len(order) else start + size
            end = end if end - start < size + 64 else start + size
            functions.append(ModuleFunction(found[start][0], start, max(end, start + 1)))
        return LoadedModule(name.decode("utf-8", "replace"), functions, at)


class KnownModules(Protocol):
    """Modules of a kernel, by address.

    Attributes:
        loaded: by the addresses of their `struct module`.
    """

    @property
    def loaded(self) -> Mapping[int, LoadedModule]:
        """See the class."""

    def at(self, address: int) -> tuple[LoadedModule, ModuleFunction] | None:
        """The module and the function around an address; None where there is none."""


class ListedModules:
    """The modules that the kernel's own list has at a moment; a `KnownModules`.

    Attributes:
        loaded: by the addresses of their `struct module`.
    """

    def __init__(self, reader: ModuleReader) -> None:
        """Know none before `look`."""
        self._reader = reader
        self.loaded: dict[int, LoadedModule] = {}

    def look(self) -> None:
        """Read the list as it is now, as far as it can be read."""
        self.loaded = {}
        with suppress(GuestFaultError):
            for module in self._reader.listed():
                self.loaded[module.address] = module

    def at(self, address: int) -> tuple[LoadedModule, ModuleFunction] | None:
        """The module and the function around an address; None where there is none."""
        for module in self.loaded.values():
            found = module.at(address)
            if found is not None:
                return module, found
        return None


class KernelModules:
    """The modules of one machine.

    Attributes:
        loaded: by the addresses of their `struct module`.
        leaving: called before a module is forgotten.
    """

    def __init__(
        self,
        probes: MachineProbes,
        cpu: SystemCpu,
        addresses: KernelAddresses,
        members: ModuleMembers,
    ) -> None:
        """See modules come and go; before the machine runs.

        Args:
            probes: of the machine.
            cpu: the processor.
            addresses: the memory as its kernel sees it.
            members: the way to a module's symbols.
        """
        self.loaded: dict[int, LoadedModule] = {}
        self.leaving: Callable[[], None] = lambda: None
        self._reader = ModuleReader(addresses, members)
        self._argument = cpu.reader(("rdi",))
        self._coming: list[Callable[[LoadedModule], None]] = []
        self._going: list[Callable[[LoadedModule], None]] = []
        probes.add(members.loaded, self._comes, begins=True)
        probes.add(members.freed, self._goes, begins=True)

    def follow(
        self, coming: Callable[[LoadedModule], None], going: Callable[[LoadedModule], None]
    ) -> None:
        """Tell of modules.

        Args:
            coming: called with a module before it begins.
            going: called with it before its memory goes.
        """
        self._coming.append(coming)
        self._going.append(going)

    def at(self, address: int) -> tuple[LoadedModule, ModuleFunction] | None:
        """The module and the function around an address; None where there is none.

        Code of an init stays known when its memory is another module's: the newest is asked first.
        """
        for module in reversed(self.loaded.values()):
            found = module.at(address)
            if found is not None:
                return module, found
        return None

    def _comes(self) -> None:
        (at,) = self._argument()
        try:
            module = self._reader.read(at)
        except GuestFaultError:
            return
        known = sum(len(one.functions) for one in self.loaded.values())
        room = known + len(module.functions) <= _FUNCTIONS_MOST
        if room and len(self.loaded) < _MODULES_MOST:
            self.loaded[at] = module
            for told in self._coming:
                told(module)

    def _goes(self) -> None:
        (at,) = self._argument()
        module = self.loaded.get(at)
        if module is None:
            return
        self.leaving()
        for told in self._going:
            told(module)
        del self.loaded[at]
