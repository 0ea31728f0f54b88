"""The definitions of a trace that were carried out, and what a new one must agree with."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from engine.session.tracing.event_set import Defined, DormantEvents
from engine.trace.definition import Definition, compatible
from engine.trace.place_syntax import FileOffset, Target

Site: TypeAlias = tuple[str, int]
"""Path and offset of a uprobe."""

Wish: TypeAlias = tuple[Target, tuple[str, ...]]
"""A place and the arguments that are fetched there."""


class DefinedSet:
    """Definitions in the order in which they were carried out.

    A kernel compares a new one with each that there is. All that have one name agree in what is
    compared but their wishes, and all at one place in their reference counter: one of each is
    compared here, and it takes as long with a million definitions as with ten.
    """

    def __init__(self) -> None:
        """None yet."""
        self._order: dict[Defined, None] = {}
        self._dormant: list[tuple[int, DormantEvents]] = []  # each behind so many of those
        self._siblings: dict[tuple[str, str], dict[Wish, Defined]] = {}
        self._sites: dict[Site, dict[Defined, None]] | None = None

    def __iter__(self) -> Iterator[Defined]:
        return iter(self._awake())

    def __len__(self) -> int:
        return len(self._order) + sum(len(events) for _, events in self._dormant)

    def __contains__(self, done: object) -> bool:
        return done in self._awake()

    def _awake(self) -> dict[Defined, None]:
        """The definitions, in order; those of dormant events wake."""
        if self._dormant:
            before, taken = list(self._order), 0
            self._order = {}
            for place, events in self._dormant:
                self._order.update(dict.fromkeys((*before[taken:place], *events.lines())))
                taken = place
            self._order.update(dict.fromkeys(before[taken:]))
            self._dormant.clear()
        return self._order

    def agree(self, definition: Definition, named: Sequence[Defined]) -> None:
        """Refuse a definition that does not go with those that there are.

        Args:
            definition: the new one.
            named: those of its event.

        Raises:
            ProbeError: as `compatible`, for the earliest that is in its way.
        """
        rivals = set(named[:1])
        if len(named) > 1:
            same = self._siblings_of(named).get(_wish(definition))
            rivals |= {same} if same is not None else set()
        rivals |= self._at(definition)
        ordered = list(rivals)
        if len(rivals) > 1:  # hardly ever without an objection
            ordered = [done for done in self if done in rivals]
        for earlier in ordered:
            compatible(earlier.definition, definition)

    def add(self, done: Defined, definition: Definition) -> None:
        """One was carried out: `definition` is what it says."""
        self._order[done] = None
        siblings = self._siblings.get(_name(definition))
        if siblings is not None:
            siblings[_wish(definition)] = done
        site = _site(definition)
        if site is not None and self._sites is not None:
            self._sites.setdefault(site, {})[done] = None

    @property
    def compares_sites(self) -> bool:
        """True if a new uprobe is compared with those at its place (`agree`)."""
        return self._sites is not None

    def add_dormant(self, events: DormantEvents) -> None:
        """First lines of their names are carried out, and places are not compared."""
        self._dormant.append((len(self._order), events))

    def remove(self, gone: Iterable[Defined]) -> None:
        """Some were taken back."""
        order = self._awake()
        for done in gone:
            del order[done]
            name = done.name
            siblings = self._siblings.get(name)
            if siblings is not None:
                siblings.pop(_wish(done.definition), None)
                if not siblings:
                    del self._siblings[name]
            site = _site(done.definition) if self._sites is not None else None
            if site is not None and self._sites is not None:
                self._sites[site].pop(done)
                if not self._sites[site]:
                    del self._sites[site]

    def _siblings_of(self, named: Sequence[Defined]) -> dict[Wish, Defined]:
        name = named[0].name
        found = self._siblings.get(name)
        if found is None:
            found = self._siblings[name] = {_wish(done.definition): done for done in named}
        return found

    def _at(self, definition: Definition) -> set[Defined]:
        """The earliest uprobe at the place of a new one, once any has a reference counter."""
        site, target = _site(definition), definition.target
        if site is None:
            return set()
        if self._sites is None:
            if isinstance(target, FileOffset) and not target.reference:
                return set()
            self._sites = {}
            for done in self:
                at = _site(done.definition)
                if at is not None:
                    self._sites.setdefault(at, {})[done] = None
        found = next(iter(self._sites.get(site, ())), None)
        return set() if found is None else {found}


def _name(definition: Definition) -> tuple[str, str]:
    return definition.group, definition.event


def _wish(definition: Definition) -> Wish:
    return definition.target, tuple(arg.text for arg in definition.args)


def _site(definition: Definition) -> Site | None:
    target = definition.target
    return (target.path, target.offset) if isinstance(target, FileOffset) else None
