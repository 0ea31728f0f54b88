"""gdb's words on a booted kernel without the interface, as `gdb --batch` has them."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

from engine.arch.plan import Mode
from engine.errors import TIMED_OUT, CommandError
from engine.hostlimits import because_of
from engine.session.bootcontrol.control import MachineControl
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.config import GuestConfig

_TIME_OVER = 124
_IN_A_ROW = 2
"""Interrupts of which the last one ends the command."""


class HaltedByHost:
    """Gives a machine that moves the user's Ctrl-C; a `MachineCommands`."""

    def __init__(self) -> None:
        """Begin without an interrupt."""
        self.count = 0
        self._heard = 0

    def waiting(self) -> cmd.Command | None:
        """Give a halt for each interrupt."""
        if self._heard == self.count:
            return None
        self._heard = self.count
        return cmd.Halt()


def batch_boot(
    config: GuestConfig,
    definitions: Iterable[str],
    steps: Iterable[tuple[str, str]],
    put: Callable[[str], object],
    write: Callable[[bytes], object],
    complain: Callable[[str], object],
    mode: Mode,
    timeout: float | None = None,
) -> int:
    """Carry lines of words out one after the other; the exit code.

    One that fails does not keep the next from being carried out; the code is 1 if the last one has
    failed. Nothing is typed on the console: a program inside that waits for input waits on.

    Args:
        config: with what is to be booted.
        definitions: lines of `kprobe_events` to place first.
        steps: ("file", PATH) and ("command", LINE), in order.
        put: takes what words print.
        write: takes what the console writes.
        complain: takes errors.
        mode: strictness of definitions.
        timeout: seconds that all of it may take; None for any number.

    Raises:
        KprobeTuiError: the kernel cannot be booted, or a definition is not accepted.
    """
    failed = ""

    def told(event: ev.SessionEvent) -> None:
        nonlocal failed
        match event:
            case ev.Printed(text):
                put(text)
            case ev.Output(data):
                write(data.replace(b"\r\n", b"\n"))
            case ev.Failed():
                failed = event.text
            case ev.Notice(text):
                complain(f"warning: {text}")
            case ev.Remark(lines):
                for line in lines:
                    complain(f"warning: {line}")

    halts, over = HaltedByHost(), threading.Event()
    control = MachineControl(config, told, halts, mode=mode)

    def cut() -> None:
        over.set()
        halts.count += 1
        control.attention(cmd.Halt())

    timer = threading.Timer(timeout or 0, cut)
    timer.daemon = True
    try:
        control.end_input()
        if timeout is not None:
            timer.start()
        for line in definitions:
            control.execute(cmd.Define(line))
            if failed:
                raise CommandError(failed)
        with _interrupts(halts, control):
            for line in _lines(steps):
                failed = ""
                control.execute(cmd.TypedLine(line))
                if over.is_set():
                    complain(TIMED_OUT)
                    return _TIME_OVER
                if failed:
                    complain(failed)
    finally:
        timer.cancel()
        control.close()
    return int(bool(failed))


def _lines(steps: Iterable[tuple[str, str]]) -> Iterator[str]:
    for kind, text in steps:
        if kind == "command":
            yield text
            continue
        try:
            with open(text, encoding="utf-8", errors="surrogateescape") as file:
                yield from file.read().splitlines()
        except OSError as error:
            raise CommandError(f"-x {text}: {because_of(error)}") from error


@contextmanager
def _interrupts(halts: HaltedByHost, control: MachineControl) -> Iterator[None]:
    """Listen to Ctrl-C: one stops the machine, the second of one word ends the command."""
    began = 0

    def hear(number: int, frame: FrameType | None) -> None:
        nonlocal began
        halts.count += 1
        if halts.count - began >= _IN_A_ROW:
            signal.default_int_handler(number, frame)
        control.attention(cmd.Halt())

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
