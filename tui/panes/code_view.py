"""The code itself: disassembly of wherever the user looks, with probes, pc, what is planted.

It has no list of lines: a window of rows is decoded around the cursor, so that a binary of
any size scrolls alike.
"""

from collections.abc import Hashable
from itertools import islice
from typing import ClassVar, Final

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.css.styles import RenderStyles
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from engine.session.browse import Browser, CodeRow
from engine.session.protocol.views import GuestView
from tui.messages import Copied, Located
from tui.panes.code_lines import Bytes, CodeLine, CodePainter, CodeWindow, find_row, signs_of
from tui.render import mark
from tui.widgets.chords import Chords, PrefixKeys
from tui.widgets.looks import Looks
from tui.widgets.painted_rows import PaintedRows
from tui.widgets.parts import NONE, Parts
from tui.widgets.slices import Slices
from tui.widgets.strips import fitted, highlight, own_look, to_strip

_COPIED: Final = 200
"""Cells of a copied line."""


class CodeView(Widget, can_focus=True):
    """Shows code; posts `Located` when the cursor moves.

    Attributes:
        looks: styles by name, `code--NAME` of the component classes without the background.
        chords: the keys of two strokes.
        pattern: text that is searched for, and marked; "" for none.
    """

    HELP = """
### Code

| key | does |
|---|---|
| `j` `k` arrows, `ctrl+d` `ctrl+u`, PgDn PgUp | move |
| `gg`, `G` | first, last instruction of the file |
| `Enter` | follow the branch at the cursor; `Backspace` back again |
| `p` | place a probe here |
| `b` | breakpoint here |
| `>` | run to here |
| `y` | why: the rules for a probe here |
| `A` | assemble over this instruction |
| `B` | bytes: planted, original, none |
| `X` | code as it was written, or as it is executed, with what probes have planted |
| `S` | assembly with source lines, assembly alone, source alone |
| `/` | search instructions and labels; then `n` `N` are next and previous, until `Esc` |
| `.` | to the current instruction |

Marks: `●` armed probe, `◌` disabled, `■` stops here, `►` cursor, `→` pc, `↳` target of the
branch at the cursor.
"""
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "code--pc",
        "code--cursor",
        "code--cursor-blurred",
        "code--label",
        "code--source",
        "code--address",
        "code--bytes",
        "code--planted",
        "code--mnemonic",
        "code--branch",
        "code--note",
        "code--probe",
        "code--off",
        "code--match",
    }
    DEFAULT_CSS = """
    CodeView {
        background: $surface;
        color: $foreground;
        width: 1fr;
        height: 1fr;
        & > .code--pc { text-style: bold; color: $text-warning; }
        & > .code--cursor { background: $block-cursor-blurred-background; text-style: bold; }
        & > .code--cursor-blurred { text-style: bold; }
        & > .code--label { color: $text-primary; text-style: bold; }
        & > .code--source { color: $text-muted; text-style: italic; }
        & > .code--address { color: $text-muted; }
        & > .code--bytes { color: $text-muted; }
        & > .code--planted { color: $text-error; text-style: bold reverse; }
        & > .code--mnemonic { color: $text-accent; }
        & > .code--branch { color: $text-secondary; }
        & > .code--note { color: $text-muted; }
        & > .code--probe { color: $text-error; text-style: bold; }
        & > .code--off { color: $text-muted; text-style: bold; }
        & > .code--match { text-style: reverse bold; }
        &:ansi > .code--cursor { text-style: bold reverse; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False, id="code.down"),
        Binding("up,k", "move(-1)", "Up", show=False, id="code.up"),
        Binding("pagedown,ctrl+f", "page(1)", "Page down", show=False, id="code.page-down"),
        Binding("pageup,ctrl+b", "page(-1)", "Page up", show=False, id="code.page-up"),
        Binding("ctrl+d", "page(0.5)", "Half page down", show=False, id="code.half-down"),
        Binding("ctrl+u", "page(-0.5)", "Half page up", show=False, id="code.half-up"),
        Binding("home", "end(False)", "First instruction", show=False, id="code.top"),
        Binding("end,G", "end(True)", "Last instruction", show=False, id="code.bottom"),
        Binding("enter", "follow", "Follow", show=False, id="code.follow"),
        Binding("backspace", "back", "Back", show=False, id="code.back"),
        Binding("B", "bytes", "Bytes", show=False, id="code.bytes"),
        Binding("X", "executed", "As executed", show=False, id="code.executed"),
        Binding("slash", "search", "Find", key_display="/", show=False, id="code.search"),
        Binding("n", "again(False)", "Next match", show=False, id="code.next"),
        Binding("N", "again(True)", "Previous match", show=False, id="code.previous"),
        Binding("Y", "copy_rows", "Copy", show=False, id="code.copy"),
        Binding("escape", "calm", "Clear", show=False, id="code.clear"),
    ]

    class Asked(Message):
        """The user wants to type a pattern."""

    class MarginClicked(Message):
        """A breakpoint is to be set at the cursor, or cleared."""

    class Toggled(Message):
        """The code is shown as it was written, or as it is executed."""

    class Searched(Message):
        """A search has ended, with or without a match."""

        def __init__(self, pattern: str, address: int | None) -> None:
            super().__init__()
            self.pattern = pattern
            self.address = address

    def __init__(self, browser: Browser, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._browser = browser
        self._window = CodeWindow(browser)
        self._view = GuestView()
        self._signs = signs_of(self._view)
        self._cursor = 0
        self._above = 0
        self._lines: list[CodeLine] = []  # as painted last
        self._stale = True
        self._painted_rows = PaintedRows(self, self._row, self._begin_rows, self._set_dirty)
        self._pass: tuple[int | None, bool] = None, False
        self._back: list[int] = []
        self._bytes = Bytes.PLANTED
        self._searching = Slices(self, self._found)
        self._parts = Parts(self)
        self.looks = Looks(self, "code", own_look)
        self._marks = Looks(self, "code", Widget.get_component_rich_style)
        self._painter: CodePainter | None = None
        self._strips: LRUCache[Hashable, Strip] = LRUCache(512)
        self.pattern = ""
        keys = PrefixKeys({"g": {"g": "end(False)"}}, alone={"g": "app.go_to"})
        self.chords = Chords(self, keys)

    # -- what the app calls -------------------------------------------------------------------

    def show(self, view: GuestView) -> None:
        """Show a new view: pc is kept in sight when it has moved."""
        old, self._view = self._view, view
        signs = signs_of(view) if view.probes is not old.probes else self._signs
        marked, self._signs = signs != self._signs, signs
        if (
            marked
            or view.registers is not old.registers
            or view.mappings is not old.mappings
            or (view.pc, view.raw_pc, view.changed, view.modules)
            != (old.pc, old.raw_pc, old.changed, old.modules)
        ):
            self._painter = None
            self.reload()  # lines that are as they were keep their strips
        if self._browser.rests(view.pc):
            if not self._cursor:
                self.locate(self._browser.first_code)
        elif view.pc != old.pc or not self._cursor:
            self.locate(view.pc)

    def locate(self, address: int) -> None:
        """Put the cursor on the instruction that covers an address."""
        row = self._browser.row_at(address)
        if row is None:  # its memory is not known yet
            self._cursor = address
            self._above = self._height // 3
            self.reload()
            return
        visible = [line.row.address for line in self._lines[1 : self._height - 1]]
        if row.address in visible:
            self._cursor = row.address
            self._above = self._line_of(row.address)
        else:
            self._cursor = row.address
            self._above = self._height // 3
        self.reload()

    def reload(self) -> None:
        """Other lines may be in sight."""
        self._stale = True
        self._painted_rows.changed()

    def _repaint(self) -> None:
        """Lines may look different now."""
        self._painter = None
        self._strips.clear()
        self.reload()

    @property
    def cursor(self) -> int:
        """Guest address of the instruction at the cursor."""
        return self._cursor

    @property
    def row(self) -> CodeRow | None:
        """The instruction at the cursor."""
        return self._browser.row_at(self._cursor)

    def start_search(self, pattern: str, backwards: bool = False) -> None:
        """Look for text in instructions and labels from the cursor on."""
        self.pattern = pattern
        self._repaint()
        if pattern:
            self._searching.start(find_row(self._browser, self._cursor, pattern, backwards))

    # -- motions ------------------------------------------------------------------------------

    @property
    def _height(self) -> int:
        return max(self.size.height, 1)

    def _line_of(self, address: int) -> int:
        """Line of an instruction on the screen; the first where it is not there."""
        for number, line in enumerate(self._lines):
            if line.row.address == address and not line.heading:
                return number
        return 0

    def _go(self, address: int, above: int) -> None:
        self._cursor = address
        self._above = max(min(above, self._height - 1), 0)
        self.reload()
        self.post_message(Located(address))

    def action_move(self, count: int) -> None:
        """Move by instructions."""
        rows = self._rows(count)
        if rows:
            row = rows[-1]
            lines = sum(1 + len(self._window.headings(item)) for item in rows)
            self._go(row.address, self._above + (lines if count > 0 else -lines))

    def _rows(self, count: int) -> list[CodeRow]:
        if count > 0:
            return list(islice(self._browser.forward(self._cursor), 1, count + 1))
        return list(islice(self._browser.backward(self._cursor), -count))

    def action_page(self, pages: float) -> None:
        """Move by (half) a page."""
        count = int(max(self._height - 2, 1) * pages) or (1 if pages > 0 else -1)
        rows = self._rows(count)
        if rows:
            self._go(rows[-1].address, self._above)

    def action_end(self, last: bool) -> None:
        """Go to the first or last instruction of the file."""
        span = self._browser.span(self._cursor)
        if span is None:
            return
        row = self._browser.row_at(span[1] - 1 if last else span[0])
        if row is not None:
            self._remember()
            self._go(row.address, self._height if last else 0)

    def _remember(self) -> None:
        self._back.append(self._cursor)
        del self._back[:-100]

    def action_follow(self) -> None:
        """Go where the branch at the cursor leads."""
        row = self.row
        if row is not None and row.target is not None:
            self._remember()
            self.locate(row.target)
            self.post_message(Located(row.target))

    def action_back(self) -> None:
        """Go back to where the last jump began."""
        if self._back:
            self.locate(self._back.pop())
            self.post_message(Located(self._cursor))

    def jump(self, address: int) -> None:
        """Go to an address, with a way back."""
        self._remember()
        self._browser.go_to(address)
        self.locate(address)

    def action_bytes(self) -> None:
        """Show planted bytes, original bytes, or none."""
        self._bytes = self._bytes.following
        self._repaint()

    def action_executed(self) -> None:
        """Show code as the processor finds it, or as it was written."""
        self._browser.executed = not self._browser.executed
        self._repaint()
        self.post_message(self.Toggled())

    def show_source(self, on: bool) -> None:
        """Show lines of the source between the instructions, or not."""
        self._window.with_source = on
        self.reload()

    def action_search(self) -> None:
        """Ask for a pattern."""
        self.post_message(self.Asked())

    def action_calm(self) -> None:
        """Forget the search."""
        self.pattern = ""
        self._searching.stop()
        self._repaint()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape, `n` and `N` belong to the search only while there is one."""
        if action in ("calm", "again"):
            return bool(self.pattern)
        return super().check_action(action, parameters)

    def action_again(self, backwards: bool) -> None:
        """Go to the next match, or the one before."""
        self.start_search(self.pattern, backwards)

    def action_copy_rows(self) -> None:
        """Copy the instruction as text."""
        row = self.row
        if row is not None:
            text = self._paints(_COPIED).text(CodeLine(row), at_cursor=False, targeted=False)
            self.post_message(Copied(text.plain.rstrip()))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor there; in the margin, set or clear a breakpoint."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y >= len(self._lines):
            return
        self._go(self._lines[offset.y].row.address, offset.y)
        if offset.x < 3:
            self.post_message(self.MarginClicked())
        elif event.chain > 1:
            self.action_follow()

    def on_key(self, event: events.Key) -> None:
        """Chords come before bindings."""
        self.chords.take(event)

    def on_blur(self) -> None:
        """A chord does not outlive the focus."""
        self.chords.drop()

    def on_mouse_scroll_down(self) -> None:
        """The wheel moves by three."""
        self.action_move(3)

    def on_mouse_scroll_up(self) -> None:
        """The wheel moves by three."""
        self.action_move(-3)

    def on_resize(self) -> None:
        """Keep the cursor in view."""
        self._above = min(self._above, self._height - 1)
        self._repaint()

    # -- search -------------------------------------------------------------------------------

    def _found(self, address: int | None) -> None:
        if address is not None:
            self._remember()
            self.locate(address)
            self.post_message(Located(address))
        self.post_message(self.Searched(self.pattern, address))

    # -- painting -----------------------------------------------------------------------------

    def get_component_styles(self, *names: str) -> RenderStyles:
        """The styles of a component class."""
        (name,) = names
        return self._parts.styles(name)

    def _get_component_classes(  # type: ignore[override]  # the class is asked there
        self,
    ) -> frozenset[str]:
        """Have Textual work out no rules of component classes, now that the widget has its."""
        self._parts.renew()
        return NONE

    def notify_style_update(self) -> None:
        """The theme may have changed."""
        super().notify_style_update()
        self.looks.doubt()
        self._marks.doubt()

    def watch_has_focus(self, _has_focus: bool) -> None:
        """No rule of the code asks whether it has the focus: those that do are of its pane."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows of a part of the view."""
        self._begin_rows()
        self._painted_rows.settle()
        return super().render_lines(crop)

    def _begin_rows(self) -> None:
        """Look once at what is the same for all rows."""
        if self.looks.outdated() | self._marks.outdated():  # both are asked
            self._painter = None
            self._strips.clear()
        if self._stale:
            self._stale = False
            self._lines, self._above = self._window.lines(self._cursor, self._above, self._height)
        row = self.row
        self._pass = None if row is None else row.target, self.has_focus

    def _paints(self, width: int) -> CodePainter:
        view = self._view
        return CodePainter(
            self.looks,
            self.looks.ascii_only,
            width,
            self._browser.arch.insn_max,
            frozenset((view.pc, view.raw_pc)),
            view.planted,
            self._signs,
            self._bytes,
        )

    def render_line(self, y: int) -> Strip:
        """One row of the view."""
        return self._painted_rows.paint(y)

    def _row(self, y: int) -> Strip:
        if y >= len(self._lines):
            text = Text(self._nothing if y == 0 else "")
            strip = to_strip(text, self.app.console).adjust_cell_length(self.size.width)
            return strip.apply_style(self.rich_style)
        line = self._lines[y]
        at_cursor = line.row.address == self._cursor and not line.heading
        target, focused = self._pass
        targeted = target == line.row.address and not at_cursor
        address = line.row.address
        beside = self._view.planted.get(address), self._signs.get(address)
        pc = address in (self._view.pc, self._view.raw_pc)
        key = line, at_cursor and 1 + focused, targeted, pc, beside
        known = self._strips.get(key)
        if known is not None:
            return known
        strip = self._strips[key] = self._paint(line, at_cursor, targeted)
        return strip

    @property
    def _nothing(self) -> str:
        """The words that stand where there is no code."""
        if self._browser.mapping_at(self._cursor) is None:
            return f"nothing is mapped at {self._cursor:#x}"
        return f"the memory at {self._cursor:#x} is not known yet"

    def _paint(self, line: CodeLine, at_cursor: bool, targeted: bool) -> Strip:
        width = self.size.width
        if self._painter is None:
            self._painter = self._paints(width)
        content = self._painter.text(line, at_cursor=at_cursor, targeted=targeted)
        strip = to_strip(content, self.app.console)
        if self.pattern:
            strip = highlight(strip, self.pattern, self.looks("match"))
        strip = fitted(strip, width, mark("more", self.looks.ascii_only))
        style = self.rich_style
        if at_cursor:
            style += self._marks("cursor" if self.has_focus else "cursor-blurred")
        return strip.adjust_cell_length(width).apply_style(style)
