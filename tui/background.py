"""The background of the terminal, as the terminal itself tells it.

OSC 11 with a question mark asks for it (XTerm Control Sequences, "Operating System Commands").
Behind it the terminal is asked for its attributes (DA1), which every one answers: where that
answer comes without one to OSC 11, none will come. Answers stand among what the user types, cut
anywhere, and may be late or wrong: nothing of one ever becomes a key.
"""

import os
import re
import select
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, Final

QUERY: Final = b"\x1b]11;?\x1b\\\x1b[c"
_PATIENCE: Final = 0.3
"""Seconds from the query on in which an answer changes what is shown."""
_LATE: Final = 30.0
"""Seconds from the query on after which no answer is looked for."""
_HALF: Final = 2.0
"""Seconds after which what has begun as an answer is taken to have lost its end."""
_KEY: Final = 0.05
"""Seconds after which what an answer may begin with is taken for a key: Escape, alt+]."""
_LONGEST: Final = 1024
"""Bytes of an answer."""
_SILENT: Final = re.compile(r"linux|vt\d|cons|dumb|unknown|ansi|$")
"""Terminals that would print the query, or have one background."""

_ANSWER: Final = re.compile(
    rb"\x1b\]11;(?P<color>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    rb"|\x1b\]11;[^\x07\x1b]*(?=\x1b[^\\])"  # one that something else has cut off
    rb"|\x1b\[\?[\d;]*(?P<attributes>c)"
)
_BEGUN: Final = re.compile(
    rb"\x1b(?:\](?:1(?:1(?P<color>;[^\x07\x1b]*\x1b?)?)?)?|\[(?P<attributes>\?[\d;]*)?)?\Z"
)
_COLOR: Final = re.compile(
    r"rgb:([\da-f]{1,4})/([\da-f]{1,4})/([\da-f]{1,4})"
    r"|rgba:([\da-f]{1,4})/([\da-f]{1,4})/([\da-f]{1,4})/[\da-f]{1,4}",
    re.IGNORECASE | re.ASCII,
)
_BRIGHTNESS: Final = (0.299, 0.587, 0.114)
"""Shares of red, green and blue (ITU-R BT.601)."""


def is_light(color: str) -> bool | None:
    """True if a color of an X11 color specification is nearer to white; None if it is none."""
    found = _COLOR.fullmatch(color)
    if found is None:
        return None
    parts = [int(part, 16) / (16 ** len(part) - 1) for part in found.groups() if part is not None]
    brightness: float = sum(share * part for share, part in zip(_BRIGHTNESS, parts, strict=True))
    return brightness > 0.5


class Answers:
    """Takes the terminal's answers out of what comes from it.

    Attributes:
        light: whether the background is light; None as long as it is not told.
        due: whether an answer may still come.
        keys: what the user typed before there was an interface.
        attributes: the terminal's settings before it was asked.
    """

    def __init__(self, attributes: list[Any] | None = None) -> None:
        """Nothing has come since a query that is written now.

        Args:
            attributes: the terminal's settings, which are to come back.
        """
        self.light: bool | None = None
        self.due = True
        self.keys = b""
        self.attributes = attributes
        self._asked = self._since = monotonic()
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Take something that has come; what of it, and of what was held back, is typed."""
        self._since = monotonic()
        if self._since - self._asked > _LATE and not self._held:
            self.due = False
        data, self._held = self._held + data, b""
        typed = b""
        while self.due and (at := data.find(b"\x1b")) >= 0:
            typed, data = typed + data[:at], data[at:]
            if answer := _ANSWER.match(data):
                self._take(answer)
                data = data[answer.end() :]
            elif _BEGUN.match(data):
                self._held = data if len(data) < _LONGEST else data[:5]
                return typed
            else:
                typed, data = typed + data[:1], data[1:]
        return typed + data

    def _take(self, answer: re.Match[bytes]) -> None:
        if answer["attributes"]:
            self.due = False
        elif self.light is None and answer["color"]:
            self.light = is_light(answer["color"].decode("ascii", "replace"))

    def pause(self) -> bytes:
        """Nothing has come for a moment: what was held back and is a key after all."""
        now = monotonic()
        begun = _BEGUN.match(self._held)
        if begun is None or now - self._since < _KEY:
            return b""
        if begun["color"] or begun["attributes"]:
            if now - self._since > _HALF:
                self._held = b""
            return b""
        typed, self._held = self._held, b""
        return typed

    def wait(self) -> None:
        """Read what has come, and what comes in a short while, until the terminal has answered."""
        end = self._asked + _PATIENCE
        while self.due:
            left = max(end - monotonic(), 0)
            if select.select([0], [], [], min(left, _KEY))[0]:
                data = os.read(0, 1024)
                if not data:
                    return
                self.keys += self.feed(data)
            elif not left:
                return
            else:
                self.keys += self.pause()


def may_ask(environment: Mapping[str, str]) -> bool:
    """True if the terminal of this process can be asked: it understands that, and is ours."""
    if _SILENT.match(environment.get("TERM", "")):
        return False
    try:
        return os.isatty(0) and os.isatty(1) and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


@contextmanager
def asked_terminal() -> Iterator[Answers]:
    """Ask the terminal for its background; its answers are not echoed.

    At the end the terminal is as it was, and what it answers late has been waited for.
    """
    try:
        before = termios.tcgetattr(0)
        asking = termios.tcgetattr(0)
        asking[0] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR)
        asking[3] &= ~(termios.ECHO | termios.ICANON)
        asking[6][termios.VMIN], asking[6][termios.VTIME] = 1, 0
        termios.tcsetattr(0, termios.TCSANOW, asking)
    except termios.error:
        answers = Answers()
        answers.due = False
        yield answers
        return
    os.write(1, QUERY)
    answers = Answers(before)
    try:
        yield answers
    finally:
        if answers.attributes is not None:  # no interface has come up
            answers.wait()
            termios.tcsetattr(0, termios.TCSANOW, before)


def forget_typed() -> None:
    """Leave nothing of what was typed to the shell."""
    with suppress(termios.error):
        termios.tcflush(0, termios.TCIFLUSH)
