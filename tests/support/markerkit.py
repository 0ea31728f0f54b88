"""Static probes (USDT) in files that tests make: their notes, and an ELF file around them."""

import struct
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.image import ElfImage

HEADERS: Final = Path(__file__).resolve().parents[1] / "data" / "markers"
ZOO: Final = HEADERS / "zoo.c"
INNER: Final = HEADERS / "inner.c"
CODE, DATA, BASE = 0x401000, 0x402000, 0x401080
"""Link addresses of the file's code and data, and of its .stapsdt.base."""
_MACHINES: Final = {"x86_64": 62, "aarch64": 183, "riscv64": 243}
_TEXT: Final = {
    # exit(0) behind a few no-operations
    "x86_64": b"\x90" * 16 + bytes.fromhex("b83c000000 31ff 0f05"),
    "aarch64": bytes.fromhex("1f2003d5") * 4 + bytes.fromhex("a80b8052 000080d2 010000d4"),
    "riscv64": bytes.fromhex("13000000") * 4 + bytes.fromhex("9308d005 13050000 73000000"),
}


class Note(Struct, frozen=True):
    """A note of a static probe; whatever is not said is as it should be."""

    provider: bytes = b"zoo"
    name: bytes = b"fed"
    arguments: bytes = b"-4@%edi"
    address: int = CODE + 1
    base: int = BASE
    semaphore: int = 0
    kind: int = 3
    owner: bytes = b"stapsdt\0"
    owner_size: int | None = None
    size: int | None = None
    ending: bytes = b"\0"

    @property
    def raw(self) -> bytes:
        """Its bytes."""
        body = struct.pack("<QQQ", self.address, self.base, self.semaphore)
        body += b"\0".join((self.provider, self.name, self.arguments)) + self.ending
        owner_size = len(self.owner) if self.owner_size is None else self.owner_size
        head = struct.pack(
            "<III", owner_size, len(body) if self.size is None else self.size, self.kind
        )
        return head + _padded(self.owner) + _padded(body)


def file_with(
    notes: bytes, arch: str = "x86_64", *, base: bool = True, size: int | None = None
) -> bytes:
    """A program that does nothing, with a section .note.stapsdt of some bytes.

    Args:
        notes: the section.
        arch: of the program.
        base: it has a section .stapsdt.base.
        size: that the section's header claims, in place of its own.
    """
    text = _TEXT[arch].ljust(0x100, b"\0")
    names = b"\0.text\0.stapsdt.base\0.probes\0.note.stapsdt\0.shstrtab\0"

    def name(text: bytes) -> int:
        return names.index(b"\0" + text + b"\0") + 1

    headers = 64 + 2 * 56
    data_at = 0x2000
    notes_at = data_at + 0x100
    names_at = notes_at + len(notes)
    sections_at = names_at + len(names) + 7 & ~7
    rows = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (name(b".text"), 1, 6, CODE, 0x1000, 0x80, 0, 0, 4, 0),
        (name(b".stapsdt.base" if base else b".text"), 1, 2, BASE, 0x1080, 1, 0, 0, 1, 0),
        (name(b".probes"), 1, 3, DATA, data_at, 0x100, 0, 0, 2, 0),
        (
            *(name(b".note.stapsdt"), 7, 0, 0, notes_at),
            *(len(notes) if size is None else size, 0, 0, 4, 0),
        ),
        (name(b".shstrtab"), 3, 0, 0, names_at, len(names), 0, 0, 1, 0),
    ]
    head = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\2\1\1",
        *(2, _MACHINES[arch], 1, CODE, 64, sections_at, 0, 64, 56, 2, 64, len(rows), 5),
    )
    segments = struct.pack("<IIQQQQQQ", 1, 5, 0x1000, CODE, CODE, 0x100, 0x100, 0x1000)
    segments += struct.pack("<IIQQQQQQ", 1, 6, data_at, DATA, DATA, 0x100, 0x200, 0x1000)
    whole = (head + segments).ljust(0x1000, b"\0") + text
    assert len(head + segments) == headers
    whole = whole.ljust(data_at, b"\0") + bytes(0x100) + notes + names
    whole = whole.ljust(sections_at, b"\0")
    return whole + b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in rows)


def image_with(*notes: Note, arch: str = "x86_64") -> ElfImage:
    """The same program, read."""
    return ElfImage.from_bytes(file_with(b"".join(note.raw for note in notes), arch), "zoo")


def _padded(raw: bytes) -> bytes:
    return raw + bytes(-len(raw) % 4)
