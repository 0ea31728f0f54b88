"""The events of a command of perf probe: `perf probe -x FILE --definition COMMAND`.

tools/perf/util/probe-event.c of Linux 6.1: convert_to_probe_trace_events, show_probe_trace_events.
"""

import re
from collections.abc import Callable, Sequence
from posixpath import basename
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.errors import ImageError, ProbeError
from engine.image import dies
from engine.image.reader import DamagedError
from engine.trace.perfprobe.commands import (
    MAX_ARGS,
    PARAMS,
    VARS,
    CommandPlace,
    ProbeArgument,
    ProbeCommand,
    one_line,
    read_command,
)
from engine.trace.perfprobe.fetch_writer import MAGIC, Fetch, SearchError, give_type, locate, walk
from engine.trace.perfprobe.function_entries import PARAMETER, VARIABLE, UnitFunctions
from engine.trace.perfprobe.name_patterns import is_glob
from engine.trace.perfprobe.place_search import MAX_PLACES, FoundPlace, PlaceSearch, ProbedFile
from engine.trace.perfprobe.symbol_places import SymbolPlaces

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_GROUP: Final = re.compile(r"[^A-Za-z0-9_]")
_MAX_NAME: Final = 63
NOT_FOUND: Final = (
    "Failed to find the location of the '{0}' variable at this address.\n"
    " Perhaps it has been optimized out.\n"
    " Use --vars with --range to show '{0}' location range."
)


class PerfEvent(Struct):
    """An event at one place.

    Attributes:
        symbol: the function that the place is named after.
        address: link address.
        is_return: it fires when the function returns.
        arguments: in order.
        group: of the event.
        event: its name.
        place: what tracefs takes: PATH:0xOFFSET.
    """

    symbol: str
    address: int
    is_return: bool = False
    arguments: list[Fetch] = field(default_factory=list)
    group: str = ""
    event: str = ""
    place: str = ""

    def text(self) -> str:
        """As perf writes it."""
        return self._written([one.text() for one in self.arguments])

    def placeable(self, offset_of: Callable[[Fetch], int | None]) -> str:
        """As a uprobe event takes it.

        Args:
            offset_of: gives a static variable's offset in the file; None for what has none.
        """
        return self._written([one.placeable(offset_of(one)) for one in self.arguments])

    def _written(self, words: Sequence[str]) -> str:
        letter = "r" if self.is_return else "p"
        return " ".join((f"{letter}:{self.group}/{self.event}", self.place, *words))


class CommandOutcome(Struct, frozen=True):
    """The events of a command, and perf's warnings about it.

    Attributes:
        events: one for each place.
        remarks: perf's warnings.
        wrong: (argument, why) of arguments that the kernel would read wrongly.
    """

    events: list[PerfEvent]
    remarks: list[str]

    @property
    def wrong(self) -> list[tuple[PerfEvent, Fetch]]:
        """The arguments that the kernel would read wrongly, with their events."""
        return [(event, arg) for event in self.events for arg in event.arguments if arg.wrong]


class CommandEvents:
    """Makes the events of commands in one file."""

    def __init__(
        self,
        file: ProbedFile | None,
        symbols: SymbolPlaces,
        path: str,
        *,
        inlines: bool = True,
    ) -> None:
        """Set up.

        Args:
            file: with its debug information; None where it has none.
            symbols: of the file.
            path: of the file as events name it.
            inlines: copies of inlined functions count.
        """
        self._file = file
        self._symbols = symbols
        self._path = path
        self._inlines = inlines

    def of(self, text: str) -> CommandOutcome:
        """The events of a command.

        Raises:
            ProbeError: it is none, or it has no place, in perf's words.
        """
        command = read_command(text)
        try:
            outcome = self._made(command)
        except SearchError as error:
            raise ProbeError(f"{text.strip()}: {one_line(str(error))}") from error
        except (DamagedError, ImageError) as error:
            raise ProbeError(f"{text.strip()}: debug information: {error}") from error
        for event in outcome.events:
            self._name(event, command)
        return outcome

    def _made(self, command: ProbeCommand) -> CommandOutcome:
        point = command.point
        if point.address is not None and not command.needs_debug_information:
            return CommandOutcome([self._absolute(command, point.address)], [])
        if not point.is_return and self._file is not None:
            outcome = self._from_debug_information(command, self._file)
            if outcome is not None:
                return outcome
        elif command.needs_debug_information:
            text = f"{self._path} has no debug information (DWARF), which this place needs"
            raise SearchError("ENOENT", text)
        return CommandOutcome(self._from_symbols(command), [])

    def _absolute(self, command: ProbeCommand, address: int) -> PerfEvent:
        event = PerfEvent(f"abs_{address:x}", address, command.point.is_return)
        event.place = f"{self._path}:0x{address:x}"
        event.arguments = [_raw(one) for one in command.arguments]
        return event

    # -- debug information -------------------------------------------------------

    def _from_debug_information(
        self, command: ProbeCommand, file: ProbedFile
    ) -> CommandOutcome | None:
        """The events as debug information has them; None where the symbols are to be asked."""
        collector = _Collector(command)
        search = PlaceSearch(file, command, collector.take, inlines=self._inlines)
        try:
            search.run()
            if collector.events or not command.arguments:
                collector.fill()
            if not collector.events:
                collector, search = self._alternative(command, file) or (collector, search)
            if not collector.events:
                text = f"Probe point '{command.point.written()}' not found"
                if not command.needs_debug_information and command.arguments:
                    return None
                raise SearchError("ENOENT", text + self._symbols.similar(command.point.function))
        except SearchError as error:
            if command.needs_debug_information or str(error).startswith("Probe point"):
                told = "\n".join((*_told(search.remarks), str(error)))
                raise SearchError(error.code, told) from error
            return None
        for event in collector.events:
            event.place = f"{self._path}:0x{event.address - self._symbols.text_bias:x}"
        return CommandOutcome(collector.events, [*search.remarks, *collector.remarks])

    def _alternative(
        self, command: ProbeCommand, file: ProbedFile
    ) -> "tuple[_Collector, PlaceSearch] | None":
        """The search for what a symbol stands for that the debug information calls otherwise."""
        again = alternative(file, self._symbols, command)
        if again is None:
            return None
        collector = _Collector(again)
        search = PlaceSearch(file, again, collector.take, inlines=self._inlines)
        search.run()
        if collector.events:
            collector.fill()
        return collector, search

    # -- symbols -----------------------------------------------------------------

    def _from_symbols(self, command: ProbeCommand) -> list[PerfEvent]:
        point = command.point
        found = self._symbols.matching(point.function)
        if not found:
            text = f"Failed to find symbol {point.function} in {self._path}"
            raise SearchError("ENOENT", text + self._symbols.similar(point.function))
        if len(found) > MAX_PLACES:
            raise SearchError("E2BIG", f"Too many functions matched in {self._path}")
        events: list[PerfEvent] = []
        for symbol in found:
            if point.offset > symbol.size:
                text = f"Offset {point.offset} is bigger than the size of {symbol.name}"
                raise SearchError("ENOENT", text)
            address = symbol.address + point.offset
            event = PerfEvent(symbol.name, address, point.is_return)
            event.place = f"{self._path}:0x{symbol.offset + point.offset:x}"
            event.arguments = [_raw(one) for one in command.arguments]
            events.append(event)
        return events

    # -- names -------------------------------------------------------------------

    def _name(self, event: PerfEvent, command: ProbeCommand) -> None:
        function = command.point.function
        if command.event:
            base = command.event
        elif function and not function.startswith("0x") and not is_glob(function):
            base = function
        else:
            base = event.symbol
        event.group = command.group or self._group
        base = base.removeprefix(".")
        cut = re.search(r"[.@]", base)
        if cut is not None and cut.start():
            base = base[: cut.start()]
        name = f"{base}__return" if event.is_return else base
        if not _NAME.fullmatch(name):
            raise ProbeError(
                f'{command.text.strip()}: "{name}" is an invalid event name; '
                f"give one: NAME={command.point.written()}"
            )
        if len(name) > _MAX_NAME:
            raise ProbeError(
                f"{command.text.strip()}: the event's name, {name}, has more than {_MAX_NAME} "
                f"characters; give one: NAME={command.point.written()}"
            )
        event.event = name

    @property
    def _group(self) -> str:
        name = basename(self._path)
        cut = _NOT_GROUP.search(name)
        return f"probe_{name[: cut.start()] if cut is not None else name}"


def _told(remarks: list[str]) -> list[str]:
    """The remarks that explain an error: not that of a prologue."""
    return [text for text in remarks if not text.startswith("Target program")]


def _raw(argument: ProbeArgument) -> Fetch:
    """An argument that is no variable's: as it stands."""
    return Fetch(argument.name, argument.variable, type=argument.type)


class _Collector:
    """Makes an event of each place that a search finds (add_probe_trace_event)."""

    def __init__(self, command: ProbeCommand) -> None:
        self.events: list[PerfEvent] = []
        self.remarks: list[str] = []
        self._command = command

    def take(self, place: FoundPlace) -> None:
        """Make the event of a place; one that is known already counts once."""
        address = place.spot.address
        if any(event.address == address for event in self.events):
            return
        if len(self.events) >= MAX_PLACES:
            raise SearchError("ERANGE", f"Too many( > {MAX_PLACES}) probe point found.")
        if self._command.point.is_return and place.offset:
            raise SearchError("EINVAL", f"{place.symbol} is inlined and has no return point.")
        event = PerfEvent(place.unit.name(place.scope), address)
        for argument in self._expanded(place):
            event.arguments.append(self._fetch(place, argument))
        self.events.append(event)

    def fill(self) -> None:
        """Give variables that are not everywhere a value where they are not."""
        for number, argument in enumerate(self._command.arguments):
            here = [
                event.arguments[number] for event in self.events if number < len(event.arguments)
            ]
            known = next((one for one in here if one.value), None)
            if known is None:
                if not here or argument.variable in (VARS, PARAMS):
                    continue  # a function without variables
                raise SearchError("ENOENT", NOT_FOUND.format(argument.variable))
            for one in here:
                if not one.value:
                    one.value, one.type = MAGIC, known.type

    def _expanded(self, place: FoundPlace) -> list[ProbeArgument]:
        """The arguments with `$vars` and `$params` carried out."""
        found: list[ProbeArgument] = []
        for argument in self._command.arguments:
            if argument.variable not in (VARS, PARAMS):
                found.append(argument)
                continue
            tags = (PARAMETER, VARIABLE) if argument.variable == VARS else (PARAMETER,)
            for index in scoped(place.unit, place.scope, place.spot.address):
                die = place.unit.die(index)
                if die.tag in tags and die.name and locate(die, place.spot, None) == "":
                    found.append(ProbeArgument("", die.name))
        if len(found) > MAX_ARGS:
            raise SearchError("ERANGE", f"Too many probe arguments ({len(found)}).")
        return found

    def _fetch(self, place: FoundPlace, argument: ProbeArgument) -> Fetch:
        if not argument.is_variable:
            return _raw(argument)
        unit, address = place.unit, place.spot.address
        fetch = Fetch(argument.name or argument.written().replace(":", "_", 1))
        index = variable(unit, place.scope, argument.variable, address)
        if index is None:
            index = variable(unit, 0, argument.variable, 0)
        if index is None:
            return fetch
        die = unit.die(index)
        problem = locate(die, place.spot, fetch)
        if problem == "ENOENT":
            return fetch
        if problem == "EINVAL":
            raise SearchError(problem, NOT_FOUND.format(argument.variable))
        if problem:
            text = f"Sorry, we don't support this variable location yet: {argument.variable}"
            raise SearchError(problem, text)
        die = walk(die, fetch, argument)
        remark = give_type(die, fetch, argument)
        if remark:
            self.remarks.append(remark)
        return fetch


def scoped(unit: UnitFunctions, index: int, address: int) -> list[int]:
    """The entries in a scope and in the blocks around an address, in perf's order."""
    shape = unit.unit.shape
    found: list[int] = []
    at, end = index + 1, shape.ends[index]
    while at < end:
        found.append(at)
        at = at + 1 if unit.has_pc(at, address) else max(shape.ends[at], at + 1)
    return found


def variable(unit: UnitFunctions, index: int, name: str, address: int) -> int | None:
    """The first variable of a name in a scope (die_find_variable_at)."""
    for child in scoped(unit, index, address):
        die = unit.die(child)
        if die.tag not in (PARAMETER, VARIABLE) or die.name != name:
            continue
        if any(die.has(one) for one in (dies.AT_EXTERNAL, dies.AT_LOCATION, dies.AT_CONST_VALUE)):
            return child
    return None


def alternative(
    file: ProbedFile, symbols: SymbolPlaces, command: ProbeCommand
) -> ProbeCommand | None:
    """The command with the name that debug information has for a symbol; None for none.

    Args:
        file: the file.
        symbols: of the file.
        command: names a function that debug information does not have.

    Raises:
        SearchError: the symbol's place is in no function.
    """
    point = command.point
    address = symbols.named(point.function) if point.function and not point.file else None
    if address is None:
        return None
    found = place_of(file, address)
    moved = CommandPlace(
        found.function,
        found.file,
        found.line + point.line,
        found.offset + point.offset,
        point.is_return,
    )
    return replace(command, point=moved)


def place_of(file: ProbedFile, address: int) -> CommandPlace:
    """The place that debug information has for an address (debuginfo__find_probe_point).

    Raises:
        SearchError: it has none.
    """
    for unit in file.covering(address):
        function = unit.function_at(address)
        if function is None:
            continue
        name, base = unit.name(function), unit.lowest(function) or 0
        linkage = unit.die(function).linkage_name
        return CommandPlace(linkage or name, unit.declared_file(function), offset=address - base)
    text = f"Failed to find debug information for address {address:x}"
    raise SearchError("ENOENT", text)
