"""Thread-local variables of libraries, found as glibc's own code finds them.

Each thread has a vector of the blocks of its files (the dtv). A file's place in it is its number
among the files with such a block, in the order in which the loader has listed them.
"""

from collections.abc import Callable, Sequence
from typing import Final

from engine.errors import GuestFaultError
from engine.guest.modules import Module
from engine.session.inspect.linkmap import link_maps

_PT_TLS: Final = 7
_SLOT: Final = 16
"""Bytes of an entry of the vector: the block's address, and what is to be freed."""
_NOT_THERE: Final = (1 << 64) - 1
"""Address of a block that the thread has not asked for yet."""

Read = Callable[[int, int], bytes]


def library_variable(
    module: Module, files: Sequence[Module], pointer: int, vector: int, offset: int, read: Read
) -> int | None:
    """The address of a thread-local variable of a library; None where the thread has none.

    Args:
        module: the library.
        files: all files in memory; the program, whose loader has listed them, is among them.
        pointer: of the thread.
        vector: see `ElfAbi.thread_vector`.
        offset: of the variable in the block of its file.
        read: reads memory.
    """
    by_bias = {one.bias: one for one in files}
    number = 0
    for main in files:
        listed = [by_bias.get(bias) for _, _, bias, _ in link_maps(main, read)]
        blocks = [one for one in listed if one is not None and _has_block(one)]
        if module in blocks:
            number = blocks.index(module) + 1
            break
    if not number:
        return None
    try:
        slots = int.from_bytes(read(pointer + vector, 8), "little")
        block = int.from_bytes(read(slots + number * _SLOT, 8), "little")
    except GuestFaultError:
        return None
    return None if block in (0, _NOT_THERE) else block + offset


def _has_block(module: Module) -> bool:
    """True for a file with thread-local variables."""
    return any(one.type == _PT_TLS for one in module.image.segments)
