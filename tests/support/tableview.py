"""A kernel image made by hand: bytes, symbols and sections for tests of what reads tables."""

from collections.abc import Mapping


class TableView:
    """What tests give as a kernel image or module."""

    def __init__(self, base: int, data: bytes, *, is_module: bool = False) -> None:
        """Bytes at an address, without symbols, sections or types."""
        self.base = base
        self.data = bytearray(data)
        self.is_module = is_module
        self.version = (6, 1, 0)
        self.symbols: dict[str, int] = {}
        self.sections: dict[str, tuple[int, int]] = {}
        self.layouts: dict[str, dict[str, tuple[int, int]]] = {}

    def put(self, address: int, data: bytes) -> None:
        """Writes bytes into the image."""
        at = address - self.base
        self.data[at : at + len(data)] = data

    def read(self, address: int, size: int) -> bytes:
        """Bytes of the image, as far as there are any."""
        at = address - self.base
        return bytes(self.data[at : at + size]) if at >= 0 else b""

    def symbol(self, name: str) -> int | None:
        """The address under that name."""
        return self.symbols.get(name)

    def section(self, name: str) -> tuple[int, int] | None:
        """Address and size of the section of that name."""
        return self.sections.get(name)

    def layout(self, record: str) -> Mapping[str, tuple[int, int]] | None:
        """Members of a structure."""
        return self.layouts.get(record)
