"""The kprobes that a booted kernel has registered itself, read from its memory.

The kernel keeps them in a table of 64 lists, by address; of several at one place an aggregate
stands there, and has the list of them (kernel/kprobes.c). What is read is the guest's to write:
lists are bounded.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from engine.image.kernel.btftypes import BtfTypes
from engine.image.kernel.kernelimage import KernelImage
from engine.machine.addresses import KernelAddresses

_WORD: Final = struct.Struct("<Q")
_BUCKETS: Final = 64
"""KPROBE_TABLE_SIZE."""
_MOST: Final = 1 << 16
"""Kprobes that are read."""
_GONE, _DISABLED, _OPTIMIZED, _FTRACE = 1, 2, 4, 8
"""KPROBE_FLAG_* of include/linux/kprobes.h."""
_MEMBERS: Final = ("hlist", "list", "addr", "pre_handler", "flags")
_NAMES: Final = ("kprobe_table", "aggr_pre_handler", "pre_handler_kretprobe")


class RegisteredProbe(Struct, frozen=True):
    """A kprobe of the kernel's own.

    Attributes:
        address: of the probed instruction.
        is_return: it is that of a kretprobe.
        gone: its code was freed.
        disabled: it is registered and not armed.
        optimized: a jump stands there, or will in a moment.
        ftrace: it is served by ftrace.
    """

    address: int
    is_return: bool
    gone: bool
    disabled: bool
    optimized: bool
    ftrace: bool

    def line(self, symbol: str) -> str:
        """The line of /sys/kernel/debug/kprobes/list.

        Args:
            symbol: `NAME+0xOFFSET` with two blanks and the module, or a blank, behind; "" where
                the address has no name.
        """
        kind = "r" if self.is_return else "k"
        marks = (
            "[GONE]" * self.gone,
            "[DISABLED]" * (self.disabled and not self.gone),
            "[OPTIMIZED]" * self.optimized,
            "[FTRACE]" * self.ftrace,
        )
        place = symbol or f"0x{self.address:x}"
        return f"{self.address:016x}  {kind}  {place} {''.join(marks)}"


class KprobeTable:
    """The table of one kernel."""

    def __init__(self, table: int, handlers: tuple[int, int], members: tuple[int, ...]) -> None:
        """Read nothing yet.

        Args:
            table: address of the table.
            handlers: addresses of the pre-handlers of an aggregate, and of a kretprobe.
            members: offsets in a `struct kprobe` of `hlist`, `list`, `addr`, `pre_handler`, and
                `flags`.
        """
        self._table, self._handlers, self._members = table, handlers, members

    def read(self, addresses: KernelAddresses) -> Iterator[RegisteredProbe]:
        """The kprobes in the order of the kernel's own list.

        Args:
            addresses: the memory as the kernel sees it.

        Raises:
            GuestFaultError: they are not where they should be.
        """
        word = addresses.reader(_WORD)
        for head, probe in self.pairs(word):
            yield self._made(probe, self._state(head, word)[2], word)

    def pairs(self, word: Callable[[int], tuple[int]]) -> Iterator[tuple[int, int]]:
        """The addresses of what stands in the table at a place, and of each kprobe there.

        The two differ where several kprobes share a place, and at one that can be optimised.

        Args:
            word: reads a word of memory.

        Raises:
            GuestFaultError: they are not where they should be.
        """
        hlist, link, *_ = self._members
        left = _MOST
        for bucket in range(_BUCKETS):
            (node,) = word(self._table + _WORD.size * bucket)
            while node and left:
                left -= 1
                head = node - hlist
                if not self.is_aggregate(self._state(head, word)[1]):
                    yield head, head
                else:
                    (child,) = word(head + link)
                    while child != head + link and left:
                        left -= 1
                        yield head, child - link
                        (child,) = word(child)
                (node,) = word(node)

    def is_aggregate(self, handler: int) -> bool:
        """True for the pre-handler of what stands for the kprobes of a place."""
        return handler == self._handlers[0]

    def _state(self, probe: int, word: Callable[[int], tuple[int]]) -> tuple[int, int, int]:
        """Address, pre-handler and flags of a kprobe; raises `GuestFaultError`."""
        address, handler, flags = (word(probe + each)[0] for each in self._members[2:])
        return address, handler, flags & 0xFFFF_FFFF

    def _made(self, probe: int, shared: int, word: Callable[[int], tuple[int]]) -> RegisteredProbe:
        """A kprobe; `shared`: flags of what stands at the place."""
        address, handler, flags = self._state(probe, word)
        return RegisteredProbe(
            address,
            handler == self._handlers[1],
            bool(flags & _GONE),
            bool(flags & _DISABLED),
            bool(shared & _OPTIMIZED),
            bool(shared & _FTRACE),
        )


def kprobe_table(image: KernelImage) -> KprobeTable | None:
    """The table of a kernel; None where the image does not tell where it is."""
    if image.btf is None:
        return None
    layout = BtfTypes(image.btf).layout("kprobe") or {}
    members = tuple(layout[name][0] for name in _MEMBERS if name in layout)
    found = [image.names.find(name) for name in _NAMES]
    names = [each for each in found if each is not None]
    if len(members) < len(_MEMBERS) or len(names) < len(_NAMES):
        return None
    table, aggregate, kretprobe = names
    return KprobeTable(table, (aggregate, kretprobe), members)
