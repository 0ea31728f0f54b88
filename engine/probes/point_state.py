"""The state of a probed address: what stands there, and whether it may be something faster.

Both are values. A transition gives the next value, and asserts that it is one that can come next.
"""

from enum import Enum, auto
from typing import Final, Literal, Protocol, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from engine.probes.placement_rules import Check


class Replacement(Protocol):
    """Something that a technique has put in the place of a breakpoint."""

    @property
    def kind(self) -> str:
        """The name under which people see it: "jump"."""

    @property
    def bypass(self) -> int | None:
        """Address of its displaced instructions, for a breakpoint that stands in front of it.

        None where the instruction is carried out as with a breakpoint alone.
        """

    @property
    def window(self) -> int:
        """One past the last byte of the program's that it stands in place of."""

    @property
    def trap(self) -> int | None:
        """Address of its own trap at which the engine serves a hit, None if no hit needs one."""

    @property
    def code(self) -> bytes:
        """All of its code outside of the program's."""


@runtime_checkable
class LeadingReplacement(Replacement, Protocol):
    """One whose hits may go to code that another one made."""

    def lead(self, code: int) -> bool:
        """Have them go there, with the registers as they are at the probe; False if it cannot."""

    def leave(self) -> None:
        """Leave them to the engine."""


class Stage(Enum):
    """Kinds of things that stand at a probed address."""

    DISARMED = auto()
    """The program's own instruction stands there."""
    BREAKPOINT = auto()
    REPLACED = auto()
    """A technique's replacement of the breakpoint."""
    STOP = auto()
    """A debugger's breakpoint; what it lets pass goes on in the replacement."""
    CHECK = auto()
    """A breakpoint until all CPUs have passed it; the replacement is ready behind it."""


HELD: Final = (Stage.STOP, Stage.CHECK)
"""A breakpoint stands in front of a replacement."""


class PointState(Struct, frozen=True):
    """The thing that stands at a probed address.

    Attributes:
        stage: the kind of thing.
        replacement: what has taken the breakpoint's place, or is about to; None before that.
    """

    stage: Stage
    replacement: Replacement | None = None

    @property
    def held(self) -> Literal["", "stop", "check"]:
        """Why a breakpoint stands in front of a replacement, "" if none does."""
        if self.stage is Stage.STOP:
            return "stop"
        return "check" if self.stage is Stage.CHECK else ""

    @property
    def technique(self) -> str:
        """Name of it for people: a debugger's stop is left out."""
        if self.replacement is None or self.stage is Stage.CHECK:
            return "breakpoint"
        return self.replacement.kind

    def arm(self) -> "PointState":
        """A breakpoint is planted."""
        assert self.stage is Stage.DISARMED, self
        return _BREAKPOINT

    def disarm(self) -> "PointState":
        """The breakpoint is lifted, or has gone with its code."""
        assert self.stage is Stage.BREAKPOINT, self
        return DISARMED

    def replaced(self, replacement: Replacement, stage: Stage = Stage.REPLACED) -> "PointState":
        """A technique takes the breakpoint's place; in `HELD` it waits behind the breakpoint."""
        assert self.stage is Stage.BREAKPOINT, self
        assert stage is Stage.REPLACED or stage in HELD, stage
        return PointState(stage, replacement)

    def checked(self, *, stop: bool) -> "PointState":
        """All CPUs have passed the breakpoint: it goes, unless it is a debugger's, too."""
        assert self.stage is Stage.CHECK, self
        return PointState(Stage.STOP if stop else Stage.REPLACED, self.replacement)

    def fall_back(self) -> "PointState":
        """A plain breakpoint comes back."""
        assert self.replacement is not None, self
        return _BREAKPOINT


DISARMED: Final = PointState(Stage.DISARMED)
_BREAKPOINT: Final = PointState(Stage.BREAKPOINT)


class Look(Enum):
    """Stages of a breakpoint on the way to something faster."""

    NOT_YET = auto()
    """Not looked at as its probes are now: its hits are counted."""
    DUE = auto()
    """The point has been hit so often that it is to be looked at."""
    LOOKED = auto()
    """Looked at as its probes are now."""


class Candidacy(Struct, frozen=True):
    """Knowledge about replacing a point's breakpoint by something faster.

    Attributes:
        look: how far it has come.
        why: the condition that it does not meet; None if that is not known, or it meets all.
        hot: it has been replaced: it is again as soon as nothing speaks against it.
        patience: further hits that are waited for in a large function, 0 before the first ones.
    """

    look: Look = Look.NOT_YET
    why: Check | None = None
    hot: bool = False
    patience: int = 0

    @property
    def due(self) -> bool:
        """True while the engine has to look at it."""
        return self.look is Look.DUE

    @property
    def looked(self) -> bool:
        """True once it has been looked at as its probes are now."""
        return self.look is Look.LOOKED

    def counted(self) -> "Candidacy":
        """Take note of as many hits as were waited for; a known point needs no further look."""
        return self if self.looked else replace(self, look=Look.DUE)

    def patient(self, hits: int) -> "Candidacy":
        """The look takes so long that further hits are waited for, once."""
        assert self.due, self
        assert not self.patience, self
        return replace(self, look=Look.NOT_YET, patience=hits)

    def put_off(self, why: Check | None = None) -> "Candidacy":
        """Put a look, or a replacement, off: hits are counted again."""
        assert not self.looked, self
        return replace(self, look=Look.NOT_YET, why=why)

    def refused(self, why: Check) -> "Candidacy":
        """Let the point stay a breakpoint."""
        return replace(self, look=Look.LOOKED, why=why)

    def replaced(self, why: Check | None = None) -> "Candidacy":
        """Take note that the point was replaced; `why` says what it still waits for."""
        assert not self.looked, self
        return replace(self, look=Look.LOOKED, why=why, hot=True)

    def cleared(self) -> "Candidacy":
        """Nothing is waited for any more."""
        assert self.looked, self
        return replace(self, why=None)

    def renewed(self) -> "Candidacy":
        """Have the point looked at anew: its probes want something else."""
        if self.look is Look.NOT_YET and self.why is None:
            return self
        return replace(self, look=Look.DUE if self.due else Look.NOT_YET, why=None)


class InsnCopy(Struct, frozen=True):
    """The displaced instruction's copy, which is carried out of line.

    Attributes:
        slot: address of the point's own slot, None without one.
        code: what stands in the slot, the trap or jump behind the copy included.
        boosted: the slot ends with a jump back in place of a trap.
        scratch: the copy uses the plan's scratch register.
        passes: bytes of the program's instruction, where a hit that is recorded has only to go
            through the slot from its start; 0 where there is more to it.
    """

    slot: int | None = None
    code: bytes = b""
    boosted: bool = False
    scratch: bool = False
    passes: int = 0


NO_COPY: Final = InsnCopy()
