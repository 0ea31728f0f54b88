"""Callbacks from a running guest to the layers above.

Every field has a neutral default; the session replaces those it needs. Layers below call
them and never ask who is behind.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from msgspec import Struct

from engine.cpu.base import Stop


def _same(address: int) -> int:
    return address


def _never() -> bool:
    return False


def _untouched(stop: Stop) -> Stop | None:
    return stop


def _not_mine(address: int, access: str, pc: int) -> bool:
    return False


def _ignore(*arguments: object) -> None:
    return None


class SpaceHooks(Struct):
    """Callbacks into what watches one address space: the machinery of probes.

    Attributes:
        original_pc: the program's own address for a place in a slot, detour or trampoline.
        hold: whether signals and the end of a quantum must wait (a probe is in the middle
            of its machinery).
        withdraw: gives up what the machinery has begun, where that can be repeated, so that a
            signal has to wait no longer; whether it could.
        stopped: sees every stop of the CPU first; what is left of it for the kernel, if anything.
        passes_call: (pc behind the instruction): True if nothing that `stopped` would see, and no
            `hold`, has to do with a system call there. None where that cannot be known.
        watched: sees an access that was refused before all others do; what is left of it, None
            where it has been carried out.
        opened: (address, access, pc): whether a refused access was refused only because of the
            machinery; it may be repeated then.
        original: (address, bytes read there): the same bytes as the program put them there.
        rewrite: (address, bytes): a debugger inside changes the program's own bytes there; None
            where nothing stands over them.
        covers: (address): whether a probe of the instruction there was hit just now, in front of
            such a debugger's breakpoint; `passed` follows.
        passed: (address): the thread has executed the instruction, or gone elsewhere.
        resolve_return: (return address, sp at the entry of the function that returns there,
            calls of that sp met before) to the real one where a return probe catches that, None
            where none does.
        unwind_info: (start, unwind information) of the machinery's own code around an address.
        mapped: (start, size) has been mapped with execute permission or gained it.
        unmapped: (start, size) is gone or lost its execute permission.
        discarded: (start, size) has its file's content again: private pages were dropped.
    """

    original_pc: Callable[[int], int] = _same
    hold: Callable[[], bool] = _never
    withdraw: Callable[[], bool] = _never
    stopped: Callable[[Stop], Stop | None] = _untouched
    passes_call: Callable[[int], bool] | None = None
    watched: Callable[[Stop], Stop | None] = _untouched
    opened: Callable[[int, str, int], bool] = _not_mine
    original: Callable[[int, bytes], bytes] = lambda address, data: data
    rewrite: Callable[[int, bytes], None] | None = None
    covers: Callable[[int], bool] = lambda address: False
    passed: Callable[[int], None] = _ignore
    resolve_return: Callable[[int, int, int], int | None] = lambda address, slot, met: None
    unwind_info: Callable[[int], tuple[int, bytes] | None] = lambda pc: None
    mapped: Callable[[int, int], None] = _ignore
    unmapped: Callable[[int, int], None] = _ignore
    discarded: Callable[[int, int], None] = _ignore

    def hear_stops(self) -> bool:
        """True if anybody sees stops of the CPU, or may hold signals and turns up."""
        return self.stopped is not _untouched or self.hold is not _never


class SignalAnswer(NamedTuple):
    """A debugger's wish for a signal that is about to be delivered.

    Attributes:
        stops: nothing happens until the guest is let on.
        passes: the program gets it then; else it is dropped.
    """

    stops: bool
    passes: bool


PASSED: Final = SignalAnswer(stops=False, passes=True)


class GuestHooks(Struct):
    """Callbacks into the layers above about all processes of a guest.

    Attributes:
        syscall_enter: (number, name, arguments) before the current thread's system call is
            carried out.
        syscall_exit: (number, name, result) after it.
        renaming: a thread is about to get another name.
        renamed: (thread id): it has it; or a thread is new.
        signalled: a signal's frame has been made at the stack pointer.
        asked_signal: (number): a signal is about to be delivered to the current thread.
        asked_call: (number, name): the current thread's system call is about to be carried out;
            True keeps it back until the guest is let on. None while nobody wants to know.
        asked_return: (number, name): the current thread's system call is over. None while nobody
            wants to know.
        given_result: (number, name): the result that the current thread's system call has without
            being carried out, None to carry it out. None while nobody gives any.
        excepted: an exception of the processor that nobody below has dealt with; True if it is
            dealt with, else it becomes a signal.
        attention: the host asked for it; called between stretches and in blocked calls.
        host_input: (source, data): bytes that came from the host (a read of a standard
            stream, the host's clock); returns what the guest gets, so that a journal can
            record or replay them.
    """

    syscall_enter: Callable[[int, str, tuple[int, ...]], None] = _ignore
    syscall_exit: Callable[[int, str, int], None] = _ignore
    renaming: Callable[[], None] = _ignore
    renamed: Callable[[int], None] = _ignore
    signalled: Callable[[], None] = _ignore
    asked_signal: Callable[[int], SignalAnswer] = lambda number: PASSED
    asked_call: Callable[[int, str], bool] | None = None
    asked_return: Callable[[int, str], None] | None = None
    given_result: Callable[[int, str], int | None] | None = None
    excepted: Callable[[Stop], bool] = lambda stop: False
    attention: Callable[[], None] = _ignore
    host_input: Callable[[str, bytes], bytes] = lambda source, data: data

    def left_call(self, number: int, name: str, result: int) -> None:
        """Tell whoever wants to know that the current thread's system call is over."""
        self.syscall_exit(number, name, result)
        if self.asked_return is not None:
            self.asked_return(number, name)

    def hear_calls(self) -> bool:
        """True if anybody is told of system calls, or asked about them."""
        told = self.syscall_enter is not _ignore or self.syscall_exit is not _ignore
        return told or self.asked_call is not None or self.asked_return is not None
