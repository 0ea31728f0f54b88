"""The code pane: instructions or source, where in them the cursor is, and a search's prompt."""

from enum import Enum
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widget import Widget

from engine.message_text import bare_place
from engine.session.browse import Browser
from engine.session.protocol.views import GuestView
from tui.messages import Located, Say
from tui.panes.code_view import CodeView
from tui.panes.source_view import SourceView
from tui.render import harmless
from tui.widgets.pane import Pane
from tui.widgets.virtual_lines import VirtualLines


class Look(Enum):
    """The looks of code; the value is what people read."""

    MIXED = "assembly with source lines"
    ASSEMBLY = "assembly"
    SOURCE = "source"

    @property
    def following(self) -> "Look":
        """The next one when the user goes through them."""
        looks = list(Look)
        return looks[(looks.index(self) + 1) % len(looks)]


class CodePane(Pane):
    """The pane of the code, as instructions or as source.

    The cursor is always that of the instructions; among source lines it goes with them.

    Attributes:
        code: the code itself.
        lines: the source.
    """

    TITLE = "Code"
    OF_A_MOMENT = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("S", "source", "Source", show=False, id="code.source"),
        Binding("slash", "search", "Find", key_display="/", show=False, id="source.search"),
    ]

    def __init__(self, browser: Browser) -> None:
        self.code = CodeView(browser)
        super().__init__(self.code)
        self.lines = SourceView(browser)
        self.lines.display = False
        self._browser = browser
        self._view = GuestView()
        self._look = Look.MIXED
        self._followed = -1

    def compose(self) -> ComposeResult:
        """Instructions and source."""
        yield self.code
        yield self.lines

    def show(self, view: GuestView) -> None:
        """Show a new view."""
        old, self._view = self._view, view
        self.code.show(view)
        if view.pc != old.pc:
            self._followed = -1
        elif self.content is self.lines and view.probes is not old.probes:
            self.lines.source.fill(self.code.cursor, view)
            self.lines.changed()
        self.entitle()

    # -- source -----------------------------------------------------------------------------

    def action_source(self) -> None:
        """From assembly with source lines to assembly, to source."""
        self._look = self._look.following
        self.code.show_source(self._look is not Look.ASSEMBLY)
        self._followed = -1
        self.entitle()
        without = self._look is Look.SOURCE and self.content is self.code
        said = "no source to be read here: assembly with its lines" if without else ""
        self.post_message(Say(said or self._look.value))

    def _follow(self) -> None:
        """Show the source of what the cursor is on, where that is wanted and there."""
        cursor = self.code.cursor
        if cursor == self._followed:
            return
        self._followed = cursor
        line = 0
        if self._look is Look.SOURCE:
            line = self.lines.source.fill(cursor, self._view)
        self._change(self.lines if line else self.code)
        if line:
            self.lines.renew()
            self.lines.move_to(line - 1, middle=True)

    def _change(self, content: Widget) -> None:
        """Show instructions or source, with the focus that the other had."""
        if content is self.content:
            return
        focused = self.content.has_focus
        self.content = content
        self.code.display = content is self.code
        self.lines.display = content is self.lines
        if content is self.code:  # it had no height to put its cursor into
            self.code.call_after_refresh(self.code.locate, self.code.cursor)
        if focused:
            self.focus_inside()

    def on_virtual_lines_moved(self, event: VirtualLines.Moved) -> None:
        """The cursor is on another source line: that of the instructions goes there."""
        event.stop()
        address = self.lines.source.addresses.get(event.index + 1)
        here = self.code.row
        if address is None or self.content is not self.lines:
            return
        if here is not None and here.line == (self.lines.source.path, event.index + 1):
            return  # it is there already
        self.code.locate(address)
        self._followed = self.code.cursor
        self.post_message(Located(address))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Instructions have a search of their own."""
        if action == "search" and self.content is self.code:
            return False
        return super().check_action(action, parameters)

    def action_search(self) -> None:
        """Ask for a text of the source."""
        self.prompt.ask("search", "/ find", self._search, self.lines.pattern)

    # -- title and search -------------------------------------------------------------------

    def remembered(self) -> None:
        """Memory of the guest was told: other instructions may stand there."""
        self.code.reload()
        self.entitle()

    def entitle(self) -> None:
        """The title says where the cursor is."""
        self._follow()
        row = self.code.row
        module = self._browser.module_at(self.code.cursor)
        name = bare_place(self._browser.locate(self.code.cursor))
        source = "" if row is None or row.line is None else f"{row.line[0]}:{row.line[1]}"
        mapping = self._browser.mapping_at(self.code.cursor)
        file = mapping.name or "memory" if mapping is not None else "nothing mapped"
        if module is not None:
            file = module.path.rsplit("/", 1)[-1]
        how = "as executed" if self._browser.executed else ""
        self.retitle(harmless(name), harmless(source.rsplit("/", 1)[-1]), harmless(file), how)
        span = self._browser.span(self.code.cursor)
        if span is not None:
            self.note(f"{100 * (self.code.cursor - span[0]) // max(span[1] - span[0], 1)}%")

    def on_code_view_asked(self, event: CodeView.Asked) -> None:
        """A pattern is wanted."""
        event.stop()
        self.prompt.ask("search", "/ find", self._search, self.code.pattern)

    def _search(self, text: str) -> None:
        self.prompt.close()
        if self.content is self.lines:
            self.lines.start_search(text)
        else:
            self.code.start_search(text)

    def on_code_view_toggled(self, event: CodeView.Toggled) -> None:
        """As it was written, or as it is executed."""
        event.stop()
        self.entitle()
        how = "it is executed" if self._browser.executed else "it was written"
        self.post_message(Say(f"code as {how}"))

    def on_code_view_searched(self, event: CodeView.Searched) -> None:
        """Say how the search ended."""
        event.stop()
        if event.address is None:
            self.post_message(Say(f"not found: {event.pattern}", severity="warning"))
