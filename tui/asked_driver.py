"""The driver of a terminal that was asked something before: what it answers is no key.

What was typed while nothing read comes first, and what is typed behind a choice that ends one app
is left for the next one.
"""

import os
import select
import signal
from codecs import getincrementaldecoder
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key
from textual.message import Message

from tui.background import Answers

_LOOK: Final = 0.05
"""Seconds without input after which keys that may be longer ones are taken for short ones."""


class AskedDriver(LinuxDriver):
    """Leaves out what the terminal answers.

    Attributes:
        answers: what has come, and what may come.
        typed: keys that come first, once.
        keys: the keys that have come, the first one first, where another app follows; else None.
    """

    answers: ClassVar[Answers]
    typed: ClassVar[list[Key]]
    keys: ClassVar[list[Key] | None]

    def start_application_mode(self) -> None:
        """Start; the settings that come back at the end are those before the query."""
        start: Callable[[], None] = super().start_application_mode
        start()
        if self.answers.attributes is not None:
            self.attrs_before, self.answers.attributes = self.answers.attributes, None

    def run_input_thread(self) -> None:
        """Read what comes until the end."""
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        for key in self._taken():
            self.process_message(key)
        typed, self.answers.keys = self.answers.keys, b""
        while not self.exit_event.is_set():
            for event in parser.feed(text) if (text := decode(typed)) else ():
                self.process_message(event)
            for event in parser.tick():
                self.process_message(event)
            if select.select([self.fileno], [], [], _LOOK)[0]:
                if self.exit_event.is_set():
                    return
                data = os.read(self.fileno, 4096)
                typed = self.answers.feed(data)
                if not data:  # a terminal that has gone
                    self.exit_event.wait(_LOOK)
            else:
                typed = self.answers.pause()

    def _taken(self) -> list[Key]:
        typed = self.typed[:]
        self.typed.clear()
        return typed

    def process_message(self, message: Message) -> None:
        """Pass a message on; keys are noted where another app follows."""
        if self.keys is not None and isinstance(message, Key):
            self.keys.append(message)
        super().process_message(message)

    def disable_input(self) -> None:
        """Read no more; what nobody has read is the next app's where one follows."""
        if self.keys is None or self.exit_event.is_set():
            super().disable_input()
            return
        signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        self._disable_mouse_support()
        self.exit_event.set()
        if self._key_thread is not None:
            self._key_thread.join()
        self.exit_event.clear()


def driver_after(
    answers: Answers | None, typed: Sequence[Key] = (), keys: list[Key] | None = None
) -> type[LinuxDriver]:
    """The driver of a terminal that was asked, or was not.

    Args:
        answers: what the terminal was asked, None for nothing.
        typed: keys that come first.
        keys: takes the keys that come, where another app follows.
    """
    if answers is None:
        answers = Answers()
        answers.due = False
    members: dict[str, Any] = {"answers": answers, "typed": [*typed], "keys": keys}
    return type("DriverAfterAnswers", (AskedDriver,), members)
