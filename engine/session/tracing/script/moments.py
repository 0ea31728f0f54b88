"""The maps of a script at moments of its past: its actions run once more over what was recorded.

Rows are kept as they come, and copies of the maps now and then. The maps of a moment are those of
the copy before it, with the actions of the rows in between run again; what they print goes
nowhere. An action that reads memory at its hit cannot run again: its rows do not have that.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final

from engine.session.tracing.script.running import ScriptRun
from engine.trace.bpftrace.maps import ScriptMap, copies
from engine.trace.bpftrace.state import ScriptState
from engine.trace.rows import HEAD

MOST_KEPT: Final = 256 << 20
"""Bytes of rows that are kept; the oldest go first, and moments before the next copy with them."""
_BETWEEN: Final = 1 << 22
"""Bytes of rows between two copies."""
_OF_TIMER: Final = 100
"""Bytes that the action of a timer takes, which is kept as rows are."""
_TIME: Final = 8
"""The place of the tick in a row."""


class ScriptMoments:
    """Rows of a script's run, kept to know its maps at earlier moments.

    Attributes:
        is_whole: all moments from the start of the script on can be shown.
    """

    def __init__(self, run: ScriptRun, state: ScriptState) -> None:
        """Begin with the maps as they are now.

        Args:
            run: runs the actions.
            state: has the maps.
        """
        self._run = run
        self._state = state
        self._entries: list[bytes | Callable[[], None]] = []
        self._starts: list[int] = []
        self._copies: list[tuple[int, tuple[ScriptMap, ...]]] = [(0, self._now())]
        self._size = self._since = 0
        self.is_whole = True
        run.timed = self._timed

    def _now(self) -> tuple[ScriptMap, ...]:
        return copies(self._state.maps.values())

    def consume(self, data: bytes) -> None:
        """Keep rows and run their actions; a `Consumer`."""
        if not data or self._run.over:
            return
        self._keep(bytes(data), int.from_bytes(data[_TIME : 2 * _TIME], "little"), len(data))
        self._run.consume(data)

    def _timed(self, action: Callable[[], None]) -> None:
        """Keep that the action of a timer runs."""
        if not self._run.repeats:
            self._keep(action, self._run.session.cpu.now(), _OF_TIMER)

    def _keep(self, entry: "bytes | Callable[[], None]", tick: int, size: int) -> None:
        if self._since >= _BETWEEN:
            self._copies.append((len(self._entries), self._now()))
            self._since = 0
        self._entries.append(entry)
        self._starts.append(tick)
        self._size += size
        self._since += size
        if self._size > MOST_KEPT:
            self._forget()

    def _forget(self) -> None:
        """Drop the rows up to the second copy."""
        if len(self._copies) < 2:
            return
        count = self._copies[1][0]
        gone = self._entries[:count]
        self._size -= sum([len(each) if isinstance(each, bytes) else _OF_TIMER for each in gone])
        del self._entries[:count], self._starts[:count], self._copies[0]
        self._copies = [(number - count, maps) for number, maps in self._copies]
        self.is_whole = False

    def at(self, tick: int) -> Sequence[ScriptMap]:
        """The maps behind all hits up to a tick of the guest's clock."""
        end = bisect_right(self._starts, tick)
        number = bisect_right([at for at, _ in self._copies], max(end - 1, 0)) - 1
        first, maps = self._copies[max(number, 0)]
        present = self._now()
        try:
            self._become(maps)
            self._run.again([*self._entries[first : end - 1], *self._up_to(end - 1, tick)])
            return self._now()
        finally:
            self._become(present)

    def _up_to(self, number: int, tick: int) -> "list[bytes | Callable[[], None]]":
        """The rows of one batch up to a tick."""
        if number < 0:
            return []
        data = self._entries[number]
        if not isinstance(data, bytes):
            return [data]
        position = 0
        while position < len(data):
            event, words, _ = HEAD.unpack_from(data, position)
            time = int.from_bytes(data[position + _TIME : position + 2 * _TIME], "little")
            if self._run.acts_on(event) and time > tick:
                break
            position += words * 8
        return [data[:position]]

    def _become(self, maps: Sequence[ScriptMap]) -> None:
        for each in maps:
            self._state.maps[each.name].restore(each)
