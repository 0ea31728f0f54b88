"""Events that the guest's kernel has without a definition: their groups, and how to ask."""

import re
from typing import Final, NamedTuple

from engine.trace import sched, synthetic, syscalls

_KERNELS: Final = (syscalls.GROUP, sched.GROUP)
EPROBES: Final = "eprobes"
"""The group of event probes that name none."""
GROUPS: Final = (*_KERNELS, synthetic.GROUP, EPROBES)
"""The groups that there are."""

_EPROBE: Final = re.compile(r"e(?:\w{0,2}:|\d*\s+[\w-]*[./])", re.ASCII)
"""The kernel looks at the first letter alone; the interface has words that begin with it."""
_SELECTION: Final = re.compile(rf"({'|'.join(_KERNELS)})[/:](.*)", re.DOTALL)


class Selection(NamedTuple):
    """Events of one group whose names match a pattern."""

    group: str
    glob: str


def selection(text: str) -> Selection | None:
    """The events that `GROUP/GLOB`, `GROUP:GLOB`, `s:...` or `e:...` means; None for other texts.

    A synthetic event and an event probe have their whole definition for a pattern.
    """
    if _EPROBE.match(text.lstrip()) is not None:
        return Selection(EPROBES, text.strip())
    if synthetic.is_definition(text):
        return Selection(synthetic.GROUP, text.strip())
    match = _SELECTION.fullmatch(text.strip())
    return Selection(match[1], match[2]) if match else None
