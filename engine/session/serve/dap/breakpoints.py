"""The breakpoints of a front end, which gives all of a kind anew each time."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from msgspec import Struct

from engine.errors import CommandError
from engine.language.evaluation import checked
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.interpreter import Interpreter
from engine.session.debugger.linespecs import WantedPlace
from engine.session.debugger.output import TROUBLE, message
from engine.session.debugger.places import PlaceMissingError
from engine.session.debugger.stops import BreakLocation, UserBreakpoint, UserStop
from engine.session.serve.dap.bodies import DapBreakpoint
from engine.session.serve.dap.requests import (
    DapSource,
    DataBreakpoint,
    FunctionBreakpoint,
    InstructionBreakpoint,
    SourceBreakpoint,
    WantedBreakpoint,
)
from engine.session.serve.dap.sources import SourceNames, address_of
from engine.session.serve.watched import watch_bytes

_HITS: Final = re.compile(r"\s*(==|=|>=|>|<=|<|%)?\s*(\d{1,18})\s*")
_COMPARED: Final[dict[str, Callable[[int, int], bool]]] = {
    "==": lambda hits, number: hits == number,
    "=": lambda hits, number: hits == number,
    ">=": lambda hits, number: hits >= number,
    "": lambda hits, number: hits >= number,
    ">": lambda hits, number: hits > number,
    "<=": lambda hits, number: hits <= number,
    "<": lambda hits, number: hits < number,
    "%": lambda hits, number: bool(number) and not hits % number,
}
_ACCESSES: Final = {"read": "rwatch", "write": "watch", "readWrite": "awatch"}
_TEMPLATE: Final = re.compile(r"\{([^{}]+)\}")

Log = Callable[[str, DapSource | None, int], object]
"""Takes a line of a logpoint, and where that is."""


class _FrontEndBreakpoint(Struct):
    """A breakpoint of the front end's.

    Attributes:
        id: of it.
        kind: "source", "function", "instruction", "data" or "typed".
        wanted: as it was asked for.
        stop: that stands for it; None if it could not be placed.
        trouble: why not.
        file: source file, as the program knows it.
        told: the way in which it was described last.
    """

    id: int
    kind: str
    wanted: WantedBreakpoint
    stop: UserStop | None = None
    trouble: str = ""
    file: str = ""
    told: DapBreakpoint | None = None


class FrontEndBreakpoints:
    """All breakpoints of a front end."""

    def __init__(
        self, debugger: Debugger, interpreter: Interpreter, sources: SourceNames, log: Log
    ) -> None:
        """None yet."""
        self._debugger, self._interpreter = debugger, interpreter
        self._sources = sources
        self._log = log
        self._groups: dict[tuple[str, str], list[_FrontEndBreakpoint]] = {}
        self._last = 0

    # -- placing ----------------------------------------------------------------------------

    def place(
        self, kind: str, group: str, wanted: Sequence[WantedBreakpoint], *, runs: bool
    ) -> list[DapBreakpoint]:
        """Have these, and no others of their kind and group; how they stand.

        Args:
            kind: "source", "function", "instruction" or "data".
            group: the file of those of a source, "" else.
            wanted: the breakpoints that the editor wants.
            runs: the guest is running meanwhile.
        """
        stops = self._debugger.stops
        changing: AbstractContextManager[None] = stops.while_running() if runs else nullcontext()
        with changing:
            if kind == "source":
                self._adopt(group, wanted)
            free = [one for one in self._groups.get((kind, group), []) if self._stands(one)]
            kept: list[_FrontEndBreakpoint | None] = []
            for each in wanted:
                known = next((one for one in free if one.wanted == each), None)
                if known is not None:
                    free.remove(known)
                kept.append(known)
            self._groups[kind, group] = [one for one in kept if one is not None]
            for gone in free:
                assert gone.stop is not None
                stops.delete(gone.stop)
            found = [
                known or self._plant(kind, group, each)
                for known, each in zip(kept, wanted, strict=True)
            ]
        self._groups[kind, group] = found
        return [self._told(one) for one in found]

    def _adopt(self, group: str, wanted: Sequence[WantedBreakpoint]) -> None:
        """Take those that words have placed in a file for the front end's, which knows them.

        One at a line where another one of the front end's stays is left alone.
        """
        typed = self._groups.get(("typed", ""), [])
        file = self._sources.known(group) if typed else ""
        mine = self._groups.setdefault(("source", group), [])
        asked = {one.line for one in wanted if isinstance(one, SourceBreakpoint)}
        taken = {
            one.wanted.line
            for one in mine
            if isinstance(one.wanted, SourceBreakpoint) and self._stands(one)
        }
        for one in list(typed):
            stop = one.stop
            if not isinstance(stop, UserBreakpoint) or not self._stands(one):
                continue
            place = stop.locations[0].place if stop.locations else None
            if place is None or place.file != file or place.line in asked & taken:
                continue
            taken.add(place.line)
            typed.remove(one)
            one.kind, one.file = "source", file
            one.wanted = SourceBreakpoint(line=place.line)
            mine.append(one)

    def _stands(self, one: _FrontEndBreakpoint) -> bool:
        stop = one.stop
        return stop is not None and self._debugger.stops.all.get(stop.number) is stop

    def _plant(self, kind: str, group: str, wanted: WantedBreakpoint) -> _FrontEndBreakpoint:
        self._last += 1
        one = _FrontEndBreakpoint(self._last, kind, wanted)
        try:
            if isinstance(wanted, DataBreakpoint):
                one.stop = self._watch(wanted)
            else:
                one.stop = self._break(one, self._place_of(one, group))
        except TROUBLE as error:
            one.trouble = message(error)
        return one

    def _place_of(self, one: _FrontEndBreakpoint, group: str) -> WantedPlace:
        wanted = one.wanted
        if isinstance(wanted, SourceBreakpoint):
            one.file = self._sources.known(group)
            return WantedPlace(f"{one.file}:{wanted.line}", file=one.file, line=wanted.line)
        if isinstance(wanted, InstructionBreakpoint):
            at = address_of(wanted.instruction_reference) + wanted.offset
            return WantedPlace(f"*{at:#x}", address=at)
        assert isinstance(wanted, FunctionBreakpoint)
        return self._debugger.wanted(wanted.name)

    def _break(self, one: _FrontEndBreakpoint, place: WantedPlace) -> UserBreakpoint:
        debugger, wanted = self._debugger, one.wanted
        stop = UserBreakpoint(wanted=place)
        self._ask(stop, wanted)
        try:
            found = debugger.places_of(place)
        except PlaceMissingError as error:
            one.trouble = str(error)
            found = ()
            stop.extra = f"if {wanted.condition}" if wanted.condition else ""
        stop.locations = [BreakLocation(each) for each in found]
        if found:
            debugger.conditions.set(stop, wanted.condition)
        debugger.stops.add(stop)
        return stop

    def _watch(self, wanted: DataBreakpoint) -> UserStop:
        word = _ACCESSES.get(wanted.access_type)
        address, _, size = wanted.data_id.partition("/")
        if word is None:
            raise CommandError(f"accessType: {wanted.access_type} is none")
        if not size.isdecimal():
            raise CommandError(f"dataId: {wanted.data_id} is none of dataBreakpointInfo's")
        if wanted.condition:
            checked(wanted.condition, self._debugger.scope)
        stop = watch_bytes(self._debugger, self._interpreter, word, address_of(address), int(size))
        try:
            self._ask(stop, wanted)
            self._debugger.conditions.set(stop, wanted.condition)
        except TROUBLE:
            self._debugger.stops.delete(stop)
            raise
        return stop

    def _ask(self, stop: UserStop, wanted: WantedBreakpoint) -> None:
        """Have a stop ask at its hits for what is wanted.

        Raises:
            CommandError: it is not understood.
        """
        due = _hits_of(wanted.hit_condition, stop)
        if isinstance(wanted, SourceBreakpoint) and wanted.log_message:
            stop.at_hit = self._logs(wanted, stop, due)
        elif wanted.hit_condition:
            stop.at_hit = due

    def _logs(
        self, wanted: SourceBreakpoint, stop: UserStop, due: Callable[[], bool]
    ) -> Callable[[], bool]:
        """Say something at each hit, and let the guest run on."""
        texts = _TEMPLATE.split(wanted.log_message)

        def log() -> bool:
            if due():
                values = self._debugger.conditions.texts_at_hit(texts[1::2])
                shown = [*texts]
                shown[1::2] = values
                place = stop.hit.place if isinstance(stop, UserBreakpoint) and stop.hit else None
                source = self._sources.source(place.file) if place and place.file else None
                self._log("".join(shown), source, place.line if place else 0)
            return False

        return log

    # -- telling ----------------------------------------------------------------------------

    def _told(self, one: _FrontEndBreakpoint) -> DapBreakpoint:
        one.told = self._described(one)
        return one.told

    def _described(self, one: _FrontEndBreakpoint) -> DapBreakpoint:
        stop = one.stop
        if stop is None or not self._stands(one):
            return DapBreakpoint(
                verified=False, id=one.id, message=one.trouble or "deleted", reason="failed"
            )
        if not isinstance(stop, UserBreakpoint):
            return DapBreakpoint(verified=True, id=one.id, message=stop.what)
        if not stop.locations:
            return DapBreakpoint(
                verified=False, id=one.id, message=f"{one.trouble} (yet)", reason="pending"
            )
        place = stop.locations[0].place
        many = len(stop.locations)
        return DapBreakpoint(
            verified=True,
            id=one.id,
            message=f"{many} places" if many > 1 else "",
            source=self._sources.source(place.file) if place.file else None,
            line=place.line,
            instruction_reference=f"{place.address:#x}",
        )

    def changed(self) -> Iterator[tuple[str, DapBreakpoint]]:
        """Yield ("changed" or "removed", the breakpoint) where the front end knows otherwise."""
        for group in self._groups.values():
            for one in list(group):
                if one.stop is not None and not self._stands(one):
                    group.remove(one)
                    yield "removed", DapBreakpoint(verified=False, id=one.id)
                elif one.told is not None and one.told != (now := self._described(one)):
                    one.told = now
                    yield "changed", now

    def typed(self, ignored: Callable[[UserStop], bool]) -> Iterator[DapBreakpoint]:
        """Return the breakpoints that words have placed since, unknown to the front end."""
        known = {id(one.stop) for group in self._groups.values() for one in group}
        for stop in self._debugger.stops.all.values():
            if stop.number > 0 and id(stop) not in known and not ignored(stop):
                self._last += 1
                one = _FrontEndBreakpoint(self._last, "typed", WantedBreakpoint(), stop)
                self._groups.setdefault(("typed", ""), []).append(one)
                yield self._told(one)

    def reached(self) -> tuple[list[int], str]:
        """Ids of those that stop the guest where it stands, and the kind of the first."""
        found = [
            one
            for stop in self._debugger.stops.reached
            for group in self._groups.values()
            for one in group
            if one.stop is stop
        ]
        return [one.id for one in found], found[0].kind if found else ""


def _hits_of(text: str, stop: UserStop) -> Callable[[], bool]:
    """The question that a hit condition is: "5" and ">= 5" from the fifth on, "%5" each fifth.

    Raises:
        CommandError: it is none.
    """
    if not text.strip():
        return lambda: True
    match = _HITS.fullmatch(text)
    if match is None:
        raise CommandError(f"hitCondition: {text} is none of N, == N, > N, >= N, < N, <= N, % N")
    compare, number = _COMPARED[match[1] or ""], int(match[2])
    return lambda: compare(stop.hits, number)
