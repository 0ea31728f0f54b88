"""The memory that a called function has left in the copy that it has run in.

A call runs on a copy of the address space (`engine.session.guest.calling`). Bytes of private
memory are compared page by page.
"""

from typing import Final

from engine.cpu.ram import PAGE, WRITE
from engine.errors import GuestFaultError
from engine.guest.memory import Memory

_LARGEST: Final = 1 << 30
"""Bytes of a mapping that is compared with what it was."""
_PIECE: Final = 64 << 10
"""Bytes that are compared at once."""


def changed_pages(before: Memory, after: Memory) -> dict[int, bytes]:
    """Private pages that are other than before, by address; those of huge mappings are not."""
    found: dict[int, bytes] = {}
    for mapping in after.mappings:
        if mapping.shared or mapping.reserved or not mapping.perms & WRITE:
            continue
        if mapping.awaits_pages or mapping.size > _LARGEST:
            continue  # nobody has touched it, or it is too large to be compared
        for start in range(mapping.start, mapping.end, _PIECE):
            size = min(_PIECE, mapping.end - start)
            try:
                new = after.peek(start, size)
            except GuestFaultError:
                continue
            try:
                old = before.peek(start, size)
            except GuestFaultError:  # the function has mapped it
                old = bytes(size)
            if new != old:
                for at in range(0, size, PAGE):
                    if new[at : at + PAGE] != old[at : at + PAGE]:
                        found[start + at] = new[at : at + PAGE]
    return found
