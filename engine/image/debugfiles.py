"""The file that holds what was stripped from a program: symbols, lines, variables.

It is looked for as gdb does ("Debugging Information in Separate Files"), by build-id and by
the name in .gnu_debuglink, and in the cache that debuginfod's clients keep; nothing is ever
asked for over a network. A program may also carry a small one in itself, .gnu_debugdata.
A file is believed if it has the build-id or the checksum that the program names.
"""

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Final

from engine.errors import ImageError
from engine.image import headers
from engine.image.damage import Damage
from engine.image.elf import ElfImage
from engine.image.headers import Section

_SYSTEM: Final = "/usr/lib/debug"
_MAX_EMBEDDED: Final = 1 << 28
_SPARE: Final = 16 << 20
"""Bytes that any embedded file may unpack to."""
_MEMORY: Final = 1 << 27
"""Bytes for the dictionary of xz, of which level 9 takes 65 MB."""

_Found = dict[tuple[str, ...], ElfImage | None]
"""Debug files of an image that were looked for, by the folders that were searched."""


def standard_dirs() -> tuple[str, ...]:
    """The system's folder of debug files, and the cache of debuginfod's clients.

    The cache is where debuginfod_find_debuginfo(3) puts it: $DEBUGINFOD_CACHE_PATH, the
    folder of old versions if it is there, $XDG_CACHE_HOME/debuginfod_client, or that in
    ~/.cache.
    """
    cache = os.environ.get("DEBUGINFOD_CACHE_PATH", "")
    if not cache:
        home = os.environ.get("HOME", "")
        old = os.path.join(home, ".debuginfod_client_cache")
        top = os.environ.get("XDG_CACHE_HOME", "") or (
            os.path.join(home, ".cache") if home else ""
        )
        if home and os.path.isdir(old):
            cache = old
        elif top:
            cache = os.path.join(top, "debuginfod_client")
    return (_SYSTEM, cache) if os.path.isabs(cache) else (_SYSTEM,)


def find_debug_file(image: ElfImage, debug_dirs: Sequence[str] | None = None) -> ElfImage | None:
    """Open the separate debug file of a program or library; None if there is none.

    First by build-id in each folder, then the name in .gnu_debuglink beside the program, in
    .debug/ below it, and below each folder. Folders of the guest's own root come before
    those of the host.

    Args:
        image: the program or library.
        debug_dirs: folders to search; None = `standard_dirs`.
    """
    if image.debug_file is not None:
        return image.debug_file
    folders = standard_dirs() if debug_dirs is None else tuple(debug_dirs)
    known = image.once(_none_yet)
    if folders not in known:
        known[folders] = _find(image, folders)
    return known[folders]


def _none_yet(image: ElfImage) -> _Found:
    return {}


def by_build_id(ident: str, folders: Sequence[str], damage: Damage) -> ElfImage | None:
    """Open the debug file of a build-id in lower-case hex.

    Args:
        ident: the build-id.
        folders: to search.
        damage: is told of files that are there and cannot be used.
    """
    if len(ident) <= 2:
        return None
    for folder in folders:
        for name in (f".build-id/{ident[:2]}/{ident[2:]}.debug", f"{ident}/debuginfo"):
            found = _try_open(os.path.join(folder, name), damage)
            if found is not None and found.build_id == ident:
                return found
            if found is not None:
                damage.note(f"{found.name}: has another build-id than its name says")
    return None


def embedded_debug_file(image: ElfImage) -> ElfImage | None:
    """The small debug file in .gnu_debugdata, which has symbols only; None without it.

    Raises:
        ImageError: it is damaged, or too large to be one.
    """
    section = image.section(".gnu_debugdata")
    if section is None or not section.size:
        return None
    name = f"{image.name}: section .gnu_debugdata"
    try:
        import lzma  # a library of its own that most sessions never need
    except ImportError as error:
        raise ImageError(f"{name}: this Python cannot unpack xz") from error
    from engine.unpacking import beyond_limit, unpack_limit  # likewise

    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY)
    packed = image.section_data(section)
    limit = unpack_limit(len(packed), _SPARE, _MAX_EMBEDDED)
    try:
        data = unpacker.decompress(packed, limit)
    except lzma.LZMAError as error:
        raise ImageError(f"{name}: {error}") from error
    if not unpacker.eof:
        if len(data) < limit:
            raise ImageError(f"{name}: does not end")
        raise ImageError(f"{name}: {beyond_limit(None, limit)}")
    found = ElfImage.from_bytes(data, name, runnable=False, damage=image.damage)
    if _kind(found) != _kind(image):
        raise ImageError(f"{name}: is for another machine")
    return found


def moved_sections(image: ElfImage, debug: ElfImage) -> list[tuple[int, int]]:
    """Find each section of a debug file in its program, by name and number of that name.

    Debug files keep the headers of all sections, but not always their numbers; and prelink
    moves a program after its debug file was split off.

    Returns:
        For each section of the debug file its number in the program, `ELSEWHERE` if that
        has none such, and what to add to its addresses.
    """
    shift = image.low - debug.low if image.load_segments and debug.load_segments else 0
    places = {key: (number, one.addr) for key, number, one in _keys(image.sections)}
    found = [(ELSEWHERE, shift)] * len(debug.sections)
    for key, number, section in _keys(debug.sections):
        if key in places:
            own, address = places[key]
            is_placed = section.flags & headers.SHF_ALLOC
            found[number] = own, address - section.addr if is_placed else 0
    return found


def is_moved(image: ElfImage, debug: ElfImage) -> bool:
    """True if a program's code is not where its debug file says that it is; it is noted."""
    moved = any(shift for _, shift in moved_sections(image, debug))
    if moved:
        image.damage.note(
            f"{debug.name}: {image.name} was moved (prelinked) after this was split off: "
            "its lines and variables are not used"
        )
    return moved


ELSEWHERE: Final = 0xFEFF
"""The number of a section that a file does not have; no reserved one (SHN_LORESERVE)."""


def _find(image: ElfImage, folders: tuple[str, ...]) -> ElfImage | None:
    inside = [image.root + folder for folder in folders] if image.root else []
    found = by_build_id(image.build_id or "", (*inside, *folders), image.damage)
    found = found or _by_link(image, inside, folders) or _by_place(image)
    if found is None or _kind(found) == _kind(image):
        return found
    image.damage.note(f"{found.name}: is for another machine than {image.name}")
    return None


def _by_place(image: ElfImage) -> ElfImage | None:
    """The debug file at one of the image's own places, if it has the same build-id."""
    for path in image.debug_places if image.build_id else ():
        found = _try_open(path, image.damage)
        if found is not None and found.build_id == image.build_id:
            return found
    return None


def _by_link(image: ElfImage, inside: Sequence[str], folders: Sequence[str]) -> ElfImage | None:
    link = image.section(".gnu_debuglink")
    if link is None or image.path is None:
        return None
    raw = image.section_data(link)
    name = os.fsdecode(raw.split(b"\0", 1)[0])
    if not name or "/" in name or len(raw) < 4:
        return None
    crc = struct.unpack(image.layout.order + "I", raw[-4:])[0]
    home = os.path.dirname(os.path.abspath(image.path))
    places = [home, os.path.join(home, ".debug")]
    places += [folder + home.removeprefix(image.root) for folder in (*inside, *folders)]
    for folder in places:
        found = _try_open(os.path.join(folder, name), image.damage)
        if found is None:
            continue
        if zlib.crc32(found.buffer) == crc:
            return found
        if not os.path.samefile(found.path or "", image.path):
            image.damage.note(f"{found.name}: does not belong to {image.name} (its checksum)")
    return None


def _try_open(path: str, damage: Damage) -> ElfImage | None:
    try:
        if os.path.isfile(path):
            return ElfImage.open(path, runnable=False, damage=damage)
    except ImageError as error:
        damage.note(str(error))
    except ValueError:  # a name that no file can have
        pass
    return None


def _kind(image: ElfImage) -> tuple[int, int, str]:
    return image.machine, image.bits, image.byteorder


def _keys(sections: Sequence[Section]) -> Iterator[tuple[tuple[str, int], int, Section]]:
    counts: dict[str, int] = {}
    for number, section in enumerate(sections):
        if number:
            turn = counts[section.name] = counts.get(section.name, 0) + 1
            yield (section.name, turn), number, section
