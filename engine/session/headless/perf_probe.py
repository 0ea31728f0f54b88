"""The listings of perf probe: definitions, variables, lines and functions of a program."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from engine.errors import CommandError
from engine.session.program.opening import OpenedProgram
from engine.session.program.perf_commands import PerfFile, host_root
from engine.session.protocol.requests import PerfRequest
from engine.trace.perfprobe.line_lists import lines_of
from engine.trace.perfprobe.name_patterns import NameFilter
from engine.trace.perfprobe.place_search import ProbedFile
from engine.trace.perfprobe.variable_lists import VariableChoice, VariableLists

_FUNCTIONS: Final = "!_* & !*@plt"
_VARIABLES: Final = "!__k???tab_* & !__crc_*"


class PerfListing(Struct, frozen=True):
    """Lines of a listing, and remarks about it.

    Attributes:
        kind: definition, vars, lines or funcs.
        asked: the definition, place or range; "" for functions.
        lines: of the text.
        remarks: about it.
    """

    kind: str
    asked: str
    lines: list[str]
    remarks: list[str]


def perf_listing(request: PerfRequest) -> Iterator[PerfListing]:
    """List what a request asks for, one part after the other.

    Raises:
        ImageError: the guest is no program, or its debug information is damaged.
        ProbeError: a definition or a place is none.
        CommandError: a range of lines is none; there is no debug information.
    """
    opened = OpenedProgram.open(request.config)
    if opened.kernel is not None:
        raise CommandError(
            f"{request.config.guest}: the listings of perf probe are of programs; "
            "-e 'p FUNC ARG' reads the arguments of a kernel image's functions"
        )
    main = opened.inspected().main
    root = host_root(opened.config.root)
    file = PerfFile(main, opened.arch, opened.paths.real, root)
    with opened.explained():
        for text in request.definitions:
            yield _definitions(file, text, inlines=request.inlines)
        for text in request.variables:
            yield PerfListing("vars", text, _lists(file, request).at(text), [])
        for text in request.lines:
            source = lines_of(_debugged(file), file.symbols, text)
            yield PerfListing("lines", text, source, [])
        if request.functions:
            accepts = NameFilter(request.filter or _FUNCTIONS).accepts
            names = [name for name in file.symbols.names() if accepts(name)]
            if not names:
                shown = request.filter or _FUNCTIONS
                raise CommandError(f'Failed to find symbols matched to "{shown}" in {file.path}')
            yield PerfListing("funcs", "", names, [])


def _definitions(file: PerfFile, text: str, *, inlines: bool) -> PerfListing:
    outcome = file.events(inlines=inlines).of(text)
    wrong = [
        f"{event.event} {fetch.name}: perf probe 6.1 fails at this bit field"
        if fetch.wrong.startswith("Failed")
        else f"{event.event} at {event.place}: {fetch.text()}: {fetch.wrong}"
        for event, fetch in outcome.wrong
    ]
    found = [event.text() for event in outcome.events]
    return PerfListing("definition", text, found, [*outcome.remarks, *wrong])


def _debugged(file: PerfFile) -> ProbedFile:
    found = file.probed()
    if found is None:
        raise CommandError(
            f"{file.path} has no debug information (DWARF): compile with -g, or install its "
            "package of debug symbols"
        )
    return found


def _lists(file: PerfFile, request: PerfRequest) -> VariableLists:
    accepts = NameFilter(request.filter or _VARIABLES).accepts
    choice = VariableChoice(request.externs, request.ranges, request.inlines, accepts)
    return VariableLists(_debugged(file), file.symbols, choice)
