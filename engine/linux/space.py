"""A program in memory: what exec makes, fork copies and vfork lends (an mm_struct)."""

from collections.abc import Callable

from msgspec import Struct

from engine.guest.hooks import SpaceHooks
from engine.guest.memory import Memory
from engine.guest.modules import Modules
from engine.linux.loader import Start


class AddressSpace:
    """An address space and the program in it.

    Attributes:
        memory: its mappings.
        modules: the files in it.
        hooks: what watches the program there.
        heap: first byte and end of what brk gives.
        start: how its program was loaded.
        exe: guest path of its program.
        argv: its arguments.
        env: its environment at the start.
        users: processes that run in it.
    """

    def __init__(self, memory: Memory, modules: Modules, hooks: SpaceHooks) -> None:
        self.memory = memory
        self.modules = modules
        self.hooks = hooks
        self.heap = (0, 0)
        self.start: Start | None = None
        self.exe = b""
        self.argv: tuple[bytes, ...] = ()
        self.env: tuple[bytes, ...] = ()
        self.users = 0

    def copy(self) -> "AddressSpace":
        """A copy for a new process, in which nobody listens.

        Raises:
            MappingError: ENOMEM without room.
        """
        memory = self.memory.copy()
        other = AddressSpace(memory, self.modules.copy(memory), SpaceHooks())
        other.heap, other.start = self.heap, self.start
        other.exe, other.argv, other.env = self.exe, self.argv, self.env
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
