"""The engine's thread: owns a guest, obeys commands, and keeps what it has to say in an outbox.

The front end posts commands and drains the outbox at its own pace, many events at a time.
Events of which only the last counts (views) are kept once. When the outbox holds too many
rows or too much output, the guest waits: nothing is dropped.
"""

import os
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Final

from engine.arch.plan import Mode
from engine.errors import CommandError
from engine.session.control.control import Control
from engine.session.control.file_progress import Reached
from engine.session.control.running import Abandoned
from engine.session.guest.terminal import GuestTerminal
from engine.session.program.opening import OpenedProgram
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.config import GuestConfig

ROWS_MAX: Final = 4 << 20
"""Bytes of rows in the outbox from which on the guest waits."""
OUTPUT_MAX: Final = 1 << 20
"""Bytes of output in the outbox from which on the guest's terminal fills up."""
_END: Final = b"\r\n"
"""End of a line as a terminal puts it out."""
_PATIENCE: Final = 1.0
"""Seconds that the end of a guest waits for its last output to be taken."""
_AT_ONCE: Final = 0.2
"""Seconds that a guest's write waits at most for coming out of its terminal: some 10 us mostly."""
_NAP: Final = 0.01
"""Seconds for which output is left to the writes of a guest that is recorded."""
SWITCH_INTERVAL: Final = 0.0005
"""Seconds between two offers of the interpreter's lock: keys must not wait for hits."""


class Outbox:
    """Events on their way from the engine to the front end."""

    def __init__(self, wake: Callable[[], object]) -> None:
        """`wake` is called, from any thread, when something comes into an empty outbox."""
        self._wake = wake
        self._events: deque[ev.SessionEvent] = deque()
        self._view: ev.Viewed | None = None
        self._lines: list[bytes] = []
        self._moments: list[tuple[int, int]] = []
        self._rows = self._output = 0
        self._room = threading.Condition()
        self._closed = False

    def put(self, event: ev.SessionEvent) -> None:
        """Add an event; waits while there is no room for rows or output."""
        with self._room:
            if isinstance(event, ev.Rows):
                self._room.wait_for(lambda: self._rows < ROWS_MAX or self._closed)
                self._rows += len(event.data)
            elif isinstance(event, ev.Output):
                self._await_room(len(event.data))
            was_empty = self._is_empty
            if isinstance(event, ev.Viewed):
                self._view = event
            else:
                self._end_lines()
                self._events.append(event)
        if was_empty:
            self._wake()

    def put_line(self, line: bytes, moment: tuple[int, int]) -> None:
        """Add a line of output; those that follow one another become one event.

        Args:
            line: its bytes without the end of line.
            moment: tick and instruction that has written it.
        """
        with self._room:
            self._await_room(len(line) + len(_END))
            was_empty = self._is_empty
            self._lines.append(line)
            self._moments.append(moment)
        if was_empty:
            self._wake()

    @property
    def _is_empty(self) -> bool:
        return not self._lines and not self._events and self._view is None

    def _await_room(self, size: int) -> None:
        """Wait until so many more bytes of output may come in."""
        if self._output >= OUTPUT_MAX:
            self._room.wait_for(lambda: self._output < OUTPUT_MAX or self._closed)
        self._output += size

    def _end_lines(self) -> None:
        """Make an event of the lines that have come in."""
        if self._lines:
            data = _END.join((*self._lines, b""))
            moments = tuple(self._moments)
            self._events.append(ev.OutputLines(data, *moments[0], moments=moments))
            self._lines.clear()
            self._moments.clear()

    def take(self) -> list[ev.SessionEvent]:
        """Everything so far, in order; the last view comes last."""
        with self._room:
            self._end_lines()
            events = list(self._events)
            self._events.clear()
            if self._view is not None:
                events.append(self._view)
            self._view = None
            self._rows = self._output = 0
            self._room.notify_all()
        return events

    def close(self) -> None:
        """Close the outbox: none takes anything any more, and none has to wait."""
        with self._room:
            self._closed = True
            self._room.notify_all()


class Inbox:
    """Commands on their way from the front end's thread to the engine's: its `CommandSource`."""

    def __init__(self) -> None:
        """No command has come in."""
        self._commands: deque[cmd.Command | None] = deque()
        self._more = threading.Semaphore(0)

    def __len__(self) -> int:
        """Count the commands that nobody has taken."""
        return len(self._commands)

    def put(self, command: cmd.Command | None) -> None:
        """Add a command, None for the end; from any thread."""
        self._commands.append(command)
        self._more.release()

    def wait(self) -> cmd.Command | None:
        """Wait for the next command; None at the end."""
        self._more.acquire()
        return self._commands.popleft()

    def waiting(self) -> cmd.Command | None:
        """Give the next command, None if none has come in.

        Raises:
            Abandoned: the end has come.
        """
        if not self._more.acquire(blocking=False):
            return None
        command = self._commands.popleft()
        if command is None:  # the end: for whoever waits next
            self._commands.appendleft(None)
            self._more.release()
            raise Abandoned
        return command


class Worker:
    """A guest in a thread of its own.

    Attributes:
        outbox: what it has to say.
    """

    def __init__(
        self,
        config: GuestConfig,
        wake: Callable[[], object] = lambda: None,
        *,
        kernel_rules: bool = False,
        size: tuple[int, int] = (80, 24),
        opened: OpenedProgram | None = None,
    ) -> None:
        """Load the program; `start` starts the thread.

        Args:
            config: what to run.
            wake: see `Outbox`.
            kernel_rules: place probes exactly as Linux would, oddities included.
            size: columns and rows of the guest's terminal.
            opened: the program, if a browser has opened it.

        Raises:
            ImageError: the file cannot be run.
            CommandError: an option cannot be carried out.
        """
        self.outbox = Outbox(wake)
        self._terminal = GuestTerminal(*size)
        self._inbox = Inbox()
        try:
            self._control = Control(
                config,
                self.outbox.put,
                mode=Mode.KERNEL if kernel_rules else Mode.STRICT,
                terminal=self._terminal,
                opened=opened,
                source=self._inbox,
                learn=self._learn,
                before_end=self._all_out,
                refills=True,
            )
        except BaseException:
            self._terminal.close()
            raise
        self._closing = False
        self._passing = threading.Lock()
        self._terminal.writing = self._writing
        self._terminal.passes_by = self._passes_by
        self._threads = (
            threading.Thread(target=self._work, name="engine", daemon=True),
            threading.Thread(target=self._listen, name="terminal", daemon=True),
        )
        self._interval = sys.getswitchinterval()

    def start(self) -> None:
        """Begin to obey."""
        sys.setswitchinterval(SWITCH_INTERVAL)
        for thread in self._threads:
            thread.start()

    def post(self, command: cmd.Command) -> None:
        """Have a command carried out; from the front end's thread."""
        self._inbox.put(command)
        self._control.sight.attention()

    def nudge(self) -> None:
        """Make sure that a running guest has heard; for a timer of the front end."""
        self._control.sight.nudge()

    def how_far(self) -> Reached | None:
        """The part of the command at hand that is done; None where nobody knows."""
        try:
            return self._control.sight.how_far
        except CommandError:  # the run was given back meanwhile
            return None

    def close(self) -> None:
        """End the run and the threads."""
        self._closing = True
        self.outbox.close()
        self._inbox.put(None)
        started = self._threads[0].ident is not None  # it may have ended by now
        while self._threads[0].is_alive():
            self._control.sight.attention()
            self._control.sight.nudge()
            self._threads[0].join(0.01)
        if started:
            self._terminal.finish()
            self._threads[1].join()
        sys.setswitchinterval(self._interval)
        self._control.close()
        self._terminal.close()

    # -- the threads ----------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            self._control.refresh()
            while not self._closing and (command := self._inbox.wait()) is not None:
                self._control.loop.execute(command)
        except BaseException as error:  # whatever it is: nobody obeys any more
            self.outbox.put(ev.Crashed(repr(error), traceback.format_exc()))

    def _learn(self) -> None:
        """Have the guest obey gdb's words, now that one was typed."""
        # A fifth of the engine's modules, which who only looks and presses keys need not wait for.
        from engine.session.debugger.console import Console

        Console(self._control, self.outbox.put)

    def _listen(self) -> None:
        """Pass on what the guest writes, and what it could not take before."""
        while self._terminal.wait():
            with self._passing:
                found = self._pass()
            if not found:  # `_writing` takes it: not to be woken by each write of the guest
                time.sleep(_NAP)

    def _pass(self) -> bool:
        """Pass on what stands in the terminal; False if nothing does."""
        data = self._terminal.read()
        if data:
            self.outbox.put(ev.Output(data))
        return bool(data)

    def _writing(self, fd: int, data: bytes) -> int:
        """The guest writes: what comes out of its terminal at that is of this moment."""
        moment = self._control.call_at_hand()
        if moment is None:
            return os.write(fd, data)
        terminal = self._terminal
        with self._passing:
            if terminal.echoes:
                self._pass()
            if terminal.translates_only_ends:  # no trip through the host for each line
                if data.find(b"\n") == len(data) - 1:
                    self.outbox.put_line(data[:-1], moment)
                else:
                    self.outbox.put(ev.Output(data.replace(b"\n", _END), *moment))
                return len(data)
            self._pass()  # what is older; it makes room, too
            taken = left = os.write(fd, data)
            end = time.monotonic() + _AT_ONCE
            while left > 0 and not self._closing:
                found = terminal.read()
                if found:  # no less than went in: a newline is two bytes, and there is echo
                    self.outbox.put(ev.Output(found, *moment))
                    left -= len(found)
                elif time.monotonic() > end:
                    break
                else:
                    terminal.pending(1)
        return taken

    def _passes_by(self) -> bool:
        """True if `_writing` would not lead a write through the terminal."""
        return self._terminal.translates_only_ends and self._control.records_calls

    def _all_out(self) -> None:
        """Wait until what the guest wrote is in the outbox: its end comes behind that."""
        end = time.monotonic() + _PATIENCE
        while not self._closing and time.monotonic() < end:
            with self._passing:
                if not self._terminal.pending():
                    return
            time.sleep(0.001)
