"""The backtrace pane: frames, where each comes from, and why the walk ends."""

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from engine.session.protocol.commands import Unwind
from engine.session.protocol.views import FrameView, GuestView, VariableView
from tui.messages import Ask, Located
from tui.render import harmless
from tui.widgets.list_pane import ListPane
from tui.widgets.virtual_lines import VirtualLines


class BacktraceLines(VirtualLines):
    """One line a frame, innermost first, and its variables below; `u` and `d` walk the frames."""

    EMPTY = "no frames"
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

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._frames: tuple[FrameView, ...] = ()
        self._end = ""
        self._rows: list[tuple[FrameView, VariableView | None]] = []
        self._with_locals = False

    def show(self, view: GuestView) -> None:
        """Another view."""
        if view.frames is not self._frames or view.frames_end != self._end:
            self._frames, self._end = view.frames, view.frames_end
            self._arrange()
            self.move_to(0)

    def _arrange(self) -> None:
        """The lines: frames, and what is shown below each."""
        self._rows = []
        for frame in self._frames:
            self._rows.append((frame, None))
            if self._with_locals:
                self._rows += [(frame, variable) for variable in frame.variables]
        self.changed()
        self.refresh_size()
        self.refresh()

    @property
    def line_count(self) -> int:
        """Frames with their variables, and why they end."""
        return len(self._rows) + bool(self._end)

    def line(self, index: int, width: int) -> Text:
        """A frame."""
        text = Text(no_wrap=True)
        if index >= len(self._rows):
            return text.append(f"   {harmless(self._end, self.ascii_only)}", self.look("note"))
        frame, variable = self._rows[index]
        if variable is not None:
            return self._variable(variable)
        text.append(f"{frame.number:>2} ", self.look("dim"))
        sign = "!" if frame.differs else "T" if frame.trampoline else " "
        text.append(f"{sign} ", self.look("bad" if frame.differs else "warn"))
        text.append(harmless(frame.function or "?", self.ascii_only), self.look("name"))
        text.append(f"+{frame.offset:#x}" if frame.offset else "", self.look("dim"))
        if not self._with_locals:
            text.append(self._arguments(frame))
        if frame.inlined:
            text.append(" (inlined)", self.look("note"))
        if frame.file:
            text.append(f"  {harmless(frame.file.rsplit('/', 1)[-1])}:{frame.line}")
        elif frame.module:
            text.append(f"  {harmless(frame.module.rsplit('/', 1)[-1])}", self.look("dim"))
        text.append(f"  {frame.pc:x}  {frame.source}", self.look("dim"))
        return text

    def _arguments(self, frame: FrameView) -> str:
        """What the function was called with, as far as that is known."""
        given = [
            f"{variable.name}={variable.value}"
            for variable in frame.variables
            if variable.is_parameter and not variable.value.startswith("<")
        ]
        return harmless(f"({', '.join(given)})", self.ascii_only) if given else ""

    def _variable(self, variable: VariableView) -> Text:
        text = Text("      ", no_wrap=True)
        text.append(harmless(variable.name, self.ascii_only), self.look("accent"))
        text.append(f" = {harmless(variable.value, self.ascii_only)}")
        text.append(f"  {harmless(variable.type, self.ascii_only)}", self.look("dim"))
        return text

    @property
    def _here(self) -> int:
        """Number of the frame at the cursor."""
        here = self._rows[min(self.cursor, len(self._rows) - 1)][0]
        return next(number for number, frame in enumerate(self._frames) if frame is here)

    def walk(self, frames: int) -> None:
        """Go up (positive) or down, and show the code there."""
        if self._frames:
            self._go_to(self._frames[max(0, min(self._here + frames, len(self._frames) - 1))])
            self.action_choose()

    def _go_to(self, frame: FrameView) -> None:
        self.move_to(next(n for n, row in enumerate(self._rows) if row[0] is frame))

    def action_variables(self) -> None:
        """Show local variables, or not."""
        self._with_locals = not self._with_locals
        if self._frames:
            frame = self._frames[self._here]
            self._arrange()
            self._go_to(frame)

    def action_unwinder(self) -> None:
        """Compare with the next unwinder."""
        self.post_message(Ask(Unwind()))

    def action_choose(self) -> None:
        """Show the frame's code."""
        if self.cursor < len(self._rows):
            self.post_message(Located(self._rows[self.cursor][0].pc, focus=True))


class BacktracePane(ListPane[BacktraceLines]):
    """The pane of the backtrace."""

    TITLE = "Backtrace"
    NUMBER = 3

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(BacktraceLines(), id=id)

    def show(self, view: GuestView) -> None:
        """Another view."""
        self.lines.show(view)
        self.retitle("" if view.unwinder == "full" else view.unwinder)
