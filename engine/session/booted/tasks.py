"""The tasks of a booted kernel as a trace names them."""

from collections.abc import Callable
from typing import Final

from engine.arch.program import THREAD_MOST
from engine.machine.currenttask import TaskReader

_MOST: Final = 1 << 16
"""Tasks whose names are known at a time; a kernel may make any number of them."""


class BootTasks:
    """Names and processes of the tasks that events were recorded in.

    Attributes:
        comms: names by id.
        pids: processes by id.
        renaming: called before a task gets another name than events so far have.
        renamed: called with its id behind that.
    """

    def __init__(self, reader: TaskReader) -> None:
        """None is known yet."""
        self.comms: dict[int, bytes] = {}
        self.pids: dict[int, int] = {}
        self.renaming: Callable[[], None] = lambda: None
        self.renamed: Callable[[int], None] = lambda pid: None
        self._reader = reader

    def running(self) -> int:
        """The id of the task that runs; what it is called is known from here on."""
        task = self._reader.now()
        pid = task.pid & THREAD_MOST  # what a kernel writes there may be anything
        known = self.comms.get(pid)
        tgid = task.tgid & THREAD_MOST
        if known != task.comm or self.pids[pid] != tgid:
            if known is not None or len(self.comms) >= _MOST:
                self.renaming()
                if len(self.comms) >= _MOST:
                    self.comms.clear()
                    self.pids.clear()
            self.comms[pid], self.pids[pid] = task.comm, tgid
            if known is not None:
                self.renamed(pid)
        return pid
