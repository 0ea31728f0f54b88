"""Frames of calls: what tells one from another at a function's entry, and after its return."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from operator import itemgetter

from engine.cpu.ram import EXECUTE, WRITE
from engine.errors import GuestFaultError
from engine.guest.mapping import Mapping
from engine.probes.target import ProbeTarget

_ACCESS = WRITE | EXECUTE


class FrameReader:
    """Reads, and changes, what a call has left at the entry of a function.

    Attributes:
        word: bytes of a return address.
        stacked: calls push the return address.
        keyed: something else than the stack pointer tells activations apart.
        exit: registers that say which call has returned, once it has.
        exit_key: their values to what stands for its stack pointer.
    """

    def __init__(self, target: ProbeTarget) -> None:
        """Nothing is read yet."""
        roles, special = target.arch.roles, target.arch.returns
        self._target = target
        self.stacked = roles.link is None
        self.word = target.arch.bits // 8
        self._keys = keys = special.keys if special is not None else None
        self.keyed = keys is not None
        entry = (roles.sp,) if keys is None else keys.entry
        self._names = entry if roles.link is None else (*entry, roles.link)
        self.exit: tuple[str, ...] = (roles.sp,) if keys is None else keys.exit
        self.exit_key: Callable[[Sequence[int]], int]
        self.exit_key = itemgetter(0) if keys is None else keys.returned
        self._read: Callable[[], tuple[int, ...]] | None = None
        self._stack: Mapping | None = None  # the mapping that `_words` shows
        self._words: memoryview | None = None

    @cached_property
    def _read_exit(self) -> Callable[[], tuple[int, ...]]:
        return self._target.cpu.traps.reader(self.exit)

    def left_behind(self) -> int:
        """The stack pointer of a call that has just returned, or what stands for it."""
        return self.exit_key(self._read_exit())

    def sp_of(self, slot: int) -> int:
        """The stack pointer of a frame (see `KretprobeInstance.slot`)."""
        return slot if self._keys is None else slot >> self._keys.shift

    def lowest_at(self, sp: int) -> int:
        """A number below what stands for a frame at this stack pointer, and above all below it."""
        return sp if self._keys is None else sp << self._keys.shift

    def frame(self) -> tuple[int, int]:
        """(stack pointer, return address) where a function begins.

        In place of the stack pointer is what tells activations apart, where that is more.

        Raises:
            GuestFaultError: the stack cannot be read.
        """
        if self._read is None:
            self._read = self._target.cpu.traps.reader(self._names)
        values = self._read()
        if not self.stacked:
            keys = self._keys
            return values[0] if keys is None else keys.entered(values), values[-1]
        sp = values[0]
        memory = self._target.memory
        stack = memory.find(sp)
        if stack is not self._stack or stack is None:
            memory.read(sp, self.word)
            assert stack is not None, "what can be read is mapped"
            self._stack, self._words = stack, memory.words(stack)
        words = self._words
        if words is None or sp & self.word - 1:
            return sp, int.from_bytes(memory.read(sp, self.word), "little")
        return sp, words[sp - stack.start >> 3]

    def leave(self, sp: int, address: int) -> None:
        """Put the address that a call has returned to where its frame had the return address.

        A trampoline of Linux returns by it (arch/x86/kernel/uprobes.c, sys_uretprobe).

        Args:
            sp: the stack pointer behind the return.
            address: the address that the call has returned to.
        """
        place, stack, words = sp - self.word, self._stack, self._words
        closed = self._target.memory.closed
        if stack is not None and words is not None and not closed and not place & self.word - 1:
            index = place - stack.start >> 3
            if 0 <= index < len(words) and stack.perms & _ACCESS == WRITE:
                words[index] = address
                return
        with suppress(GuestFaultError):
            self._target.step.store(place, address.to_bytes(self.word, "little"))

    def redirect(self, sp: int, address: int) -> bool:
        """Let the call that `frame` has just read return elsewhere; False if that cannot be."""
        target = self._target
        link = target.arch.roles.link
        if link is not None:
            target.cpu.write_register(link, address)
            return True
        stack, words = self._stack, self._words
        plain = stack is not None and stack.perms & _ACCESS == WRITE and not target.memory.closed
        if stack is not None and words is not None and plain and not sp & self.word - 1:
            words[sp - stack.start >> 3] = address  # what `frame` has just read
            return True
        try:
            target.step.store(sp, address.to_bytes(self.word, "little"))
        except GuestFaultError:
            return False
        return True
