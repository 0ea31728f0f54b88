"""Lines of calls of several threads in one stream: what is interrupted is resumed."""

from collections.abc import Callable
from typing import Final

_UNFINISHED: Final = " <unfinished ...>\n"


class CallTranscript:
    """One stream of lines, of which one may be unfinished."""

    def __init__(
        self, write: Callable[[str], None], leader: Callable[[int], str], column: int
    ) -> None:
        """Begin with nothing.

        Args:
            write: takes text.
            leader: what stands in front of a thread's lines.
            column: where results stand.
        """
        self._write = write
        self._leader = leader
        self._column = column
        self._open: int | None = None
        self._place = 0

    def begin(self, thread: int, text: str) -> None:
        """A call is made: the beginning of a line."""
        self._break()
        self._put_leader(thread)
        self._put(text)
        self._open = thread

    def end(self, thread: int, name: str, text: str, result: str) -> None:
        """End the line of a call that returns; the line may have been interrupted.

        Args:
            thread: that made it.
            name: of the call.
            text: the rest of the arguments, with the bracket.
            result: what stands behind the equals sign.
        """
        if self._open != thread:
            self._break()
            self._put_leader(thread)
            self._put(f"<... {name} resumed>")
        self._open = None
        space = " " * max(self._column - self._place - len(text) - 1, 0)
        self._put(f"{text} {space}= {result}\n")

    def line(self, thread: int, text: str) -> None:
        """A line of its own."""
        self._break()
        self._put_leader(thread)
        self._put(f"{text}\n")

    def stand_alone(self, text: str) -> None:
        """A line that belongs to no thread."""
        self._break()
        self._write(f"{text}\n")

    def close(self) -> None:
        """End a line that nothing will continue."""
        if self._open is not None:
            self._write(_UNFINISHED)
            self._open = None

    def _break(self) -> None:
        if self._open is not None:
            self._write(_UNFINISHED)
            self._open = None

    def _put_leader(self, thread: int) -> None:
        self._place = 0
        self._put(self._leader(thread))

    def _put(self, text: str) -> None:
        self._place += len(text)
        self._write(text)
