"""The table of -c: calls, errors and ticks by name."""

from collections.abc import Iterator
from typing import Final

from engine.errors import CommandError

SORTS: Final = {
    "time": "ticks", "time-total": "ticks", "time_total": "ticks", "total-time": "ticks",
    "total_time": "ticks", "calls": "calls", "count": "calls", "errors": "errors",
    "error": "errors", "name": "name", "syscall": "name", "syscall-name": "name",
    "syscall_name": "name", "nothing": "", "none": "",
}  # fmt: skip
"""Orders of the table by strace's names: the column, "" for none."""
_HEAD: Final = "% time       ticks  ticks/call     calls    errors syscall"
_RULE: Final = "------ ----------- ----------- --------- --------- ----------------"


class CallCounts:
    """Counts calls; times are ticks of the guest's clock, of which a call itself takes few."""

    def __init__(self, sort: str = "time") -> None:
        """Count nothing yet.

        Args:
            sort: a name of `SORTS`.

        Raises:
            CommandError: there is no such order.
        """
        if sort not in SORTS:
            raise CommandError(
                f"-S: invalid order {sort!r}; time, calls, errors, name and nothing are"
            )
        self._sort = SORTS[sort]
        self._rows: dict[str, list[int]] = {}

    def add(self, name: str, ticks: int, *, failed: bool) -> None:
        """Count a call that has returned."""
        row = self._rows.setdefault(name, [0, 0, 0])
        row[0] += ticks
        row[1] += 1
        row[2] += failed

    def lines(self) -> Iterator[str]:
        """The table."""
        rows = list(self._rows.items())
        order = {"ticks": 0, "calls": 1, "errors": 2}
        if self._sort == "name":
            rows.sort()
        elif self._sort:
            place = order[self._sort]
            rows.sort(key=lambda each: (-each[1][place], -each[1][1], each[0]))
        total = [sum(row[at] for _, row in rows) for at in range(3)]
        yield _HEAD
        yield _RULE
        for name, (ticks, calls, errors) in rows:
            share = 100 * ticks / total[0] if total[0] else 0.0
            yield _line(f"{share:6.2f}", ticks, ticks // calls, calls, errors, name)
        yield _RULE
        each = total[0] // total[1] if total[1] else 0
        yield _line("100.00", total[0], each, total[1], total[2], "total")


def _line(share: str, ticks: int, each: int, calls: int, errors: int, name: str) -> str:
    shown = str(errors) if errors else ""
    return f"{share} {ticks:11d} {each:11d} {calls:9d} {shown:>9} {name}"
