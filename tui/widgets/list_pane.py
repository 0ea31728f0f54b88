"""A pane around a list: it can be searched."""

from typing import ClassVar, Generic, TypeVar

from textual.binding import Binding, BindingType

from tui.messages import Say
from tui.widgets.line_source import LineSource
from tui.widgets.pane import Pane
from tui.widgets.virtual_lines import VirtualLines

Source = TypeVar("Source", bound=LineSource)


class ListPane(Pane, Generic[Source]):
    """A pane whose content is a list.

    Attributes:
        lines: the list.
        source: its lines.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Find", key_display="/", show=False, id="list.search"),
        Binding("n", "again(False)", "Next match", show=False, id="list.next"),
        Binding("N", "again(True)", "Previous match", show=False, id="list.previous"),
    ]

    def __init__(self, lines: VirtualLines[Source]) -> None:
        super().__init__(lines)
        self.lines = lines
        self.source = lines.source

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While nothing is searched for, the keys mean what they do elsewhere."""
        if action == "again" and not self.lines.pattern:
            return False
        return super().check_action(action, parameters)

    def action_search(self) -> None:
        """Ask for a text to look for."""
        self.prompt.ask("search", "/ find", self._search, self.lines.pattern)

    def _search(self, text: str) -> None:
        self.prompt.close()
        self.lines.start_search(text)

    def action_again(self, backwards: bool) -> None:
        """Go to the next match, or the one before."""
        self.lines.start_search(self.lines.pattern, backwards, here=False)

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
