"""The programs that a guest has run: what an address of a recorded row is called.

A process that begins another program (exec) has other code at the same addresses, so a row is
named by the program that its thread was in at its time, whatever the other panes show now.
"""

from collections.abc import Callable, Iterator, Sequence

from engine.session.protocol import events as ev
from engine.session.protocol.rows import MappedFile, ProgramTimes
from engine.session.protocol.views import ModuleView

Files = Sequence[ModuleView]
SymbolIn = Callable[[int, Files], str]
"""The name of an address where these files are."""
FileIn = Callable[[int, Files], MappedFile | None]
"""The one of these files whose code is at an address."""
LineIn = Callable[[int, Files], tuple[str, int] | None]
"""Source file and line of an address where these files are."""


class Programs:
    """Programs by number, as the engine tells of them; 0 is the one that a run begins with.

    Attributes:
        shown: the number of the program whose addresses `symbol` names.
    """

    def __init__(
        self,
        symbol_in: SymbolIn,
        file_in: FileIn = lambda address, files: None,
        line_in: LineIn = lambda address, files: None,
    ) -> None:
        """None is known yet."""
        self._symbol_in, self._file_in, self._line_in = symbol_in, file_in, line_in
        self.clear()

    def clear(self) -> None:
        """A new run."""
        self.shown = 0
        self._times = ProgramTimes()
        self._files: dict[int, list[ModuleView]] = {}

    def began(self, event: ev.ProgramBegan) -> None:
        """A thread has come into a program."""
        self._times.began(event.thread, event.time, event.program)

    def mapped(self, event: ev.FileMapped) -> None:
        """A program has a file in memory."""
        self._files.setdefault(event.program, []).insert(0, event.file)  # the newest is right

    def of(self, thread: int, time: int) -> int:
        """The number of the program that a thread was in at a time."""
        return self._times.of(thread, time)

    def runs(self, rows: bytes) -> Iterator[tuple[int, bytes]]:
        """Pieces of rows that are of one program each, with its number, which is shown then."""
        for number, piece in self._times.runs(rows):
            self.shown = number
            yield number, piece

    def symbol(self, address: int) -> str:
        """An address of the program that is shown, as the kernel's `%pS` prints it."""
        return self._symbol_in(address, self._files.get(self.shown, ()))

    def file(self, address: int) -> MappedFile | None:
        """The file of the program that is shown whose code is at an address."""
        return self._file_in(address, self._files.get(self.shown, ()))

    def line(self, address: int) -> tuple[str, int] | None:
        """Source file and line of an address of the program that is shown."""
        return self._line_in(address, self._files.get(self.shown, ()))

    def main(self, number: int) -> str:
        """The guest path of a program's file, "" if none is known."""
        files = self._files.get(number)
        return files[-1].path if files else ""
