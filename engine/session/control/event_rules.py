"""Filters and triggers of events that a user changes: remembered by text, carried out in a run."""

import time
from collections.abc import Callable, Iterator
from typing import Final

from engine.errors import CommandError, KprobeTuiError
from engine.session.protocol.probes import NO_TEXTS, EventTexts
from engine.session.tracing.armed import Armed
from engine.session.tracing.tracing import Tracing

_PERIOD: Final = 0.5
"""Seconds of the host between two texts of a histogram while the guest runs."""


class EventRules:
    """The rules of one run's events. An event that is gone has taken its rules along."""

    def __init__(self, tracing: Tracing) -> None:
        """No event has any."""
        self._tracing = tracing
        self._filters: dict[int, str] = {}
        self._triggers: dict[int, list[tuple[Armed, str]]] = {}

    def of(self, event: str) -> EventTexts:
        """Filter and triggers of an event GROUP/NAME; none where there is no such event."""
        info = self._tracing.infos.get(_key(event))
        if info is None:
            return NO_TEXTS
        texts = tuple(text for _, text in self._triggers.get(info.id, ()))
        return EventTexts(self._filters.get(info.id, ""), texts)

    def set_filter(self, event: str, text: str) -> None:
        """Give an event a filter; "" takes it away, as does "0". A bad one changes nothing.

        Also under the kernel's rules the filter that was there stays: a front end can say at
        once what is wrong with the new one.

        Raises:
            ProbeError: there is no such event, or the filter is not accepted.
        """
        info, text = self._tracing.info(*_key(event)), text.strip()
        self._tracing.controls.set_filter(info, text or "0")
        self._filters[info.id] = "" if text == "0" else text

    def add_trigger(self, event: str, text: str) -> None:
        """Give an event a trigger, or with `!` in front take one away.

        Raises:
            ProbeError: there is no such event, or the trigger is not accepted.
            CommandError: there is none typed, or it needs a ring.
        """
        info, text = self._tracing.info(*_key(event)), text.strip()
        if not text:
            raise CommandError("which trigger? hist:keys=FIELD, stacktrace, traceoff, ...")
        self._tracing.controls.add_trigger(info, text)
        self._tracing.declare_stacks()
        known = self._triggers.setdefault(info.id, [])
        now = self._tracing.controls.of(info).triggers
        known[:] = [item for item in known if item[0] in now]
        # What only pauses or clears a histogram adds none.
        present = [armed for armed, _ in known]
        known += [(armed, text) for armed in now if armed not in present]

    def make(self, event: str, wanted: EventTexts) -> list[str]:
        """Bring an event to rules: what did not fit it, in words."""
        now = self.of(event)
        refused = []

        def attempt(change: Callable[[str, str], None], text: str) -> None:
            try:
                change(event, text)
            except KprobeTuiError as error:
                refused.append(f"{event} {text}: {error}")

        if wanted.filter != now.filter:
            attempt(self.set_filter, wanted.filter)
        for text in now.triggers:
            if text not in wanted.triggers:
                attempt(self.add_trigger, f"!{text}")
        for text in wanted.triggers:
            if text not in now.triggers:
                attempt(self.add_trigger, text)
        return refused


class Histograms:
    """The texts of a run's histograms, not made anew more often than anybody reads them."""

    def __init__(self, tracing: Tracing) -> None:
        """There are none."""
        self._tracing = tracing
        self._texts: tuple[str, ...] = ()
        self._made = 0.0

    def texts(self, *, running: bool) -> tuple[str, ...]:
        """Each histogram as the command line prints it, by event.

        Args:
            running: whether the guest runs: then they may be half a second old.
        """
        now = time.monotonic()
        if running and now - self._made < _PERIOD:
            return self._texts
        self._made = now
        texts = tuple(_texts(self._tracing))
        if texts != self._texts:
            self._texts = texts
        return self._texts


def _texts(tracing: Tracing) -> Iterator[str]:
    for table in tracing.controls.tables():
        yield b"\n".join(table).decode(errors="backslashreplace")


def _key(event: str) -> tuple[str, str]:
    """Group and name.

    Raises:
        CommandError: it is not of that form.
    """
    group, slash, name = event.partition("/")
    if not (group and slash and name):
        raise CommandError(f"{event}: not of the form GROUP/NAME")
    return group, name
