"""A program in memory: what exec makes, fork copies and vfork lends (an mm_struct)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from engine.guest.hooks import SpaceHooks
from engine.guest.memory import Memory
from engine.guest.modules import Modules
from engine.linux.fs.vfs import Node
from engine.linux.loader import Start

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
        self.heap = (0, 0)
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

    def copy(self) -> "AddressSpace":
        """A copy for a new process, in which nobody listens.

        Raises:
            MappingError: ENOMEM without room.
        """
        memory = self.memory.copy()
        other = AddressSpace(memory, self.modules.copy(memory), SpaceHooks())
        other.heap, other.start = self.heap, self.start
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
