"""The backtrace pane: frames with what is in their variables, and why the walk ends."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from engine.message_text import bare_name
from engine.session.protocol import commands as cmd
from engine.session.protocol.frames import GuestFrame, VariableView
from engine.session.protocol.views import DisplayView, GuestView, PartsView, RunState
from tui.messages import Ask, Located, Say, Words
from tui.open_values import Node, OpenValues, ValueRow, numbered
from tui.render import harmless, mark
from tui.stop_words import arguments
from tui.widgets.line_painter import GUTTER
from tui.widgets.line_source import LineSource
from tui.widgets.list_pane import ListPane
from tui.widgets.looks import Looks
from tui.widgets.virtual_lines import VirtualLines

_MODES: Final = ("frame", "all", "none")
"""Frames whose variables are shown: the one that is looked at, all of them, none."""
_WAITED_FOR: Final = VariableView("", "...", "")
_INDENT: Final = 6
"""Cells in front of a variable of a frame."""


class _Row(Struct, frozen=True):
    """A line: a frame's, or that of a value in a frame; `frame` is None for a display."""

    frame: GuestFrame | None
    value: ValueRow | None = None


def _is_lost(variable: VariableView) -> bool:
    """True for a variable that the compiler has left no value of where the frame stands."""
    return variable.value.startswith(("<is optimized out", "<had its value at"))


class FrameRows(LineSource):
    """The displays, then one line a frame, innermost first, with its variables below.

    Attributes:
        mode: one of `_MODES`.
        values: those that are open.
    """

    empty = "no frames"

    def __init__(self) -> None:
        self._frames: tuple[GuestFrame, ...] = ()
        self._end = ""
        self._displays: tuple[DisplayView, ...] = ()
        self._displayed: dict[int, VariableView] = {}
        self._rows: list[_Row] = []
        self.mode = _MODES[0]
        self._frame = 0
        self.values = OpenValues()
        self._roots: dict[Hashable, tuple[int, int]] = {}

    @property
    def looked_at(self) -> GuestFrame | None:
        """The frame that names in expressions are of."""
        return self._frames[self._frame] if self._frame < len(self._frames) else None

    @property
    def frame_number(self) -> int:
        """The number of that frame."""
        return self._frame

    def look_at(self, number: int) -> None:
        """Select another frame."""
        self._frame = number
        self.lay_out()

    def fill(self, view: GuestView) -> bool:
        """Take the frames of a view; True if they are others than before."""
        same = view.frames is self._frames and view.frames_end == self._end
        if same and view.displays == self._displays:
            return False
        if view.frames is not self._frames:
            self.values.moved()
        self._frames, self._end = view.frames, view.frames_end
        self._displays = view.displays
        self._frame = view.frame
        self.lay_out()
        return True

    def forget(self) -> None:
        """A new run."""
        self.values.forget()
        self._displayed.clear()

    def lay_out(self) -> None:
        """Make the lines: what is displayed, frames, and what is shown below each."""
        self._rows = []
        self._roots = {}
        for display in self._displays:
            root: Hashable = ("display", display.number)
            self._roots[root] = cmd.DISPLAYS, display.number
            own = self._displayed.get(display.number)
            title = f"{display.number}: {display.text}"
            if own is None:
                waits = ValueRow(Node(root), replace(_WAITED_FOR, name=title))
                self._rows.append(_Row(None, waits))
                continue
            found = self.values.rows(root, replace(own, name=title))
            self._rows += [_Row(None, value) for value in found]
        levels = self._levels()
        for frame, level in zip(self._frames, levels, strict=True):
            self._rows.append(_Row(frame))
            if not self.shows_variables(frame):
                continue
            names = numbered(variable.name for variable in frame.variables)
            for number, (variable, name) in enumerate(zip(frame.variables, names, strict=True)):
                if self.mode == "frame" and _is_lost(variable):
                    continue  # their number stands in the frame's line
                root = (frame.function, level, name)
                self._roots[root] = frame.number, number
                found = self.values.rows(root, variable, frame.cfa)
                self._rows += [_Row(frame, value) for value in found]

    def _levels(self) -> list[int]:
        """Of each frame, the number of those of the same function outside of it."""
        outside: dict[str, int] = {}
        levels: list[int] = []
        for frame in reversed(self._frames):
            levels.append(outside.get(frame.function, 0))
            outside[frame.function] = levels[-1] + 1
        return levels[::-1]

    def shows_variables(self, frame: GuestFrame) -> bool:
        """True if a frame's variables stand below it."""
        return self.mode == "all" or (self.mode == "frame" and frame.number == self._frame)

    # -- values -----------------------------------------------------------------------------

    def branches(self) -> dict[Node, cmd.Branch]:
        """The questions for the displays, and for what is in open values."""
        wanted = {
            Node(root): cmd.Branch(*place)
            for root, place in self._roots.items()
            if place[0] == cmd.DISPLAYS
        }
        return wanted | self.values.branches(self._roots)

    def answered(self, node: Node, parts: PartsView | None) -> None:
        """Something has come that was asked for."""
        place = self._roots.get(node.root)
        if place is not None and place[0] == cmd.DISPLAYS and parts is not None:
            self._displayed[place[1]] = parts.own
        self.values.answer(node, parts)

    def value_at(self, index: int) -> ValueRow | None:
        """The value of a line; None for a frame's line."""
        return self._rows[index].value if 0 <= index < len(self._rows) else None

    def marks_at(self, index: int) -> range:
        """The cells of a line that open and fold it."""
        value = self.value_at(index)
        if value is None or not value.opens:
            return range(0)
        start = self._indent(self._rows[index])
        return range(start, start + 2)

    # -- lines ------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Frames with their variables, and why they end."""
        return len(self._rows) + bool(self._end)

    def content(self, index: int) -> object:
        """A value and how it is indented; a frame and whether its variables are shown."""
        if index >= len(self._rows):
            return self._end
        row = self._rows[index]
        if row.value is not None:
            return row.value, self._indent(row)
        return row, self._frame, self.mode

    def line(self, index: int, width: int, looks: Looks) -> Text:
        """A frame, or a value."""
        text = Text(no_wrap=True)
        if index >= len(self._rows):
            return text.append(f"   {harmless(self._end, looks.ascii_only)}", looks("note"))
        row = self._rows[index]
        frame = row.frame
        if row.value is not None:
            return _value(row.value, self._indent(row), looks)
        assert frame is not None, "what is no value is a frame"
        at = frame.number == self._frame
        text.append(f"{frame.number:>2} ", looks("accent" if at else "dim"))
        sign = "!" if frame.differs else "T" if frame.trampoline else " "
        text.append(f"{sign} ", looks("bad" if frame.differs else "warn"))
        name = bare_name(frame.title) if frame.file else frame.title
        text.append(harmless(name or "?", looks.ascii_only), looks("name"))
        text.append(f"+{frame.offset:#x}" if frame.offset else "", looks("dim"))
        if not self.shows_variables(frame):
            text.append(harmless(arguments(frame), looks.ascii_only))
        if frame.inlined:
            text.append(" (inlined)", looks("note"))
        if frame.file:
            text.append(f"  {harmless(frame.file.rsplit('/', 1)[-1])}:{frame.line}")
        elif frame.module:
            text.append(f"  {harmless(frame.module.rsplit('/', 1)[-1])}", looks("dim"))
        lost = sum(map(_is_lost, frame.variables)) if self.mode == "frame" and at else 0
        if lost:
            text.append(f"  {lost} optimized out", looks("note"))
        text.append(f"  {frame.pc:x}  {frame.source}", looks("dim"))
        return text

    @staticmethod
    def _indent(row: _Row) -> int:
        """Cells in front of a value's mark."""
        value = row.value
        deep = 0 if value is None else len(value.node.steps) + bool(value.note)
        return (0 if row.frame is None else _INDENT - 2) + 2 * deep

    def frame_at(self, index: int) -> GuestFrame | None:
        """The frame that a line belongs to."""
        return self._rows[index].frame if 0 <= index < len(self._rows) else None

    def walked(self, index: int, frames: int) -> GuestFrame | None:
        """The frame so many up (positive) or down from the one of a line, or the last one."""
        if not self._frames:
            return None
        here = self.frame_at(min(index, len(self._rows) - 1)) or self.looked_at
        number = 0 if here is None else here.number
        return self._frames[max(0, min(number + frames, len(self._frames) - 1))]

    def line_of(self, frame: GuestFrame) -> int:
        """The line of a frame."""
        return next(n for n, row in enumerate(self._rows) if row.frame is frame)

    def line_like(self, old: "ValueRow | None", index: int) -> int:
        """The line of a value that was at a line before; else of the frame that is looked at."""
        if old is not None:
            for number, row in enumerate(self._rows):
                if row.value is not None and row.value.place == old.place:
                    return number
        frame = self.looked_at
        return 0 if frame is None else self.line_of(frame)


class FrameList(VirtualLines[FrameRows]):
    """The list of frames and values; a click on a mark opens or folds."""

    @dataclass
    class Marked(Message):
        """A mark was clicked."""

        index: int

    def on_click(self, event: events.Click) -> None:
        """Put the cursor there; on a mark, open what is there or fold it."""
        offset = event.get_content_offset(self)
        if offset is not None:
            index = offset.y + self.scroll_offset.y
            if offset.x - GUTTER + self.scroll_offset.x in self.source.marks_at(index):
                event.prevent_default()
                self.move_to(index)
                self.post_message(self.Marked(index))


class BacktracePane(ListPane[FrameRows]):
    """The pane of the backtrace; `walk` goes along the frames."""

    TITLE = "Backtrace"
    OF_A_MOMENT = True
    HELP = """
### Backtrace

| key | does |
|---|---|
| `u` `d` | to the caller, to the called frame |
| `Enter` | on a frame: show its code; on a value with a mark in front: open or fold it |
| `Space` | open or fold a value; on a frame: look at its variables |
| `v` | variables of the frame that is looked at, if they have values; of all frames; of none |
| `w` | what other unwinders would print here, one after the other |
| `W` `X` | on a variable: back to what has written it last; where its value came from |
| `&` | on a variable: its memory, laid out by its type, to be looked at and changed |
| `e` | print it, or another expression |
| `Y` | copy |

Pointers are followed when they are opened, containers of C++ show what they hold, long arrays come
in pieces. What is open stays open while the guest moves; `*` marks a value that is another one
than at the stop before. Expressions of `display` stand above the frames.

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
        Binding("space", "open", "open/fold", id="backtrace.open"),
        Binding("ampersand", "lay_out", "Its memory", show=False, id="backtrace.memory"),
        Binding("W", "words('last-write')", "Who wrote", show=False, id="backtrace.who_wrote"),
        Binding("X", "words('origin')", "Where from", show=False, id="backtrace.where_from"),
    ]

    def __init__(self) -> None:
        super().__init__(FrameList(FrameRows()))
        self._stop = -1
        self._asked: dict[cmd.Branch, Node] = {}

    def show(self, view: GuestView) -> None:
        """Show a new view; a guest that moves keeps the frames it had."""
        if view.state is RunState.RUNNING:
            return
        source, elsewhere = self.source, view.frame != self.source.frame_number
        before = source.value_at(self.lines.cursor)
        if source.fill(view):
            self._stop = view.moment
            self.lines.renew()
            self.lines.move_to(source.line_like(before, self.lines.cursor))
            self._request()
        elif elsewhere:
            self._look_at(view.frame)
        self.retitle("" if view.unwinder == "full" else view.unwinder)

    def restarted(self) -> None:
        """A new run: nothing is open in it yet."""
        self.source.forget()

    def remember(self, asked: cmd.ReadParts, found: tuple[PartsView | None, ...]) -> None:
        """Take answers: what is in values."""
        if asked.moment != self._stop:
            return
        source, before = self.source, self.source.value_at(self.lines.cursor)
        for branch, parts in zip(asked.branches, found, strict=True):
            node = self._asked.get(branch)
            if node is not None:
                source.answered(node, parts)
        source.lay_out()
        self.lines.renew()
        if before is not None:
            self.lines.move_to(source.line_like(before, self.lines.cursor))

    def _request(self) -> None:
        """Ask for what is in open values."""
        wanted = self.source.branches()
        self._asked = {branch: node for node, branch in wanted.items()}
        if wanted:
            self.post_message(Ask(cmd.ReadParts(self._stop, tuple(wanted.values()))))

    def walk(self, frames: int) -> None:
        """Go up (positive) or down, and show the code there."""
        frame = self.source.walked(self.lines.cursor, frames)
        if frame is not None:
            focus = not self.lines.has_focus  # who looks at variables goes on with that
            self.lines.move_to(self.source.line_of(frame))
            self._locate(frame, focus=focus)

    def action_variables(self) -> None:
        """Show variables of the frame that is looked at, of all frames, of none."""
        frame = self.source.walked(self.lines.cursor, 0)
        mode = self.source.mode = _MODES[(_MODES.index(self.source.mode) + 1) % len(_MODES)]
        whose = {"frame": "the frame that is looked at", "all": "all frames", "none": "no frame"}
        self.post_message(Say(f"variables of {whose[mode]}"))
        self.source.lay_out()
        self.lines.renew()
        if frame is not None:
            self.lines.move_to(self.source.line_of(frame))
        self._request()

    def action_open(self) -> None:
        """Open a value or fold it; look at a frame's variables."""
        if not self._toggle(self.lines.cursor):
            frame = self.source.frame_at(self.lines.cursor)
            if frame is not None and frame is not self.source.looked_at:
                self._select(frame)

    @property
    def variable(self) -> str:
        """Name of the variable of the line at the cursor, "" on any other line."""
        value = self.source.value_at(self.lines.cursor)
        frame = self.source.frame_at(self.lines.cursor)
        whole = value is not None and not value.node.steps and not value.note
        return value.view.name if whole and frame is not None and value is not None else ""

    @property
    def asked_about(self) -> str:
        """The same while the pane has the focus."""
        return self.variable if self.lines.has_focus else ""

    def action_words(self, word: str) -> None:
        """Ask a word about the variable at the cursor, in the frame that it is of."""
        if name := self._meant():
            self.post_message(Words(f"{word} {name}"))

    def action_lay_out(self) -> None:
        """Show the memory of the variable at the cursor by its type."""
        if name := self._meant():
            self.post_message(Ask(cmd.ReadLayout(name)))

    def _meant(self) -> str:
        """The variable at the cursor, whose frame is looked at then; "" and why for none."""
        name, frame = self.variable, self.source.frame_at(self.lines.cursor)
        if not name or frame is None:
            said = "that key is about a variable: put the cursor on one"
            self.post_message(Say(said, severity="warning"))
            return ""
        self._select(frame, stays=True)
        return name

    def _toggle(self, index: int) -> bool:
        """Open or fold the value of a line; False if there is none to open."""
        value = self.source.value_at(index)
        if value is None or not value.opens:
            return False
        values = self.source.values
        if value.goes_on:
            values.show_more(value.node)
        else:
            values.toggle(value.node)
        self.source.lay_out()
        self.lines.renew()
        self._request()
        return True

    def action_unwinder(self) -> None:
        """Compare with the next unwinder."""
        self.post_message(Ask(cmd.Unwind()))

    def on_virtual_lines_chosen(self, event: VirtualLines.Chosen) -> None:
        """Open a value, or show the frame's code."""
        event.stop()
        if not self._toggle(event.index):
            frame = self.source.frame_at(event.index)
            if frame is not None and self.source.value_at(event.index) is None:
                self._locate(frame)

    def on_frame_list_marked(self, event: FrameList.Marked) -> None:
        """The mouse opens, too."""
        event.stop()
        self._toggle(event.index)

    def _look_at(self, number: int) -> None:
        """Select another frame and show its variables."""
        self.source.look_at(number)
        self.lines.renew()
        frame = self.source.looked_at
        if frame is not None:
            self.lines.move_to(self.source.line_of(frame))
        self._request()

    def _select(self, frame: GuestFrame, *, stays: bool = False) -> None:
        """Look at another frame; `stays`: the cursor is not moved to it."""
        if frame.number != self.source.frame_number:
            if not stays:
                self._look_at(frame.number)
            self.post_message(Ask(cmd.SelectFrame(frame.number)))

    def _locate(self, frame: GuestFrame, *, focus: bool = True) -> None:
        self._select(frame)
        self.post_message(Located(frame.pc, focus=focus))


def _value(row: ValueRow, indent: int, looks: Looks) -> Text:
    """A value: its mark, its name, the value, where it leads, its type."""
    plain, view = looks.ascii_only, row.view
    text = Text(" " * indent, no_wrap=True)
    if row.note:
        sign = mark("folded", plain) if row.goes_on else " "
        text.append(f"{sign} ", looks("accent"))
        return text.append(harmless(row.note, plain), looks("note"))
    sign = mark("open" if row.is_open else "folded", plain) if view.opens else " "
    text.append(f"{sign} ", looks("accent"))
    text.append(harmless(view.name, plain), looks("accent"))
    text.append(" = ", looks("dim"))
    text.append("*" if row.changed else "", looks("good"))
    text.append(harmless(view.value, plain), looks("good") if row.changed else "")
    if view.leads:
        text.append(f" {mark('arrow', plain)} ", looks("dim"))
        text.append(harmless(view.leads, plain))
    text.append(f"  {harmless(view.type, plain)}", looks("dim"))
    return text
