"""The way through a lesson: which step is shown, and whether it is done."""

from enum import Enum

from tui.lessons import Lesson, Step
from tui.lessons.checks import Seen, holds


class Standing(Enum):
    """The state of the step that is shown."""

    FRESH = "fresh"
    """Nothing was looked at since the step is shown."""
    WANTED = "wanted"
    """The learner is to do the step."""
    ALREADY = "already"
    """The step was done before it was shown: the learner goes on when the text is read."""


class LessonWalk:
    """Goes from step to step as they are done.

    Attributes:
        lesson: the lesson.
        at: number of the step that is shown, from 0 on; behind the last one the lesson is over.
        standing: the state of that step.
        right: what came of the step before, "" if it was not done.
    """

    def __init__(self, lesson: Lesson) -> None:
        """Begin with the first step."""
        self.lesson = lesson
        self.at = 0
        self.standing = Standing.FRESH
        self.right = ""

    @property
    def step(self) -> Step | None:
        """The step that is shown; None behind the last one."""
        steps = self.lesson.steps
        return steps[self.at] if self.at < len(steps) else None

    def look(self, seen: Seen) -> bool:
        """Go on if the step is done; True if something else is to be shown."""
        step = self.step
        if step is None or not step.check:
            return False
        done = all(holds(condition, seen) for condition in step.check)
        before = self.standing
        if not done:
            self.standing = Standing.WANTED
        elif before is Standing.WANTED:
            self._show(self.at + 1, step.right)
        else:
            self.standing = Standing.ALREADY
        return self.standing is not before

    def skip(self) -> None:
        """Show the next step, done or not."""
        step = self.step
        if step is not None:
            self._show(self.at + 1, step.right if self.standing is Standing.ALREADY else "")

    def back(self) -> None:
        """Show the step before again."""
        self._show(max(self.at - 1, 0), "")

    def restart(self) -> None:
        """Show the first step again."""
        self._show(0, "")

    def _show(self, at: int, right: str) -> None:
        self.at, self.right, self.standing = at, right, Standing.FRESH
