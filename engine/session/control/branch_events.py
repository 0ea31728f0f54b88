"""The events of two branches side by side: the first that is not the same, and how many there are.

Neither branch has kept its rows: both are lived through once more, in turn, with what is recorded
now in place from their start on.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from typing import Final

from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.errors import KprobeTuiError
from engine.session.control.branches import KeptRun
from engine.session.control.past_log import LogContent, PastLog
from engine.trace.formats.event_text import EventLines
from engine.trace.rows import HEAD, TIME, EventInfo, EventSource, whole

_KINDS: Final = 40
"""Events whose counts are shown."""
_HEAD: Final = 40
"""Characters of a long event that are shown of its begin, where they are the same."""
_BEFORE: Final = 20
"""Characters that are shown in front of the first that differs."""
_WIDE: Final = 80
"""Characters that are shown from there on."""


class SharedNumbers:
    """The same number for the same event of both branches.

    Attributes:
        table: the events by these.
    """

    def __init__(self) -> None:
        """There are no events yet."""
        self.table: dict[int, EventInfo] = {}
        self._known: dict[tuple[str, str], int] = {}

    def of(self, info: EventInfo) -> int:
        """The number of an event."""
        key = info.group, info.name
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self.table) + 1
            self.table[number] = replace(info, id=number)
        return number


class BranchEvents:
    """The rows of one branch, which come piece by piece.

    Attributes:
        rest: whole rows at hand that nobody has taken.
        counts: of rows that were taken, by the numbers of their events.
        refused: what could not be placed in the branch's past, in words.
        failed: why the rows end too early, "" where they do not.
    """

    def __init__(
        self,
        run: KeptRun,
        wanted: LogContent,
        mode: Mode,
        numbers: SharedNumbers,
        goes_on: Callable[[], bool],
    ) -> None:
        """Place what is wanted; the branch stands in front of its first instruction.

        Args:
            run: the branch's run.
            wanted: what is to be recorded.
            mode: strictness of placement.
            numbers: of events.
            goes_on: asked now and then: False ends it.
        """
        travel = run.travel
        self._end, self._over = travel.present(), travel.is_over
        past = travel.fresh()
        past.kernel.reached = self._end.clock
        try:
            self._log = PastLog(past, wanted, mode, numbers.of, self._take)
        except BaseException:
            past.close()
            raise
        self._goes_on = goes_on
        self._done = self._cut = False
        self._lines = EventLines(numbers.table, self._log.tracing.names())
        self._table = numbers.table
        self.rest = b""
        self.counts: Counter[int] = Counter()
        self.refused, self.failed = self._log.refused, ""

    def _take(self, rows: bytes) -> None:
        self.rest += rows

    def fill(self) -> bool:
        """Have rows at hand, if there are any left; False if that was cut."""

        def ask(clock: int) -> bool:
            self._cut = self._cut or not self._goes_on()
            return not self._cut and not self.rest

        while not self.rest and not self._done and not self._cut:
            try:
                upto = self._log.run(self._end, over=self._over, goes_on=ask)
                self._done = upto is None
            except KprobeTuiError as error:
                self._done, self.failed = True, str(error)
        return not self._cut

    @property
    def has_ended(self) -> bool:
        """True if the run itself brings no more rows."""
        return self._over and not self.failed

    def take_all(self) -> bool:
        """Count all rows that are left; False if that was cut."""
        while self.fill():
            if not self.rest:
                return True
            self.drop(len(self.rest))
        return False

    def drop(self, size: int) -> None:
        """So many bytes of whole rows are dealt with."""
        rows, position = self.rest, 0
        while position < size:
            number, words, thread = HEAD.unpack_from(rows, position)
            self.counts[whole(number, thread)[0]] += 1
            position += words * 8
        self.rest = rows[size:]

    def text(self) -> str:
        """The first row at hand as the log shows it."""
        if not self.rest:
            return "nothing more"
        number, words, thread = HEAD.unpack_from(self.rest)
        if self._table[whole(number, thread)[0]].source is EventSource.STACK:
            return "another stack of the event before it"
        return self._lines.rows(self.rest[: words * 8])[0].decode(errors="replace")

    def close(self) -> None:
        """Give the past back."""
        self._log.close()


def compared_events(
    sides: tuple[str, str],
    runs: tuple[KeptRun, KeptRun],
    wanted: LogContent,
    mode: Mode,
    goes_on: Callable[[], bool],
) -> list[str]:
    """The first event that differs, and how many of each there are, in words; none without events.

    Args:
        sides: names of the branches, of one width.
        runs: the runs of the two branches.
        wanted: what is recorded of both.
        mode: strictness of placement.
        goes_on: asked now and then: False ends it.
    """
    if not (wanted.rows or wanted.graph or any(globs for _, globs in wanted.kernel)):
        return []
    numbers = SharedNumbers()
    with ExitStack() as given_back:
        both = [
            given_back.enter_context(closing(BranchEvents(run, wanted, mode, numbers, goes_on)))
            for run in runs
        ]
        lines = _first_difference(sides, both) or ["no event differs, so far as both have come"]
        taken = [one.take_all() for one in both]
        lines += _counts(sides, both, numbers)
        if not all(taken):
            lines.append("interrupted: the events behind that were not compared")
        for name, one in zip(sides, both, strict=True):
            lines += [f"  {name}: not in the past: {text}" for text in one.refused]
            if one.failed:
                lines.append(f"  {name}: the events end early: {one.failed}")
    return lines


def _first_difference(sides: tuple[str, str], both: Sequence[BranchEvents]) -> list[str]:
    """The first event that is not the same, whenever it came; what both have is counted."""
    left, right = both
    while left.fill() and right.fill():
        size = min(len(left.rest), len(right.rest))
        if not size:
            if not any(one.rest for one in both) or any(
                not one.rest and not one.has_ended for one in both
            ):
                return []
            return _shown(sides, both)
        same = _same_rows(left.rest, right.rest, size)
        for one in both:
            one.drop(same)
        if all(one.rest for one in both):
            return _shown(sides, both)
    return []


def _same_rows(ours: bytes, theirs: bytes, size: int) -> int:
    """Bytes of the whole rows at the front that differ in nothing but their times."""
    if ours[:size] == theirs[:size] and len(ours) == len(theirs):
        return size
    position = 0
    times = slice(HEAD.size, HEAD.size + TIME.size)
    while position < size:
        end = position + HEAD.unpack_from(ours, position)[1] * 8
        one, other = ours[position:end], theirs[position:end]
        if one != other and (one[: times.start], one[times.stop :]) != (
            other[: times.start],
            other[times.stop :],
        ):
            break
        position = end
    return position


def _shown(sides: tuple[str, str], both: Sequence[BranchEvents]) -> list[str]:
    texts = [one.text() for one in both]
    after = [text.partition(" ")[2] for text in texts]  # behind the time
    pairs = enumerate(zip(*after, strict=False))
    first = next((at for at, (one, other) in pairs if one != other), min(map(len, after)))
    lines = ["the first event that differs:"]
    for name, text in zip(sides, texts, strict=True):
        lines.append(f"  {name}: {_cut(text, len(text.partition(' ')[0]) + 1 + first)}")
    return lines


def _cut(text: str, first: int) -> str:
    """A long text without some of what is the same in both."""
    cut = min(max(first - _BEFORE, 0), max(len(text) - _WIDE, 0))
    if cut > _HEAD:
        text = f"{text[:_HEAD]}...{text[cut:]}"
    return text if len(text) <= _WIDE + _HEAD else f"{text[: _WIDE + _HEAD]}..."


def _counts(
    sides: tuple[str, str], both: Sequence[BranchEvents], numbers: SharedNumbers
) -> list[str]:
    """The numbers of rows of each event: those that differ first."""
    rows = [
        (str(info), both[0].counts[number], both[1].counts[number])
        for number, info in numbers.table.items()
        if info.source is not EventSource.STACK and any(one.counts[number] for one in both)
    ]
    if not rows:
        return ["no event is recorded in either of them"]
    rows.sort(key=lambda row: (row[1] == row[2], row[0]))
    shown = rows[:_KINDS]
    name = max(len(row[0]) for row in shown)
    widths = [
        max(len(side.strip()), *(len(str(row[number])) for row in shown))
        for number, side in enumerate(sides, 1)
    ]
    heads = (side.strip().rjust(width) for side, width in zip(sides, widths, strict=True))
    lines = [f"events: {''.ljust(max(name - 6, 0))} {' '.join(heads)}"]
    lines += [
        f"  {row[0].ljust(name)} {str(row[1]).rjust(widths[0])} {str(row[2]).rjust(widths[1])}"
        for row in shown
    ]
    if rows[_KINDS:]:
        lines.append(f"  and {len(rows) - _KINDS} more")
    return lines
