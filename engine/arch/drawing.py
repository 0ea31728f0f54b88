"""Units of code taken apart for people: what stands in each, and what a hit does with it.

For architectures where several instructions share a unit (a bundle), so that a row of bytes says
little. Whoever shows a hit draws what `ArchProbes.draw` gives, without knowing what a slot is.
"""

from typing import Literal

from msgspec import Struct

Role = Literal["", "break", "other", "step", "run", "idle", "jump"]
"""Role of a part in a hit.

"": the program's own; "break": the breakpoint of this hit; "other": another probe's; "step": the
copy that is stepped; "run": runs on behind it; "idle": is copied only; "jump": the engine's own.
"""


class UnitPart(Struct, frozen=True):
    """A part of a unit.

    Attributes:
        name: number and kind ("1 I").
        word: its bits in hex.
        text: the instruction.
        role: in the hit.
        instead: the program's own instruction, where another stands in its place.
    """

    name: str
    word: str
    text: str
    role: Role = ""
    instead: str = ""


class UnitDrawing(Struct, frozen=True):
    """A unit.

    Attributes:
        what: "site", "copy", or what stands behind the copy: "boost".
        address: of the unit.
        form: what kind of unit it is ("template 10, MIB").
        parts: in order.
    """

    what: str
    address: int
    form: str
    parts: tuple[UnitPart, ...]


class DrawnHit(Struct, frozen=True):
    """A hit as it is to be drawn.

    Attributes:
        standing: bytes of the unit as they stand at the site, all probes in it.
        slot: address of the copy, None without one.
        code: what stands there and behind it.
        boosted: what stands behind the copy is reached.
    """

    standing: bytes
    slot: int | None
    code: bytes
    boosted: bool
