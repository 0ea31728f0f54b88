"""Names of C++ as people write them: with a part of the path, with templates spelled anyhow."""

import re
from collections.abc import Sequence
from typing import Final

from engine.guest.modules import Module
from engine.image.dies import Unit
from engine.image.names import FileNames, GlobalNames
from engine.language.library_functions import arguments_match
from engine.language.user_types import same_spelling, template_arguments
from engine.language.value_types import CType

_FUNDAMENTAL: Final = frozenset((
    "bool", "char", "char8_t", "char16_t", "char32_t", "double", "float", "int", "long", "short",
    "signed", "unsigned", "void", "wchar_t",
))  # fmt: skip


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

    def is_namespace(self, name: str) -> bool:
        """True if a file has a namespace of a whole name."""
        return any(names.has_namespace(name) for _, names in self._files)

    def functions(self, name: str, *, nearest: bool = True) -> list[tuple[CType, int]]:
        """Functions of a name, with their addresses; of a template all its forms.

        Args:
            name: of them.
            nearest: those with no more in front than was asked are preferred.
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
        exact = (
            []
            if not nearest
            else [(kind, at) for at, (whole, kind) in found.items() if whole == bare]
        )
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
        found = self._instance(name)
        if found is None:
            numbered = self._with_numbers(name)
            found = self._instance(numbered) if numbered != name else None
        return found

    def _instance(self, name: str) -> CType | None:
        head = name.partition("<")[0]
        word = head.rpartition("::")[2].strip()
        wanted = same_spelling(name)
        for _, names in self._files:
            shorter = list[str]()
            for one in names.templates(word):
                spelling = same_spelling(one)
                same = wanted == spelling
                if same or ("::" not in head and spelling.endswith(f"::{wanted}")):
                    return names.type(one, "", self._near)
                if arguments_match(wanted, one) and names.type(one, "", self._near) is not None:
                    shorter.append(one)
            if len(shorter) == 1:  # the other arguments are perhaps the template's own
                return names.type(shorter[0], "", self._near)
        return None

    def _with_numbers(self, name: str) -> str:
        """A template's name with enumerators as compilers write them: "Tank<(fleet::Fuel)3>"."""
        given = template_arguments(name)
        shown = [self._number(one) if re.fullmatch(r"[\w:]+", one) else one for one in given]
        if shown == given:
            return name
        return f"{name.partition('<')[0]}<{', '.join(shown)}>"

    def _number(self, word: str) -> str:
        is_none = word.isdigit() or word in _FUNDAMENTAL  # which every unit has
        for _, names in self._files if not is_none else ():
            found = names.enumerator(word, self._near)
            if found is not None:
                return f"({found[0].text}){found[1]}"
        return word

    def type_within(self, name: str) -> CType | None:
        """A type by a part of its path: of a class in sight, or by a namespace's other name."""
        path = self.whole_name(name)
        for _, names in self._files if path and path != name else ():
            found = names.type(path, "", self._near)
            if found is not None:
                return found
        return None
