"""The debug information of the files that a guest has in memory, each opened once."""

from collections.abc import Callable
from typing import Final

from engine.errors import ImageError
from engine.guest.modules import Module
from engine.image.debuginfo import DebugInfo
from engine.image.elf import ElfImage
from engine.image.functions import NamedFunctions
from engine.image.gotypes import GoTypes
from engine.image.names import FileNames, GlobalNames
from engine.image.scopes import Scope
from engine.image.variables import Variables
from engine.language.go_program import GO_MAIN
from engine.language.languages import GO, RUST, C, Language
from engine.linux.space import AddressSpace
from engine.session.guest.session import Session
from engine.session.inspect.linkmap import link_maps
from engine.session.inspect.stored_program import StoredProgram

GO_TYPES: Final = "runtime.types"
"""Symbol of the first of the types that the runtime of Go describes."""
_SCOPES: Final = 64
"""Places whose variables are kept."""


class Files:
    """The debug information of a guest's files, each opened once.

    Attributes:
        stored: gives the program's files where they are looked at in place of its memory.
    """

    def __init__(
        self, session: Session, stored: Callable[[], StoredProgram | None] = lambda: None
    ) -> None:
        """Nothing is opened yet."""
        self._session = session
        self.stored = stored
        self._known: dict[int, tuple[ElfImage, Variables, FileNames | None]] = {}
        self._functions: dict[int, NamedFunctions] = {}
        self._languages: dict[int, Language] = {}
        self._go: dict[int, GoTypes | None] = {}
        self._scopes: dict[tuple[int, int], Scope | None] = {}

    def scope(self, module: Module, link: int) -> Scope | None:
        """The variables at a link address; those of places asked for lately are kept.

        Raises:
            ImageError: the debug information is damaged.
        """
        key = id(module.image), link
        if key not in self._scopes:
            if len(self._scopes) >= _SCOPES:
                self._scopes.clear()
            self._scopes[key] = self.variables(module).scope(link)
        return self._scopes[key]

    def variables(self, module: Module) -> Variables:
        """The variables of a file."""
        return self._of(module)[1]

    def names(self, module: Module) -> FileNames | None:
        """The names at the top of a file; None without debug information."""
        return self._of(module)[2]

    def functions(self, module: Module) -> NamedFunctions | None:
        """The functions of a file's DWARF by name; None without it."""
        names = self.names(module)
        if isinstance(names, GlobalNames) and id(module.image) not in self._functions:
            self._functions[id(module.image)] = NamedFunctions(names.info)
        return self._functions.get(id(module.image))

    def language(self, module: Module) -> Language:
        """The language of a program's main function."""
        known = self._languages.get(id(module.image))
        if known is None:
            known = C
            names = self.names(module)
            begins = next(iter(module.symbols.find_all("main")), None)
            if self.go(module) is not None and any(module.symbols.find_all(GO_MAIN)):
                known = GO
            elif isinstance(names, GlobalNames) and begins is not None:
                # The linker's `main` of a program of Rust has no source.
                hidden = self.variables(module).block_at(begins.address) is None
                known = RUST if hidden and names.has_language(RUST.code) else C
            self._languages[id(module.image)] = known
        return known

    def go(self, module: Module) -> GoTypes | None:
        """The types of a program of Go; None for other files."""
        key = id(module.image)
        if key not in self._go:
            names = self.names(module)
            is_go = isinstance(names, GlobalNames) and any(module.symbols.find_all(GO_TYPES))
            found = GoTypes(names.info) if is_go and isinstance(names, GlobalNames) else None
            self._go[key] = found
        return self._go[key]

    def _of(self, module: Module) -> tuple[ElfImage, Variables, FileNames | None]:
        found = self._known.get(id(module.image))
        if found is None:
            variables = Variables(module.image)
            try:
                info: DebugInfo | None = variables.info
            except ImageError:
                info = None
            names: FileNames | None = None
            if info is not None:
                names = GlobalNames(info)
            elif variables.carried is not None:
                names = variables.carried.names
            found = self._known[id(module.image)] = module.image, variables, names
        return found

    def written(self, path: str) -> str:
        """A source file as its compiler was given it, which is how gdb shows it."""
        for module in self.modules():
            found = module.lines.written(path)
            if found is not None:
                return found
        return path

    def loaded_names(self, there: AddressSpace) -> dict[str, str]:
        """Paths of libraries in memory, to the names that their loader has for them.

        The paths are real ones; a loader opens "/lib/libm.so.6", which leads there.
        """
        main = there.modules.main
        if main is None or main.image.bits != 64 or main.image.byteorder != "little":
            return {}
        by_bias = {module.bias: module for module in self.modules(there=there)}
        return {
            by_bias[bias].name: name
            for name, _, bias, _ in link_maps(main, there.memory.peek)
            if name and bias in by_bias
        }

    def modules(
        self, first: Module | None = None, there: AddressSpace | StoredProgram | None = None
    ) -> list[Module]:
        """The files in memory: one first, then the program, then the others by address.

        Args:
            first: that one.
            there: the address space or the stored program; the one in sight if not given.
        """
        space = there or self.stored() or self._session.seen
        found: dict[int, Module] = {}
        for module in (first, space.modules.main):
            if module is not None:
                found[id(module.image)] = module
        if isinstance(space, StoredProgram):
            found |= {id(module.image): module for module in space.modules.known}
        for mapping in space.memory.mappings:
            if mapping.perms and not mapping.reserved:
                other = space.modules.at(mapping.start)
                if other is not None:
                    found.setdefault(id(other.image), other)
        return list(found.values())
