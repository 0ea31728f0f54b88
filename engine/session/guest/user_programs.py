"""The user programs of a kernel that runs as a process of the guest: user-mode Linux.

Each address space of that kernel's is a process of the guest, which the kernel traces.
"""

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.arch.ptrace import ORIGINAL
from engine.cpu.base import OpensSaved
from engine.cpu.ram import EXECUTE, PAGE
from engine.errors import GuestFaultError
from engine.guest.memory import Memory
from engine.image.kernel.tasklayout import UserLayout
from engine.linux.space import AddressSpace
from engine.linux.thread import Thread
from engine.session.guest.kernel_files import KernelFiles
from engine.session.guest.kernel_stacks import KernelStacks

if TYPE_CHECKING:
    from engine.session.guest.loading import LoadedGuest

_SIGN: Final = 1 << 63
"""Of the number of the system call that is made; negative where none is."""
_TOP: Final = 39
_SHIFTS: Final = (30, 21, 12)
"""Of an address, for its index in the tables of each level (pgtable-3level.h)."""
_INDEX: Final = 511
_PRESENT: Final = 1
_FRAME: Final = (1 << 52) - PAGE
_KEPT: Final = 64
"""Programs whose tables are known at a time."""


class UserState(Struct, frozen=True):
    """A user program that a task of the kernel has left for the kernel.

    Attributes:
        thread: of the guest, that runs it.
        registers: those that the program had.
        calling: it makes a system call: its pc stands behind the instruction.
    """

    thread: Thread
    registers: dict[str, int]
    calling: bool


class UserPrograms:
    """The user programs of a kernel's tasks.

    Attributes:
        files: what they have mapped; None where that is not known of the kernel.
    """

    def __init__(self, guest: "LoadedGuest", stacks: KernelStacks, layout: UserLayout) -> None:
        """Start for a guest that has not run yet.

        Args:
            guest: the kernel.
            stacks: of its tasks.
            layout: the way from those to their programs.
        """
        self._guest = guest
        self._stacks = stacks
        self._layout = layout
        abi = guest.arch.linux.ptrace
        self._names = () if abi is None else abi().general
        self._known: dict[AddressSpace, tuple[int, int]] = {}
        self._by_memory: dict[Memory, AddressSpace] = {}
        self.files: KernelFiles | None = None
        if layout.files is not None:
            self.files = KernelFiles(
                layout.files,
                lambda address, size: guest.space.memory.peek(address, size),
                layout.physical,
                stacks.bias,
            )
        if guest.initramfs is not None:
            guest.initramfs.absent = self._absent

    def below(self, sp: int) -> UserState | None:
        """The program whose task a stack pointer of the kernel's is of; None without one."""
        task = self._stacks.task_at(sp & -self._stacks.layout.size)
        space = self._guest.space
        try:
            mm = _word(space, task + self._layout.mm) if task else 0
            if not mm:
                return None
            number = _word(space, mm + self._layout.process) & 0xFFFF_FFFF
            data = space.memory.peek(task + self._layout.registers, 8 * len(self._names))
        except GuestFaultError:
            return None
        thread = self._guest.machine.threads.get(number)
        if thread is None or not self.owns(thread):
            return None
        if len(self._known) >= _KEPT:
            self._known.clear()
            self._by_memory.clear()
        self._known[thread.space] = mm, number
        self._by_memory[thread.space.memory] = thread.space
        words = [data[at : at + 8] for at in range(0, len(data), 8)]
        values = [int.from_bytes(word, "little") for word in words]
        registers = dict(zip(self._names, values, strict=True))
        return UserState(thread, registers, not registers[ORIGINAL] & _SIGN)

    def knows(self, space: AddressSpace) -> bool:
        """True of an address space whose program was looked at lately."""
        return space in self._known

    def mm(self, memory: Memory) -> int:
        """The address of the mm whose program has a memory; 0 where that is not known."""
        space = self._by_memory.get(memory)
        if space is None:
            self.find()
            space = self._by_memory.get(memory)
        return 0 if space is None else self._mm(space)

    def _mm(self, space: AddressSpace) -> int:
        """Return the mm of an address space; 0 where it is not known, or has gone since."""
        mm, number = self._known.get(space, (0, 0))
        try:
            process = _word(self._guest.space, mm + self._layout.process) if mm else 0
        except GuestFaultError:
            return 0
        return mm if process & 0xFFFF_FFFF == number else 0

    def find(self) -> None:
        """Find the tables of the program that runs by the stack that the kernel waits on."""
        leader, cpu = self._guest.process.leader, self._guest.cpu
        if leader is self._guest.machine.current or not isinstance(cpu, OpensSaved):
            return
        saved = cpu.open_saved(leader.registers)
        self.below(saved.read_register(self._guest.arch.roles.sp))

    def read(self, space: AddressSpace, address: int, size: int) -> bytes:
        """Bytes of a program's memory.

        Its process lacks what it has not used yet; the kernel's tables of its pages tell of that.

        Raises:
            GuestFaultError: there is no memory.
        """
        try:
            return space.memory.peek(address, size)
        except GuestFaultError:
            data = b""
            while len(data) < size:
                at = address + len(data)
                piece = min(size - len(data), PAGE - at % PAGE)
                data += self._piece(space, at, piece)
            return data

    def _piece(self, space: AddressSpace, address: int, size: int) -> bytes:
        """Bytes that are on one page."""
        if space.memory.find(address) is None:
            page = self._page(space, address)
            if page is not None:
                return self._guest.space.memory.peek(page + address % PAGE, size)
        return space.memory.peek(address, size)

    def code(self, space: AddressSpace, address: int, size: int) -> bytes:
        """Bytes of a program's code: those of its file where nobody has used them yet.

        Raises:
            GuestFaultError: there is none.
        """
        try:
            return self.read(space, address, size)
        except GuestFaultError:
            module = space.modules.at(address)
            if module is None or not module.covers(address):
                raise
            return module.image.read_vaddr(address - module.bias, size)

    def executable(self, space: AddressSpace, address: int) -> bool:
        """True if code of a program may run at an address."""
        mapping = space.memory.find(address)
        if mapping is not None:
            # Of the kernel's own memory its process has a copy of what that began with.
            of_program = mapping.shared or self._page(space, address) is not None
            return of_program and bool(mapping.perms & EXECUTE)
        module = space.modules.at(address)
        there = module is not None and module.covers(address)
        return there or self._page(space, address) is not None

    def _absent(self, memory: Memory, at: int) -> bytes:
        """The same of a page, b"" where there is none."""
        space = self._by_memory.get(memory)
        page = None if space is None else self._page(space, at)
        try:
            return b"" if page is None else self._guest.space.memory.peek(page, PAGE)
        except GuestFaultError:
            return b""

    def _page(self, space: AddressSpace, address: int) -> int | None:
        """The kernel's address of the page that its tables have at an address."""
        kernel, mm = self._guest.space, self._mm(space)
        if not mm or address >> _TOP:
            return None
        try:
            table = _word(kernel, mm + self._layout.tables)
            physical = _word(kernel, self._layout.physical + self._stacks.bias)
            for shift in _SHIFTS:
                entry = _word(kernel, table + 8 * (address >> shift & _INDEX))
                if not entry & _PRESENT:
                    return None
                table = physical + (entry & _FRAME)
        except GuestFaultError:
            return None
        return table

    def owns(self, thread: Thread) -> bool:
        """True of a thread that runs user programs."""
        tracee = thread.tracee
        return (
            tracee is not None
            and tracee.tracer.process is self._guest.process
            and thread.process is not self._guest.process
        )


def _word(space: AddressSpace, address: int) -> int:
    return int.from_bytes(space.memory.peek(address, 8), "little")


def user_programs(guest: "LoadedGuest") -> UserPrograms | None:
    """The user programs of a guest that is a kernel; None of another one."""
    stacks = guest.kernel_stacks
    if stacks is None or stacks.layout.user is None:
        return None
    return UserPrograms(guest, stacks, stacks.layout.user)
