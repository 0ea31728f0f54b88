"""Events that the guest's kernel has without a definition: their groups, and how to ask."""

import re
from typing import Final, NamedTuple

from engine.trace import sched, syscalls

GROUPS: Final = (syscalls.GROUP, sched.GROUP)
"""The groups that there are."""

_SELECTION: Final = re.compile(rf"({'|'.join(GROUPS)})[/:](.*)", re.DOTALL)


class Selection(NamedTuple):
    """Events of one group whose names match a pattern."""

    group: str
    glob: str


def selection(text: str) -> Selection | None:
    """The events that `GROUP/GLOB` or `GROUP:GLOB` means; None for other texts."""
    match = _SELECTION.fullmatch(text.strip())
    return Selection(match[1], match[2]) if match else None
