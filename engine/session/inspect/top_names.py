"""Names that files have at their top, as one frame sees them: those of its own file come first."""

from collections.abc import Callable
from typing import Final

from engine.guest.modules import Module
from engine.image.datatypes import TypeKind
from engine.image.dies import Unit
from engine.image.names import GlobalNames
from engine.image.scopes import Variable
from engine.language import value_types as ct
from engine.language.made_records import MadeAlias
from engine.language.value_types import CType, MadeType
from engine.language.values import MemoryPlace, Order, TypedValue, made
from engine.linux.space import AddressSpace
from engine.session.inspect.program_files import Files
from engine.session.inspect.stored_program import StoredProgram

_UNKNOWN_TEXT: Final = MadeType(TypeKind.FUNCTION, 1, ct.UNKNOWN_FUNCTION)
_UNKNOWN_CHOICE: Final = MadeType(TypeKind.FUNCTION, 1, ct.UNKNOWN_CHOICE)
_SLOT: Final = "@got.plt"
_FROM_SLOT: Final = "<text from jump slot in .got.plt, no debug info>"
_UNKNOWN_DATA: Final = MadeType(TypeKind.OTHER, 0, ct.UNKNOWN_DATA)


class TopNames:
    """The names of the files in memory, or of a program's that does not run."""

    def __init__(
        self,
        files: Files,
        space: AddressSpace | StoredProgram,
        module: Module | None,
        unit: Unit | None,
        *,
        order: Order,
        is_rust: Callable[[], bool],
        read: Callable[[int, int], bytes],
        placed: Callable[[Variable, Module], TypedValue],
        sees: Callable[[CType], bool],
    ) -> None:
        """Look up nothing yet.

        Args:
            files: the debug information.
            space: where the files are.
            module: the file of the frame's code; None for none.
            unit: of that code; None where nobody tells.
            order: of bytes.
            is_rust: True for code of Rust.
            read: reads (address, size) of memory.
            placed: the value of a variable of a file.
            sees: True for a function that needs no class in front of its name.
        """
        self._sees = sees
        self._files, self._space, self._module, self._unit = files, space, module, unit
        self._order, self._is_rust, self._read, self._placed = order, is_rust, read, placed

    def find(self, name: str) -> TypedValue | None:
        """A variable, function or enumerator, or what a symbol table knows; None for none.

        Enumerators of the library that the program stands in come behind the program's own names,
        as in gdb, which looks for static names of other units last.
        """
        modules = self._files.modules(self._module, self._space)
        main = self._space.modules.main
        late: list[Module] = []  # their enumerators come behind the program's own names
        for module in modules:
            found = self._at_top(name, module)
            if found is not None:
                return found
            if module is not main and main is not None and module is self._module:
                late.append(module)
                continue
            for each in (module, *late):
                number = self._enumerator(name, each)
                if number is not None:
                    return number
            late.clear()
        return self._symbol(name)

    def _at_top(self, name: str, module: Module) -> TypedValue | None:
        """A variable or function of a file's."""
        names = self._files.names(module)
        if names is None:
            return None
        near = self._unit if module is self._module else None
        variable = names.variable(name, near)
        if variable is not None:
            found = self._placed(variable, module)
            copy = self._copied(name, module)
            return found if copy is None else self.fixed(found.type, copy)
        function = names.function(name, near)
        if function is not None and ("::" in name or self._sees(function[0])):
            return self.fixed(function[0], function[1] + module.bias)
        return None

    def _enumerator(self, name: str, module: Module) -> TypedValue | None:
        """A value of an enumeration of a file's."""
        names = self._files.names(module)
        near = self._unit if module is self._module else None
        found = names.enumerator(name, near) if names is not None else None
        return None if found is None else made(found[0], found[1], self._order)

    def _copied(self, name: str, owner: Module) -> int | None:
        """The address of the program's own copy of a library's variable; None without one."""
        main = self._space.modules.main
        if main is None or main is owner:
            return None
        for symbol in main.symbols.find_all(name):
            if symbol.kind == "object" and symbol.binding != "local":
                return symbol.address + main.bias
        return None

    def _symbol(self, name: str) -> TypedValue | None:
        """A thing that only a symbol table knows."""
        for module in self._files.modules(self._module, self._space):
            for symbol in module.symbols.find_all(name):
                kind: CType = _UNKNOWN_TEXT if symbol.is_function else _UNKNOWN_DATA
                if kind is _UNKNOWN_DATA and symbol.kind != "tls":
                    kind = self._declared(name) or kind
                kind = _UNKNOWN_CHOICE if symbol.kind == "ifunc" else kind
                if kind is _UNKNOWN_TEXT:
                    kind = self._type_of_code(module, symbol.address) or kind
                return self.fixed(kind, symbol.address + module.bias)
        for module in self._files.modules(
            self._module, self._space
        ):  # before its library is there
            for symbol in module.symbols.find_all(f"{name}@plt"):
                return self.fixed(_UNKNOWN_TEXT, symbol.address + module.bias)
        return self._jump_slot(name) if name.endswith(_SLOT) else None

    def _jump_slot(self, name: str) -> TypedValue | None:
        """The pointer that calls of another file's function jump through: printf@got.plt."""
        for module in self._files.modules(self._module, self._space):
            slot = module.symbols.jump_slot(name.removesuffix(_SLOT))
            if slot is not None:
                to = ct.pointer_to(_UNKNOWN_TEXT, module.image.bits // 8)
                kind = MadeAlias(to.kind, to.size, _FROM_SLOT, made_of=to)
                return self.fixed(kind, slot + module.bias)
        return None

    def _type_of_code(self, module: Module, link: int) -> CType | None:
        """The type of the function that begins at an address, by whatever name it is described."""
        names = self._files.names(module)
        block = self._files.variables(module).block_at(link) if names is not None else None
        if names is None or block is None or block.functions[-1].start != link:
            return None
        if self._is_rust():  # one name stands for all instances of a generic function
            return None
        found = names.function(block.functions[-1].name, None)
        if found is not None and found[1] == link:
            return found[0]
        return self._files.variables(module).type_of(block.functions[-1])  # named for the linker

    def _declared(self, name: str) -> CType | None:
        """The type of a variable of a file without debug information, by a declaration."""
        for module in self._files.modules(self._module, self._space):
            names = self._files.names(module)
            found = names.declared(name) if isinstance(names, GlobalNames) else None
            if found is not None:
                return found
        return None

    def symbol_size(self, name: str) -> int:
        """The size of a thing that a symbol table knows; 0 where none does."""
        for module in self._files.modules(self._module, self._space):
            for symbol in module.symbols.find_all(name):
                return symbol.size
        return 0

    def fixed(self, kind: CType, address: int) -> TypedValue:
        """A thing at an address."""
        size = kind.size or 0
        if kind is _UNKNOWN_DATA:
            return TypedValue(kind, lambda: b"", MemoryPlace(address), order=self._order)
        return TypedValue(
            kind,
            lambda: self._read(address, size),
            MemoryPlace(address),
            order=self._order,
        )
