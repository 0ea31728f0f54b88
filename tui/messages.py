"""Messages from panes to the app: panes know neither the engine nor each other."""

from textual.message import Message

from engine.session.protocol.commands import Command


class Ask(Message):
    """Have the engine carry out a command."""

    def __init__(self, command: Command) -> None:
        super().__init__()
        self.command = command


class Located(Message):
    """The user looks at a guest address: every pane that can shows it."""

    def __init__(self, address: int, *, focus: bool = False) -> None:
        """`focus`: go there, as with Enter, instead of only showing it."""
        super().__init__()
        self.address = address
        self.focus = focus


class Say(Message):
    """Something short for the user, in the message line."""

    def __init__(self, text: str, *, severity: str = "information") -> None:
        """`severity` as for Textual's notifications: information, warning, error."""
        super().__init__()
        self.text = text
        self.severity = severity


class Copied(Message):
    """Text the user wants in the clipboard."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
