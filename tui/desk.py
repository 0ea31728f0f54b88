"""The interface as the objects behind keys and typed commands see it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar

from textual.screen import Screen
from textual.timer import Timer

from engine.session.protocol.commands import Command
from engine.session.protocol.views import GuestView
from tui.keymap import Action
from tui.widgets.bars import Question

if TYPE_CHECKING:
    from tui.lessons.lesson_desk import LessonDesk

Result = TypeVar("Result")


class Desk(Protocol):
    """Everything they may ask of it; `tui.app` is one."""

    @property
    def view(self) -> GuestView:
        """The guest as it is known."""

    @property
    def words(self) -> Mapping[str, str]:
        """Names of gdb's words, and the whole one of each, as far as they are known."""

    @property
    def works(self) -> bool:
        """True while the engine has not answered a command that may take long."""

    def type(self, line: str) -> None:
        """Have the engine carry a line of gdb's words out."""

    def post(self, command: Command, /) -> None:
        """Have the engine carry a command out."""

    def say(self, text: str, severity: str = "information") -> None:
        """Show something short: "information", "warning" or "error"."""

    def ask(self, question: Question) -> None:
        """Have something typed."""

    def open_command_line(self, word: str = "", rest: str = "") -> None:
        """Have a line of commands typed.

        Args:
            word: the line begins with it.
            rest: of the line; what is typed takes its place.
        """

    def key_text(self, action: Action) -> str:
        """The keys of an action as the user has set them."""

    def open(self, dialog: Screen[Result], done: Callable[[Result | None], None]) -> None:
        """Show a dialog; `done` takes its result."""

    def every(self, seconds: float, do: Callable[[], None]) -> Timer:
        """Do something again and again, until the timer is stopped."""

    def copy(self, text: str) -> None:
        """Put text into the clipboard, and say so."""

    def take_picture(self) -> None:
        """Write the screen to an SVG file in the current directory."""

    def copy_selection(self) -> bool:
        """Copy what is selected with the mouse or in a line; False if nothing is."""

    @property
    def themes(self) -> list[str]:
        """Names of the themes there are."""

    def use_theme(self, name: str) -> None:
        """Change the theme.

        Raises:
            CommandError: there is none of that name.
        """

    def help(self) -> None:
        """Show the keys of the focused pane."""

    def explore(self, text: str) -> None:
        """Search the schedules of the guest's threads for one that ends in another way.

        Raises:
            CommandError: it cannot be searched.
        """

    @property
    def lessons(self) -> "LessonDesk":
        """The lessons: a list, and the one that is open."""

    def to_background(self) -> None:
        """Go back to the shell for a while."""

    def leave(self) -> None:
        """End the interface."""
