"""The rows of the list of probes, what they have come to in one run, and their views."""

from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from engine.arch.plan import Rules
from engine.linux.space import AddressSpace
from engine.probes.kprobe import Kprobe, ProbeFlags
from engine.probes.kretprobe import Kretprobe
from engine.probes.point import ProbePoint
from engine.session.guest.probed_space import ProbedSpace
from engine.session.guest.probing import Probing
from engine.session.program.places import Place
from engine.session.program.verdicts import Placed
from engine.session.protocol.probes import ProbeRow, ProbeView
from engine.session.tracing.event_set import Defined


class ProbeEntry(Struct, eq=False):
    """A row and what it has come to in the run at hand.

    Attributes:
        row: the row that the user made.
        placed: its places and the verdicts on them.
        defined: of a definition.
        stoppers: probes that stop the guest, one a place.
        earlier: hits in the recorded past, from before it was placed.
        refused: see `ProbeView`.
    """

    row: ProbeRow
    placed: tuple[Placed, ...]
    defined: Defined | None = None
    stoppers: list[Kprobe] = field(default_factory=list)
    earlier: int = 0
    refused: str = ""

    @property
    def probes(self) -> tuple[Kprobe, ...]:
        """The probes of the definition, or those that stop a breakpoint."""
        return self.defined.probes if self.defined else tuple(self.stoppers)

    @property
    def catches_returns(self) -> bool:
        """True if it is a return probe: it stops at the entry and at the return."""
        return any(isinstance(probe, Kretprobe) for probe in self.probes)

    @property
    def event(self) -> str:
        """GROUP/NAME, "" for a breakpoint."""
        if self.defined is None:
            return ""
        return f"{self.defined.definition.group}/{self.defined.definition.event}"


ProbeRows = tuple[ProbeRow, ...]


class ProbeViews:
    """The views of one run, kept as long as they are right."""

    def __init__(self, probing: Probing) -> None:
        """None yet; `probing` has the probes."""
        self._probing = probing
        self._views: dict[int, ProbeView] = {}
        self._seen: tuple[ProbedSpace | None, int, int] = None, -1, -1

    def of(self, entries: Iterable[ProbeEntry], space: AddressSpace) -> tuple[ProbeView, ...]:
        """Their views; unchanged ones are the same objects.

        Args:
            entries: of the list.
            space: the address space in sight: addresses are those that probes have there.
        """
        probing, there = self._probing, self._probing.spaces.get(space)
        sights = [
            _PlacedHere(probing, each) for each in (there, probing.first) if each is not None
        ]
        probing.collect()
        seen = there, probing.changes, len(sights[0].waiting)
        moved, self._seen = seen != self._seen, seen
        return tuple(self._view(entry, sights, moved, there is not None) for entry in entries)

    def forget(self, entry: ProbeEntry) -> None:
        """An entry is gone."""
        self._views.pop(entry.row.id, None)

    def _view(
        self, entry: ProbeEntry, sights: Sequence["_PlacedHere"], moved: bool, placed: bool
    ) -> ProbeView:
        """The view of an entry.

        Args:
            entry: the entry that is shown.
            sights: of the address space in sight, if anything is probed there, and the first one.
            moved: addresses may be others than before.
            placed: something is probed in the address space in sight.
        """
        probes, row = entry.probes, entry.row
        hits = sum(probe.hits for probe in probes) + entry.earlier
        misses = sum(probe.nmissed for probe in probes)
        old = self._views.get(row.id)
        waits = bool(probes) and all(id(probe) in sights[-1].waiting for probe in probes)
        if (
            old is not None
            and not moved
            and (old.hits, old.misses, old.pending) == (hits, misses, waits and not old.addresses)
            and not old.gone
            and old.row == row
        ):
            return old
        addresses = sights[0].addresses(probes) if placed else ()
        point = next((found for each in sights if (found := each.point(probes))), None)
        definition = entry.defined.definition if entry.defined else None
        view = ProbeView(
            row=row,
            kind="b" if definition is None else "r" if definition.is_return else "p",
            event=entry.event,
            place=", ".join(_where(item.place) for item in entry.placed[:3]),
            addresses=addresses,
            technique=point.technique if point is not None else "breakpoint",
            how=point.how if point is not None else "",
            reason=_reason(entry, point),
            hits=hits,
            misses=misses,
            pending=waits and not addresses,
            gone=any(ProbeFlags.GONE in probe.flags for probe in probes),
            refused=entry.refused,
        )
        if view == old:
            return old
        self._views[row.id] = view
        return view


class _PlacedHere:
    """The probes of one address space.

    Attributes:
        waiting: identities of those that wait for their file there.
    """

    def __init__(self, probing: Probing, space: ProbedSpace) -> None:
        self._probing = probing
        self._space = space
        self.waiting = {id(item.probe) for item in space.pending}

    def addresses(self, probes: Iterable[Kprobe]) -> tuple[int, ...]:
        """The addresses that probes of the user's have there."""
        found = (self._probing.stand_in(probe, self._space) for probe in probes)
        return tuple(
            made.addr
            for made in found
            if made is not None and made.addr is not None and id(made) not in self.waiting
        )

    def point(self, probes: Iterable[Kprobe]) -> ProbePoint | None:
        """The point of the first of them that has one."""
        points = self._space.manager.points
        return next((points[each] for each in self.addresses(probes) if each in points), None)


def _reason(entry: ProbeEntry, point: ProbePoint | None) -> str:
    """Why this technique and this way; why no jump where one was looked for."""
    reason = entry.placed[0].judgement.reason if entry.placed else ""
    if point is not None and point.why is not None:
        return f"{reason}; no jump: {point.why.detail}"
    return reason


def _where(place: Place) -> str:
    if place.rules is Rules.UPROBE:
        return f"{place.path}:{place.file_offset or 0:#x}"
    return place.name
