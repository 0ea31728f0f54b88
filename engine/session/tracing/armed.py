"""Filter and triggers of an event, and what triggers do to the trace; histograms among them."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from engine.fetch.predicate import RowTest
from engine.trace.filter import EventFilter
from engine.trace.rows import EventInfo
from engine.trace.synthetic import SyntheticEvent
from engine.trace.trigger import NAMES, EventTrigger

if TYPE_CHECKING:
    from engine.trace.hist_readers import Key
    from engine.trace.histtable import HistTable


class Armed(Struct, eq=False):
    """A trigger of an event.

    Attributes:
        trigger: the trigger as it was parsed.
        test: whether a row meets its condition, None for every hit.
        act: what it does, given the row's buffer, the thread and the place.
        left: how often it may still fire, None for always.
        paused: whether it rests.
        table: of a histogram.
        makes: id of the event that an event probe makes here; 0 for other triggers.
        added: triggers that other events have because of this one, each with its event.
    """

    trigger: EventTrigger
    test: RowTest | None
    act: Callable[[Any, int, int], bool]
    left: int | None
    paused: bool = False
    table: "HistTable | None" = None
    makes: int = 0
    added: list[tuple[EventInfo, str]] = field(default_factory=list)

    def fire(self, data: Any, thread: int, place: int) -> None:
        """Act, if it may still; only what did something counts."""
        if self.left == 0:
            return
        if self.act(data, thread, place) and self.left is not None:
            self.left -= 1

    def listing(self) -> str:
        """The trigger's line in the event's `trigger` file."""
        spec = self.trigger.hist
        if spec is None:
            return self.trigger.listing(self.left)
        return spec.listing(self.trigger.condition, self.paused)


class EventControl(Struct):
    """Filter and triggers of one event, looked at when it is hit.

    Attributes:
        info: the event.
        filter: what passes, None for everything.
        bad_filter: what the event's `filter` file shows for one that was refused.
        triggers: in the order they are looked at.
        off: whether it records nothing for now (EVENT_FILE_FL_SOFT_DISABLED).
    """

    info: EventInfo
    filter: EventFilter | None = None
    bad_filter: str = ""
    triggers: list[Armed] = field(default_factory=list)
    off: bool = False

    @property
    def filter_text(self) -> str:
        """The event's `filter` file."""
        return self.bad_filter or (self.filter.text if self.filter is not None else "none")

    def trigger_lines(self) -> Iterator[str]:
        """The event's `trigger` file."""
        written = self.written
        if not written:
            yield "# Available triggers:"
            yield f"# {' '.join(NAMES)}"
        for armed in written:
            yield armed.listing()

    @property
    def written(self) -> list[Armed]:
        """The triggers that somebody has written there: none of those of event probes."""
        return [armed for armed in self.triggers if not armed.makes]


def _made_nowhere(event: SyntheticEvent, thread: int, values: "list[Key]", place: int) -> None:
    """There are no synthetic events."""


class ControlHooks(Struct, frozen=True):
    """Services of the trace that triggers call.

    Attributes:
        stack: records the call stack behind a row: (thread, place).
        stack_now: the call stack, innermost first.
        snapshot: keeps what is in the ring now; None without a ring.
        symbol: text of an address in the program that is hit.
        comm: a thread's name.
        syscall: a system call's name by its number.
        read_cstring: (address, limit) to the guest's bytes there.
        here: address of the instruction that the processor is at.
        changed: an event records in another way from now on.
        exact: whether names and strings are printed byte for byte.
        chosen: whether a thread's events are taken, by its id; None where all are.
        synthetic: events that triggers can make, by name.
        made: a trigger makes one: (event, thread, values, place).
    """

    stack: Callable[[int, int], None]
    stack_now: Callable[[], tuple[int, ...]]
    snapshot: Callable[[], None] | None
    symbol: Callable[[int], str]
    comm: Callable[[int], bytes | None]
    syscall: Callable[[int], str | None]
    read_cstring: Callable[[int, int], bytes]
    here: Callable[[], int]
    changed: Callable[[EventInfo], None]
    exact: bool = False
    chosen: Callable[[int], bool] | None = None
    synthetic: dict[str, SyntheticEvent] = field(default_factory=dict)
    made: "Callable[[SyntheticEvent, int, list[Key], int], None]" = _made_nowhere


def tables(
    controls: Iterable[tuple[tuple[str, str], EventControl | None]],
) -> Iterator[list[bytes]]:
    """The lines of each histogram; one that events share comes once for each.

    Args:
        controls: of events by group and name.
    """
    for key, control in controls:
        for armed in control.triggers if control is not None else ():
            if armed.table is not None:
                head = f"# event: {key[0]}/{key[1]}".encode(errors="surrogateescape")
                yield [head, *armed.table.lines(armed.trigger.condition, armed.paused)]
