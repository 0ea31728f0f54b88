"""What is set for an event: its filter, its triggers, and what those do to the trace."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from engine.fetch.predicate import RowTest
from engine.trace.filter import EventFilter
from engine.trace.histtable import HistTable
from engine.trace.rows import EventInfo
from engine.trace.trigger import NAMES, EventTrigger


@dataclass(slots=True, eq=False)
class Armed:
    """A trigger of an event.

    Attributes:
        trigger: it.
        test: whether a row meets its condition, None for every hit.
        act: what it does, given the row's buffer, the thread and the place.
        left: how often it may still fire, None for always.
        paused: whether it rests.
        table: of a histogram.
    """

    trigger: EventTrigger
    test: RowTest | None
    act: Callable[[Any, int, int], bool]
    left: int | None
    paused: bool = False
    table: HistTable | None = None

    def fire(self, data: Any, thread: int, place: int) -> None:
        """Act, if it may still; only what did something counts."""
        if self.left == 0:
            return
        if self.act(data, thread, place) and self.left is not None:
            self.left -= 1

    def listing(self) -> str:
        """Its line in the event's `trigger` file."""
        spec = self.trigger.hist
        if spec is None:
            return self.trigger.listing()
        return spec.listing(self.trigger.condition, self.paused)


@dataclass(slots=True)
class EventControl:
    """What one event does at a hit besides recording.

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
        if not self.triggers:
            yield "# Available triggers:"
            yield f"# {' '.join(NAMES)}"
        for armed in self.triggers:
            yield armed.listing()


@dataclass(frozen=True, slots=True)
class ControlHooks:
    """What triggers do to the trace.

    Attributes:
        stack: records the call stack behind a row: (thread, place).
        stack_now: the call stack, innermost first.
        snapshot: keeps what is in the ring now; None without a ring.
        symbol: text of an address.
        comm: a thread's name.
        syscall: a system call's name by its number.
        read_cstring: (address, limit) to the guest's bytes there.
        here: address of the instruction that the processor is at.
        changed: an event records in another way from now on.
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
