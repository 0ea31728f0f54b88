"""The list of lessons above the panes, from which one is opened."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static

from tui.lessons import LESSONS, Lesson, load_lesson
from tui.render import is_ascii
from tui.screens.dialog import Dialog


def lesson_line(lesson: Lesson) -> Content:
    """A lesson as a line of a list."""
    return Content.assemble((f" {lesson.number:>2} ", "$text-accent"), lesson.title)


class LessonsScreen(Dialog[Lesson]):
    """Lists the lessons; Enter chooses one."""

    DEFAULT_CSS = """
    LessonsScreen { align: center middle; }
    LessonsScreen > Vertical {
        width: 72; max-width: 96%; height: 18; max-height: 96%;
        border: solid $border; background: $surface; padding: 0 1;
        &.-ascii { border: ascii $border; }
    }
    LessonsScreen OptionList, LessonsScreen OptionList:focus {
        height: 1fr; border: none; padding: 0; background: $surface;
    }
    LessonsScreen #about { height: 2; color: $text-muted; }
    LessonsScreen #hint { height: 1; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "Back"),
        Binding("j", "move('down')", show=False),
        Binding("k", "move('up')", show=False),
    ]

    def compose(self) -> ComposeResult:
        """The list, and what the lesson at the cursor shows."""
        self._lessons = [load_lesson(name) for name in LESSONS]
        page = Vertical(
            OptionList(*map(lesson_line, self._lessons), markup=False),
            Static(id="about", markup=False),
            Static("Enter opens it, and ends this program   Esc back", id="hint", markup=False),
        )
        page.border_title = "Lessons"
        page.set_class(is_ascii(self.app), "-ascii")
        yield page

    def action_move(self, way: str) -> None:
        """Move the cursor by a line."""
        choices = self.query_one(OptionList)
        if way == "down":
            choices.action_cursor_down()
        else:
            choices.action_cursor_up()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Say what the lesson at the cursor shows."""
        self.query_one("#about", Static).update(self._lessons[event.option_index].about)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take the lesson."""
        self.dismiss(self._lessons[event.option_index])
