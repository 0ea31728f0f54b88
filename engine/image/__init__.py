"""ELF files as the debugger needs them."""

from engine.image.elf import ElfImage
from engine.image.headers import Section, Segment

__all__ = ["ElfImage", "Section", "Segment"]
