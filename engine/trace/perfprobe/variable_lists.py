"""The variables that a place knows: `perf probe -x FILE --vars PLACE`.

tools/perf/util/probe-finder.c of Linux 6.1, collect_variables_cb and add_available_vars; types as
die_get_typename writes them.
"""

from typing import Final

from msgspec import Struct

from engine.errors import ImageError, ProbeError
from engine.image import dies
from engine.image.dies import Die
from engine.image.loclists import entries_of
from engine.image.ranges import read_ranges
from engine.image.reader import DamagedError
from engine.trace.perfprobe.commands import one_line, read_command
from engine.trace.perfprobe.fetch_writer import SearchError, locate, plain_type
from engine.trace.perfprobe.function_entries import PARAMETER, VARIABLE, UnitFunctions
from engine.trace.perfprobe.name_patterns import NameTest
from engine.trace.perfprobe.perf_events import alternative, scoped
from engine.trace.perfprobe.place_search import MAX_PLACES, FoundPlace, PlaceSearch, ProbedFile
from engine.trace.perfprobe.symbol_places import SymbolPlaces

_ARRAY, _POINTER, _FUNCTION = 0x01, 0x0F, 0x15
_WORDS: Final = {0x17: "union ", 0x13: "struct ", 0x04: "enum "}
_INNER: Final = frozenset((0x0B, 0x2E, 0x1D))


class VariableChoice(Struct, frozen=True):
    """The choice of what is listed.

    Attributes:
        externs: the unit's own variables, too.
        ranges: where in the function each has its location.
        inlines: copies of inlined functions count.
        accepts: a filter of "name" (with its range behind a tab); None for all.
    """

    externs: bool = False
    ranges: bool = False
    inlines: bool = True
    accepts: NameTest | None = None


class VariableLists:
    """Lists the variables at places of one file."""

    def __init__(self, file: ProbedFile, symbols: SymbolPlaces, choice: VariableChoice) -> None:
        """Set up."""
        self._file = file
        self._symbols = symbols
        self._choice = choice

    def at(self, text: str) -> list[str]:
        """The lines about the place of a command.

        Raises:
            ProbeError: it is none, or it has no place, in perf's words.
        """
        command = read_command(text)
        shown = command.point.written()
        if command.arguments:
            raise ProbeError(f"{text.strip()}: '--vars' doesn't accept arguments.")
        found: list[tuple[FoundPlace, list[str]]] = []

        def take(place: FoundPlace) -> None:
            if any(known.spot.address == place.spot.address for known, _ in found):
                return
            if len(found) >= MAX_PLACES:
                raise SearchError("ERANGE", f"Too many( > {MAX_PLACES}) probe point found.")
            found.append((place, self._variables(place)))

        inlines = self._choice.inlines
        search = PlaceSearch(self._file, command, take, inlines=inlines)
        try:
            search.run()
            again = None if found else alternative(self._file, self._symbols, command)
            if again is not None:
                PlaceSearch(self._file, again, take, inlines=inlines).run()
        except SearchError as error:
            told = one_line(*search.remarks, str(error))
            raise ProbeError(f"Failed to find the address of {shown}: {told}") from error
        except (DamagedError, ImageError) as error:
            raise ProbeError(f"{shown}: debug information: {error}") from error
        if not found:
            raise ProbeError(
                f"Failed to find the address of {shown}; "
                "check --funcs lists functions, check --lines FUNC the lines of one"
            )
        lines = [f"Available variables at {shown}"]
        for place, names in found:
            lines.append(f"\t@<{place.symbol}+{place.offset}>")
            lines += [f"\t\t{name}" for name in names] or ["\t\t(No matched variables)"]
        return lines

    def _variables(self, place: FoundPlace) -> list[str]:
        unit, spot, choice = place.unit, place.spot, self._choice
        found: set[str] = set()
        for index in scoped(unit, place.scope, spot.address):
            die = unit.die(index)
            if die.tag not in (PARAMETER, VARIABLE):
                continue
            problem = locate(die, spot, None, later=choice.ranges)
            if problem not in ("", "ERANGE"):
                continue
            text = _declared(die)
            if choice.ranges:
                text = f"{'[INV]' if problem else '[VAL]'}\t{text}\t"
                text += _ranges(unit, place.function, index)
            found.add(text)
        if choice.externs:
            for index in unit.children(0):
                die = unit.die(index)
                if die.tag in (PARAMETER, VARIABLE) and locate(die, spot, None) == "":
                    found.add(f"[EXT]\t{_declared(die)}" if choice.ranges else _declared(die))
        accepts = choice.accepts
        kept = (one for one in found if accepts is None or accepts(one.partition("\t")[2]))
        return sorted(kept)


def _declared(die: Die) -> str:
    return f"{type_name(die) or '(unknown_type)'}\t{die.name or '(null)'}"


def type_name(die: Die, depth: int = 0) -> str:
    """The type of an entry as perf writes it; "" if it has none."""
    kind = plain_type(die)
    if kind is None or depth > dies.MAX_CHAIN:
        return ""
    if kind.tag in (_ARRAY, _POINTER):
        inner = type_name(kind, depth + 1)
        return f"{inner}*" if inner else ""
    if kind.tag == _FUNCTION:
        return "(function_type)"
    return f"{_WORDS.get(kind.tag, '')}{kind.name}" if kind.name else ""


def _ranges(unit: UnitFunctions, function: int, index: int) -> str:
    """`@<function+[NN-NN,NN-NN]>`: where a variable has its location, or its scope is."""
    entry = unit.lowest(function) or 0
    die = unit.die(index)
    value = die.get(dies.AT_LOCATION)
    if isinstance(value, int):
        pairs = [(low, high) for low, high, _ in entries_of(die, dies.AT_LOCATION, value)]
    else:
        parent = unit.unit.shape.parents[index]
        pairs = read_ranges(unit.die(parent)) if unit.tag(parent) in _INNER else []
    if not pairs:
        return ""
    text = ",".join(f"{low - entry}-{high - entry}" for low, high in pairs)
    return f"@<{unit.name(function)}+[{text}]>"
