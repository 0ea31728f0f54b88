"""Verdicts on the places of a program, without a run."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from engine.errors import CommandError, KprobeTuiError, ProbeError
from engine.session.program.opening import OpenedFiles, OpenedProgram
from engine.session.program.places import Place
from engine.session.program.verdicts import Placed as Placed
from engine.session.program.verdicts import Verdicts
from engine.session.protocol.report import Report
from engine.session.protocol.requests import CheckRequest, Rules
from engine.trace.definition import Definition, parse

if TYPE_CHECKING:
    from engine.session.program.placeless_lines import PlacelessLines

FunctionOutcomes = tuple[Place, list[tuple[int, str]]]
"""A place in a function, and (address, outcome) of the function's instructions."""


class AskedLine(Struct, frozen=True):
    """The answer to a definition.

    Attributes:
        line: the definition.
        placed: the verdicts on its places; none for an empty line.
        error: why it is not accepted; None where it is.
        listing: what is accepted without a place, as tracefs lists it; "" for probes.
    """

    line: str
    placed: Sequence[Placed]
    error: KprobeTuiError | None = None
    listing: str = ""


class _JudgedLines:
    """Judges definitions, those of events without a place among them."""

    def __init__(self, opened: OpenedProgram, verdicts: Verdicts, request: CheckRequest) -> None:
        self._opened, self._verdicts, self._request = opened, verdicts, request
        self._events: PlacelessLines | None = None

    def asked(self, line: str) -> AskedLine:
        """The answer to a definition.

        Raises:
            CommandError: as for `_of_one`.
            ProbeError: it is not accepted.
        """
        from engine.trace.tracepoints import selection  # lists of functions have no definitions

        written, selected = line.removesuffix("\n"), selection(line)
        if selected is None:
            placed = _placed(line, self._opened, self._verdicts, self._request)
            for one in self._named(line):
                self._known.placed(one)
            return AskedLine(written, placed)
        return AskedLine(written, [], listing=self._known.take(selected))

    @property
    def _known(self) -> "PlacelessLines":
        if self._events is None:
            from engine.session.program.placeless_lines import (
                PlacelessLines,
            )  # few lines have no place

            self._events = PlacelessLines(self._opened.arch, self._request.mode)
        return self._events

    def _named(self, line: str) -> Iterator[Definition]:
        """The definitions that a line stands for, where one behind it may name their events."""
        from engine.trace.tracepoints import selection  # as above

        if not any(map(selection, self._request.definitions)):
            return
        verdicts = self._verdicts
        for each in verdicts.spelled_out(line)[0]:
            one = parse(each, self._opened.arch, mode=self._request.mode, lookup=verdicts.lookup)
            if isinstance(one, Definition):
                yield one


def _placed(
    line: str, opened: OpenedProgram, verdicts: Verdicts, request: CheckRequest
) -> Sequence[Placed]:
    """The verdicts on the places of a definition, which may stand for several.

    Raises:
        CommandError: as for `_of_one`.
        ProbeError: it is not accepted.
    """
    lines, _ = verdicts.spelled_out(line)
    found = (_of_one(each, opened, verdicts, request) for each in lines)
    return tuple(chain.from_iterable(found))


def _of_one(
    line: str, opened: OpenedProgram, verdicts: Verdicts, request: CheckRequest
) -> Sequence[Placed]:
    """The verdicts on the places of one definition.

    Raises:
        CommandError: it is a deletion, or the kernel takes it and it is never hit.
        ProbeError: it is not accepted.
    """
    definition = parse(line, opened.arch, mode=request.mode, lookup=verdicts.lookup)
    if isinstance(definition, Definition):
        placed = verdicts.of_definition(definition, request.rules)
        if not placed:
            raise CommandError(f"-e {definition.command}: {verdicts.unhit(definition)}")
        return placed
    if definition is not None:
        raise CommandError(f"-e {line}: a deletion has no place to check")
    return []


class Checked(Struct, frozen=True):
    """The verdicts on the places of a program.

    Attributes:
        lines: the answers to definitions, in their order.
        rest: on all others, judged as they are asked for.
        outcomes: of the others in their place, by function, where that is all that is asked.
        damage: remarks about what was damaged in its files up to now, once.
    """

    lines: list[AskedLine]
    rest: Iterator[Placed]
    outcomes: Iterator[FunctionOutcomes]
    damage: Callable[[], tuple[Report, ...]]

    @property
    def asked(self) -> Iterator[Placed]:
        """The verdicts on the places of definitions."""
        return chain.from_iterable(each.placed for each in self.lines)


def check(
    request: CheckRequest,
    *,
    brief: bool = False,
    each: bool = False,
    files: OpenedFiles | None = None,
) -> Checked:
    """Judge the places that a request names.

    Args:
        request: names them.
        brief: of all instructions only what comes of each is wanted.
        each: a definition that is not accepted is an answer, and the others are judged.
        files: those that were opened before.

    Raises:
        ImageError: the guest is no program for a machine that is supported.
        CommandError: a definition is a deletion, or the kernel takes it and it is never hit;
            not with `each`.
        ProbeError: a definition is not accepted, not with `each`; later: no function matches a
            pattern.
    """
    config, rules = request.config, request.rules
    opened = OpenedProgram.open(config, files)
    verdicts = Verdicts(opened.arch, opened.inspected(), request.mode, config.technique)
    lines: list[AskedLine] = []
    judged = _JudgedLines(opened, verdicts, request)
    with opened.explained():
        for line in request.definitions:
            try:
                lines.append(judged.asked(line))
            except (CommandError, ProbeError) as error:
                if not each:
                    raise
                lines.append(AskedLine(line.removesuffix("\n"), [], error))
    default = rules or Rules.KPROBE
    rest: Iterator[Placed] = iter(())
    outcomes: Iterator[FunctionOutcomes] = iter(())
    if request.everything and brief:
        outcomes = verdicts.outcomes(default)
    elif request.everything:
        rest = verdicts.of_all(default)
    elif request.functions:
        found = (_functions(opened, verdicts, glob, default) for glob in request.functions)
        rest = chain.from_iterable(found)
    elif not request.definitions:
        rest = verdicts.of_functions("*", default)
    return Checked(lines, rest, outcomes, opened.damage)


def _functions(
    opened: OpenedProgram, verdicts: Verdicts, glob: str, rules: Rules
) -> Iterator[Placed]:
    none = True
    for placed in verdicts.of_functions(glob, rules):
        none = False
        yield placed
    if none:
        with opened.explained():
            raise ProbeError(f"-f {glob}: no function matches")
