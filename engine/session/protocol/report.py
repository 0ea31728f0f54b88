"""The end of a run: exit code, reason and remarks."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

NOT_WHOLE: Final = 2
"""Exit code where a run's trace or recording could not be written, however the guest ended."""


class Report(Struct, frozen=True):
    """One remark, in lines; the first says it, the others explain."""

    lines: tuple[str, ...]


class Reports(Struct, frozen=True):
    """The end of a run and remarks about it.

    Attributes:
        exit_code: the process exit code that stands for it: 128+N for signal N, 124 for a limit.
        reason: in a few words on one line.
        remarks: in the order to show them.
        damage: remarks about damaged files, which come before all others.
        troubles: those of the remarks that are about what the guest asked for in vain.
        limit: "timeout", "max-blocks" or "deadlock" if that has ended the run; "" if not.
    """

    exit_code: int
    reason: str
    remarks: tuple[Report, ...] = ()
    damage: tuple[Report, ...] = ()
    troubles: tuple[Report, ...] = ()
    limit: str = ""

    def after(self, *damage: Report) -> "Reports":
        """The same with more about damaged files."""
        return replace(self, damage=(*self.damage, *damage))

    def not_whole(self) -> "Reports":
        """The same of a run whose trace or recording could not be written."""
        return replace(self, exit_code=NOT_WHOLE)

    def behind(self, *first: Report) -> "Reports":
        """The same with these remarks in front."""
        return replace(self, remarks=(*first, *self.remarks))
