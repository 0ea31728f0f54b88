"""Two ports by which a program in the machine talks with whoever runs the machine.

The program reads the words of its requests at `DATA`, and writes the words of its answers there; a
write to `CONTROL` pauses the machine. Where no request is left, words are zeros.
"""

import sys
from array import array
from collections.abc import Callable, Mapping
from typing import Any, Final

DATA: Final = 0x6A0
CONTROL: Final = 0x6A4
PORTS: Final = (DATA, CONTROL)
_WORD: Final = 4
_WORDS_MOST: Final = 16 << 20
"""Words of answers to one batch of requests: what comes behind them is lost."""


class Mailbox:
    """The device; see the module."""

    def __init__(self, pause: Callable[[], None]) -> None:
        """Begin without requests.

        Args:
            pause: pauses the machine.
        """
        self._pause = pause
        self._given = _words(b"")
        self._next = 0
        self._answers = _words(b"")

    def put(self, requests: bytes) -> None:
        """Have the program read requests, whole words of them, in place of all earlier ones."""
        self._given, self._next = _words(requests), 0

    def take(self) -> bytes:
        """Give the answers so far, and forget them."""
        answers, self._answers = self._answers, _words(b"")
        return _bytes(answers)

    @property
    def left(self) -> int:
        """The number of words that the program has not read."""
        return len(self._given) - self._next

    def read(self, port: int) -> int:
        """Serve an IN of one of `PORTS`."""
        if port != DATA or self._next >= len(self._given):
            return 0
        self._next += 1
        return self._given[self._next - 1]

    def write(self, port: int, value: int) -> None:
        """Serve an OUT of one of `PORTS`."""
        if port == CONTROL:
            self._pause()
        elif len(self._answers) < _WORDS_MOST:
            self._answers.append(value & 0xFFFFFFFF)

    def state(self) -> dict[str, Any]:
        """The state as plain values: what is on its way in either direction."""
        return {"given": _bytes(self._given[self._next :]), "answers": _bytes(self._answers)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        self._given, self._next = _words(state["given"]), 0
        self._answers = _words(state["answers"])


def _words(raw: bytes) -> "array[int]":
    """The words that bytes are, the low byte of each first."""
    found = array("I", raw[: len(raw) & -_WORD])
    if sys.byteorder == "big":
        found.byteswap()
    return found


def _bytes(words: "array[int]") -> bytes:
    found = words[:]
    if sys.byteorder == "big":
        found.byteswap()
    return found.tobytes()
