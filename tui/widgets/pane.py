"""The frame of every pane: a border with key and title, and a prompt at its bottom."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from engine.session.protocol.views import GuestView
from tui.render import harmless, is_ascii, mark
from tui.widgets.prompt import Prompt


class Pane(Vertical):
    """A pane around what it shows; the keys of its own work while that has the focus.

    Attributes:
        key: of the pane, shown in its title; None without one.
        content: has the keys when the pane is gone to.
        parts: of the title behind the name.
        prompt: for search and the like.
    """

    ALLOW_MAXIMIZE = True
    TITLE: ClassVar[str] = ""

    DEFAULT_CSS = """
    Pane {
        border: solid $foreground 25%;
        border-title-color: $foreground;
        border-subtitle-color: $text-muted;
        height: 1fr;
        width: 1fr;
        min-height: 3;
        &:focus-within { border: solid $border; border-title-style: bold; }
        &.-ascii { border: ascii $foreground 25%; }
        &.-ascii:focus-within { border: ascii $border; }
        &:ansi { border: solid ansi_bright_black; }
        &:ansi:focus-within { border: solid $border; }
        &.-ascii:ansi { border: ascii ansi_bright_black; }
        &.-ascii:ansi:focus-within { border: ascii $border; }
    }
    """

    class Retitled(Message):
        """The title or the note has changed."""

        def __init__(self, pane: "Pane") -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, content: Widget) -> None:
        super().__init__()
        self.key: str | None = None
        self.content = content
        self.parts: tuple[str, ...] = ()
        self.prompt = Prompt(self.focus_inside)
        self._titled = self._noted = ""

    def compose(self) -> ComposeResult:
        """The content and the prompt."""
        yield self.content
        yield self.prompt

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """No key of the pane while something is typed in it."""
        return self.content.has_focus and super().check_action(action, parameters)

    def show(self, view: GuestView) -> None:
        """Another view of the guest; a pane that shows nothing of it need not do anything."""

    def restarted(self) -> None:
        """A new run has begun: forget the one before."""

    def on_mount(self) -> None:
        """Draw the border with what the terminal has."""
        self.set_class(is_ascii(self.app), "-ascii")
        self.retitle(*self.parts)

    def focus_inside(self) -> None:
        """Give the content the focus, at once.

        `Widget.focus` only asks for it: until then a pane that is hidden for this one loses the
        focus to whatever comes next, and that would be gone to as well.
        """
        self.screen.set_focus(self.content)

    def retitle(self, *parts: str) -> None:
        """Set the title: key and name, then parts that change."""
        self.parts = parts
        if not self.is_attached:
            return
        rule = f" {mark('rule', is_ascii(self.app))} "
        name = f"{self.key} {self.TITLE}" if self.key is not None else self.TITLE
        title = rule.join([name, *filter(None, parts)])
        if title != self._titled:
            self._titled = title
            self.border_title = Content(harmless(title, is_ascii(self.app)))
            self.post_message(self.Retitled(self))

    def note(self, text: str) -> None:
        """Show something short in the lower border; "" takes it away."""
        if text != self._noted:
            self._noted = text
            self.border_subtitle = Content(harmless(text, is_ascii(self.app)))
            self.post_message(self.Retitled(self))

    @property
    def noted(self) -> str:
        """The changing parts of the title and the note, for where no border shows them."""
        rule = f" {mark('rule', is_ascii(self.app))} "
        return rule.join(filter(None, map(harmless, [*self.parts, self._noted])))
