"""Which return probes code in the guest may serve, and what it calls them."""

from collections.abc import Iterable

from engine.arch.recording import CallEntry, CallReturn, CallWord
from engine.probes.callwork import COUNTED, call_entry
from engine.probes.kretprobe import CallEnd, Kretprobe, Tracker


class CallNumbers:
    """Numbers of probes, and of the codes that may end their calls (`CallWord.KIND`).

    Attributes:
        tracker: follows the calls of functions, if any does.
    """

    def __init__(self) -> None:
        """No probe has one yet."""
        self.tracker: Tracker | None = None
        self._probes: list[Kretprobe | None] = []
        self._numbers: dict[Kretprobe, int] = {}
        self._kinds: dict[CallEnd, int] = {}

    def entry(self, probe: Kretprobe) -> CallEntry | str:
        """The work of code at a probe's entry, or the reason why it takes the engine."""
        call = probe.call
        if call is None or probe.entry_handler is not None:
            return "a return probe begins there"
        if probe.limit is not None:
            return COUNTED
        if len(call.kept) > CallWord.SIZE - CallWord.KEPT:
            return "a return probe keeps too many values from there"
        if probe.tracker is not None:
            if self.tracker not in (None, probe.tracker):
                return "two tracers follow calls"
            self.tracker = probe.tracker
        if probe not in self._numbers:
            self._numbers[probe] = len(self._probes)
            self._probes.append(probe)
        deeper = probe.tracker is not None
        return call_entry(call, self._numbers[probe], self._kind(call.end), deeper=deeper)

    def ending(self, site: int, probe: Kretprobe | None) -> CallReturn | str:
        """The work of code at a place that calls return to, or why it takes the engine."""
        if probe is None or probe.call is None or probe not in self._numbers:
            return "return probes wait there for a call's return"
        end = probe.call.end
        return CallReturn(site, self._kind(end), end.row, end.of_call, 0)

    def of(self, probe: Kretprobe) -> int:
        """The `CallWord.KIND` of a probe's calls, 0 where only the engine may end them."""
        number = self._numbers.get(probe)
        if number is None or probe.call is None:
            return 0
        return number << 32 | self._kind(probe.call.end)

    def _kind(self, end: CallEnd) -> int:
        return self._kinds.setdefault(end, len(self._kinds) + 1)

    def knows(self, kind: int) -> bool:
        """True if a `CallWord.KIND` names a probe, also one that is gone."""
        return kind >> 32 < len(self._probes)

    def probe(self, kind: int) -> Kretprobe | None:
        """The probe that a `CallWord.KIND` names; None if there is none, or it is gone."""
        return self._probes[kind >> 32] if self.knows(kind) else None

    def drop(self, probes: Iterable[Kretprobe]) -> None:
        """Probes are gone; a detour may still be about to name one."""
        for probe in probes:
            number = self._numbers.pop(probe, None)
            if number is not None:
                self._probes[number] = None
