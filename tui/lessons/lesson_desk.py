"""A desk for lessons, behind `:learn` and `;`: lessons are listed, opened, and gone through."""

from typing import TYPE_CHECKING

from engine.errors import CommandError
from tui.body import Body
from tui.lessons import LESSONS, Lesson, find_lesson

if TYPE_CHECKING:
    from tui.lessons.guide import Classroom, LessonGuide


class LessonDesk:
    """The lessons of one interface.

    Attributes:
        guide: leads through the lesson that is open; None without one.
        wanted: the lesson that is to be opened in place of this guest.
    """

    def __init__(self, lesson: Lesson | None, room: "Classroom", body: Body) -> None:
        """Open a lesson.

        Args:
            lesson: the lesson that the guest is of; None for no lesson.
            room: the interface.
            body: its panes.
        """
        self.wanted: Lesson | None = None
        self._room = room
        self.guide = self._guided(lesson, body) if lesson is not None else None

    def _guided(self, lesson: Lesson, body: Body) -> "LessonGuide":
        from tui.lessons.guide import LessonGuide  # most guests are of no lesson

        return LessonGuide(lesson, self._room, body, self.open)

    def look(self) -> None:
        """Look at what is shown now: the step at hand may be done."""
        if self.guide is not None:
            self.guide.look()

    @property
    def words(self) -> list[str]:
        """Words that `learn` takes."""
        return [*LESSONS, *(self.guide.words if self.guide is not None else ())]

    def learn(self, text: str) -> None:
        """Carry out what stands behind `:learn`: a lesson, or a word for the one that is open.

        Raises:
            CommandError: there is no such lesson or word.
        """
        if not text:
            from tui.lessons.screen import LessonsScreen  # not for the first screen

            self._room.push_screen(LessonsScreen(), self._open_chosen)
        elif self.guide is not None and text in self.guide.words:
            self.guide.act(text)
        else:
            self.open(find_lesson(text))

    def _open_chosen(self, lesson: Lesson | None) -> None:
        if lesson is not None:
            try:
                self.open(lesson)
            except CommandError as error:
                self._room.say(f"{error}\n{error.hint}", "error")

    def open(self, lesson: Lesson) -> None:
        """Leave this guest for that of a lesson.

        Raises:
            CommandError: that guest is not there, or the interface is in a browser's page, which
                ends with its guest.
        """
        if self._room.is_web:
            raise CommandError("the page of a browser shows one guest; load it again for another")
        from tui.lessons.opening import lesson_config  # not for the first screen

        lesson_config(lesson)  # its guest may not be there
        self.wanted = lesson
        self._room.exit(0)

    def focus(self) -> None:
        """Give the panel of the lesson the keys."""
        if self.guide is None:
            self._room.say("no lesson is open; :learn lists them")
        else:
            self.guide.focus()
