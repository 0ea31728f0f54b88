"""Which code the indirect functions of a program stand for (IFUNC, STT_GNU_IFUNC).

The symbol of such a function is that of its resolver, which the dynamic loader calls while it
relocates: what that returns is the function. The choice depends on the processor, so a guest and
this machine may choose differently.
"""

from collections.abc import Callable
from typing import Protocol

from engine.errors import KprobeTuiError
from engine.image import Symbol
from engine.session.program.libraries import Program, ProgramFile
from engine.session.program.places import PlaceError

Implementation = tuple[ProgramFile, int]
"""The file and the link address of code that an indirect function stands for."""


class ResolverCalls(Protocol):
    """Whoever calls the resolvers."""

    @property
    def where(self) -> str:
        """The place of the choice in words that follow "its implementation": "in this run"."""

    def ask(self, file: ProgramFile, symbol: Symbol) -> Implementation:
        """The code that an indirect function stands for.

        Raises:
            KprobeTuiError: it cannot be known, or is in no file.
        """

    def close(self) -> None:
        """Give back what belongs to the host."""


class Implementations:
    """Answers for the indirect functions of one program, each asked for once; satisfies `Picked`.

    Attributes:
        known: the answers so far, by the path of the function's file and its resolver's link
            address.
    """

    def __init__(
        self, program: Program, choice: ResolverCalls, notify: Callable[[str], None]
    ) -> None:
        """Nothing is asked before the first question.

        Args:
            program: the files.
            choice: calls the resolvers.
            notify: is told each answer once, in words.
        """
        self._program = program
        self._choice = choice
        self._notify = notify
        self.known: dict[tuple[str, int], Implementation] = {}

    def __call__(self, file: ProgramFile, symbol: Symbol) -> Implementation:
        """The file and the link address of what an indirect function stands for.

        Raises:
            PlaceError: it cannot be known, or is in no file.
        """
        key = file.path, symbol.address
        if key not in self.known:
            try:
                self.known[key] = self._choice.ask(file, symbol)
            except PlaceError:
                raise
            except KprobeTuiError as error:
                raise _unknown(symbol, f"its resolver does not tell its code: {error}") from error
            self._notify(_answer(symbol, self._choice.where, *self.known[key]))
        return self.known[key]

    def of(self, path: str, symbol: Symbol) -> tuple[str, int]:
        """The same by the guest path of the file: path and link address.

        Raises:
            PlaceError: it cannot be known, or is in no file.
        """
        file = self._program.at_path(path)
        if file is None:
            raise _unknown(symbol, f"{path} cannot be read")
        owner, link = self(file, symbol)
        return owner.path, link

    def close(self) -> None:
        """Give back what belongs to the host."""
        self._choice.close()


def _answer(symbol: Symbol, where: str, owner: ProgramFile, link: int) -> str:
    found = owner.symbols.at(link)
    name = f"{link:#x}" if found is None else found.name
    return (
        f"{symbol.name} is an indirect function: "
        f"its implementation {where} is {name} of {owner.path.rpartition('/')[2]}"
    )


def not_in_a_file(symbol: Symbol, where: str, place: str) -> PlaceError:
    """The error of a function whose code no file has, as time() may be the kernel's own.

    Args:
        symbol: the function.
        where: see `ResolverCalls`.
        place: where its code is, in words: "in [vdso]".
    """
    return _unknown(symbol, f"its implementation {where} is {place}, not in a file")


def _unknown(symbol: Symbol, why: str) -> PlaceError:
    return PlaceError(f"{symbol.name} is an indirect function: {why}", "BAD_PROBE_ADDR", "ENOENT")
