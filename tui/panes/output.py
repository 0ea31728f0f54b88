"""The output pane: the guest's terminal, and the line that is typed for it."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widgets import Input

from engine.session.protocol import commands
from engine.session.protocol.views import GuestView, RunState
from tui.messages import Ask, Moment
from tui.render import grouped, harmless, mark
from tui.terminal import LineTerminal
from tui.widgets.line_source import LineSource
from tui.widgets.list_pane import ListPane
from tui.widgets.looks import Looks
from tui.widgets.virtual_lines import VirtualLines


class OutputRows(LineSource):
    """The lines a guest has written.

    Attributes:
        roll: where they are.
    """

    follows = True
    empty = "nothing was written yet"

    def __init__(self) -> None:
        self.roll = LineTerminal()

    @property
    def count(self) -> int:
        """Lines, the last one only when something stands in it."""
        lines = self.roll.lines
        return len(lines) - (not lines[-1].length)

    @property
    def origin(self) -> int:
        """Lines that are gone."""
        return self.roll.dropped

    def key(self, index: int) -> Hashable:
        """A line that is being written changes."""
        return self.origin + index, self.roll.lines[index].changes

    def line(self, index: int, width: int, looks: Looks) -> Strip:
        """The text with its colours."""
        line = self.roll.lines[index]
        ascii_only = looks.ascii_only
        if line.note:
            text = harmless(line.text, ascii_only)
            rule = mark("rule", ascii_only) * 2
            text = f"{rule} {text} {rule}" if len(text) + 6 <= width else text
            return Strip([Segment(text, looks("note"))])
        pieces = [Segment(harmless(text, ascii_only), style) for text, style in line.runs]
        if line.cut:
            more = f" {mark('more', ascii_only)} {grouped(line.cut)} more characters"
            pieces.append(Segment(more, looks("warn")))
        return Strip(pieces)

    def plain(self, index: int, looks: Looks) -> str:
        """The text alone."""
        return self.roll.lines[index].text


class GuestLine(Input):
    """The line typed for the guest."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "sends the line", key_display="Enter", id="input.send"),
        Binding("ctrl+d", "end_or_delete", "end of file", id="input.end"),
        Binding("escape", "leave", "keys are commands", key_display="Esc", id="input.leave"),
    ]

    @dataclass
    class Used(Message):
        """The user is at the line: has come ("entered"), has typed, or wants to leave it."""

        how: Literal["entered", "typed", "left"]

    def on_focus(self) -> None:
        """The keys are the line's."""
        self.post_message(self.Used("entered"))

    def on_key(self) -> None:
        """Somebody types."""
        self.post_message(self.Used("typed"))

    def action_leave(self) -> None:
        """Back to where the keys are commands."""
        self.post_message(self.Used("left"))

    def action_end_or_delete(self) -> None:
        """As a terminal has it: end of file in an empty line."""
        if self.value:
            self.action_delete_right()
        else:
            self.post_message(Ask(commands.Input(b"\x04")))


class OutputPane(ListPane[OutputRows]):
    """The pane of the guest's terminal.

    The owner gives bytes to `feed` and calls `drained` after each batch, at the most 30 times a
    second. What is typed comes as `Ask` with `Input`, a new size as `Ask` with `Resize`.
    """

    TITLE = "Output"
    HELP = """\
# Guest output

What the program writes to its terminal. Only text and colours get through: no escape sequence
of the guest reaches your terminal.

| key | does |
|---|---|
| `Enter` | type for the guest; keys go to it by themselves when it reads |
| `Esc` | in the line: keys are commands again |
| `Ctrl+D` | in the empty line: end of file |
| `@` | go to the moment at which the line was written, if the run is recorded |
| `/` `n` `N` | find text, next, previous |
| `G` | go to the end and follow it |
| `Y` | copy the line, or what `J` `K` select |
"""

    DEFAULT_CSS = """
    OutputPane {
        & > GuestLine { height: 1; border: none; padding: 0; background: $boost; }
        & > GuestLine:focus { border: none; }
    }
    """

    def __init__(self) -> None:
        super().__init__(VirtualLines(OutputRows()))
        self.guest_line = GuestLine(placeholder="input for the guest", compact=True)
        self._size_told = (0, 0)
        self._state = RunState.READY
        self._reported = ""

    def compose(self) -> ComposeResult:
        """Output, prompt, and the guest's line."""
        yield from super().compose()
        yield self.guest_line

    def show(self, view: GuestView) -> None:
        """Show a new view: an end gets its remark among the output."""
        before, self._state = self._state, view.state
        ends = view.state is RunState.ENDED and before is not RunState.ENDED
        if ends and self._reported != f"guest {view.reason}":
            self.say(view.reason)

    def feed(self, data: bytes, moment: Moment | None = None) -> None:
        """The guest has written something, at a moment of its run if that is known."""
        self.source.roll.feed(data, moment)

    def feed_lines(self, data: bytes, moments: Sequence[Moment]) -> None:
        """The guest has written whole lines, each at its own moment."""
        self.source.roll.feed_lines(data, moments)

    @property
    def moment(self) -> Moment | None:
        """The moment at which the line at the cursor was begun."""
        lines, at = self.source.roll.lines, self.lines.cursor
        return lines[at].moment if at < self.source.count else None

    def say(self, text: str) -> None:
        """Put a remark among the output, such as "exited with 0"."""
        self.source.roll.note(text)
        self.drained()

    def report(self, lines: Sequence[str]) -> None:
        """Put a report among the output; what it has said of an end is not said again."""
        self._reported = lines[0] if lines else ""
        for line in lines:
            self.say(line)

    def drained(self) -> None:
        """Show what came."""
        self.lines.refresh_size()
        gone = self.source.roll.dropped
        self.retitle(f"{grouped(gone)} older lines dropped" if gone else "")

    def restarted(self) -> None:
        """A new run: forget what was written."""
        self.source.roll = LineTerminal()
        self._reported = ""
        self.lines.restart()
        self.drained()

    def on_resize(self) -> None:
        """The guest's terminal has the size of the pane."""
        size = self.lines.size
        told = (max(size.width - 2, 1), max(size.height, 1))
        if told != self._size_told:
            self._size_told = told
            self.post_message(Ask(commands.Resize(*told)))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """A line for the guest."""
        event.stop()
        self.guest_line.value = ""
        self.post_message(Ask(commands.Input(event.value.encode() + b"\n")))

    def on_virtual_lines_chosen(self, event: VirtualLines.Chosen) -> None:
        """Type a line."""
        event.stop()
        self.screen.set_focus(self.guest_line, scroll_visible=False)
