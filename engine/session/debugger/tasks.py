"""Words for threads and processes: info threads, thread, thread apply."""

import re
from collections.abc import Callable

from engine.errors import CommandError, KprobeTuiError
from engine.session.debugger.debugger import Debugger, message
from engine.session.debugger.looking import Looking
from engine.session.protocol import commands as cmd


class ThreadWords:
    """Looks at the threads of all processes, by numbers in the order in which they began.

    Attributes:
        line: carries out a word, for `thread apply`.
    """

    def __init__(self, debugger: Debugger, looking: Looking) -> None:
        """Look at those of a debugger's guest."""
        self._debugger = debugger
        self._looking = looking
        self.line: Callable[[str], object] = lambda text: None

    def info_threads(self, rest: str) -> None:
        """All threads, and where they are: info threads [NUMBER...]."""
        debugger = self._debugger
        if not debugger.started:
            debugger.put("No threads.")
            return
        chosen = debugger.thread
        wanted = rest.split()
        rows: list[tuple[str, str, str, str]] = []
        for number, tid in self._numbers().items():
            if wanted and str(number) not in wanted:
                continue
            with _ThreadVisit(debugger, tid):
                frame = (
                    debugger.frames.heading(0, with_number=False) if debugger.frames.all else ""
                )
            mark = "*" if tid == chosen else " "
            rows.append((mark, str(number), debugger.thread_text(tid, with_name=True), frame))
        wide = max((len(row[2]) for row in rows), default=0)
        debugger.put(f"  Id   {'Target Id':<{wide}} Frame ")
        for mark, shown, text, frame in rows:
            debugger.put(f"{mark} {shown:<4} {text:<{wide}} {frame}")

    def thread(self, rest: str) -> None:
        """Look at another thread: thread NUMBER; thread apply NUMBER...|all WORD."""
        debugger = self._debugger
        if not debugger.started:
            raise CommandError("No thread selected")
        numbers = self._numbers()
        if not rest:
            number = next((n for n, tid in numbers.items() if tid == debugger.thread), 0)
            debugger.put(f"[Current thread is {number} ({debugger.thread_text()})]")
            return
        if rest.startswith("apply"):
            self._apply(rest.removeprefix("apply").strip())
            return
        tid = numbers.get(debugger.value(rest).number)
        if tid is None:
            raise CommandError(f"Unknown thread {rest}.")
        self._choose(tid)
        debugger.put(f"[Switching to thread {rest} ({debugger.thread_text()})]")
        self._looking.show_frame()

    def _apply(self, rest: str) -> None:
        """Carry out a word for several threads, the newest first as gdb does for all."""
        debugger = self._debugger
        match = re.match(r"(all\s+-ascending|all|[\d\s-]+)\s*(.*)$", rest)
        if match is None or not match[2]:
            raise CommandError("Please specify a command to apply on the selected threads")
        numbers = self._numbers()
        every = list(numbers)
        if match[1] == "all":
            chosen = every[::-1]
        elif match[1].startswith("all"):
            chosen = every
        else:
            chosen = _listed(match[1])
        for number in chosen:
            tid = numbers.get(number)
            if tid is None:
                raise CommandError(f"Unknown thread {number}")
            with _ThreadVisit(debugger, tid):
                debugger.put("")
                debugger.put(f"Thread {number} ({debugger.thread_text(with_name=True)}):")
                try:
                    self.line(match[2])
                except KprobeTuiError as error:
                    debugger.put(message(error))

    def _numbers(self) -> dict[int, int]:
        """Numbers of the threads there are, to their ids."""
        return self._debugger.thread_numbers()

    def _choose(self, tid: int) -> None:
        debugger = self._debugger
        debugger.execute(cmd.ChooseThread(tid))
        debugger.frames.moved()


class _ThreadVisit:
    """Another thread is looked at for a while."""

    def __init__(self, debugger: Debugger, tid: int) -> None:
        self._debugger, self._tid = debugger, tid
        self._before, self._selected = debugger.thread, debugger.frames.selected

    def __enter__(self) -> None:
        self._debugger.execute(cmd.ChooseThread(self._tid))
        self._debugger.frames.moved()

    def __exit__(self, *error: object) -> None:
        self._debugger.execute(cmd.ChooseThread(self._before))
        self._debugger.frames.moved()
        self._debugger.frames.selected = self._selected


def _listed(text: str) -> list[int]:
    """The numbers of "1 3-5"."""
    found: list[int] = []
    for word in text.split():
        first, _, last = word.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found
