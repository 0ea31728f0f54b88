"""The things that a recorder of a run is told by the guest's kernel.

All that comes into a program from outside of its own instructions comes while the kernel works,
between two stretches of the program: memory and registers that calls change, signals, other
threads. The recorder sees memory through `engine.cpu.ram.PageEffects` and
`engine.guest.bytes.MappedBytes.written`, registers through the processor that threads have; from
here it knows when the kernel works, and what happens to threads and address spaces.
"""

from typing import TYPE_CHECKING, Protocol

from engine.cpu.base import StopKind

if TYPE_CHECKING:
    from engine.linux.ending import Exit
    from engine.linux.process import Process
    from engine.linux.space import AddressSpace
    from engine.linux.thread import Thread


class KernelRecorder(Protocol):
    """Records one machine."""

    def stopped(self, kind: StopKind) -> None:
        """The program has stopped."""

    def stepped(self, *, ends: bool) -> None:
        """The program has been let go one instruction for a debugger, and nothing stopped it.

        Args:
            ends: something is done then; else it just goes on.
        """

    def begins_call(self, pc: int) -> None:
        """A system call is carried out inside the processor; `pc` is behind it."""

    def enter(self) -> None:
        """The kernel works from here on."""

    def pause(self) -> None:
        """Record no more for now; the program has not gone on."""

    def leave(self) -> None:
        """The program goes on."""

    def called(self) -> None:
        """The current thread makes a system call, or the exception is its own."""

    def switches(self, thread: "Thread") -> None:
        """Take note of another thread; the registers are still those of the one before."""

    def returned(self, result: int, *, restarts: bool) -> None:
        """The current thread's call has this result, or is made again (-EINTR then)."""

    def waits(self) -> None:
        """The current thread's call waits."""

    def renamed(self, thread: "Thread") -> None:
        """A thread has another name."""

    def interrupted(self, number: int) -> None:
        """The host's user sends the first process a signal now."""

    def preferred(self, tid: int, *, at_once: bool) -> None:
        """The host's user has a thread run whenever it can from now on; 0 for none.

        Args:
            tid: its id.
            at_once: the turn of another one is over.
        """

    def signalled(self, number: int) -> None:
        """A signal's frame has been made, and the handler is next."""

    def copied(self, old: "AddressSpace", new: "AddressSpace") -> None:
        """See `engine.linux.space.SpaceEvents`."""

    def lent(self, space: "AddressSpace", thread: int, child: int) -> None:
        """See `engine.linux.space.SpaceEvents`."""

    def replaced(self, process: "Process", old: "AddressSpace", new: "AddressSpace") -> None:
        """A process has begun another program."""

    def ended(self, space: "AddressSpace") -> None:
        """See `engine.linux.space.SpaceEvents`."""

    def became_first(self, tid: int, thread: "Thread") -> None:
        """A thread, which had this id, has its process's now."""

    def process_ended(self, process: "Process") -> None:
        """A process has ended; its threads are about to leave."""

    def input(self, value: int | bytes) -> None:
        """An instruction of the program got a value of its cycle counter, or random bytes."""

    def finished(self, end: "Exit") -> None:
        """The run is over."""
