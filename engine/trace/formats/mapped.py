"""Files in a guest's memory as output formats tell of them."""

from typing import Final

from engine.guest.modules import Module
from engine.trace.formats.base import MappedFile

_EXECUTE: Final = 1
_PAGE: Final = 4096


def mapped_file(module: Module, address: int) -> MappedFile | None:
    """The code of a module around an address, in whole pages; None if there is none."""
    image = module.image
    link = address - module.bias
    for segment in image.load_segments:
        if segment.flags & _EXECUTE and segment.vaddr <= link < segment.vaddr + segment.memsz:
            before = segment.vaddr % _PAGE
            start = segment.vaddr + module.bias - before
            end = segment.vaddr + module.bias + segment.memsz
            return MappedFile(
                image.path or module.name,
                start,
                end + -end % _PAGE,
                segment.offset - before,
                image.build_id or "",
                module.name,
                module.bias,
            )
    return None
