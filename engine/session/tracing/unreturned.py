"""Remarks about calls of Go programs whose return was not seen."""

from collections.abc import Iterable, Iterator

from engine.probes.kretprobe import Kretprobe
from engine.probes.manager import ProbeManager
from engine.session.protocol.report import Report
from engine.session.tracing.output import some_lines
from engine.trace.graph import GraphProbe


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
