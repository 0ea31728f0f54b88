"""Messages from panes to the app: panes know neither the engine nor each other."""

from typing import TypeAlias

from textual.message import Message

from engine.session.protocol.commands import Command

Moment: TypeAlias = tuple[int, int | None]
"""A tick of the guest's clock, and the instruction of it that is meant, None for the first."""


class Ask(Message):
    """Have the engine carry out a command."""

    def __init__(self, command: Command) -> None:
        super().__init__()
        self.command = command


class Words(Message):
    """Have the engine carry a line of gdb's words out."""

    def __init__(self, line: str) -> None:
        super().__init__()
        self.line = line


class Located(Message):
    """The user looks at a guest address: every pane that can shows it."""

    def __init__(self, address: int, *, focus: bool = False, program: int | None = None) -> None:
        """A place to look at.

        Args:
            address: the address of the place.
            focus: go there, as with Enter, instead of only showing it.
            program: number of the program that it is in, None for the one in sight.
        """
        super().__init__()
        self.address = address
        self.focus = focus
        self.program = program


class Written(Message):
    """The user wants to know what has written last."""

    def __init__(self, register: str = "", address: int = 0, size: int = 0) -> None:
        """Ask for a register, or for bytes.

        Args:
            register: a register; "" for bytes of memory.
            address: of the bytes.
            size: how many.
        """
        super().__init__()
        self.register = register
        self.address = address
        self.size = size


class Followed(Written):
    """The user wants to know where the value of a register, or of bytes, came from."""


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
