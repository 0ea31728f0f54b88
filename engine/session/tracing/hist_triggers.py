"""The histograms of one trace: added, paused, and taken away again; the events that they make."""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from engine.errors import CommandError
from engine.fetch.predicate import RowTest
from engine.session.tracing.armed import Armed, ControlHooks, EventControl
from engine.trace.hist_actions import Act, HandlerBinder
from engine.trace.hist_readers import HistNames, Key
from engine.trace.hist_running import HistActions
from engine.trace.hist_scope import HistScope, RegisteredHist
from engine.trace.histtable import HistTable
from engine.trace.rows import EventInfo
from engine.trace.synthetic import SyntheticEvent
from engine.trace.trigger import EventTrigger, TriggerError

_CLOCKS: Final = ("local", "global", "counter", "uptime", "perf", "mono", "mono_raw", "boot")
"""Clocks that a kernel has; here all count ticks."""
_MORE_CLOCKS: Final = ("tai", "x86-tsc")
_DEPTH: Final = 4
"""Events within each other that the kernel counts (MAX_HIST_CNT)."""


class HistTriggers:
    """The histograms of one trace.

    Attributes:
        scope: what new ones can name.
    """

    def __init__(self, hooks: ControlHooks, event: Callable[[str, str], EventInfo | None]) -> None:
        """None yet.

        Args:
            hooks: give what keys are shown as, and take the events that are made.
            event: finds an event by group and name.
        """
        self.scope = HistScope(event)
        self.scope.synthetic = hooks.synthetic
        self._hooks = hooks
        self._named: dict[str, HistTable] = {}
        self._made: deque[tuple[SyntheticEvent, int, list[Key], int]] = deque()
        self._depth = 0
        self._names = HistNames(
            hooks.symbol,
            hooks.comm,
            hooks.syscall,
            hooks.stack_now,
            hooks.exact,
            self._make,
            hooks.snapshot,
        )
        self._tracks: HistTable | None = None

    # -- events that are made -------------------------------------------------------------

    def _make(self, event: SyntheticEvent, thread: int, values: list[Key]) -> None:
        if self._depth < _DEPTH:
            self._made.append((event, thread, values, self._depth + 1))

    def flush(self, place: int) -> None:
        """Make the events that the triggers of a row have asked for, behind it."""
        if self._depth:
            return  # one of them is being made
        made = self._made
        try:
            while made:
                event, thread, values, self._depth = made.popleft()
                self._hooks.made(event, thread, values, place)
        finally:
            self._depth = 0

    def makes(self, synthetic: str) -> bool:
        """True if a trigger makes a synthetic event of that name."""
        return any(
            handler.act is Act.TRACE and handler.synthetic == synthetic
            for one in self.scope.registered
            for handler in one.table.spec.handlers
        )

    # -- triggers -------------------------------------------------------------------------

    def update(self, control: EventControl, trigger: EventTrigger) -> bool:
        """True if a histogram was only paused, continued or cleared."""
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
        return False

    def arm(self, control: EventControl, trigger: EventTrigger, test: RowTest | None) -> Armed:
        """A new histogram of an event, or its part in one that events share.

        Raises:
            ProbeError: the event has one like that, the name stands for another, or what its
                handlers name is not there.
        """
        spec = trigger.hist
        assert spec is not None
        assert spec.reader is not None
        table = HistTable(spec, self._names)
        binder = HandlerBinder(spec, spec.reader)
        try:
            binding = binder.bind()
            armed = self._registered(control, trigger, test, table)
        except BaseException:
            self._take_back(binder.added)
            raise
        armed.added = binding.added
        if binding.actions and armed.table is table:
            table.actions = HistActions(binding, table)
        shared = armed.table
        assert shared is not None
        count = shared.counter(spec)

        def counted(data: Any, thread: int, place: int) -> bool:
            count(data, 0)
            return True

        armed.act = counted
        self.scope.registered.append(RegisteredHist(control.info, shared, trigger.condition))
        return armed

    def _registered(
        self, control: EventControl, trigger: EventTrigger, test: RowTest | None, table: HistTable
    ) -> Armed:
        spec = trigger.hist
        assert spec is not None
        snapshots = any(one.act is Act.SNAPSHOT for one in spec.handlers)
        if snapshots and self._hooks.snapshot is None:
            raise CommandError("snapshot() needs a ring: --buffer N")
        if snapshots and self._tracks is not None:
            raise TriggerError(trigger.text, "another histogram takes the snapshot", "EBUSY")
        known = self._named.get(spec.name) if spec.name else None
        if known is not None and known.spec.shape != spec.shape:
            raise spec.error("NAMED_MISMATCH", f"name={spec.name}")
        for armed in control.triggers:
            other = armed.trigger.hist
            if other is None or other.shape != spec.shape or other.name != spec.name:
                continue
            if armed.trigger.condition == trigger.condition:
                raise spec.error("TRIGGER_EEXIST")
        if spec.action in ("continue", "clear"):
            raise spec.error("TRIGGER_ENOENT_CLEAR")
        if spec.clock and spec.clock not in (*_CLOCKS, *_MORE_CLOCKS):
            why = f"there is {', '.join(_CLOCKS)}; all count ticks here"
            raise spec.error("SET_CLOCK_FAIL", spec.clock, why)
        if snapshots:
            self._tracks = table
        if spec.name and known is None:
            self._named[spec.name] = table
        return Armed(trigger, test, _counted_later, None, spec.action == "pause", known or table)

    def remove(self, control: EventControl, trigger: EventTrigger) -> None:
        """Take a histogram away.

        Raises:
            TriggerError: there is none, or others read its variables.
        """
        spec = trigger.hist
        assert spec is not None
        for armed in control.triggers:
            other = armed.trigger.hist
            if other is None or other.shape != spec.shape or other.name != spec.name:
                continue
            if armed.trigger.condition == trigger.condition:
                self._remove(control, armed)
                return
        # A kernel takes nothing away, and says nothing.
        raise TriggerError(trigger.text, "there is no such trigger", "ENOENT")

    def _remove(self, control: EventControl, armed: Armed) -> None:
        table = armed.table
        assert table is not None
        scope = self.scope
        users = [one for one in scope.registered if one.table is table]
        readers = scope.readers(table)
        if readers and len(users) == 1:
            text = armed.trigger.text
            raise TriggerError(text, f"{readers[0].info} reads its variables", "EBUSY")
        control.triggers.remove(armed)
        for one in scope.registered:
            if one.table is table and one.info.id == control.info.id:
                scope.registered.remove(one)
                break
        if len(users) == 1:
            self._named = {name: one for name, one in self._named.items() if one is not table}
            if self._tracks is table:
                self._tracks = None
        self._take_back(armed.added)

    def _take_back(self, added: list[tuple[EventInfo, str]]) -> None:
        for info, text in reversed(added):
            self.scope.add(info, f"!{text}")
        added.clear()


def _counted_later(data: Any, thread: int, place: int) -> bool:
    """Counts nothing: what counts is known once the trigger is there."""
    return False
