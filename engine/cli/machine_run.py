"""A machine that runs until it ends, a signal comes, or its time is over."""

import io
import os
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Final, TypeVar, cast

from engine.cli import console
from engine.errors import TIMED_OUT, CutOff
from engine.session.headless.booting import Booted, BootEnd, MachineEnd, ended

_Result = TypeVar("_Result")
FAILED: Final = 1
TIME_OVER: Final = 124
"""Exit code where the time of --timeout has ended a boot."""
OTHERWISE: Final = 2
"""Exit code where a recorded boot does not go as it was recorded."""
_SWITCHED_OFF: Final = (BootEnd.OFF, BootEnd.RESET, BootEnd.HALTED)
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_GRACE: Final = 2.0
"""Seconds that a machine has to stop: it cannot while nobody reads what its console writes."""
_OFTEN: Final = 0.1
"""Seconds between two looks at whether the boot is over: signals are heard between them."""


def console_input() -> int | None:
    """The descriptor that a console's input is read from; None where there is none."""
    return sys.stdin.fileno() if sys.stdin is not None else None


class _RawTerminal(io.RawIOBase):
    """A terminal that passes every key on, and so begins no line by itself."""

    def __init__(self, stream: BinaryIO) -> None:
        """Write to a stream."""
        self._stream = stream

    def writable(self) -> bool:
        """Return True."""
        return True

    def isatty(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Write lines, each of which begins at the left."""
        text = bytes(data)
        rest = memoryview(text.replace(b"\n", b"\r\n"))
        while rest:
            rest = rest[self._stream.write(rest) or 0 :]
        return len(text)

    def flush(self) -> None:
        """Write what is left."""
        if not self.closed:
            self._stream.flush()


def trace_stream(stream: BinaryIO, stdin: int | None) -> BinaryIO:
    """Return the stream of a trace beside a console.

    Args:
        stream: standard error.
        stdin: the console's input.
    """
    is_raw = stdin is not None and os.isatty(stdin)
    return cast(BinaryIO, _RawTerminal(stream)) if is_raw and stream.isatty() else stream


def run_machine(
    booted: Booted,
    run: Callable[[], MachineEnd],
    *,
    timeout: float | None,
    color: str,
    stdin: int | None,
    kprobes: bool = False,
) -> int:
    """Run a machine to its end, and tell how it ended where it has not switched itself off.

    Args:
        booted: the machine.
        run: runs it.
        timeout: seconds that it has; None for any number.
        color: when messages have some.
        stdin: the console's input; a terminal passes every key on.
        kprobes: show the kernel's own at the end.

    Returns:
        The exit code of the command.

    Raises:
        CommandError: the kernel's kprobes are not found.
        CutOff: it was to stop, and did not.
    """
    with _all_keys(stdin):
        end, stopped = run_heard(run, booted.halt, timeout)
    if end.reason is not BootEnd.HALTED:
        stopped = 0
    told = ended(end, booted.place(end.pc))
    if end.reason is BootEnd.HALTED and os.isatty(1):
        console.write_raw(b"\n")  # its console is in the middle of a line
    if stopped == TIME_OVER:
        console.remark(TIMED_OUT, color=color)
    if told:
        console.remark(told, color=color)
    for text in filter(None, (booted.damage, booted.difference)):
        console.remark(text, color=color)
    if kprobes:
        found = list(booted.kprobes())
        console.remark("the kernel's own kprobes:" if found else "the kernel has no kprobes")
        if found:
            console.text("\n".join(found))
    if booted.difference:
        return OTHERWISE
    if booted.damage:
        return TIME_OVER
    return stopped or (0 if end.reason in _SWITCHED_OFF else FAILED)


def show_figures(booted: Booted, began: float, color: str) -> None:
    """Print the machine's figures, for --debug.

    Args:
        booted: the machine, which has ended.
        began: CPU time of this process when the command began, in seconds.
        color: when messages have some.
    """
    used = time.process_time() - began
    console.remark(f"{booted.progress}, {used:.1f} s of CPU", color=color)


def run_heard(
    run: Callable[[], _Result], halt: Callable[[], None], timeout: float | None
) -> tuple[_Result, int]:
    """Run machines in a thread of its own, as signals are heard in this one.

    Args:
        run: runs them to their end.
        halt: stops them soon, from any thread.
        timeout: seconds that they have; None for any number.

    Returns:
        What `run` gives, and the exit code of whoever has stopped the machines, 0 for nobody.

    Raises:
        CutOff: they were to stop, and did not.
    """
    results: list[_Result | BaseException] = []

    def work() -> None:
        try:
            results.append(run())
        except BaseException as error:
            results.append(error)

    stopped, since = 0, 0.0
    until = time.monotonic() + timeout if timeout is not None else None
    worker = threading.Thread(target=work, name="machine", daemon=True)
    with _heard() as signals:
        worker.start()
        while worker.is_alive():
            worker.join(_OFTEN)
            if signals:
                stopped = 128 + signals[0]
            elif until is not None and time.monotonic() > until:
                stopped = TIME_OVER
            if stopped:
                halt()
                since = since or time.monotonic()
                if time.monotonic() - since > _GRACE:
                    raise CutOff(stopped)
    (result,) = results
    if isinstance(result, BaseException):
        raise result
    return result, stopped


@contextmanager
def _heard() -> Iterator[list[int]]:
    """Note the signals that end a command."""
    found: list[int] = []
    before = {
        number: signal.signal(number, lambda number, frame: found.append(number))
        for number in _ENDING
        if signal.getsignal(number) is not signal.SIG_IGN  # nohup has its meaning
    }
    try:
        yield found
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _all_keys(stdin: int | None) -> Iterator[None]:
    """Have a terminal pass every key on, Ctrl-C among them."""
    with _keys(stdin, tty.setraw):
        yield


@contextmanager
def typed_keys(stdin: int | None) -> Iterator[None]:
    """Have a terminal pass keys on as they come; it echoes none, and Ctrl-C is not the guest's."""
    with _keys(stdin, tty.setcbreak):
        yield


@contextmanager
def _keys(stdin: int | None, change: Callable[[int], object]) -> Iterator[None]:
    """Change a terminal, and put it back at the end."""
    if stdin is None or not os.isatty(stdin):
        yield
        return
    before = termios.tcgetattr(stdin)
    try:
        change(stdin)
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(stdin, termios.TCSADRAIN, before)
