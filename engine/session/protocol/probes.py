"""The user's probes: what was asked of each, and what came of that in a run.

`ProbeRow` is what the user asked: the list of probes, undo, another run of the program and the
next session are made of rows. `ProbeView` is a row with what is found and counted in one run.
"""

from typing import Final

from msgspec import Struct

from engine.image.symtab import shown_place


class EventTexts(Struct, frozen=True):
    """Filter and triggers of an event, as the user has typed them.

    Attributes:
        filter: what is recorded, "" for everything.
        triggers: in the order they were given.
    """

    filter: str = ""
    triggers: tuple[str, ...] = ()


NO_TEXTS: Final = EventTexts()


class ProbeRow(Struct, frozen=True):
    """A row of the list of probes, as the user asked for it; the same in every run.

    Attributes:
        id: number of the probe, the same as long as the probe is there.
        kind: "p" for a definition of any kind, "b" for a plain breakpoint.
        line: the definition as a line of `kprobe_events`, or the breakpoint's place.
        enabled: whether the probe records.
        stops: whether the guest stops when the probe is hit.
        rules: filter and triggers of the probe's event.
    """

    id: int
    kind: str
    line: str
    enabled: bool = True
    stops: bool = False
    rules: EventTexts = NO_TEXTS


class ProbeView(Struct, frozen=True):
    """A row of the list of probes, and what came of the row in the run that is shown.

    Attributes:
        row: what the user asked for.
        kind: "p", "r" for a return probe, "b" for a plain breakpoint.
        event: GROUP/NAME, "" for a breakpoint.
        place: SYMBOL+OFF, or PATH:OFFSET.
        addresses: guest addresses in the memory of the thread in sight; none where its file is
            not mapped.
        technique: "breakpoint" or "jump".
        how: "emulated", "xol" or "boosted"; "" while it is not armed.
        reason: why this technique and this way, in words.
        hits: times it was hit while enabled.
        misses: hits whose handlers did not run.
        pending: whether its file is mapped neither in the first process nor in the one in sight.
        gone: whether its code is not there any more.
        only: when it stops the guest, in words; "" for at every hit.
        refused: why the image's own kernel refuses it, in words; "" where it does not, or where
            the guest is no kernel image.
    """

    row: ProbeRow
    kind: str
    event: str
    place: str
    addresses: tuple[int, ...] = ()
    technique: str = "breakpoint"
    how: str = ""
    reason: str = ""
    hits: int = 0
    misses: int = 0
    pending: bool = False
    gone: bool = False
    only: str = ""
    refused: str = ""

    @property
    def shown(self) -> str:
        """The place, C++ names as people write them."""
        return shown_place(self.place)
