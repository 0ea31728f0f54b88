"""Dialogs: screens above others that return something, and go once."""

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, ScreenResultType


class Dialog(ModalScreen[ScreenResultType]):
    """A screen above others.

    Textual takes the uppermost screen away for each call of `dismiss`: the second click of a
    double click beside a dialog would take the next one, and the last one ends the program.
    """

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Go, if this is the uppermost screen.

        Args:
            result: is returned to who has opened the dialog.
        """
        return super().dismiss(result) if self.is_current else AwaitComplete()
