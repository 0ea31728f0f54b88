"""Probes as a front end shows them."""

from collections.abc import Iterable

from engine.arch.plan import Rules
from engine.probes.kprobe import ProbeFlags
from engine.probes.point import ProbePoint
from engine.session.control.entries import Entry
from engine.session.guest.probing import Probing
from engine.session.program.places import Place
from engine.session.protocol.views import ProbeView


class ProbeViews:
    """The views of one run, kept as long as they are right."""

    def __init__(self, probing: Probing) -> None:
        """None yet; `probing` has the probes."""
        self._probing = probing
        self._views: dict[int, ProbeView] = {}

    def of(self, entries: Iterable[Entry]) -> tuple[ProbeView, ...]:
        """Their views; unchanged ones are the same objects."""
        pending = {id(item.probe) for item in self._probing.pending}
        if self._probing.manager.jumps is not None:
            self._probing.manager.jumps.collect()
        return tuple(self._view(entry, pending) for entry in entries)

    def forget(self, entry: Entry) -> None:
        """An entry is gone."""
        self._views.pop(entry.row.id, None)

    def _view(self, entry: Entry, pending: set[int]) -> ProbeView:
        probes, row = entry.probes, entry.row
        hits = sum(probe.hits for probe in probes)
        misses = sum(probe.nmissed for probe in probes)
        old = self._views.get(row.id)
        waits = bool(probes) and all(id(probe) in pending for probe in probes)
        if (
            old is not None
            and (old.hits, old.misses, old.enabled, old.stops, old.pending)
            == (hits, misses, row.enabled, row.stops, waits)
            and not old.gone
            and old.definition == row.line
            and (old.filter, old.triggers) == (row.rules.filter, row.rules.triggers)
        ):
            return old
        points = self._probing.manager.points
        here = [probe for probe in probes if id(probe) not in pending and probe.addr is not None]
        point = next((points[p.addr] for p in here if p.addr in points), None)
        definition = entry.defined.definition if entry.defined else None
        view = ProbeView(
            id=row.id,
            kind="b" if definition is None else "r" if definition.is_return else "p",
            definition=row.line,
            event=entry.event,
            place=", ".join(_where(item.place) for item in entry.placed[:3]),
            addresses=tuple(probe.addr for probe in here if probe.addr is not None),
            technique=point.technique if point is not None else "breakpoint",
            how=point.how if point is not None else "",
            reason=_reason(entry, point),
            hits=hits,
            misses=misses,
            enabled=row.enabled,
            pending=waits,
            stops=row.stops,
            gone=any(ProbeFlags.GONE in probe.flags for probe in probes),
            filter=row.rules.filter,
            triggers=row.rules.triggers,
        )
        self._views[row.id] = view
        return view


def _reason(entry: Entry, point: ProbePoint | None) -> str:
    """Why this technique and this way; why no jump where one was looked for."""
    reason = entry.placed[0].judgement.reason if entry.placed else ""
    if point is not None and point.why is not None:
        return f"{reason}; no jump: {point.why.detail}"
    return reason


def _where(place: Place) -> str:
    if place.rules is Rules.UPROBE:
        return f"{place.path}:{place.file_offset or 0:#x}"
    return place.name
