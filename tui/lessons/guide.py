"""A lesson in the interface: looks at what is shown, moves the panel, obeys its keys and words."""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Final, Protocol

from textual.screen import Screen
from textual.timer import Timer

from engine.errors import CommandError
from tui.body import Body
from tui.lessons import LESSONS, Lesson, load_lesson
from tui.lessons.checks import Seen
from tui.lessons.panel import LessonPanel
from tui.lessons.walk import LessonWalk

_PERIOD: Final = 0.2
"""Seconds between two looks at what no view tells of: focus, dialogs, typed lines."""


class Classroom(Protocol):
    """The interface as a lesson sees it."""

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the terminal."""

    def seen(self) -> Seen:
        """Return what is shown now."""

    def say(self, text: str, severity: str = "information") -> None:
        """Show something short."""

    def every(self, seconds: float, do: Callable[[], None]) -> Timer:
        """Do something again and again."""

    @property
    def is_web(self) -> bool:
        """True in a browser's page."""

    def push_screen(
        self, screen: Screen[Lesson], callback: Callable[[Lesson | None], None]
    ) -> object:
        """Show a dialog; what was chosen goes to `callback`."""

    def exit(self, result: int) -> None:
        """End."""


class LessonGuide:
    """Leads through one lesson.

    Attributes:
        panel: shows the step.
        walk: the way through the lesson.
    """

    def __init__(
        self, lesson: Lesson, room: Classroom, body: Body, leave_for: Callable[[Lesson], None]
    ) -> None:
        """Begin a lesson.

        Args:
            lesson: the lesson.
            room: the interface.
            body: its panes, which make room for the panel.
            leave_for: opens another lesson; CommandError if it cannot be opened.
        """
        self.walk = LessonWalk(lesson)
        self.panel = LessonPanel(self.walk, self.act)
        self._room = room
        self._body = body
        self._leave_for = leave_for
        self._acts: dict[str, Callable[[], None]] = {
            "hint": self._hint,
            "next": self._next,
            "back": self._back,
            "again": self._again,
            "fold": self._fold,
            "close": self._close,
            "leave": self._leave,
        }

    def begin(self) -> None:
        """Look at what is shown from now on."""
        self.fit()
        self._room.every(_PERIOD, self.look)

    def fit(self) -> None:
        """Give the panel the rows it needs, and the panes the others."""
        rows = self.panel.rows(*self._room.size) if self.panel.display else 0
        self.panel.styles.height = max(rows, 1)
        self._body.leave_rows(rows)

    def look(self) -> None:
        """Go on to the next step if the one at hand is done."""
        before = self.walk.at
        if self.panel.display and self.panel.is_attached and self.walk.look(self._room.seen()):
            self.panel.hint = self.panel.hint and self.walk.at == before
            self._renew()

    def focus(self) -> None:
        """Give the panel the keys; one that was closed is shown again."""
        if not self.panel.display:
            self.panel.display = True
            self.fit()
        self.panel.focus()

    @property
    def words(self) -> list[str]:
        """Words that `act` takes."""
        return list(self._acts)

    def act(self, word: str) -> None:
        """Do what a key of the panel, or a word behind `:learn`, stands for.

        Raises:
            CommandError: the word means nothing.
        """
        if word not in self._acts:
            near = get_close_matches(word, self._acts, 1) or self.words
            raise CommandError(f"learn {word}? there is {', '.join(near)}")
        if self.panel.has_focus:  # one key, and the panes have them again
            self._body.focus_pane()
        self._acts[word]()

    def _renew(self) -> None:
        self.panel.refresh()

    def _hint(self) -> None:
        step = self.walk.step
        if step is None or not step.hint:
            self._room.say("this step has no hint")
            return
        self.panel.hint = not self.panel.hint
        if self.panel.folded:
            self._fold()
        self._renew()

    def _moved(self) -> None:
        self.panel.hint = False
        self._renew()

    def _next(self) -> None:
        if self.walk.step is not None:
            self.walk.skip()
            self._moved()
        elif self.walk.lesson.number < len(LESSONS):
            try:
                self._leave_for(load_lesson(LESSONS[self.walk.lesson.number]))
            except CommandError as error:
                self._room.say(f"{error}\n{error.hint}", "error")
        else:
            self._room.say("that was the last lesson; :learn lists them")

    def _back(self) -> None:
        self.walk.back()
        self._moved()

    def _again(self) -> None:
        self.walk.restart()
        self._moved()
        self._room.say("the lesson begins again; r starts the program afresh, 8 x deletes a probe")

    def _fold(self) -> None:
        self.panel.folded = not self.panel.folded
        self.fit()
        self._renew()

    def _close(self) -> None:
        self.panel.display = False
        self.fit()
        self._room.say("the lesson is closed; ; shows it again")

    def _leave(self) -> None:
        """Do no more than give the keys back, which `act` has done."""
