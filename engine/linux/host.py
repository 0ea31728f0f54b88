"""Messages of the host to a running guest: signals of its user, and limits that stop it.

From any thread; the engine's own thread hears of it between two stretches of the program, or
while the program waits.
"""

import os
import select
import threading
from collections import deque
from collections.abc import Callable, Mapping


class HostEvents:
    """A queue with a flag, and a pipe that wakes a waiting engine.

    Attributes:
        wait: waits for one of these or for what host descriptors wait for, (POLL* bits by
            descriptor, milliseconds or None); False where that time has passed without any.
    """

    def __init__(self) -> None:
        """Nothing has happened yet."""
        self._events: deque[tuple[str, int]] = deque()
        self.attention = threading.Event()
        self.wait: Callable[[Mapping[int, int], float | None], bool] = self._poll
        self.wake_in, self._wake_out = os.pipe()
        os.set_blocking(self._wake_out, False)
        os.set_blocking(self.wake_in, False)
        self._writing = threading.RLock()  # a signal's handler may put within a put

    def put(self, kind: str, number: int) -> None:
        """A signal ("signal" or "end", number) or a limit (its name, 0); from any thread.

        Nobody hears of one behind `close`: another thread may not know yet that the guest is gone.
        """
        self._events.append((kind, number))
        self.attention.set()
        with self._writing:
            if self._wake_out < 0:
                return
            try:
                os.write(self._wake_out, b"x")
            except BlockingIOError:
                pass

    def waiting(self) -> bool:
        """True if something has been put that was not taken."""
        return self.attention.is_set()

    def take(self) -> list[tuple[str, int]]:
        """All events so far, in order."""
        self.attention.clear()
        try:
            os.read(self.wake_in, 4096)
        except BlockingIOError:
            pass
        found = []
        while self._events:
            found.append(self._events.popleft())
        return found

    def _poll(self, asked: Mapping[int, int], timeout: float | None) -> bool:
        poller = select.poll()
        poller.register(self.wake_in, select.POLLIN)
        for descriptor, events in asked.items():
            poller.register(descriptor, events)
        return bool(poller.poll(timeout))

    def close(self) -> None:
        """Give the pipe back."""
        with self._writing:
            os.close(self.wake_in)
            os.close(self._wake_out)
            self._wake_out = -1
