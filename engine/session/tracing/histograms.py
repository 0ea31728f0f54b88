"""Histogram triggers: their tables, which events may share by name."""

from collections.abc import Iterable, Iterator
from typing import Any

from engine.fetch.predicate import RowTest
from engine.session.tracing.armed import Armed, ControlHooks, EventControl
from engine.trace.histtable import HistNames, HistTable
from engine.trace.trigger import EventTrigger


class HistogramTriggers:
    """The histograms of one trace."""

    def __init__(self, hooks: ControlHooks) -> None:
        """None yet; `hooks` give what keys are shown as."""
        self._hooks = hooks
        self._named: dict[str, HistTable] = {}

    def update(self, control: EventControl, trigger: EventTrigger) -> bool:
        """Whether a histogram was only paused, continued or cleared."""
        spec = trigger.hist
        if spec is None or not spec.action:
            return False
        for armed in control.triggers:
            other = armed.trigger.hist
            if other is None or armed.table is None or other.shape != spec.shape:
                continue
            if armed.trigger.condition != trigger.condition or other.name != spec.name:
                continue
            if spec.action == "clear":
                armed.table.clear()
            else:
                armed.paused = spec.action == "pause"
            return True
        if spec.action != "pause":
            raise spec.error("TRIGGER_ENOENT_CLEAR")
        return False

    def arm(self, control: EventControl, trigger: EventTrigger, test: RowTest | None) -> Armed:
        """A new histogram of an event, or its part in one that events share.

        Raises:
            TriggerError: the event has one like that, or the name stands for another.
        """
        spec, hooks = trigger.hist, self._hooks
        assert spec is not None
        table = self._named.get(spec.name) if spec.name else None
        if table is not None and table.spec.shape != spec.shape:
            raise spec.error("NAMED_MISMATCH", spec.name)
        for armed in control.triggers:
            other = armed.trigger.hist
            if other is None or other.shape != spec.shape or other.name != spec.name:
                continue
            if armed.trigger.condition == trigger.condition:
                raise spec.error("TRIGGER_EEXIST")
        if table is None:
            names = HistNames(hooks.symbol, hooks.comm, hooks.syscall, hooks.stack_now)
            table = HistTable(spec, names)
            if spec.name:
                self._named[spec.name] = table
        count = table.counter(spec)

        def counted(data: Any, thread: int, place: int) -> bool:
            count(data, 0)
            return True

        return Armed(trigger, test, counted, None, spec.action == "pause", table)


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
