"""Static probes that programs carry (USDT): notes of SystemTap's sys/sdt.h.

Source: the UserSpaceProbeImplementation page of SystemTap's wiki: a note of type 3 and name
"stapsdt" holds the probe's address, the address of the section .stapsdt.base as it was then, the
address of a semaphore, and three texts. Where that section has moved since (prelink), the
addresses have moved with it.
"""

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

from engine.image.elf import ElfImage

_SECTION: Final = ".note.stapsdt"
_BASE: Final = ".stapsdt.base"
_NAME: Final = b"stapsdt\0"
_TYPE: Final = 3
_HEAD: Final = 12
_MOST: Final = 1 << 16
"""Notes of a file that are read; the largest programs have hundreds."""
_LONGEST: Final = 256
"""Characters of a provider's or a probe's name."""


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


class _DamagedNoteError(Exception):
    """A note that makes no sense; its text says why."""


def static_probes(image: ElfImage) -> tuple[StaticProbe, ...]:
    """The static probes of a file, in the order of its notes.

    What is damaged is left out, and noted as damage of the file.
    """
    return image.once(_all)


def _all(image: ElfImage) -> tuple[StaticProbe, ...]:
    base = image.section(_BASE)
    found: list[StaticProbe] = []
    for section in image.sections:
        if section.name != _SECTION:
            continue
        raw = image.section_data(section)
        if len(raw) < section.size:
            image.damage.note(f"{image.name}: {_SECTION} reaches beyond the end of the file")
        for at, body in _notes(image, raw):
            if len(found) == _MOST:
                image.damage.note(f"{image.name}: {_SECTION}: more than {_MOST} notes")
                break
            try:
                found.append(_probe(image, body, None if base is None else base.addr))
            except _DamagedNoteError as error:
                image.damage.note(f"{image.name}: {_SECTION}: the note at {at:#x}: {error}")
    return tuple(found)


def _order(image: ElfImage) -> Literal["little", "big"]:
    return "little" if image.byteorder == "little" else "big"


def _notes(image: ElfImage, raw: bytes) -> Iterator[tuple[int, bytes]]:
    """(offset, contents) of the notes of static probes in a section."""
    order, at = _order(image), 0
    while at < len(raw):
        if len(raw) - at < _HEAD:
            if any(raw[at:]):
                image.damage.note(f"{image.name}: {_SECTION}: the note at {at:#x} is cut")
            return
        name_size, size, kind = (
            int.from_bytes(raw[at + n : at + n + 4], order) for n in (0, 4, 8)
        )
        begin = at + _HEAD + (name_size + 3 & ~3)
        if begin + size > len(raw):
            image.damage.note(
                f"{image.name}: {_SECTION}: the note at {at:#x} says that it has"
                f" {name_size} and {size} bytes, of which {len(raw) - at - _HEAD} are there"
            )
            return
        if kind == _TYPE and raw[at + _HEAD : at + _HEAD + name_size] == _NAME:
            yield at, raw[begin : begin + size]
        at = begin + (size + 3 & ~3)


def _probe(image: ElfImage, body: bytes, base: int | None) -> StaticProbe:
    width, order, mask = image.bits // 8, _order(image), (1 << image.bits) - 1
    texts = body[3 * width :].split(b"\0")
    if len(body) < 3 * width:
        raise _DamagedNoteError(f"{len(body)} bytes are too few for three addresses")
    if len(texts) < 4:
        raise _DamagedNoteError("its three texts do not end")
    address, then, semaphore = (
        int.from_bytes(body[n * width : (n + 1) * width], order) for n in range(3)
    )
    provider, name = _name("provider", texts[0]), _name("name", texts[1])
    arguments = texts[2].decode(errors="replace")
    if not arguments.isprintable():
        arguments = arguments.encode("unicode_escape").decode()
    moved = base - then if base is not None else 0
    return StaticProbe(
        provider,
        name,
        address + moved & mask,
        semaphore + moved & mask if semaphore else 0,
        arguments.strip(),
    )


def _name(what: str, raw: bytes) -> str:
    text = raw[: _LONGEST + 1].decode(errors="replace")
    if not text:
        raise _DamagedNoteError(f"it has no {what}")
    if len(text) > _LONGEST:
        raise _DamagedNoteError(f"its {what} has more than {_LONGEST} characters")
    if not text.isprintable():
        raise _DamagedNoteError(f"its {what} is no text")
    return text
