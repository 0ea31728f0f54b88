"""Event triggers as the kernel reads and lists them (kernel/trace/trace_events_trigger.c).

`NAME[:COUNT] [if FILTER]`; `enable_event:GROUP:EVENT[:COUNT]`; `hist:...`, see `histogram`. A `!`
in front takes the trigger away again.
"""

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.errors import ProbeError
from engine.fetch.numbers import unsigned
from engine.trace.filter import EventFilter, FilterMachine, FilterSyntaxError, parse_filter
from engine.trace.rows import EventInfo

if TYPE_CHECKING:
    from engine.trace.hist_scope import HistScope
    from engine.trace.histogram import HistSpec


class TriggerAction(Enum):
    """The action of a trigger (enum event_trigger_type)."""

    SWITCH_TRACE = auto()
    SNAPSHOT = auto()
    STACK = auto()
    SWITCH_EVENT = auto()
    SWITCH_HIST = auto()
    COUNT = auto()
    EVENT_PROBE = auto()
    """A row makes an event of another kind; no line of a `trigger` file says so."""


class TriggerKind(Struct, frozen=True):
    """One kind of trigger.

    Attributes:
        name: as written.
        action: its action.
        on: of a switch, whether it switches on.
        after: it acts behind the event instead of before (EVENT_CMD_FL_POST_TRIGGER).
    """

    name: str
    action: TriggerAction
    on: bool = True
    after: bool = False


TRIGGERS: Final = (
    TriggerKind("traceon", TriggerAction.SWITCH_TRACE),
    TriggerKind("traceoff", TriggerAction.SWITCH_TRACE, on=False, after=True),
    TriggerKind("snapshot", TriggerAction.SNAPSHOT),
    TriggerKind("stacktrace", TriggerAction.STACK, after=True),
    TriggerKind("enable_event", TriggerAction.SWITCH_EVENT),
    TriggerKind("disable_event", TriggerAction.SWITCH_EVENT, on=False),
    TriggerKind("enable_hist", TriggerAction.SWITCH_HIST),
    TriggerKind("disable_hist", TriggerAction.SWITCH_HIST, on=False),
    TriggerKind("hist", TriggerAction.COUNT),
)
"""All kinds, in the order in which they are listed."""

NAMES: Final = tuple(kind.name for kind in TRIGGERS)
_BLANKS: Final = " \t"
_UNLIMITED: Final = (1 << 64) - 1


class TriggerError(ProbeError):
    """A trigger that the kernel refuses without a word.

    Attributes:
        errno: name of the error its write returns.
    """

    def __init__(self, text: str, why: str, errno: str = "EINVAL") -> None:
        super().__init__(f"trigger {text!r}: {why} ({errno})")
        self.errno = errno


class EventTrigger(Struct, frozen=True):
    """A trigger that was understood.

    Attributes:
        kind: of `TRIGGERS`.
        remove: whether it takes away what it describes.
        count: how often it may fire, None for always.
        target: group and name of the event that is switched.
        filter: when it fires, None for at every hit.
        condition: that filter's text.
        hist: what a histogram counts.
        text: as it was written.
    """

    kind: TriggerKind
    remove: bool = False
    count: int | None = None
    target: tuple[str, str] | None = None
    filter: EventFilter | None = None
    condition: str = ""
    hist: "HistSpec | None" = None
    text: str = ""

    @property
    def needs_row(self) -> bool:
        """True if the event's values decide or count (EVENT_FILE_FL_TRIGGER_COND)."""
        reads = self.hist is not None or self.kind.action is TriggerAction.EVENT_PROBE
        return self.kind.after or reads or self.filter is not None

    def same_kind(self, other: "EventTrigger") -> bool:
        """True if an event cannot have both, and `!` before one takes the other away.

        As the kernel compares its trigger types: those that switch a thing on and off are one.
        """
        if self.hist is not None or other.hist is not None:
            return False
        return self.kind.action is other.kind.action and self.target == other.target

    def listing(self, left: int | None) -> str:
        """As the event's `trigger` file lists it; histograms list themselves.

        Args:
            left: how often it may still fire, None for always.
        """
        head = self.kind.name
        if self.target is not None:
            head += f":{self.target[0]}:{self.target[1]}"
        head += ":unlimited" if left is None else f":count={left}"
        return f"{head} if {self.condition}" if self.condition else head


def parse_trigger(
    text: str,
    info: EventInfo,
    machine: FilterMachine | None = None,
    scope: "HistScope | None" = None,
) -> EventTrigger:
    """Understand a trigger of an event.

    Args:
        text: the trigger.
        info: the event.
        machine: what its filter is parsed for.
        scope: what a histogram can name; None for an event that is alone.

    Raises:
        TriggerError: the kernel would refuse it.
        FilterSyntaxError: its filter is refused.
        ProbeSyntaxError: its histogram is.
    """
    text = text.strip()
    cut = min((text.find(c) for c in ": \t" if c in text), default=len(text))
    command, rest = text[:cut], text[cut + 1 :].lstrip()
    remove = command.startswith("!")
    name = command.removeprefix("!")
    kind = next((kind for kind in TRIGGERS if kind.name == name), None)
    if kind is None:
        raise TriggerError(text, f"there is no {name!r}; there are {', '.join(NAMES)}")
    given = cut < len(text)
    if kind.action is TriggerAction.COUNT:
        if not rest:
            raise TriggerError(text, "nothing to count: give keys=")
        from engine.trace.hist_parser import parse_hist  # few traces have histograms

        head, condition = _hist_filter(text, rest)
        spec = parse_hist(head, rest, info, scope, removing=remove)
        return EventTrigger(
            kind, remove, None, None, *_filter(condition, text, info, machine), spec, text
        )
    if kind.action in (TriggerAction.SWITCH_EVENT, TriggerAction.SWITCH_HIST):
        return _switch(text, kind, remove, rest, info, machine)
    if given and not rest and text[cut] == ":":
        raise TriggerError(text, "a count is missing")
    parameter, condition = "", rest
    if rest[:1].isdigit():
        parameter, condition = _word(rest)
    count = _count(text, parameter) if parameter else None
    found = _filter(condition, text, info, machine)
    return EventTrigger(kind, remove, count, None, *found, text=text)


def _switch(
    text: str,
    kind: TriggerKind,
    remove: bool,
    rest: str,
    info: EventInfo,
    machine: FilterMachine | None,
) -> EventTrigger:
    parameter, condition = _word(rest)
    parts = parameter.split(":")
    if len(parts) < 2 or not all(parts[:2]):
        raise TriggerError(text, "give the event as GROUP:EVENT")
    count = _count(text, parts[2]) if len(parts) > 2 else None
    target = parts[0], parts[1]
    found = _filter(condition, text, info, machine)
    return EventTrigger(kind, remove, count, target, *found, text=text)


def _word(text: str) -> tuple[str, str]:
    """The first word, and what stands behind it."""
    end = min((text.find(c) for c in _BLANKS if c in text), default=len(text))
    return text[:end], text[end + 1 :].lstrip()


def _count(text: str, number: str) -> int | None:
    value = unsigned(number.partition(":")[0], 64)
    if value is None:
        raise TriggerError(text, f"{number!r} is no count")
    return None if value == _UNLIMITED else value


def _filter(
    condition: str, text: str, info: EventInfo, machine: FilterMachine | None
) -> tuple[EventFilter | None, str]:
    if not condition:
        return None, ""
    word, expression = _word(condition)
    if word != "if" or not expression:
        raise TriggerError(text, "a condition is written 'if FILTER'")
    try:
        found = parse_filter(expression, info, machine)
    except FilterSyntaxError as error:
        error.explain(f"in the trigger {text!r}")
        raise
    return found, expression


def _hist_filter(text: str, rest: str) -> tuple[str, str]:
    """The histogram's part and the condition: the first word "if" divides them."""
    at = 0
    while (at := rest.find("if", at)) >= 0:
        if not at:
            raise TriggerError(text, "nothing to count: give keys=")
        if rest[at - 1] in _BLANKS:
            if at + 2 >= len(rest):
                raise TriggerError(text, "a condition is written 'if FILTER'")
            if rest[at + 2] in _BLANKS:
                return rest[: at - 1].strip(), rest[at:]
        at += 1
    return rest.strip(), ""
