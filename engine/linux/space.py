"""A program in memory: what exec makes, fork copies and vfork lends (an mm_struct)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from engine.guest.hooks import SpaceHooks
from engine.guest.memory import Memory, page_up
from engine.guest.modules import Modules
from engine.linux.fs.vfs import Node
from engine.linux.loader import GUARD_GAP, STACK, Start

if TYPE_CHECKING:
    from engine.guest.watched import WatchedMemory
    from engine.linux.thread import Thread


class ExecutedFile(NamedTuple):
    """The file of a program, whatever has become of its name.

    Attributes:
        node: of the file.
        shown: gives the text that readlink of /proc/PID/exe shows.
    """

    node: Node
    shown: Callable[[], bytes]


class AddressSpace:
    """An address space and the program in it.

    Attributes:
        memory: its mappings.
        modules: the files in it.
        hooks: what watches the program there.
        heap: first byte and end of what brk gives.
        stack: the lowest address that the first thread's stack may grow down to, and its lowest
            at the start; zeros where that is not known.
        start: how its program was loaded.
        exe: guest path of its program.
        program: the program's file; None where only its path is known.
        argv: its arguments.
        env: its environment at the start.
        users: processes that run in it.
        ldt: its local descriptor table, of x86.
    """

    def __init__(self, memory: Memory, modules: Modules, hooks: SpaceHooks) -> None:
        self.memory = memory
        self.modules = modules
        self.hooks = hooks
        self.heap = self.stack = (0, 0)
        self.start: Start | None = None
        self.exe = b""
        self.program: ExecutedFile | None = None
        self.argv: tuple[bytes, ...] = ()
        self.env: tuple[bytes, ...] = ()
        self.users = 0
        self.ldt = bytearray()
        self._watched: WatchedMemory | None = None

    def watched_memory(self, thread: "Thread") -> "WatchedMemory":
        """Who sees accesses to watched bytes; `thread` is one of those that run in it."""
        if self._watched is None:
            from engine.guest.watched import WatchedMemory  # few programs are watched

            machine = thread.machine
            self._watched = found = WatchedMemory(self.memory, thread.cpu, thread.arch.roles.pc)
            found.serving = lambda: machine.serving is not None
            self.hooks.watched = found.refused
        return self._watched

    def stack_low(self) -> int:
        """Return the lowest address of the stack as Linux has it: grown as far as it was touched.

        All that it may grow into is mapped here from the start, so that growing costs nothing.
        """
        window, low = self.stack
        for mapping in self.memory.overlapping(window, low):
            if mapping.name == STACK and mapping.physical is not None:
                first = self.memory.ram.first_touched(mapping.physical, mapping.size)
                if first is not None:
                    return min(mapping.start + first - mapping.physical, low)
        return low

    def size(self) -> int:
        """Bytes of the program's mappings as Linux counts them (total_vm)."""
        window, low = self.stack[0], self.stack_low()
        ahead = sum(
            min(mapping.end, low) - mapping.start
            for mapping in self.memory.overlapping(window, low)
            if mapping.name == STACK
        )
        return self.memory.table.size - ahead

    def limit_stack(self, limit: int) -> None:
        """Let the stack grow as far as a new limit in bytes allows, and there is room."""
        window, low = self.stack
        if not low:
            return
        memory, top = self.memory, self.memory.plan.stack_top
        below = max(one.end for one in memory.mappings if one.end <= window)
        lowest = max(top - min(page_up(limit), top), below + GUARD_GAP)
        if lowest < window:
            beside = memory.find(window)
            if beside is None or beside.name != STACK:
                return  # the program has put something else there
            memory.map(lowest, window - lowest, beside.perms, name=STACK)
        else:
            lowest = min(lowest, self.stack_low())
            for mapping in memory.overlapping(window, lowest):
                if mapping.name == STACK:
                    memory.unmap(mapping.start, min(mapping.end, lowest) - mapping.start)
        self.stack = (lowest, max(low, lowest))

    def copy(self) -> "AddressSpace":
        """A copy for a new process, in which nobody listens.

        Raises:
            MappingError: ENOMEM without room.
        """
        memory = self.memory.copy()
        other = AddressSpace(memory, self.modules.copy(memory), SpaceHooks())
        other.heap, other.stack, other.start = self.heap, self.stack, self.start
        other.ldt = bytearray(self.ldt)
        other.exe, other.program = self.exe, self.program
        other.argv, other.env = self.argv, self.env
        return other


def _two(one: AddressSpace, other: AddressSpace) -> None:
    return None


def _one(space: AddressSpace) -> None:
    return None


class SpaceEvents(Struct):
    """Callbacks into the layers above about address spaces that come and go.

    Attributes:
        copied: (old, new): a new process begins with a copy.
        lent: (address space, thread id there, thread id of the first of a process that runs in
            it from now on, too).
        replaced: (old, new): a process has begun another program, and runs in the new one.
        ended: one is about to be given back: nobody runs in it any more.
    """

    copied: Callable[[AddressSpace, AddressSpace], None] = _two
    lent: Callable[[AddressSpace, int, int], None] = lambda space, thread, child: None
    replaced: Callable[[AddressSpace, AddressSpace], None] = _two
    ended: Callable[[AddressSpace], None] = _one
