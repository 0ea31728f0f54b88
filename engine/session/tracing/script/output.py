"""The output of a script: gathered, and written before the guest goes on."""

from collections.abc import Callable
from io import FileIO

from engine.session.guest.outputs import OutputFile, OutputFiles

_MUCH = 1 << 16
"""Bytes that are not kept back."""


class ScriptSink:
    """Takes what a script prints.

    Attributes:
        failure: the first error of the file, None if there was none.
    """

    def __init__(
        self,
        outputs: OutputFiles,
        path: str | None,
        write: Callable[[bytes], object],
        write_error: Callable[[bytes], object],
    ) -> None:
        """Set up; a file is not touched yet.

        Args:
            outputs: all files that the run writes.
            path: of a file to write to; None for none.
            write: takes output where there is no file.
            write_error: takes warnings.

        Raises:
            CommandError: the file cannot be written.
        """
        self.failure: OSError | None = None
        self._target: OutputFile | None = None
        self._file: FileIO | None = None
        if path is not None:
            self._target = outputs.add("-o", path)
        self._write = write
        self._write_error = write_error
        self._waiting: list[bytes] = []
        self._size = 0

    def begin(self) -> None:
        """The run begins: the file is emptied.

        Raises:
            CommandError: it cannot be created.
        """
        if self._target is not None:
            self._target.create()
            self._file = self._target.begin()

    def write(self, data: bytes) -> None:
        """Take output."""
        self._waiting.append(data)
        self._size += len(data)
        if self._size > _MUCH:
            self.flush()

    def write_error(self, data: bytes) -> None:
        """Take a warning, behind the output so far."""
        self.flush()
        self._write_error(data)

    def complain(self, text: str) -> None:
        """Take a word about something that an action could not do."""
        self.write_error(f"{text}\n".encode(errors="surrogateescape"))

    def flush(self) -> None:
        """Write what was taken.

        Raises:
            CommandError: nobody can take it.
        """
        if not self._waiting:
            return
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._size = 0
        if self._file is None:
            self._write(data)
            return
        view = memoryview(data)
        try:
            while view and self.failure is None:
                view = view[self._file.write(view) or 0 :]
        except OSError as error:
            self.failure = error
