"""Event probes: events made of the fields of another event, the `e:` lines of `dynamic_events`.

Read and refused as kernel/trace/trace_eprobe.c does, with its texts and carets; of two entries
that it writes to error_log for one line the last one. What differs, on purpose:

- In strict mode the other event may be a probe's. The kernel has none but tracepoints for it.
- A string's field, `$comm` and a text are strings without a type, and nothing else with one: the
  numbers that the kernel makes of them are addresses in its own memory.
- A symbol that is not there is an error with a place.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.arch.base import Arch
from engine.arch.program import Base, FetchArg, RecordLayout, Source
from engine.errors import ProbeSyntaxError, UnloggedError
from engine.fetch.compile import FIRST_ARG, PLACE, ArgContext, compile_args
from engine.trace.definition import BLANKS, clean_line
from engine.trace.errors import Command
from engine.trace.fields import own_fields
from engine.trace.filter import EventFilter, FilterMachine, FilterSyntaxError, parse_filter
from engine.trace.head_syntax import HEAD, read_names
from engine.trace.rows import EventInfo, EventSource
from engine.trace.tracepoints import EPROBES

SUBSYSTEM: Final = "event_probe"
_IF: Final = "if"
_FORM: Final = "an event probe is e[:[GRP/]EVENT] GROUP.EVENT [ARG...] [if FILTER]"


class EventProbe(Struct, frozen=True):
    """A line that was understood.

    Attributes:
        group: of the event that it makes.
        name: of that event.
        attached: the event whose fields it takes.
        args: what it records; a field is a number's place among that event's own fields.
        filter: of the events that it takes; None for all.
        condition: the text of that.
    """

    group: str
    name: str
    attached: EventInfo
    args: tuple[FetchArg, ...]
    filter: EventFilter | None = None
    condition: str = ""

    @property
    def source(self) -> str:
        """The other event, as events and lines name it."""
        return f"{self.attached.group}.{self.attached.name}"

    def info(self, number: int) -> EventInfo:
        """The event in a trace."""
        layout = RecordLayout.of(self.args)
        plain = EventInfo.of(number, self.group, self.name, layout)
        return EventInfo(
            number,
            self.group,
            self.name,
            plain.columns,
            plain.words,
            source=EventSource.EPROBE,
            attached=self.source,
        )

    @property
    def line(self) -> str:
        """The line that defines it again, with its filter."""
        return self.listing() + f" if {self.condition}" * bool(self.condition)

    def listing(self) -> str:
        """The line as tracefs lists it: without its filter."""
        args = "".join(f" {arg.name}={arg.text}" for arg in self.args)
        return f"e:{self.group}/{self.name} {self.source}{args}"


class ProbedEvents(Struct, frozen=True):
    """The things that a line may name.

    Attributes:
        arch: of the program.
        find: an event that a probe can stand on, by group and name; None for none.
        taken: whether an event has that group and name.
        symbol: where a data symbol is, for `@SYM`; None if there is none.
        machine: what the filter of an event is parsed for.
        others: events that the guest's kernel has without a definition, in words.
    """

    arch: Arch
    find: Callable[[str, str], EventInfo | None]
    taken: Callable[[str, str], bool]
    symbol: Callable[[str], Base | None]
    machine: Callable[[EventInfo], FilterMachine]
    others: str = "one of syscalls, sched"


def parse_definition(line: str, events: ProbedEvents) -> EventProbe:
    """Understand a line.

    Raises:
        ProbeSyntaxError: the kernel would refuse it, and say why.
        UnloggedError: it would refuse it without a word.
    """
    words = tuple(filter(None, BLANKS.split(clean_line(line))))
    if len(words) <= PLACE:
        raise UnloggedError(f"{line.strip()}: {_FORM}")
    command = Command(SUBSYSTEM, words)
    group, name = read_names(words[HEAD], words[HEAD].find(":", 1), EPROBES, command)
    source = _source(words[PLACE], command)
    end = words.index(_IF, FIRST_ARG) if _IF in words[FIRST_ARG:] else len(words)
    attached = events.find(*source)
    if attached is None:
        error = command.error("BAD_ATTACH_EVENT", PLACE)
        error.errno = "ENODEV"
        error.explain(_why(*source, events))
        raise error
    passing, condition = None, ""
    if end < len(words):
        condition = " ".join(words[end + 1 :])
        if not condition:
            raise command.error("NO_EP_FILTER", end + 1)
        passing = _filter(condition, attached, events, command.text)
    args = _args(words[FIRST_ARG:end], attached, events, command)
    name = name or attached.name
    if events.taken(group, name):
        raise command.error("EVENT_EXIST", HEAD)
    return EventProbe(group, name, attached, args, passing, condition)


def event_name(line: str) -> tuple[str, str]:
    """Group and name of the event that a line defines.

    Raises:
        ProbeSyntaxError: the kernel would refuse the line.
        UnloggedError: it would refuse it without a word.
    """
    words = tuple(filter(None, BLANKS.split(clean_line(line))))
    if len(words) <= PLACE:
        raise UnloggedError(f"{line.strip()}: {_FORM}")
    command = Command(SUBSYSTEM, words)
    group, name = read_names(words[HEAD], words[HEAD].find(":", 1), EPROBES, command)
    return group, name or _source(words[PLACE], command)[1]


def _source(word: str, command: Command) -> tuple[str, str]:
    """Group and name of the other event."""
    try:
        group, name = read_names(f":{word}", 0, "", command)
    except ProbeSyntaxError as error:
        found = command.error("NO_EVENT_INFO", PLACE)
        found.explain(error.text)
        raise found from error
    if not group or not name:
        raise command.error("NO_EVENT_INFO", PLACE)
    return group, name


def _why(group: str, name: str, events: ProbedEvents) -> str:
    if events.taken(group, name):
        return f"no event probe stands on {group}.{name}"
    return f"define it before, or name {events.others}"


def _filter(
    condition: str, attached: EventInfo, events: ProbedEvents, line: str
) -> EventFilter | None:
    try:
        found = parse_filter(condition, attached, events.machine(attached))
    except FilterSyntaxError as error:
        error.errno = "EINVAL"
        error.explain(f"in {line!r}, of the fields of {attached}")
        raise
    return found if found.ops else None


def _args(
    words: tuple[str, ...], attached: EventInfo, events: ProbedEvents, command: Command
) -> tuple[FetchArg, ...]:
    fields = {field.name: (at, field) for at, field in enumerate(own_fields(attached))}

    def field(name: str) -> Base | None:
        found = fields.get(name)
        if found is None:
            return None
        return Base(Source.FIELD, value=found[0], text=b"string" * found[1].is_text)

    context = ArgContext(
        events.arch,
        uprobe=False,
        is_return=False,
        at_entry=False,
        fail=command.error,
        symbol=events.symbol,
        fields=field,
    )
    try:
        return compile_args(words, context)
    except ProbeSyntaxError as error:
        if error.code == "BAD_PROBE_ADDR":
            error.errno = "ENOENT"
        elif error.code in ("BAD_VAR", "BAD_FETCH_ARG"):
            error.explain(f"{attached} has ${', $'.join(fields)}")
        raise
