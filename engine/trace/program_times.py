"""Programs by number, and which of them each thread was in when: rows are named accordingly."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from engine.arch.program import THREAD_MOST
from engine.trace.rows import HEAD, TIME

_END: Final = 1 << 64


class ProgramTimes(Struct):
    """The times at which threads came into programs; 0 is the one that a run begins with."""

    _since: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def began(self, thread: int, time: int, number: int) -> None:
        """A thread is in a program from a time on, in ticks."""
        if number or thread in self._since:
            times = self._since.setdefault(thread, [])
            if not times or times[-1][1] != number:
                times.append((time, number))

    def forget(self, number: int) -> None:
        """No row of a program will come any more: nor of the threads that were in it last."""
        for thread in [one for one, times in self._since.items() if times[-1][1] == number]:
            del self._since[thread]

    def of(self, thread: int, time: int) -> int:
        """Number of the program that a thread was in at a time."""
        times = self._since.get(thread)
        if not times:
            return 0
        index = bisect_right(times, (time, _END)) - 1
        return times[index][1] if index >= 0 else 0

    def runs(self, rows: bytes) -> Iterator[tuple[int, bytes]]:
        """Pieces of rows that are from one program each, with its number."""
        if not self._since:
            if rows:
                yield 0, rows
            return
        start = position = 0
        now = -1
        while position < len(rows):
            _, size, thread = HEAD.unpack_from(rows, position)
            number = self.of(thread & THREAD_MOST, *TIME.unpack_from(rows, position + HEAD.size))
            if number != now:
                if position > start:
                    yield now, rows[start:position]
                start, now = position, number
            position += size * 8
        if position > start:
            yield now, rows[start:]

    def state(self) -> dict[str, list[tuple[int, int]]]:
        """The same as plain data."""
        return {str(thread): list(times) for thread, times in self._since.items()}

    @classmethod
    def restored(cls, state: Mapping[str, Sequence[Sequence[int]]]) -> "ProgramTimes":
        """Read plain data; ValueError or TypeError if it is none."""
        return cls(
            {
                int(thread): [(int(time), int(number)) for time, number in times]
                for thread, times in state.items()
            }
        )
