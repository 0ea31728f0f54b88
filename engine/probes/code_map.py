"""Names and boundaries of the guest's code; the session knows them."""

from typing import Protocol


class CodeMap(Protocol):
    """Names and boundaries of the guest's code, by guest address."""

    def symbol(self, name: str) -> int | None:
        """Address of a symbol, None if there is none."""

    def function(self, address: int) -> tuple[int, int] | None:
        """(start, end) of the function around an address, None outside of all."""

    def boundary(self, address: int) -> bool:
        """True if an instruction begins at an address, as far as can be known."""
