"""What comes after a trace: the snapshot, hits and misses, and what is to be said about it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from engine.arch.plan import Rules
from engine.probes.kprobe import Kprobe, Uprobe
from engine.probes.kretprobe import Kretprobe, Uretprobe
from engine.probes.return_sites import ReturnSites
from engine.session.guest.probing import Probing
from engine.session.protocol.report import Report
from engine.session.tracing.event_set import TraceEvent
from engine.trace.formats.base import Format
from engine.trace.ring import Ring

_SHOWN: Final = 10


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


def profile_lines(events: Iterable[TraceEvent]) -> Iterator[str]:
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


def remarks(
    output: str, failure: OSError | None, lost: int, probing: Probing, probes: list[Kprobe]
) -> Iterator[Report]:
    """What the user should know at the end.

    Args:
        output: where the trace went, for messages.
        failure: the first error in writing it.
        lost: events that could not be written.
        probing: what waits, and what happened to probes.
        probes: of all events.
    """
    if failure is not None:
        yield Report((f"{output}: {failure.strerror}; {lost} events lost",))
    pending = [item.text for item in probing.pending if not item.again]
    if pending:
        yield _list("never placed, as their file was not mapped:", pending)
    if probing.notices:
        yield _list("changes to probes:", probing.notices)
    returns = probing.manager.returns
    if isinstance(returns, ReturnSites) and returns.calls.damaged:
        yield Report(
            (
                "the program has written to the memory where code records its calls: at least "
                f"{returns.calls.damaged} returns are not recorded",
            )
        )
    missed = [f"{p}: {p.nmissed} of {p.hits} hits missed" for p in probes if p.nmissed]
    if missed:
        yield _list("missed hits:", missed)
    unwatched = [
        f"{probe}: {probe.unwatched} of {probe.hits} calls"
        for probe in probes
        if isinstance(probe, Kretprobe) and probe.unwatched
    ]
    if unwatched:
        yield _list("calls that do not return, or to where no probe can stand:", unwatched)


def _list(head: str, lines: Iterable[str]) -> Report:
    found = list(lines)
    more = len(found) - _SHOWN
    tail = (f"and {more} more",) if more > 0 else ()
    return Report((head, *found[:_SHOWN], *tail))
