"""Frames of a booted kernel's code that its image does not describe.

- modules: their ORC tables, where the kernel keeps them (`struct module`, member `arch`);
- ftrace's trampolines: copies of `ftrace_caller` or `ftrace_regs_caller`, so their frames are
  those of the original (orc_ftrace_find of arch/x86/kernel/unwind_orc.c);
- detours of optimised kprobes: copies of a template (arch/x86/kernel/kprobes/opt.c), which have
  saved all registers where they call. Linux's own walks guess from there on;
- return addresses that a kretprobe has replaced: the task's list of `rethook_node`s (5.18 and
  later) has the real ones.

What is read is the guest's to write: sizes and lists are bounded.
"""

import struct
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.errors import GuestFaultError
from engine.image.kernel.btftypes import BtfTypes
from engine.image.kernel.kernelimage import KernelImage
from engine.image.kernel.orc import LoadedOrc, OrcEntry, OrcKind, OrcTable
from engine.machine.addresses import KernelAddresses
from engine.machine.kernelmodules import KnownModules, LoadedModule

_WORD: Final = struct.Struct("<Q")
_ENTRIES_MOST: Final = 1 << 20
"""ORC entries of a module; the largest of Debian's have 60,000."""
_LIST_MOST: Final = 1 << 12
"""Links of a list that are followed."""
_SAVES_REGS: Final = 1 << 2
"""FTRACE_OPS_FL_SAVE_REGS."""
_CALL: Final = 5
"""Bytes of the template's call."""
_CLAC: Final = 3
_SP: Final = 5
"""ORC_REG_SP."""
_ALL_SAVED: Final = OrcEntry(OrcKind.REGS, _SP, 0, 0, 0, True)
"""The frame of code that has saved all registers at its stack pointer."""
_TEMPLATE: Final = tuple(f"optprobe_template_{name}" for name in ("entry", "clac", "val", "call"))


class _Members(Struct, frozen=True):
    """Offsets of members, by structure; None where the kernel has no such thing.

    Attributes:
        tables: in a module, of the number of its ORC entries, their places, and the entries.
        ops: in `ftrace_ops`, of the next one, flags, address and size of the trampoline.
        hooks: in a task, of its first `rethook_node`'s link; in such a node, of the link, the
            return address, and the address of the place that it was at.
    """

    tables: tuple[int, ...] | None
    ops: tuple[int, ...] | None
    hooks: tuple[int, ...] | None


def _members(image: KernelImage) -> _Members:
    if image.btf is None:
        return _Members(None, None, None)
    types = BtfTypes(image.btf)

    def offsets(name: str, *members: str) -> tuple[int, ...] | None:
        layout = types.layout(name) or {}
        found = tuple(layout[member][0] for member in members if member in layout)
        return found if len(found) == len(members) else None

    own = offsets("module", "arch")
    tables = offsets("mod_arch_specific", "num_orcs", "orc_unwind_ip", "orc_unwind")
    task = offsets("task_struct", "rethooks")
    node = offsets("rethook_node", "llist", "ret_addr", "frame")
    return _Members(
        tuple(own[0] + each for each in tables) if own and tables else None,
        offsets("ftrace_ops", "next", "flags", "trampoline", "trampoline_size"),
        (*task, *node) if task and node else None,
    )


class KernelCode:
    """The code of one machine's kernel beside that of its image."""

    def __init__(
        self,
        image: KernelImage,
        table: OrcTable | None,
        addresses: KernelAddresses,
        modules: KnownModules | None,
        task: Callable[[], int],
    ) -> None:
        """Nothing is read before it is asked for.

        Args:
            image: the kernel.
            table: ORC entries of the image; None where it has none.
            addresses: the memory as the kernel sees it.
            modules: those that it loads; None where they are not known.
            task: address of the task that runs.
        """
        self._members = _members(image)
        self._table, self._modules, self._task = table, modules, task
        self._read = addresses.read
        self._word = addresses.reader(_WORD)
        find = image.names.find
        self._ops = find("ftrace_ops_list")
        self._callers = find("ftrace_caller"), find("ftrace_regs_caller")
        self._trampoline = find("arch_rethook_trampoline")
        template = [find(name) for name in _TEMPLATE]
        self._template = [each for each in template if each is not None]
        self._of_modules: dict[LoadedModule, LoadedOrc | None] = {}

    def entry(self, address: int) -> OrcEntry | None:
        """The frame at an address outside of the image; None where nobody knows it."""
        found = self._modules.at(address) if self._modules is not None else None
        try:
            if found is not None:
                table = self._of_module(found[0])
                return table.at(address) if table is not None else None
            return self._in_trampoline(address) or self._in_detour(address)
        except GuestFaultError:
            return None

    def caught(self, address: int, slot: int) -> int | None:
        """The real return address where a kretprobe has replaced it; None where none has.

        Args:
            address: as it is on the stack.
            slot: where it is.
        """
        if address != self._trampoline or self._members.hooks is None:
            return None
        first, link, ret_addr, frame = self._members.hooks
        try:
            (at,) = self._word(self._task() + first)
            for _ in range(_LIST_MOST):
                if not at:
                    return None
                (real,) = self._word(at - link + ret_addr)
                if self._word(at - link + frame)[0] == slot and real != address:
                    return int(real)
                (at,) = self._word(at)
        except GuestFaultError:
            pass
        return None

    def _of_module(self, module: LoadedModule) -> LoadedOrc | None:
        """The entries of a module.

        Raises:
            GuestFaultError: they are not where they should be.
        """
        if module not in self._of_modules:
            for known in list(self._of_modules):
                if self._modules is None or self._modules.loaded.get(known.address) is not known:
                    del self._of_modules[known]
            self._of_modules[module] = self._entries(module.address)
        return self._of_modules[module]

    def _entries(self, module: int) -> LoadedOrc | None:
        members, table = self._members.tables, self._table
        if members is None or table is None:
            return None
        count, places, entries = (self._word(module + each)[0] for each in members)
        count &= 0xFFFF_FFFF
        if not 0 < count <= _ENTRIES_MOST:
            return None
        size = count * LoadedOrc.SIZE
        return LoadedOrc(
            places, self._read(places, 4 * count), self._read(entries, size), table.layout
        )

    def _in_trampoline(self, address: int) -> OrcEntry | None:
        """The frame in one of ftrace's trampolines; raises `GuestFaultError`."""
        members, table = self._members.ops, self._table
        if members is None or table is None or self._ops is None:
            return None
        (at,) = self._word(self._ops)
        for _ in range(_LIST_MOST):
            if not at:
                break
            following, flags, start, size = (self._word(at + each)[0] for each in members)
            if start <= address < start + size:
                caller = self._callers[bool(flags & _SAVES_REGS)]
                return table.at(caller + address - start) if caller is not None else None
            at = following
        return None

    def _in_detour(self, address: int) -> OrcEntry | None:
        """The frame at the call in a detour of an optimised kprobe; raises `GuestFaultError`.

        A return address is looked up at the byte in front.
        """
        if len(self._template) < len(_TEMPLATE):
            return None
        entry, clac, value, call = self._template
        start = address + 1 - _CALL - (call - entry)
        template, found = (self._read(each, value - entry) for each in (entry, start))
        behind = clac - entry + _CLAC  # the kernel puts in a clac where the processor has SMAP
        same = template[: clac - entry] == found[: clac - entry]
        return _ALL_SAVED if same and template[behind:] == found[behind:] else None
