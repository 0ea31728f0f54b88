"""The panel of a lesson: a strip above the panes with the step at hand."""

from collections.abc import Callable
from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click
from textual.widget import Widget

from engine.chapters.layout import TextLook
from tui.lessons.page import Row, RowKind, step_rows, walk_rows
from tui.lessons.walk import LessonWalk
from tui.render import cut, harmless, is_ascii, mark

MOST_ROWS: Final = 8
"""Rows of the panel at the most, its title included."""
_LEAST: Final = 20
"""Rows of the terminal below which the title is all that is shown."""
_INK: Final = {
    RowKind.RIGHT: "$text-success",
    RowKind.TEXT: "$foreground",
    RowKind.DO: "bold $foreground",
    RowKind.HINT: "$text-warning",
}
_LOOKS: Final = {
    TextLook.CODE: "bold $text-accent",
    TextLook.BOLD: "bold",
    TextLook.LINK: "$text-accent",
    TextLook.HEADING: "bold",
}


class LessonPanel(Widget):
    """Shows the step that a learner is at; its keys work while it has the focus.

    Attributes:
        folded: whether the title is all that is shown.
        hint: whether the step's hint is shown.
    """

    can_focus = True
    FOCUS_ON_CLICK = False
    ALLOW_SELECT = False
    DEFAULT_CSS = """
    LessonPanel { height: 8; width: 1fr; background: $boost; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("h", "act('hint')", "hint"),
        Binding("n", "act('next')", "next step"),
        Binding("b", "act('back')", "step back"),
        Binding("r", "act('again')", "from the start"),
        Binding("f", "act('fold')", "fold"),
        Binding("q", "act('close')", "close the lesson"),
        Binding("escape,semicolon", "act('leave')", "keys to the panes"),
    ]

    def __init__(self, walk: LessonWalk, act: Callable[[str], object]) -> None:
        """Show the lesson that is walked through.

        Args:
            walk: the way through it.
            act: does what a key stands for.
        """
        super().__init__(id="lesson")
        self._walk = walk
        self._act = act
        self.folded = self.hint = False

    def rows(self, width: int, height: int) -> int:
        """Rows on a terminal of a size: enough for each step, so that the panes stay in place."""
        if self.folded or height < _LEAST:
            return 1
        steps = self._walk.lesson.steps
        rights = ("", *(step.right for step in steps))
        pairs = zip(steps, rights, strict=False)
        most = max(len(step_rows(step, right, width - 2)) for step, right in pairs)
        return min(most + 1, MOST_ROWS)

    def action_act(self, what: str) -> None:
        """Do what a key stands for."""
        self._act(what)

    def on_click(self, event: Click) -> None:
        """A click on the title folds the panel, or opens it."""
        if not event.y:
            self._act("fold")

    def render(self) -> Content:
        """The title, and the rows of the step."""
        width, height = self.size
        plain = is_ascii(self.app)
        parts: list[str | tuple[str, str]] = [*self._title(width, plain)]
        rows = walk_rows(self._walk, width - 2, hint=self.hint)
        for row in rows[: height - 1]:
            parts += ["\n ", *self._row(row, plain)]
        return Content.assemble(*parts)

    def _title(self, width: int, plain: bool) -> list[tuple[str, str]]:
        lesson, number = self._walk.lesson, self._walk.at + 1
        rule, count = mark("rule", plain), len(lesson.steps)
        state = "done" if number > count else f"{number}/{count}"
        left = f"Lesson {lesson.number}: {lesson.title} {state} "
        right = " ;h hint ;n next ;b back ;f fold "
        if self.has_focus:
            right = " h hint n next b back f fold Esc "
        room = width - len(left) - len(right) - 2
        if room < 0:
            right, room = " ; keys ", max(width - len(left) - 10, 0)
        look = "bold $text-accent" if self.has_focus else "bold"
        shown = cut(left, max(width - 2, 1), plain)
        return [(f"{rule} ", "$border"), (shown, look), (rule * room, "$border"), (right, "dim")]

    def _row(self, row: Row, plain: bool) -> list[str | tuple[str, str]]:
        sign = row.kind.value
        front = "" if not sign else f"{mark(sign, plain)} " if row.first else "  "
        ink = _INK[row.kind]
        pieces: list[str | tuple[str, str]] = [(front, ink)]
        for text, look in row.line:
            pieces.append((harmless(text, plain), _LOOKS.get(look, ink)))
        return pieces
