"""The backtrace pane: frames, where each comes from, and why the walk ends."""

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from engine.session.protocol.commands import Unwind
from engine.session.protocol.views import FrameView, GuestView, RunState, VariableView
from tui.messages import Ask, Located
from tui.render import harmless
from tui.widgets.line_source import LineSource
from tui.widgets.list_pane import ListPane
from tui.widgets.looks import Looks
from tui.widgets.virtual_lines import VirtualLines


class FrameRows(LineSource):
    """One line a frame, innermost first, with its variables below, and why the walk ends.

    Attributes:
        with_variables: whether variables are shown.
    """

    empty = "no frames"

    def __init__(self) -> None:
        self._frames: tuple[FrameView, ...] = ()
        self._end = ""
        self._rows: list[tuple[FrameView, VariableView | None]] = []
        self.with_variables = False

    def fill(self, view: GuestView) -> bool:
        """Take the frames of a view; True if they are others than before."""
        if view.frames is self._frames and view.frames_end == self._end:
            return False
        self._frames, self._end = view.frames, view.frames_end
        self.lay_out()
        return True

    def lay_out(self) -> None:
        """Make the lines: frames, and what is shown below each."""
        self._rows = []
        for frame in self._frames:
            self._rows.append((frame, None))
            if self.with_variables:
                self._rows += [(frame, variable) for variable in frame.variables]

    @property
    def count(self) -> int:
        """Frames with their variables, and why they end."""
        return len(self._rows) + bool(self._end)

    def line(self, index: int, width: int, looks: Looks) -> Text:
        """A frame."""
        text = Text(no_wrap=True)
        if index >= len(self._rows):
            return text.append(f"   {harmless(self._end, looks.ascii_only)}", looks("note"))
        frame, variable = self._rows[index]
        if variable is not None:
            return _variable(variable, looks)
        text.append(f"{frame.number:>2} ", looks("dim"))
        sign = "!" if frame.differs else "T" if frame.trampoline else " "
        text.append(f"{sign} ", looks("bad" if frame.differs else "warn"))
        text.append(harmless(frame.function or "?", looks.ascii_only), looks("name"))
        text.append(f"+{frame.offset:#x}" if frame.offset else "", looks("dim"))
        if not self.with_variables:
            text.append(_arguments(frame, looks))
        if frame.inlined:
            text.append(" (inlined)", looks("note"))
        if frame.file:
            text.append(f"  {harmless(frame.file.rsplit('/', 1)[-1])}:{frame.line}")
        elif frame.module:
            text.append(f"  {harmless(frame.module.rsplit('/', 1)[-1])}", looks("dim"))
        text.append(f"  {frame.pc:x}  {frame.source}", looks("dim"))
        return text

    def frame_at(self, index: int) -> FrameView | None:
        """The frame that a line belongs to."""
        return self._rows[index][0] if index < len(self._rows) else None

    def walked(self, index: int, frames: int) -> FrameView | None:
        """The frame so many up (positive) or down from the one of a line, or the last one."""
        if not self._frames:
            return None
        here = self._rows[min(index, len(self._rows) - 1)][0]
        number = next(number for number, frame in enumerate(self._frames) if frame is here)
        return self._frames[max(0, min(number + frames, len(self._frames) - 1))]

    def line_of(self, frame: FrameView) -> int:
        """The line of a frame."""
        return next(n for n, row in enumerate(self._rows) if row[0] is frame)


class BacktracePane(ListPane[FrameRows]):
    """The pane of the backtrace; `walk` goes along the frames."""

    TITLE = "Backtrace"
    HELP = """
### Backtrace

| key | does |
|---|---|
| `u` `d` | to the caller, to the called frame |
| `Enter` | show the frame's code |
| `v` | local variables below each frame, or not |
| `w` | what other unwinders would print here, one after the other |
| `Y` | copy |

`T` marks a frame that returns into a trampoline: the place shown is the real one. Behind each
frame stands what knew it: unwind tables (cfi), frame pointers, the function's prologue, the
system call being made.

`w` goes on from the whole backtrace (full) to return addresses as they stand (naive), every word
of the stack that is code (kernel-2005), tables and kretprobe_find_ret_addr (kernel), and the
trampoline as a frame of its own (owens). `!` marks a frame that the whole backtrace does not have.
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "unwinder", "unwinder", id="backtrace.unwinder"),
        Binding("v", "variables", "variables", id="backtrace.variables"),
    ]

    def __init__(self) -> None:
        super().__init__(VirtualLines(FrameRows()))

    def show(self, view: GuestView) -> None:
        """Another view; a guest that moves keeps the frames it had."""
        if view.state in (RunState.RUNNING, RunState.WAITING):
            return
        if self.source.fill(view):
            self.lines.renew()
            self.lines.move_to(0)
        self.retitle("" if view.unwinder == "full" else view.unwinder)

    def walk(self, frames: int) -> None:
        """Go up (positive) or down, and show the code there."""
        frame = self.source.walked(self.lines.cursor, frames)
        if frame is not None:
            self.lines.move_to(self.source.line_of(frame))
            self._locate(frame)

    def action_variables(self) -> None:
        """Show local variables, or not."""
        frame = self.source.walked(self.lines.cursor, 0)
        self.source.with_variables = not self.source.with_variables
        if frame is not None:
            self.source.lay_out()
            self.lines.renew()
            self.lines.move_to(self.source.line_of(frame))

    def action_unwinder(self) -> None:
        """Compare with the next unwinder."""
        self.post_message(Ask(Unwind()))

    def on_virtual_lines_chosen(self, event: VirtualLines.Chosen) -> None:
        """Show the frame's code."""
        event.stop()
        if (frame := self.source.frame_at(event.index)) is not None:
            self._locate(frame)

    def _locate(self, frame: FrameView) -> None:
        self.post_message(Located(frame.pc, focus=True))


def _arguments(frame: FrameView, looks: Looks) -> str:
    """The arguments of a call, as far as they are known."""
    given = [
        f"{variable.name}={variable.value}"
        for variable in frame.variables
        if variable.is_parameter and not variable.value.startswith("<")
    ]
    return harmless(f"({', '.join(given)})", looks.ascii_only) if given else ""


def _variable(variable: VariableView, looks: Looks) -> Text:
    text = Text("      ", no_wrap=True)
    text.append(harmless(variable.name, looks.ascii_only), looks("accent"))
    text.append(f" = {harmless(variable.value, looks.ascii_only)}")
    text.append(f"  {harmless(variable.type, looks.ascii_only)}", looks("dim"))
    return text
