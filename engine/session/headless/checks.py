"""Verdicts on the places of a program, without a run."""

from collections.abc import Callable, Iterator
from itertools import chain

from msgspec import Struct

from engine.errors import CommandError, ProbeError
from engine.session.program.opening import OpenedProgram
from engine.session.program.verdicts import Placed as Placed
from engine.session.program.verdicts import Verdicts
from engine.session.protocol.report import Report
from engine.session.protocol.requests import CheckRequest, Rules
from engine.trace.definition import Definition, parse


def _asked(opened: OpenedProgram, verdicts: Verdicts, request: CheckRequest) -> list[Placed]:
    """The verdicts on the places of definitions."""
    asked: list[Placed] = []
    for line in request.definitions:
        definition = parse(line, opened.arch, mode=request.mode, lookup=verdicts.lookup)
        if isinstance(definition, Definition):
            placed = verdicts.of_definition(definition, request.rules)
            if not placed:
                raise CommandError(f"-e {definition.command}: {verdicts.unhit(definition)}")
            asked += placed
        elif definition is not None:
            raise CommandError(f"-e {line}: a deletion has no place to check")
    return asked


class Checked(Struct, frozen=True):
    """The verdicts on the places of a program.

    Attributes:
        asked: on the places of definitions.
        rest: on all others, judged as they are asked for.
        damage: remarks about what was damaged in its files up to now, once.
    """

    asked: list[Placed]
    rest: Iterator[Placed]
    damage: Callable[[], tuple[Report, ...]]


def check(request: CheckRequest) -> Checked:
    """Judge the places that a request names.

    Raises:
        ImageError: the guest is no program for a machine that is supported.
        CommandError: a definition is a deletion, or the kernel takes it and it is never hit.
        ProbeError: a definition is not accepted; later: no function matches a pattern.
    """
    config, rules = request.config, request.rules
    opened = OpenedProgram.open(config)
    verdicts = Verdicts(opened.arch, opened.inspected(), request.mode, config.technique)
    with opened.explained():
        asked = _asked(opened, verdicts, request)
    default = rules or Rules.KPROBE
    rest: Iterator[Placed] = iter(())
    if request.everything:
        rest = verdicts.of_all(default)
    elif request.functions:
        found = (_functions(opened, verdicts, glob, default) for glob in request.functions)
        rest = chain.from_iterable(found)
    elif not request.definitions:
        rest = verdicts.of_functions("*", default)
    return Checked(asked, rest, opened.damage)


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
