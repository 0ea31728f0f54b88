"""The code pane: disassembly of wherever the user looks, with probes, pc and what is planted.

It has no list of lines: a window of rows is decoded around the cursor, so that a binary of
any size scrolls alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from time import perf_counter
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from engine.session.browser import Browser
from engine.session.coderows import CodeRow
from engine.session.views import GuestView, ProbeView
from tui.messages import Copied, Located, Say
from tui.render import harmless, is_ascii, mark
from tui.sources import SourceFiles
from tui.widgets.pane import Pane
from tui.widgets.prefix import PATIENCE, PrefixKeys
from tui.widgets.strips import highlight, own_look, to_strip

_NARROW = 64
"""Width below which bytes are left out."""
_ROOMY = 90
"""Width from which on eight bytes of an instruction are shown, not six."""
_SLICE = 0.008
_FAR = 4096
"""Rows that one step of a search looks at before the clock is asked."""


@dataclass(frozen=True, slots=True)
class _Line:
    """One line on the screen.

    Attributes:
        row: the instruction; of a heading, the one it belongs to.
        heading: text of a label or source line, "" for the instruction itself.
        source: whether the heading is a line of the source.
    """

    row: CodeRow
    heading: str = ""
    source: bool = False


class CodeView(Widget, can_focus=True):
    """Shows code; posts `Located` when the cursor moves."""

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
| `S` | source lines on or off |
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
        Binding("S", "source", "Source", show=False, id="code.source"),
        Binding("slash", "search", "Find", key_display="/", show=False, id="code.search"),
        Binding("n", "again(False)", "Next match", show=False, id="code.next"),
        Binding("N", "again(True)", "Previous match", show=False, id="code.previous"),
        Binding("Y", "copy_rows", "Copy", show=False, id="code.copy"),
        Binding("escape", "calm", "Clear", show=False, id="code.clear"),
    ]

    class Asked(Message):
        """The user wants to type a pattern."""

        def __init__(self, pane: "CodeView") -> None:
            super().__init__()
            self.pane = pane

    class Searched(Message):
        """A search has ended, with or without a match."""

        def __init__(self, pattern: str, address: int | None) -> None:
            super().__init__()
            self.pattern = pattern
            self.address = address

    def __init__(self, browser: Browser, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._browser = browser
        self._sources = SourceFiles()
        self._view = GuestView()
        self._probes: dict[int, list[ProbeView]] = {}
        self._cursor = 0
        self._above = 0
        self._lines: list[_Line] = []
        self._back: list[int] = []
        self._bytes = 0
        self._with_source = True
        self._search: Iterator[int | None] | None = None
        self._looks: dict[str, Style] = {}
        self.pattern = ""
        self.prefix = PrefixKeys({"g": {"g": "end(False)"}}, alone={"g": "app.go_to"})

    # -- what the app calls -------------------------------------------------------------------

    def show(self, view: GuestView) -> None:
        """Another view: pc is kept in sight when it has moved."""
        old, self._view = self._view, view
        if view.probes is not old.probes:
            probes: dict[int, list[ProbeView]] = {}
            for probe in view.probes:
                for address in probe.addresses:
                    probes.setdefault(address, []).append(probe)
            self._probes = probes
        if view.pc != old.pc or not self._cursor:
            self.locate(view.pc)
        elif (view.changed, view.probes, view.modules) != (old.changed, old.probes, old.modules):
            self.reload()

    def locate(self, address: int) -> None:
        """Put the cursor on the instruction that covers an address."""
        row = self._browser.row_at(address)
        if row is None:
            self._cursor = address
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
        """What is shown may have changed."""
        self._lines = []
        self.refresh()

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
        self.refresh()
        if not pattern:
            return
        self._search = self._find(pattern, backwards)
        self._search_on()

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
            lines = sum(1 + len(self._headings(item)) for item in rows)
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
        self.locate(address)

    def action_bytes(self) -> None:
        """Show planted bytes, original bytes, or none."""
        self._bytes = (self._bytes + 1) % 3
        self.refresh()

    def action_source(self) -> None:
        """Show lines of the source, or not."""
        self._with_source = not self._with_source
        self.reload()

    def action_search(self) -> None:
        """Ask for a pattern."""
        self.post_message(self.Asked(self))

    def action_calm(self) -> None:
        """Forget the search."""
        self.pattern, self._search = "", None
        self.refresh()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape, `n` and `N` belong to the search only while there is one."""
        if action in ("calm", "again"):
            return bool(self.pattern)
        return super().check_action(action, parameters)

    def on_blur(self) -> None:
        """A chord does not outlive the focus."""
        self.prefix.pending = ""

    def action_again(self, backwards: bool) -> None:
        """Go to the next match, or the one before."""
        self.start_search(self.pattern, backwards)

    def action_copy_rows(self) -> None:
        """Copy the instruction as text."""
        row = self.row
        if row is not None:
            self.post_message(Copied(self._text(row, 200).plain.rstrip()))

    def on_key(self, event: events.Key) -> None:
        """Chords come before bindings."""
        key = event.character if event.is_printable else event.key
        action = self.prefix.feed(key or "")
        if action is None:
            return
        event.stop()
        event.prevent_default()
        if self.prefix.pending:
            self.set_timer(PATIENCE, self._expire)
        if action:
            self.call_later(self.run_action, action)

    def _expire(self) -> None:
        if action := self.prefix.expire():
            self.call_later(self.run_action, action)

    def on_click(self, event: events.Click) -> None:
        """Put the cursor there; in the margin, set or clear a breakpoint."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y >= len(self._lines):
            return
        self._go(self._lines[offset.y].row.address, offset.y)
        if offset.x < 3:
            self.call_later(self.app.run_action, "breakpoint")
        elif event.chain > 1:
            self.action_follow()

    def on_mouse_scroll_down(self) -> None:
        """The wheel moves by three."""
        self.action_move(3)

    def on_mouse_scroll_up(self) -> None:
        """The wheel moves by three."""
        self.action_move(-3)

    def on_resize(self) -> None:
        """Keep the cursor in view."""
        self._above = min(self._above, self._height - 1)
        self.reload()

    # -- search -------------------------------------------------------------------------------

    def _find(self, pattern: str, backwards: bool) -> Iterator[int | None]:
        folded = pattern.islower()
        browser = self._browser
        look = browser.backward if backwards else browser.forward
        start, span = self._cursor, browser.span(self._cursor)
        around: Iterator[CodeRow] = iter(())  # from the other end up to where it began
        if span is not None:
            around = look(span[1] - 1 if backwards else span[0])
        for number, row in enumerate(chain(islice(look(start), not backwards, None), around)):
            seen_all = number and row.address == start
            text = f"{row.address:x} {row.label} {row.mnemonic} {row.operands} {row.note}"
            if pattern in (text.lower() if folded else text):
                yield row.address
                return
            if seen_all:
                return
            if number % 64 == 63:
                yield None

    def _search_on(self) -> None:
        if self._search is None:
            return
        end = perf_counter() + _SLICE
        while perf_counter() < end:
            try:
                found = next(self._search)
            except StopIteration:
                self._search = None
                self.post_message(self.Searched(self.pattern, None))
                return
            if found is not None:
                self._search = None
                self._remember()
                self.locate(found)
                self.post_message(Located(found))
                self.post_message(self.Searched(self.pattern, found))
                return
        self.set_timer(0.001, self._search_on)

    # -- painting -----------------------------------------------------------------------------

    def look(self, name: str) -> Style:
        """The style of a component class `code--NAME`, without the background."""
        style = self._looks.get(name)
        if style is None:
            style = self._looks[name] = own_look(self, f"code--{name}")
        return style

    def notify_style_update(self) -> None:
        """The theme has changed."""
        super().notify_style_update()
        self._looks.clear()

    def _headings(self, row: CodeRow) -> list[_Line]:
        """Lines above an instruction: its label, its source line."""
        found = []
        if row.label:
            found.append(_Line(row, f"{harmless(row.label)}:"))
        if row.line is not None and self._with_source:
            file, number = row.line
            text = self._sources.line(file, number)
            name = file.rsplit("/", 1)[-1]
            found.append(_Line(row, f"{name}:{number}  {harmless(text)}".rstrip(), source=True))
        return found

    def _layout(self) -> list[_Line]:
        """The lines of the window: so many above the cursor, the rest from there on."""
        height, above = self._height, self._above
        before: list[_Line] = []
        for row in self._browser.backward(self._cursor):
            before = [*self._headings(row), _Line(row), *before]
            if len(before) >= above:
                break
        after: list[_Line] = []
        for row in self._browser.forward(self._cursor):
            headings = self._headings(row)
            if row.address <= self._cursor:
                before += headings
                headings = []
            after += [*headings, _Line(row)]
            if len(after) >= height:
                break
        first = max(len(before) - above, 0)
        self._above = len(before) - first
        return [*before[first:], *after][:height]

    def render_line(self, y: int) -> Strip:
        """One row of the view."""
        base, width = self.rich_style, self.size.width
        if not self._lines and y == 0:
            self._lines = self._layout()
        if y >= len(self._lines):
            text = Text("no code is known here" if y == 0 and not self._lines else "")
            strip = to_strip(text, self.app.console).adjust_cell_length(width)
            return strip.apply_style(base)
        line = self._lines[y]
        at_cursor = line.row.address == self._cursor and not line.heading
        if line.heading:
            content = Text("   " + line.heading, self.look("source" if line.source else "label"))
        else:
            content = self._text(line.row, width, at_cursor)
        strip = to_strip(content, self.app.console)
        if self.pattern:
            strip = highlight(strip, self.pattern, self.look("match"))
        style = base
        if at_cursor:
            name = "code--cursor" if self.has_focus else "code--cursor-blurred"
            style = base + self.get_component_rich_style(name)
        return strip.adjust_cell_length(width).apply_style(style)

    def _text(self, row: CodeRow, width: int, at_cursor: bool = False) -> Text:
        plain = is_ascii(self.app)
        text = Text(no_wrap=True)
        text.append(*self._sign(row, at_cursor, plain))
        pc = row.address == self._view.pc
        text.append(mark("arrow", plain)[:1] if pc else " ", self.look("pc"))
        text.append(f"{row.address:x} ", self.look("pc" if pc else "address"))
        if self._bytes < 2 and width >= _NARROW:
            self._append_bytes(text, row)
        branch = row.target is not None
        text.append(f"{row.mnemonic:<7} ", self.look("branch" if branch else "mnemonic"))
        text.append(row.operands)
        notes = []
        if row.note:
            notes.append(harmless(row.note, plain))
        planted = self._view.planted.get(row.address)
        if planted is not None and self._bytes == 0 and width >= _NARROW:
            notes.append(f"was {row.raw[: len(planted)].hex(' ')}")
        if notes:
            text.append("  ; " + "; ".join(notes), self.look("note"))
        return text

    def _sign(self, row: CodeRow, at_cursor: bool, plain: bool) -> tuple[str, Style]:
        probes = self._probes.get(row.address, ())
        cursor = self._browser.row_at(self._cursor) if not at_cursor else None
        left = mark("cursor", plain) if at_cursor else " "
        if cursor is not None and cursor.target == row.address:
            left = mark("branch", plain)[:1]
        sign, style = " ", self.look("address")
        for probe in probes:
            if not probe.enabled:
                sign, style = mark("off", plain), self.look("off")
            else:
                name = "stop" if probe.kind == "b" else "return" if probe.kind == "r" else "armed"
                sign, style = mark(name, plain), self.look("probe")
        return f"{left}{sign}", style

    def _append_bytes(self, text: Text, row: CodeRow) -> None:
        planted = self._view.planted.get(row.address, b"") if self._bytes == 0 else b""
        room = min(self._browser.arch.insn_max, 8 if self.size.width >= _ROOMY else 6)
        shown, planted = row.raw[:room], planted[:room]
        if planted:
            text.append(planted.hex(" "), self.look("planted"))
        rest = shown[len(planted) :].hex(" ")
        text.append((" " if planted and rest else "") + rest, self.look("bytes"))
        text.append(" " * (3 * max(room - max(len(shown), len(planted)), 0) + 1))
        if len(row.raw) > room:
            text.right_crop(1)
            text.append(mark("more", is_ascii(self.app)), self.look("bytes"))


class CodePane(Pane):
    """The pane of the code."""

    TITLE = "Code"
    NUMBER = 1

    def __init__(self, browser: Browser, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.code = CodeView(browser)
        self._browser = browser

    def compose(self) -> ComposeResult:
        """The code and the prompt."""
        yield self.code
        yield self.prompt

    def focus_inside(self) -> None:
        """Give the code the focus."""
        self.code.focus()

    def show(self, view: GuestView) -> None:
        """Another view."""
        self.code.show(view)
        self.entitle()

    def entitle(self) -> None:
        """The title says where the cursor is."""
        row = self.code.row
        module = self._browser.module_at(self.code.cursor)
        name = self._browser.locate(self.code.cursor)
        source = "" if row is None or row.line is None else f"{row.line[0]}:{row.line[1]}"
        file = module.path.rsplit("/", 1)[-1] if module is not None else "memory"
        self.retitle(harmless(name), harmless(source.rsplit("/", 1)[-1]), harmless(file))
        span = self._browser.span(self.code.cursor)
        if span is not None:
            self.note(f"{100 * (self.code.cursor - span[0]) // max(span[1] - span[0], 1)}%")

    def on_code_view_asked(self, event: CodeView.Asked) -> None:
        """A pattern is wanted."""
        event.stop()
        self.prompt.ask("search", "/ find", self.code.pattern)

    def answer(self, what: str, text: str) -> None:
        """A pattern was typed."""
        self.prompt.close()
        self.code.start_search(text)

    def on_code_view_searched(self, event: CodeView.Searched) -> None:
        """Say how the search ended."""
        event.stop()
        if event.address is None:
            self.post_message(Say(f"not found: {event.pattern}", severity="warning"))
