"""The code of the programs of a guest: its names and boundaries, by address."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from engine.arch.base import Arch
from engine.cpu.ram import EXECUTE
from engine.errors import GuestFaultError
from engine.guest.modules import Module
from engine.image.gofunctions import go_functions
from engine.linux.space import AddressSpace
from engine.probes.code_map import GoCode
from engine.probes.detourroom import Located
from engine.probes.site import FunctionCode, ImageCode
from engine.session.program.libraries import ProgramFile
from engine.session.program.places import guest_address
from engine.session.program.verdicts import Verdicts

_SHORT: Final = 64
"""Distance from a function's start that is decoded rather than looked up."""

_AROUND: Final = 64
"""Bytes on each side of an address that tell whether code there is the file's."""
_LARGEST: Final = 1 << 20
"""Bytes of a changed function that are decoded."""

_COMPARED: Final = 1 << 12
"""Bytes of a function that is compared as a whole, as others of its places will be asked for."""

KnownFiles = dict[tuple[str, str], tuple[ProgramFile, ImageCode]]
"""Files by path and build id, with their code."""


class GuestCode:
    """The code in one address space; satisfies `engine.probes.code_map.CodeMap`."""

    def __init__(
        self,
        arch: Arch,
        space: AddressSpace,
        verdicts: Verdicts,
        known: KnownFiles,
        original: Callable[[int, int], bytes],
    ) -> None:
        """Look at nothing yet.

        Args:
            arch: the guest's architecture.
            space: the address space.
            verdicts: what is known of the first program's places.
            known: what is known of files, in whatever address space.
            original: (address, size) to bytes of memory without what is planted.
        """
        self._original = original
        self._arch = arch
        self._modules, self._memory = space.modules, space.memory
        self._verdicts = verdicts
        self._files = known
        self._known: dict[int, tuple[ProgramFile, ImageCode]] = {}
        # While nothing changes: the module asked for last and where it is, a function whose code
        # is its file's.
        self._latest: tuple[Module | None, int, int] | None = None
        self._same = (0, 0)

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Mappings and code are as they are meanwhile, whatever is planted: many will be asked."""
        self._latest, self._same = (None, 0, 0), (0, 0)
        try:
            yield
        finally:
            self._latest, self._same = None, (0, 0)

    def _module(self, address: int) -> Module | None:
        """The module whose mapping covers an address."""
        if self._latest is None or self._modules.contents is not None:
            return self._modules.at(address)
        found, low, high = self._latest
        if not low <= address < high:
            found = self._modules.at(address)
            mapping = self._memory.find(address)
            if mapping is not None and mapping.name.startswith("/"):
                self._latest = found, mapping.start, mapping.end
        return found

    def symbol(self, name: str) -> int | None:
        """Address of a function in a file that is mapped, None if there is none."""
        for place in self._verdicts.places.resolve(name):
            return guest_address(place, self._modules, self._memory)
        return None

    def _of(self, module: Module) -> tuple[ProgramFile, ImageCode]:
        found = self._known.get(id(module.image))
        if found is None:
            key = module.name, module.image.identity
            found = self._files.get(key)
            if found is None:
                file = self._verdicts.main
                if file.image is module.image:
                    code = self._verdicts.code_of(file)  # verdicts have decoded there
                else:
                    file = ProgramFile(module.name, module.image, frozenset({module.name}))
                    code = ImageCode(self._arch, file.image, file.symbols)
                found = self._files[key] = (file, code)
            self._known[id(module.image)] = found
        return found

    def locate(self, address: int) -> Located | None:
        """The code around an address, as the conditions of jumps look at it."""
        module = self._module(address)
        if module is None:
            return None
        code = self._of(module)[1]
        function = self.function(address)
        if function is None:
            return code, None, module.bias
        start, end = function
        return code, code.function(start - module.bias, end - start), module.bias

    def _changed(self, module: Module, start: int, end: int, address: int) -> bytes | None:
        """A function as memory has it, if that is not what its file has around an address.

        Code that was changed further away is in step again there.
        """
        if self._same == (start, end):
            return None
        low, high = max(start, address - _AROUND), min(end, address + _AROUND)
        whole = self._latest is not None and end - start <= _COMPARED
        try:
            if whole and self._shows(module, start, end):
                self._same = start, end
                return None
            if self._shows(module, low, high):
                return None
            return self._original(start, min(end - start, _LARGEST))
        except GuestFaultError:
            return None

    def _shows(self, module: Module, low: int, high: int) -> bool:
        """True if memory has the bytes of a module's file."""
        size = high - low
        return self._original(low, size) == module.image.read_vaddr(low - module.bias, size)

    def function(self, address: int) -> tuple[int, int] | None:
        """(start, end) of the function around an address."""
        module = self._module(address)
        if module is None:
            return None
        ranges, file, link = (
            self._verdicts.places.ranges,
            self._of(module)[0],
            address - module.bias,
        )
        near = ranges.near(file, link)
        found = ranges.at(file, link) if near is None else near.function
        if found is None:
            return None
        start = found[0] + module.bias
        return start, start + found[1]

    def go_code(self, wanted: Collection[str]) -> Sequence[GoCode]:
        """Go's code among the files that are mapped."""
        if self._modules.contents is not None:
            return ()  # nobody knows which files a program in a kernel has mapped
        modules: dict[tuple[int, int], Module] = {}
        for mapping in self._memory.mappings:
            if mapping.perms & EXECUTE and mapping.name.startswith("/"):
                module = self._module(mapping.start)
                if module is not None:
                    modules[id(module.image), module.bias] = module
        found: list[GoCode] = []
        for module in modules.values():
            table, bias = module.image.once(go_functions), module.bias
            if table is not None:
                functions = {
                    name: [(start + bias, end + bias) for start, end in several]
                    for name, several in table.find(wanted).items()
                }
                found.append(GoCode(table.start + bias, table.end + bias, functions))
        return found

    def unchanged(self, address: int) -> tuple[FunctionCode, int, int] | None:
        """The function around an address, and its [start, end) here.

        None where memory has other code than the file, and where nobody knows of one.
        """
        module, function = self._module(address), self.function(address)
        if module is None or function is None or function[1] - function[0] > _LARGEST:
            return None
        start, end = function
        written = module.image.read_vaddr(start - module.bias, end - start)
        try:
            if self._memory.read(start, end - start) != written and not self._shows(
                module, start, end
            ):
                return None
        except GuestFaultError:
            return None
        return self._of(module)[1].function(start - module.bias, end - start), start, end

    def boundary(self, address: int) -> bool:
        """True if an instruction begins there; also where no function is known."""
        function = self.function(address)
        if function is None or function[0] == address:
            return True
        start, end = function
        module = self._module(address)
        assert module is not None, "a function lies in a file"
        changed = self._changed(module, start, end, address)
        if changed is not None:
            return FunctionCode(self._arch, start, changed).holds(address)
        if address - start > _SHORT or self._arch.code_unit > 1:
            code = self._of(module)[1]
            return code.function(start - module.bias, end - start).holds(address - module.bias)
        probes, longest = self._arch.probes, self._arch.insn_max
        data = module.image.read_vaddr(start - module.bias, _SHORT + longest)
        at = 0
        while at < address - start:
            size = probes.length(data[at : at + longest])
            if not size:
                return False
            at += size
        return at == address - start
