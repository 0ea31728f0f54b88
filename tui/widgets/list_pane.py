"""A pane around a list: it can be searched."""

from typing import Generic, TypeVar

from textual.app import ComposeResult

from tui.messages import Say
from tui.widgets.pane import Pane
from tui.widgets.virtual_lines import VirtualLines

Lines = TypeVar("Lines", bound=VirtualLines)


class ListPane(Pane, Generic[Lines]):
    """A pane whose content is a list.

    Attributes:
        lines: the list.
    """

    def __init__(
        self,
        lines: Lines,
        *,
        number: int | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(number=number, id=id, classes=classes)
        self.lines = lines

    def compose(self) -> ComposeResult:
        """The list and the prompt."""
        yield self.lines
        yield self.prompt

    @property
    def content(self) -> Lines:
        """The list."""
        return self.lines

    # -- prompt ---------------------------------------------------------------------------

    def ask(self, what: str) -> None:
        """Open the prompt; subclasses know more than "search"."""
        if what == "search":
            self.prompt.ask(what, "/ find", self.lines.pattern)

    def answer(self, what: str, text: str) -> None:
        """Take what was typed; the prompt stays open unless it is closed here."""
        if what == "search":
            self.prompt.close()
            self.lines.start_search(text)

    def on_virtual_lines_asked(self, event: VirtualLines.Asked) -> None:
        """The list wants something typed."""
        event.stop()
        self.ask(event.what)

    def on_virtual_lines_searched(self, event: VirtualLines.Searched) -> None:
        """Say how the search stands."""
        event.stop()
        if not event.pattern:
            self.note("")
        elif not event.done:
            self.note(f"/{event.pattern} searching, Esc stops")
        elif event.index is None:
            self.note(f"/{event.pattern} not found")
            self.post_message(Say(f"not found: {event.pattern}", severity="warning"))
        else:
            around = ", around the end" if event.wrapped else ""
            self.note(f"/{event.pattern} n next, N previous{around}")
