"""Verdicts on the places of a program, without a run."""

from collections.abc import Iterator
from itertools import chain

from engine.errors import CommandError, ProbeError
from engine.session.program.opening import OpenedProgram
from engine.session.program.verdicts import Placed as Placed
from engine.session.program.verdicts import Verdicts
from engine.session.protocol.requests import CheckRequest, Rules
from engine.trace.definition import Definition, parse


def check(request: CheckRequest) -> tuple[list[Placed], Iterator[Placed]]:
    """Judge the places that a request names.

    Returns:
        The verdicts on the places of definitions, and all others, judged as they are asked for.

    Raises:
        ImageError: the guest is no program for a machine that is supported.
        CommandError: a definition is a deletion, or the kernel takes it and it is never hit.
        ProbeError: a definition is not accepted; later: no function matches a pattern.
    """
    config, rules = request.config, request.rules
    opened = OpenedProgram.open(config)
    verdicts = Verdicts(opened.arch, opened.inspected(), request.mode, config.technique)
    asked: list[Placed] = []
    for line in request.definitions:
        definition = parse(line, opened.arch, mode=request.mode, lookup=verdicts.lookup)
        if isinstance(definition, Definition):
            placed = verdicts.of_definition(definition, rules)
            if not placed:
                raise CommandError(f"-e {definition.command}: {verdicts.unhit(definition)}")
            asked += placed
        elif definition is not None:
            raise CommandError(f"-e {line}: a deletion has no place to check")
    default = rules or Rules.KPROBE
    if request.everything:
        return asked, verdicts.of_all(default)
    if request.functions:
        found = (_functions(verdicts, glob, default) for glob in request.functions)
        return asked, chain.from_iterable(found)
    if request.definitions:
        return asked, iter(())
    return asked, verdicts.of_functions("*", default)


def _functions(verdicts: Verdicts, glob: str, rules: Rules) -> Iterator[Placed]:
    none = True
    for placed in verdicts.of_functions(glob, rules):
        none = False
        yield placed
    if none:
        raise ProbeError(f"-f {glob}: no function matches")
