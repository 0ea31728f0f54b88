"""What every pane has: a border with number and title, and a prompt at its bottom."""

from typing import ClassVar

from rich.markup import escape
from textual.containers import Vertical

from tui.render import is_ascii, mark
from tui.widgets.prompt import Prompt


class Pane(Vertical):
    """A numbered pane.

    Attributes:
        number: key of the pane, shown in its title; 0 for none.
        parts: of the title behind the name.
        prompt: for search and the like.
    """

    ALLOW_MAXIMIZE = True
    TITLE: ClassVar[str] = ""
    NUMBER: ClassVar[int] = 0

    DEFAULT_CSS = """
    Pane {
        border: solid $border-blurred;
        border-title-color: $foreground;
        border-subtitle-color: $text-muted;
        height: 1fr;
        width: 1fr;
        min-height: 3;
        &:focus-within { border: solid $border; border-title-style: bold; }
        &.-ascii { border: ascii $border-blurred; }
        &.-ascii:focus-within { border: ascii $border; }
    }
    """

    def __init__(
        self,
        *,
        number: int | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.number = self.NUMBER if number is None else number
        self.parts: tuple[str, ...] = ()
        self.prompt = Prompt()

    def on_mount(self) -> None:
        """Draw the border with what the terminal has."""
        self.set_class(is_ascii(self.app), "-ascii")
        self.retitle(*self.parts)

    def focus_inside(self) -> None:
        """Give the content the focus."""
        raise NotImplementedError

    def retitle(self, *parts: str) -> None:
        """Set the title: number and name, then parts that change."""
        self.parts = parts
        if not self.is_attached:
            return
        rule = f" {mark('rule', is_ascii(self.app))} "
        name = f"{self.number} {self.TITLE}" if self.number else self.TITLE
        self.border_title = escape(rule.join([name, *filter(None, parts)]))

    def note(self, text: str) -> None:
        """Show something short in the lower border; "" takes it away."""
        self.border_subtitle = escape(text)

    def answer(self, what: str, text: str) -> None:
        """Take what was typed; the prompt stays open unless it is closed here."""
        raise NotImplementedError

    def on_prompt_answered(self, event: Prompt.Answered) -> None:
        """Something was typed."""
        event.stop()
        self.answer(event.what, event.text)

    def on_prompt_left(self, event: Prompt.Left) -> None:
        """The keys belong to the content again."""
        event.stop()
        self.focus_inside()
