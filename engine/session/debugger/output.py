"""Output of the words: lines for a terminal, and the log of `set logging enabled`."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import monotonic
from typing import Final

from engine.errors import CommandError, GuestFaultError, KprobeTuiError
from engine.escaping import escaped
from engine.image.reader import DamagedError
from engine.session.debugger.settings import SettingValues

Put = Callable[[str], object]
"""Takes a text as it is to be printed, newlines included."""
Guard = Callable[[], AbstractContextManager[None]]
"""Listens to the host while the guest moves."""
TROUBLE: Final = (KprobeTuiError, DamagedError)
"""Errors of what a user asks for: the command fails, the debugger goes on."""
_BREATH: Final = 0.1
"""Seconds between two looks of others at what many words print."""


class OutputLog:
    """Copies what is printed to a file, while the settings of logging say so.

    The words are those of gdb/cli/cli-logging.c.
    """

    def __init__(self, settings: SettingValues, *, remote: bool) -> None:
        """Copy nothing yet; `remote`: a client of a server may not write files here."""
        self._settings = settings
        self._remote = remote
        self._path: Path | None = None

    def renew(self) -> None:
        """A setting has changed: begin to copy, or end that.

        Raises:
            CommandError: the file cannot be written; logging is off then.
        """
        wanted = bool(self._settings["logging enabled"])
        if wanted == (self._path is not None):
            return
        self._path = None
        if not wanted:
            return
        if self._remote:
            raise self._failure("files of this machine are not written from afar")
        self._path = Path(str(self._settings["logging file"])).absolute()
        self._write("", "w" if self._settings["logging overwrite"] else "a")

    def take(self, text: str) -> bool:
        """Copy what is printed; True if it is to be printed nowhere else.

        Raises:
            CommandError: the file cannot be written; logging is off then.
        """
        if self._path is None:
            return False
        self._write(text, "a")
        return bool(self._settings["logging redirect"])

    def _write(self, text: str, mode: str) -> None:
        assert self._path is not None
        try:
            with self._path.open(mode, encoding="utf-8", errors="replace") as file:
                file.write(text)
        except OSError as error:
            raise self._failure(error.strerror or str(error)) from None

    def _failure(self, why: str) -> CommandError:
        self._path = None
        self._settings.restore("logging enabled")
        return CommandError(f"set logging: {why}.")


class WordOutput:
    """Prints the lines of one debugger's words.

    Attributes:
        log: copies what is printed.
    """

    def __init__(
        self,
        out: Put,
        complaints: Put | None,
        log: OutputLog,
        guard: Guard,
        wants_end: Callable[[], bool],
    ) -> None:
        """Print nothing yet.

        Args:
            out: takes what is printed.
            complaints: takes what went wrong without ending a command; `out` if None.
            log: copies what is printed.
            guard: held while others may look at what was printed.
            wants_end: True once the user wants an end of the word at hand.
        """
        self.log = log
        self._out, self._complaints = out, complaints
        self._captures = 0
        self._breathed = 0.0
        self._guard = guard
        self._wants_end = wants_end

    def put(self, text: str) -> None:
        """Print a line; what a program calls its own things by is made fit for a terminal."""
        self.write(escaped(text, keep="\t") + "\n")

    def put_value(self, text: str) -> None:
        """Print a value, which may have several lines; the printer has made its names fit."""
        self.write(escaped(text, keep="\t\n") + "\n")

    def complain(self, text: str) -> None:
        """Print a line of what went wrong, where it did not end a command."""
        if self._complaints is None:
            self.put(text)
        else:
            self._complaints(escaped(text, keep="\t"))

    def write(self, text: str) -> None:
        """Print a text of the user's own as it is, without a newline."""
        if self._captures or not self.log.take(text):
            self._out(text)

    @contextmanager
    def captured(self) -> Iterator[list[str]]:
        """Collect what words print meanwhile in place of printing it."""
        found: list[str] = []
        before, self._out = self._out, found.append
        self._captures += 1
        try:
            yield found
        finally:
            self._out = before
            self._captures -= 1

    def breathe(self) -> None:
        """Between two words of many: show what was printed, and hear whether it is enough.

        Raises:
            CommandError: the user wants an end.
        """
        if self._wants_end():
            raise CommandError("Quit")
        now = monotonic()
        if now - self._breathed > _BREATH:
            self._breathed = now
            with self._guard():
                pass


def message(error: Exception) -> str:
    """An error as gdb says it."""
    if isinstance(error, GuestFaultError):
        return f"Cannot access memory at address {error.address:#x}"
    if isinstance(error, DamagedError):
        return f"the debug information is damaged: {error}"
    return str(error)
