"""Lines that define events without a place, judged without a run: synthetic ones, event probes."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import count

from engine.arch.base import Arch
from engine.arch.plan import Mode
from engine.arch.program import Base, RecordLayout, Source
from engine.errors import ProbeError
from engine.trace import sched, synthetic
from engine.trace.definition import Definition, parse
from engine.trace.eventprobe import ProbedEvents, parse_definition
from engine.trace.fields import own_fields
from engine.trace.filter import FilterMachine
from engine.trace.place_syntax import Lookup
from engine.trace.rows import EventInfo, EventSource
from engine.trace.syscalls import ENTER, EXIT, arguments, enter_info, event_name, exit_info
from engine.trace.syscalls import GROUP as SYSCALLS
from engine.trace.tracepoints import EPROBES, Selection


class PlacelessLines:
    """The events that the lines of one request define, as those behind them may name them."""

    def __init__(self, arch: Arch, mode: Mode) -> None:
        """Nothing is defined."""
        self._arch = arch
        self._strict = mode is not Mode.KERNEL
        self._numbers = count(1)
        self._infos: dict[tuple[str, str], EventInfo] = {}
        self._synthetic: set[str] = set()

    def placed(self, definition: Definition) -> None:
        """A probe's definition was accepted."""
        key = definition.group, definition.event
        layout = RecordLayout.of(definition.args, definition.is_return)
        symbolic = definition.kind == "kprobe"
        self._infos[key] = EventInfo.of(next(self._numbers), *key, layout, symbolic)

    def placed_line(self, line: str, lookup: Lookup) -> None:
        """A line was accepted before; only a probe's makes an event that another may stand on."""
        mode = Mode.STRICT if self._strict else Mode.KERNEL
        found = parse(line, self._arch, mode=mode, lookup=lookup)
        if isinstance(found, Definition):
            self.placed(found)

    def take(self, selected: Selection) -> str:
        """Judge a line; what it is in tracefs's list.

        Raises:
            ProbeError: it is not accepted.
        """
        if selected.group == synthetic.GROUP:
            event = synthetic.parse_definition(selected.glob)
            if event.name in self._synthetic:
                raise synthetic.exists_error(event, selected.glob)
            self._synthetic.add(event.name)
            self._infos[synthetic.GROUP, event.name] = event.info(next(self._numbers))
            return f"s:synthetic/{event.listing()}"
        if selected.group == EPROBES:
            machine = FilterMachine(kernel_pointers=not self._strict)
            probe = parse_definition(
                selected.glob,
                ProbedEvents(
                    self._arch,
                    self._find,
                    lambda *name: name in self._infos or self._kernels(*name) is not None,
                    lambda name: Base(Source.SYMBOL, text=name.encode(errors="surrogateescape")),
                    lambda info: machine,
                ),
            )
            self._infos[probe.group, probe.name] = probe.info(next(self._numbers))
            return probe.listing()
        names = sched.BY_NAME if selected.group == sched.GROUP else self._call_names()
        if not any(fnmatchcase(name, selected.glob) for name in names):
            raise ProbeError(f"{selected.group}/{selected.glob}: no event matches")
        return f"{selected.group}/{selected.glob}"

    def names(self) -> Iterator[str]:
        """The events of a guest's kernel, as an event probe names them."""
        yield from (f"{sched.GROUP}.{name}" for name in sched.BY_NAME)
        calls = sorted(set(map(event_name, self._arch.linux.syscalls.values())))
        yield from (f"{SYSCALLS}.{front}{name}" for name in calls for front in (ENTER, EXIT))

    def fields(self, event: str) -> list[str]:
        """The fields of such an event; none of one that there is not."""
        group, _, name = event.replace("/", ".", 1).partition(".")
        found = self._kernels(group, name)
        return [] if found is None else [field.name for field in own_fields(found)]

    def _call_names(self) -> list[str]:
        calls = map(event_name, self._arch.linux.syscalls.values())
        return [each for name in calls for each in (name, ENTER + name, EXIT + name)]

    def _find(self, group: str, name: str) -> EventInfo | None:
        found = self._infos.get((group, name)) or self._kernels(group, name)
        if found is None or found.source is EventSource.EPROBE:
            return None
        return None if found.source is EventSource.PROBE and not self._strict else found

    def _kernels(self, group: str, name: str) -> EventInfo | None:
        """An event that a guest's kernel has without a definition."""
        if group == sched.GROUP:
            event = sched.BY_NAME.get(name)
            return None if event is None else event.info(1)
        for call in self._arch.linux.syscalls.values() if group == SYSCALLS else ():
            fields = arguments(call, self._arch.linux.clone_backwards)
            if fields is not None and name == ENTER + event_name(call):
                return enter_info(1, call, fields)
            if fields is not None and name == EXIT + event_name(call):
                return exit_info(1, call)
        return None
