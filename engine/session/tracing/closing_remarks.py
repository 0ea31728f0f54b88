"""Remarks at the end of a trace about its probes: missed hits, calls that did not return."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe
from engine.probes.manager import ProbeManager
from engine.session.guest.session import Session
from engine.session.inspect.backtrace import Backtraces
from engine.session.protocol.report import Report
from engine.session.tracing.event_set import NamedEvents
from engine.session.tracing.output import some_lines
from engine.trace.graph import GraphProbe

_SHOWN: Final = 10
_THROWERS: Final = frozenset(
    {
        *("__cxa_throw", "__cxa_rethrow", "_Unwind_Resume", "_Unwind_RaiseException"),
        *("_Unwind_Resume_or_Rethrow", "_Unwind_ForcedUnwind", "rust_panic"),
    }
)
"""Functions that search the stack for who catches (Itanium C++ ABI, exception handling)."""


class TracedProbes:
    """The probes of one trace, those without an event among them.

    Attributes:
        handled: those of a file of handlers, which have no event.
    """

    def __init__(
        self,
        events: NamedEvents,
        manager: ProbeManager,
        main: "TracedProbes | None",
    ) -> None:
        """No probe is placed.

        Args:
            events: of the trace.
            manager: of the first process.
            main: those of the session's first trace; None for these.
        """
        self.handled: list[Kprobe] = []
        self._events = events
        self._manager = manager
        self._main = main
        self._beside: list[TracedProbes] = []
        if main is not None:
            main._beside.append(self)

    def lacking(self) -> list[Kprobe]:
        """Probes with hits that were not served; those without an event come last."""
        mine = [p for event in self._events.awake() for p in event.probes if _lacks(p)]
        return mine if self._main is not None else [*mine, *self.without_event(_lacks)]

    def without_event(self, wanted: Callable[[Kprobe], bool] = lambda probe: True) -> list[Kprobe]:
        """Probes without an event: those of a file of handlers, and what they have registered.

        Args:
            wanted: which of them.
        """
        if self._main is not None:
            return []
        asked = (*self.handled, *self._manager.asked())
        found = dict.fromkeys(probe for probe in asked if wanted(probe))
        for traced in (self, *self._beside) if found else ():
            for event in traced._events.awake():
                for probe in event.probes:
                    found.pop(probe, None)
        return list(found)

    def unreturned(self) -> Iterator[Report]:
        """Remarks about calls of Go programs whose return was not seen."""
        probes = (probe for event in self._events.awake() for probe in event.probes)
        returns = list(dict.fromkeys(one for one in probes if isinstance(one, Kretprobe)))
        if any(probe.left or probe.active for probe in returns):
            yield from unreturned(self._manager, returns)


def _lacks(probe: Kprobe) -> bool:
    """True if hits of a probe were not served, or its calls not seen to return."""
    return bool(probe.nmissed or (isinstance(probe, Kretprobe) and probe.unwatched))


def unreturned(manager: ProbeManager, probes: Iterable[Kretprobe]) -> Iterator[Report]:
    """Say of return probes on Go's functions how many calls did not return, and why.

    Elsewhere a call that does not return is the program's plain intent (`exit`, `longjmp`). In a
    Go program a reader has to know that none was lost with a stack that has moved.

    Args:
        manager: of the first process.
        probes: of the trace's events.
    """
    asked = [probe for probe in probes if probe.left or probe.active]
    asked = [probe for probe in asked if not isinstance(probe, GraphProbe)]
    if not asked:
        return
    code = manager.code_map.go_code(())
    lines = [
        f"{probe}: {probe.left + probe.active} of {probe.hits} calls: {probe.left} left by a"
        f" panic or with their goroutine, {probe.active} not back when the program ended"
        for probe in asked
        if any(one.start <= (probe.addr or 0) < one.end for one in code)
    ]
    if lines:
        yield some_lines("calls of Go functions that did not return:", lines)


def stuck_exception(session: Session, manager: ProbeManager) -> list[Report]:
    """The remark about an exception that met a return trampoline and ended the program."""
    end, probes = session.end, manager.returns.opaque()
    if end is None or not end.signal or not probes:
        return []
    frames = Backtraces(session).take().frames
    if not any(frame.function in _THROWERS for frame in frames):
        return []
    return [
        Report(
            (
                "an exception did not get past calls that return to a trampoline; nor does"
                " it on Linux, where the program dies as well (--returns watched leaves"
                " return addresses alone). Return probes of such calls:",
                *map(str, probes[:_SHOWN]),
            )
        )
    ]
