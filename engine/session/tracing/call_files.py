"""The streams that lines of calls go to: one for all threads, or a file for each."""

from collections.abc import Callable
from io import FileIO
from typing import BinaryIO, Final

from engine.errors import CommandError
from engine.session.guest.outputs import OutputFile, OutputFiles
from engine.session.protocol.report import Report
from engine.trace.strace.transcript import CallTranscript

_PIECE: Final = 1 << 15
_FILES: Final = 256
"""Files of threads that are open at a time at most."""


class CallFiles:
    """Streams for lines of calls.

    Attributes:
        leader: what stands in front of a thread's lines; given by whoever writes them.
        failure: the first error of writing; None if there was none.
    """

    leader: Callable[[int], str]

    def __init__(
        self, outputs: OutputFiles, path: str | None, stream: BinaryIO, follows: int, column: int
    ) -> None:
        """Look at the files; nothing is touched before the run.

        Args:
            outputs: of the run.
            path: of the file, None for the stream.
            stream: standard error.
            follows: as of `CallTraceRequest`.
            column: where results stand.

        Raises:
            CommandError: the file cannot be written, or a pipe is asked for.
        """
        if path is not None and path[:1] in ("|", "!"):
            raise CommandError(f"-o {path}: a command is not started; -o /dev/stdout | {path[1:]}")
        self.failure: OSError | None = None
        self._stream = stream
        self._path = path
        self._follows = follows
        self._column = column
        self._each = follows > 1 and path is not None
        self._target: OutputFile | None = None
        if path is not None and not self._each:
            self._target = outputs.add("-o", path)
        self._threads: set[int] = set()
        self._begun: set[int] = set()
        self._open: dict[int, tuple[CallTranscript, list[str], FileIO]] = {}
        self._buffer: list[str] = []
        self._held = 0
        self._file: FileIO | None = None
        self._main: CallTranscript | None = None

    def begin(self) -> None:
        """The run begins: the file is emptied."""
        if self._target is not None:
            self._target.create()
            self._file = self._target.begin()
        self._main = CallTranscript(self._write, self._lead, self._column)

    def _lead(self, thread: int) -> str:
        return self.leader(thread)

    def prefix(self, thread: int) -> str:
        """A thread's id in front of its lines, where there are several."""
        if self._each or not self._follows:
            return ""
        if self._path is not None:
            return f"{thread:<5d} "
        return f"[pid {thread:5d}] " if len(self._threads) > 1 else ""

    def follow(self, thread: int) -> None:
        """There is one thread more."""
        self._threads.add(thread)

    def leave(self, thread: int) -> None:
        """Forget a thread that has ended."""
        self._threads.discard(thread)
        self._close(thread)

    def of(self, thread: int) -> CallTranscript:
        """The stream of a thread."""
        if not self._each:
            assert self._main is not None
            return self._main
        found = self._open.get(thread)
        if found is None:
            while len(self._open) >= _FILES:
                self._close(next(iter(self._open)))
            found = self._open[thread] = self._opened(thread)
        return found[0]

    def _opened(self, thread: int) -> tuple[CallTranscript, list[str], FileIO]:
        mode = "a" if thread in self._begun else "w"
        self._begun.add(thread)
        try:
            file = FileIO(f"{self._path}.{thread}", mode)
        except OSError as error:
            raise CommandError(f"-o {self._path}.{thread}: {error.strerror}") from error
        lines: list[str] = []
        return CallTranscript(lines.append, self._lead, self._column), lines, file

    def _close(self, thread: int) -> None:
        found = self._open.pop(thread, None)
        if found is None:
            return
        transcript, lines, file = found
        transcript.close()
        try:
            file.write("".join(lines).encode(errors="surrogateescape"))
            file.close()
        except OSError as error:
            self.failure = self.failure or error

    def message(self, text: str) -> None:
        """A word of our own on standard error."""
        if self._path is None:
            self.stand_alone(text)
            return
        try:
            self._stream.write(f"{text}\n".encode())
            self._stream.flush()
        except OSError:
            return

    def stand_alone(self, text: str) -> None:
        """A line that belongs to no thread."""
        if self._each:
            self.message(text)
        elif self._main is not None:
            self._main.stand_alone(text)

    def close_lines(self) -> None:
        """End lines that nothing continues."""
        for thread in list(self._open):
            self._close(thread)
        if self._main is not None:
            self._main.close()

    def flush(self) -> None:
        """Write what is kept."""
        if self._buffer and self.failure is None:
            data = "".join(self._buffer).encode(errors="surrogateescape")
            file = self._stream if self._file is None else self._file
            try:
                while data:
                    data = data[file.write(data) or 0 :]
                file.flush()
            except OSError as error:
                self.failure = error
        self._buffer.clear()
        self._held = 0

    def remarks(self) -> tuple[Report, ...]:
        """Report on what could not be written."""
        if self.failure is None:
            return ()
        name = "standard error" if self._path is None else f"-o {self._path}"
        return (Report((f"the calls are not complete: {name}: {self.failure.strerror}",)),)

    def _write(self, text: str) -> None:
        self._buffer.append(text)
        self._held += len(text)
        if self._file is None or self._held > _PIECE:
            self.flush()
