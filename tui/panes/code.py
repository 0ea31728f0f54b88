"""The code pane: the code, where in it the cursor is, and the prompt for a search."""

from engine.session.browse import Browser
from engine.session.protocol.views import GuestView
from tui.messages import Say
from tui.panes.code_view import CodeView
from tui.render import harmless
from tui.widgets.pane import Pane


class CodePane(Pane):
    """The pane of the code.

    Attributes:
        code: the code itself.
    """

    TITLE = "Code"

    def __init__(self, browser: Browser) -> None:
        self.code = CodeView(browser)
        super().__init__(self.code)
        self._browser = browser

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
        self.prompt.ask("search", "/ find", self._search, self.code.pattern)

    def _search(self, text: str) -> None:
        self.prompt.close()
        self.code.start_search(text)

    def on_code_view_searched(self, event: CodeView.Searched) -> None:
        """Say how the search ended."""
        event.stop()
        if event.address is None:
            self.post_message(Say(f"not found: {event.pattern}", severity="warning"))
