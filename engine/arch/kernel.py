"""A kernel image as the rules of an architecture see it.

What an architecture knows about kernels (how its text is patched at boot, where probes may
stand, how calls pass arguments there) is pure functions; this is what they may ask.
"""

from collections.abc import Mapping
from typing import Protocol


class KernelView(Protocol):
    """A kernel image or a module that is laid out: bytes, names, sections and types.

    Addresses are link addresses: those of a kernel that was started with nokaslr.
    """

    @property
    def version(self) -> tuple[int, int, int]:
        """Version of the kernel, as in (6, 1, 192)."""
        ...

    @property
    def is_module(self) -> bool:
        """True for a loadable module, whose tables are sections and have no symbols."""
        ...

    def read(self, address: int, size: int) -> bytes:
        """Bytes as the file has them, relocated; fewer where the image ends; zeros of bss."""
        ...

    def symbol(self, name: str) -> int | None:
        """Address of the first symbol of that name."""
        ...

    def section(self, name: str) -> tuple[int, int] | None:
        """Address and bytes of a section; None where the image has none of that name."""
        ...

    def layout(self, record: str) -> Mapping[str, tuple[int, int]] | None:
        """Members of a structure by the image's own BTF: name to (byte offset, bytes).

        The structure's own size stands under "". None without BTF or such a structure.
        """
        ...
