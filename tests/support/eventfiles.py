"""The files of a kernel's probe events: format, filter and trigger, and their errors."""

import errno
from collections.abc import Callable

from engine.errors import ProbeError, ProbeSyntaxError, UnloggedError
from engine.trace.filter import FilterMachine, parse_filter
from engine.trace.hist_variables import HistVariables, TriggerNames
from engine.trace.kprobe_events import Outcome
from engine.trace.rows import EventInfo
from engine.trace.trigger import TriggerError, parse_trigger, split_hist

_MACHINE = FilterMachine()


class EventFiles:
    """Writes to the files of events that `KprobeEvents` has."""

    def __init__(self, events: Callable[[str, str], EventInfo | None]) -> None:
        """For some events: `KprobeEvents.event` finds one by group and name."""
        self._events = events
        self._names = TriggerNames()

    def write_filter(self, group: str, name: str, text: str) -> Outcome:
        """Write a filter of an event."""
        return self._tried(group, name, lambda info: self._filter(info, text))

    def write_trigger(self, group: str, name: str, text: str) -> Outcome:
        """Write a trigger of an event."""
        return self._tried(group, name, lambda info: self._trigger(info, text))

    def write_synthetic(self, line: str) -> Outcome:
        """Write a line of synthetic_events, which triggers may name."""
        try:
            self._names.define(line)
        except UnloggedError as error:
            return _refused(error)
        return Outcome(0)

    def _tried(self, group: str, name: str, change: Callable[[EventInfo], None]) -> Outcome:
        info = self._events(group, name)
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
        parts = split_hist(text)
        if parts is None:
            trigger = parse_trigger(text, info, _MACHINE)
            if trigger.target is not None and self._events(*trigger.target) is None:
                raise TriggerError(text, f"there is no event {'/'.join(trigger.target)}")
            return
        head, condition = parts
        command = f"hist:{head} {condition}".rstrip()
        checked = HistVariables(info, command, self._names)
        plain = checked.plain(head)
        parse_trigger(f"hist:{plain} {condition}".rstrip(), info, _MACHINE)
        self._names.variables.setdefault((info.group, info.name), set()).update(checked.defined)


def _refused(error: ProbeError) -> Outcome:
    number = "EINVAL"
    if isinstance(error, ProbeSyntaxError | UnloggedError | TriggerError):
        number = error.errno
    return Outcome(-getattr(errno, number), error)
