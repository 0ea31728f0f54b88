"""Between the interface and the engine's thread: commands one way, batches of events the other."""

import asyncio
import contextvars
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from engine.session import GuestConfig
from engine.session.browse import OpenedProgram
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.kinds import kind_of
from engine.session.protocol.views import RunState
from engine.worker import Worker

if TYPE_CHECKING:
    from engine.bootworker import BootWorker

PERIOD: Final = 1 / 30
"""Seconds between two looks at the outbox."""
_WAITING: Final = 8
"""Ticks between two views of a guest that waits."""
_RUNNING: Final = 3
"""Ticks between two views of a guest that runs: ten a second are as many as anybody reads."""
_LIVELY: Final = 15
"""Ticks after a change of state for which each has its view: what is short is seen to end."""
_FLOWING: Final = 0.1
"""Seconds between two deliveries then: each has the screen painted."""
_RARE: Final = 0.4
"""The most that they become if this thread takes long over each; rows never wait so long."""
_SHARE: Final = 20
"""The part of the time that deliveries may take then, with all that is painted for them."""
_ANSWERED: Final = 0.5
"""Seconds after a command for which news come as soon as they can: its answer is among them."""
_LATE: Final = 0.1
"""Seconds after which news are delivered even if keys keep coming."""
_SOON: Final = 0.004
"""Seconds between two looks whether a key has been dealt with, or a step."""
_STEP: Final = 0.03
"""Seconds for which nobody is told that the guest has begun to move: a step is over by then."""


class Bridge:
    """Owns the worker; belongs to the interface's thread.

    Attributes:
        running: whether the guest moves, as far as is known.
    """

    def __init__(
        self,
        config: GuestConfig,
        deliver: Callable[[list[ev.SessionEvent]], object],
        busy: Callable[[], bool] = lambda: False,
        *,
        kernel_rules: bool = False,
        size: tuple[int, int] = (80, 24),
        opened: OpenedProgram | None = None,
    ) -> None:
        """Load the program.

        Args:
            config: what to run.
            deliver: takes what the engine has to say, many events at once.
            busy: whether the user waits for what a key does: news come behind that.
            kernel_rules: place probes as Linux would, oddities included.
            size: columns and rows of the guest's terminal.
            opened: the program, if a browser has opened it.

        Raises:
            ImageError: the file cannot be run.
            CommandError: an option cannot be carried out.
        """
        self._deliver, self._busy = deliver, busy
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context = contextvars.Context()
        self._last = 0.0
        self._spent = self._cost = 0.0
        self._rows = False
        self._asked = False
        self._scheduled = False
        self._drain: asyncio.TimerHandle | None = None
        self._quick_until = 0.0
        self.running = False
        self._pending: cmd.Command | None = None
        self._asked_behind: cmd.Command | None = None
        self._posted = 0.0
        self._blocked = False
        self._ticks = 0
        self._state = RunState.READY
        self._begun: ev.Viewed | None = None
        self._told_at = 0.0
        self._closed = False
        if config.boot is not None:
            self._worker: Worker | BootWorker = _boot_worker(config, self._wake, kernel_rules)
        else:
            self._worker = Worker(
                config, self._wake, kernel_rules=kernel_rules, size=size, opened=opened
            )

    def post(self, command: cmd.Command) -> None:
        """Have a command carried out; its view comes when it is done, or when one is asked for.

        After the end nothing is carried out: a key or a timer may come as late as that.
        """
        if self._closed:
            return
        if kind_of(command).changes_view:
            self._pending, self._posted = command, time.monotonic()
        self._quick_until = time.monotonic() + _ANSWERED
        if self._drain is not None:  # which may be far off
            self._drain.cancel()
            self._drain, self._scheduled = None, False
            self._schedule()
        self._worker.post(command)

    def start(self) -> None:
        """Begin; to be called in the interface's event loop."""
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._schedule()  # what has come before had nobody to wake
        self._worker.start()

    def tick(self) -> None:
        """Ask a guest for news that runs, or that takes long over a command; every `PERIOD`."""
        if self._closed:
            return
        self._worker.nudge()
        self._ticks += 1
        pause = _WAITING if self._blocked else _RUNNING if self._ticks > _LIVELY else 1
        late = self._pending is not None and time.monotonic() - self._posted > _STEP
        if (self.running or late) and not self._asked and not self._ticks % pause:
            self._asked, self._asked_behind = True, self._pending
            self._worker.post(cmd.Refresh())

    def how_far(self) -> tuple[float, str] | None:
        """The part of the command at hand that is done, from 0 to 1, and the file that is read.

        None where nobody knows; "" for a way to another moment.
        """
        return self._worker.how_far()

    def close(self) -> None:
        """End the guest."""
        self._loop = None  # nobody is there to be told
        self._closed = True
        self._worker.close()

    # -- from the engine's thread -----------------------------------------------------------

    def _wake(self) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            # The interface's own context: timers and messages that follow need its app.
            loop.call_soon_threadsafe(self._schedule, context=self._context)

    # -- in the interface's thread ----------------------------------------------------------

    def _schedule(self) -> None:
        if self._scheduled or self._loop is None:
            return
        self._scheduled = True
        now = time.monotonic()
        runs_on = self.running and not self._blocked and self._ticks > _LIVELY
        flowing = _FLOWING if self._rows else min(max(_FLOWING, _SHARE * self._cost), _RARE)
        pause = flowing if runs_on and now > self._quick_until else PERIOD
        self._drain = self._loop.call_later(max(self._last + pause - now, 0), self.drain)

    def drain(self) -> None:
        """Take what there is and deliver it."""
        if self._loop is None:
            return
        self._drain = None
        now = time.monotonic()
        if self._scheduled and now - self._last < _LATE and self._busy():
            self._loop.call_later(_SOON, self.drain)
            return
        self._scheduled, self._last = False, now
        spent = time.thread_time()
        self._spent, self._cost = spent, spent - self._spent
        events = self._but_steps(self._worker.outbox.take(), now)
        self._rows = any(isinstance(event, ev.Rows) for event in events)
        for event in events:
            if isinstance(event, ev.Viewed):
                self._look(event.view.state)
            elif isinstance(event, (ev.Done, ev.Failed)) and event.command is self._pending:
                self._pending = None
        if events:
            self._deliver(events)

    def _but_steps(self, events: list[ev.SessionEvent], now: float) -> list[ev.SessionEvent]:
        """Leave the view of a guest that begins to move for later: with a step, one comes after.

        Panes would be painted twice, as of a moment that is past and as they were.
        """
        begun, self._begun = self._begun, None
        if begun is not None and not (events and isinstance(events[-1], ev.Viewed)):
            events.append(begun)
        last = events[-1] if events else None
        if self.running or not isinstance(last, ev.Viewed):
            return events
        if last.view.state is not RunState.RUNNING:
            self._told_at = 0.0
            return events
        self._told_at = self._told_at or now + _STEP
        if now < self._told_at and self._loop is not None:
            events.pop()
            self._begun, self._scheduled = last, True
            self._loop.call_later(_SOON, self.drain)
        else:
            self._told_at = 0.0
        return events

    def _look(self, state: RunState) -> None:
        """A view has come, which says how the guest is."""
        if state is not self._state:
            self._state, self._ticks = state, 0
        self._blocked = state is RunState.WAITING
        self.running = self._blocked or state is RunState.RUNNING
        if self._asked and self._pending is self._asked_behind:
            self._pending = None  # what it has come to is seen in this view, or that it goes on
        self._asked = False


def _boot_worker(
    config: GuestConfig, wake: Callable[[], object], kernel_rules: bool
) -> "BootWorker":
    """The engine's thread for a kernel that is booted."""
    from engine.bootworker import BootWorker  # few guests are machines

    return BootWorker(config, wake, kernel_rules=kernel_rules)
