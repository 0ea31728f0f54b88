"""The engine's thread for a booted kernel: obeys commands, and keeps what it has to say.

It stands in the place of `engine.worker.Worker`, with the same outbox, for a machine that
`MachineControl` moves.
"""

import sys
import threading
import time
import traceback
from collections.abc import Callable

from engine.arch.plan import Mode
from engine.session.bootcontrol.control import MachineControl
from engine.session.control.running import Abandoned
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.config import GuestConfig
from engine.worker import SWITCH_INTERVAL, Inbox, Outbox


class BootWorker:
    """A machine in a thread of its own.

    Attributes:
        outbox: what it has to say.
    """

    def __init__(
        self,
        config: GuestConfig,
        wake: Callable[[], object] = lambda: None,
        *,
        kernel_rules: bool = False,
    ) -> None:
        """Lay the kernel out; `start` starts the thread.

        Args:
            config: with what is to be booted.
            wake: see `Outbox`.
            kernel_rules: definitions are judged exactly as by Linux, oddities included.

        Raises:
            ImageError: the kernel cannot be read.
            CommandError: it cannot be booted.
        """
        self.outbox = Outbox(wake)
        self._inbox = Inbox()
        mode = Mode.KERNEL if kernel_rules else Mode.STRICT
        self._control = MachineControl(config, self.outbox.put, self._inbox, mode=mode)
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)
        self._interval = sys.getswitchinterval()

    def start(self) -> None:
        """Begin to obey."""
        sys.setswitchinterval(SWITCH_INTERVAL)
        self._thread.start()

    def post(self, command: cmd.Command) -> None:
        """Have a command carried out; from the front end's thread."""
        self._inbox.put(command)
        self._control.attention(command)

    def nudge(self) -> None:
        """Do nothing: a machine that moves hears of each command at once."""

    def how_far(self) -> tuple[float, str] | None:
        """None: nobody knows how far a motion is."""
        return None

    def close(self) -> None:
        """End the boot and the thread."""
        self._closing = True
        self.outbox.close()
        self._inbox.put(None)
        while self._thread.is_alive():
            self._control.attention(cmd.Halt())
            self._thread.join(0.01)
            time.sleep(0)
        sys.setswitchinterval(self._interval)
        self._control.close()

    def _work(self) -> None:
        try:
            self._control.refresh()
            while not self._closing and (command := self._inbox.wait()) is not None:
                self._control.execute(command)
        except Abandoned:
            return
        except BaseException as error:  # whatever it is: nobody obeys any more
            self.outbox.put(ev.Crashed(repr(error), traceback.format_exc()))
