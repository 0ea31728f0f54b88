"""A function of the guest, called by the user on a copy of the memory.

The thread that stands goes on in the copy, with the function's arguments in its registers and a
return address where nothing is mapped; the fault there is the return. Registers, memory, heap and
mappings are as they were afterwards; the pages that the function has changed are told with its
result. What leaves the process, as text that is written, has happened; so has what the function
does to shared memory and to descriptors. Other threads do not run meanwhile: a function that waits
is given up.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from engine.cpu.ram import PAGE, WRITE
from engine.errors import CommandError, GuestFaultError
from engine.guest.hooks import SignalAnswer
from engine.guest.memory import Memory
from engine.linux import signals as sig
from engine.linux.signals import PendingSignals
from engine.linux.space import AddressSpace
from engine.linux.thread import Thread
from engine.session.guest.entering import CallArguments, enter
from engine.session.guest.probing import Probing
from engine.session.guest.session import Session

_RETURN: Final = 0x40
"""The return address: below all that can be mapped, and aligned for every architecture."""
_LEAVING: Final = frozenset(
    ("exit", "exit_group", "execve", "execveat", "fork", "vfork", "clone", "clone3")
)
"""Calls that would be there afterwards, or take the process away."""
_ALL: Final = (1 << 64) - 1
_LARGEST: Final = 1 << 30
"""Bytes of a mapping that is compared with what it was."""
_PIECE: Final = 64 << 10
"""Bytes that are compared at once."""


def _changed_pages(before: Memory, after: Memory) -> dict[int, bytes]:
    """Private pages that are other than before, by address; those of huge mappings are not."""
    found: dict[int, bytes] = {}
    for mapping in after.mappings:
        if mapping.shared or mapping.reserved or not mapping.perms & WRITE:
            continue
        if mapping.awaits_pages or mapping.size > _LARGEST:
            continue  # nobody has touched it, or it is too large to be compared
        for start in range(mapping.start, mapping.end, _PIECE):
            size = min(_PIECE, mapping.end - start)
            try:
                new = after.peek(start, size)
            except GuestFaultError:
                continue
            try:
                old = before.peek(start, size)
            except GuestFaultError:  # the function has mapped it
                old = bytes(size)
            if new != old:
                for at in range(0, size, PAGE):
                    if new[at : at + PAGE] != old[at : at + PAGE]:
                        found[start + at] = new[at : at + PAGE]
    return found


class CallOutcome(Struct, frozen=True):
    """Registers and memory that a called function has left.

    Attributes:
        registers: those of its result, by name.
        room: the address that was given for the result; 0 for none.
        pages: memory that is other than the program's own, by the address of each page.
    """

    registers: dict[str, int]
    room: int = 0
    pages: dict[int, bytes] = {}


class FunctionCalls:
    """Calls functions of one run's guest."""

    def __init__(self, session: Session, probing: Probing, halted: Callable[[], bool]) -> None:
        """Nothing is called yet.

        Args:
            session: the run.
            probing: what is placed in it.
            halted: asked when somebody wants attention: is it to stop?
        """
        self._session = session
        self._wanted = halted
        self._probing = probing
        self._signal = 0
        self._refused = ""
        self._halted = False

    def call(
        self, address: int, given: CallArguments, results: Sequence[str], *, keeps: bool = False
    ) -> CallOutcome:
        """Call a function; the registers that hold its result.

        Args:
            address: of the function.
            given: its arguments.
            results: names of the registers.
            keeps: the memory that it has changed is wanted too.

        Raises:
            CommandError: it cannot be called, or does not return.
        """
        session = self._session
        thread = session.machine.current
        old = thread.space
        with self._aside(thread):
            entered = enter(session, session.cpu, address, given, _RETURN)
            self._run(thread)
            values = session.cpu.read_registers(tuple(results))
            pages = _changed_pages(old.memory, thread.space.memory) if keeps else {}
        return CallOutcome(dict(zip(results, values, strict=True)), entered.room, pages)

    # -- the copy ---------------------------------------------------------------------------

    @contextmanager
    def _aside(self, thread: Thread) -> Iterator[None]:
        """Let a thread be in a copy of its memory, with nobody asking about it."""
        session, machine, cpu = self._session, self._session.machine, self._session.cpu
        process, old = thread.process, thread.space
        copy = old.copy()
        there = self._probing.spaces.get(old)
        if there is not None:
            there.leave(copy.memory)
        registers, position = cpu.save(), cpu.position()
        state = thread.signals
        kept = state.blocked, state.saved, thread.kept_signal
        fault = state.last_fault
        pending = state.pending, state.hand.pending
        hooks = session.hooks
        asked = hooks.asked_signal, hooks.asked_call, hooks.attention
        preferred = session.kernel.scheduler.preferred
        hooks.asked_signal, hooks.asked_call = self._signalled, self._called
        hooks.attention = self._interrupted
        supervisor = session.supervisor
        if supervisor is not None:
            supervisor.aside = True
        self._signal, self._refused, self._halted = 0, "", False
        try:
            session.kernel.prefer(thread)
            state.blocked, state.saved, thread.kept_signal = _ALL, None, None
            state.pending, state.hand.pending = PendingSignals(), PendingSignals()
            self._move(process.enter, old, copy)
            yield
        finally:
            hooks.asked_signal, hooks.asked_call, hooks.attention = asked
            if supervisor is not None:
                supervisor.aside = False
            if thread.wait is not None:
                thread.leave_wait()
            thread.kept_call = None
            state.blocked, state.saved, thread.kept_signal = kept
            state.last_fault = fault
            came = state.pending, state.hand.pending
            state.pending, state.hand.pending = pending
            for before, new in zip(pending, came, strict=True):
                _take_over(before, new, process.pid)
            self._move(process.enter, copy, old)
            cpu.restore(registers)
            cpu.go_on(position)
            session.kernel.prefer(preferred)
            machine.spaces.ended(copy)
            copy.memory.close()

    @staticmethod
    def _move(enter: Callable[[AddressSpace], None], old: AddressSpace, new: AddressSpace) -> None:
        enter(new)
        old.users -= 1
        new.memory.activate()

    # -- the call ---------------------------------------------------------------------------

    def _run(self, thread: Thread) -> None:
        """Run the function to its return."""
        kernel, machine = self._session.kernel, self._session.machine
        pc = self._session.arch.roles.pc
        while True:
            kernel.resume()
            kernel.hear()
            if machine.exit is not None or thread.ended:
                raise CommandError("The program has ended in the function.")
            if self._halted:
                raise CommandError("Interrupted in the function; nothing of the call stays.")
            if self._refused:
                raise CommandError(
                    f"The function calls {self._refused}(), which is not done in a call; "
                    "nothing of it stays."
                )
            if self._signal:
                at = self._session.cpu.read_register(pc)
                if at == _RETURN and self._signal == sig.SIGSEGV:
                    return
                raise CommandError(
                    f"The program gets {sig.name(self._signal)} in the function, at "
                    f"{self._session.describe(at)}; nothing of the call stays."
                )
            if thread.wait is not None or machine.current is not thread:
                raise CommandError(
                    f"The function waits in {thread.call.name}(); nothing of the call stays."
                )

    def _signalled(self, number: int) -> SignalAnswer:
        self._signal = number
        return SignalAnswer(stops=True, passes=False)

    def _called(self, number: int, name: str) -> bool:
        if name in _LEAVING:
            self._refused = name
        return bool(self._refused)

    def _interrupted(self) -> None:
        self._halted = self._halted or self._wanted()
        if self._halted:
            self._session.nudge()  # what has heard it would run on else


def _take_over(before: PendingSignals, came: PendingSignals, pid: int) -> None:
    """Signals that came meanwhile wait for the program, but for those that it has sent itself."""
    for number in came.numbers(_ALL):
        while came.mask & sig.bit(number):
            item = came.pop(number)
            code, sender = struct.unpack_from("<i4xi", item.info.ljust(20, b"\0"), 8)
            own = code in (sig.SI_USER, sig.SI_QUEUE, sig.SI_TKILL) and sender == pid
            if not own and not (number < sig.SIGRTMIN and before.mask & sig.bit(number)):
                before.append(item)
