"""Makes BTF sections: entries as a test says them, strings and header around them."""

import struct

VOID = 0


class BtfMaker:
    """Collects entries; each `add` gives the number of the new one."""

    def __init__(self, order: str = "<", base: "BtfMaker | None" = None) -> None:
        self._order = order
        self._base = base
        self.types = bytearray()
        self.strings = bytearray(b"" if base else b"\0")
        self._string_base = base.string_end if base else 0
        self._next: int = base._next if base else 1

    @property
    def string_end(self) -> int:
        return self._string_base + len(self.strings)

    def text(self, name: str) -> int:
        """Offset of a name; one of the base's is used again, as pahole does."""
        if not name:
            return 0
        raw = name.encode() + b"\0"
        if self._base and (at := self._base.strings.find(b"\0" + raw)) >= 0:
            return at + 1
        at = self.string_end
        self.strings += raw
        return at

    def add(
        self,
        kind: int,
        name: str = "",
        word: int = 0,
        extra: tuple[int, ...] = (),
        *,
        count: int = 0,
        flag: bool = False,
    ) -> int:
        info = kind << 24 | count | flag << 31
        words = (self.text(name), info, word, *(each & 0xFFFFFFFF for each in extra))
        self.types += struct.pack(f"{self._order}{len(words)}I", *words)
        self._next += 1
        return self._next - 1

    def integer(self, name: str, size: int, encoding: int = 0, bits: int = 0) -> int:
        return self.add(1, name, size, (encoding << 24 | (bits or 8 * size),))

    def record(
        self, name: str, size: int, *members: tuple[str, int, int], flag: bool = False
    ) -> int:
        extra = [word for text, kind, at in members for word in (self.text(text), kind, at)]
        return self.add(4, name, size, tuple(extra), count=len(members), flag=flag)

    def union(self, name: str, size: int, *members: tuple[str, int, int]) -> int:
        extra = [word for text, kind, at in members for word in (self.text(text), kind, at)]
        return self.add(5, name, size, tuple(extra), count=len(members))

    def enumeration(self, name: str, *values: tuple[str, int], flag: bool = False) -> int:
        extra = [word for text, value in values for word in (self.text(text), value)]
        return self.add(6, name, 4, tuple(extra), count=len(values), flag=flag)

    def wide_enumeration(self, name: str, *values: tuple[str, int], flag: bool = False) -> int:
        extra = [
            word
            for text, value in values
            for word in (self.text(text), value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF)
        ]
        return self.add(19, name, 8, tuple(extra), count=len(values), flag=flag)

    def pointer(self, target: int) -> int:
        return self.add(2, "", target)

    def array(self, element: int, index: int, count: int) -> int:
        return self.add(3, "", 0, (element, index, count))

    def prototype(self, returns: int, *parameters: tuple[str, int]) -> int:
        extra = [word for text, kind in parameters for word in (self.text(text), kind)]
        return self.add(13, "", returns, tuple(extra), count=len(parameters))

    def function(self, name: str, prototype: int) -> int:
        return self.add(12, name, prototype)

    def data(self) -> bytes:
        """The section."""
        sizes = (24, 0, len(self.types), len(self.types), len(self.strings))
        header = struct.pack(f"{self._order}HBB5I", 0xEB9F, 1, 0, *sizes)
        return header + bytes(self.types) + bytes(self.strings)
