"""The threads pane: all threads and processes as a tree, what each waits for, and where it is.

In its other mode it has the goroutines of a Go program in their place.
"""

from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message

from engine.session.protocol.commands import (
    ChooseGoroutine,
    ChooseThread,
    ListGoroutines,
    StepAlone,
)
from engine.session.protocol.views import GuestView, ThreadView
from tui.messages import Ask, Say
from tui.panes.goroutine_rows import GoroutineRows
from tui.render import grouped, harmless, mark, thread_look
from tui.widgets.line_source import LineSource
from tui.widgets.list_pane import ListPane
from tui.widgets.looks import Looks
from tui.widgets.virtual_lines import VirtualLines

_INDENT_MAX = 8
_COMM = 16
_WIDE = 60
"""Cells from which on ticks are shown."""
_STATES = {"R": "good", "T": "warn", "Z": "dim"}
_WORDS = {"R": "can run", "S": "waits", "D": "waits", "T": "stopped", "Z": "ended"}


class ThreadRows(LineSource):
    """One line a thread, processes by their parents; or a goroutine.

    Attributes:
        threads: of the last view.
        goroutines: the lines of these; None for those of threads.
    """

    empty = "nothing runs"

    def __init__(self) -> None:
        self.threads: tuple[ThreadView, ...] = ()
        self.goroutines: GoroutineRows | None = None
        self._names: dict[int, str] = {}
        self._id = self._ticks = self._comm = 1
        self._alike = False

    def fill(self, view: GuestView) -> bool:
        """Take the threads of a view, or goroutines; True if they are others than before."""
        had = self.goroutines is not None
        if view.goroutines is None:
            self.goroutines = None
        else:
            self.goroutines = self.goroutines or GoroutineRows()
            if self.goroutines.fill(view.goroutines) or not had:
                self.threads = view.listed
                return True
        if view.listed is self.threads:
            return had and self.goroutines is None
        self.threads = view.listed
        self._names = {thread.tid: thread.comm for thread in self.threads}
        whose = {(thread.comm, thread.pid) for thread in self.threads}
        self._alike = len(self.threads) > 1 and len(whose) == 1
        self._id = max((len(str(thread.tid)) for thread in self.threads), default=1)
        self._ticks = max((len(grouped(thread.ticks)) for thread in self.threads), default=1)
        self._comm = max(
            (_indent(one) + min(len(harmless(one.comm)), _COMM) for one in self.threads), default=1
        )
        return True

    @property
    def count(self) -> int:
        """Threads, or lines of goroutines."""
        return len(self.threads) if self.goroutines is None else self.goroutines.count

    def line(self, index: int, width: int, looks: Looks) -> Text:
        """Marks, id, state, ticks, name, place, what it waits for."""
        if self.goroutines is not None:
            return self.goroutines.line(index, width, looks)
        thread, plain = self.threads[index], looks.ascii_only
        text = Text(no_wrap=True)
        text.append(mark("shown", plain) if thread.shown else " ", looks("accent"))
        text.append("*" if thread.runs else " ", looks("good"))
        look: str | Style = looks(found) if (found := thread_look(thread.tid)) else ""
        text.append(f"{thread.tid:>{self._id}} ", look)
        text.append(f"{thread.state} ", looks(_STATES.get(thread.state, "note")))
        if width >= _WIDE:
            text.append(f"{grouped(thread.ticks):>{self._ticks}} ", looks("dim"))
        indent = _indent(thread)
        name = harmless(thread.comm, plain)
        if width >= _WIDE or not self._alike:  # where room is short, no name that tells nothing
            text.append(" " * indent + f"{name:<{self._comm - indent}} ", look or looks("name"))
        if thread.call:
            text.append(f"{harmless(thread.call, plain)}() ", looks("note"))
        if thread.waits:
            text.append(harmless(thread.waits, plain))
        if thread.holder:
            holder = harmless(self._names.get(thread.holder, ""), plain)
            text.append(f", held by {thread.holder} {holder}".rstrip(), looks("warn"))
        if thread.location:
            text.append(" at " if thread.call else "", looks("dim"))
            text.append(harmless(thread.location, plain), looks("dim" if thread.call else "name"))
        return text

    def line_of(self, tid: int) -> int | None:
        """The line of a thread; that of the goroutine that panes show."""
        if self.goroutines is not None:
            return self.goroutines.line_of_shown()
        return next((n for n, thread in enumerate(self.threads) if thread.tid == tid), None)


def _indent(thread: ThreadView) -> int:
    return 2 * min(thread.depth, _INDENT_MAX)


class ThreadsPane(ListPane[ThreadRows]):
    """The pane of threads and processes."""

    TITLE = "Threads"
    HELP = """\
### Threads and processes

| key | does |
|---|---|
| `Enter` | look at the thread: registers, code, stack and backtrace are its own then |
| `L` | steps: the thread alone (the others run only while it waits), or all in their turns |
| `&` | only the thread's events in the event log; again: all |
| `v` | the goroutines of a Go program, or the threads again |
| `Y` | copy |

The thread that panes show is marked in front, `*` has the processor. States are those of /proc:
`R` can run, `S` waits, `D` waits for a vfork, `T` is stopped, `Z` has ended. Then the ticks it has
run, its name (threads below their process, processes below their parents), the system call that it
waits in with what for, a futex by its symbol, and who holds it where the lock says so (those with
priority inheritance, robust ones, musl's and glibc's mutexes), and its place.

A thread is looked at until the program moves; steps (`i` `o` `s` `n` `f`) are the thread's that is
looked at, `c` lets all run. `:thread N` and `:info threads` do the same.

Of goroutines there stand the number, what it waits for in the words of Go's own tracebacks, the
innermost function that is not the runtime's, the thread that runs it (`*`), and who started it.
`Enter` shows its backtrace and variables, of one that no thread runs too, whose registers are the
three that the runtime keeps. `:info goroutines` and `:goroutine N` do the same.
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("L", "alone", "alone", id="threads.alone"),
        Binding("v", "goroutines", "goroutines", id="threads.goroutines"),
        Binding("ampersand", "filter", "events", key_display="&", id="threads.events"),
    ]

    class EventsOf(Message):
        """Only a thread's events are to be shown; 0 for all again."""

        def __init__(self, tid: int) -> None:
            super().__init__()
            self.tid = tid

    def __init__(self) -> None:
        super().__init__(VirtualLines(ThreadRows()))
        self._alone = self._is_go = False
        self._shown = self._filtered = 0

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only a Go program has goroutines."""
        return (action != "goroutines" or self._is_go) and super().check_action(action, parameters)

    def show(self, view: GuestView) -> None:
        """Show a new view."""
        self._alone = view.alone
        if view.is_go != self._is_go:
            self._is_go = view.is_go
            self.refresh_bindings()
        here = self._thread
        if self.source.fill(view):
            self.lines.renew()
            shown = view.thread if view.thread != self._shown else here.tid if here else 0
            self._shown = view.thread
            line = self.source.line_of(shown)
            if line is not None:
                self.lines.move_to(line)
        if view.goroutines is not None:
            listed = view.goroutines.listed
            waiting = sum(one.state == "waiting" for one in listed)
            self.retitle(
                "goroutines", f"{waiting} wait" if waiting else "", count=str(len(listed))
            )
            return
        waiting = sum(thread.state in "SD" for thread in view.listed)
        self.retitle(
            f"{waiting} wait" if waiting else "",
            "steps one" if view.alone else "",
            count=str(len(view.listed)) if len(view.listed) > 1 else "",
        )

    def restarted(self) -> None:
        """A new run: all events are shown."""
        self._filtered = 0

    @property
    def _thread(self) -> ThreadView | None:
        """The thread at the cursor; None among goroutines."""
        threads, cursor = self.source.threads, self.lines.cursor
        if self.source.goroutines is not None:
            return None
        return threads[cursor] if cursor < len(threads) else None

    def on_virtual_lines_chosen(self, event: VirtualLines.Chosen) -> None:
        """Look at the thread, or the goroutine."""
        event.stop()
        goroutines = self.source.goroutines
        one = None if goroutines is None else goroutines.at(self.lines.cursor)
        if one is not None:
            self.post_message(Ask(ChooseGoroutine(one.id)))
            return
        thread = self._thread
        if thread is None:
            return
        if thread.state == "Z":
            self.post_message(Say(f"{thread.tid} has ended: {thread.waits}", severity="warning"))
        else:
            self.post_message(Ask(ChooseThread(thread.tid)))

    def action_alone(self) -> None:
        """Step one thread, or all."""
        self.post_message(Ask(StepAlone(on=not self._alone)))

    def action_goroutines(self) -> None:
        """List goroutines, or threads."""
        self.post_message(Ask(ListGoroutines(on=self.source.goroutines is None)))

    def action_filter(self) -> None:
        """Show the thread's events alone, or all."""
        thread = self._thread
        if thread is not None:
            self._filtered = 0 if self._filtered == thread.tid else thread.tid
            self.post_message(self.EventsOf(self._filtered))
