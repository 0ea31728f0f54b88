"""The line at the bottom of a pane where a pattern, a filter or a number is typed."""

from collections.abc import Callable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from tui.render import harmless, is_ascii

_HISTORY = 100


class Prompt(Vertical):
    """Hidden until `ask`; gone again with Enter or Escape.

    Attributes:
        input: the line itself; there when it is asked for first, as most never are.
    """

    DEFAULT_CSS = """
    Prompt {
        height: auto;
        display: none;
        background: $surface;
        & > Input { height: 1; border: none; padding: 0; background: $boost; }
        & > Input:focus { border: none; }
        & > .prompt--caret { height: auto; color: $text-error; display: none; }
        &.-wrong > .prompt--caret { display: block; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back", id="prompt.leave"),
        Binding("up", "recall(-1)", "Earlier", show=False, id="prompt.earlier"),
        Binding("down", "recall(1)", "Later", show=False, id="prompt.later"),
    ]

    def __init__(self, left: Callable[[], object]) -> None:
        """`left` is called when the keys belong to somebody else again."""
        super().__init__()
        self._left = left
        self._what = ""
        self._answer: Callable[[str], object] = lambda text: None
        self._histories: dict[str, list[str]] = {}
        self._place = 0
        self.input = Input(compact=True, select_on_focus=False)
        self._caret = Static(classes="prompt--caret", markup=False)

    def ask(self, what: str, hint: str, answer: Callable[[str], object], text: str = "") -> None:
        """Show it and take the keys.

        Args:
            what: is asked; each has a history of its own.
            hint: shown while the line is empty.
            answer: takes what is typed, and calls `close`, or `wrong` to have it put right.
            text: what holds now: it is selected, and what is typed takes its place.
        """
        self._what, self._answer = what, answer
        self._place = len(self._histories.get(what, ()))
        if not self.input.is_attached:
            self.mount(self.input, self._caret)
        self.input.placeholder = hint
        self.input.value = text
        self.input.cursor_position = len(text)
        self.input.select_all()
        self.remove_class("-wrong")
        self.display = True
        self.input.focus()

    def wrong(self, message: str, column: int | None = None) -> None:
        """Say what is wrong, with a caret under the place."""
        ascii_only = is_ascii(self.app)
        caret = "" if column is None else " " * column + "^ "
        self._caret.update(caret + harmless(message, ascii_only))
        self.add_class("-wrong")

    def close(self) -> None:
        """Hide it."""
        if self.display:
            self.display = False
            self._left()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Hand the answer on."""
        event.stop()
        history = self._histories.setdefault(self._what, [])
        if event.value and event.value not in history[-1:]:
            history.append(event.value)
            del history[:-_HISTORY]
        self._answer(event.value)

    def on_input_changed(self, event: Input.Changed) -> None:
        """The mistake is being changed."""
        event.stop()
        self.remove_class("-wrong")

    def action_leave(self) -> None:
        """Go back without an answer."""
        self.close()

    def action_recall(self, step: int) -> None:
        """Go through what was typed before."""
        history = self._histories.get(self._what, [])
        self._place = max(min(self._place + step, len(history)), 0)
        self.input.value = history[self._place] if self._place < len(history) else ""
        self.input.cursor_position = len(self.input.value)
