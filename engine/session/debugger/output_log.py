"""The file that `set logging enabled` copies what words print to (gdb/cli/cli-logging.c)."""

from pathlib import Path

from engine.errors import CommandError
from engine.session.debugger.settings import SettingValues


class OutputLog:
    """Copies what is printed to a file, while the settings of logging say so."""

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
