"""Types, constants and packages of a program of Go, seen from one of its functions.

The runtime describes types on its own, for interfaces and reflection; the DWARF says where each
description is, in bytes behind the symbol `runtime.types` (go/src/cmd/link/internal/ld/dwarf.go).
"""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from engine.image.dietypes import DieType
from engine.image.gotypes import GoConstant, GoTypes
from engine.language.value_types import CType

GO_MAIN: Final = "main.main"
CURRENT: Final = "runtime.curg"
"""A variable that the debugger makes: the goroutine that is looked at (delve has it, too)."""


def _no_goroutine() -> int:
    return 0


class GoProgram(Struct, frozen=True):
    """The types of a program.

    Attributes:
        types: those of its DWARF.
        start: address of the first type that the runtime describes.
        function: the one that is looked from.
        goroutine: finds the address of the goroutine that is looked from; 0 for none.
    """

    types: GoTypes
    start: int
    function: str
    goroutine: Callable[[], int] = _no_goroutine

    @property
    def package(self) -> str:
        """The package that is looked from: "encoding/json" of "encoding/json.Marshal"."""
        folder, slash, name = self.function.rpartition("/")
        return folder + slash + name.partition(".")[0]

    def dynamic(self, address: int) -> DieType | None:
        """The type that the runtime describes at an address; None where it describes none."""
        return self.types.at(address - self.start)

    def named(self, name: str) -> DieType | None:
        """A type by its name, with or without its package."""
        return next(filter(None, map(self.types.named, self.spelled(name))), None)

    def constant(self, name: str) -> GoConstant | None:
        """A constant by its name, with or without its package."""
        return next(filter(None, map(self.types.constant, self.spelled(name))), None)

    def constants(self, kind: CType) -> tuple[GoConstant, ...]:
        """The constants of a type, by value."""
        return self.types.constants(kind) if isinstance(kind, DieType) else ()

    def spelled(self, name: str) -> Iterator[str]:
        """The names that a name may stand for: its own, the package's, those of paths."""
        first, dot, rest = name.partition(".")
        if not dot:
            yield f"{self.package}.{name}"
        yield name
        if dot and "/" not in name:
            for path in self.types.packages:
                if path.rpartition("/")[2] == first and path != first:
                    yield f"{path}.{rest}"
