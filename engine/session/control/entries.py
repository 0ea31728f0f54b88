"""The rows of the list of probes, and what they have come to in one run."""

from dataclasses import dataclass, field

from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe
from engine.session.control.event_rules import NO_TEXTS, EventTexts
from engine.session.program.verdicts import Placed
from engine.session.tracing.event_set import Defined


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the list, without the run it belongs to.

    Attributes:
        id: of the probe.
        kind: "p" for a definition of any kind, "b" for a breakpoint.
        line: the definition, or the breakpoint's place.
        enabled: whether it records.
        stops: whether the guest stops there.
        rules: filter and triggers of its event.
    """

    id: int
    kind: str
    line: str
    enabled: bool = True
    stops: bool = False
    rules: EventTexts = NO_TEXTS


@dataclass(eq=False, slots=True)
class Entry:
    """A row and what it has come to in the run at hand.

    Attributes:
        row: it.
        placed: its places and the verdicts on them.
        defined: of a definition.
        stoppers: probes that stop the guest, one a place.
    """

    row: Row
    placed: tuple[Placed, ...]
    defined: Defined | None = None
    stoppers: list[Kprobe] = field(default_factory=list)

    @property
    def probes(self) -> tuple[Kprobe, ...]:
        """Its probes; a breakpoint's own ones."""
        return self.defined.probes if self.defined else tuple(self.stoppers)

    @property
    def catches_returns(self) -> bool:
        """Whether it is a return probe: it stops at the entry and at the return."""
        return any(isinstance(probe, Kretprobe) for probe in self.probes)

    @property
    def event(self) -> str:
        """GROUP/NAME, "" for a breakpoint."""
        if self.defined is None:
            return ""
        return f"{self.defined.definition.group}/{self.defined.definition.event}"


Rows = tuple[Row, ...]
