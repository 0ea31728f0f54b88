"""The events of a trace as lines that define them again, here or with another tool.

An event of a pattern (-f, -r) has a definition like any other: it is made up here, by the name
of the function if that is enough to find it again.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from engine.arch.plan import Mode
from engine.session.program.libraries import ProgramFile
from engine.session.program.places import Place
from engine.session.tracing.defining import identifier
from engine.session.tracing.tracing import Tracing
from engine.trace.definition import Definition, parse
from engine.trace.export import (
    CannotError,
    ExportPlace,
    kprobe_line,
    render,
    render_dynamic,
    render_tracepoint,
)
from engine.trace.rows import EventInfo, EventSource

if TYPE_CHECKING:
    from engine.session.kernel.opened import OpenedKernel
    from engine.session.tracing.event_probes import EventProbes
    from engine.session.tracing.synthetic_events import SyntheticEvents

KERNEL_FORM: Final = "kernel"
"""The lines as the kernel lists them."""

WordsAt = Callable[[Place, bool], str]
"""The arguments of an event at the entry of a function, or of its returns, in a definition."""

_LINES: Final = (EventSource.SYNTHETIC, EventSource.EPROBE)
"""Events that lines of their own define."""
_WORD: Final = re.compile(r"(?!\d)[\w.$]+", re.ASCII)
_NEAREST: Final = 64
"""Neighbours of a function that are looked at for a name that stands for one place only."""


class TraceListing:
    """Lists the events of one trace."""

    def __init__(self, tracing: Tracing) -> None:
        """List what `tracing` has when it is asked for."""
        self._tracing = tracing
        self._unique: dict[str, frozenset[str]] = {}

    def lines(self, form: str) -> Iterator[str]:
        """The lines of all events.

        Args:
            form: `KERNEL_FORM`, or a name in `engine.trace.export.FORMS`.
        """
        kernel = form == KERNEL_FORM
        image = self._tracing.session.opened.kernel
        if image is not None and not kernel:
            yield from self._of_image(image, form)
            return
        told: set[tuple[str, str]] = set()
        yield from self._dynamic(form, EventSource.SYNTHETIC)  # triggers of probes name them
        for done in self._tracing.definitions.defined:
            if kernel:
                yield done.definition.listing()
                continue
            verdicts = self._tracing.session.probes().verdicts
            found = []
            for place in done.places:
                here = verdicts.at_one(done.definition, done.places, place)
                found.append(self._exported(place, here, told))
            yield from self._rendered(form, found)
        for patterned in self._tracing.definitions.patterned:
            info = patterned.event.info
            name = f"{info.group}/{info.name}"
            yield from self._at_entry(form, patterned.place, name, told, patterned.is_return)
        yield from self._tracing.watches.listed()
        yield from self._dynamic(form, EventSource.EPROBE)
        for info in self._tracing.unplaced.infos:
            if self._tracing.watches.is_mine(info) or info.source in _LINES:
                continue
            if kernel:
                yield f"{info.group}/{info.name}"
            else:
                yield from render_tracepoint(form, info.group, info.name, *self._conditions(info))

    def _dynamic(self, form: str, kind: EventSource) -> Iterator[str]:
        """The events of a kind that other events make."""
        probes = self._tracing.unplaced.event_probes
        events: SyntheticEvents | EventProbes | None = self._tracing.synthetics
        if kind is EventSource.EPROBE:
            events = probes
        if events is None:
            return
        for info, (line, again) in zip(events.infos, events.listed(), strict=True):
            name = info.group, info.name
            rest = self._conditions(info)
            if form == KERNEL_FORM:
                yield line
            elif probes is not None and probes.on_probe(info):
                yield f"# {again}: Linux has event probes on tracepoints alone"
            else:
                yield from render_dynamic(form, again, name, *rest)

    def _of_image(self, image: "OpenedKernel", form: str) -> Iterator[str]:
        """The events on a kernel image, for its own kernel on a real machine."""
        from engine.session.kernel.exported import exported  # few guests are kernels

        lines: list[str] = []
        verdicts = self._tracing.session.probes().verdicts
        patterned = (
            self._definition(
                one.place, f"{one.event.info.group}/{one.event.info.name}", one.is_return, ""
            )
            for one in self._tracing.definitions.patterned
        )
        wanted = [
            (place, verdicts.at_one(done.definition, done.places, place))
            for done in self._tracing.definitions.defined
            for place in done.places
        ]
        for definition in patterned:
            if definition is not None:
                wanted += [(one.place, definition) for one in verdicts.of_definition(definition)]
        for place, definition in wanted:
            exported_place = self._exported(place, definition, set())
            try:
                if exported_place is not None:
                    lines.append(kprobe_line(exported_place, self._tracing.session.arch))
            except CannotError as error:
                yield f"# {definition.command}: {error}"
        yield from exported(image, lines, form)

    def exported(self) -> Iterator[tuple[Place, ExportPlace]]:
        """All places of all events, as another tool would have them.

        An event's filter and triggers come with the first of its places.
        """
        told: set[tuple[str, str]] = set()
        verdicts = self._tracing.session.probes().verdicts
        for done in self._tracing.definitions.defined:
            for place in done.places:
                here = verdicts.at_one(done.definition, done.places, place)
                found = self._exported(place, here, told)
                if found is not None:
                    yield place, found
        for patterned in self._tracing.definitions.patterned:
            info, place = patterned.event.info, patterned.place
            name = f"{info.group}/{info.name}"
            definition = self._definition(place, name, patterned.is_return, "")
            found = None if definition is None else self._exported(place, definition, told)
            if found is not None:
                yield place, found

    def functions(
        self, form: str, places: Iterable[Place], *, returns: bool, words: WordsAt
    ) -> Iterator[str]:
        """Lines of events that record what a tracer of functions does at their entries.

        Args:
            form: see `lines`.
            places: the entries.
            returns: an event for returns as well.
            words: the arguments that the tracer records at a place, for entries or returns.
        """
        told: set[tuple[str, str]] = set()
        for place in places:
            for is_return in (False, True) if returns else (False,):
                name = f"kprobes/{identifier(place, is_return)}"
                given = words(place, is_return)
                yield from self._at_entry(form, place, name, told, is_return, given)

    def _at_entry(
        self,
        form: str,
        place: Place,
        name: str,
        told: set[tuple[str, str]],
        is_return: bool,
        words: str = "",
    ) -> Iterator[str]:
        """The line of an event that no definition has made."""
        definition = self._definition(place, name, is_return, words)
        if definition is None:
            yield f"# {place.name}: no name stands for this place alone"
        elif form == KERNEL_FORM:
            yield definition.listing()
        else:
            yield from self._rendered(form, [self._exported(place, definition, told)])

    def _rendered(self, form: str, places: list[ExportPlace | None]) -> list[str]:
        found = [place for place in places if place is not None]
        return render(form, found, self._tracing.session.arch)

    def _exported(
        self, place: Place, definition: Definition, told: set[tuple[str, str]]
    ) -> ExportPlace | None:
        """The place for another tool; what an event has once is told once.

        Args:
            place: the probe's place.
            definition: with the arguments that hold there.
            told: events whose filter and triggers were told already; this one joins them.
        """
        if place.file_offset is None:
            return None
        key = definition.group, definition.event
        condition, triggers = "", tuple[str, ...]()
        if key not in told and key in self._tracing.infos:
            condition, triggers = self._conditions(self._tracing.infos[key])
            told.add(key)
        return ExportPlace(
            path=place.path,
            link=place.link,
            file_offset=place.file_offset,
            symbol=place.symbol or "",
            offset=place.offset,
            fixed=place.image.kind == "exec",
            definition=definition,
            filter=condition,
            triggers=triggers,
        )

    def _conditions(self, info: EventInfo) -> tuple[str, tuple[str, ...]]:
        """An event's filter, "" for none, and its triggers."""
        control = self._tracing.controls.of(info)
        triggers = tuple(armed.trigger.text for armed in control.written)
        return control.filter.text if control.filter is not None else "", triggers

    # -- definitions for patterns --------------------------------------------------------

    def _definition(
        self, place: Place, name: str, is_return: bool, words: str
    ) -> Definition | None:
        where = self._where(place)
        if where is None:
            return None
        line = f"{'r' if is_return else 'p'}:{name} {where} {words}"
        lookup = self._tracing.session.probes().verdicts.lookup
        mode = self._tracing.options.mode
        found = parse(line, self._tracing.session.arch, mode=mode, lookup=lookup)
        assert isinstance(found, Definition), "the line defines a probe"
        return found

    def _where(self, place: Place) -> str | None:
        """The words for the entry of a function in a definition; None if there are none."""
        verdicts = self._tracing.session.probes().verdicts
        main, file = verdicts.main, verdicts.file_of(place)
        by_path = self._tracing.options.mode is Mode.STRICT and not verdicts.begins_with(file)
        library = file.path if by_path else file.path.rpartition("/")[2]
        prefix = "" if file is main else f"{library}:"
        unique = self._unique_names(file)
        if place.symbol in unique:
            return f"{prefix}{place.symbol}"
        if file is main:
            return f"{place.link:#x}"
        functions = file.symbols.functions()
        at = next((n for n, f in enumerate(functions) if f.address > place.link), len(functions))
        for symbol in list(functions[max(at - _NEAREST, 0) : at])[::-1]:
            if symbol.name in unique:
                return f"{prefix}{symbol.name}+{place.link - symbol.address:#x}"
        return None

    def _unique_names(self, file: ProgramFile) -> frozenset[str]:
        """The names that stand for one address of a file and can be written in a definition."""
        found = self._unique.get(file.path)
        if found is None:
            places: defaultdict[str, set[int]] = defaultdict(set)
            for symbol in file.symbols:
                places[symbol.name].add(symbol.address)
            found = self._unique[file.path] = frozenset(
                name for name, at in places.items() if len(at) == 1 and _WORD.fullmatch(name)
            )
        return found
