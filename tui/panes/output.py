"""What the guest writes, and the line that is typed for it."""

from collections.abc import Hashable
from typing import ClassVar

from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.strip import Strip
from textual.widgets import Input

from engine.session.protocol import commands
from tui.messages import Ask
from tui.render import grouped, harmless, mark
from tui.terminal import Screenless
from tui.widgets.list_pane import ListPane
from tui.widgets.virtual_lines import VirtualLines


class OutputLog(VirtualLines):
    """The lines a guest has written.

    Attributes:
        roll: where they are.
    """

    FOLLOWS = True

    EMPTY = "nothing was written yet"
    HELP = """\
# Guest output

What the program writes to its terminal. Only text and colours get through: no escape sequence
of the guest reaches your terminal.

| key | does |
|---|---|
| `Enter` | type a line for the guest; `Esc` leaves it |
| `Ctrl+D` | in the empty line: end of file |
| `/` `n` `N` | find text, next, previous |
| `G` | go to the end and follow it |
| `Y` | copy the line, or what `J` `K` select |
"""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.roll = Screenless()

    @property
    def line_count(self) -> int:
        """Lines, the last one only when something stands in it."""
        lines = self.roll.lines
        return len(lines) - (not lines[-1].length)

    @property
    def origin(self) -> int:
        """Lines that are gone."""
        return self.roll.dropped

    def action_choose(self) -> None:
        """A line can be typed before anything was written."""
        self.post_message(self.Chosen(self, self.cursor))

    def line_key(self, index: int) -> Hashable:
        """A line that is being written changes."""
        return self.origin + index, self.roll.lines[index].changes

    def line(self, index: int, width: int) -> Strip:
        """The text with its colours."""
        line = self.roll.lines[index]
        ascii_only = self.ascii_only
        if line.note:
            text = harmless(line.text, ascii_only)
            rule = mark("rule", ascii_only) * 2
            text = f"{rule} {text} {rule}" if len(text) + 6 <= width else text
            return Strip([Segment(text, self.look("note"))])
        pieces = [Segment(harmless(text, ascii_only), style) for text, style in line.runs]
        if line.cut:
            more = f" {mark('more', ascii_only)} {grouped(line.cut)} more characters"
            pieces.append(Segment(more, self.look("warn")))
        return Strip(pieces)

    def plain(self, index: int) -> str:
        """The text alone."""
        return self.roll.lines[index].text


class GuestLine(Input):
    """The line typed for the guest."""

    HELP = OutputLog.HELP

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back", id="input.leave"),
        Binding("ctrl+d", "end_or_delete", "End of file", id="input.end"),
    ]

    def action_leave(self) -> None:
        """Back to the output."""
        pane = self.query_ancestor(OutputPane)
        pane.focus_inside()

    def action_end_or_delete(self) -> None:
        """As a terminal has it: end of file in an empty line."""
        if self.value:
            self.action_delete_right()
        else:
            self.post_message(Ask(commands.Input(b"\x04")))


class OutputPane(ListPane[OutputLog]):
    """The pane of the guest's terminal.

    The owner gives bytes to `feed` and calls `drained` after each batch, at the most 30 times a
    second. What is typed comes as `Ask` with `Input`, a new size as `Ask` with `Resize`.
    """

    TITLE = "Output"
    NUMBER = 7

    DEFAULT_CSS = """
    OutputPane {
        & > GuestLine { height: 1; border: none; padding: 0; background: $boost; }
        & > GuestLine:focus { border: none; }
    }
    """

    def __init__(self, *, number: int | None = None, id: str | None = None) -> None:
        super().__init__(OutputLog(), number=number, id=id)
        self.guest_line = GuestLine(placeholder="input for the guest", compact=True)
        self._size_told = (0, 0)

    def compose(self) -> ComposeResult:
        """Output, prompt, and the guest's line."""
        yield from super().compose()
        yield self.guest_line

    def feed(self, data: bytes) -> None:
        """The guest has written something."""
        self.lines.roll.feed(data)

    def say(self, text: str) -> None:
        """Put a remark among the output, such as "exited with 0"."""
        self.lines.roll.note(text)
        self.drained()

    def drained(self) -> None:
        """Show what came."""
        self.lines.refresh_size()
        gone = self.lines.roll.dropped
        self.retitle(f"{grouped(gone)} older lines dropped" if gone else "")

    def restarted(self) -> None:
        """A new run: forget what was written."""
        self.lines.roll = Screenless()
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
        self.guest_line.focus()
