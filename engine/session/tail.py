"""What comes after a trace: the snapshot, histograms, hits and misses."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from engine.arch.plan import Rules
from engine.probes.kprobe import Kprobe, Uprobe
from engine.probes.kretprobe import Uretprobe
from engine.trace.formats.base import Format
from engine.trace.ring import Ring

if TYPE_CHECKING:
    from engine.session.tracing import TraceEvent


class Tail:
    """Keeps what the snapshot trigger asks for."""

    def __init__(self, make_format: Callable[[], Format]) -> None:
        """`make_format` makes the trace's output format afresh."""
        self._make_format = make_format
        self._kept: tuple[int, int, list[bytes]] | None = None

    def keep(self, ring: Ring) -> None:
        """Remember what a ring has now; the snapshot before goes."""
        self._kept = len(ring), ring.written, list(ring.stretches())

    def snapshot(self) -> bytes:
        """The snapshot as text, nothing if none was taken."""
        if self._kept is None:
            return b""
        form, (kept, written, stretches) = self._make_format(), self._kept
        rows = b"".join(form.rows(stretch) for stretch in stretches)
        return b"\n# snapshot\n" + form.header(kept, written) + rows + form.end()


def profile_lines(events: "Iterable[TraceEvent]") -> Iterator[str]:
    """Hits and misses of the probes (kprobe_profile and uprobe_profile of the kernel).

    As there, filters change nothing in the numbers, and those of a return probe are the entries.
    """
    kprobes: list[str] = []
    uprobes: list[str] = []
    for event in events:
        for probe in event.probes:
            if probe.rules is Rules.UPROBE:
                uprobes.append(f"  {_path(probe)} {event.info.name:<44} {probe.hits:>15}")
            else:
                hits = probe.hits - probe.nmissed
                kprobes.append(f"  {event.info.name:<44} {hits:>15} {probe.nmissed:>15}")
    yield from kprobes
    yield from uprobes


def _path(probe: Kprobe) -> str:
    return probe.path if isinstance(probe, Uprobe | Uretprobe) else str(probe)
