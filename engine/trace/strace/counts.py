"""The table of -c: calls, errors and ticks by name."""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from engine.errors import CommandError

SORTS: Final = {
    "time": "ticks", "time-total": "ticks", "time_total": "ticks", "total-time": "ticks",
    "total_time": "ticks", "min-time": "least", "min_time": "least", "time-min": "least",
    "time_min": "least", "shortest": "least", "max-time": "most", "max_time": "most",
    "time-max": "most", "time_max": "most", "longest": "most", "avg-time": "mean",
    "avg_time": "mean", "time-avg": "mean", "time_avg": "mean", "calls": "calls",
    "count": "calls", "errors": "errors", "error": "errors", "name": "name", "syscall": "name",
    "syscall-name": "name", "syscall_name": "name", "nothing": "", "none": "",
}  # fmt: skip
"""Orders of the table by strace's names: the column, "" for none."""
_NAME: Final = "name"
_NAME_WIDTH: Final = 16


class _CallRow(Struct):
    """The sums of one call."""

    ticks: int = 0
    calls: int = 0
    errors: int = 0
    least: int = 0
    most: int = 0

    def add(self, ticks: int, *, failed: bool) -> None:
        self.least = min(self.least, ticks) if self.calls else ticks
        self.most = max(self.most, ticks)
        self.ticks += ticks
        self.calls += 1
        self.errors += failed

    @property
    def mean(self) -> int:
        return self.ticks // self.calls if self.calls else 0


class _CallColumn(Struct, frozen=True):
    """A column of numbers.

    Attributes:
        title: its head.
        width: in characters.
        text: of a row, and the ticks of all rows.
        value: that it is sorted by.
    """

    title: str
    width: int
    text: Callable[[_CallRow, int], str]
    value: Callable[[_CallRow], int]


_COLUMNS: Final = {
    "share": _CallColumn(
        "% time",
        6,
        lambda row, every: f"{100 * row.ticks / every if every else 0.0:.2f}",
        lambda row: row.ticks,
    ),
    "ticks": _CallColumn("ticks", 11, lambda row, _: str(row.ticks), lambda row: row.ticks),
    "least": _CallColumn("shortest", 8, lambda row, _: str(row.least), lambda row: row.least),
    "most": _CallColumn("longest", 8, lambda row, _: str(row.most), lambda row: row.most),
    "mean": _CallColumn("ticks/call", 11, lambda row, _: str(row.mean), lambda row: row.mean),
    "calls": _CallColumn("calls", 9, lambda row, _: str(row.calls), lambda row: row.calls),
    "errors": _CallColumn(
        "errors", 9, lambda row, _: str(row.errors or ""), lambda row: row.errors
    ),
}
_USUAL: Final = ("share", "ticks", "mean", "calls", "errors", _NAME)
COLUMNS: Final = {
    "time-percent": "share", "time_percent": "share",
    **{name: column for name, column in SORTS.items() if column},
}  # fmt: skip
"""Columns by strace's names."""


class CallCounts:
    """Counts calls; times are ticks of the guest's clock, of which a call itself takes few."""

    def __init__(self, sort: str = "time", columns: str | None = None) -> None:
        """Count nothing yet.

        Args:
            sort: a name of `SORTS`.
            columns: names of `COLUMNS` with commas between them; None for the usual ones.

        Raises:
            CommandError: there is no such order, or column.
        """
        if sort not in SORTS:
            raise CommandError(
                f"-S: invalid order {sort!r}; time, min-time, max-time, avg-time, calls, errors, "
                "name and nothing are"
            )
        self._sort = SORTS[sort]
        self._columns = _USUAL if columns is None else _columns_of(columns)
        self._rows: dict[str, _CallRow] = {}

    def add(self, name: str, ticks: int, *, failed: bool) -> None:
        """Count a call that has returned."""
        self._rows.setdefault(name, _CallRow()).add(ticks, failed=failed)

    def lines(self) -> Iterator[str]:
        """The table."""
        rows = list(self._rows.items())
        if self._sort == _NAME:
            rows.sort()
        elif self._sort:
            value = _COLUMNS[self._sort].value
            rows.sort(key=lambda each: (-value(each[1]), -each[1].calls, each[0]))
        every = [row for _, row in rows]
        total = _CallRow(
            ticks=sum(row.ticks for row in every),
            calls=sum(row.calls for row in every),
            errors=sum(row.errors for row in every),
            least=min((row.least for row in every), default=0),
            most=max((row.most for row in every), default=0),
        )
        yield self._joined(lambda column: _COLUMNS[column].title, "syscall")
        rule = self._joined(lambda column: "-" * _COLUMNS[column].width, "-" * _NAME_WIDTH)
        yield rule
        for name, row in rows:
            yield self._row(name, row, total.ticks)
        yield rule
        yield self._row("total", total, total.ticks)

    def _row(self, name: str, row: _CallRow, every: int) -> str:
        """A row; the total's share is the whole, of nothing too, as strace says."""

        def text(column: str) -> str:
            if column == "share" and name == "total":
                return "100.00"
            return _COLUMNS[column].text(row, every)

        return self._joined(text, name)

    def _joined(self, text: Callable[[str], str], name: str) -> str:
        parts = [
            f"{name:<{_NAME_WIDTH}}" if each == _NAME else f"{text(each):>{_COLUMNS[each].width}}"
            for each in self._columns
        ]
        if self._columns[-1] == _NAME:
            parts[-1] = name
        return " ".join(parts)


def _columns_of(text: str) -> tuple[str, ...]:
    """The columns of -U; a table without names has them at the end.

    Raises:
        CommandError: there is no such column, or one is there twice.
    """
    found: list[str] = []
    for word in text.split(","):
        column = COLUMNS.get(word)
        if column is None:
            raise CommandError(
                f"-U: unknown column {word!r}; time-percent, total-time, min-time, max-time, "
                "avg-time, calls, errors and name are"
            )
        if column in found:
            raise CommandError(f"-U: {word!r} is there twice")
        found.append(column)
    return tuple(found) if _NAME in found else (*found, _NAME)
