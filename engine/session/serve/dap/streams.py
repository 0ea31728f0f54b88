"""A guest's standard streams in a front end without a terminal: what it writes becomes events."""

import codecs
import os
import re
import termios
import threading
from collections.abc import Callable
from typing import Final

from engine.errors import CommandError
from engine.escaping import escaped
from engine.linux.fs import flags as fl
from engine.linux.fs.stdio import HostStream
from engine.session.serve.dap.framing import EditorGoneError
from engine.session.serve.taken_output import TakenOutput

Put = Callable[[str, str], object]
"""Takes a category ("stdout", "stderr", "console") and a text."""
_OFTEN: Final = 0.05
"""Seconds that a text waits for more, at the most."""
_MANY: Final = 1 << 16
"""Characters that do not wait."""
_LINE_MOST: Final = 4095
"""Bytes of a line in front of its end, of which a terminal keeps no more (n_tty.c)."""
_COLOR: Final = re.compile("(\x1b\\[[0-9;]*m)")
_PLAIN: Final = "\t\n\r"


class OutputEvents:
    """Gathers texts, so that a guest that writes a lot makes few events; any thread may put.

    Attributes:
        styled: the front end shows colours.
    """

    def __init__(self, put: Put) -> None:
        """`put` takes what was gathered."""
        self._put = put
        self._gate = threading.RLock()
        self._texts: list[str] = []
        self._category, self._size = "", 0
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}
        self._come = threading.Event()
        self._over = self.styled = False
        threading.Thread(target=self._watch, name="output", daemon=True).start()

    def add(self, category: str, text: str) -> None:
        """A text of the guest, or of ours."""
        if not text:
            return
        parts = _COLOR.split(text) if self.styled else [text]
        shown = "".join(
            part if at % 2 else escaped(part, keep=_PLAIN) for at, part in enumerate(parts)
        )
        with self._gate:
            if category != self._category:
                self.flush()
                self._category = category
            self._texts.append(shown)
            self._size += len(shown)
            if self._size >= _MANY:
                self.flush()
        self._come.set()

    def add_bytes(self, category: str, data: bytes, *, final: bool = False) -> None:
        """Bytes that the guest has written; what begins a character waits for its end."""
        decoder = self._decoders.get(category)
        if decoder is None:
            kind = codecs.getincrementaldecoder("utf-8")
            decoder = self._decoders[category] = kind(errors="surrogateescape")
        self.add(category, decoder.decode(data, final))

    def finish(self) -> None:
        """The guest writes no more: send what is left, too."""
        for category in self._decoders:
            self.add_bytes(category, b"", final=True)
        self.flush()

    def flush(self) -> None:
        """Send what has come so far."""
        with self._gate:
            texts, self._texts, self._size = self._texts, [], 0
            if texts:
                self._put(self._category, "".join(texts))

    def close(self) -> None:
        """Send no more."""
        self._over = True
        self._come.set()

    def _watch(self) -> None:
        """Texts do not wait longer than a moment."""
        again = threading.Event()
        while self._come.wait() and not self._over:
            self._come.clear()
            again.wait(_OFTEN)
            try:
                self.flush()
            except EditorGoneError:  # who reads requests hears of it, too
                return


class ConsoleStreams:
    """A terminal whose two ways out are told apart, and that is typed into by lines."""

    def __init__(self, output: OutputEvents) -> None:
        """Open one; `output` takes what is written.

        Raises:
            CommandError: the host has none left.
        """
        self._output = output
        try:
            self._master, self._slave = os.openpty()
        except OSError as error:
            why = f"a terminal for the program: {error.strerror}"
            raise CommandError(why) from None
        settings = termios.tcgetattr(self._slave)
        settings[3] &= ~termios.ECHO  # nobody reads it
        termios.tcsetattr(self._slave, termios.TCSANOW, settings)
        os.set_blocking(self._master, False)

    def streams(self) -> tuple[HostStream, ...]:
        """Standard input, output and error of a guest; /dev/tty is the first one again."""
        found = []
        for category in ("stdout", "stdout", "stderr"):

            def take(data: bytes, category: str = category) -> None:
                self._output.add_bytes(category, data)

            found.append(HostStream(self._slave, TakenOutput(take), fl.O_RDWR))
        return tuple(found)

    def write(self, data: bytes) -> None:
        """The user has typed something.

        Raises:
            CommandError: the terminal has no room for it, or for all of it.
        """
        longest = max(map(len, data.split(b"\n")))
        by_lines = termios.tcgetattr(self._slave)[3] & termios.ICANON
        if by_lines and longest > _LINE_MOST:
            raise CommandError(
                f"a line of {longest} bytes; a terminal takes {_LINE_MOST}: a file may hold more"
            )
        try:
            taken = os.write(self._master, data)
        except BlockingIOError:
            taken = 0
        if taken < len(data):
            raise CommandError(
                f"The program does not read: its terminal took {taken} of {len(data)} bytes."
            )

    def resize(self, columns: int, rows: int) -> None:
        """Do nothing: the size stays as it is."""

    def close(self) -> None:
        """Give the descriptors back."""
        os.close(self._master)
        os.close(self._slave)
