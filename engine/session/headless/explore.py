"""The search for a schedule under which a guest ends in another way.

Seeds are tried until one's outcome differs: first with turns of random lengths, which range from
a tick to many, then by priorities (`engine.linux.turns`). Of the schedule that was found choices
are left out as long as the run still ends as it did (Zeller and Hildebrandt: Simplifying and
Isolating Failure-Inducing Input, IEEE TSE 28, 2002: ddmin): to leave a switch out is to let the
thread run on.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import CommandError, CutOff
from engine.linux.turns import Chosen, Lengths, OwnChoice, Priorities, TurnKind, own_choices
from engine.session.guest.outputs import OutputFile, OutputFiles
from engine.session.guest.schedule_file import OPTION, ScheduleFile
from engine.session.headless.end_conditions import EndCondition
from engine.session.headless.trials import Attempt, Crew, OutOfTimeError, Ran, Seen
from engine.session.program.opening import OpenedFiles
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.report import Report
from engine.session.protocol.requests import ExploreRequest

_LONGEST: Final = (3, 10, 30, 100, 300, 1000, 3000, 10_000)
"""Ticks of the longest turns, one after the other for the seeds of the first half."""
_DEPTHS: Final = (2, 3, 4)
"""Of priorities, likewise for the second half."""
_SWITCHES_MAX: Final = 100_000
"""Switches of a run: turns are not shorter than what makes so many."""
_LONG: Final = 100
"""A run takes so many times the first one's ticks, and `_AT_LEAST` more, before it is ended."""
_AT_LEAST: Final = 1_000_000
_TRIALS_MAX: Final = 500
"""Runs for leaving out; what is left then is shown as it is."""
_TIMEOUT: Final = 124
"""Exit code where the time ran out."""


class Cause(Struct, frozen=True):
    """The switches that it takes.

    Attributes:
        trial: that they are of.
        total: choices of its schedule.
        seen: those that it takes, in order.
        alone: the run with these alone.
        smallest: none of them can be left out; False if there was no time to try.
    """

    trial: Attempt
    total: int
    seen: tuple[Seen, ...]
    alone: Ran
    smallest: bool


class Explored(Struct, frozen=True):
    """The result of a search.

    Attributes:
        first: the run of the first seed.
        tried: seeds that were tried.
        trial: the run that differs, None if none does.
        ran: its result.
        holds: the expression holds for it.
        cause: the switches that make the difference; None if none was looked for.
        in_time: False if the time ran out.
        remarks: that the schedule could not be written.
    """

    first: Ran
    tried: int
    trial: Attempt | None = None
    ran: Ran | None = None
    holds: bool = False
    cause: Cause | None = None
    in_time: bool = True
    remarks: tuple[Report, ...] = ()


def explored(request: ExploreRequest, files: OpenedFiles | None = None) -> Explored:
    """Search.

    Args:
        request: the guest, and how far to go.
        files: those that were opened before.

    Raises:
        ImageError: the guest cannot be run.
        CutOff: the time ran out in the first run.
        CommandError: runs could differ without any switch, the condition means nothing, or the
            schedule cannot be written.
    """
    config = request.config
    if config.clock == "host":
        raise CommandError("--clock host makes two runs differ under the same schedule")
    if any(writable for _, writable in config.shares):
        raise CommandError("--share PATH:rw: each run would see what those before have written")
    condition = None if request.stop_if is None else EndCondition(request.stop_if)
    outputs = OutputFiles(config.guest)
    target = None if request.schedule is None else outputs.add(OPTION, request.schedule)
    try:
        with closing(Crew(config, request.jobs, request.seconds, condition, files)) as crew:
            found = _Search(request, crew).run()
        if target is None or found.cause is None:
            return found
        return replace(found, remarks=_write(target, config, found.cause))
    except OutOfTimeError as error:
        raise CutOff(_TIMEOUT) from error
    finally:
        outputs.close()


def _write(target: OutputFile, config: GuestConfig, cause: Cause) -> tuple[Report, ...]:
    """Write the switches that it takes as a schedule; the remark if that fails."""
    turns = f"{cause.trial.turns}, without the switches that make no difference"
    file = ScheduleFile(target, config, cause.trial.seed, turns)
    for choice in cause.alone.choices:
        file.add(choice)
    return file.end()


def turns_for(at: int, count: int, plain: TurnKind, ticks: int) -> TurnKind:
    """The kind of turns for one of the seeds.

    Args:
        at: number of the seed among them, from 0.
        count: of seeds.
        plain: the kind for the first one.
        ticks: that the first run took with more than a thread.
    """
    if not at:
        return plain
    half = (count + 1) // 2
    if at >= half:
        return Priorities(_DEPTHS[(at - half) % len(_DEPTHS)], max(ticks, 1))
    fit = [each for each in _LONGEST if ticks // each <= _SWITCHES_MAX] or [_LONGEST[-1]]
    return Lengths(1, fit[(at - 1) % len(fit)])


class _Search:
    """One search."""

    def __init__(self, request: ExploreRequest, crew: Crew) -> None:
        self._request = request
        self._crew = crew

    def run(self) -> Explored:
        request, config = self._request, self._request.config
        trial = Attempt(config.seed, config.turns, config.max_blocks, keep=True)
        first = self._crew.one(trial)
        if _holds(first):
            return self._found(Explored(first, 1, trial, first, True))
        ticks = first.clock - first.choices[0].tick if first.choices else 0
        limit = config.max_blocks or _LONG * first.clock + _AT_LEAST
        trials = [
            Attempt(config.seed + at, turns_for(at, request.seeds, config.turns, ticks), limit)
            for at in range(1, request.seeds if first.choices else 1)
        ]
        tried = 1
        try:
            for trial, ran in zip(trials, self._crew.several(trials), strict=False):
                tried += 1
                holds = _holds(ran)
                if holds or ran.outcome != first.outcome:
                    return self._found(Explored(first, tried, trial, ran, holds))
        except OutOfTimeError:
            return Explored(first, tried, in_time=False)
        return Explored(first, request.seeds)

    def _found(self, found: Explored) -> Explored:
        assert found.trial is not None
        assert found.ran is not None
        try:
            cause = self._cause(found, found.trial, found.ran)
        except OutOfTimeError:
            return replace(found, in_time=False)
        return replace(found, cause=cause)

    def _cause(self, found: Explored, trial: Attempt, ran: Ran) -> Cause | None:
        """The switches that make the run end as it does; or the first one, if it takes none."""
        wanted = self._as(found.first, ran, found.holds)
        limit = 4 * max(ran.clock, found.first.clock) + _AT_LEAST
        if wanted(self._crew.one(self._with((), trial, limit))):
            if found.holds:
                return None
            config = self._request.config
            trial, ran = Attempt(config.seed, config.turns, config.max_blocks), found.first
            wanted = self._as(ran, ran, False)
        if not ran.choices:
            kept = replace(trial, keep=True, look=False)
            ran = self._crew.one(kept)
        choices = own_choices(ran.choices, ran.first)
        if not wanted(self._crew.one(self._with(choices, trial, limit))):
            return None
        smallest = False
        try:
            fewer = self._fewer(choices, lambda few: self._with(few, trial, limit), wanted)
            for each in fewer:
                choices, smallest = each
        except OutOfTimeError:
            self._crew.last()
        look = Attempt(trial.seed, Chosen(choices), limit, look=True)
        alone = self._crew.one(look)
        return Cause(trial, len(ran.choices), alone.seen, alone, smallest)

    def _as(self, first: Ran, ran: Ran, holds: bool) -> Callable[[Ran], bool]:
        """True for runs that end as one does: of their output only that it differs, too."""
        if holds:
            return _holds
        ended = ran.outcome.exit, ran.outcome.signal, ran.outcome.limit
        same = ran.outcome.output == first.outcome.output

        def alike(other: Ran) -> bool:
            its = other.outcome
            return (its.exit, its.signal, its.limit) == ended and (
                its.output == first.outcome.output
            ) is same

        return alike

    @staticmethod
    def _with(choices: tuple[OwnChoice, ...], trial: Attempt, limit: int) -> Attempt:
        return Attempt(trial.seed, Chosen(choices), limit)

    def _fewer(
        self,
        choices: tuple[OwnChoice, ...],
        trial: Callable[[tuple[OwnChoice, ...]], Attempt],
        wanted: Callable[[Ran], bool],
    ) -> Iterator[tuple[tuple[OwnChoice, ...], bool]]:
        """Smaller and smaller sets that suffice; True with one of which all are needed."""
        pieces, last = 2, self._crew.runs + _TRIALS_MAX
        yield choices, len(choices) < 2
        while len(choices) > 1 and self._crew.runs < last:
            parts = _split(choices, pieces)
            rests = [
                tuple(each for other in parts if other is not part for each in other)
                for part in parts
            ]
            sets = [*parts, *(rests if pieces > 2 else [])][: last - self._crew.runs]
            fit = next(
                (
                    few
                    for few, ran in zip(sets, self._crew.several(map(trial, sets)), strict=False)
                    if wanted(ran)
                ),
                None,
            )
            if fit is not None:
                pieces = max(pieces - 1, 2) if len(fit) > len(choices) // pieces + 1 else 2
                choices = fit
                yield choices, len(choices) < 2
            elif pieces < len(choices):
                pieces = min(2 * pieces, len(choices))
            else:
                yield choices, True
                return


def _holds(ran: Ran) -> bool:
    """True if the condition on the end holds for a run, or cannot be asked."""
    return ran.met is not None


def _split(choices: tuple[OwnChoice, ...], pieces: int) -> list[tuple[OwnChoice, ...]]:
    size, more = divmod(len(choices), pieces)
    ends = [0]
    for at in range(pieces):
        ends.append(ends[-1] + size + (at < more))
    return [choices[a:b] for a, b in pairwise(ends)]
