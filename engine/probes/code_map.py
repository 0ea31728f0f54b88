"""Names and boundaries of the guest's code; the session knows them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct


class GoCode(Struct, frozen=True):
    """Go's part of a file that is mapped.

    Attributes:
        start: guest address of the first of its functions.
        end: address behind the last one.
        functions: (address, end) of those that were asked for, by name.
    """

    start: int
    end: int
    functions: Mapping[str, Sequence[tuple[int, int]]]


class CodeMap(Protocol):
    """Names and boundaries of the guest's code, by guest address."""

    def symbol(self, name: str) -> int | None:
        """Address of a symbol, None if there is none."""

    def function(self, address: int) -> tuple[int, int] | None:
        """(start, end) of the function around an address, None outside of all."""

    def boundary(self, address: int) -> bool:
        """True if an instruction begins at an address, as far as can be known."""

    def go_code(self, wanted: Collection[str]) -> Sequence[GoCode]:
        """Go's code among the files that are mapped, with some of its functions."""
