"""The files of a kernel's probe events: format, filter and trigger, and their errors."""

import errno
from collections.abc import Callable

from engine.errors import ProbeError, ProbeSyntaxError, UnloggedError
from engine.session.tracing.armed import ControlHooks, EventControl
from engine.session.tracing.hist_triggers import HistTriggers
from engine.trace.filter import FilterMachine, parse_filter
from engine.trace.kprobe_events import Outcome
from engine.trace.rows import EventInfo
from engine.trace.synthetic import exists_error, parse_command
from engine.trace.trigger import TriggerError, parse_trigger

_MACHINE = FilterMachine()


class EventFiles:
    """Writes to the files of events that `KprobeEvents` has."""

    def __init__(self, events: Callable[[str, str], EventInfo | None]) -> None:
        """For some events: `KprobeEvents.event` finds one by group and name."""
        self._events = events
        self._infos: dict[tuple[str, str], EventInfo] = {}
        self._controls: dict[int, EventControl] = {}
        self._hooks = ControlHooks(
            stack=lambda thread, place: None,
            stack_now=lambda: (),
            snapshot=lambda: None,
            symbol=hex,
            comm=lambda thread: None,
            syscall=lambda number: None,
            read_cstring=lambda address, limit: b"",
            here=lambda: 0,
            changed=lambda info: None,
        )
        self._hists = HistTriggers(self._hooks, self._found)
        self._hists.scope.add = self._trigger

    def write_filter(self, group: str, name: str, text: str) -> Outcome:
        """Write a filter of an event."""
        return self._tried(group, name, lambda info: self._filter(info, text))

    def write_trigger(self, group: str, name: str, text: str) -> Outcome:
        """Write a trigger of an event."""
        return self._tried(group, name, lambda info: self._trigger(info, text))

    def write_synthetic(self, line: str) -> Outcome:
        """Write a line of synthetic_events, which triggers may name."""
        try:
            event = parse_command(line)
            if event.name in self._hooks.synthetic:
                raise exists_error(event, line)
        except ProbeError as error:
            return _refused(error)
        self._hooks.synthetic[event.name] = event
        self._infos["synthetic", event.name] = event.info(1000 + len(self._infos))
        return Outcome(0)

    def _found(self, group: str, name: str) -> EventInfo | None:
        return self._infos.get((group, name)) or self._events(group, name)

    def _tried(self, group: str, name: str, change: Callable[[EventInfo], None]) -> Outcome:
        info = self._found(group, name)
        if info is None:
            return _refused(UnloggedError(f"{group}/{name}: there is no such event", "ENOENT"))
        try:
            change(info)
        except ProbeError as error:
            return _refused(error)
        return Outcome(0)

    def _filter(self, info: EventInfo, text: str) -> None:
        parse_filter(text, info, _MACHINE)

    def _trigger(self, info: EventInfo, text: str) -> None:
        trigger = parse_trigger(text, info, _MACHINE, self._hists.scope)
        if trigger.target is not None and self._found(*trigger.target) is None:
            raise TriggerError(text, f"there is no event {'/'.join(trigger.target)}")
        if trigger.hist is not None:
            control = self._controls.setdefault(info.id, EventControl(info))
            control.triggers.append(self._hists.arm(control, trigger, None))


def _refused(error: ProbeError) -> Outcome:
    number = "EINVAL"
    if isinstance(error, ProbeSyntaxError | UnloggedError | TriggerError):
        number = error.errno
    return Outcome(-getattr(errno, number), error)
