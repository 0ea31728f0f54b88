"""Static probes that programs carry (USDT): notes of SystemTap's sys/sdt.h.

Source: the UserSpaceProbeImplementation page of SystemTap's wiki: a note of type 3 and name
"stapsdt" holds the probe's address, the address of the section .stapsdt.base as it was then, the
address of a semaphore, and three texts.
"""

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

from engine.image.elf import ElfImage

_SECTION: Final = ".note.stapsdt"
_BASE: Final = ".stapsdt.base"
_NAME: Final = b"stapsdt\0"
_TYPE: Final = 3


class StaticProbe(Struct, frozen=True):
    """A static probe.

    Attributes:
        provider: of it.
        name: of it.
        address: link address of its instruction.
        semaphore: link address of the counter of those who listen; 0 for none.
        arguments: where its arguments are, as the assembler writes them.
    """

    provider: str
    name: str
    address: int
    semaphore: int
    arguments: str


def static_probes(image: ElfImage) -> Iterator[StaticProbe]:
    """Yield the static probes of a file; what is damaged is left out."""
    section = image.section(_SECTION)
    if section is None:
        return
    raw, width = image.section_data(section), image.bits // 8
    order: Literal["little", "big"] = "little" if image.byteorder == "little" else "big"
    base = image.section(_BASE)
    at = 0
    while at + 12 <= len(raw):
        sizes = (int.from_bytes(raw[at + n : at + n + 4], order) for n in (0, 4, 8))
        name_size, size, kind = sizes
        begin = at + 12 + (name_size + 3 & ~3)
        name, body = raw[at + 12 : at + 12 + name_size], raw[begin : begin + size]
        at = begin + (size + 3 & ~3)
        texts = body[3 * width :].split(b"\0")
        if kind != _TYPE or name != _NAME or len(body) < 3 * width or len(texts) < 3:
            continue
        address, then, semaphore = (
            int.from_bytes(body[n * width : (n + 1) * width], order) for n in range(3)
        )
        moved = base.addr - then if base is not None else 0
        provider, probe, arguments = (text.decode(errors="replace") for text in texts[:3])
        yield StaticProbe(
            provider, probe, address + moved, semaphore + moved if semaphore else 0, arguments
        )
