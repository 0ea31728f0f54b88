"""The threads of a guest by gdb's numbers, and by the names that they or the user give them."""

import re
from collections import deque
from typing import Final

from engine.errors import CommandError
from engine.linux.thread import Thread
from engine.session.control.control import Control

_MOST: Final = 10_000
"""Numbers of a range."""
_NEWS: Final = 1 << 14
"""Lines on threads that are kept until somebody asks; front ends with lists never do."""


class NamedThreads:
    """The threads of one run.

    A number is a thread's from the moment at which it is first asked for, in the order in which
    threads began.
    """

    def __init__(self, control: Control) -> None:
        """None has a number yet.

        Args:
            control: the guest under control.
        """
        self._control = control
        self._numbers: dict[int, int] = {}
        self._names: dict[int, str] = {}
        self._news: deque[tuple[int, str]] = deque(maxlen=_NEWS)
        moments = control.session.machine.moments
        moments.started.append(self._began)
        moments.leaving.append(self._leaves)

    def _began(self, maker: Thread, thread: Thread) -> None:
        """A thread can run: it has a number from now on."""
        machine = self._control.session.machine
        self._numbers.setdefault(machine.first.pid, len(self._numbers) + 1)
        self._numbers.setdefault(thread.tid, len(self._numbers) + 1)
        if maker.pid == thread.pid == machine.first.pid:
            self._news.append((0, f"[New Thread {thread.pid}.{thread.tid}]"))

    def _leaves(self, thread: Thread, with_process: bool) -> None:
        """A thread ends."""
        if thread.tid != thread.pid == self._control.session.machine.first.pid:
            self._news.append((thread.tid, f"[Thread {thread.pid}.{thread.tid} exited]"))

    def news(self) -> list[tuple[int, str]]:
        """Lines on the threads of the first process that have come and gone since.

        Those of threads that are gone have their ids.
        """
        found = list(self._news)
        self._news.clear()
        return found

    def numbers(self) -> dict[int, int]:
        """The ids of the threads that there are, by their numbers."""
        alive = self._control.session.machine.threads
        for tid in alive:
            self._numbers.setdefault(tid, len(self._numbers) + 1)
        return {number: tid for tid, number in self._numbers.items() if tid in alive}

    def named(self, word: str) -> tuple[int, int]:
        """The number and the id of the thread that a number names.

        Raises:
            CommandError: there is none.
        """
        match = re.fullmatch(r"(?:1\.)?(\d+)", word)
        if match is None or not int(match[1]):
            raise CommandError(f"Invalid thread ID: {word}")
        tid = self.numbers().get(int(match[1]))
        if tid is None:
            raise CommandError(f"Unknown thread {word}.")
        return int(match[1]), tid

    def text(self, tid: int = 0, *, with_name: bool = False) -> str:
        """A thread in words, the one that is looked at without an id."""
        tid = tid or self._control.thread
        pid = self._control.session.machine.pids.get(tid, tid)
        text = f"process {pid}" if pid == tid else f"Thread {pid}.{tid}"
        return f'{text} "{self.name(tid)}"' if with_name else text

    def name(self, tid: int) -> str:
        """The name that the user has given a thread, or its own."""
        return self._names.get(tid) or self.own_name(tid)

    def own_name(self, tid: int) -> str:
        """The name that the program has given a thread."""
        return self._control.session.machine.comms.get(tid, b"").decode(errors="replace")

    def given_name(self, tid: int) -> str:
        """The name that the user has given a thread; "" for none."""
        return self._names.get(tid, "")

    def rename(self, name: str) -> None:
        """Call the thread that is looked at something else; "" for its own name."""
        self._names.pop(self._control.thread, None)
        if name:
            self._names[self._control.thread] = name

    @property
    def culprit(self) -> str:
        """The thread that is looked at as a stop names it: `Thread 2 "p"`; "" if it is alone."""
        here, machine = self._control.thread, self._control.session.machine
        numbers, pid = self.numbers(), machine.pids.get(here)
        of_process = [tid for tid in self._numbers if machine.pids.get(tid) == pid]
        if len(of_process) < 2 and pid == machine.first.pid:
            return ""
        number = next((n for n, tid in numbers.items() if tid == here), 0)
        return f'Thread {number} "{self.name(here)}"'


def listed_numbers(text: str) -> list[int]:
    """The numbers of "1 3-5"; those of gdb's "1.3" are of its only inferior.

    Raises:
        CommandError: something there is no number.
    """
    found: list[int] = []
    for word in text.split():
        first, _, last = word.removeprefix("1.").partition("-")
        if not first.isdigit() or not int(first) or (last and not last.isdigit()):
            raise CommandError(f"Invalid thread ID: {text}")
        if int(last or first) < int(first):
            raise CommandError("inverted range")
        if int(last or first) - int(first) > _MOST:
            raise CommandError(f"{word}: too many numbers")
        found += range(int(first), int(last or first) + 1)
    return found
