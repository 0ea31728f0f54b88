"""A program in memory: what exec makes, fork copies and vfork lends (an mm_struct)."""

from engine.guest.hooks import GuestHooks
from engine.guest.memory import Memory
from engine.guest.modules import Modules
from engine.linux.loader import Start


class AddressSpace:
    """An address space and the program in it.

    Attributes:
        memory: its mappings.
        modules: the files in it.
        hooks: what the layers above want to be told of what runs there.
        heap: first byte and end of what brk gives.
        start: how its program was loaded.
        exe: guest path of its program.
        argv: its arguments.
        env: its environment at the start.
        users: processes that run in it.
    """

    def __init__(self, memory: Memory, modules: Modules, hooks: GuestHooks) -> None:
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
        self.hooks.copied(memory)
        other = AddressSpace(memory, self.modules.copy(memory), GuestHooks())
        other.heap, other.start = self.heap, self.start
        other.exe, other.argv, other.env = self.exe, self.argv, self.env
        return other
