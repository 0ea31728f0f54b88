"""The memory that functions of a kernel image are called in.

The image lies at its own addresses with its text as it runs, per-CPU data where the first
processor has it until the others come (setup_percpu.c). A stack and a heap stand where a kernel
has such, and beside them memory that belongs to user space.
"""

from typing import Final

from engine.arch.kernelcalls import KernelCalls
from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE
from engine.errors import CommandError
from engine.guest.backing import ImageBacking
from engine.guest.memory import Memory, page_up
from engine.guest.modules import Module, Modules
from engine.image import ElfImage
from engine.linux.loader import perms_of, reserve_beside, reserve_windows
from engine.session.kernel.opened import OpenedKernel

HEAP: Final = "[kernel heap]"
STACK: Final = "[kernel stack]"
_HEAP_SIZE, _USER_SIZE, _STACK_SIZE = 256 << 20, 256 << 20, 1 << 16
_TASK_SIZE: Final = 1 << 14
_ALIGN: Final = 64
_ORDERED_MOST: Final = PAGE << 10
"""The most that a kernel's page allocator gives in one piece (MAX_ORDER)."""
_KERNEL_BIT: Final = 63


class _Room:
    """Memory that is given away piece by piece, and not used again.

    What is used after it was freed is then found as it was left, and what is freed twice is seen.
    """

    def __init__(self, start: int, size: int) -> None:
        self._next, self._end = start, start + size
        self.sizes: dict[int, int] = {}

    @property
    def left(self) -> int:
        """Bytes that are left."""
        return self._end - self._next

    def give(self, size: int) -> int:
        """The address of so many bytes, zeros; 0 where there is no more."""
        align = _alignment(size)
        address = -(-self._next // align) * align
        if size < 0 or address + size > self._end:
            return 0
        self._next = address + max(size, 1)
        self.sizes[address] = size
        return address


def _alignment(size: int) -> int:
    """As of kmalloc: what is of a power of two is aligned to it, and pages are pages."""
    if size >= PAGE:
        return size if size & size - 1 == 0 and size <= _ORDERED_MOST else PAGE
    return max(_ALIGN, size if size & size - 1 == 0 else 0)


def return_of(calls: KernelCalls) -> int:
    """The address that functions return to that nobody in the image has called."""
    return calls.user - PAGE


def rests(calls: KernelCalls, pc: int) -> bool:
    """True if no function is called where pc stands."""
    return return_of(calls) <= pc < calls.user


class KernelMemory:
    """An image in an address space, with room for its functions.

    Attributes:
        end: the return address of calls: a no-operation, on which a probe may stand, and a trap.
        trap: the trap.
        percpu: the area of the processor's own data.
        processor_offset: what is added to the address of per-CPU data as it was linked.
        task: what the current task is said to be.
        stack: where the stack of a call begins; it grows down.
    """

    def __init__(self, opened: OpenedKernel, memory: Memory, modules: Modules, path: str) -> None:
        """Map an image.

        Args:
            opened: the image and what is known of it.
            memory: where nothing is mapped yet.
            modules: told of the files in it.
            path: guest path of the image.
        """
        arch = opened.guest_arch
        plan, calls = arch.plan, opened.calls
        self._memory = memory
        reserve_windows(arch, memory)
        kernel = opened.base or opened
        self.percpu = kernel.image.symbol("__per_cpu_load") or plan.stack_top + _TASK_SIZE
        self.processor_offset = self.percpu if kernel.image.symbol("__per_cpu_load") else 0
        self._map(opened.live_image, path, modules)
        if opened.base is not None:
            base = opened.base.live_image
            self._map(base, base.path or base.name, modules)
        reserve_beside(kernel.live_image, 0, arch, memory)
        memory.map(plan.stack_top - _STACK_SIZE, _STACK_SIZE, READ | WRITE, name=STACK)
        self.stack = plan.stack_top - 1024
        memory.map(calls.heap, _HEAP_SIZE, READ | WRITE, name=HEAP)
        self.end = return_of(calls)
        self.trap = self.end + len(arch.probes.nop)
        memory.map(self.end, PAGE, READ | EXECUTE, name="[end of calls]")
        memory.poke(self.end, arch.probes.nop + calls.trap)
        memory.map(calls.user, _USER_SIZE, READ | WRITE, name="[user memory]")
        self._heap, self._user = _Room(calls.heap, _HEAP_SIZE), _Room(calls.user, _USER_SIZE)
        self.task = kernel.image.symbol("init_task") or self._heap.give(_TASK_SIZE)
        self._freed: set[int] = set()

    def _map(self, image: ElfImage, path: str, modules: Modules) -> None:
        memory, backing = self._memory, ImageBacking(image)
        for segment in image.load_segments:
            start = segment.vaddr
            if image.low >> _KERNEL_BIT and not start >> _KERNEL_BIT:
                start += self.percpu  # linked at 0: the processor's own data
            first, end = start & -PAGE, page_up(start + segment.memsz)
            perms = perms_of(segment)
            stored = page_up(start + segment.filesz) if segment.filesz else first
            if stored > first:
                offset = segment.offset - (start - first)
                memory.map(first, stored - first, perms, name=path, backing=backing, offset=offset)
            if end > stored:
                memory.map(stored, end - stored, perms)
            at = start + segment.filesz
            if segment.filesz and segment.memsz > segment.filesz:
                memory.poke(at, bytes(min(start + segment.memsz, stored) - at))
        modules.add(Module(path, image, 0))

    def poke(self, address: int, data: bytes) -> None:
        """Put bytes into memory that is mapped, whatever its permissions."""
        self._memory.poke(address, data)

    def peek(self, address: int, size: int) -> bytes:
        """Bytes of memory that is mapped."""
        return self._memory.peek(address, size)

    # -- room ---------------------------------------------------------------------------

    def room(self, size: int, *, user: bool = False) -> int:
        """Zeroed memory; 0 where there is no more."""
        return (self._user if user else self._heap).give(size)

    @property
    def left(self) -> int:
        """Bytes that `room` has left."""
        return self._heap.left

    def needed(self, size: int, *, user: bool = False) -> int:
        """The same for what a user asks for.

        Raises:
            CommandError: there is no more.
        """
        address = self.room(size, user=user)
        if not address:
            raise CommandError(f"no memory is left for {size} bytes")
        return address

    def size_of(self, address: int) -> int | None:
        """The bytes that were given at an address; None for none."""
        return self._heap.sizes.get(address, self._user.sizes.get(address))

    def free(self, address: int) -> str:
        """Take memory back: why that is wrong, "" where it is not."""
        if not address:
            return ""
        if address in self._freed:
            return f"{address:#x} is freed twice"
        if self.size_of(address) is None:
            return f"{address:#x} is freed, and was not allocated"
        self._freed.add(address)
        return ""
