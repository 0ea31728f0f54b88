"""The end of a run: exit code, reason and remarks."""

from dataclasses import dataclass, replace
from typing import Final

TIMED_OUT: Final = "stopped: the time limit (--timeout) ran out"


@dataclass(frozen=True, slots=True)
class Report:
    """One remark, in lines; the first says it, the others explain."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reports:
    """The end of a run and remarks about it.

    Attributes:
        exit_code: the process exit code that stands for it: 128+N for signal N, 124 for a limit.
        reason: in a few words on one line.
        remarks: in the order to show them.
    """

    exit_code: int
    reason: str
    remarks: tuple[Report, ...] = ()

    def behind(self, *first: Report) -> "Reports":
        """The same with these remarks in front."""
        return replace(self, remarks=(*first, *self.remarks))
