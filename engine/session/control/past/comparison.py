"""Two branches side by side: the first thing that differs, the first event, and counts of events.

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
from engine.history.comparing import explained, parting, shown_op
from engine.history.journal import Journal, Op
from engine.session.control.past.log import LogContent, PastLog
from engine.session.control.runs import KeptRun
from engine.trace.formats.event_text import EventLines
from engine.trace.rows import HEAD, TIME, EventInfo, EventSource, whole


def compared(sides: tuple[str, str], runs: tuple[KeptRun, KeptRun]) -> list[str]:
    """The place at which two branches part, in words.

    Args:
        sides: names of the branches, of one width.
        runs: the runs of the two branches.
    """
    left, right = runs
    for run in runs:
        run.travel.recorder.sync()
    journals = left.travel.recorder.journal, right.travel.recorder.journal
    ends = [run.travel.present().clock for run in runs]
    over = [run.travel.is_over for run in runs]
    changed = [_changes(run) for run in runs]
    found = parting(*journals, *changed)
    if found is None:
        lines = ["they do the same"]
    elif any(
        at >= len(journal) and not done
        for at, journal, done in zip(found, journals, over, strict=True)
    ):
        lines = [f"they do the same up to tick {min(ends)}, to which one of them has come"]
    else:
        clocks = [
            journal[at].clock if at < len(journal) else end
            for at, journal, end in zip(found, journals, ends, strict=True)
        ]
        lines = [f"they part at tick {min(clocks)}:"]
        lines += [
            f"  {name}: {_entry(journal, at, edits)}"
            for name, journal, edits, at in zip(sides, journals, changed, found, strict=True)
        ]
    lines += _outputs(sides, *journals, over)
    lines += _edits(sides, journals, changed)
    lines.append("they have come to:")
    lines += [
        f"  {name}: tick {end}, {_end(run)}"
        for name, end, run in zip(sides, ends, runs, strict=True)
    ]
    return lines


def _changes(run: KeptRun) -> set[int]:
    inputs = run.travel.recorder.inputs
    return (
        {act.moment.at for act in inputs.acts if act.makes_entry} if inputs is not None else set()
    )


def _entry(journal: Journal, at: int, edits: set[int]) -> str:
    if at >= len(journal):
        return "nothing more has happened"
    entry = journal[at]
    if at in edits:
        return f"a change by the user at tick {entry.clock}"
    return explained(entry)


def _edits(
    sides: tuple[str, str], journals: tuple[Journal, Journal], changed: list[set[int]]
) -> list[str]:
    """Changes by the user in one of the runs only."""
    shown = []
    for name, journal, edits, others, theirs in zip(
        sides, journals, changed, journals[::-1], changed[::-1], strict=True
    ):
        known = {others.raw[at] for at in theirs if at < len(others)}
        for at in sorted(edits):
            if at < len(journal) and journal.raw[at] not in known:
                entry = journal[at]
                what = ", ".join(
                    shown_op(op)
                    for op in entry.ops
                    if op[0] in (Op.REGISTER, Op.WRITE, Op.POKE, Op.SIGNAL)
                )
                shown.append(f"  {name}: at tick {entry.clock}: {what or 'a signal'}")
    return ["the user has changed:", *shown] if shown else []


def _outputs(
    sides: tuple[str, str], ours: Journal, theirs: Journal, over: Sequence[bool]
) -> list[str]:
    """The first output that is not the same.

    Args:
        sides: names.
        ours: journal of one.
        theirs: of the other.
        over: which of them have ended: another one may still write what the other has.
    """
    written = [_OutputReader(journal) for journal in (ours, theirs)]
    while True:
        for one in written:
            one.fill()
        size = min(len(one.rest) for one in written)
        if size and written[0].rest[:size] == written[1].rest[:size]:
            for one in written:
                one.drop(size)
            continue
        if not any(one.rest for one in written):
            return []
        if any(not one.rest and not done for one, done in zip(written, over, strict=True)):
            return []
        first = next((n for n in range(size) if written[0].rest[n] != written[1].rest[n]), size)
        lines = ["the first output that differs:"]
        for name, one in zip(sides, written, strict=True):
            line = one.line(first)
            text = f"{line!r} at tick {one.clock}" if one.rest else "nothing more"
            lines.append(f"  {name}: {text}")
        return lines


class _OutputReader:
    """Gives what a run has written to the host, piece by piece."""

    def __init__(self, journal: Journal) -> None:
        self._pieces = journal.outputs()
        self.rest = b""
        self.clock = 0
        self._line = b""

    def fill(self) -> None:
        """Have a piece at hand, if there is any left."""
        while not self.rest:
            piece = next(self._pieces, None)
            if piece is None:
                return
            self.clock, _, self.rest = piece

    def drop(self, size: int) -> None:
        """So many bytes are dealt with."""
        self._line = (self._line + self.rest[:size]).rpartition(b"\n")[2]
        self.rest = self.rest[size:]

    def line(self, first: int) -> str:
        """The line that a byte of the piece is in."""
        before = (self._line + self.rest[:first]).rpartition(b"\n")[2]
        return (before + self.rest[first:].partition(b"\n")[0])[:80].decode(errors="replace")


def _end(run: KeptRun) -> str:
    running = run.place.present.running
    return running.reason


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
        self._lines = EventLines(numbers.table, self._log.tracing.row_names.made())
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
