"""Names of C++ as people write them: with a part of the path, with templates spelled anyhow."""

from collections.abc import Sequence

from engine.guest.modules import Module
from engine.image.dies import Unit
from engine.image.names import FileNames, GlobalNames
from engine.language.user_types import same_spelling
from engine.language.value_types import CType


class CppNames:
    """Finds names in the files of a program."""

    def __init__(
        self, files: Sequence[tuple[Module, FileNames | None]], near: Unit | None
    ) -> None:
        """Find what these files have.

        Args:
            files: each with the names of its debug information; None for none.
            near: the unit of the code in sight, which is looked at first.
        """
        self._files = [
            (module, names) for module, names in files if isinstance(names, GlobalNames)
        ]
        self._modules = [module for module, _ in files]
        self._near = near

    def whole_name(self, name: str) -> str:
        """The whole path of a name that is written with a part of it; "" for none.

        Another name of a namespace may stand in front.
        """
        first, between, rest = name.partition("::")
        if not between or not first or "<" in first:
            return ""
        for _, names in self._files:
            space = names.namespace(first)
            whole = names.whole_name(name, self._near)
            if space or whole:
                return f"{space}::{rest}" if space else whole
        return ""

    def functions(self, name: str) -> list[tuple[CType, int]]:
        """Functions of a name, with their addresses.

        Those with no more in front than was asked are preferred; of a template all its forms.
        """
        found: dict[int, tuple[str, CType]] = {}
        for module, names in self._files:
            for kind, link, whole in names.functions(name):
                found.setdefault(link + module.bias, (whole, kind))
        if not found and (path := self.whole_name(name)):
            return self.functions(path)
        if not found and "<" not in name and not name.startswith("operator"):
            return self._forms(name)
        bare = name.removeprefix("::")
        exact = [(kind, at) for at, (whole, kind) in found.items() if whole == bare]
        return exact or [(kind, at) for at, (_, kind) in found.items()]

    def _forms(self, name: str) -> list[tuple[CType, int]]:
        """The functions that a template was made into."""
        found: dict[int, CType] = {}
        for module, names in self._files:
            for one in names.templates(name.rpartition("::")[2]):
                for kind, link, _ in names.functions(one):
                    found.setdefault(link + module.bias, kind)
        return [(kind, at) for at, kind in found.items()]

    def linked(self, name: str) -> int | None:
        """The address of what the linker calls so, or its demangled name; None for none."""
        for module in self._modules:
            for symbol in module.symbols.find_all(name):
                return symbol.address + module.bias
        return None

    def template(self, name: str) -> CType | None:
        """A type that a template was made into, in whatever way its name is written."""
        head = name.partition("<")[0]
        word = head.rpartition("::")[2].strip()
        wanted = same_spelling(name)
        for _, names in self._files:
            for one in names.templates(word):
                spelling = same_spelling(one)
                same = wanted == spelling
                if same or ("::" not in head and spelling.endswith(f"::{wanted}")):
                    return names.type(one, "", self._near)
        return None
